"""Rounding, absolute values and signs."""

from __future__ import annotations

from typing import Any

from jlkern.engines.numba.lower.arithmetic import arithmetic, negate, repeat
from jlkern.engines.numba.lower.context import Context, truth
from jlkern.engines.numba.lower.conversion import (
    as_number,
    cast,
    float_to_int,
    one_of,
    real,
    to_prim,
    zero_of,
)
from jlkern.engines.numba.lower.division import rounding_mode
from jlkern.engines.numba.lower.mathematics import hypot
from jlkern.engines.numba.lower.prelude import call_prelude
from jlkern.engines.numba.lower.registry import arity, builtin, no_method
from jlkern.engines.numba.lower.simt import Expr, Lit
from jlkern.engines.numba.lower.types import BOOL, INT64, Prim
from jlkern.engines.numba.lower.values import Complex, Scalar, TypeValue, Value


@builtin("abs")
def _abs(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "abs", args, 1)
    x = as_number(args[0])
    if isinstance(x, Complex):
        return hypot(cx, (x.re, x.im))
    if not isinstance(x, Scalar):
        no_method(cx, "abs", args)
    return x if x.type.kind in ("bool", "uint") else cx.scalar("abs", x.type, x.expr)


@builtin("abs2")
def _abs2(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "abs2", args, 1)
    x = as_number(args[0])
    if isinstance(x, Complex):
        re, im = cx.hold(x.re), cx.hold(x.im)
        return arithmetic(cx, "+", arithmetic(cx, "*", re, re), arithmetic(cx, "*", im, im))
    if not isinstance(x, Scalar):
        no_method(cx, "abs2", args)
    return repeat(cx, x, 2)


@builtin("sign")
def _sign(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "sign", args, 1)
    x = as_number(args[0])
    if isinstance(x, Complex):
        return call_prelude(cx, "sign", (x,))
    if not isinstance(x, Scalar):
        no_method(cx, "sign", args)
    if x.type.kind == "bool":
        return x
    x = cx.hold(x)
    zero, one = zero_of(x.type).expr, one_of(x.type).expr
    positive = cx.op("gt", "bool", x.expr, zero)
    if x.type.kind == "uint":
        return cx.scalar("select", x.type, positive, one, zero)
    negative = cx.op("select", x.type.numpy, cx.op("lt", "bool", x.expr, zero), cx.op("neg", x.type.numpy, one), x.expr)
    return cx.scalar("select", x.type, positive, one, negative)


def _negative(cx: Context, x: Scalar) -> Expr:
    if x.type.kind == "float":
        return cx.op("signbit", "bool", x.expr)
    return cx.op("lt", "bool", x.expr, zero_of(x.type).expr) if x.type.kind == "int" else Lit(False, "bool")


@builtin("signbit")
def _signbit(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "signbit", args, 1)
    return truth(_negative(cx, real(cx, args[0], "signbit")))


@builtin("copysign")
def _copysign(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "copysign", args, 2)
    x, y = (cx.hold(real(cx, a, "copysign")) for a in args)
    if x.type.kind == "float" and y.type == x.type:
        return cx.scalar("copysign", x.type, x.expr, y.expr)
    return _flipped(cx, x, cx.op("xor", "bool", _negative(cx, x), _negative(cx, y)))


@builtin("flipsign")
def _flipsign(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "flipsign", args, 2)
    y = _negative(cx, real(cx, args[1], "flipsign"))
    if isinstance(args[0], Complex):
        return Complex(*(_flipped(cx, cx.hold(part), y) for part in (args[0].re, args[0].im)))
    return _flipped(cx, cx.hold(real(cx, args[0], "flipsign")), y)


def _flipped(cx: Context, x: Scalar, flip: Expr) -> Scalar:
    x = cast(cx, x, INT64) if x.type == BOOL else x
    return cx.scalar("select", x.type, flip, negate(cx, x).expr, x.expr)


_ROUND = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint"}
_MODES = {"RoundNearest": "rint", "RoundToZero": "trunc", "RoundUp": "ceil", "RoundDown": "floor",
          "RoundNearestTiesAway": "round_away", "RoundNearestTiesUp": "round_up"}  # fmt: skip


def _rounding(name: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        ty: Any = None
        if args and isinstance(args[0], TypeValue):
            ty, args = args[0].type, args[1:]
        if ty is None and len(args) == 1 and isinstance(args[0], Complex):
            return call_prelude(cx, name, args)
        op = _ROUND[name]
        if name == "round" and len(args) == 2:
            mode = rounding_mode(args[1])
            if mode is None:
                no_method(cx, name, args)
            op, args = _MODES[mode], args[:1]
        arity(cx, name, args, 1)
        x = real(cx, args[0], name)
        if x.type.kind == "float":
            x = cx.scalar(op, x.type, x.expr)
        if ty is None:
            return x
        if not isinstance(ty, Prim):
            no_method(cx, name, (TypeValue(ty), x))
        if x.type.kind == "float" and ty.kind != "float":
            return float_to_int(cx, x, ty, exact=False)
        return to_prim(cx, x, ty)


for _name in _ROUND:
    _rounding(_name)


@builtin("unsafe_trunc")
def _unsafe_trunc(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "unsafe_trunc", args, 2)
    ty, x = args
    if not isinstance(ty, TypeValue) or not isinstance(ty.type, Prim) or not isinstance(x, Scalar):
        no_method(cx, "unsafe_trunc", args)
    return cx.scalar("fptoint", ty.type, x.expr) if x.type.kind == "float" else cast(cx, x, ty.type)
