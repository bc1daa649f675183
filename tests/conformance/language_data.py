"""Tuples, static arrays, CartesianIndex, arrays and views."""

from __future__ import annotations

import numpy as np

from .language import XI, XS, elementwise, kernel

RNG = np.random.default_rng(4)
A = np.asfortranarray(RNG.random((7, 5)))

elementwise(
    "dot_ops",
    """
    t = (v, 2v, 3v)
    u = t .+ 1.0
    w = abs.(u) .* t
    r = w[1] + w[2] - w[3] + sum(w .^ 2)
    """,
    XS,
)
elementwise(
    "namedtuple",
    """
    nt = (a = v, b = v + 1)
    r = nt.a * nt.b
    """,
    XI,
    np.int64,
)
elementwise(
    "cartesian",
    """
    I = CartesianIndex(i, 2)
    J = I + CartesianIndex(1, 1)
    r = J[1] * 10 + J[2] + Tuple(J)[1] + CartesianIndices((3, 11))[i][1] + CartesianIndices((3, 11))[i][2] * 100
    """,
    XI,
    np.int64,
)
elementwise("lin", "r = LinearIndices((5, 7))[mod1(i, 5), 3]", XI, np.int64)
elementwise(
    "svec",
    """
    a = SVector(v, 1.0, 2.0)
    b = SVector{3, Float64}(1, 2, 3)
    c = a + 2b
    r = c[1] + sum(c) + c[3] * length(c)
    """,
    XS,
    before="using StaticArrays",
)
elementwise(
    "mvec",
    """
    m = MVector{3, Float64}(undef)
    for k in 1:3
      m[k] = k * v
    end
    m[2] += 1
    r = m[1] + m[2] * m[3]
    """,
    XS,
    before="using StaticArrays",
)
elementwise(
    "smat",
    """
    M = @SMatrix [1.0 2.0; 3.0 v]
    w = M * SVector(v, 1.0)
    r = w[1] * w[2] + M[2, 1]
    """,
    XS,
    before="using StaticArrays",
)
elementwise(
    "atmvec",
    """
    m = @MVector zeros(Float64, 4)
    for k in 1:4
      m[k] = v + k
    end
    r = m[1] * m[4]
    """,
    XS,
    before="using StaticArrays",
)
elementwise(
    "dotfused",
    """
    a = (v, 1.0)
    b = (2.0, v)
    c = (a .+ b) .* 2 .- a
    r = c[1] * c[2]
    """,
    XS,
)
elementwise(
    "dotassign",
    """
    t = (1, 2, 3)
    s = sum(t .* v) + sum(t .== 2)
    r = s
    """,
    XS,
)
elementwise(
    "norm",
    """
    a = SVector(v, 2.0, 3.0)
    r = norm(a) + dot(a, a) + cross(a, SVector(1.0, 0.0, v))[2] + sum(abs2, a) + maximum(a)
    """,
    XS,
    before="using StaticArrays, LinearAlgebra",
)
elementwise(
    "svops",
    """
    a = SVector{2}(v, 1.0)
    b = map(x -> x^2, a)
    c = a .* b .+ 1
    d = -c / 2
    r = d[1] + d[2] + prod(a) + a.x
    """,
    XS,
    before="using StaticArrays",
)
elementwise(
    "mmat",
    """
    m = @MMatrix zeros(2, 2)
    for i in 1:2, j in 1:2
      m[i, j] = v * i + j
    end
    r = m[1, 2] * m[2, 1] + sum(m)
    """,
    XS,
    before="using StaticArrays",
)
elementwise(
    "svzero",
    """
    z = zero(SVector{3, Float64})
    w = z + SVector(v, v, 1.0)
    for k in 1:3
      w = w + SVector(1.0, k, v)
    end
    r = w[1] + w[2] * w[3]
    """,
    XS,
    before="using StaticArrays",
)
elementwise(
    "first_last",
    """
    t = (1, 2.5, v)
    r = first(t) + last(t) + length(t) + t[end]
    """,
    XS,
)
elementwise(
    "tupleslice",
    """
    t = (1.0, 2.0, v, 4.0)
    r = sum(t[2:3])
    """,
    XS,
)
elementwise(
    "setindex",
    """
    t = (1.0, 2.0, 3.0)
    t2 = Base.setindex(t, v, 2)
    r = t2[1] * t2[2]
    """,
    XS,
)
kernel(
    "cartview",
    """
    @kernel function k!(B, @Const(A))
        I = @index(Global, Cartesian)
        i, j = Tuple(I)
        @inbounds B[I] = A[I] * i + A[j, i]
    end
    """,
    [np.zeros((5, 5), order="F"), np.asfortranarray(RNG.random((5, 5)))],
    (5, 5),
)
kernel(
    "eachindex",
    """
    @kernel function k!(y, @Const(A))
        j = @index(Global)
        s = zero(eltype(y))
        for k in eachindex(A)
            @inbounds s += A[k] * j
        end
        for v in A
            s += v
        end
        for I in CartesianIndices(A)
            @inbounds s += A[I] * I[1]
        end
        @inbounds y[j] = s + ndims(A)
    end
    """,
    [np.zeros(3), A],
    (3,),
)
kernel(
    "cart_neigh",
    """
    @kernel function k!(o, @Const(A))
        I = @index(Global, Cartesian)
        s = zero(eltype(A))
        for J in CartesianIndices((-1:1, -1:1))
            K = I + J
            if all(Tuple(K) .>= 1) && all(Tuple(K) .<= size(A))
                @inbounds s += A[K]
            end
        end
        @inbounds o[I] = s
    end
    """,
    [np.zeros((6, 5), order="F"), np.asfortranarray(RNG.random((6, 5)))],
    (6, 5),
)
kernel(
    "cartrange",
    """
    @kernel function k!(o, @Const(A))
        I = @index(Global, Cartesian)
        one_ = oneunit(I)
        s = 0.0
        for J in max(I - one_, CartesianIndex(1, 1)):min(I + one_, CartesianIndex(size(A)))
            @inbounds s += A[J]
        end
        @inbounds o[I] = s
    end
    """,
    [np.zeros((6, 5), order="F"), np.asfortranarray(RNG.random((6, 5)))],
    (6, 5),
)
kernel(
    "struct_in_tuple",
    """
    @kernel function k!(y, p)
        i = @index(Global)
        a, b = p
        @inbounds y[i] = a * i + b + p[2]
    end
    """,
    [np.zeros(5), (2.0, 3)],
    (5,),
)
kernel(
    "view",
    """
    @kernel function k!(y, @Const(A))
        j = @index(Global)
        c = @view A[:, j]
        s = 0.0
        for k in 1:length(c)
            @inbounds s += c[k]
        end
        w = view(A, 2:4, j)
        @inbounds y[j] = s + w[1] * w[end] + c[end] + size(w, 1)
    end
    """,
    [np.zeros(5), A],
    (5,),
)
kernel(
    "linear",
    """
    @kernel function k!(y, @Const(A))
        i = @index(Global)
        @inbounds y[i] = A[i] + A[end] + A[end, 1] + A[1, end]
    end
    """,
    [np.zeros(35), A],
    (35,),
)
kernel(
    "views2",
    """
    @kernel function k!(y, @Const(A))
        j = @index(Global)
        @views c = A[2:3, j]
        d = @view A[1:2:end, j]
        @inbounds y[j] = sum2(c) + d[2]
    end
    function sum2(v)
        s = zero(eltype(v))
        for k in 1:length(v)
            @inbounds s += v[k]
        end
        return s
    end
    """,
    [np.zeros(5), np.asfortranarray(RNG.random((4, 5)))],
    (5,),
)
kernel(
    "swapin",
    """
    @kernel function k!(x)
        i = @index(Global)
        j = length(x) - i + 1
        @inbounds x[i], x[j] = x[j], x[i]
    end
    """,
    [np.arange(10.0)],
    (5,),
)
elementwise("range_len", "r = length(1:v) + length(1:2:10) + first(3:v) + last(1:4) + sum(1:3)", XI, np.int64)
elementwise("in", "r = (v in (1, 3, 5)) + 2 * (v ∈ 2:4) + 4 * (v ∉ (0, 1))", XI, np.int64)
kernel(
    "cplxarr",
    """
    @kernel function k!(y, @Const(x), a)
        i, j = @index(Global, NTuple)
        @inbounds z = x[i, j]
        @inbounds y[i, j] = a * conj(z) + abs2(z) * z
        @inbounds y[i, j] += 1
    end
    """,
    [
        np.zeros((4, 5), np.complex128, order="F"),
        np.asfortranarray(RNG.random((4, 5)) + 1j * RNG.random((4, 5))),
        np.complex128(1 + 2j),
    ],
    (4, 5),
)
kernel(
    "boolarr",
    """
    @kernel function k!(y, @Const(m), @Const(x))
        i = @index(Global)
        @inbounds y[i] = m[i] ? x[i] : -x[i]
        @inbounds y[i] += m[i]
    end
    """,
    [np.zeros(9), np.array([1, 0, 1] * 3, bool), np.arange(9.0)],
    (9,),
)
kernel(
    "intidx",
    """
    @kernel function k!(y, @Const(p), @Const(x))
        i = @index(Global)
        @inbounds y[p[i]] = x[i % UInt8]
    end
    """,
    [np.zeros(9), np.arange(9, 0, -1).astype(np.int32), np.arange(9.0)],
    (9,),
)
kernel(
    "nd4",
    """
    @kernel function k!(o, @Const(A))
        i, j, k, l = @index(Global, NTuple)
        I = @index(Global, Cartesian)
        @inbounds o[I] = A[i, j, k, l] * I[4]
    end
    """,
    [np.zeros((3, 2, 4, 2), order="F"), np.asfortranarray(RNG.random((3, 2, 4, 2)))],
    (3, 2, 4, 2),
    (2, 2, 1, 1),
)
