"""Julia's functions and macros by what they do to their arguments, as far as a kernel may meet them."""

from __future__ import annotations

# Functions that compute from their arguments and change nothing.
PURE = frozenset(
    """
abs abs2 acos acosd acosh acot all angle any asin asind asinh atan atand atanh besselj0 beta big bitreverse
bitrotate bitstring bool broadcast bswap cbrt ceil checkbounds cis cispi clamp cld cmp coalesce collect complex conj
convert copy copysign cos cosd cosh cospi count count_ones count_zeros cross deg2rad denominator det digits display
div divrem dot eachindex eltype enumerate eps erf erfc error exp exp10 exp2 expm1 exponent extrema false fastmath
fill first firstindex fld fld1 fldmod fldmod1 flipsign float floatmax floatmin floor fma fract frexp gamma gcd get
getfield getindex getproperty hash haskey hasproperty hypot identity ifelse imag in indexin inv isa isapprox isbits
isequal iseven isfinite isinf isinteger isless isnan isnothing isodd isone isreal issubnormal iszero join keys kron
last lastindex lcm ldexp leading_ones leading_zeros length lgamma linearindices log log10 log1p log2 logabsgamma
loggamma lzcnt max maximum merge min minimum minmax mod mod1 mod2pi modf muladd nand ndims nextfloat nextpow nfields
nor norm normalize not nothing ntoh numerator nzval oftype one ones oneunit ordschur pairs parse popcount pow
powermod prevfloat prevpow print println prod promote promote_type propertynames rad2deg rand randn real reim
reinterpret rem rem2pi repeat repr rethrow reverse rotl90 round rsqrt rtoldefault searchsorted searchsortedfirst
searchsortedlast sec sech sign signbit signed significand similar sin sinc sincos sincosd sincospi sind sinh sinpi
size sizeof sort sqrt step stride strides string sum sum_kbn supertype tan tand tanh tanpi throw tr trailing_ones
trailing_zeros transpose true trunc tuple typejoin typemax typemin typeof unsafe_trunc unsigned values widemul widen
xor zero zeros zip
""".split()
) | frozenset("! ~ == != < > <= >= ≤ ≥ ≠ ≈ ≉ === !== ≡ ≢ ∈ ∉ isa <: >: √ ∛ ∘ ⊻ ⊼ ⊽ ⋅ × + - * / ÷ % ^ // & |".split())

# Functions whose value is (a view of) their argument.
VIEWS = frozenset(
    """
' Adapt OffsetArray PermutedDimsArray Ref Some StructArray adapt adjoint convert dropdims eachcol eachrow eachslice
getfield getproperty identity ifelse parent permutedims pointer reinterpret reshape selectdim something transpose
unsafe_view unsafe_wrap vec view
""".split()
) - {"permutedims"}

# Functions that call the functions that they are given.
HIGHER_ORDER = frozenset(
    "all any accumulate afoldl argmax argmin count filter findall findfirst findmax findmin foldl foldr foreach map"
    " mapfoldl mapfoldr mapreduce maximum minimum ntuple prod reduce sum broadcast".split()
)

# Macros whose value is that of their last argument, evaluated as it stands.
VALUE_MACROS = frozenset(
    "inbounds fastmath inline noinline uniform unroll simd propagate_inbounds private nospecialize boundscheck"
    " assume_effects constprop kernel Const".split()
)

# Macros that write nothing that they are given.
HARMLESS_MACROS = frozenset(
    "index localmem groupsize ndrange synchronize print context assert show SVector SMatrix SArray MVector MMatrix"
    " MArray static cuprintf cuprintln int128_str uint128_str big_str r_str v_str".split()
)

# Functions that ask an array for anything but its content.
METADATA = frozenset(
    "size length eltype axes ndims eachindex firstindex lastindex isempty typeof stride strides sizeof CartesianIndices"
    " LinearIndices keys".split()
)

# Functions that write their first argument (`map!` and `broadcast!`: the second).
MODIFIERS = frozenset(
    "setindex! fill! copyto! copy! unsafe_store! map! broadcast! sort! reverse! mul! push! modify! swap!".split()
)

ARITHMETIC = frozenset("+ - * / ÷ % ^ < <= > >= == != ≤ ≥ ≠ << >> >>> & | ⊻ : ! ~ \\ //".split())
