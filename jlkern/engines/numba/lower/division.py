"""Integer division and its relatives: `div`, `rem`, `mod`, `fld`, `cld`, and those that start from 1."""

from __future__ import annotations

from jlkern.engines.numba.lower.arithmetic import (
    arithmetic,
)
from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.conversion import (
    cast,
    limits,
    together,
    truncated,
    zero_of,
)
from jlkern.engines.numba.lower.registry import arity, builtin
from jlkern.engines.numba.lower.simt import Lit
from jlkern.engines.numba.lower.types import INT64
from jlkern.engines.numba.lower.values import (
    Scalar,
    Tuple,
    TypeValue,
    Value,
)


def integer_division(cx: Context, name: str, a: Value, b: Value) -> Scalar:
    """`div`, `rem`, `mod`, `fld`, `cld` of two real numbers."""
    x, y = together(cx, name, (a, b))
    ty = x.type
    if ty.kind == "float":
        return cx.scalar({"div": "fdivtrunc", "fld": "fdivfloor", "cld": "fdivceil", "rem": "frem", "mod": "fmod"}[name],
                         ty, x.expr, y.expr)  # fmt: skip
    if ty.kind == "bool":
        x, y, ty = cast(cx, x, INT64), cast(cx, y, INT64), INT64
    x, y = cx.hold(x), cx.hold(y)
    if not y.is_const or y.const == 0:
        cx.check(cx.op("eq", "bool", y.expr, zero_of(ty).expr), "DivideError", "integer division by zero")
    if ty.kind == "int" and name in ("div", "fld", "cld") and (not y.is_const or y.const == -1):
        overflow = cx.op("and", "bool", cx.op("eq", "bool", y.expr, Lit(-1, ty.numpy)),
                         cx.op("eq", "bool", x.expr, Lit(limits(ty)[0], ty.numpy)))  # fmt: skip
        cx.check(overflow, "DivideError", f"{ty} division overflow: {{0}} ÷ -1", (x.expr,))
    return cx.scalar(name, ty, x.expr, y.expr)


def _division(names: str, op: str) -> None:
    @builtin(*names.split())
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, names.split()[0], args, 2)
        if op == "rem" and isinstance(args[1], TypeValue):
            return truncated(cx, args[0], args[1].type)
        return integer_division(cx, op, *args)


for _names, _op in (("div ÷", "div"), ("rem %", "rem"), ("mod", "mod"), ("fld", "fld"), ("cld", "cld")):
    _division(_names, _op)


@builtin("mod1")
def _mod1(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "mod1", args, 2)
    x, y = (cx.hold(v) for v in together(cx, "mod1", args))
    m = cx.hold(integer_division(cx, "mod", x, y))
    return cx.scalar(
        "select", m.type, cx.op("eq", "bool", m.expr, zero_of(m.type).expr), cast(cx, y, m.type).expr, m.expr
    )


@builtin("fld1")
def _fld1(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "fld1", args, 2)
    x, y = (cx.hold(v) for v in together(cx, "fld1", args))
    d = cx.hold(integer_division(cx, "fld", x, y))
    if d.type.kind == "float":
        return integer_division(cx, "cld", x, y)
    back = arithmetic(cx, "*", d, y)
    assert isinstance(back, Scalar)
    uneven = cx.op("ne", "bool", back.expr, cast(cx, x, d.type).expr)
    return cx.scalar("add", d.type, d.expr, cx.op("cast", d.type.numpy, uneven))


@builtin("fldmod1")
def _fldmod1(cx: Context, args: tuple[Value, ...]) -> Value:
    return Tuple((_fld1(cx, args), _mod1(cx, args)))


@builtin("divrem")
def _divrem(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "divrem", args, 2)
    return Tuple((integer_division(cx, "div", *args), integer_division(cx, "rem", *args)))


@builtin("fldmod")
def _fldmod(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "fldmod", args, 2)
    return Tuple((integer_division(cx, "fld", *args), integer_division(cx, "mod", *args)))
