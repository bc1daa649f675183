"""Powers."""

from __future__ import annotations

from jlkern.engines.numba.lower.arithmetic import arithmetic, inverse, repeat
from jlkern.engines.numba.lower.context import Context, as_scalar, truth
from jlkern.engines.numba.lower.conversion import as_number, cast, convert, one_of, together, zero_of
from jlkern.engines.numba.lower.mathematics import unary
from jlkern.engines.numba.lower.prelude import call_prelude
from jlkern.engines.numba.lower.registry import no_method
from jlkern.engines.numba.lower.simt import Expr, Lit
from jlkern.engines.numba.lower.types import BOOL, FLOAT64, INT64, UINT64, ComplexT, Prim, promote
from jlkern.engines.numba.lower.values import Complex, Irrational, Scalar, Value, constant, type_of

_UNROLLED = 64


def power(cx: Context, a: Value, b: Value, literal: bool) -> Value:
    """`a ^ b`; with a literal integer exponent as Julia's `literal_pow` has it."""
    if isinstance(a, Irrational) and a.name == "ℯ" and isinstance(b, Scalar):
        return unary(cx, "exp", b)
    x, y = as_number(a), as_number(b, a)
    if x is None or y is None:
        no_method(cx, "^", (a, b))
    if literal and isinstance(y, Scalar) and y.is_const and y.type.kind == "int":
        return _literal_power(cx, x, int(y.const))
    return _power(cx, x, y)


def _literal_power(cx: Context, x: Scalar | Complex, n: int) -> Value:
    if isinstance(x, Scalar) and x.type == BOOL and n >= 0:
        return _power(cx, x, constant(n, INT64))
    if 0 <= n <= 3:
        return repeat(cx, x, n)
    floating = isinstance(x, Scalar) and x.type.kind == "float"
    if n < 0 and (not floating or n >= -2):
        base = as_number(cx.hold_all(inverse(cx, (x,))))
        assert base is not None
        return _literal_power(cx, base, -n)
    return _power(cx, x, constant(n, INT64))


def _power(cx: Context, x: Scalar | Complex, y: Scalar | Complex) -> Value:
    if isinstance(x, Complex) or isinstance(y, Complex):
        return _complex_power(cx, x, y)
    x, y = cx.hold(x), cx.hold(y)
    if y.type.kind != "float":
        if x.type.kind == "float":
            return _float_to_integer(cx, x, y)
        return _integer_power(cx, x, y)
    x, y = (cx.hold(v) for v in together(cx, "^", (x, y)))
    size = cx.op("abs", y.type.numpy, cx.op("sub", y.type.numpy, y.expr, cx.op("trunc", y.type.numpy, y.expr)))
    fraction = cx.op("gt", "bool", size, zero_of(y.type).expr)  # neither for an infinity nor for a NaN
    bad = cx.op("and", "bool", cx.op("lt", "bool", x.expr, zero_of(x.type).expr), fraction)
    cx.check(bad, "DomainError", "a negative number to a fractional power", soft=True)
    return cx.scalar("pow", x.type, x.expr, y.expr)


def _integer_power(cx: Context, x: Scalar, y: Scalar) -> Scalar:
    one = one_of(x.type).expr
    negative = cx.op("lt", "bool", y.expr, zero_of(y.type).expr) if y.type.kind == "int" else Lit(False, "bool")
    if x.type == BOOL:
        unit: Expr = x.expr
    else:
        minus = cx.op("eq", "bool", x.expr, cx.op("neg", x.type.numpy, one))
        unit = cx.op("or", "bool", cx.op("eq", "bool", x.expr, one), minus)
    cx.check(cx.op("and", "bool", negative, cx.op("not", "bool", unit)), "DomainError",
             "{0} ^ {1}: an integer to a negative power; make the base a float", (x.expr, y.expr))  # fmt: skip
    if x.type == BOOL:
        return truth(cx.op("or", "bool", x.expr, cx.op("eq", "bool", y.expr, zero_of(y.type).expr)))
    if y.type.kind == "int":
        n = cx.hold(cast(cx, y, INT64))
        y = cx.scalar("select", INT64, negative, cx.op("neg", "int64", n.expr), n.expr)
    return cx.scalar("ipow", x.type, x.expr, cast(cx, y, UINT64).expr)


def _float_to_integer(cx: Context, x: Scalar, n: Scalar) -> Scalar:
    wide, count = cast(cx, x, FLOAT64), cast(cx, n, FLOAT64)
    if n.type.bits < 64 or (n.is_const and abs(n.const) <= 1 << 53):
        return cast(cx, as_scalar(FLOAT64, cx.op("pow", "float64", wide.expr, count.expr)), x.type)
    # Such an exponent may lose its last bit on the way to a float, and with it the sign.
    size = cx.hold(as_scalar(FLOAT64, cx.op("pow", "float64", cx.op("abs", "float64", wide.expr), count.expr)))
    odd = cx.op("ne", "bool", cx.op("and", n.type.numpy, n.expr, one_of(n.type).expr), zero_of(n.type).expr)
    negative = cx.op("and", "bool", odd, cx.op("signbit", "bool", x.expr))
    signed = cx.op("select", "float64", negative, cx.op("neg", "float64", size.expr), size.expr)
    return cast(cx, as_scalar(FLOAT64, signed), x.type)


def _complex_power(cx: Context, x: Scalar | Complex, y: Scalar | Complex) -> Value:
    if isinstance(x, Complex) and isinstance(y, Scalar) and y.type.kind != "float":
        if y.is_const and y.type != BOOL and abs(y.const) <= _UNROLLED and (y.const >= 0 or x.re.type.kind == "float"):
            return _squaring(cx, x, int(y.const))
        return call_prelude(cx, "bool_power" if y.type == BOOL else "whole_power", (x, y))
    ty = promote(type_of(x), type_of(y))
    elem = ty.elem if isinstance(ty, ComplexT) else ty
    assert isinstance(elem, Prim)
    both = ComplexT(elem if elem.kind == "float" else FLOAT64)
    return call_prelude(cx, "complex_power", (convert(cx, x, both), convert(cx, y, both)))


def _squaring(cx: Context, x: Complex, n: int) -> Value:
    if n < 0:
        return _squaring_of(cx, inverse(cx, (x,)), -n)
    return _squaring_of(cx, x, n) if n else repeat(cx, x, 0)


def _squaring_of(cx: Context, base: Value, n: int) -> Value:
    result: Value | None = None
    base = cx.hold_all(base)
    while n:
        if n & 1:
            result = base if result is None else cx.hold_all(arithmetic(cx, "*", result, base))
        n >>= 1
        if n:
            base = cx.hold_all(arithmetic(cx, "*", base, base))
    assert result is not None
    return result
