# Evaluates expressions over grids of edge values, for `make_numeric.py`, which describes the output.
# Lines: `values TYPE SET TOKENS`, `table EXPR TYPES SETS RESULT TOKENS`, `constant EXPR RESULT TOKEN`, split by tabs.

const SIGNED = [Int8, Int16, Int32, Int64]
const UNSIGNED = [UInt8, UInt16, UInt32, UInt64]
const INTS = [SIGNED; UNSIGNED]
const WHOLE = [Bool; INTS]
const FLOATS = [Float32, Float64]
const REALS = [WHOLE; FLOATS]
const COMPLEX = [ComplexF32, ComplexF64]
const SOME = [Bool, Int32, Int64, UInt8, Float32, Float64]

## tokens

token(x::Bool) = x ? "1" : "0"
token(x::Union{INTS...}) = string(x, base = 10)
token(x::Float16) = isnan(x) ? "nan" : string(reinterpret(UInt16, x), base = 16, pad = 4)
token(x::Float32) = isnan(x) ? "nan" : string(reinterpret(UInt32, x), base = 16, pad = 8)
token(x::Float64) = isnan(x) ? "nan" : string(reinterpret(UInt64, x), base = 16, pad = 16)
token(x::Complex) = string(token(real(x)), ',', token(imag(x)))
token(x::Tuple) = join(map(token, x), ';')
token(x::Type) = name(x)
token(::Nothing) = "nothing"
token(x) = error("no token for a $(typeof(x))")

name(T::Type) = string(T)
name(::Type{ComplexF32}) = "Complex{Float32}"
name(::Type{ComplexF64}) = "Complex{Float64}"
name(::Type{T}) where {T <: Tuple} = string("Tuple{", join(map(name, T.parameters), ','), '}')
result_name(x) = x isa Type ? "Type" : name(typeof(x))

## edge values

distinct(xs) = unique(x -> (typeof(x), token(x)), xs)
kept(T, xs) = T[T(x) for x in xs if typemin(T) <= x <= typemax(T)]

wide(::Type{Bool}) = [false, true]
wide(T::Type{<:Signed}) = T[0, 1, -1, 2, -2, 3, -3, 7, 10, -7, typemin(T), typemin(T) + T(1), typemax(T), typemax(T) - T(1)]
wide(T::Type{<:Unsigned}) = T[0, 1, 2, 3, 7, 10, typemax(T), typemax(T) - T(1), typemax(T) >> 1, typemax(T) >> 1 + T(1)]
function wide(T::Type{<:AbstractFloat})
    plain = T[0.0, 1.0, 0.5, 1.5, 2.5, 2.0, 3.0, 0.1, 7.25, 1e10, floatmin(T), floatmax(T), Inf, eps(T), nextfloat(zero(T))]
    return distinct(T[plain; -plain[1:11]; -T(Inf); T(NaN); T(2)^31; T(2)^63; -T(2)^63; T(2)^64; T(30000.7)])
end
few(T::Type{Bool}) = wide(T)
few(T::Type{<:Signed}) = T[0, 1, -1, 3, -7, typemin(T), typemax(T)]
few(T::Type{<:Unsigned}) = T[0, 1, 3, 7, typemax(T)]
few(T::Type{<:AbstractFloat}) = T[0.0, -0.0, 1.0, -1.0, 2.0, 1.5, -2.5, 1e10, Inf, -Inf, NaN]
tiny(T::Type{Bool}) = wide(T)
tiny(T::Type{<:Signed}) = T[0, 3, -7, typemax(T)]
tiny(T::Type{<:Unsigned}) = T[0, 3, typemax(T)]
tiny(T::Type{<:AbstractFloat}) = T[-0.0, 1.5, -2.1, 1e10, Inf, NaN]

"Values beside the limits of all types, for conversions."
function edges(T::Type{<:Integer})
    near = [big(m) + d for S in INTS for m in (typemin(S), typemax(S)) for d in (-1, 0, 1)]
    return distinct([wide(T); kept(T, [near; 100; 12345; 16777217; 33554435; 123456789; big(2)^53 + 1; -big(2)^53 - 1; big(2)^60 + 65])])
end
function edges(T::Type{<:AbstractFloat})
    near = [T(m) + T(d) for S in INTS for m in (typemin(S), typemax(S)) for d in (-1, -0.75, -0.5, 0, 0.5, 1)]
    ends = [f(T(big(2)^n)) for n in (31, 32, 63, 64) for f in (prevfloat, nextfloat)]
    return distinct(T[wide(T); near; ends; -0.75; 0.75; -1.25; 3.5; -3.5; 65504.0; 65520.0; 1f-8; 6f-8; 0.1f0; 2049.0; 1e-300])
end
edges(::Type{Bool}) = wide(Bool)
edges(::Type{Float16}) = Float16[0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 0.1, 255, 256, 2049, 65504, 6.0e-8, 6.1e-5, Inf, -Inf, NaN]
function wide(T::Type{<:Complex})
    R = real(T)
    parts = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 2), (3, -4), (-0.5, 0.5), (0.1, -7.25), (-0.0, 0), (0, -0.0), (1e10, 1e-10)]
    return T[T(a, b) for (a, b) in [parts; (Inf, 0); (0, -Inf); (Inf, Inf); (NaN, 1); (1, NaN)]]
end
few(T::Type{<:Complex}) = T[T(a, b) for (a, b) in [(0, 0), (1, 0), (-1, -0.0), (1, 2), (3, -4), (-0.5, 0.5), (Inf, 1), (NaN, 0)]]
tiny(T::Type{<:Complex}) = T[T(a, b) for (a, b) in [(0, 0), (1, 2), (-0.5, 3), (Inf, 0)]]
edges(T::Type{<:Complex}) = T[wide(T); T(3, 0); T(300, 0); T(-3, 0); T(2.5, 0)]
shifts(T::Type{<:Signed}) = distinct(kept(T, [0, 1, 2, 7, 8, 15, 31, 32, 33, 63, 64, 65, -1, -3, -8, -64, -65, typemin(T), typemax(T)]))
shifts(T::Type{<:Unsigned}) = distinct(kept(T, [0, 1, 2, 7, 8, 15, 31, 32, 33, 63, 64, 65, typemax(T)]))
shifts(::Type{Bool}) = wide(Bool)
angles(T::Type{<:AbstractFloat}) =
    T[0.0, -0.0, 1e-5, -1e-5, 0.1, -0.3, 0.5, -0.5, 0.75, 1.0, -1.0, 1.25, -1.5, π / 2, 2.0, 3.0, π, -4.0, 5.5, 7.0, 10.0, -20.0, 33.3, 88.0, -90.0, 710.0, 1e4, -1e6, 1e10, Inf, -Inf, NaN]
angles(T::Type) = few(T)

const SETS = Dict("wide" => wide, "few" => few, "tiny" => tiny, "edges" => edges, "shifts" => shifts, "angles" => angles)
const SEEN = Set{Tuple{Type, String}}()

function values_of(T, set)
    xs = SETS[set](T)
    if !((T, set) in SEEN)
        push!(SEEN, (T, set))
        println("values\t", name(T), '\t', set, '\t', join(map(token, xs), ' '))
    end
    return xs
end

## evaluation

const FUNCTIONS = Dict{String, Function}()
fitted(expr, n) = get!(() -> eval(Meta.parse("($(join(["x", "y", "z"][1:n], ", "))) -> $expr")), FUNCTIONS, "$n $expr")

"Result type and token: the type is empty for an exception."
function attempt(f, args)
    try
        y = Base.invokelatest(f, args...)
        return result_name(y), token(y)
    catch problem
        problem isa ErrorException && startswith(problem.msg, "no token") && rethrow()
        return "", string('!', nameof(typeof(problem)))
    end
end

## what Julia 1.10 and newer gives elsewhere than Julia 1.5

today_cld(x::T, y::T) where {T <: AbstractFloat} = round((x - (x - y * ceil(x / y))) / y)
today_fld1(x::T, y::T) where {T <: AbstractFloat} = (m = mod1(x, y); fld((x - m) + y, y))
function nearest16(x)
    near = Float16(x)
    isfinite(near) || return near
    distance(y) = (abs(big(x) - big(Float64(y))), isodd(reinterpret(UInt16, y)))
    return first(sort([near, prevfloat(near), nextfloat(near)], by = distance))
end
halves(x::Complex) = false
halves(x) = Float16(x) === nearest16(x) || !isfinite(x) || iszero(x)

"Whether Julia's version matters to `expr` with these arguments: a wrong sign or an overflow mended since 1.5."
function outdated(expr, x, y)
    float = promote_type(typeof(x), typeof(y)) <: AbstractFloat
    expr == "cld(x, y)" && float && return token(cld(x, y)) != token(today_cld(promote(x, y)...))
    expr == "fld1(x, y)" && float && return token(fld1(x, y)) != token(today_fld1(promote(x, y)...))
    if expr == "mod(x, y)" && x isa Base.BitInteger && y isa Base.BitInteger && (x isa Signed) ⊻ (y isa Signed)
        # `rem(y + unsigned(rem(x, y)), y)` overflows for large y.
        return y != 0 && mod(x, y) != mod(big(x), big(y))
    end
    if expr == "x ^ y" && x isa AbstractFloat && y isa Integer
        return x < 0 && abs(big(y)) > maxintfloat(x)
    end
    return false
end
outdated(expr, args...) = expr == "Float16(x)" && !halves(args[1])

"One table: `expr` over the grid of the types' values, the last argument running fastest. `defined` says where it is."
# Where the result is not the same in all Julia versions, there is a `?` too.
function table(expr, types, sets; defined = (args...) -> true)
    f = fitted(expr, length(types))
    grids = [values_of(T, s) for (T, s) in zip(types, sets)]
    rows = vec([reverse(args) for args in Iterators.product(reverse(grids)...)])
    results = [defined(args...) && !outdated(expr, args...) ? attempt(f, args) : ("", "?") for args in rows]
    kinds = [r[1] for r in results if r[1] != ""]
    main = isempty(kinds) ? "" : first(sort(unique(kinds), by = k -> -count(==(k), kinds)))
    tokens = [r[1] in ("", main) ? r[2] : string(r[1], ':', r[2]) for r in results]
    println("table\t", expr, '\t', join(map(name, types), ' '), '\t', join(sets, ' '), '\t', main, '\t', join(tokens, ' '))
end

unary(exprs, types, set = "wide"; kw...) = for e in exprs, T in types
    table(e, [T], [set]; kw...)
end
"Wide values where both types are the same, few where they differ."
binary(exprs, left, right; same = "wide", other = "few") = for e in exprs, A in left, B in right
    set = A === B ? same : other
    table(e, [A, B], [set, set])
end
function constant(expr)
    kind, tok = attempt(fitted(expr, 0), ())
    println("constant\t", expr, '\t', kind, '\t', tok)
end

## the tables

function arithmetic()
    binary(["x + y", "x - y", "x * y", "x / y", "x ÷ y", "x % y", "mod(x, y)", "fld(x, y)", "cld(x, y)"], REALS, REALS)
    binary(["mod1(x, y)", "fld1(x, y)", "divrem(x, y)", "x ^ y"], REALS, REALS)
    binary(["rem(x, y)", "div(x, y)", "fldmod(x, y)"], [Int8, UInt16, Int64, Float32], [Int8, UInt16, Int64, Float32])
    binary(["x == y", "x < y", "x <= y"], REALS, REALS; other = "wide")
    binary(["x != y", "x > y", "x >= y", "x ≤ y", "x ≠ y", "isequal(x, y)", "isless(x, y)", "cmp(x, y)"], SOME, SOME)
    binary(["min(x, y)", "max(x, y)"], REALS, REALS)
    binary(["minmax(x, y)"], SOME, SOME; same = "few")
    binary(["x & y", "x | y", "x ⊻ y"], WHOLE, WHOLE)
    for e in ["x & y", "x << y", "x ⊻ y"], (A, B) in [(Float64, Int64), (Int32, Float32), (Float64, Float64)]
        table(e, [A, B], ["tiny", "tiny"])
    end
    for e in ["x << y", "x >> y", "x >>> y"], A in WHOLE, B in WHOLE
        table(e, [A, B], [A === Int64 || B === Int64 ? "wide" : "few", "shifts"])
    end
    for A in INTS
        table("bitrotate(x, y)", [A, Int64], ["wide", "shifts"])
    end
    binary(["copysign(x, y)", "flipsign(x, y)"], REALS, SOME; same = "few")
    binary(["gcd(x, y)", "lcm(x, y)"], [Int8, UInt8, Int32, Int64], [Int8, UInt8, Int32, Int64]; same = "few")
    binary(["hypot(x, y)", "atan(x, y)"], SOME, SOME)
    binary(["log(x, y)"], [Int32, Int64, Float32, Float64], [Int32, Int64, Float32, Float64])
    for A in FLOATS, B in [Int32, Int64]
        table("ldexp(x, y)", [A, B], ["wide", "shifts"])
    end
    for e in ["muladd(x, y, z)", "fma(x, y, z)", "clamp(x, y, z)", "min(x, y, z)", "x < y <= z", "x == y < z"]
        for T in [REALS; COMPLEX]
            (T <: Complex && e != "muladd(x, y, z)") && continue
            table(e, [T, T, T], fill(T in [Int64, Float32, Float64] ? "few" : "tiny", 3))
        end
        for types in [[Float32, Float64, Float32], [Int64, Float32, Int64], [Int32, Int64, Int8], [Float32, Int64, Int64], [UInt8, Int64, Int64], [Float64, Float32, Int32]]
            table(e, types, fill("tiny", 3))
        end
    end
    for types in [[Bool, Int64, Float64], [Bool, Float32, Float32], [Bool, Int32, Int64], [Int64, Int64, Int64], [Bool, Bool, Bool]]
        table("ifelse(x, y, z)", types, fill("tiny", 3))
        table("x ? y : z", types, fill("tiny", 3))
    end
    for T in [Int64, Int32, UInt8, Float64], r in ["RoundUp", "RoundDown", "RoundToZero", "RoundNearest"]
        table("div(x, y, $r)", [T, T], ["few", "few"])
    end
    for e in ["length(x:y)", "last(x:y)"], (A, B) in [(Int64, Int64), (Int32, Int64), (UInt8, UInt8), (Int32, Int32), (Int8, UInt8)]
        table(e, [A, B], ["tiny", "tiny"]; defined = (x, y) -> abs(big(x) - y) < 1000)
    end
    for e in ["length(x:z:y)", "last(x:z:y)"]
        table(e, [Int64, Int64, Int64], ["tiny", "tiny", "few"]; defined = (x, y, z) -> abs(big(x) - y) < 1000 && abs(big(z)) < 10)
    end
end

function with_literals()
    unary(["x^0", "x^1", "x^2", "x^3", "x^5", "x^-1", "x^-2", "x^-3"], [REALS; COMPLEX])
    unary(["2^x", "2.0^x", "x^0.5", "2f0^x", "(-1)^x"], REALS, "few")
    unary(["x + 1", "x - 1", "1 - x", "2x", "x / 2", "1 / x", "x * 0.5", "x + 1f0", "x * 1.5f0", "x + 0x1", "x - 0x1", "x + true"], [REALS; COMPLEX])
    unary(["x ÷ 2", "x % 3", "mod(x, 3)", "mod1(x, 3)", "x ÷ 0x3", "x % 0x03", "mod(x, -3)", "cld(x, 2)", "fld(x, 2)"], REALS)
    unary(["x << 1", "x >> 1", "x >>> 1", "x << 0x2", "x >> 0x7", "x & 1", "x | 0xf0", "x ⊻ 1", "x & 0x01 == 0", "~x & 3"], WHOLE)
    unary(["x > 0", "x == 1", "0 < x < 3", "x != 0", "x >= 1.5", "x == 0x1", "max(x, 0)", "min(x, 1f0)", "max(x, 0.0)", "clamp(x, 0, 1)", "muladd(x, 2, 1)"], REALS)
    unary(["x * π", "x + ℯ", "π / x", "2π * x", "x * im", "2im * x", "x + 1im", "x == 0"], [REALS; COMPLEX], "few")
    unary(["evalpoly(x, (1, 2, 3))", "evalpoly(x, (1.0f0, 0.5f0))"], [Int64, Float32, Float64], "few")
end

function one_argument()
    unary(["-x", "+x", "~x", "!x", "abs(x)", "abs2(x)", "sign(x)", "signbit(x)", "inv(x)", "zero(x)", "one(x)", "x == x"], REALS)
    unary(["isnan(x)", "isinf(x)", "isfinite(x)", "iszero(x)", "isone(x)", "isinteger(x)"], REALS)
    unary(["iseven(x)", "isodd(x)"], WHOLE)
    unary(["floor(x)", "ceil(x)", "round(x)", "trunc(x)"], REALS, "edges")
    unary(["round(x, $r)" for r in ["RoundToZero", "RoundUp", "RoundDown", "RoundNearestTiesAway", "RoundNearestTiesUp"]], FLOATS, "edges")
    unary(["typemax(x)", "typemin(x)", "float(x)", "real(x)", "imag(x)", "conj(x)", "complex(x)", "typeof(x)"], REALS, "few")
    unary(["signed(x)", "unsigned(x)"], WHOLE)
    unary(["count_ones(x)", "count_zeros(x)", "leading_zeros(x)", "leading_ones(x)", "trailing_zeros(x)", "trailing_ones(x)"], INTS, "edges")
    unary(["bswap(x)"], INTS)
    unary(["eps(x)", "nextfloat(x)", "prevfloat(x)", "exponent(x)", "significand(x)", "frexp(x)", "issubnormal(x)"], FLOATS)
    maths = "sqrt cbrt exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
    more = "sincos cis sinpi cospi deg2rad rad2deg"
    unary(["mod2pi(x)"], FLOATS, "angles")
    for f in [split(maths); split(more)]
        unary(["$f(x)"], FLOATS, "wide")
        unary(["$f(x)"], FLOATS, "angles")
        unary(["$f(x)"], WHOLE, "few")
    end
    unary(["sec(x)", "csc(x)", "cot(x)"], FLOATS, "angles")
end

function complex_numbers()
    both = ["x + y", "x - y", "x * y", "x / y", "x == y", "x != y", "x ^ y"]
    binary(both, COMPLEX, COMPLEX)
    binary(both, COMPLEX, SOME)
    binary(both, SOME, COMPLEX)
    unary(["-x", "+x", "conj(x)", "abs(x)", "abs2(x)", "angle(x)", "real(x)", "imag(x)", "reim(x)", "inv(x)", "sqrt(x)", "exp(x)", "log(x)"], COMPLEX)
    unary(["sin(x)", "cos(x)", "tan(x)", "sinh(x)", "cosh(x)", "tanh(x)", "exp2(x)", "exp10(x)", "log2(x)", "cis(x)", "sign(x)"], COMPLEX)
    unary(["isnan(x)", "isinf(x)", "isfinite(x)", "iszero(x)", "isone(x)", "isreal(x)", "zero(x)", "one(x)", "float(x)", "typeof(x)", "x < x", "abs(x)^2"], COMPLEX)
    binary(["complex(x, y)", "Complex(x, y)", "ComplexF32(x, y)", "ComplexF64(x, y)"], SOME, SOME; same = "few")
end

function conversions()
    for T in [REALS; Float16; COMPLEX]
        unary(["$(name(T))(x)"], [REALS; COMPLEX; Float16], "edges")
    end
    for T in [Bool, Int32, Int64, UInt8, Float32, Float64, ComplexF32]
        unary(["convert($(name(T)), x)"], [REALS; COMPLEX], "edges")
    end
    for T in WHOLE
        unary(["x % $T"], WHOLE, "edges")
    end
    for T in INTS
        unary(["$f($T, x)" for f in ["trunc", "floor", "ceil", "round"]], REALS, "edges")
        fits(x) = x isa Integer || (isfinite(x) && typemin(T) <= trunc(big(x)) <= typemax(T))
        unary(["unsafe_trunc($T, x)"], REALS, "edges"; defined = fits)
    end
    pairs = [(UInt32, Float32), (Int32, Float32), (Float32, UInt32), (Float32, Int32), (UInt64, Float64), (Int64, Float64), (Float64, UInt64), (Float64, Int64)]
    for (T, S) in [pairs; (Int8, UInt8); (UInt8, Int8); (Int64, UInt64); (UInt64, Int64)]
        table("reinterpret($T, x)", [S], ["few"]; defined = x -> !(x isa AbstractFloat && isnan(x)))
    end
    unary(["Int(x)", "UInt(x)", "Integer(x)", "Complex(x)"], SOME, "edges")
end

function of_types()
    for T in [REALS; Float16; COMPLEX], f in ["zero", "one", "typemin", "typemax", "sizeof", "float", "real", "isbitstype"]
        constant("$f($(name(T)))")
    end
    for T in [Float16; FLOATS], f in ["eps", "floatmin", "floatmax", "typemax"]
        constant("$f($T)")
    end
    for A in [REALS; Float16; COMPLEX], B in [REALS; Float16; COMPLEX]
        constant("promote_type($(name(A)), $(name(B)))")
    end
end

function main()
    foreach(f -> f(), [arithmetic, with_literals, one_argument, complex_numbers, conversions, of_types])
    foreach(constant, filter(!isempty, split(read(stdin, String), '\n')))
end

main()
