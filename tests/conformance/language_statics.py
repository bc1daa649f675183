"""Static vectors and matrices, complex numbers, tuples as vectors, ranges, and functions on all of them."""

from __future__ import annotations

import numpy as np

from .language import XF, XI, XS, elementwise

SA = "using StaticArrays"
LA = "using StaticArrays, LinearAlgebra"

elementwise(
    "svector_make",
    """
    a = SVector{2, Float32}(v, 1)
    b = SVector(1, 2.5)
    c = @SVector [v, 2v]
    d = SVector((v, 1.0))
    r = a[1] + b[2] + c[2] + d[1] + length(a) + sum(b)
    """,
    XS,
    before=SA,
)
elementwise(
    "svector_zero",
    """
    z = zeros(SVector{3, Float64})
    o = ones(SVector{2, Float32})
    r = sum(z) + sum(o) + zero(z)[1] + v
    """,
    XS,
    before=SA,
)
elementwise(
    "svector_ops",
    """
    a = SVector(v, 2.0)
    b = a .* a .- 1
    c = 2a - b / 2
    r = c[1] * c[2] + (a == b) + maximum(a) + minimum(b) + a'*b
    """,
    XS,
    before=LA,
)
elementwise(
    "svector_map",
    """
    a = SVector(v, 2, 3)
    b = map(x -> 2x, a)
    r = sum(b) + reduce(max, a) + mapreduce(abs, +, a) + prod(a) + count(x -> x > 0, a)
    """,
    XI,
    np.int64,
    before=SA,
)
elementwise(
    "svector_ntuple",
    """
    a = SVector(ntuple(k -> k * v, Val(3)))
    t = Tuple(a)
    r = a[3] + t[2] + sum(t)
    """,
    XI,
    np.int64,
    before=SA,
)
elementwise(
    "svector_loop",
    """
    a = SVector(v, 2, 3)
    r = 0
    for k in 1:length(a)
        r += k * a[k]
    end
    for x in a
        r = 2r + x
    end
    for k in eachindex(a)
        r -= a[k]
    end
    """,
    XI,
    np.int64,
    before=SA,
)
elementwise(
    "svector_setindex",
    """
    a = SVector(v, 2, 3)
    b = Base.setindex(a, 7, 2)
    r = sum(b) - sum(a)
    """,
    XI,
    np.int64,
    before=SA,
)
elementwise(
    "smatrix",
    """
    m = @SMatrix [v 2.0; 3.0 4.0]
    w = SMatrix{2, 2}(1.0, v, 3.0, 4.0)
    r = (m * w)[2, 1] + m[3] + w[1, 2] + size(m, 1) + (m + w)[1, 1] + (2m)[4] + transpose(m)[1, 2]
    """,
    XS,
    before=SA,
)
elementwise(
    "smatrix_det",
    """
    m = @SMatrix [v 2.0; 3.0 4.0]
    r = m[1, 1] * m[2, 2] - m[1, 2] * m[2, 1] + tr(m)
    """,
    XS,
    before=LA,
)
elementwise(
    "mvector",
    """
    m = @MVector [1, v, 3]
    m[2] += 5
    m[end] = m[1] * m[2]
    r = m[3] + sum(m) + length(m)
    for x in m
        r += x
    end
    """,
    XI,
    np.int64,
    before=SA,
)
elementwise(
    "mmatrix",
    """
    m = zeros(MMatrix{2, 3, Float64})
    for j in 1:3, k in 1:2
        m[k, j] = v * j + k
    end
    r = m[2, 3] + m[4] + sum(m) + size(m, 2)
    """,
    XS,
    before=SA,
)
elementwise(
    "mvector_passed",
    """
    m = MVector{3, Float64}(1, 2, 3)
    bump!(m, v)
    r = m[1] + m[3]
    """,
    XS,
    before=SA + "\nfunction bump!(m, x)\n    for k in 1:3\n        m[k] += x * k\n    end\n    return nothing\nend",
)
elementwise(
    "mvector_copy",
    """
    m = @MVector zeros(2)
    m[1] = v
    s = SVector(m)
    m[1] = 5.0
    r = s[1] + m[1]
    """,
    XS,
    before=SA,
)
elementwise(
    "linear_algebra",
    """
    a = SVector(v, 1.0, 2.0)
    b = SVector(0.5, v, 1.0)
    r = dot(a, b) + norm(a) + cross(a, b)[3] + sum(abs2, a) + sum(normalize(a) .^ 2)
    """,
    XS,
    before=LA,
    ulps=4,
)
elementwise(
    "complex_arithmetic",
    """
    z = complex(v, 2.0)
    w = 1 + 2im
    q = z * w - z / w + w
    r = real(q) + imag(q) * 10 + abs2(z) + real(conj(z) * z) + imag(-z) + real(2z) + imag(z * im)
    """,
    XS,
)
elementwise(
    "complex_types",
    """
    z = ComplexF32(v, 1)
    w = z + 1
    q = Complex{Float64}(z)
    r = real(w) / 3 + imag(q) / 3 + (eltype(z) === ComplexF32) + isreal(complex(1, 0)) + (z == z) + reim(z)[1]
    """,
    XF,
)
elementwise(
    "complex_power",
    """
    z = complex(v, 1.0)
    q = z^2 + z^3 + inv(z)
    r = real(q) - imag(q) + abs(z) + angle(z)
    """,
    XS,
    ulps=8,
)
elementwise(
    "complex_integers",
    """
    z = v + 2im
    w = z * z
    r = real(w) + imag(w)
    """,
    XI,
    np.int64,
)
elementwise(
    "complex_exp",
    """
    z = complex(v, 0.5)
    q = exp(z) + cis(v) + sqrt(complex(-abs(v), 0.0)) + log(complex(v, 1.0))
    r = real(q) + imag(q)
    """,
    XS,
    ulps=16,
)
elementwise(
    "tuple_broadcast",
    """
    t = (v, 2, 3)
    u = t .* 2 .+ (1, 2, 3)
    w = min.(u, 5) .- abs.(t)
    b = t .> 1
    r = sum(w) + 10 * count(identity, b) + sum(u .* b) + all(u .== u)
    """,
    XI,
    np.int64,
)
elementwise(
    "tuple_dot_macro",
    """
    t = (v, 2.0)
    u = @. 2t + t^2 - 1
    r = u[1] + u[2]
    """,
    XS,
)
elementwise(
    "tuple_functions",
    """
    t = (v, 5, 2)
    r = maximum(t) + minimum(t) + sum(t) + prod(t) + first(t) + last(t) + length(t) + (5 in t)
    r += sum(reverse(t)[1:2]) + Base.tail(t)[1] + Base.front(t)[1]
    """,
    XI,
    np.int64,
)
elementwise(
    "tuple_compare",
    """
    t = (v, 2)
    r = (t == (3, 2)) + 2 * (t != (3, 2)) + 4 * (t === (5, 2)) + 8 * ((1, 2) < (1, v)) + 16 * isless(t, (0, 0))
    """,
    XI,
    np.int64,
)
elementwise(
    "tuple_build",
    """
    t = (v, 1)
    u = (t..., 3, t...)
    w = tuple(u[2:4]..., 7)
    r = length(u) * 100 + u[4] + w[1] + w[end]
    """,
    XI,
    np.int64,
)
elementwise(
    "tuple_map",
    """
    t = (v, 2.5, 1f0)
    u = map(x -> x * 2, t)
    w = map(+, t, u)
    r = u[1] + w[2] + w[3] + mapreduce(x -> x / 2, +, t) + foldl(-, t)
    """,
    XI,
)
elementwise("foldr", "r = foldr(-, (v, 2, 3)) + foldl(-, (v, 2, 3)) * 100", XI, np.int64)
elementwise("sum_init", "r = reduce(+, (v, 2); init = 5) + foldl(*, (v, 2); init = 7)", XI, np.int64)
elementwise(
    "ntuple_forms",
    """
    a = ntuple(identity, 3)
    b = ntuple(k -> 2k + v, Val(2))
    c = ntuple(3) do k
        k == 2 ? v : 0
    end
    r = sum(a) + sum(b) + sum(c)
    """,
    XI,
    np.int64,
)
elementwise(
    "range_values",
    """
    a = 2:3:20
    b = v:5
    r = length(a) + a[3] + last(a) + first(b) + sum(1:4) + (7 in b) + step(a)
    r += isempty(b) * 1000 + length(b) + maximum(a) + minimum(a)
    """,
    XI,
    np.int64,
)
elementwise(
    "range_of_steps",
    """
    r = 0
    for k in 1:2:7
        r += k * v
    end
    for k in reverse(2:4)
        r = 3r - k
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "in_ranges", "r = (v in 1:5) + 2 * (v in 1:2:9) + 4 * (v ∈ (1, 7)) + 8 * (v ∉ -3:3) + 16 * in(v, 2:3)", XI, np.int64
)
elementwise(
    "any_all",
    """
    t = (v, 1, 4)
    r = any(>(3), t) + 2 * all(>=(1), t) + 4 * any(iszero, t) + 8 * all(x -> x < 5, t) + 16 * any(==(2), (v,))
    """,
    XI,
    np.int64,
)
elementwise(
    "function_values",
    """
    f = Base.Fix2(^, 2)
    g = abs ∘ (x -> x - 3)
    h = !iseven
    r = f(v) + g(v) + h(v) + (v |> abs |> x -> x + 1) + (>=(2))(v)
    """,
    XI,
    np.int64,
)
elementwise(
    "swap_tuple_parts",
    """
    (a, b), c = (v, 2), 3
    a, (b, c) = b, (c, a)
    r = a + 10b + 100c
    """,
    XI,
    np.int64,
)
elementwise(
    "findfirst_like",
    "r = argmax((v, 3, 5)) + 10 * argmin((v, 3, 5)) + findmax((v, 3))[1] + extrema((v, 3))[2]",
    XI,
    np.int64,
)
elementwise(
    "typed_tuple",
    """
    t = convert(Tuple{Float64, Float32}, (v, 1))
    u = NTuple{2, Float32}((v, 3))
    r = t[1] + t[2] / 3 + u[2] / 3
    """,
    XI,
)
elementwise(
    "oneto",
    """
    r = 0
    for k in Base.OneTo(4)
        r += k * v
    end
    r += length(Base.OneTo(3))
    """,
    XI,
    np.int64,
)
elementwise("clamp_ranges", "r = clamp(v, 2, 5) + clamp(v, -1.5, 1.5)", XI)
elementwise(
    "minmax_many",
    """
    a, b = minmax(v, 3)
    r = a * 10 + b + max(v, 1, 2) + min(v, 1, 2, 3)
    """,
    XI,
    np.int64,
)
elementwise(
    "divrem_many",
    """
    q, m = divrem(v, 3)
    a, b = fldmod1(v, 4)
    r = 1000q + 100m + 10a + b + cld(v, 4)
    """,
    XI,
    np.int64,
)
elementwise(
    "hex_index",
    """
    l = i - 0x1
    r = (l & 0x3) + (l >> 0x2) * 0x10
    """,
    XI,
    np.int64,
)
