"""Parts of tuples, named tuples and ranges: ends, slices, `zip`, `enumerate`, `merge`; and making ranges."""

from __future__ import annotations

from jlkern.engines.numba.lower import fold
from jlkern.engines.numba.lower import folds as _folds
from jlkern.engines.numba.lower import functions as _functions
from jlkern.engines.numba.lower import typequeries as _typequeries
from jlkern.engines.numba.lower import vectors as _vectors
from jlkern.engines.numba.lower.arithmetic import negate
from jlkern.engines.numba.lower.arrays import load_index
from jlkern.engines.numba.lower.comparison import equal
from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.conversion import convert, to_prim
from jlkern.engines.numba.lower.items import items_of
from jlkern.engines.numba.lower.registry import BUILTINS, arity, builtin, no_method
from jlkern.engines.numba.lower.types import BOOL, INT64, ComplexT, JType, Prim, promote
from jlkern.engines.numba.lower.values import (
    Array,
    Cartesian,
    CartesianRange,
    LinearRange,
    Nothing,
    Pair,
    Range,
    Scalar,
    Static,
    Struct,
    Symbol,
    Tuple,
    TypeValue,
    Value,
    Zipped,
    constant,
    int64,
    leaves,
    rebuild,
    type_of,
)

assert _folds and _functions and _typequeries and _vectors  # they register built-ins


@builtin("OneTo")
def _one_to(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "OneTo", args, 1)
    return colon(cx, (int64(1), args[0]))


@builtin("first")
def _first(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "first", args, 1)
    if isinstance(args[0], Range):
        return args[0].start
    if isinstance(args[0], Pair):
        return args[0].first
    return load_index(cx, args[0], (int64(1),))


def _end(cx: Context, r: Range) -> Value:
    """The last number of a range; of an empty one, what Julia has in its place: the one before the first."""
    one = constant(1, r.elem).expr
    before, after = (cx.op(op, r.elem.numpy, r.start.expr, one) for op in ("sub", "add"))
    if r.step is None:
        return cx.scalar("select", r.elem, cx.op("ge", "bool", r.stop.expr, r.start.expr), r.stop.expr, before)
    count = BUILTINS["length"](cx, (r,))
    found = load_index(cx, r, (count,))
    assert isinstance(count, Scalar) and isinstance(found, Scalar)
    up = cx.op("gt", "bool", r.step.expr, constant(0, r.elem).expr)
    nothing = cx.op("select", r.elem.numpy, up, before, after)
    empty = cx.op("eq", "bool", count.expr, constant(0, count.type).expr)
    return cx.scalar("select", r.elem, empty, nothing, found.expr)


@builtin("last")
def _last(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "last", args, 1)
    if isinstance(args[0], Range):
        return _end(cx, args[0])
    if isinstance(args[0], Pair):
        return args[0].second
    count = BUILTINS["length"](cx, args)
    return load_index(cx, args[0], (count,))


@builtin("step")
def _step(cx: Context, args: tuple[Value, ...]) -> Value:
    value = args[0]
    if not isinstance(value, Range):
        no_method(cx, "step", args)
    return value.step or constant(1, value.elem)


@builtin("reverse")
def _reverse(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "reverse", args, 1)
    value = args[0]
    if isinstance(value, Range):
        step = value.step or constant(1, value.elem)
        last = load_index(cx, value, (BUILTINS["length"](cx, args),))
        assert isinstance(last, Scalar)
        return Range(cx.hold(last), value.start, negate(cx, step))
    items = items_of(cx, value, "reverse")
    return Static(value.dims, items[::-1]) if isinstance(value, Static) else Tuple(items[::-1])


@builtin("Base.tail", "tail")
def _tail(cx: Context, args: tuple[Value, ...]) -> Value:
    return Tuple(items_of(cx, args[0], "tail")[1:])


@builtin("front")
def _front(cx: Context, args: tuple[Value, ...]) -> Value:
    return Tuple(items_of(cx, args[0], "front")[:-1])


@builtin("isempty")
def _isempty(cx: Context, args: tuple[Value, ...]) -> Value:
    count = BUILTINS["length"](cx, args)
    return equal(cx, count, int64(0))


def _lazy(value: Value) -> bool:
    """Tell whether the items of a value are not known one by one at compile time."""
    if isinstance(value, Range):
        return not (value.start.is_const and value.stop.is_const and (value.step is None or value.step.is_const))
    if isinstance(value, Array):
        return value.static is None
    return isinstance(value, (CartesianRange, LinearRange, Zipped))


@builtin("zip")
def _zip(cx: Context, args: tuple[Value, ...]) -> Value:
    if any(_lazy(a) for a in args):
        return Zipped(args)
    columns = [items_of(cx, a, "zip") for a in args]
    return Tuple(tuple(Tuple(row) for row in zip(*columns, strict=False)))


@builtin("enumerate")
def _enumerate(cx: Context, args: tuple[Value, ...]) -> Value:
    if _lazy(args[0]):
        return Zipped((Range(int64(1), BUILTINS["length"](cx, args)), args[0]))  # type: ignore[arg-type]
    items = items_of(cx, args[0], "enumerate")
    return Tuple(tuple(Tuple((int64(k + 1), v)) for k, v in enumerate(items)))


@builtin("getfield", "getproperty")
def _getfield(cx: Context, args: tuple[Value, ...]) -> Value:
    from jlkern.engines.numba.lower.structs import get_field

    arity(cx, "getfield", args, 2)
    if isinstance(args[1], Symbol):
        return get_field(cx, args[0], args[1].name)
    if isinstance(args[0], Struct):
        return load_index(cx, Tuple(args[0].fields), args[1:])
    return load_index(cx, args[0], args[1:])


@builtin("keys")
def _keys(cx: Context, args: tuple[Value, ...]) -> Value:
    if isinstance(args[0], Tuple) and args[0].names is not None:
        return Tuple(tuple(Symbol(k) for k in args[0].names))
    return BUILTINS["eachindex"](cx, args)


@builtin("values")
def _values(cx: Context, args: tuple[Value, ...]) -> Value:
    return Tuple(items_of(cx, args[0], "values"))


@builtin("setindex")
def _setindex(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "setindex", args, 3)
    value, new, at = args
    if not isinstance(value, (Tuple, Static)) or not isinstance(at, Scalar):
        no_method(cx, "setindex", args)
    items = []
    for k, item in enumerate(value.items):
        here = equal(cx, at, int64(k + 1)).expr
        fresh = convert(cx, new, type_of(item)) if isinstance(type_of(item), (Prim, ComplexT)) else new
        parts = zip(leaves(fresh), leaves(item), strict=True)
        items.append(rebuild(item, iter([cx.scalar("select", y.type, here, x.expr, y.expr) for x, y in parts])))
    return Static(value.dims, tuple(items)) if isinstance(value, Static) else Tuple(tuple(items), value.names)


@builtin("merge")
def _merge(cx: Context, args: tuple[Value, ...]) -> Value:
    found: dict[str, Value] = {}
    for arg in args:
        if not isinstance(arg, Tuple) or arg.names is None:
            no_method(cx, "merge", args)
        found.update(zip(arg.names, arg.items, strict=True))
    return Tuple(tuple(found.values()), tuple(found))


@builtin("haskey", "hasproperty", "hasfield")
def _haskey(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "haskey", args, 2)
    holder, name = args
    if not isinstance(name, Symbol):
        no_method(cx, "haskey", args)
    if isinstance(holder, Tuple) and holder.names is not None:
        return constant(name.name in holder.names, BOOL)
    if isinstance(holder, Struct):
        return constant(name.name in [field for field, _ in holder.definition.fields], BOOL)
    no_method(cx, "haskey", args)


@builtin("isnothing")
def _isnothing(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isnothing", args, 1)
    return constant(isinstance(args[0], Nothing), BOOL)


@builtin("something")
def _something(cx: Context, args: tuple[Value, ...]) -> Value:
    for arg in args:
        if not isinstance(arg, Nothing):
            return arg
    cx.check(fold.TRUE, "KernelThrownError", "ArgumentError: No value arguments present")
    cx.dead = True
    return Nothing()


@builtin("sizeof")
def _sizeof(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "sizeof", args, 1)
    ty = args[0].type if isinstance(args[0], TypeValue) else type_of(args[0])
    inner = ty.elem if isinstance(ty, ComplexT) else ty
    if not isinstance(inner, Prim):
        no_method(cx, "sizeof", args)
    return int64(inner.bits // 8 * (2 if isinstance(ty, ComplexT) else 1))


@builtin(":")
def colon(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, ":", args, 2, 3)
    if all(isinstance(a, Cartesian) for a in args) and len(args) == 2:
        low, high = (a.items for a in args if isinstance(a, Cartesian))
        return CartesianRange(tuple(Range(x, y) for x, y in zip(low, high, strict=True)))
    parts = []
    for arg in args:
        if not isinstance(arg, Scalar):
            no_method(cx, ":", args)
        parts.append(arg)
    ty: JType = parts[0].type
    for part in parts[1:]:
        ty = promote(ty, part.type) or ty
    assert isinstance(ty, Prim)
    if ty.kind == "bool":
        ty = INT64
    parts = [cx.hold(to_prim(cx, p, ty)) for p in parts]
    if len(parts) == 3:
        zero = constant(0, ty).expr
        cx.check(cx.op("eq", "bool", parts[1].expr, zero), "KernelThrownError", "the step of a range is zero")
    return Range(parts[0], parts[1]) if len(parts) == 2 else Range(parts[0], parts[2], parts[1])


@builtin("range")
def _range(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "range", args, 2)
    return colon(cx, args)
