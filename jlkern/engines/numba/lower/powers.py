"""Powers."""

from __future__ import annotations

from jlkern.engines.numba.lower.arithmetic import (
    arithmetic,
    inverse,
    repeat,
)
from jlkern.engines.numba.lower.context import Context, as_scalar
from jlkern.engines.numba.lower.conversion import (
    as_number,
    cast,
    one_of,
    together,
    zero_of,
)
from jlkern.engines.numba.lower.registry import no_method
from jlkern.engines.numba.lower.types import FLOAT64, INT64
from jlkern.engines.numba.lower.values import (
    Complex,
    Scalar,
    Value,
)


def power(cx: Context, a: Value, b: Value, literal: bool) -> Value:
    """`a ^ b`; with a literal integer exponent as Julia's `literal_pow` has it."""
    x, y = as_number(a), as_number(b, a)
    if x is None or not isinstance(y, Scalar):
        no_method(cx, "^", (a, b))
    if literal and y.is_const and y.type.kind == "int":
        if y.const in (0, 1, 2, 3):
            return repeat(cx, x, int(y.const))
        if y.const in (-1, -2):
            base = inverse(cx, (x,))
            return base if y.const == -1 else arithmetic(cx, "*", *(cx.hold_all(base),) * 2)
    if isinstance(x, Complex):
        if y.is_const and y.type.kind == "int" and abs(y.const) <= 64:
            z = repeat(cx, x, abs(int(y.const)))
            return z if y.const >= 0 else inverse(cx, (z,))
        no_method(cx, "^", (a, b))
    if x.type.kind != "float" and y.type.kind != "float":
        if x.type.kind == "bool":
            x = cast(cx, x, INT64)
        if y.type.kind == "int":
            unit = cx.op("or", "bool", cx.op("eq", "bool", x.expr, one_of(x.type).expr),
                         cx.op("eq", "bool", x.expr, cx.op("neg", x.type.numpy, one_of(x.type).expr)))  # fmt: skip
            negative = cx.op("lt", "bool", y.expr, zero_of(y.type).expr)
            cx.check(cx.op("and", "bool", negative, cx.op("not", "bool", unit)), "DomainError",
                     "{0} ^ {1}: an integer to a negative power; make the base a float", (x.expr, y.expr))  # fmt: skip
        return cx.scalar("ipow", x.type, x.expr, cast(cx, y, INT64).expr)
    if y.type.kind != "float":
        ty = x.type
        if y.is_const and abs(y.const) == 1 << 20:
            no_method(cx, "^", (a, b))
        wide = cx.op("pow", "float64", cast(cx, x, FLOAT64).expr, cast(cx, y, FLOAT64).expr)
        return cast(cx, as_scalar(FLOAT64, wide), ty)
    x, y = (cx.hold(v) for v in together(cx, "^", (x, y)))
    whole = cx.op("eq", "bool", cx.op("trunc", y.type.numpy, y.expr), y.expr)
    bad = cx.op("and", "bool", cx.op("lt", "bool", x.expr, zero_of(x.type).expr), cx.op("not", "bool", whole))
    cx.check(bad, "DomainError", "a negative number to a fractional power", soft=True)
    return cx.scalar("pow", x.type, x.expr, y.expr)
