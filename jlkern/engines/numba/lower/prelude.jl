# Functions of Julia's Base on numbers, written in what the engine knows already: `prelude.py` lowers them like functions of
# the source. Each follows the function's docstring in Julia's manual; only the names that `prelude.py` lists are public.

# --- order and tests ---

cmp(x::Real, y::Real) = ifelse(isless(x, y), -1, ifelse(isless(y, x), 1, 0))
isinteger(x::Integer) = true
isinteger(x::AbstractFloat) = x - trunc(x) == 0
isinteger(z::Complex) = isreal(z) & isinteger(real(z))
isreal(x::Real) = true
isreal(z::Complex) = iszero(imag(z))
isinf(z::Complex) = isinf(real(z)) | isinf(imag(z))
isfinite(z::Complex) = isfinite(real(z)) & isfinite(imag(z))
isnan(z::Complex) = isnan(real(z)) | isnan(imag(z))
issubnormal(x::AbstractFloat) = (abs(x) < floatmin(x)) & (x != 0)

# --- whole numbers ---

function gcd(a::T, b::T) where {T<:Integer}
    u, v = unsigned(abs(a)), unsigned(abs(b))
    while v != 0
        u, v = v, u % v
    end
    u > typemax(T) && overflow_error("gcd overflows")
    return u % T
end
gcd(a::Unsigned, b::Signed) = gcd(promote(a, abs(b))...)
gcd(a::Signed, b::Unsigned) = gcd(promote(abs(a), b)...)
gcd(a::Bool, b::Bool) = a | b
gcd(a::Integer, b::Integer) = gcd(promote(a, b)...)
gcd(a::Integer) = a
gcd(a::Integer, b::Integer, c::Integer...) = gcd(gcd(a, b), c...)

function lcm(a::T, b::T) where {T<:Integer}
    ((a == 0) | (b == 0)) && return zero(T)
    u, v = unsigned(abs(a)), unsigned(abs(div(b, gcd(b, a))))
    v > div(unsigned(typemax(T)), u) && overflow_error("lcm overflows")
    return (u * v) % T
end
lcm(a::Bool, b::Bool) = a & b
lcm(a::Integer, b::Integer) = lcm(promote(a, b)...)
lcm(a::Integer) = a
lcm(a::Integer, b::Integer, c::Integer...) = lcm(lcm(a, b), c...)

function isqrt(n::Integer)
    n < 0 && domain_error("isqrt of a negative number")
    r = unsafe_trunc(UInt64, unchecked_sqrt(Float64(n)))
    m = UInt64(n)
    r = ifelse(r > 0x00000000ffffffff, 0x00000000ffffffff, r)
    r = ifelse(r * r > m, r - 0x0000000000000001, r)
    r = ifelse((r < 0x00000000ffffffff) & ((r + 0x0000000000000001) * (r + 0x0000000000000001) <= m), r + 0x0000000000000001, r)
    return r % typeof(n)
end

function nextpow(a::Integer, x::Real)
    x <= 0 && domain_error("nextpow needs a positive number")
    a <= 1 && domain_error("nextpow needs a base above 1")
    p = one(a)
    while p < x
        p *= a
    end
    return p
end
function prevpow(a::Integer, x::Real)
    x < 1 && domain_error("prevpow needs a number of at least 1")
    a <= 1 && domain_error("prevpow needs a base above 1")
    p = one(a)
    while p <= div(x, a)
        p *= a
    end
    return p
end

bitwidth(x::Union{Int8,UInt8}) = 8
bitwidth(x::Union{Int16,UInt16}) = 16
bitwidth(x::Union{Int32,UInt32}) = 32
bitwidth(x::Union{Int64,UInt64}) = 64
bitrotate(x::Integer, k::Integer) = (x << ((bitwidth(x) - 1) & k)) | (x >>> ((bitwidth(x) - 1) & -k))
bswap(x::UInt8) = x
bswap(x::UInt16) = (x << 8) | (x >>> 8)
bswap(x::UInt32) = (x << 24) | ((x & 0x0000ff00) << 8) | ((x >>> 8) & 0x0000ff00) | (x >>> 24)
bswap(x::UInt64) = (UInt64(bswap(x % UInt32)) << 32) | bswap((x >>> 32) % UInt32)
bswap(x::Signed) = signed(bswap(unsigned(x)))

# --- the bits of floats ---

raw(x::Float32) = reinterpret(Int32, x)
raw(x::Float64) = reinterpret(Int64, x)
cooked(::Type{Float32}, i::Integer) = reinterpret(Float32, i % Int32)
cooked(::Type{Float64}, i::Integer) = reinterpret(Float64, i % Int64)
fractionbits(::Type{Float32}) = 23
fractionbits(::Type{Float64}) = 52
bias(::Type{Float32}) = 127
bias(::Type{Float64}) = 1023
twopower(T, k) = cooked(T, (k + bias(T)) << fractionbits(T))
special(x) = (x == 0) | !isfinite(x)

function nextfloat(x::AbstractFloat)
    i = raw(x)
    moved = ifelse(x == 0, one(i), ifelse(i >= 0, i + one(i), i - one(i)))
    return ifelse((x == Inf) | isnan(x), x, cooked(typeof(x), moved))
end
prevfloat(x::AbstractFloat) = -nextfloat(-x)
# A number's power of two, and how far a subnormal one had to be lifted first.
lifted(x) = ifelse(abs(x) < floatmin(x), x * twopower(typeof(x), 60), x)
function logarithm(x)
    e = Int64(raw(abs(lifted(x))) >> fractionbits(typeof(x))) - bias(typeof(x))
    return ifelse(abs(x) < floatmin(x), e - 60, e)
end
function fraction(x)
    mask = (one(raw(x)) << fractionbits(typeof(x))) - one(raw(x))
    return copysign(cooked(typeof(x), (raw(lifted(x)) & mask) | (oftype(mask, bias(typeof(x))) << fractionbits(typeof(x)))), x)
end
function exponent(x::AbstractFloat)
    special(x) && domain_error("exponent of 0, Inf or NaN")
    return logarithm(x)
end
significand(x::AbstractFloat) = ifelse(special(x), x, fraction(x))
frexp(x::AbstractFloat) = (ifelse(special(x), x, fraction(x) / 2), ifelse(special(x), 0, logarithm(x) + 1))
function ldexp(x::T, n::Integer) where {T<:AbstractFloat}
    e = logarithm(x) + (clamp(n, -5000, 5000) % Int64)
    half = clamp(e, -2000, 2000) >> 1
    rest = clamp(e, -2000, 2000) - half
    scaled = (fraction(x) * scale(T, half)) * scale(T, rest)
    return ifelse(special(x), x, scaled)
end
# 2^k, the exponent kept where floats end anyway.
scale(T, k) = twopower(T, clamp(k, 1 - bias(T), bias(T)))
function eps(x::AbstractFloat)
    mask = raw(typemax(x))
    step = cooked(typeof(x), raw(x) & mask) * eps(typeof(x))
    return ifelse(isfinite(x), ifelse(abs(x) < floatmin(x), nextfloat(zero(x)), step), oftype(x, NaN))
end
function modf(x::AbstractFloat)
    whole = trunc(x)
    return (copysign(ifelse(isinf(x), zero(x), x - whole), x), whole)
end

# --- real functions ---

# x - y * n for the whole n that is nearest to x / y, as C's `remainder`.
function nearest_remainder(x::AbstractFloat, y::AbstractFloat)
    p = abs(y)
    r = abs(p <= floatmax(p) / 2 ? rem(x, 2 * p) : x)
    half = p / 2
    small = p < 2 * floatmin(p)
    over = ifelse(small, r + r > p, r > half)
    r = ifelse(over, r - p, r)
    r = ifelse(over & ifelse(small, r + r >= p, r >= half), r - p, r)
    return ifelse(isnan(x) | isinf(x) | (y == 0), oftype(x, NaN), flipsign(r, x))
end
nearest_quotient(x::AbstractFloat, y::AbstractFloat) = round((x - nearest_remainder(x, y)) / y)

sinpi(x::Integer) = ifelse(signbit(x), -0.0, 0.0)
cospi(x::Integer) = ifelse(isodd(x), -1.0, 1.0)
sec(x::Real) = inv(cos(x))
sec(x::Float32) = Float32(inv(cos(Float64(x))))
csc(x::Real) = inv(sin(x))
csc(x::Float32) = Float32(inv(sin(Float64(x))))
cot(x::Real) = inv(tan(x))
cot(x::Float32) = Float32(inv(tan(Float64(x))))
sech(x::Real) = inv(cosh(x))
sech(x::Float32) = Float32(inv(cosh(Float64(x))))
csch(x::Real) = inv(sinh(x))
csch(x::Float32) = Float32(inv(sinh(Float64(x))))
coth(x::Real) = inv(tanh(x))
coth(x::Float32) = Float32(inv(tanh(Float64(x))))
sinc(x::Real) = ifelse(x == 0, one(float(x)), ifelse(isinf(x), zero(float(x)), sinpi(float(x)) / (oftype(float(x), pi) * float(x))))
mod2pi(x::Integer) = mod2pi(float(x))
mod2pi(x::Float32) = Float32(mod2pi(Float64(x)))
function mod2pi(x::Float64)
    if abs(x) < 1e10
        # 2π in three parts, and what is left of x in two.
        n = floor(x / 6.283185307179586)
        p = n * 6.283185307179586
        q = n * 2.4492935982947064e-16
        e = -fma(n, 6.283185307179586, -p) - fma(n, 2.4492935982947064e-16, -q) + n * 5.989539619436679e-33
        d = x - p
        back = d - x
        h = d - q
        e += ((d - h) - q) + ((x - (d - back)) - (p + back))
        up = h + e < 0
        over = (h - 6.283185307179586) + (e - 2.4492935982947064e-16) >= 0
        full = ifelse(up, 6.283185307179586, ifelse(over, -6.283185307179586, 0.0))
        rest = ifelse(up, 2.4492935982947064e-16, ifelse(over, -2.4492935982947064e-16, 0.0))
        s = h + full
        t = s - h
        return ifelse(n == 0, x, s + (((h - (s - t)) + (full - t)) + (e + rest)))
    end
    a = atan(sin(x), cos(x))
    return ifelse(a < 0, a + 6.283185307179586, a)
end

# --- complex numbers ---

sign(z::Complex) = iszero(z) ? z : z / abs(z)
floor(z::Complex) = Complex(floor(real(z)), floor(imag(z)))
ceil(z::Complex) = Complex(ceil(real(z)), ceil(imag(z)))
trunc(z::Complex) = Complex(trunc(real(z)), trunc(imag(z)))
round(z::Complex) = Complex(round(real(z)), round(imag(z)))

function inv(z::ComplexF64)
    c, d = real(z), imag(z)
    (isinf(c) | isinf(d)) && return Complex(copysign(0.0, c), flipsign(-0.0, d))
    size = max(abs(c), abs(d))
    # Numbers near the ends of the range are scaled into it first.
    s = ifelse(size >= 0.5 * floatmax(Float64), 0.5, ifelse(size <= 2.0 * floatmin(Float64) / eps(Float64), 2.0 / eps(Float64)^2, 1.0))
    c, d = c * s, d * s
    swap = abs(d) > abs(c)
    p, q = ifelse(swap, d, c), ifelse(swap, c, d)
    r = q / p
    t = 1.0 / (p + q * r)
    return Complex(ifelse(swap, r * t, t) * s, -ifelse(swap, t, r * t) * s)
end
inv(z::ComplexF32) = ComplexF32(inv(ComplexF64(z)))
inv(z::Complex) = inv(float(z))

# Baudin and Smith, "A robust complex division in Scilab" (2012).
function quotient_part(a, b, c, d, r, t)
    br = b * r
    return r != 0 ? ifelse(br != 0, (a + br) * t, a * t + (b * t) * r) : (a + d * (b / c)) * t
end
function quotient(z::ComplexF64, w::ComplexF64)
    a, b, c, d = real(z), imag(z), real(w), imag(w)
    ab = ifelse(abs(a) >= abs(b), abs(a), abs(b))
    cd = ifelse(abs(c) >= abs(d), abs(c), abs(d))
    large, small, up = 0.5 * floatmax(Float64), floatmin(Float64) * 2.0 / eps(Float64), 2.0 / eps(Float64)^2
    zs = ifelse(ab >= large, 0.5, ifelse(ab <= small, up, 1.0))
    ws = ifelse(cd >= large, 0.5, ifelse(cd <= small, up, 1.0))
    s = (1.0 / zs) * ws
    a, b, c, d = a * zs, b * zs, c * ws, d * ws
    swap = !(abs(d) <= abs(c))
    a, b, c, d = ifelse(swap, b, a), ifelse(swap, a, b), ifelse(swap, d, c), ifelse(swap, c, d)
    r = d / c
    t = 1.0 / (c + d * r)
    p = quotient_part(a, b, c, d, r, t)
    q = quotient_part(b, -a, c, d, r, t)
    return Complex(p * s, ifelse(swap, -q, q) * s)
end
quotient(z::ComplexF32, w::ComplexF32) = ComplexF32(ComplexF64(z) * inv(ComplexF64(w)))
function quotient(z::Complex, w::Complex)
    a, b, c, d = real(z), imag(z), real(w), imag(w)
    if abs(c) <= abs(d)
        r = c / d
        den = d + r * c
        return Complex((a * r + b) / den, (b * r - a) / den)
    else
        r = d / c
        den = c + r * d
        return Complex((a + b * r) / den, (b - a * r) / den)
    end
end

function sqrt(z::ComplexF64)
    x, y = real(z), imag(z)
    ((x == 0) & (y == 0)) && return Complex(0.0, y)
    isinf(y) && return Complex(Inf, y)
    size = max(abs(x), abs(y))
    s = ifelse(size > 1e300, 0.0625, ifelse(size < 1e-290, 4.0^300, 1.0))
    back = ifelse(size > 1e300, 4.0, ifelse(size < 1e-290, 2.0^-300, 1.0))
    r = unchecked_sqrt((abs(x * s) + hypot(x * s, y * s)) * 0.5)
    other = isinf(x) ? (isnan(y) ? y : 0.0) : abs(y * s) / (2.0 * r)
    re, im = ifelse(x < 0, other, r), ifelse(x < 0, r, other)
    return Complex(re * back, copysign(im * back, y))
end
function log(z::ComplexF64)
    x, y = abs(real(z)), abs(imag(z))
    large, small = ifelse(x < y, y, x), ifelse(x < y, x, y)
    near = (0.5 < large * large) & ((large <= 1.25) | (large * large + small * small < 3.0))
    size = near ? unchecked_log1p((large - 1.0) * (large + 1.0) + small * small) * 0.5 : unchecked_log(hypot(x, y))
    return Complex(size, atan(imag(z), real(z)))
end
log2(z::ComplexF64) = log(z) / 0.6931471805599453
log10(z::ComplexF64) = log(z) / 2.302585092994046
function exp(z::ComplexF64)
    x, y = real(z), imag(z)
    isnan(x) && return Complex(x, ifelse(y == 0, y, x))
    !isfinite(y) && return Complex(ifelse(x == Inf, -x, ifelse(x == -Inf, -0.0, NaN)), ifelse(x == -Inf, copysign(0.0, y), NaN))
    y == 0 && return Complex(exp(x), y)
    return Complex(exp(x) * unchecked_cos(y), exp(x) * unchecked_sin(y))
end
function exp2(z::ComplexF64)
    e, a = exp2(real(z)), imag(z) * 0.6931471805599453
    return Complex(e * cos(a), e * sin(a))
end
function exp10(z::ComplexF64)
    e, a = exp10(real(z)), imag(z) * 2.302585092994046
    return Complex(e * cos(a), e * sin(a))
end
function cis(z::ComplexF64)
    e = exp(-imag(z))
    return Complex(e * cos(real(z)), e * sin(real(z)))
end
function sin(z::ComplexF64)
    x, y = real(z), imag(z)
    x == 0 && return Complex(x, sinh(y))
    !isfinite(x) && return Complex(NaN, ifelse((y == 0) | isinf(y), y, NaN))
    return Complex(unchecked_sin(x) * cosh(y), unchecked_cos(x) * sinh(y))
end
function cos(z::ComplexF64)
    x, y = real(z), imag(z)
    x == 0 && return Complex(cosh(y), ifelse(isnan(y), x, -flipsign(x, y)))
    !isfinite(x) && return Complex(ifelse(isinf(y), Inf, NaN), ifelse(y == 0, ifelse(isnan(x), 0.0, -flipsign(y, x)), NaN))
    return Complex(unchecked_cos(x) * cosh(y), -unchecked_sin(x) * sinh(y))
end
function tan(z::ComplexF64)
    w = tanh(Complex(-imag(z), real(z)))
    return Complex(imag(w), -real(w))
end
function sinh(z::ComplexF64)
    w = sin(Complex(imag(z), real(z)))
    return Complex(imag(w), real(w))
end
cosh(z::ComplexF64) = cos(Complex(imag(z), -real(z)))
function tanh(z::ComplexF64)
    x, y = real(z), imag(z)
    (isnan(x) & (y == 0)) && return z
    abs(x) > 178.0 && return Complex(copysign(1.0, x), copysign(0.0, isfinite(y) ? y * unchecked_sin(2.0 * abs(y)) : y))
    !isfinite(y) && return Complex(NaN, NaN)
    t = unchecked_tan(y)
    s = sinh(x)
    b = 1.0 + t * t
    den = 1.0 + b * s * s
    return Complex(b * unchecked_sqrt(1.0 + s * s) * s / den, t / den)
end

sqrt(z::ComplexF32) = ComplexF32(sqrt(ComplexF64(z)))
log(z::ComplexF32) = ComplexF32(log(ComplexF64(z)))
log2(z::ComplexF32) = ComplexF32(log2(ComplexF64(z)))
log10(z::ComplexF32) = ComplexF32(log10(ComplexF64(z)))
exp(z::ComplexF32) = ComplexF32(exp(ComplexF64(z)))
exp2(z::ComplexF32) = ComplexF32(exp2(ComplexF64(z)))
exp10(z::ComplexF32) = ComplexF32(exp10(ComplexF64(z)))
cis(z::ComplexF32) = ComplexF32(cis(ComplexF64(z)))
sin(z::ComplexF32) = ComplexF32(sin(ComplexF64(z)))
cos(z::ComplexF32) = ComplexF32(cos(ComplexF64(z)))
tan(z::ComplexF32) = ComplexF32(tan(ComplexF64(z)))
sinh(z::ComplexF32) = ComplexF32(sinh(ComplexF64(z)))
cosh(z::ComplexF32) = ComplexF32(cosh(ComplexF64(z)))
tanh(z::ComplexF32) = ComplexF32(tanh(ComplexF64(z)))

sqrt(z::Complex) = sqrt(float(z))
log(z::Complex) = log(float(z))
log2(z::Complex) = log2(float(z))
log10(z::Complex) = log10(float(z))
exp(z::Complex) = exp(float(z))
exp2(z::Complex) = exp2(float(z))
exp10(z::Complex) = exp10(float(z))
cis(z::Complex) = cis(float(z))
sin(z::Complex) = sin(float(z))
cos(z::Complex) = cos(float(z))
tan(z::Complex) = tan(float(z))
sinh(z::Complex) = sinh(float(z))
cosh(z::Complex) = cosh(float(z))
tanh(z::Complex) = tanh(float(z))

# --- powers of complex numbers ---

# Repeated squaring that starts with the first factor needed, as Julia's: no product with one.
function squaring(z, n)
    if n < 0  # the least integer, which has no opposite
        z == 1 && return z
        z == -1 && return one(z)
        domain_error("the least integer as an exponent")
    end
    n == 0 && return one(z)
    base, left = z, n
    while left & 1 == 0
        base = base * base
        left = left >> 1
    end
    result = base
    left = left >> 1
    while left > 0
        base = base * base
        if left & 1 == 1
            result = result * base
        end
        left = left >> 1
    end
    return result
end

bool_power(z, n) = ifelse(n, z, one(z))
whole_power(z::Complex{T}, n::Integer) where {T<:AbstractFloat} = n >= 0 ? squaring(z, n) : squaring(inv(z), -n)
function whole_power(z::Complex, n::Integer)
    n < 0 && domain_error("a whole complex number to a negative power")
    return squaring(z, n)
end

complex_power(z::ComplexF32, p::ComplexF32) = ComplexF32(complex_power(ComplexF64(z), ComplexF64(p)))
complex_power(z::Complex, p::Complex) = complex_power(float(z), float(p))
function complex_power(z::ComplexF64, p::ComplexF64)
    pr, pim = real(p), imag(p)
    if pim == 0
        if isinteger(pr) & (abs(pr) < 2147483647.0)
            pr == 0 && return Complex(1.0, flipsign(copysign(0.0, pr), imag(z)))
            n = unsafe_trunc(Int64, pr)
            if imag(z) == 0
                ((n < 0) & (real(z) == 0)) && return Complex(NaN, NaN)
                re = squaring(ifelse(n < 0, 1.0 / real(z), real(z)), abs(n))
                im = ifelse(n < 0, -imag(z), imag(z))
                return Complex(re, ifelse(iseven(n) & signbit(real(z)), -im, im))
            end
            return n < 0 ? squaring(inv(z), -n) : squaring(z, n)
        elseif imag(z) == 0
            real(z) == 0 && return ifelse(pr > 0, z, Complex(NaN, NaN))
            real(z) > 0 && return Complex(unchecked_pow(real(z), pr), flipsign(imag(z), pr))
            r = unchecked_pow(-real(z), pr)
            isfinite(pr) && return Complex(r * cospi(pr), r * flipsign(sinpi(pr), imag(z)))
            return r == 0 ? Complex(0.0, 0.0) : Complex(NaN, NaN)
        end
        return polar(unchecked_pow(abs(z), pr), pr * angle(z))
    end
    if imag(z) == 0
        real(z) == 0 && return pr > 0 ? z : Complex(NaN, NaN)
        real(z) > 0 && return polar(unchecked_pow(real(z), pr), pim * unchecked_log(real(z)))
    end
    r, a = abs(z), angle(z)
    return polar(unchecked_pow(r, pr) * exp(-pim * a), pr * a + pim * unchecked_log(r))
end
function polar(r, a)
    isfinite(a) && return Complex(r * unchecked_cos(a), r * unchecked_sin(a))
    return r == 0 ? Complex(0.0, 0.0) : Complex(NaN, NaN)
end
