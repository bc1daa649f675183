"""What a number is, and the limits of its type."""

from __future__ import annotations

import math
from typing import Any

from jlkern.engines.numba.lower.comparison import equal
from jlkern.engines.numba.lower.context import Context, truth
from jlkern.engines.numba.lower.conversion import (
    cast,
    convert,
    floated,
    limits,
    one_of,
    prim_of,
    real,
    zero_of,
)
from jlkern.engines.numba.lower.mathematics import outside
from jlkern.engines.numba.lower.prelude import call_prelude
from jlkern.engines.numba.lower.registry import arity, builtin, no_method
from jlkern.engines.numba.lower.simt import Lit
from jlkern.engines.numba.lower.types import (
    BOOL,
    FLOAT64,
    FLOATS,
    INTS,
    UINTS,
    CartesianT,
    ComplexT,
    Prim,
    StaticT,
    TupleT,
)
from jlkern.engines.numba.lower.values import (
    Complex,
    Scalar,
    TypeValue,
    Value,
    constant,
    int64,
)


@builtin("isnan")
def _isnan(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isnan", args, 1)
    if isinstance(args[0], Complex):
        return call_prelude(cx, "isnan", args)
    x = cx.hold(real(cx, args[0], "isnan"))
    return truth(cx.op("ne", "bool", x.expr, x.expr)) if x.type.kind == "float" else constant(False, BOOL)


@builtin("isinf")
def _isinf(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isinf", args, 1)
    if isinstance(args[0], Complex):
        return call_prelude(cx, "isinf", args)
    x = real(cx, args[0], "isinf")
    return truth(outside(cx, "infinite", x)) if x.type.kind == "float" else constant(False, BOOL)


@builtin("isfinite")
def _isfinite(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isfinite", args, 1)
    if isinstance(args[0], Complex):
        return call_prelude(cx, "isfinite", args)
    x = real(cx, args[0], "isfinite")
    if x.type.kind != "float":
        return constant(True, BOOL)
    return truth(cx.op("lt", "bool", cx.op("abs", x.type.numpy, x.expr), Lit(math.inf, x.type.numpy)))


@builtin("isbitstype")
def _isbitstype(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isbitstype", args, 1)
    if not isinstance(args[0], TypeValue):
        no_method(cx, "isbitstype", args)
    return constant(_bits(args[0].type), BOOL)


def _bits(ty: Any) -> bool:
    if isinstance(ty, TupleT):
        return all(map(_bits, ty.items))
    return isinstance(ty, (Prim, ComplexT, CartesianT)) or (isinstance(ty, StaticT) and not ty.mutable)


@builtin("iszero")
def _iszero(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "iszero", args, 1)
    return equal(cx, args[0], int64(0))


@builtin("isone")
def _isone(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isone", args, 1)
    return equal(cx, args[0], int64(1))


def _parity(name: str, odd: bool) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 1)
        x = args[0]
        if not isinstance(x, Scalar):
            no_method(cx, name, args)
        if x.type.kind == "float":
            rest = cx.op("abs", x.type.numpy, cx.op("frem", x.type.numpy, x.expr, Lit(2.0, x.type.numpy)))
            return truth(cx.op("eq", "bool", rest, Lit(1.0 if odd else 0.0, x.type.numpy)))
        low = cx.op("and", x.type.numpy, x.expr, one_of(x.type).expr)
        return truth(cx.op("ne" if odd else "eq", "bool", low, zero_of(x.type).expr))


_parity("iseven", False)
_parity("isodd", True)


@builtin("ispow2")
def _ispow2(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "ispow2", args, 1)
    x = args[0]
    if not isinstance(x, Scalar) or x.type.kind not in ("int", "uint"):
        no_method(cx, "ispow2", args)
    ones = cx.op("eq", "bool", cx.op("ctpop", x.type.numpy, x.expr), one_of(x.type).expr)
    return truth(cx.op("and", "bool", cx.op("gt", "bool", x.expr, zero_of(x.type).expr), ones))


def _limit(name: str, low: bool) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 1)
        ty = prim_of(cx, args[0], name)
        if not isinstance(ty, Prim):
            no_method(cx, name, args)
        if ty.kind == "float":
            return constant(-math.inf if low else math.inf, ty)
        value = limits(ty)[0 if low else 1]
        return constant(bool(value) if ty == BOOL else value, ty)


_limit("typemin", True)
_limit("typemax", False)


@builtin("eps")
def _eps(cx: Context, args: tuple[Value, ...]) -> Value:
    ty = prim_of(cx, args[0], "eps") if args else FLOAT64
    if args and not isinstance(args[0], TypeValue):
        return call_prelude(cx, "eps", args)
    return constant({"float32": 2.0**-23, "float64": 2.0**-52}[ty.numpy], ty)


@builtin("floatmax")
def _floatmax(cx: Context, args: tuple[Value, ...]) -> Value:
    import numpy as np

    ty = prim_of(cx, args[0], "floatmax") if args else FLOAT64
    return constant(float(np.finfo(ty.numpy).max), ty)


@builtin("floatmin")
def _floatmin(cx: Context, args: tuple[Value, ...]) -> Value:
    import numpy as np

    ty = prim_of(cx, args[0], "floatmin") if args else FLOAT64
    return constant(float(np.finfo(ty.numpy).tiny), ty)


def _other_sign(name: str, types: tuple[Prim, ...]) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 1)
        ty = prim_of(cx, args[0], name)
        if not isinstance(ty, Prim) or ty.kind == "float":
            no_method(cx, name, args)
        target = next(t for t in types if t.bits == (64 if ty == BOOL else ty.bits))
        return TypeValue(target) if isinstance(args[0], TypeValue) else cast(cx, real(cx, args[0], name), target)


_other_sign("signed", INTS)
_other_sign("unsigned", UINTS)


@builtin("float")
def _float(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "float", args, 1)
    x = args[0]
    if isinstance(x, TypeValue):
        ty = x.type
        inner = ty.elem if isinstance(ty, ComplexT) else ty
        inner = inner if inner.kind == "float" else FLOAT64
        return TypeValue(ComplexT(inner) if isinstance(ty, ComplexT) else inner)
    if isinstance(x, Complex):
        return Complex(floated(cx, x.re), floated(cx, x.im))
    return floated(cx, real(cx, x, "float"))


@builtin("widen")
def _widen_fn(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "widen", args, 1)
    ty = prim_of(cx, args[0], "widen")
    if not isinstance(ty, Prim) or ty.bits == 64 or ty == BOOL:
        cx.unsupported(f"`widen` of {ty}")
    types = {"int": INTS, "uint": UINTS, "float": FLOATS}[ty.kind]
    wider = next(t for t in types if t.bits == 2 * ty.bits)
    return TypeValue(wider) if isinstance(args[0], TypeValue) else convert(cx, args[0], wider)
