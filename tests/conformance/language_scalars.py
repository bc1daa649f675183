"""Numbers: operators, literals, conversions, functions of Base."""

from __future__ import annotations

import numpy as np

from .language import XF, XI, XS, XU, elementwise

elementwise("bits", "r = ((v << 3) ⊻ (v >> 1)) & 0xff | (v >>> 60) + ~v", XI, np.int64)
elementwise("hex", "r = v - 0x1 + 0x0f % UInt8", XU, np.uint8)
elementwise("u8sum", "r = v + 0xff", XU, np.uint8)
elementwise("mixed", "r = Int32(3) * v + 0x02", XI.astype(np.int32), np.int64)
elementwise("fl32", "r = 2v + 1", XF, np.float32)
elementwise(
    "intdiv",
    "r = (v ÷ 3) * 100 + v % 3 + mod(v, 3) * 10 + fld(v, 3) + cld(v, 3) + mod1(v, 5) + fld1(v, 5)",
    XI,
    np.int64,
)
elementwise(
    "divrem",
    """
    d, m = divrem(v, -3)
    d2, m2 = fldmod(v, -3)
    r = 1000d + 100m + 10d2 + m2
    """,
    XI,
    np.int64,
)
elementwise("pow", "r = v^3 + v^2 - v^1 + v^0 + 2.0^v + v^5", XS)
elementwise("powint", "r = v^3 - 2^(abs(v) % 10) + v^5", XI, np.int64)
elementwise("minmax", "r = max(min(v, 1), -1) + clamp(v, -2, 0.5) + minmax(v, 0.0)[1]", XS)
elementwise(
    "conv", "r = Float32(v) + convert(Float64, 1f0) + oftype(v, 2) + float(3) + T1(v)", XS, before="const T1 = Float32"
)
elementwise(
    "rounding",
    "r = floor(v) + ceil(v) * 10 + round(v) * 100 + trunc(v) * 1000",
    np.array([-2.5, -1.5, -0.5, -0.2, 0, 0.2, 0.5, 1.5, 2.5, 3.7]),
)
elementwise(
    "rint",
    "r = floor(Int, v) + ceil(Int, v) * 10 + round(Int, v) * 100 + trunc(Int32, v) * 1000",
    np.array([-2.5, -1.5, -0.5, -0.2, 0, 0.2, 0.5, 1.5, 2.5, 3.7]),
    np.int64,
)
elementwise(
    "cplx",
    """
    z = complex(v, 1.0)
    w = z * z + conj(z) / (2 + im) - 3z
    r = real(w) + imag(w) * abs2(z) + abs(z) + angle(z)
    """,
    XS,
    ulps=4,
)
elementwise(
    "cplxexp",
    """
    z = exp(complex(0.1v, v)) + cis(v)
    r = real(z) - imag(z)
    """,
    XS,
    ulps=4,
)
elementwise(
    "math",
    """
    a = sin(v) + cos(v) * exp(v) - atan(v, 2.0) + tanh(v) + hypot(v, 1.0) + cbrt(v) + expm1(v) + log1p(abs(v))
    b = exp2(v) + log2(abs(v) + 1) + log10(abs(v) + 1) + sinh(v) + cosh(v) + asinh(v) + atan(v)
    r = a + b
    """,
    XS,
    ulps=8,
)
elementwise(
    "math32",
    """
    a = sin(v) + cos(v) * exp(v) - atan(v, 2.0) + tanh(v) + hypot(v, 1.0) + cbrt(v) + expm1(v) + log1p(abs(v))
    b = exp2(v) + log2(abs(v) + 1) + log10(abs(v) + 1) + sinh(v) + cosh(v) + asinh(v) + atan(v)
    r = a + b
    """,
    XF,
    np.float32,
    ulps=16,
)
elementwise(
    "sincos",
    """
    s, c = sincos(v)
    r = s * c + sinpi(v) + cospi(v)
    """,
    XS,
    ulps=4,
)
elementwise(
    "isnan",
    "r = isnan(v) ? 1 : isinf(v) ? 2 : isfinite(v) ? 3 : 4",
    np.array([0, np.nan, np.inf, -np.inf, 1.0]),
    np.int64,
)
elementwise("sign", "r = sign(v) + signbit(v) + copysign(2.0, v) + abs(v)", XS)
elementwise(
    "promote",
    """
    a, b = promote(v, 1)
    r = a + b + zero(v) + one(v) + typemax(Int8) + eps(Float64)
    """,
    XS,
)
elementwise(
    "typed",
    """
    r::Float64 = v
    r += 1
    """,
    XI,
)
elementwise(
    "bool",
    """
    b = v > 0
    r = b + b * 3 + (b & true) - !b + xor(b, true)
    """,
    XS,
    np.int64,
)
elementwise("reinterpret", "r = reinterpret(UInt64, v) >> 52", XS, np.int64)
elementwise("counts", "r = count_ones(v) + leading_zeros(v) * 100 + trailing_zeros(v) * 10000", XI, np.int64)
elementwise("ifelse", "r = ifelse(v > 0, v, -v) + ifelse(isodd(i), 1.0, 2.0)", XS)
elementwise("juxt", "r = 2v + 3(v + 1) - 1/2v", XS[:10])
elementwise("callsite", "r = @fastmath v * 2 + 1", XS)
elementwise("bigint", "r = v * 0x7fffffffffffffff + typemax(Int64)", XI, np.int64)
elementwise("i8wrap", "r = Int8(v) + Int8(120) + (Int8(v) << 3)", XI, np.int64)
elementwise("u32mul", "r = UInt32(abs(v)) * 0x9e3779b9 >> 3", XI, np.int64)
elementwise(
    "rot",
    """
    u = reinterpret(UInt64, v)
    r = reinterpret(Int64, (u << 7) | (u >> 57))
    """,
    XI,
    np.int64,
)
elementwise("signedness", "r = (UInt8(3) > v) + 2 * (UInt64(3) > v) + 4 * (v == 3.0) + 8 * (v < 2.5f0)", XI, np.int64)
elementwise(
    "cplx_f32",
    """
    z = complex(v, 2f0)
    w = z / complex(1f0, v) + inv(z) + 2f0 / z + z / 3
    r = real(w) * imag(w)
    """,
    XF,
    np.float32,
)
elementwise(
    "cplxtypes",
    """
    z = ComplexF32(v, 1) * im + Complex(1, 2)
    r = real(z) - imag(z)
    """,
    XF,
    np.float32,
)
elementwise("evalpoly", "r = evalpoly(v, (1.0, 2.0, 3.0))", XS)
elementwise("mod2", "r = mod(v, 1.5) + rem(v, 1.5) + v % 0.7 + div(v, 0.7) + fld(v, 0.7)", XS)
elementwise("muladd", "r = muladd(v, 2, 1) + fma(v, 2.0, 1.0)", XS)
elementwise("floatlits", "r = 1f-3 * v + 2.5e1 + .5 + 1_000", XS)
elementwise("ints", "r = 0b1010 + 0o17 + 0xff + v", XI, np.int64)
elementwise("charcmp", "r = (v > 0) & (v < 3) | (v == -2)", XI, np.int64)
elementwise("isapprox", "r = abs(v - round(v)) < 1e-9 ? 1 : 0", XS, np.int64)
elementwise("convertstore", "r = v > 0 ? 1 : 0", XS, np.float32)
elementwise("boolstore", "r = v > 0", XS, np.bool_)
elementwise(
    "assertion",
    """
    @assert v > -100 "bad"
    r = (v + 1)::Float64
    """,
    XS,
)
