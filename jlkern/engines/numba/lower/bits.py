"""Bit operations, shifts and reinterpretation."""

from __future__ import annotations

from jlkern.engines.numba.lower.context import Context, as_scalar, truth
from jlkern.engines.numba.lower.conversion import (
    cast,
    together,
)
from jlkern.engines.numba.lower.registry import BUILTINS, arity, builtin, no_method
from jlkern.engines.numba.lower.types import BOOL, INT64, UINT64, Prim
from jlkern.engines.numba.lower.values import (
    Scalar,
    TypeValue,
    Value,
)


def _bitwise(names: str, op: str) -> None:
    @builtin(*names.split())
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        if len(args) < 2:
            no_method(cx, names.split()[0], args)
        values = together(cx, names.split()[0], args)
        if values[0].type.kind == "float":
            no_method(cx, names.split()[0], args)
        result = values[0].expr
        for value in values[1:]:
            result = cx.op(op, value.type.numpy, result, value.expr)
        return as_scalar(values[0].type, result)


for _names, _op in (("&", "and"), ("|", "or"), ("⊻ xor", "xor")):
    _bitwise(_names, _op)


@builtin("⊼", "nand")
def _nand(cx: Context, args: tuple[Value, ...]) -> Value:
    return _not(cx, (BUILTINS["&"](cx, args),))


@builtin("⊽", "nor")
def _nor(cx: Context, args: tuple[Value, ...]) -> Value:
    return _not(cx, (BUILTINS["|"](cx, args),))


@builtin("~")
def _not(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "~", args, 1)
    x = args[0]
    if not isinstance(x, Scalar) or x.type.kind == "float":
        no_method(cx, "~", args)
    return cx.scalar("not", x.type, x.expr)


@builtin("!")
def _logical_not(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "!", args, 1)
    x = args[0]
    if not isinstance(x, Scalar) or x.type != BOOL:
        no_method(cx, "!", args)
    return truth(cx.op("not", "bool", x.expr))


def _shift(name: str, op: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 2)
        x, n = args
        if not isinstance(x, Scalar) or not isinstance(n, Scalar) or "float" in (x.type.kind, n.type.kind):
            no_method(cx, name, args)
        if x.type.kind == "bool":
            x = cast(cx, x, INT64)
        if n.type.kind == "int" and not (n.is_const and n.const >= 0):
            return cx.scalar(f"{op}_any", x.type, x.expr, cast(cx, n, INT64).expr)
        return cx.scalar(op, x.type, x.expr, cast(cx, n, UINT64).expr)


for _name, _op in (("<<", "shl"), (">>", "shr"), (">>>", "ushr")):
    _shift(_name, _op)


def _count(name: str, op: str, invert: bool = False) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 1)
        x = args[0]
        if not isinstance(x, Scalar) or x.type.kind == "float":
            no_method(cx, name, args)
        expr = cx.op("not", x.type.numpy, x.expr) if invert else x.expr
        return cast(cx, as_scalar(x.type, cx.op(op, x.type.numpy, expr)), INT64)


for _name, _op in (("leading", "ctlz"), ("trailing", "cttz")):
    _count(f"{_name}_zeros", _op)
    _count(f"{_name}_ones", _op, True)
_count("count_ones", "ctpop")
_count("count_zeros", "ctpop", True)


@builtin("reinterpret")
def _reinterpret(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "reinterpret", args, 2)
    ty, x = args
    if not isinstance(ty, TypeValue) or not isinstance(ty.type, Prim) or not isinstance(x, Scalar):
        no_method(cx, "reinterpret", args)
    if ty.type.bits != x.type.bits or BOOL in (ty.type, x.type):
        cx.unsupported(f"reinterpret of {x.type} as {ty.type}", "both need the same size")
    return x if ty.type == x.type else cx.scalar("bitcast", ty.type, x.expr)
