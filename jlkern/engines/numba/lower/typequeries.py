"""Types as values: `typeof`, `isa`, `convert`, `promote_type`, `zero`, ..."""

from __future__ import annotations

from typing import Any, NoReturn

from jlkern.engines.numba.lower.construct import made
from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.conversion import convert, zero_like
from jlkern.engines.numba.lower.registry import arity, builtin, no_method
from jlkern.engines.numba.lower.types import BOOL, Abstract, ComplexT, Prim, match, promote
from jlkern.engines.numba.lower.values import Cartesian, Static, Tuple, TypeValue, Value, constant, int64, type_of


@builtin("typeof")
def _typeof(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "typeof", args, 1)
    return TypeValue(type_of(args[0]))


@builtin("isa")
def _isa(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isa", args, 2)
    if not isinstance(args[1], TypeValue):
        no_method(cx, "isa", args)
    return constant(match(type_of(args[0]), args[1].type, {}), BOOL)


@builtin("<:")
def _subtype(cx: Context, args: tuple[Value, ...]) -> Value:
    from jlkern.engines.numba.lower.types import is_subtype

    arity(cx, "<:", args, 2)
    if not all(isinstance(a, TypeValue) for a in args):
        no_method(cx, "<:", args)
    a, b = (v.type for v in args if isinstance(v, TypeValue))
    return constant(is_subtype(a, b), BOOL)


@builtin("convert")
def _convert(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "convert", args, 2)
    if not isinstance(args[0], TypeValue):
        no_method(cx, "convert", args)
    ty = args[0].type
    if isinstance(ty, (Prim, ComplexT)):
        return convert(cx, args[1], ty)
    if match(type_of(args[1]), ty, {}):
        return args[1]
    from jlkern.engines.numba.lower.construct import construct

    return construct(cx, ty, args[1:])


@builtin("oftype")
def _oftype(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "oftype", args, 2)
    return _convert(cx, (TypeValue(type_of(args[0])), args[1]))


@builtin("promote_type")
def _promote_type(cx: Context, args: tuple[Value, ...]) -> Value:
    ty: Any = None
    for arg in args:
        if not isinstance(arg, TypeValue):
            no_method(cx, "promote_type", args)
        ty = arg.type if ty is None else promote(ty, arg.type)
        if ty is None:
            no_method(cx, "promote_type", args)
    return TypeValue(ty)


@builtin("promote")
def _promote(cx: Context, args: tuple[Value, ...]) -> Value:
    ty = _promote_type(cx, tuple(TypeValue(type_of(a)) for a in args))
    assert isinstance(ty, TypeValue)
    return Tuple(tuple(convert(cx, a, ty.type) for a in args))


def _refuse_array(cx: Context, name: str) -> NoReturn:
    cx.unsupported(f"`{name}` makes an array", "kernels do not allocate; use `@private T (n,)` or a static array")


def _unit(name: str, unit: bool) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        if name in ("zeros", "ones") and len(args) != 1:
            _refuse_array(cx, name)
        arity(cx, name, args, 1)
        x = args[0]
        if isinstance(x, Static) and not unit:
            return Static(x.dims, tuple(zero_like(cx, v, name, False) for v in x.items))
        if isinstance(x, Cartesian):
            return Cartesian(tuple(int64(int(unit)) for _ in x.items))
        ty: Any = getattr(x, "type", None)
        if name in ("zeros", "ones") and not hasattr(ty, "dims") and not isinstance(ty, Abstract):
            _refuse_array(cx, name)
        if isinstance(x, TypeValue) and getattr(ty, "name", "") in ("SVector", "SMatrix", "MVector", "MMatrix"):
            return _static_zero(cx, ty, unit)
        if isinstance(x, TypeValue) and hasattr(ty, "dims"):
            count = 1
            for d in ty.dims:
                count *= d
            return Static(ty.dims, tuple(zero_like(cx, TypeValue(ty.elem), name, unit) for _ in range(count)))
        return zero_like(cx, x, name, unit)


def _static_zero(cx: Context, ty: Any, unit: bool) -> Value:
    rank = 1 if ty.name.endswith("Vector") else 2
    dims, elem = ty.args[:rank], ty.args[rank]
    count = 1
    for d in dims:
        count *= d
    items = tuple(zero_like(cx, TypeValue(elem), "zero", unit) for _ in range(count))
    return made(cx, tuple(dims), elem, items, ty.name.startswith("M"))


for _name, _is_unit in (("zero", False), ("zeros", False), ("one", True), ("ones", True), ("oneunit", True)):
    _unit(_name, _is_unit)
