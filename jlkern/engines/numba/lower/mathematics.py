"""Functions of one or two real numbers that are computed in floats."""

from __future__ import annotations

import math

from jlkern.engines.numba.lower import fold
from jlkern.engines.numba.lower.arithmetic import arithmetic, divide
from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.conversion import floated, real, together
from jlkern.engines.numba.lower.prelude import call_prelude
from jlkern.engines.numba.lower.registry import arity, builtin
from jlkern.engines.numba.lower.simt import Expr, Lit
from jlkern.engines.numba.lower.values import Complex, Irrational, Scalar, Tuple, Value, constant, int64

_DOMAINS: dict[str, str] = {
    "sqrt": "negative", "log": "negative", "log2": "negative", "log10": "negative", "log1p": "below -1",
    "asin": "beyond 1", "acos": "beyond 1", "acosh": "below 1", "atanh": "beyond 1", "sin": "infinite",
    "cos": "infinite", "tan": "infinite", "sinpi": "infinite", "cospi": "infinite",
}  # fmt: skip
_UNARY = ("sqrt", "cbrt", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin",
          "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sinpi", "cospi")  # fmt: skip
_ALIASES = {"sqrt": ("sqrt", "√"), "cbrt": ("cbrt", "∛")}
_WHOLE = ("sinpi", "cospi")
_COMPLEX = ("sqrt", "log", "log2", "log10", "exp", "exp2", "exp10", "sin", "cos", "tan", "sinh", "cosh", "tanh")


def outside(cx: Context, rule: str, x: Scalar) -> Expr:
    """Return the test for arguments outside a domain."""
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
    @builtin(*_ALIASES.get(name, (name,)))
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        if name == "atan" and len(args) == 2:
            y, x = together(
                cx, "atan", tuple(a if isinstance(a, Irrational) else floated(cx, real(cx, a, name)) for a in args)
            )
            return cx.scalar("atan2", y.type, y.expr, x.expr)
        if name == "log" and len(args) == 2 and not any(isinstance(a, Complex) for a in args):
            return _log_to_base(cx, *args)
        arity(cx, name, args, 1)
        if name == "log" and isinstance(args[0], Irrational) and args[0].name == "ℯ":
            return int64(1)
        if isinstance(args[0], Complex) and name in _COMPLEX:
            return call_prelude(cx, name, args)
        if name in _WHOLE and isinstance(args[0], Scalar) and args[0].type.kind != "float":
            return call_prelude(cx, name, args)
        return unary(cx, name, real(cx, args[0], name))


for _name in _UNARY:
    _unary(_name)


def _unchecked(name: str, count: int) -> None:
    """For the prelude: a function whose argument is known to lie in its domain."""

    @builtin(f"unchecked_{name}")
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, count)
        values = together(cx, name, args)
        return cx.scalar(name, values[0].type, *(v.expr for v in values))


for _name in ("sqrt", "log", "log1p", "sin", "cos", "tan"):
    _unchecked(_name, 1)
_unchecked("pow", 2)


def _log_to_base(cx: Context, base: Value, value: Value) -> Value:
    b, x = (cx.hold(floated(cx, v)) for v in together(cx, "log", (base, value)))
    bad = cx.op("or", "bool", outside(cx, "negative", b), outside(cx, "negative", x))
    cx.check(bad, "DomainError", "an argument of log is negative", soft=True)
    return cx.scalar("logb", x.type, b.expr, x.expr)


@builtin("sincos")
def _sincos(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "sincos", args, 1)
    x = cx.hold(real(cx, args[0], "sincos"))
    return Tuple((unary(cx, "sin", x), unary(cx, "cos", x)))


@builtin("cis")
def _cis(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "cis", args, 1)
    if isinstance(args[0], Complex):
        return call_prelude(cx, "cis", args)
    x = cx.hold(real(cx, args[0], "cis"))
    return Complex(unary(cx, "cos", x), unary(cx, "sin", x))


@builtin("hypot")
def hypot(cx: Context, args: tuple[Value, ...]) -> Value:
    """`hypot(x, y...)`."""
    if len(args) > 2:
        return hypot(cx, (hypot(cx, args[:2]), *args[2:]))
    arity(cx, "hypot", args, 2)
    x, y = (floated(cx, v) for v in together(cx, "hypot", args))
    return cx.scalar("hypot", x.type, x.expr, y.expr)


def _scaled(name: str, multiply: bool) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 1)
        x = floated(cx, real(cx, args[0], name))
        pi, half = constant(fold.wrap(math.pi, x.type.numpy), x.type), constant(180.0, x.type)
        return arithmetic(cx, "*", x, divide(cx, pi, half) if multiply else divide(cx, half, pi))


_scaled("deg2rad", True)
_scaled("rad2deg", False)
