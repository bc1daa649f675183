"""Static vectors and matrices, complex numbers, tuples as vectors, ranges, and functions on all of them."""

from __future__ import annotations

import numpy as np

from .language import XF, XI, XS, elementwise

SA = "using StaticArrays"
LA = "using StaticArrays, LinearAlgebra"

elementwise(
    "svector_make",
    "a = SVector{2, Float32}(v, 1)\nb = SVector(1, 2.5)\nc = @SVector [v, 2v]\nd = SVector((v, 1.0))\nr = a[1] + b[2] + c[2] + d[1] + length(a) + sum(b)",
    XS,
    before=SA,
)
elementwise(
    "svector_zero",
    "z = zeros(SVector{3, Float64})\no = ones(SVector{2, Float32})\nr = sum(z) + sum(o) + zero(z)[1] + v",
    XS,
    before=SA,
)
elementwise(
    "svector_ops",
    "a = SVector(v, 2.0)\nb = a .* a .- 1\nc = 2a - b / 2\nr = c[1] * c[2] + (a == b) + maximum(a) + minimum(b) + a'*b",
    XS,
    before=LA,
)
elementwise(
    "svector_map",
    "a = SVector(v, 2, 3)\nb = map(x -> 2x, a)\nr = sum(b) + reduce(max, a) + mapreduce(abs, +, a) + prod(a) + count(x -> x > 0, a)",
    XI,
    np.int64,
    before=SA,
)
elementwise(
    "svector_ntuple",
    "a = SVector(ntuple(k -> k * v, Val(3)))\nt = Tuple(a)\nr = a[3] + t[2] + sum(t)",
    XI,
    np.int64,
    before=SA,
)
elementwise(
    "svector_loop",
    "a = SVector(v, 2, 3)\nr = 0\nfor k in 1:length(a)\n    r += k * a[k]\nend\nfor x in a\n    r = 2r + x\nend\nfor k in eachindex(a)\n    r -= a[k]\nend",
    XI,
    np.int64,
    before=SA,
)
elementwise(
    "svector_setindex", "a = SVector(v, 2, 3)\nb = Base.setindex(a, 7, 2)\nr = sum(b) - sum(a)", XI, np.int64, before=SA
)
elementwise(
    "smatrix",
    "m = @SMatrix [v 2.0; 3.0 4.0]\nw = SMatrix{2, 2}(1.0, v, 3.0, 4.0)\nr = (m * w)[2, 1] + m[3] + w[1, 2] + size(m, 1) + (m + w)[1, 1] + (2m)[4] + transpose(m)[1, 2]",
    XS,
    before=SA,
)
elementwise(
    "smatrix_det", "m = @SMatrix [v 2.0; 3.0 4.0]\nr = m[1, 1] * m[2, 2] - m[1, 2] * m[2, 1] + tr(m)", XS, before=LA
)
elementwise(
    "mvector",
    "m = @MVector [1, v, 3]\nm[2] += 5\nm[end] = m[1] * m[2]\nr = m[3] + sum(m) + length(m)\nfor x in m\n    r += x\nend",
    XI,
    np.int64,
    before=SA,
)
elementwise(
    "mmatrix",
    "m = zeros(MMatrix{2, 3, Float64})\nfor j in 1:3, k in 1:2\n    m[k, j] = v * j + k\nend\nr = m[2, 3] + m[4] + sum(m) + size(m, 2)",
    XS,
    before=SA,
)
elementwise(
    "mvector_passed",
    "m = MVector{3, Float64}(1, 2, 3)\nbump!(m, v)\nr = m[1] + m[3]",
    XS,
    before=SA + "\nfunction bump!(m, x)\n    for k in 1:3\n        m[k] += x * k\n    end\n    return nothing\nend",
)
elementwise(
    "mvector_copy", "m = @MVector zeros(2)\nm[1] = v\ns = SVector(m)\nm[1] = 5.0\nr = s[1] + m[1]", XS, before=SA
)
elementwise(
    "linear_algebra",
    "a = SVector(v, 1.0, 2.0)\nb = SVector(0.5, v, 1.0)\nr = dot(a, b) + norm(a) + cross(a, b)[3] + sum(abs2, a) + sum(normalize(a) .^ 2)",
    XS,
    before=LA,
    ulps=4,
)
elementwise(
    "complex_arithmetic",
    "z = complex(v, 2.0)\nw = 1 + 2im\nq = z * w - z / w + w\nr = real(q) + imag(q) * 10 + abs2(z) + real(conj(z) * z) + imag(-z) + real(2z) + imag(z * im)",
    XS,
)
elementwise(
    "complex_types",
    "z = ComplexF32(v, 1)\nw = z + 1\nq = Complex{Float64}(z)\nr = real(w) / 3 + imag(q) / 3 + (real(typeof(z)) === Float32) + (eltype(z) === ComplexF32) + isreal(complex(1, 0)) + (z == z) + reim(z)[1]",
    XF,
)
elementwise(
    "complex_power",
    "z = complex(v, 1.0)\nq = z^2 + z^3 + inv(z)\nr = real(q) - imag(q) + abs(z) + angle(z)",
    XS,
    ulps=8,
)
elementwise("complex_integers", "z = v + 2im\nw = z * z\nr = real(w) + imag(w)", XI, np.int64)
elementwise(
    "complex_exp",
    "z = complex(v, 0.5)\nq = exp(z) + cis(v) + sqrt(complex(-abs(v), 0.0)) + log(complex(v, 1.0))\nr = real(q) + imag(q)",
    XS,
    ulps=16,
)
elementwise(
    "tuple_broadcast",
    "t = (v, 2, 3)\nu = t .* 2 .+ (1, 2, 3)\nw = min.(u, 5) .- abs.(t)\nb = t .> 1\nr = sum(w) + 10 * count(identity, b) + sum(u .* b) + all(u .== u)",
    XI,
    np.int64,
)
elementwise("tuple_dot_macro", "t = (v, 2.0)\nu = @. 2t + t^2 - 1\nr = u[1] + u[2]", XS)
elementwise(
    "tuple_functions",
    "t = (v, 5, 2)\nr = maximum(t) + minimum(t) + sum(t) + prod(t) + first(t) + last(t) + length(t) + (5 in t) + sum(reverse(t)[1:2]) + Base.tail(t)[1] + Base.front(t)[1]",
    XI,
    np.int64,
)
elementwise(
    "tuple_compare",
    "t = (v, 2)\nr = (t == (3, 2)) + 2 * (t != (3, 2)) + 4 * (t === (5, 2)) + 8 * ((1, 2) < (1, v)) + 16 * isless(t, (0, 0))",
    XI,
    np.int64,
)
elementwise(
    "tuple_build",
    "t = (v, 1)\nu = (t..., 3, t...)\nw = tuple(u[2:4]..., 7)\nr = length(u) * 100 + u[4] + w[1] + w[end]",
    XI,
    np.int64,
)
elementwise(
    "tuple_map",
    "t = (v, 2.5, 1f0)\nu = map(x -> x * 2, t)\nw = map(+, t, u)\nr = u[1] + w[2] + w[3] + mapreduce(x -> x / 2, +, t) + foldl(-, t)",
    XI,
)
elementwise("foldr", "r = foldr(-, (v, 2, 3)) + foldl(-, (v, 2, 3)) * 100", XI, np.int64)
elementwise("sum_init", "r = reduce(+, (v, 2); init = 5) + foldl(*, (v, 2); init = 7)", XI, np.int64)
elementwise(
    "ntuple_forms",
    "a = ntuple(identity, 3)\nb = ntuple(k -> 2k + v, Val(2))\nc = ntuple(3) do k\n    k == 2 ? v : 0\nend\nr = sum(a) + sum(b) + sum(c)",
    XI,
    np.int64,
)
elementwise(
    "range_values",
    "a = 2:3:20\nb = v:5\nr = length(a) + a[3] + last(a) + first(b) + sum(1:4) + (7 in b) + step(a) + isempty(b) * 1000 + length(b) + maximum(a) + minimum(a)",
    XI,
    np.int64,
)
elementwise(
    "range_of_steps",
    "r = 0\nfor k in 1:2:7\n    r += k * v\nend\nfor k in reverse(2:4)\n    r = 3r - k\nend",
    XI,
    np.int64,
)
elementwise(
    "in_ranges", "r = (v in 1:5) + 2 * (v in 1:2:9) + 4 * (v ∈ (1, 7)) + 8 * (v ∉ -3:3) + 16 * in(v, 2:3)", XI, np.int64
)
elementwise(
    "any_all",
    "t = (v, 1, 4)\nr = any(>(3), t) + 2 * all(>=(1), t) + 4 * any(iszero, t) + 8 * all(x -> x < 5, t) + 16 * any(==(2), (v,))",
    XI,
    np.int64,
)
elementwise(
    "function_values",
    "f = Base.Fix2(^, 2)\ng = abs ∘ (x -> x - 3)\nh = !iseven\nr = f(v) + g(v) + h(v) + (v |> abs |> x -> x + 1) + (>=(2))(v)",
    XI,
    np.int64,
)
elementwise("swap_tuple_parts", "(a, b), c = (v, 2), 3\na, (b, c) = b, (c, a)\nr = a + 10b + 100c", XI, np.int64)
elementwise(
    "findfirst_like",
    "r = argmax((v, 3, 5)) + 10 * argmin((v, 3, 5)) + findmax((v, 3))[1] + extrema((v, 3))[2]",
    XI,
    np.int64,
)
elementwise(
    "typed_tuple",
    "t = convert(Tuple{Float64, Float32}, (v, 1))\nu = NTuple{2, Float32}((v, 3))\nr = t[1] + t[2] / 3 + u[2] / 3",
    XI,
)
elementwise("oneto", "r = 0\nfor k in Base.OneTo(4)\n    r += k * v\nend\nr += length(Base.OneTo(3))", XI, np.int64)
elementwise("clamp_ranges", "r = clamp(v, 2, 5) + clamp(v, -1.5, 1.5)", XI)
elementwise("minmax_many", "a, b = minmax(v, 3)\nr = a * 10 + b + max(v, 1, 2) + min(v, 1, 2, 3)", XI, np.int64)
elementwise(
    "divrem_many", "q, m = divrem(v, 3)\na, b = fldmod1(v, 4)\nr = 1000q + 100m + 10a + b + cld(v, 4)", XI, np.int64
)
elementwise("hex_index", "l = i - 0x1\nr = (l & 0x3) + (l >> 0x2) * 0x10", XI, np.int64)
