"""Work-groups: indices, local memory, barriers, atomics; and what kernels throw."""

from __future__ import annotations

import numpy as np

from .language import kernel

RNG = np.random.default_rng(6)

kernel(
    "local_red",
    """
    @kernel function k!(out, @Const(x))
        i = @index(Global, Linear)
        l = @index(Local, Linear)
        g = @index(Group, Linear)
        N = @uniform @groupsize()[1]
        s = @localmem Float64 (8,)
        @inbounds s[l] = x[i]
        @synchronize
        if l == 1
            t = 0.0
            for k in 1:N
                @inbounds t += s[k]
            end
            @inbounds out[g] = t
        end
    end
    """,
    [np.zeros(4), RNG.random(32)],
    (32,),
    (8,),
)
kernel(
    "private",
    """
    @kernel function k!(out, @Const(x))
        i = @index(Global, Linear)
        p = @private Float64 (2,)
        p[1] = x[i]
        p[2] = 2 * x[i]
        @synchronize
        out[i] = p[1] * p[2]
    end
    """,
    [np.zeros(20), RNG.random(20)],
    (20,),
    (8,),
)
kernel(
    "atomics",
    """
    using KernelAbstractions: @atomic
    @kernel function k!(h, m, @Const(x))
        i = @index(Global, Linear)
        @atomic h[x[i]] += 1
        @atomic max(m[1], x[i])
        @atomic m[2] -= x[i]
        @atomic :monotonic m[3] |= x[i]
    end
    """,
    [np.zeros(5, np.int32), np.zeros(3, np.int64), RNG.integers(1, 6, 40)],
    (40,),
    (8,),
)
kernel(
    "ndr3",
    """
    @kernel function k!(o)
        i, j, k = @index(Global, NTuple)
        a, b, c = @index(Local, NTuple)
        p, q, s = @index(Group, NTuple)
        I = @index(Global, Linear)
        L = @index(Local, Linear)
        G = @index(Group, Linear)
        n = @ndrange()
        w = @groupsize()
        @inbounds o[i, j, k] = I + 1000L + 100000G + n[1] + w[2] + 7a + 11b + 13c + 17p + 19q + 23s
    end
    """,
    [np.zeros((5, 6, 7), np.int64, order="F")],
    (5, 6, 7),
    (2, 3, 2),
)
kernel(
    "kshort",
    """
    @kernel inbounds=true f2(y, @Const(x)) = (i = @index(Global); y[i] = 2x[i])
    @kernel function k!(y, @Const(x))
        i = @index(Global)
        y[i] = x[i]
    end
    """,
    [np.zeros(9), np.arange(9.0)],
    (9,),
)
kernel(
    "uniformblock",
    """
    @kernel function k!(y, @Const(x))
        i = @index(Global)
        @uniform begin
            n = length(x)
            m = n ÷ 2
        end
        @inbounds y[i] = x[i] * m
    end
    """,
    [np.zeros(9), np.arange(9.0)],
    (9,),
    (4,),
)
kernel(
    "syncif",
    """
    @kernel function k!(y, @Const(x), flag)
        i = @index(Global, Linear)
        l = @index(Local, Linear)
        s = @localmem Float64 (4,)
        @inbounds s[l] = x[i]
        if flag > 0
            @synchronize
            @inbounds y[i] = s[5 - l]
        else
            @inbounds y[i] = 0.0
        end
    end
    """,
    [np.zeros(16), np.arange(16.0), np.int64(1)],
    (16,),
    (4,),
)
kernel(
    "syncloop",
    """
    @kernel function k!(y, @Const(x), ::Val{STEPS}) where {STEPS}
        i = @index(Global, Linear)
        l = @index(Local, Linear)
        a = @localmem Float64 (8,)
        b = @localmem Float64 (8,)
        @inbounds a[l] = x[i]
        @synchronize
        for k in 1:STEPS
            @inbounds b[l] = a[mod1(l + 1, 8)] + k
            @synchronize
            @inbounds a[l] = b[l]
            @synchronize
        end
        @inbounds y[i] = a[l]
    end
    """,
    [np.zeros(32), np.arange(32.0)],
    (32,),
    (8,),
    params={"STEPS": 5},
)
kernel(
    "atomlocal",
    """
    using KernelAbstractions: @atomic
    @kernel function k!(h, @Const(x))
        i = @index(Global, Linear)
        l = @index(Local, Linear)
        s = @localmem Int64 (4,)
        if l <= 4
            @inbounds s[l] = 0
        end
        @synchronize
        @inbounds @atomic s[x[i]] += 1
        @synchronize
        if l <= 4
            @inbounds @atomic h[l] += s[l]
        end
    end
    """,
    [np.zeros(4, np.int64), RNG.integers(1, 5, 32)],
    (32,),
    (8,),
)
kernel(
    "atomfl",
    """
    using KernelAbstractions: @atomic
    @kernel function k!(h, @Const(x))
        i = @index(Global, Linear)
        @atomic h[1] += x[i]
        @atomic h[2] = max(h[2], x[i])
        v = @atomic h[4] += 1
    end
    """,
    [np.array([0, 0, 1.0, 0]), np.arange(9.0)],
    (9,),
    (3,),
)
kernel(
    "lm2",
    """
    @kernel function k!(o, @Const(A))
        i, j = @index(Local, NTuple)
        I, J = @index(Global, NTuple)
        t = @localmem eltype(o) (4 + 1, 4)
        @inbounds t[i, j] = A[I, J]
        @synchronize
        @inbounds o[I, J] = t[5 - i, j] + length(t)
    end
    """,
    [np.zeros((8, 8), order="F"), np.asfortranarray(RNG.random((8, 8)))],
    (8, 8),
    (4, 4),
)
kernel(
    "bounds",
    """
    @kernel function k!(y, @Const(x))
        i = @index(Global)
        y[i] = x[i + 1]
    end
    """,
    [np.zeros(5), np.zeros(5)],
    (5,),
)
kernel(
    "inexact",
    """
    @kernel function k!(y, @Const(x))
        i = @index(Global)
        @inbounds y[i] = x[i]
    end
    """,
    [np.zeros(5, np.int32), np.array([1, 2, 3.5, 4, 5])],
    (5,),
)
kernel(
    "diverr",
    """
    @kernel function k!(y, @Const(x))
        i = @index(Global)
        @inbounds y[i] = 10 ÷ x[i]
    end
    """,
    [np.zeros(5, np.int64), np.array([1, 2, 0, 4, 5])],
    (5,),
)
kernel(
    "domain",
    """
    @kernel function k!(y, @Const(x))
        i = @index(Global)
        @inbounds y[i] = sqrt(x[i])
    end
    """,
    [np.zeros(5), np.array([1, 2, -1, 4, 5.0])],
    (5,),
)
kernel(
    "err",
    """
    @kernel function k!(y, @Const(x))
        i = @index(Global)
        x[i] > 3 && error("too large")
        @inbounds y[i] = x[i]
    end
    """,
    [np.zeros(5), np.array([1, 2, -1, 4, 5.0])],
    (5,),
)
