"""Corners of the language: order of evaluation, scopes, captures, unions, dispatch, shadowing."""

from __future__ import annotations

import numpy as np

from .language import XF, XI, XS, XU, elementwise

elementwise(
    "argument_order",
    """
    a = MVector{1, Int}(0)
    f(m, k) = (m[1] = 10 * m[1] + k; m[1])
    t = f(a, 1) + 2 * f(a, 2) + g(f(a, 3), f(a, 4)) - f(a, 5)
    r = t + v + a[1]
    """,
    XI,
    np.int64,
    before="""
    using StaticArrays
    g(x, y) = x - 3y
    """,
)
elementwise("and_value", "r = (v > 0 && v) === false ? -1 : 1", XI, np.int64)
elementwise(
    "or_value",
    """
    a = v > 3 || v
    r = a === true ? 100 : a
    """,
    XI,
    np.int64,
)
elementwise(
    "chained_once",
    """
    m = MVector{1, Int}(0)
    f(m, x) = (m[1] += 1; x)
    b = 0 < f(m, v) <= 5 < f(m, v + 3)
    r = m[1] + 10b
    """,
    XI,
    np.int64,
    before="using StaticArrays",
)
elementwise(
    "chained_bounds", "r = v > 0 && v <= 3 && T4[v] > 15 ? T4[v] : -1", XI, np.int64, before="const T4 = (10, 20, 30)"
)
elementwise(
    "multiple_assignment",
    """
    a = b = v + 1
    b += 1
    r = 10a + b
    """,
    XI,
    np.int64,
)
elementwise("assignment_value", "r = (a = v) + (a += 2) * 3 + a", XI, np.int64)
elementwise(
    "fresh_loop_variables",
    """
    r = 0
    for k in 1:3
        q = k * v
        k += 10
        r += q + k
    end
    k = 100
    for k in 1:2
        r += k
    end
    r += k
    """,
    XI,
    np.int64,
)
elementwise(
    "closure_in_loop",
    """
    r = 0
    for k in 1:3
        f = x -> x * k + v
        r += f(2)
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "let_shadow",
    """
    a = v
    b = let a = a + 1, c = a * 2
        a += c
        a
    end
    r = 1000 * a + b
    """,
    XI,
    np.int64,
)
elementwise(
    "assigned_in_branch",
    """
    if v > 0
        q = v
        w = 2
    else
        q = -v
        w = 3
    end
    r = q * w
    """,
    XI,
    np.int64,
)
elementwise(
    "nested_end",
    """
    t = (3, 1, 2)
    u = (7, v, 9)
    r = u[t[end]] + u[t[end] - 1] * u[end - 1]
    """,
    XI,
    np.int64,
)
elementwise(
    "begin_index",
    """
    t = (v, 2, 3)
    r = t[1] + t[end] * first(t)
    """,
    XI,
    np.int64,
)
elementwise(
    "negative_steps",
    """
    r = 0
    for k in 5:-2:-3
        r = 3r + k
    end
    for k in v:-3:0
        r += k
    end
    for k in 1:0
        r += 1000
    end
    for k in 5:-1:6
        r += 1000
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "uint8_range",
    """
    r = 0
    for k in 0x01:v
        r += k
    end
    for k in 0xfd:0xff
        r += k
    end
    for k in Int8(126):Int8(127)
        r += k
    end
    """,
    XU,
    np.int64,
)
elementwise(
    "int32_range",
    """
    s = 0
    for k in Int32(1):Int32(v)
        s += k % Int32
    end
    for k in Int32(1):v
        s -= 2k
    end
    r = s
    """,
    XI,
    np.int64,
)
elementwise(
    "range_evaluated_once",
    """
    n = 3
    r = 0
    for k in 1:n
        n += 1
        r += k * v
    end
    r += n
    """,
    XI,
    np.int64,
)
elementwise(
    "default_uses_earlier",
    "r = f(v) + f(v, 2) + f(v, 2, 3)",
    XI,
    np.int64,
    before="f(a, b = a + 1, c = a * b) = a + 10b + 100c",
)
elementwise(
    "shadow_base",
    "r = abs(v) + max(v, 2)",
    XI,
    np.int64,
    before="""
    abs(x) = 2x
    max(a, b) = a - b
    """,
)
elementwise(
    "shadow_local",
    """
    sum = v + 1
    length = 2
    r = sum * length
    """,
    XI,
    np.int64,
)
elementwise("extend_base", "r = max(P(v), P(2)).x + (P(v) < P(3)) + zero(P(v)).x", XI, np.int64,
            before="""
    struct P
        x::Int
    end
    Base.max(a::P, b::P) = P(Base.max(a.x, b.x) * 10)
    Base.isless(a::P, b::P) = a.x > b.x
    Base.zero(::P) = P(7)
    """)  # fmt: skip
elementwise(
    "table_dynamic",
    "r = TABLE[mod(i, 5) + 1][2] + TABLE[mod(v, 5) + 1][1]",
    XI,
    before="const TABLE = ((1, 2.0), (3, 4.0), (5, 6.0), (7, 8.0), (9, 10.0))",
)
elementwise(
    "nested_tuples",
    """
    t = ((v, 2), (3.5, (v, 1f0)))
    (a, b), (c, (d, e)) = t
    r = a + b * c + d * e
    """,
    XS,
)
elementwise(
    "union_call",
    """
    q = v > 0 ? v : 1.5
    r = f(q) + f(f(q))
    """,
    XI,
    before="""
    f(x::Int) = 2x
    f(x::Float64) = x / 2
    """,
)
elementwise(
    "union_tuple",
    """
    t = v > 0 ? (v, 1.0) : (0.5, 2)
    r = t[1] * t[2] + sum(t)
    """,
    XI,
)
elementwise(
    "union_three",
    """
    q = v > 5 ? 1 : v > 0 ? 2f0 : 3.0
    r = q * v
    """,
    XI,
)
elementwise("union_struct", """
    q = v > 0 ? A1(v) : B1(2.0, 3.0)
    r = area(q)
    """, XI,
            before="""
    struct A1
        x::Int
    end
    struct B1
        x::Float64
        y::Float64
    end
    area(a::A1) = a.x
    area(b::B1) = b.x * b.y
    """)  # fmt: skip
elementwise("nothing_or", """
    q = find(v)
    r = q === nothing ? -1 : q + 1
    """, XI, np.int64,
            before="""
    function find(x)
        for k in (2, 3, 5)
            x == k && return 10k
        end
    end
    """)  # fmt: skip
elementwise(
    "isnothing",
    """
    q = v > 0 ? v : nothing
    r = isnothing(q) ? 0 : q
    """,
    XI,
    np.int64,
)
elementwise(
    "something",
    """
    q = v > 0 ? v : nothing
    r = something(q, 5)
    """,
    XI,
    np.int64,
)
elementwise(
    "missing_else",
    """
    q = if v > 0
        v
    end
    r = q === nothing ? -5 : q
    """,
    XI,
    np.int64,
)
elementwise(
    "type_of_branch",
    """
    T = typeof(v)
    r = T === Float32 ? T(1) / 3 : zero(T)
    """,
    XF,
    np.float32,
)
elementwise("isa", "r = (v isa Float32) + 2(v isa Integer) + 4(v isa Real) + 8 * isa(1, Int)", XF, np.int64)
elementwise("subtype", "r = (typeof(v) <: AbstractFloat) + 2(Int32 <: Signed) + 4(Float64 == typeof(v))", XF, np.int64)
elementwise(
    "while_assign",
    """
    k = 0
    while (k += 1) < v
    end
    r = k
    """,
    XI,
    np.int64,
)
elementwise(
    "while_union",
    """
    q = 1
    while q < 10
        q = q * 1.5
    end
    r = q + v
    """,
    XI,
)
elementwise(
    "break_inner_only",
    """
    r = 0
    for a in 1:4
        for b in 1:4
            b > a && break
            b == 2 && continue
            r += 10a + b
        end
        a == v && break
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "loop_over_value",
    """
    r = 0
    for (k, x) in enumerate((v, 2v, 3))
        r += k * x
    end
    for (a, b) in zip(1:3, 5:7)
        r += a * b
    end
    for x in (a = v, b = 1)
        r += x
    end
    for k in reverse(1:3)
        r = 2r + k
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "loop_dependent",
    """
    r = 0
    for a in 1:4, b in a:4
        r += a * b * v
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "continue_outer_pair",
    """
    r = 0
    for a in 1:3, b in 1:3
        a == b && continue
        r += 10a + b + v
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "ternary_assign",
    """
    v > 0 ? (a = 1) : (a = 2)
    r = a
    """,
    XI,
    np.int64,
)
elementwise(
    "block_value",
    """
    r = begin
        a = v
        a + 1
    end * 2
    """,
    XI,
    np.int64,
)
elementwise("semicolons", "r = (a = v; b = a + 1; a * b)", XI, np.int64)
elementwise(
    "if_value_nested",
    """
    r = if v > 2
        if v > 5
            1
        else
            2
        end
    elseif v < -2
        3
    else
        4
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "typed_assignment",
    """
    q::Float32 = 1
    q = v
    q += 1
    r = q / 3
    """,
    XI,
    np.float32,
)
elementwise(
    "typed_local",
    """
    local q::Int32
    q = v
    q += 1
    r = q
    """,
    XI,
    np.int64,
)
elementwise("return_type", "r = f(v) / 3", XI, np.float32, before="f(x)::Float32 = x")
elementwise(
    "return_tuple",
    """
    a, b = f(v)
    r = a * 10 + b
    """,
    XI,
    np.int64,
    before="""
    function f(x)
        return x + 1, x - 1
    end
    """,
)
elementwise("return_early_loop", "r = f(v)", XI, np.int64,
            before="""
    function f(x)
        s = 0
        for k in 1:10
            if k > x
                s += 1000
                return s
            end
            k % 2 == 0 && continue
            s += k
        end
        s
    end
    """)  # fmt: skip
elementwise("return_in_while", "r = f(v)", XI, np.int64,
            before="""
    function f(x)
        k = 0
        while k < 100
            k += 1
            if k * k > x
                if isodd(k)
                    return k
                else
                    return -k
                end
            end
        end
        return 0
    end
    """)  # fmt: skip
elementwise("return_in_let", "r = f(v)", XI, np.int64,
            before="""
    function f(x)
        let y = 2x
            y > 3 && return y
        end
        return -1
    end
    """)  # fmt: skip
elementwise(
    "return_in_block",
    "r = f(v)",
    XI,
    np.int64,
    before="""
    f(x) = begin
        x > 3 && return 1
        y = x
        y
    end
    """,
)
elementwise(
    "recursion_val",
    "r = pw(v, Val(5))",
    XI,
    np.int64,
    before="""
    pw(x, ::Val{0}) = one(x)
    pw(x, ::Val{N}) where {N} = x * pw(x, Val(N - 1))
    """,
)
elementwise(
    "captured_then_read",
    """
    a = 2v
    f = x -> x + a
    r = f(1) + f(2) * a
    """,
    XI,
    np.int64,
)
elementwise(
    "closure_over_argument",
    "r = ap(x -> x * v, 3) + ap(ap2, 4)",
    XI,
    np.int64,
    before="""
    ap(f, x) = f(x) + 1
    ap2(x) = x - 1
    """,
)
elementwise(
    "closure_returned",
    """
    f = adder(v)
    r = f(1) + adder(2)(v)
    """,
    XI,
    np.int64,
    before="adder(a) = b -> a + 10b",
)
elementwise(
    "closure_tuple",
    """
    fs = ntuple(k -> (x -> k * x), Val(3))
    r = fs[1](v) + fs[3](v)
    """,
    XI,
    np.int64,
)
elementwise(
    "local_function",
    """
function f(a)
    b = a > 0 ? a + v : -a
    b * 2
end
r = f(v) + f(2)
""",
    XI,
    np.int64,
)
elementwise(
    "local_recursion_shape",
    """
    h(a, b) = a + b
    h2(a) = h(a, v) * 2
    r = h2(3)
    """,
    XI,
    np.int64,
)
elementwise(
    "do_block",
    """
    r = ap(v, 2) do a, b
        c = a + b
        c * v
    end
    """,
    XI,
    np.int64,
    before="ap(f, a, b) = f(a, b) + 1",
)
elementwise(
    "do_tuple_arg",
    """
    r = ap((v, 2)) do (a, b)
        a - b
    end
    """,
    XI,
    np.int64,
    before="ap(f, t) = f(t)",
)
elementwise(
    "lambda_tuple_arg",
    """
    f = ((a, b),) -> a * b
    r = f((v, 3))
    """,
    XI,
    np.int64,
)
elementwise(
    "varargs_typed",
    "r = f(v) + 10f(v, 1) + 100f(v, 1, 2.0)",
    XI,
    np.int64,
    before="""
    f(x, r::Int...) = length(r)
    f(x, r...) = 7
    """,
)
elementwise(
    "varargs_splat",
    "r = f((v, 2)..., 3) + f(g(1, v)...)",
    XI,
    np.int64,
    before="""
    f(a, r...) = a + sum(r) * 10
    g(a, b) = (b, a)
    """,
)
elementwise(
    "vararg_forward",
    "r = f(v, 1, 2)",
    XI,
    np.int64,
    before="""
    f(xs...) = g(3, xs...)
    g(k, a, b, c) = k * a + b - c
    """,
)
elementwise(
    "kwargs",
    "r = f(v) + f(v, b = 3) + f(v; c = 4, b = v)",
    XI,
    np.int64,
    before="f(a; b = 2, c = b + 1) = a + 10b + 100c",
)
elementwise(
    "kwargs_short",
    """
    b = v
    r = f(1; b = b)
    """,
    XI,
    np.int64,
    before="f(a; b) = a + 10b",
)
elementwise(
    "where_in_body", "r = f(v, 2f0)", XS, np.float64, before="f(x::T, y::S) where {T, S} = T(y) + S(x) + sizeof(T)"
)
elementwise(
    "where_bound",
    "r = f(v) + f(1)",
    XS,
    np.float64,
    before="""
    f(x::T) where {T <: AbstractFloat} = one(T) / 3
    f(x::T) where T<:Integer = 5
    """,
)
elementwise(
    "dispatch_value",
    "r = f(Val(:a), v) + f(Val(:b), v) + f(Val(true), v)",
    XS,
    before="""
    f(::Val{:a}, x) = x
    f(::Val{:b}, x) = 2x
    f(::Val{true}, x) = 100x
    """,
)
elementwise(
    "dispatch_type",
    "r = f(Float32, v) + f(Int, v)",
    XS,
    before="""
    f(::Type{T}, x) where {T <: AbstractFloat} = T(x)
    f(::Type{<:Integer}, x) = 100x
    """,
)
elementwise(
    "dispatch_tuple",
    "r = f((v, v)) + f((v, 1)) + f((v,))",
    XS,
    before="""
    f(t::NTuple{2, Float64}) = t[1]
    f(t::Tuple{Float64, Int}) = 10t[1]
    f(t::Tuple) = 100t[1]
    """,
)
elementwise(
    "dispatch_function",
    "r = f(sin, v) + f(v, v)",
    XS,
    before="""
    f(g::Function, x) = 1.0
    f(g, x) = 2.0
    """,
)
elementwise(
    "dispatch_union",
    "r = f(v) + f(1) + f(0x1)",
    XS,
    before="""
    f(x::Union{Int, UInt8}) = 10x
    f(x) = x
    """,
)
elementwise(
    "dispatch_any",
    "r = f(v, 1) + f(1, v)",
    XS,
    before="""
    f(x, ::Any) = 1x
    f(x::Int, y) = 5x
    """,
)
elementwise("struct_nested", """
    s = Outer(Inner(v, 2), (1, v))
    r = s.i.a * s.i.b + s.t[2] - s.t[1]
    """, XI, np.int64,
            before="""
    struct Inner{T}
        a::T
        b::Int
    end
    struct Outer{T, S}
        i::Inner{T}
        t::S
    end
    """)  # fmt: skip
elementwise(
    "struct_default",
    """
    s = Opt(v)
    r = s.a + s.b
    """,
    XI,
    np.int64,
    before="""
    struct Opt
        a::Int
        b::Int
    end
    Opt(a) = Opt(a, 2a)
    """,
)
elementwise(
    "struct_convert",
    """
    s = F32(v)
    r = s.x / 3
    """,
    XS,
    np.float32,
    before="""
    struct F32
        x::Float32
    end
    """,
)
elementwise(
    "struct_compare",
    "r = (Pt(v, 1) == Pt(3, 1)) + 2(Pt(v, 1) === Pt(2, 1)) + 4(Pt(v, 1) != Pt(1, 1))",
    XI,
    np.int64,
    before="""
    struct Pt
        x::Int
        y::Int
    end
    """,
)
elementwise(
    "struct_loop",
    """
    s = Acc(0, 0)
    for k in 1:4
        s = add(s, k * v)
    end
    r = s.n * 1000 + s.t
    """,
    XI,
    np.int64,
    before="""
    struct Acc
        n::Int
        t::Int
    end
    add(a::Acc, x) = Acc(a.n + 1, a.t + x)
    """,
)
elementwise(
    "struct_broadcast",
    "r = sum((Pw(2) * v, 3))",
    XI,
    np.int64,
    before="""
    struct Pw
        n::Int
    end
    Base.:*(p::Pw, x) = x^p.n
    """,
)
elementwise("operator_define", "r = v ⊕ 2 ⊕ 3", XI, np.int64, before="⊕(a, b) = 10a + b")
elementwise(
    "operator_value",
    """
    op = v > 0 ? (+) : (-)
    r = op(v, 3) + reduce(*, (v, 2))
    """,
    XI,
    np.int64,
)
elementwise(
    "const_expression",
    "r = v * HALF + N2",
    XS,
    before="""
    const N1 = 4
    const N2 = N1^2 + 1
    const HALF = 1 / N1
    """,
)
elementwise(
    "const_function",
    "r = F(v) + G(v)",
    XS,
    before="""
    const F = abs
    const G = x -> 2x
    """,
)
elementwise("const_type", "r = T0(v) / 3", XS, np.float64, before="const T0 = Float32")
elementwise(
    "const_struct",
    "r = ORIGIN.x + v",
    XI,
    np.int64,
    before="""
    struct Or
        x::Int
    end
    const ORIGIN = Or(5)
    """,
)
elementwise(
    "namedtuple_ops",
    """
    t = (a = v, b = 2)
    u = merge(t, (b = 3, c = 4))
    r = u.a + 10u.b + 100u.c + length(u) + t[1] + t[:b]
    """,
    XI,
    np.int64,
)
elementwise(
    "field_destructure",
    """
    t = (x = v, y = 2)
    a, b = t
    r = a + 10b
    """,
    XI,
    np.int64,
)
elementwise("haskey", "r = haskey((a = 1,), :a) + 2haskey((a = 1,), :b) + v", XI, np.int64)
elementwise(
    "swap_elements",
    """
    m = MVector(1, 2, v)
    m[1], m[3] = m[3], m[1]
    m[2] += m[1]
    r = m[1] + 10m[2] + 100m[3]
    """,
    XI,
    np.int64,
    before="using StaticArrays",
)
