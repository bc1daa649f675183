"""Arrays in memory: every way to index, views, sizes, local and private memory, atomics, barriers in control flow."""

from __future__ import annotations

import numpy as np

from .language import kernel

RNG = np.random.default_rng(7)
A = np.asfortranarray(RNG.random((6, 5)))
B = np.asfortranarray(RNG.integers(-9, 9, (4, 3, 2)))
V = RNG.random(24)
K = RNG.integers(1, 6, 24)


def zeros(*shape: int, dtype: type = np.float64) -> np.ndarray:
    return np.zeros(shape, dtype, order="F")


kernel(
    "sizes",
    """
    @kernel function k!(y, @Const(A), @Const(B))
        i = @index(Global)
        m, n = size(A)
        y[1] = m * n + length(A) + ndims(B) + size(B, 3) + size(B, 4) + size(A, 1)
        y[2] = first(axes(A, 1)) + last(axes(A, 2)) + length(axes(A)) + lastindex(A) + lastindex(A, 2) + firstindex(A)
        y[3] = sum(size(B)) + prod(size(B)) + length(eachindex(A)) + length(CartesianIndices(B))
        y[4] = sizeof(eltype(A)) + (eltype(B) === Int64) + length(axes(A, 2))
        a, b, c = axes(B)
        y[5] = last(a) + last(b) * 10 + last(c) * 100
    end
    """,
    [zeros(5), A, B],
    (1,),
)
kernel(
    "three_dims",
    """
    @kernel function k!(y, @Const(B))
        i, j, k = @index(Global, NTuple)
        I = @index(Global, Cartesian)
        L = @index(Global, Linear)
        y[i, j, k] = B[I] + 10 * B[L] + 100 * B[i, j, k] + B[end, j, k] + B[i, end, end] + B[end - i + 1, 1, k] + L
    end
    """,
    [zeros(4, 3, 2, dtype=np.int64), B],
    (4, 3, 2),
    (2, 2, 1),
)
kernel(
    "axes_loops",
    """
    @kernel function k!(y, @Const(A), @Const(B))
        j = @index(Global)
        s = 0.0
        for i in axes(A, 1)
            s = 2s + A[i, j]
        end
        for I in CartesianIndices(B)
            s += B[I] * I[1] - I[3]
        end
        for (k, I) in enumerate(CartesianIndices((2, 3)))
            s += k * I[1] * I[2]
        end
        for k in eachindex(y), i in 1:2:6
            s += A[i, k] * k
        end
        for (k, v) in enumerate(A)
            k > 3 && break
            s += k * v
        end
        for (v, k) in zip(A, 1:4)
            s += v * k
        end
        for i in LinearIndices(B)
            s += B[i]
        end
        y[j] = s
    end
    """,
    [zeros(5), A, B],
    (5,),
)
kernel(
    "cartesian_arithmetic",
    """
    @kernel function k!(y, @Const(A))
        I = @index(Global, Cartesian)
        δ = CartesianIndex(1, 0)
        J = I + δ
        m = CartesianIndex(size(A))
        s = J in CartesianIndices(A) ? A[J] : -1.0
        s += A[min(J, m)] + A[max(I - δ, CartesianIndex(1, 1))] + A[I[1], I[2]] * Tuple(I)[2]
        s += (I == J) + 2 * (I == CartesianIndex(1, 2)) + length(I) + I.I[1]
        y[I] = s + LinearIndices(A)[I] + CartesianIndices(A)[3][1] - 2 * I[2]
    end
    """,
    [zeros(6, 5), A],
    (6, 5),
    (4, 2),
)
kernel(
    "index_by_tuple",
    """
    @kernel function k!(y, @Const(A), @Const(B))
        t = @index(Global, NTuple)
        y[t...] = A[t...] + B[1, t[2] % 3 + 1, 1] + A[CartesianIndex(t)] + getindex(A, t...)
        setindex!(y, y[t...] * 2, t...)
    end
    """,
    [zeros(6, 5), A, B],
    (6, 5),
    (3, 5),
)
kernel(
    "views_everywhere",
    """
    total(v) = begin
        s = zero(eltype(v))
        for x in v
            s += x
        end
        s
    end
    fill_with!(v, x) = begin
        for k in eachindex(v)
            v[k] = x + k
        end
    end
    @kernel function k!(y, @Const(A), @Const(B))
        j = @index(Global)
        c = @view A[:, j]
        r = @view A[2:4, :]
        w = view(A, 1:2:5, j)
        q = @view c[2:end]
        b = @view B[:, :, 1]
        d = @view r[2, 2:3]
        z = @view y[:, j]
        fill_with!(z, total(c) + total(w))
        y[1, j] += total(q) + r[1, j] + b[2, 3] + d[2] + length(r) + size(b, 2) + w[end] + sum(size(q))
        @views y[2, j] += total(A[1:3, j]) + A[4, j]
    end
    """,
    [zeros(4, 5), A, B],
    (5,),
)
kernel(
    "store_converts",
    """
    @kernel function k!(y, z, b, @Const(x))
        i = @index(Global)
        y[i] = x[i]
        z[i] = round(x[i])
        b[i] = x[i] > 0.5
        y[i] += true
        z[i] *= 2.0
    end
    """,
    [zeros(24, dtype=np.float32), zeros(24, dtype=np.int32), zeros(24, dtype=np.bool_), V],
    (24,),
)
kernel(
    "read_modify_write",
    """
    @kernel function k!(y, n)
        i = @index(Global)
        y[i] += 1
        y[i] *= y[i] -= 3
        y[i], y[end] = y[end], y[i]
        y[i] = y[i] / 2
    end
    """,
    [V[:1].copy(), np.int64(1)],
    (1,),
)
kernel(
    "local_types",
    """
    const T = 4
    @kernel function k!(y, @Const(x), ::Val{N}) where {N}
        i = @index(Global, Linear)
        l = @index(Local, Linear)
        a = @localmem Float32 (N,)
        b = @localmem Int32 (T + 1, 2)
        c = @localmem eltype(x) N
        d = @localmem ComplexF32 (2N,)
        a[l] = x[i]
        c[l] = 2 * x[i]
        b[l, 1] = l
        b[l, 2] = -l
        d[l] = complex(x[i], 1)
        d[N + l] = im
        @synchronize
        m = N - l + 1
        y[i] = a[m] + b[m, 1] + b[m, 2] * 10 + c[m] + real(d[m]) + imag(d[N + m]) + length(b) + size(b, 1)
    end
    """,
    [zeros(24), V],
    (24,),
    (4,),
    params={"N": 4},
)
kernel(
    "private_forms",
    """
    @kernel function k!(y, @Const(x), ::Val{N}) where {N}
        i = @index(Global, Linear)
        p = @private Float64 (N, 2)
        q = @private Int N
        w = @private Float32 1
        for k in 1:N
            p[k, 1] = x[i] * k
            p[k, 2] = k
            q[k] = 10k
        end
        w[1] = x[i]
        @synchronize
        for k in 2:N
            p[1, 1] += p[k, 1] * p[k, 2] + q[k]
        end
        @synchronize
        y[i] = p[1, 1] + w[1]
    end
    """,
    [zeros(24), V],
    (24,),
    (5,),
    params={"N": 3},
)
kernel(
    "uniform_loop",
    """
    @kernel function k!(y, @Const(x))
        i = @index(Global, Linear)
        l = @index(Local, Linear)
        @uniform N = @groupsize()[1]
        s = @localmem Float64 (8,)
        s[l] = x[i]
        @uniform d = N ÷ 2
        @synchronize
        while d > 0
            if l <= d
                s[l] += s[l + d]
            end
            @synchronize
            @uniform d = d ÷ 2
            @synchronize
        end
        if l == 1
            y[(i - 1) ÷ N + 1] = s[1]
        end
    end
    """,
    [zeros(3), V],
    (24,),
    (8,),
)
kernel(
    "barriers_nested",
    """
    @kernel function k!(y, @Const(x), steps)
        i = @index(Global, Linear)
        l = @index(Local, Linear)
        s = @localmem Float64 (6,)
        s[l] = x[i]
        @synchronize
        for k in 1:steps
            if k % 2 == 1
                if l > 1
                    y[i] = s[l] + s[l - 1]
                else
                    y[i] = s[l]
                end
                @synchronize
                s[l] = y[i]
                @synchronize
            else
                s[l] = s[l] * k
                @synchronize
            end
        end
        y[i] = s[l]
    end
    """,
    [zeros(24), V, np.int64(5)],
    (24,),
    (6,),
)
kernel(
    "padded_group",
    """
    @kernel function k!(y, @Const(x))
        i = @index(Global, Linear)
        l = @index(Local, Linear)
        g = @index(Group, Linear)
        s = @localmem Float64 (5,)
        s[l] = x[i]
        @synchronize
        if l > 1
            y[i] = s[l] - s[l - 1] + g
        else
            y[i] = s[l] * g
        end
    end
    """,
    [zeros(23), V],
    (23,),
    (5,),
)
kernel(
    "padded_two_dims",
    """
    @kernel function k!(y, @Const(A))
        i, j = @index(Global, NTuple)
        a, b = @index(Local, NTuple)
        t = @localmem Float64 (4, 3)
        t[a, b] = A[i, j]
        @synchronize
        y[i, j] = t[a, b] + (a > 1 ? t[a - 1, b] : 0.0) + (b > 1 ? t[a, b - 1] : 0.0)
    end
    """,
    [zeros(6, 5), A],
    (6, 5),
    (4, 3),
)
kernel(
    "atomic_forms",
    """
    using KernelAbstractions: @atomic
    @kernel function k!(h, f, @Const(k))
        i = @index(Global, Linear)
        @atomic h[k[i]] += 1
        @atomic h[6] -= k[i]
        @atomic h[7] = max(h[7], k[i])
        @atomic min(h[8], -k[i])
        @atomic h[9] + k[i]
        @inbounds @atomic h[10] += i
        @atomic h[11] ⊻= k[i]
        @atomic h[12] |= 1 << k[i]
        @atomic h[13] &= ~(1 << k[i])
        KernelAbstractions.@atomic f[1] += k[i]
        @atomic f[2] -= 2k[i]
        @atomic :monotonic f[3] += 1
    end
    """,
    [np.array([0] * 12 + [-1]), zeros(3), K],
    (24,),
    (8,),
)
kernel(
    "atomic_single",
    """
    using Atomix: @atomic, @atomicswap, @atomicreplace
    @kernel function k!(h, r)
        i = @index(Global, Linear)
        a = @atomic h[1] += 5
        b = @atomic h[2] + 3
        c = @atomicswap h[3] = 9
        d = @atomicreplace h[4] 4 => 40
        e = @atomicreplace h[5] 4 => 40
        @atomic h[6] = 7
        f = @atomic h[6]
        r[1] = a
        r[2] = b.first
        r[3] = b.second
        r[4] = c
        r[5] = d.old
        r[6] = d.success
        r[7] = e.old
        r[8] = e.success
        r[9] = f
    end
    """,
    [np.arange(1, 7), zeros(9, dtype=np.int64)],
    (1,),
)
kernel(
    "atomic_widths",
    """
    using KernelAbstractions: @atomic
    @kernel function k!(a, b, c, d)
        i = @index(Global, Linear)
        @atomic a[1] += i
        @atomic b[1] += i % UInt32
        @atomic c[1] = max(c[1], 2i)
        @atomic d[1] += Float32(i)
    end
    """,
    [zeros(1, dtype=np.int32), zeros(1, dtype=np.uint32), zeros(1, dtype=np.uint64), zeros(1, dtype=np.float32)],
    (24,),
    (8,),
)
kernel(
    "functions_as_arguments",
    """
    apply(f, op, a, b) = op(f(a), f(b))
    @kernel function k!(y, @Const(x), f, op)
        i = @index(Global)
        y[i] = apply(f, op, x[i], 0.5) + f(1)
    end
    """,
    [zeros(24), V, "abs2", "max"],
    (24,),
)
kernel(
    "scalar_arguments",
    """
    @kernel function k!(y, a::Int32, b::Float32, c, t, z)
        i = @index(Global)
        y[i] = a / 3 + b / 3 + c + t[1] * t[2] + t[3][1] + real(z) * imag(z) + a * typemax(Int32)
    end
    """,
    [zeros(3), np.int32(7), np.float32(0.1), np.uint8(200), (1.5, np.int8(-3), (2,)), np.complex64(1 + 2j)],
    (3,),
)
kernel(
    "typed_kernel",
    """
    @kernel inbounds = true function k!(y::AbstractVector{T}, A::AbstractMatrix{S}, n::Integer) where {T, S <: Real}
        i = @index(Global)
        s = zero(promote_type(T, S))
        for j in 1:n
            s += A[j, i] * oneunit(S)
        end
        y[i] = convert(T, s)
    end
    """,
    [zeros(5, dtype=np.float32), A, np.int64(4)],
    (5,),
)
kernel(
    "options_any_order",
    """
    @kernel unsafe_indices = true inbounds = true function k!(y)
        g = @index(Group, Linear)
        l = @index(Local, Linear)
        N = @uniform prod(@groupsize())
        i = (g - 1) * N + l
        if i <= length(y)
            y[i] = i
        end
    end
    """,
    [zeros(24)],
    (24,),
    (8,),
)
