"""Functions of the C library and their like, on real and complex numbers."""

from __future__ import annotations

import math

from jlkern.engines.numba.lower import fold
from jlkern.engines.numba.lower.arithmetic import (
    arithmetic,
    complex_times,
    divide,
)
from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.conversion import (
    floated,
    real,
    together,
)
from jlkern.engines.numba.lower.registry import arity, builtin, no_method
from jlkern.engines.numba.lower.simt import Expr, Lit
from jlkern.engines.numba.lower.values import (
    Complex,
    Scalar,
    Tuple,
    Value,
    constant,
)

_DOMAINS: dict[str, str] = {
    "sqrt": "negative", "log": "negative", "log2": "negative", "log10": "negative", "log1p": "below -1",
    "asin": "beyond 1", "acos": "beyond 1", "acosh": "below 1", "atanh": "beyond 1", "sin": "infinite",
    "cos": "infinite", "tan": "infinite",
}  # fmt: skip
_UNARY = ("sqrt", "cbrt", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin",
          "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")  # fmt: skip


def outside(cx: Context, rule: str, x: Scalar) -> Expr:
    kind = x.type.numpy
    if rule == "negative":
        return cx.op("lt", "bool", x.expr, Lit(0.0, kind))
    if rule == "below -1":
        return cx.op("lt", "bool", x.expr, Lit(-1.0, kind))
    if rule == "below 1":
        return cx.op("lt", "bool", x.expr, Lit(1.0, kind))
    size = cx.op("abs", kind, x.expr)
    if rule == "beyond 1":
        return cx.op("gt", "bool", size, Lit(1.0, kind))
    return cx.op("eq", "bool", size, Lit(math.inf, kind))


def unary(cx: Context, name: str, x: Scalar) -> Scalar:
    """Apply a mathematical function of one real number."""
    x = cx.hold(floated(cx, x))
    if name in _DOMAINS:
        cx.check(outside(cx, _DOMAINS[name], x), "DomainError", f"an argument of {name} is {_DOMAINS[name]}", soft=True)
    return cx.scalar(name, x.type, x.expr)


def _unary(name: str) -> None:
    aliases = (name, "√") if name == "sqrt" else (name, "∛") if name == "cbrt" else (name,)

    @builtin(*aliases)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        if name == "atan" and len(args) == 2:
            y, x = (floated(cx, v) for v in together(cx, "atan", args))
            return cx.scalar("atan2", y.type, y.expr, x.expr)
        if name == "log" and len(args) == 2:
            return divide(cx, unary(cx, "log", real(cx, args[1], name)), unary(cx, "log", real(cx, args[0], name)))
        arity(cx, name, args, 1)
        if isinstance(args[0], Complex):
            return _complex_unary(cx, name, args[0])
        return unary(cx, name, real(cx, args[0], name))


for _name in _UNARY:
    _unary(_name)


def _complex_unary(cx: Context, name: str, z: Complex) -> Value:
    if name == "exp":
        re = cx.hold(floated(cx, z.re))
        im = cx.hold(floated(cx, z.im))
        size = cx.hold(unary(cx, "exp", re))
        cos, sin = unary(cx, "cos", im), unary(cx, "sin", im)
        return complex_times(cx, size, Complex(cos, sin))
    no_method(cx, name, (z,))


@builtin("sincos")
def _sincos(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "sincos", args, 1)
    x = cx.hold(real(cx, args[0], "sincos"))
    return Tuple((unary(cx, "sin", x), unary(cx, "cos", x)))


def _pi_scaled(name: str, inner: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 1)
        x = floated(cx, real(cx, args[0], name))
        return cx.scalar(name, x.type, x.expr)


_pi_scaled("sinpi", "sin")
_pi_scaled("cospi", "cos")


@builtin("cis")
def _cis(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "cis", args, 1)
    x = cx.hold(real(cx, args[0], "cis"))
    return Complex(unary(cx, "cos", x), unary(cx, "sin", x))


@builtin("hypot")
def hypot(cx: Context, args: tuple[Value, ...]) -> Value:
    if len(args) == 3:
        return hypot(cx, (hypot(cx, args[:2]), args[2]))
    arity(cx, "hypot", args, 2)
    x, y = (floated(cx, v) for v in together(cx, "hypot", args))
    return cx.scalar("hypot", x.type, x.expr, y.expr)


@builtin("deg2rad")
def _deg2rad(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "deg2rad", args, 1)
    x = floated(cx, real(cx, args[0], "deg2rad"))
    return arithmetic(cx, "*", x, constant(fold.wrap(math.pi / 180, x.type.numpy), x.type))


@builtin("rad2deg")
def _rad2deg(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "rad2deg", args, 1)
    x = floated(cx, real(cx, args[0], "rad2deg"))
    return arithmetic(cx, "*", x, constant(fold.wrap(180 / math.pi, x.type.numpy), x.type))
