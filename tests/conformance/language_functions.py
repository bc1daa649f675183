"""Functions: methods, closures, structs with methods, constants."""

from __future__ import annotations

import numpy as np

from .language import XI, XS, elementwise, kernel

elementwise(
    "nested_fn",
    """
    f(a, b=2) = a * b + v
    g = z -> z + 1
    r = g(f(v)) + f(v, 3)
    """,
    XI,
    np.int64,
)
elementwise(
    "dispatch",
    "r = f(v) + f(Float32(v)) + f(1) + f(true)",
    XS,
    before="""
    f(x::Float64) = 1x
    f(x::Float32) = 10.0
    f(x::Integer) = 100.0
    f(x::Bool) = 1000.0
    """,
)
elementwise(
    "dispatch2",
    "r = g(v, 1) + g(1, v) + g(v, v) + g(1,1)",
    XS,
    before="""
    g(x, y) = 1.0
    g(x::AbstractFloat, y::Integer) = 2.0
    g(x::Integer, y::AbstractFloat) = 4.0
    g(x::T, y::T) where {T<:Integer} = 8.0
    """,
)
elementwise(
    "varargs",
    "r = f(v, 1, 2) + f(v) + h((v, 1.0)...)",
    XS,
    before="""
    f(x, ys...) = x + length(ys)
    h(a, b) = a - b
    """,
)
elementwise(
    "valdispatch",
    "r = p(Val(2), v) + p(Val(3), v)",
    XS,
    before="""
    p(::Val{2}, x) = x * x
    p(::Val{N}, x) where {N} = N * x
    """,
)
elementwise(
    "recursionval",
    "r = tsum((v, 1.0, 2.0))",
    XS,
    before="""
    tsum(t::Tuple{}) = 0.0
    tsum(t::Tuple) = t[1] + tsum(Base.tail(t))
    """,
)
elementwise(
    "struct",
    """
    a = P(v, 2)
    b = P(1.0, v)
    c = addp(a, b)
    r = c.x * c.y
    """,
    XS,
    before="""
    struct P{T}
      x::T
      y::T
    end
    P(a::Float64, b::Int) = P(a, Float64(b))
    addp(a::P, b::P) = P(a.x + b.x, a.y + b.y)
    """,
)
elementwise(
    "structop",
    "r = (Q(v, 1.0) + Q(2.0, v)).b",
    XS,
    before="""
    struct Q
      a::Float64
      b::Float64
    end
    Base.:+(p::Q, q::Q) = Q(p.a + q.a, p.b + q.b)
    """,
)
elementwise(
    "closurecap",
    """
    a = 3.0
    f = x -> a * x + v
    a2 = f(2.0)
    r = (x -> x^2)(a2)
    """,
    XS,
)
elementwise(
    "fnarg",
    "r = ap(sin, v) + ap(x -> 2x, v) + ap(hf, v)",
    XS,
    before="""
    ap(f, x) = f(x)
    hf(x) = x / 2
    """,
)
elementwise("compose", "r = (abs ∘ sin)(v) + (v |> cos)", XS, ulps=4)
elementwise("kw", "r = f(v; b = 3) + f(v)", XS, before="f(x; b = 2) = x * b")
elementwise("splatcall", "r = max((v, 1.0, 2.0)...) + f((v, 2.0)..., 3.0)", XS, before="f(a, b, c) = a + b * c")
elementwise(
    "captures",
    """
    k = 2
    f = () -> k * v
    r = f()
    """,
    XS,
)
elementwise(
    "typeparam",
    "r = f((v, 2.0, 3.0)) + g(SVal(), 1)",
    XS,
    before="""
    struct SVal end
    f(t::NTuple{N, T}) where {N, T} = N * t[1] + sizeof_(T)
    sizeof_(::Type{Float64}) = 8
    sizeof_(::Type{Float32}) = 4
    g(::SVal, x) = 10x
    """,
)
elementwise(
    "paramstruct",
    "r = V(1.0, v).b + scale(V(v, v), 2)",
    XS,
    before="""
    struct V{T<:Real}
     a::T
     b::T
    end
    scale(p::V{T}, k) where {T} = V{T}(p.a * k, p.b * k).a
    """,
)
elementwise(
    "innerctor",
    "r = W(v).a",
    XS,
    before="""
    struct W
     a::Float64
     W(x) = new(x * 2)
    end
    """,
)
elementwise(
    "abstracttypes",
    "r = area(Sq(v)) + area(Ci(v))",
    XS,
    before="""
    abstract type Shape end
    struct Sq <: Shape
     s::Float64
    end
    struct Ci <: Shape
     s::Float64
    end
    area(x::Shape) = 1.0 + inner(x)
    inner(x::Sq) = x.s
    inner(x::Ci) = x.s * 3
    """,
)
elementwise(
    "fntuple",
    """
    fs = (sin, cos, x -> x^2)
    r = fs[1](v) + fs[3](v)
    """,
    XS,
)
elementwise(
    "iffn",
    """
    f = v > 0 ? sin : cos
    r = f(v)
    """,
    XS,
    ulps=4,
)
elementwise(
    "constfn",
    "r = C2[2] + f3(v)",
    XS,
    before="""
    const N3 = 3
    const C2 = (N3, N3^2)
    f3(x) = x^N3
    """,
)
elementwise(
    "const",
    "r = A[2] * v + B",
    XS,
    before="""
    const A = (1.0, 2.5, 3.0)
    const B = 2π
    """,
)
elementwise(
    "consttable",
    """
    k = mod(i, 3) + 1
    r = A[k] * v
    """,
    XS,
    before="const A = (1.0, 2.5, 3.0)",
)
elementwise(
    "unicode",
    """
    σⁿ = v
    Δx = 2σⁿ
    σn = 5
    r = Δx + σn
    """,
    XI,
    np.int64,
)
kernel(
    "helper_write",
    """
    @inline function put!(a, i, v)
        @inbounds a[i] = v
        return nothing
    end
    @kernel function k!(y, @Const(x))
        i = @index(Global, Linear)
        put!(y, i, 2 * x[i])
    end
    """,
    [np.zeros(10), np.arange(10.0)],
    (10,),
)
kernel(
    "where",
    """
    @kernel function k!(y::AbstractVector{T}, @Const(x), a::S, ::Val{N}) where {T, N, S <: Real}
        i = @index(Global, Linear)
        s = zero(T)
        for k in 1:N
            s += T(x[i]) * k
        end
        @inbounds y[i] = s + N + S(a)
    end
    """,
    [np.zeros(10, np.float32), np.arange(10.0), np.float64(1.5)],
    (10,),
    params={"N": 3},
)
kernel(
    "typearg",
    """
    @kernel function k!(y, ::Type{T}) where {T}
        i = @index(Global)
        @inbounds y[i] = T(1) / T(3) * i
    end
    """,
    [np.zeros(5), "Float32"],
    (5,),
)
elementwise("map", "r = sum(map((a, b) -> a * b, (1, 2, 3), (v, v + 1, v + 2)))", XI, np.int64)
elementwise("reduce", "r = reduce(max, (v, 2, -v)) + foldl(-, (v, 1, 2))+ mapreduce(abs2, +, (v, 1, 2))", XI, np.int64)
elementwise(
    "anyall", "r = any(x -> x > 1, (v, 0.0)) + 2 * all((v > 0, v < 2))+ count(x -> x > 0, (v, 1.0))", XS, np.int64
)
elementwise(
    "ntuple",
    """
    t = ntuple(k -> k * v, Val(4))
    r = sum(t) + t[2] + length(t)
    """,
    XI,
    np.int64,
)
elementwise(
    "ntrange",
    """
    s = 0.0
    for d in 1:3
      t = ntuple(k -> k == d ? v : 1.0, Val(3))
      s += t[d] * t[1]
    end
    r = s
    """,
    XS,
)
