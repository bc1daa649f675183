"""Unusual forms: captured variables that change, guards as statements, nested closures, operators as values."""

from __future__ import annotations

import numpy as np

from .language import XF, XI, XS, elementwise

elementwise(
    "captured_counter",
    """
    k = 0
    f = () -> (k += 1; k)
    r = f() + 10 * f() + 100k + v
    """,
    XI,
    np.int64,
)
elementwise(
    "captured_in_loop",
    """
    s = 0
    add(a) = (s += a; s)
    for k in 1:3
        add(k * v)
    end
    r = s
    """,
    XI,
    np.int64,
)
elementwise(
    "captured_later",
    """
    f = a -> a + w
    w = 5
    r = f(v)
    """,
    XI,
    np.int64,
)
elementwise(
    "foreach_sum",
    """
    s = 0
    foreach(1:4) do k
        s += k * v
    end
    r = s
    """,
    XI,
    np.int64,
)
elementwise(
    "closure_shadows",
    """
    a = v
    f = a -> a + 1
    r = f(10) + a
    """,
    XI,
    np.int64,
)
elementwise(
    "nested_closures",
    """
    f = a -> (b -> (c -> a * 100 + b * 10 + c + v))
    r = f(1)(2)(3)
    """,
    XI,
    np.int64,
)
elementwise(
    "closure_argument_default",
    """
    f(a, b = a + v) = a * b
    r = f(2) + f(2, 3)
    """,
    XI,
    np.int64,
)
elementwise("immediate_lambda", "r = ((a, b) -> a - b)(v, 3) + (() -> 7)()", XI, np.int64)
elementwise(
    "operators_as_values",
    """
    f = *
    g = (-)
    h = max
    r = f(v, 2) + g(v) + h(v, 3) + foldl(|, (v, 1))
    """,
    XI,
    np.int64,
)
elementwise("unary_forms", "r = -v + +v - -v + (~v) + !(v > 0) - (-v)^2 + -v^2", XI, np.int64)
elementwise("comparison_forms", "r = (v ≥ 2) + 2(v ≤ 2) + 4(v ≠ 2) + 8(v == 2 == 2) + 16(1 < v < 5 > 2)", XI, np.int64)
elementwise("power_forms", "r = v^2 + 2^abs(v % 8) + (-1)^v + v^0 + abs(v)^(1 + 1)", XI, np.int64)
elementwise("power_negative", "r = 2.0^-2 + v^-1 * 4 + v^2.0 + 2^0.5 * 0", np.array([1.0, 2.0, 4.0, -2.0]))
elementwise(
    "juxtaposed",
    """
    w = 3
    r = 2v + 3w^2 - 2(v + 1) + 2v * w + 1.5v
    """,
    XI,
)
elementwise("division_forms", "r = v / 2 + 2 \\ v + v ÷ 2 + inv(2)", XI)
elementwise(
    "statement_guards",
    """
    r = 0
    v > 2 && v < 9 && (r = 1)
    v < 0 || (r += 10)
    (v == 3 || v == 4) && (r += 100)
    """,
    XI,
    np.int64,
)
elementwise(
    "guard_with_block",
    """
    r = 0
    v > 0 && begin
        r += v
        r *= 2
    end
    """,
    XI,
    np.int64,
)
elementwise("nested_ternaries", "r = v < 0 ? v < -5 ? 1 : 2 : v > 5 ? 3 : 4", XI, np.int64)
elementwise(
    "ternary_types",
    """
    q = v > 0 ? (1, 2.0) : (3, 4.0)
    r = q[1] + q[2]
    """,
    XI,
)
elementwise(
    "if_as_argument",
    """
    r = max(if v > 0
        v
    else
        1
    end, 3)
    """,
    XI,
    np.int64,
)
elementwise(
    "if_empty",
    """
    r = 1
    if v > 0
    elseif v < -3
        r = 2
    else
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "loop_variable_types",
    """
    s = 0.0
    for q in (1, 2.5, 0x03, 4f0)
        s += q * v
    end
    r = s
    """,
    XI,
)
elementwise(
    "loop_break_value",
    """
    k = 0
    for q in 1:10
        k = q
        q * q > v && break
    end
    r = k
    """,
    XI,
    np.int64,
)
elementwise(
    "loop_nested_return",
    "r = f(v)",
    XI,
    np.int64,
    before="""
    function f(x)
        for a in 1:3, b in (1, 2)
            for c in 1:2
                a * b * c == x && return (100a + 10b + c)
            end
        end
        return 0
    end
    """,
)
elementwise(
    "loop_over_pairs",
    """
    s = 0
    for (a, b) in ((1, v), (2, 3))
        s += a * b
    end
    r = s
    """,
    XI,
    np.int64,
)
elementwise(
    "loop_tuple_continue",
    """
    s = 0
    for a in (1, 2, v)
        a == 2 && continue
        a > 5 && break
        s += a
    end
    r = s
    """,
    XI,
    np.int64,
)
elementwise(
    "loop_assign_outer",
    """
    q = 0
    for k in 1:3
        q = k
    end
    r = q + v
    """,
    XI,
    np.int64,
)
elementwise(
    "while_nested_break",
    """
    a = 0
    n = 0
    while a < 5
        a += 1
        b = 0
        while true
            b += 1
            b >= a && break
            n += 1
        end
        n > v && continue
        n += 10
    end
    r = n
    """,
    XI,
    np.int64,
)
elementwise(
    "while_and",
    """
    k = 0
    while k < 10 && k * k < v
        k += 1
    end
    r = k
    """,
    XI,
    np.int64,
)
elementwise(
    "range_float_step",
    """
    r = 0.0
    for k in 0:4
        r += 0.5k * v
    end
    """,
    XS,
)
elementwise(
    "range_of_variables",
    """
    lo, hi, st = 1, abs(v), 2
    r = 0
    for k in lo:st:hi
        r += k
    end
    for k in hi:-st:lo
        r = 2r + k
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "range_ends",
    """
    r = 0
    for k in typemax(Int8) - Int8(1):typemax(Int8)
        r += k
    end
    for k in 0x00:0x02
        r += k * v
    end
    """,
    XI,
    np.int64,
)
elementwise(
    "destructure_call",
    """
    (a, b), c = f(v), 3
    _, d = f(2v)
    r = a + 10b + 100c + d
    """,
    XI,
    np.int64,
    before="f(x) = (x, x + 1)",
)
elementwise(
    "destructure_swap_three",
    """
    a, b, c = 1, v, 3
    a, b, c = c, a, b
    r = a + 10b + 100c
    """,
    XI,
    np.int64,
)
elementwise(
    "update_forms",
    """
    a = v
    a += 1; a -= 3; a *= 2; a ÷= 3; a %= 7; a <<= 2; a >>= 1; a |= 8; a &= 61; a ⊻= 5
    b = 2.0
    b /= 4; b ^= 2
    r = a + b
    """,
    XI,
)
elementwise(
    "update_type",
    """
    a = Int8(100)
    a += Int8(100)
    b = 0x01
    b -= 0x02
    c = 1f0
    c /= 3
    r = a + b + c + v
    """,
    XI,
)
elementwise("integer_literals", "r = 0b101 + 0o17 + 0xff + 1_000 + 0x0001 + typemax(UInt32) + v", XI, np.int64)
elementwise("float_literals", "r = 1e3 + 2.5f-1 + 0.5 + 6.02e2 + v", XF)
elementwise("irrationals", "r = π * v + 2π + ℯ + Float32(π) + π^2", XS, ulps=2)
elementwise("irrational_precision", "r = π * v + v / π", XF, np.float32)
elementwise("infinities", "r = (Inf > v) + (v > -Inf32) + isnan(NaN) + isinf(-Inf) + (NaN == NaN) + min(v, Inf)", XS)
elementwise("boolean_arithmetic", "r = true + true * v - false + (v > 0) * 2.5 + !true", XI)
elementwise(
    "bool_types",
    """
    a = v > 0
    b = a & true | false ⊻ a
    r = a + b + (a && b) + xor(a, !b) + (a < b)
    """,
    XI,
    np.int64,
)
elementwise(
    "type_functions",
    """
    T = promote_type(Int32, Float32, Int64)
    S = typeof(v + 1f0)
    r = T(v) / 3 + S(1) / 3 + sizeof(T) + (T === S) + convert(Int8, 3) + oftype(1f0, v)
    """,
    XI,
)
elementwise(
    "type_dispatch_table",
    "r = name(v) + name(1f0) + name((1, 2)) + name(Int) + name(nothing) + name(sin)",
    XI,
    np.int64,
    before="""
    name(::Int) = 1
    name(::AbstractFloat) = 20
    name(::Tuple{Int, Int}) = 300
    name(::Type{Int}) = 4000
    name(::Nothing) = 50000
    name(::Function) = 600000
    """,
)
elementwise(
    "parametric_methods",
    "r = f(v, 1) + f(1.0, v) + g((v, 1, 2)) + h(Val(3))",
    XI,
    before="""
    f(a::T, b::T) where {T} = 1
    f(a::T, b::S) where {T, S} = 20
    g(t::NTuple{N, T}) where {N, T} = N * one(T)
    h(::Val{N}) where {N} = N > 2 ? N : 0
    """,
)
elementwise(
    "struct_static_function",
    "r = apply(Twice(), v) + apply(Plus(3), v)",
    XI,
    np.int64,
    before="""
    abstract type Op end
    struct Twice <: Op end
    struct Plus <: Op
        n::Int
    end
    run_(::Twice, x) = 2x
    run_(p::Plus, x) = x + p.n
    apply(o::Op, x) = run_(o, x)
    """,
)
elementwise(
    "struct_recursive_shape",
    """
    t = Node(Leaf(v), Node(Leaf(2), Leaf(3)))
    r = total(t)
    """,
    XI,
    np.int64,
    before="""
    struct Leaf
        x::Int
    end
    struct Node{L, R}
        l::L
        r::R
    end
    total(a::Leaf) = a.x
    total(a::Node) = total(a.l) * 10 + total(a.r)
    """,
)
elementwise(
    "tuple_recursion",
    "r = weave((v, 2, 3), (4, 5, 6))",
    XI,
    np.int64,
    before="""
    weave(::Tuple{}, ::Tuple{}) = 0
    weave(a::Tuple, b::Tuple) = a[1] * b[1] + weave(Base.tail(a), Base.tail(b))
    """,
)
elementwise(
    "varargs_recursion",
    "r = sumup(v, 2, 3, 4)",
    XI,
    np.int64,
    before="""
    sumup(a) = a
    sumup(a, b...) = a + 2 * sumup(b...)
    """,
)
elementwise(
    "ntuple_captures",
    """
    t = ntuple(k -> k * v + length((1, 2)), 4)
    u = ntuple(k -> t[5 - k], Val(4))
    r = u[1] * 10 + u[4]
    """,
    XI,
    np.int64,
)
elementwise(
    "nothing_flow",
    """
    q = nothing
    for k in 1:5
        if k * k > v
            q = k
            break
        end
    end
    r = q === nothing ? -1 : q
    """,
    XI,
    np.int64,
)
elementwise(
    "union_loop",
    """
    a = 0x01
    for k in 1:3
        a = k == 2 ? a * 2.5 : a + 1
    end
    r = a + v
    """,
    XI,
)
elementwise(
    "union_arguments",
    """
    a = v > 0 ? 1 : 2.0
    b = v > 5 ? 1f0 : 3
    r = max(a, b) + a * b - f(a, b)
    """,
    XI,
    before="""
    f(x::Int, y) = 10y
    f(x, y::Int) = 20x
    f(x, y) = x + y
    f(x::Int, y::Int) = 7
    """,
)
elementwise(
    "union_compare",
    """
    a = v > 0 ? 1 : 2.5
    r = (a == 1) + 2(a > 2) + 4(a isa Int) + 8(a === 1)
    """,
    XI,
    np.int64,
)
elementwise(
    "const_chain",
    "r = TABLE[K[2]] * SCALE + F(v)",
    XI,
    before="""
    const K = (1, 2, 3)
    const TABLE = map(k -> k^2, K)
    const SCALE = sum(TABLE) / length(TABLE)
    F(x) = x + N0
    const N0 = 4
    """,
)
elementwise(
    "unicode_names",
    """
    α₁, β′ = v, 2
    x̂ = α₁^2
    Δ = x̂ - β′
    ∇φ = Δ ÷ 2
    r = ∇φ + α₁
    """,
    XI,
    np.int64,
)
elementwise(
    "names_like_python",
    """
    lambda = v
    is = 2
    not = 3
    None = 4
    def = lambda + is
    r = def * not + None
    """,
    XI,
    np.int64,
)
elementwise(
    "names_like_emitted",
    """
    t = v
    t_2 = 2
    range_ = 3
    int64 = 4
    load = 5
    np = 6
    r = t + t_2 * range_ + int64 + load * np
    """,
    XI,
    np.int64,
)
elementwise(
    "loop_over_union",
    """
    n = v > 0 ? v : 0x03
    r = 0
    for k in 1:n
        k == 6 && break
        r += k
    end
    t = v > 2 ? (1, 2) : (3.5, 4.0, 5.0)
    for x in t
        r += x
    end
    """,
    XI,
)
