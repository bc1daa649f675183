"""Functions as Julia has them: every way to return, closures, varargs, keywords, dispatch."""

from __future__ import annotations

import numpy as np

from .language import XI, XS, elementwise

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
