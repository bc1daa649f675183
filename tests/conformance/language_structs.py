"""Structs, operators of the source, constants, named tuples."""

from __future__ import annotations

import numpy as np

from .language import XI, XS, elementwise

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
