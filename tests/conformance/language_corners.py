"""Corners of the language: order of evaluation, scopes, loops, variables and values of several types."""

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
