"""Functions of a Float64 that the C library computes too coarsely, here within about half a unit in the last place.

Numbers of twice the precision are pairs, `high + low` (Dekker, Numer. Math. 18 (1971) 224). `exp` less 1 is made of a
pair and a polynomial, good to 60 bits; the logarithm is the C library's, corrected by one Newton step with that
exponential. Everything is straight-line code without branches, so that loops with it can be vectorised.
"""

from __future__ import annotations

import math
from typing import Any

import llvmlite.ir as ir

F64 = ir.DoubleType()
I64 = ir.IntType(64)
_LN2 = (0.693147180559663, 2.8235290563031577e-13, 1.94704509238075e-31)  # the first has 41 bits
_LN2_PAIR = (0.6931471805599453, 2.3190468138462996e-17)
_PER_LN10 = (0.4342944819032518, 1.098319650216765e-17)
_PI = (3.141592653589793, 1.2246467991473532e-16)
_TERMS = tuple(1.0 / math.factorial(n) for n in range(15, 2, -1))
_BIG = 2.0**30

Pair = tuple["F", "F"]


class F:
    """A Float64 value in a function being built; operators write instructions."""

    __slots__ = ("b", "v")

    def __init__(self, b: Any, v: Any) -> None:
        self.b = b
        self.v = ir.Constant(F64, v) if isinstance(v, float) else v

    def _with(self, other: F | float) -> Any:
        return other.v if isinstance(other, F) else ir.Constant(F64, other)

    def __add__(self, other: F | float) -> F:
        return F(self.b, self.b.fadd(self.v, self._with(other)))

    def __sub__(self, other: F | float) -> F:
        return F(self.b, self.b.fsub(self.v, self._with(other)))

    def __mul__(self, other: F | float) -> F:
        return F(self.b, self.b.fmul(self.v, self._with(other)))

    def __truediv__(self, other: F | float) -> F:
        return F(self.b, self.b.fdiv(self.v, self._with(other)))

    def __neg__(self) -> F:
        return F(self.b, self.b.fneg(self.v))

    def below(self, other: F | float) -> Any:
        """Whether it is less; False for a NaN."""
        return self.b.fcmp_ordered("<", self.v, self._with(other))

    def equals(self, other: F | float) -> Any:
        """Whether it is equal."""
        return self.b.fcmp_ordered("==", self.v, self._with(other))

    def call(self, name: str, *others: F | float) -> F:
        """Call an LLVM intrinsic (`llvm.name.f64`) or a C function with it."""
        from numba.core import cgutils

        args = [self.v, *(self._with(o) for o in others)]
        function = cgutils.get_or_insert_function(self.b.module, ir.FunctionType(F64, [F64] * len(args)), name)
        return F(self.b, self.b.call(function, args))

    def fma(self, y: F | float, z: F | float) -> F:
        """Return `self * y + z`, rounded once."""
        return self.call("llvm.fma.f64", y, z)

    def size(self) -> F:
        """Return the absolute value."""
        return self.call("llvm.fabs.f64")

    def rint(self) -> F:
        """Return the nearest whole number."""
        return self.call("llvm.rint.f64")

    def sqrt(self) -> F:
        """Return the square root."""
        return self.call("llvm.sqrt.f64")

    def signed_as(self, other: F) -> F:
        """Return it with another's sign."""
        return self.call("llvm.copysign.f64", other)

    def pick(self, test: Any, other: F | float) -> F:
        """Return itself where the test holds, the other value elsewhere."""
        return F(self.b, self.b.select(test, self.v, self._with(other)))

    def at_most(self, bound: float) -> F:
        """Return the lesser of it and a bound; a NaN stays."""
        return F(self.b, ir.Constant(F64, bound)).pick(F(self.b, bound).below(self), self)

    def at_least(self, bound: float) -> F:
        """Return the greater of it and a bound; a NaN stays."""
        return F(self.b, ir.Constant(F64, bound)).pick(self.below(bound), self)

    def whole(self) -> Any:
        """Return it as an i64; a NaN gives 0."""
        from numba.core import cgutils

        name = "llvm.fptosi.sat.i64.f64"
        return self.b.call(cgutils.get_or_insert_function(self.b.module, ir.FunctionType(I64, [F64]), name), [self.v])


def two_sum(x: F, y: F) -> Pair:
    """Return `x + y` exactly."""
    s = x + y
    t = s - x
    return s, (x - (s - t)) + (y - t)


def two_prod(x: F, y: F) -> Pair:
    """Return `x * y` exactly."""
    p = x * y
    return p, x.fma(y, -p)


def quotient(x: Pair, y: Pair) -> Pair:
    """Return `x / y` of pairs."""
    q = x[0] / y[0]
    return q, ((-q).fma(y[0], x[0]) + x[1] - q * y[1]) / y[0]


def power_of_two(k: F) -> F:
    """Return `2^k` for a whole k from -1022 to 1023."""
    b = k.b
    bits = b.shl(b.add(k.whole(), ir.Constant(I64, 1023)), ir.Constant(I64, 52))
    return F(b, b.bitcast(bits, F64))


def scaled(x: F, k: F) -> F:
    """Return `x * 2^k`."""
    half = (k * 0.5).call("llvm.floor.f64")
    return x * power_of_two(half) * power_of_two(k - half)


def exponential(x: F) -> tuple[F, F, F]:
    """Return k, m, n with `exp(x) = 2^k (1 + m + n)`, for |x| below 1200; `m + n` is as exact as x where x is small."""
    k = (x * (1.0 / math.log(2.0))).rint()
    p, pe = two_prod(k, F(x.b, _LN2[1]))
    r, rl = two_sum((-k).fma(_LN2[0], x), -p)
    rl = rl - pe - k * _LN2[2]
    q, ql = two_prod(r, r)
    half, half_low = q * 0.5, (ql + r * rl * 2.0) * 0.5
    poly = F(x.b, _TERMS[0])
    for term in _TERMS[1:]:
        poly = poly.fma(r, term)
    m, low = two_sum(r, half)
    m, low = two_sum(m, low + half_low + rl + r * q * poly)
    return k, m, low


def logarithm(y: F, low: F) -> tuple[F, F]:
    """Return the logarithm of `y + low` as a pair; where it is infinite or NaN, the second part is 0."""
    start = y.call("llvm.log.f64")
    fine = start.size().below(math.inf)
    k, m, ml = exponential((-start).pick(fine, 0.0))
    near = scaled(y, k)
    p, pe = two_prod(near, m)
    s, e = two_sum(near - 1.0, p)
    rest = s + (e + pe + near * ml + scaled(low, k) * (m + 1.0))
    return start, rest.pick(fine, 0.0)


def added(total: F, *parts: F) -> F:
    """Return a sum to which tiny parts are added, the smallest first, keeping an infinite total."""
    low = parts[-1]
    for part in reversed(parts[:-1]):
        low = low + part
    return total + low


# --- the functions ---


def _hyperbolic(a: F) -> tuple[F, Pair, Pair]:
    """Return k, and `exp(a) ∓ exp(-a)` for a ≥ 0, both without the factor 2^k."""
    k, m, ml = exponential(a)
    one = F(a.b, 1.0)
    d, dl = two_sum(one, m)
    n, nl = quotient((m, ml), (d, dl + ml))  # exp(-a) = 2^-k (1 - n)
    t = power_of_two((k * -2.0).at_least(-1022.0))
    made = []
    for sign in (-1.0, 1.0):
        c, ce = two_sum(one, t * sign)
        s, e = two_sum(c, m)
        s, e2 = two_sum(s, t * n * -sign)
        made.append((s, ce + e + e2 + ml - t * nl * sign))
    return k, made[0], made[1]


def sinh(x: F) -> F:
    """`sinh(x)`."""
    k, minus, _ = _hyperbolic(x.size().at_most(1100.0))
    return scaled(minus[0] + minus[1], k - 1.0).signed_as(x)


def cosh(x: F) -> F:
    """`cosh(x)`."""
    k, _, plus = _hyperbolic(x.size().at_most(1100.0))
    return scaled(plus[0] + plus[1], k - 1.0)


def tanh(x: F) -> F:
    """`tanh(x)`."""
    _, minus, plus = _hyperbolic(x.size().at_most(40.0))
    q, low = quotient(minus, plus)
    return (q + low).signed_as(x)


def expm1(x: F) -> F:
    """`exp(x) - 1`."""
    k, m, ml = exponential(x.at_most(1100.0).at_least(-50.0))
    c, ce = two_sum(F(x.b, 1.0), -power_of_two((-k).at_least(-1022.0)))
    s, e = two_sum(c, m)
    return x.pick(x.equals(0.0), scaled(s + (ce + e + ml), k))


def log1p(x: F) -> F:
    """`log(1 + x)`."""
    y, low = two_sum(F(x.b, 1.0), x)
    start, rest = logarithm(y, low)
    return x.pick(x.size().below(2.0**-54), start + rest)


def log10(x: F) -> F:
    """The logarithm to base 10."""
    start, rest = logarithm(x, F(x.b, 0.0))
    p, pe = two_prod(start, F(x.b, _PER_LN10[0]))
    low = pe + start * _PER_LN10[1] + rest * _PER_LN10[0]
    return p + low.pick(start.size().below(math.inf), 0.0)


def quotient_of_logarithms(base: F, x: F) -> F:
    """The logarithm of x to a base."""
    top, bottom = logarithm(x, F(x.b, 0.0)), logarithm(base, F(x.b, 0.0))
    q = top[0] / bottom[0]
    low = ((-q).fma(bottom[0], top[0]) + top[1] - q * bottom[1]) / bottom[0]
    return q.pick(q.equals(0.0), q + low.pick(low.size().below(math.inf), 0.0))


def _log_of_sum(a: F, square_plus: float) -> F:
    """Return `log(a + sqrt(a^2 ± 1))` for a ≥ 0."""
    b = a.b
    big = F(b, _BIG).below(a)
    small = a.at_most(_BIG)
    p, pe = two_prod(small, small)
    s, e = two_sum(p, F(b, square_plus))
    root = s.sqrt()
    root_low = ((-root).fma(root, s) + e + pe) / (root * 2.0)
    root_low = F(b, 0.0).pick(root.equals(0.0), root_low)
    y, low = two_sum(root, small)
    start, rest = logarithm(a.pick(big, y), F(b, 0.0).pick(big, low + root_low))
    s, e = two_sum(F(b, _LN2_PAIR[0]).pick(big, 0.0), start)
    e = e.pick(start.size().below(math.inf), 0.0)
    return s + (e + rest + F(b, _LN2_PAIR[1]).pick(big, 0.0))


def asinh(x: F) -> F:
    """`asinh(x)`."""
    return x.pick(x.size().below(2.0**-28), _log_of_sum(x.size(), 1.0).signed_as(x))


def acosh(x: F) -> F:
    """`acosh(x)`."""
    return _log_of_sum(x, -1.0)


def atanh(x: F) -> F:
    """`atanh(x)`."""
    one, a = F(x.b, 1.0), x.size()
    q, low = quotient(two_sum(one, a), two_sum(one, -a))
    start, rest = logarithm(q, low.pick(low.size().below(math.inf), 0.0))
    return x.pick(a.below(2.0**-28), ((start + rest) * 0.5).signed_as(x))


def cbrt(x: F) -> F:
    """The cube root."""
    tiny = x.size().below(2.0**-900)
    y = (x * 2.0**600).pick(tiny, x)
    t = y.call("cbrt")
    p, pe = two_prod(t, t)
    q, qe = two_prod(p, t)
    step = ((y - q) - qe - pe * t) / (p * 3.0)
    root = t + step.pick(step.size().below(math.inf), 0.0)
    return t.pick(t.equals(0.0), (root * 2.0**-200).pick(tiny, root))


def hypot(x: F, y: F) -> F:
    """`sqrt(x^2 + y^2)` (Borges, arXiv:1904.09481)."""
    b = x.b
    a, c = x.size(), y.size()
    swap = a.below(c)
    infinite = b.or_(a.equals(math.inf), c.equals(math.inf))
    large, small = c.pick(swap, a), a.pick(swap, c)
    high, low = F(b, 2.0**511).below(large), small.below(2.0**-459)
    low, tiny = b.and_(low, large.below(2.0**400)), large.below(2.0**-500)
    scale = F(b, 2.0**-600).pick(high, F(b, 2.0**1000).pick(tiny, F(b, 2.0**500).pick(low, 1.0)))
    back = F(b, 2.0**600).pick(high, F(b, 2.0**-1000).pick(tiny, F(b, 2.0**-500).pick(low, 1.0)))
    p, q = large * scale, small * scale
    h = p.fma(p, q * q).sqrt()
    h2, p2 = h * h, p * p
    rest = (-q).fma(q, h2 - p2) + h.fma(h, -h2) - p.fma(p, -p2)
    step = rest / (h * 2.0)
    fine = b.and_(step.size().below(math.inf), F(b, 0.0).below(step.size()))
    result = (h - step.pick(fine, 0.0)) * back
    apart = small.below(large * 2.0**-60)
    return F(b, math.inf).pick(infinite, large.pick(apart, result))


def sin_cos_pi(x: F) -> tuple[Any, F, F]:
    """Return the quarter turn (0 to 3), and sine and cosine of π times the rest."""
    b = x.b
    y = x - (x * 0.5).rint() * 2.0
    n = (y * 2.0).rint()
    r = y - n * 0.5
    high, low = two_prod(r, F(b, _PI[0]))
    low = low + r * _PI[1]
    sin, cos = high.call("llvm.sin.f64"), high.call("llvm.cos.f64")
    return b.and_(n.whole(), ir.Constant(I64, 3)), low.fma(cos, sin), (-low).fma(sin, cos)


def _quarter(x: F, first: int) -> F:
    b = x.b
    n, sin, cos = sin_cos_pi(x)
    n = b.and_(b.add(n, ir.Constant(I64, first)), ir.Constant(I64, 3))
    odd = b.icmp_unsigned("==", b.and_(n, ir.Constant(I64, 1)), ir.Constant(I64, 1))
    value = cos.pick(odd, sin)
    return (-value).pick(b.icmp_unsigned(">=", n, ir.Constant(I64, 2)), value)


def sinpi(x: F) -> F:
    """`sin(πx)`; a zero has the sign of x."""
    value = _quarter(x, 0)
    return F(x.b, 0.0).signed_as(x).pick(value.equals(0.0), value)


def cospi(x: F) -> F:
    """`cos(πx)`; a zero is positive."""
    value = _quarter(x, 1)
    return F(x.b, 0.0).pick(value.equals(0.0), value)
