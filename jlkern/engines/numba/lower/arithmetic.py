"""Sums, products and quotients of real and complex numbers."""

from __future__ import annotations

from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.conversion import (
    Number,
    as_number,
    cast,
    one_of,
    together,
    zero_of,
)
from jlkern.engines.numba.lower.prelude import call_prelude
from jlkern.engines.numba.lower.registry import arity, builtin, no_method
from jlkern.engines.numba.lower.types import BOOL, FLOAT64, INT64, Prim, promote
from jlkern.engines.numba.lower.values import (
    Complex,
    Scalar,
    Value,
)

_OPS = {"+": "add", "-": "sub", "*": "mul"}


def arithmetic(cx: Context, name: str, a: Value, b: Value) -> Value:
    """`a + b`, `a - b` or `a * b` of two numbers."""
    x, y = as_number(a, b), as_number(b, a)
    if x is None or y is None:
        no_method(cx, name, (a, b))
    if isinstance(x, Scalar) and isinstance(y, Scalar):
        return _real_arithmetic(cx, name, x, y)
    if name == "*":
        return complex_times(cx, x, y)
    if isinstance(x, Scalar) and isinstance(y, Complex):
        im = y.im if name == "+" else negate(cx, y.im)
        return _complex(cx, _real_arithmetic(cx, name, x, y.re), _widen(cx, im, x.type))
    if isinstance(x, Complex) and isinstance(y, Scalar):
        return _complex(cx, _real_arithmetic(cx, name, x.re, y), _widen(cx, x.im, y.type))
    assert isinstance(x, Complex) and isinstance(y, Complex)
    return _complex(cx, _real_arithmetic(cx, name, x.re, y.re), _real_arithmetic(cx, name, x.im, y.im))


def _widen(cx: Context, x: Scalar, other: Prim) -> Scalar:
    ty = promote(x.type, other)
    assert isinstance(ty, Prim)
    return cast(cx, x, ty)


def _complex(cx: Context, re: Scalar, im: Scalar) -> Complex:
    ty = promote(re.type, im.type)
    assert isinstance(ty, Prim)
    return Complex(cast(cx, re, ty), cast(cx, im, ty))


def complex_times(cx: Context, x: Number, y: Number) -> Value:
    """`x * y` where one at least is complex."""
    if isinstance(x, Scalar):
        assert isinstance(y, Complex)
        return _complex(cx, _real_arithmetic(cx, "*", x, y.re), _real_arithmetic(cx, "*", x, y.im))
    if isinstance(y, Scalar):
        return _complex(cx, _real_arithmetic(cx, "*", x.re, y), _real_arithmetic(cx, "*", x.im, y))
    a, b, c, d = (cx.hold(v) for v in (x.re, x.im, y.re, y.im))

    def times(p: Scalar, q: Scalar) -> Scalar:
        return _real_arithmetic(cx, "*", p, q)

    return _complex(
        cx,
        _real_arithmetic(cx, "-", times(a, c), times(b, d)),
        _real_arithmetic(cx, "+", times(a, d), times(b, c)),
    )


def _real_arithmetic(cx: Context, name: str, x: Scalar, y: Scalar) -> Scalar:
    if name in "+*" and (x.type.kind == "bool") != (y.type.kind == "bool"):
        flag, other = (x, y) if x.type.kind == "bool" else (y, x)
        if other.type.kind == "float":  # `false` is a strong zero: false * NaN is 0, false + -0.0 is -0.0
            other = cx.hold(other)
            if name == "+":
                more = cx.op("add", other.type.numpy, other.expr, one_of(other.type).expr)
                return cx.scalar("select", other.type, flag.expr, more, other.expr)
            zero = cx.op("copysign", other.type.numpy, zero_of(other.type).expr, other.expr)
            return cx.scalar("select", other.type, flag.expr, other.expr, zero)
    ty = promote(x.type, y.type)
    if not isinstance(ty, Prim):
        no_method(cx, name, (x, y))
    if ty.kind == "bool":
        if name == "*":
            return cx.scalar("and", BOOL, x.expr, y.expr)
        ty = INT64
    return cx.scalar(_OPS[name], ty, cast(cx, x, ty).expr, cast(cx, y, ty).expr)


def negate(cx: Context, x: Scalar) -> Scalar:
    """Return `-x`."""
    if x.type.kind == "bool":
        x = cast(cx, x, INT64)
    return cx.scalar("neg", x.type, x.expr)


def divide(cx: Context, a: Value, b: Value) -> Value:
    """`a / b` of two numbers."""
    x, y = as_number(a, b), as_number(b, a)
    if x is None or y is None:
        no_method(cx, "/", (a, b))
    if isinstance(x, Scalar) and isinstance(y, Scalar):
        ty = promote(x.type, y.type)
        assert isinstance(ty, Prim)
        ty = ty if ty.kind == "float" else FLOAT64
        return cx.scalar("fdiv", ty, cast(cx, x, ty).expr, cast(cx, y, ty).expr)
    if isinstance(x, Complex) and isinstance(y, Scalar):
        re, im = divide(cx, x.re, y), divide(cx, x.im, y)
        assert isinstance(re, Scalar) and isinstance(im, Scalar)
        return Complex(re, im)
    assert isinstance(y, Complex)
    ty = promote(x.type if isinstance(x, Scalar) else x.re.type, y.re.type)
    assert isinstance(ty, Prim)
    y = Complex(cast(cx, y.re, ty), cast(cx, y.im, ty))
    if isinstance(x, Scalar):
        return arithmetic(cx, "*", x, inverse(cx, (y,)))
    x = Complex(cast(cx, x.re, ty), cast(cx, x.im, ty))
    return call_prelude(cx, "quotient", (x, y))


@builtin("inv")
def inverse(cx: Context, args: tuple[Value, ...]) -> Value:
    """`inv(x)` of a real or complex number."""
    arity(cx, "inv", args, 1)
    x = as_number(args[0])
    if isinstance(x, Complex):
        return call_prelude(cx, "inv", (x,))
    if not isinstance(x, Scalar):
        no_method(cx, "inv", args)
    return divide(cx, one_of(x.type), x)


def repeat(cx: Context, x: Number, n: int) -> Value:
    """`x * x * ...`, n times."""
    if n == 0:
        ty = x.type if isinstance(x, Scalar) else x.re.type
        one = one_of(ty)
        return one if isinstance(x, Scalar) else Complex(one, zero_of(ty))
    if isinstance(x, Scalar) and x.type.kind == "bool":
        return x
    held = cx.hold_all(x)
    result: Value = held
    for _ in range(n - 1):
        result = arithmetic(cx, "*", result, held)
    return result


def _three(name: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 3)
        if any(isinstance(a, Complex) for a in args):
            return arithmetic(cx, "+", arithmetic(cx, "*", args[0], args[1]), args[2])
        x, y, z = together(cx, name, args)
        if x.type.kind != "float":
            return arithmetic(cx, "+", arithmetic(cx, "*", x, y), z)
        return cx.scalar(name, x.type, x.expr, y.expr, z.expr)


_three("muladd")
_three("fma")
