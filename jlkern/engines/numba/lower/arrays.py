"""Indexing, sizes and views of arrays, and indexing of everything else that has items."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from jlkern.engines.numba.lower import fold, simt
from jlkern.engines.numba.lower.branches import by_option
from jlkern.engines.numba.lower.context import Context, as_scalar
from jlkern.engines.numba.lower.conversion import cast, convert
from jlkern.engines.numba.lower.registry import arity, builtin, no_method
from jlkern.engines.numba.lower.simt import Expr, Lit
from jlkern.engines.numba.lower.types import BOOL, INT64, ComplexT, Prim
from jlkern.engines.numba.lower.values import (
    Array,
    Cartesian,
    CartesianRange,
    Complex,
    LinearRange,
    Nothing,
    Range,
    Scalar,
    Static,
    Struct,
    Symbol,
    Tuple,
    TypeValue,
    Union,
    Value,
    Zipped,
    int64,
    leaves,
    rebuild,
    same_shape,
    type_of,
)

ONE = Lit(1, "int64")
_MAX_SELECT = 32


def as_index(cx: Context, value: Value) -> Scalar:
    """Return an index as Int64."""
    if not isinstance(value, Scalar) or value.type.kind == "float" or value.type == BOOL:
        cx.unsupported(f"an index of type {type_of(value)}", "indices are integers")
    return cx.hold(cast(cx, value, INT64))


def flat_indices(cx: Context, args: tuple[Value, ...]) -> tuple[Scalar, ...]:
    """Return the indices of `A[args...]`, with CartesianIndex values spread out."""
    found: list[Scalar] = []
    for arg in args:
        if isinstance(arg, Cartesian):
            found.extend(as_index(cx, item) for item in arg.items)
        else:
            found.append(as_index(cx, arg))
    return tuple(found)


def product(cx: Context, sizes: tuple[Scalar, ...]) -> Scalar:
    """Return the product of sizes."""
    total: Expr = ONE
    for size in sizes:
        total = cx.op("mul", "int64", total, size.expr)
    return as_scalar(INT64, total)


def length(cx: Context, array: Array) -> Scalar:
    """Return the number of elements of an array."""
    return product(cx, array.shape)


def address(cx: Context, array: Array, indices: tuple[Scalar, ...]) -> Expr:
    """Return the offset in elements of `array[indices...]`, with its bounds check where one is due."""
    checked = cx.check_bounds or not cx.inbounds
    if len(indices) == 1 and len(array.shape) != 1:
        return _linear_address(cx, array, indices[0], checked)
    if len(indices) < len(array.shape):
        cx.unsupported(f"`{array.name}` has {len(array.shape)} dimensions and is indexed by {len(indices)} numbers")
    if checked:
        _check(cx, array, indices)
    offset = array.offset
    for index, stride in zip(indices, array.strides, strict=False):
        step = cx.op("mul", "int64", cx.op("sub", "int64", index.expr, ONE), stride)
        offset = cx.op("add", "int64", offset, step)
    return offset


def _linear_address(cx: Context, array: Array, index: Scalar, checked: bool) -> Expr:
    if checked:
        total = cx.hold(length(cx, array))
        bad = cx.op("outside", "bool", index.expr, total.expr)
        cx.check(bad, "BoundsError", f"`{array.name}[{{0}}]` is out of bounds: the length is {{1}}",
                 (index.expr, total.expr))  # fmt: skip
    zero_based = cx.op("sub", "int64", index.expr, ONE)
    if array.linear:
        return cx.op("add", "int64", array.offset, zero_based)
    offset = array.offset
    rest = cx.hold(as_scalar(INT64, zero_based))
    for at, (size, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        last = at == len(array.shape) - 1
        part = rest.expr if last else cx.op("urem", "int64", rest.expr, size.expr)
        offset = cx.op("add", "int64", offset, cx.op("mul", "int64", part, stride))
        if not last:
            rest = cx.hold(as_scalar(INT64, cx.op("udiv", "int64", rest.expr, size.expr)))
    return offset


def _check(cx: Context, array: Array, indices: tuple[Scalar, ...]) -> None:
    bad: Expr = fold.FALSE
    for at, index in enumerate(indices):
        size = array.shape[at].expr if at < len(array.shape) else ONE
        bad = cx.op("or", "bool", bad, cx.op("outside", "bool", index.expr, size))
    count = len(indices)
    index_text = ", ".join(f"{{{k}}}" for k in range(count))
    size_text = ", ".join(f"{{{count + k}}}" for k in range(len(array.shape)))
    comma = "," if len(array.shape) == 1 else ""
    details = (*(i.expr for i in indices), *(s.expr for s in array.shape))
    cx.check(
        bad, "BoundsError", f"`{array.name}[{index_text}]` is out of bounds: the size is ({size_text}{comma})", details
    )


def load_element(cx: Context, array: Array, offset: Expr) -> Value:
    """Read one element."""
    if not isinstance(array.elem, ComplexT):
        return cx.load(array.memory, offset)
    twice = cx.op("mul", "int64", offset, Lit(2, "int64"))
    twice = cx.hold(as_scalar(INT64, twice)).expr
    re = cx.load(array.memory, twice)
    return Complex(re, cx.load(array.memory, cx.op("add", "int64", twice, ONE)))


def store_element(cx: Context, array: Array, offset: Expr, value: Value) -> None:
    """Write one element, converted to the element type."""
    value = convert(cx, value, array.elem)
    if isinstance(value, Scalar):
        cx.emit(simt.Store(array.memory, offset, value.expr))
        return
    assert isinstance(value, Complex)
    value = cx.hold_all(value)
    assert isinstance(value, Complex)
    twice = cx.hold(as_scalar(INT64, cx.op("mul", "int64", offset, Lit(2, "int64")))).expr
    cx.emit(simt.Store(array.memory, twice, value.re.expr))
    cx.emit(simt.Store(array.memory, cx.op("add", "int64", twice, ONE), value.im.expr))


def load_index(cx: Context, obj: Value, args: tuple[Value, ...]) -> Value:
    """`obj[args...]`."""
    if isinstance(obj, Union):
        return by_option(cx, obj, lambda option: load_index(cx, option, args))
    for at, arg in enumerate(args):
        if isinstance(arg, Union):
            return by_option(cx, arg, partial(_with_option, cx, obj, args, at))
    if isinstance(obj, Array):
        if any(isinstance(a, (Range, Symbol, CartesianRange)) for a in args):
            cx.unsupported(f"the slice of `{obj.name}` would allocate", "use @view")
        return load_element(cx, obj, address(cx, obj, flat_indices(cx, args)))
    if isinstance(obj, (Tuple, Static, Cartesian)):
        return _item(cx, obj, args)
    if isinstance(obj, Range) and len(args) == 1:
        index = as_index(cx, args[0])
        if cx.check_bounds or not cx.inbounds:
            count = cx.hold(range_length(cx, obj)).expr
            cx.check(cx.op("outside", "bool", index.expr, count), "BoundsError",
                     "index {0} of a range of {1} numbers is out of bounds", (index.expr, count))  # fmt: skip
        k = cx.op("sub", "int64", index.expr, ONE)
        step = Lit(1, "int64") if obj.step is None else cast(cx, obj.step, INT64).expr
        value = cx.op("add", "int64", cast(cx, obj.start, INT64).expr, cx.op("mul", "int64", k, step))
        return cast(cx, as_scalar(INT64, value), obj.elem)
    if isinstance(obj, CartesianRange):
        return _cartesian_item(cx, obj, flat_indices(cx, args))
    if isinstance(obj, LinearRange):
        indices = flat_indices(cx, args)
        if len(indices) == 1:
            return indices[0]
        total, scale = Lit(0, "int64"), ONE
        result: Expr = total
        for index, size in zip(indices, obj.dims, strict=True):
            result = cx.op("add", "int64", result, cx.op("mul", "int64", cx.op("sub", "int64", index.expr, ONE), scale))
            scale = cx.op("mul", "int64", scale, size.expr)  # type: ignore[assignment]
        return as_scalar(INT64, cx.op("add", "int64", result, ONE))
    if isinstance(obj, Scalar) and all(isinstance(a, Scalar) and a.const == 1 for a in args):
        return obj
    if isinstance(obj, Struct):
        cx.unsupported(f"indexing the struct {type_of(obj)}")
    cx.unsupported(f"indexing a {type_of(obj)}")


def _with_option(cx: Context, obj: Value, args: tuple[Value, ...], at: int, option: Value) -> Value:
    return load_index(cx, obj, (*args[:at], option, *args[at + 1 :]))


def _cartesian_item(cx: Context, obj: CartesianRange, indices: tuple[Scalar, ...]) -> Value:
    if len(indices) == len(obj.ranges):
        items = [load_index(cx, r, (i,)) for r, i in zip(obj.ranges, indices, strict=True)]
        return Cartesian(tuple(i for i in items if isinstance(i, Scalar)))
    if len(indices) != 1:
        cx.unsupported("this index of CartesianIndices")
    rest = cx.hold(as_scalar(INT64, cx.op("sub", "int64", indices[0].expr, ONE)))
    found: list[Scalar] = []
    for at, part in enumerate(obj.ranges):
        size = cx.hold(range_length(cx, part))
        last = at == len(obj.ranges) - 1
        k = rest.expr if last else cx.op("urem", "int64", rest.expr, size.expr)
        item = load_index(cx, part, (as_scalar(INT64, cx.op("add", "int64", k, ONE)),))
        assert isinstance(item, Scalar)
        found.append(cx.hold(item))
        if not last:
            rest = cx.hold(as_scalar(INT64, cx.op("udiv", "int64", rest.expr, size.expr)))
    return Cartesian(tuple(found))


def _item(cx: Context, obj: Tuple | Static | Cartesian, args: tuple[Value, ...]) -> Value:
    items: tuple[Value, ...] = obj.items
    if len(args) == 1 and isinstance(args[0], Symbol) and isinstance(obj, Tuple) and obj.names is not None:
        if args[0].name in obj.names:
            return items[obj.names.index(args[0].name)]
    if len(args) == 1 and isinstance(args[0], Range):
        picked = args[0]
        if not (picked.start.is_const and picked.stop.is_const and (picked.step is None or picked.step.is_const)):
            cx.unsupported("a slice of a tuple whose ends are not known at compile time")
        step = picked.step.const if picked.step is not None else 1
        chosen = range(picked.start.const, picked.stop.const + (1 if step > 0 else -1), step)
        if any(not 1 <= k <= len(items) for k in chosen):
            cx.unsupported(f"the slice {picked.start.const}:{picked.stop.const} of {len(items)} items is out of bounds")
        return Tuple(tuple(items[k - 1] for k in chosen))
    if len(args) == 1 and isinstance(args[0], Symbol) and args[0].name == ":":
        return obj
    index = _static_index(cx, obj, args)
    if index.is_const:
        if not 1 <= index.const <= len(items):
            cx.check(fold.TRUE, "BoundsError", f"index {index.const} of {len(items)} items is out of bounds")
            cx.dead = True
            return items[0] if items else Nothing()
        return items[int(index.const) - 1]
    if any(not same_shape(items[0], item) for item in items[1:]):
        cx.unsupported("a tuple of different types is indexed by a number that is not known at compile time")
    if len(items) > _MAX_SELECT:
        cx.unsupported(f"a tuple of {len(items)} items is indexed by a number that is not known at compile time",
                       f"pass a table of more than {_MAX_SELECT} entries as an array")  # fmt: skip
    if cx.check_bounds or not cx.inbounds:
        count = Lit(len(items), "int64")
        bad = cx.op("outside", "bool", index.expr, count)
        cx.check(bad, "BoundsError", f"index {{0}} of {len(items)} items is out of bounds", (index.expr,))
    columns = list(zip(*(tuple(leaves(item)) for item in items), strict=True))
    chosen_leaves = []
    for column in columns:
        result = column[-1].expr
        for at in range(len(column) - 2, -1, -1):
            here = cx.op("eq", "bool", index.expr, Lit(at + 1, "int64"))
            result = cx.op("select", column[at].type.numpy, here, column[at].expr, result)
        chosen_leaves.append(cx.hold(as_scalar(column[0].type, result)))
    return rebuild(items[0], iter(chosen_leaves))


def _static_index(cx: Context, obj: Tuple | Static | Cartesian, args: tuple[Value, ...]) -> Scalar:
    indices = flat_indices(cx, args)
    if len(indices) == 1:
        return indices[0]
    if not isinstance(obj, Static) or len(indices) != len(obj.dims):
        cx.unsupported(f"{len(indices)} indices for a {type_of(obj)}")
    result: Expr = Lit(1, "int64")
    scale = 1
    for index, size in zip(indices, obj.dims, strict=True):
        part = cx.op("mul", "int64", cx.op("sub", "int64", index.expr, ONE), Lit(scale, "int64"))
        result = cx.op("add", "int64", part, result)
        scale *= size
    return as_scalar(INT64, result)


def store_index(cx: Context, obj: Value, args: tuple[Value, ...], value: Value) -> None:
    """`obj[args...] = value`."""
    if not isinstance(obj, Array):
        cx.unsupported(f"assignment to an element of a {type_of(obj)}", "it is immutable; use an MVector or @private")
    if not obj.writable:
        cx.unsupported(f"`{obj.name}` is @Const and is written", "remove @Const")
    if any(isinstance(a, (Range, Symbol, CartesianRange)) for a in args):
        cx.unsupported(f"assignment to a slice of `{obj.name}`", "write a loop over its elements")
    if isinstance(value, Union):

        def put(option: Value) -> Value:
            store_index(cx, obj, args, option)
            return Nothing()

        by_option(cx, value, put)
        return
    if not isinstance(value, (Scalar, Complex)):
        value = convert(cx, value, obj.elem)
    value = cx.hold_all(value)
    store_element(cx, obj, address(cx, obj, flat_indices(cx, args)), value)


# --- items ---


def spread(cx: Context, value: Value) -> tuple[Value, ...]:
    """Return the items of a value that can be splatted."""
    if isinstance(value, (Tuple, Static, Cartesian)):
        return value.items
    if isinstance(value, Scalar):
        return (value,)
    if isinstance(value, Array) and value.static is not None:
        count = 1
        for d in value.static:
            count *= d
        return tuple(load_index(cx, value, (int64(k + 1),)) for k in range(count))
    cx.unsupported(f"splatting a {type_of(value)}", "its length is not known at compile time")


# --- sizes ---


def shape_of(cx: Context, value: Value) -> tuple[Scalar, ...]:
    """Return the size of a value that has one."""
    if isinstance(value, Array):
        return value.shape
    if isinstance(value, Static):
        return tuple(int64(d) for d in value.dims)
    if isinstance(value, Range):
        return (range_length(cx, value),)
    if isinstance(value, CartesianRange):
        return tuple(range_length(cx, r) for r in value.ranges)
    if isinstance(value, LinearRange):
        return value.dims
    if isinstance(value, Scalar):
        return ()
    no_method(cx, "size", (value,))


def range_length(cx: Context, value: Range) -> Scalar:
    """Return the number of items of a range."""
    start, stop = cast(cx, value.start, INT64).expr, cast(cx, value.stop, INT64).expr
    span = cx.op("sub", "int64", stop, start)
    if value.step is None:
        return as_scalar(INT64, cx.op("max", "int64", cx.op("add", "int64", span, ONE), Lit(0, "int64")))
    step = cast(cx, value.step, INT64).expr
    steps = cx.op("add", "int64", cx.op("fld", "int64", span, step), ONE)
    return as_scalar(INT64, cx.op("max", "int64", steps, Lit(0, "int64")))


@builtin("size")
def _size(cx: Context, args: tuple[Value, ...]) -> Value:
    if isinstance(args[0], TypeValue):
        from jlkern.engines.numba.lower.types import Abstract

        ty = args[0].type
        if isinstance(ty, Abstract) and ty.name in ("SVector", "SMatrix"):
            return Tuple(tuple(int64(d) for d in ty.args[: 1 if ty.name == "SVector" else 2]))
    arity(cx, "size", args, 1, 2)
    shape = shape_of(cx, args[0])
    if len(args) == 1:
        return Tuple(shape)
    dim = args[1]
    if not isinstance(dim, Scalar):
        no_method(cx, "size", args)
    if dim.is_const:
        return shape[dim.const - 1] if 1 <= dim.const <= len(shape) else int64(1)
    return load_index(cx, Tuple(shape), (dim,))


@builtin("length")
def _length(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "length", args, 1)
    value = args[0]
    if isinstance(value, (Tuple, Cartesian)):
        return int64(len(value.items))
    if isinstance(value, Zipped):
        from jlkern.engines.numba.lower.iterate import count_of

        return count_of(cx, value)
    if isinstance(value, TypeValue):
        shape = _size(cx, args)
        assert isinstance(shape, Tuple)
        return product(cx, tuple(s for s in shape.items if isinstance(s, Scalar)))
    return product(cx, shape_of(cx, value))


@builtin("ndims")
def _ndims(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "ndims", args, 1)
    return int64(len(shape_of(cx, args[0])))


@builtin("lastindex")
def _lastindex(cx: Context, args: tuple[Value, ...]) -> Value:
    return _size(cx, args) if len(args) == 2 else _length(cx, args)


@builtin("firstindex")
def _firstindex(cx: Context, args: tuple[Value, ...]) -> Value:
    return int64(1)


@builtin("axes")
def _axes(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "axes", args, 1, 2)
    sizes = _size(cx, args)
    if len(args) == 2:
        assert isinstance(sizes, Scalar)
        return Range(int64(1), sizes)
    assert isinstance(sizes, Tuple)
    return Tuple(tuple(Range(int64(1), s) for s in sizes.items if isinstance(s, Scalar)))


@builtin("eachindex")
def _eachindex(cx: Context, args: tuple[Value, ...]) -> Value:
    count = _length(cx, args[:1])
    assert isinstance(count, Scalar)
    return Range(int64(1), count)


@builtin("eltype")
def _eltype(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "eltype", args, 1)
    value = args[0]
    if isinstance(value, TypeValue):
        ty = value.type
        return TypeValue(getattr(ty, "elem", ty))
    if isinstance(value, (Array, Range)):
        return TypeValue(value.elem)
    if isinstance(value, Scalar):
        return TypeValue(value.type)
    if isinstance(value, Complex):
        return TypeValue(type_of(value))
    if isinstance(value, (Tuple, Static)) and value.items and all(same_shape(value.items[0], v) for v in value.items):
        return TypeValue(type_of(value.items[0]))
    if isinstance(value, Cartesian):
        return TypeValue(INT64)
    no_method(cx, "eltype", args)


@builtin("CartesianIndices")
def _cartesian_indices(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "CartesianIndices", args, 1)
    value = args[0]
    if isinstance(value, Tuple):
        ranges = []
        for item in value.items:
            if isinstance(item, Range):
                ranges.append(item)
            elif isinstance(item, Scalar):
                ranges.append(Range(int64(1), cast(cx, item, INT64)))
            else:
                no_method(cx, "CartesianIndices", args)
        return CartesianRange(tuple(ranges))
    if isinstance(value, CartesianRange):
        return value
    return CartesianRange(tuple(Range(int64(1), s) for s in shape_of(cx, value)))


@builtin("LinearIndices")
def _linear_indices(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "LinearIndices", args, 1)
    value = args[0]
    if isinstance(value, Tuple):
        return LinearRange(tuple(cast(cx, v, INT64) for v in value.items if isinstance(v, Scalar)))
    return LinearRange(shape_of(cx, value))


@builtin("checkbounds")
def _checkbounds(cx: Context, args: tuple[Value, ...]) -> Value:
    array = args[0]
    if not isinstance(array, Array):
        no_method(cx, "checkbounds", args)
    _check(cx, array, flat_indices(cx, args[1:]))
    return Nothing()


@builtin("getindex")
def _getindex(cx: Context, args: tuple[Value, ...]) -> Value:
    return load_index(cx, args[0], args[1:])


@builtin("setindex!")
def _setindex(cx: Context, args: tuple[Value, ...]) -> Value:
    store_index(cx, args[0], args[2:], args[1])
    return args[0]


# --- views ---


def view(cx: Context, array: Value, args: tuple[Value, ...]) -> Value:
    """`@view array[args...]`: numbers fix a dimension, ranges and `:` keep one."""
    if not isinstance(array, Array):
        cx.unsupported(f"a view of a {type_of(array)}")
    spread: list[Value] = []
    for arg in args:
        spread.extend(arg.items if isinstance(arg, Cartesian) else (arg,))
    if len(spread) == 1 and len(array.shape) > 1:
        if not array.linear:
            cx.unsupported(f"a view of `{array.name}` by one index for {len(array.shape)} dimensions")
        array = replace(array, shape=(length(cx, array),), strides=(ONE,))
    if len(spread) != len(array.shape):
        cx.unsupported(f"a view of `{array.name}`, of {len(array.shape)} dimensions, by {len(spread)} indices")
    checked = cx.check_bounds or not cx.inbounds
    offset, shape, strides = array.offset, [], []
    for arg, size, stride in zip(spread, array.shape, array.strides, strict=True):
        if isinstance(arg, Symbol) and arg.name == ":":
            shape.append(size)
            strides.append(stride)
            continue
        if isinstance(arg, Range):
            start = cx.hold(cast(cx, arg.start, INT64))
            count = cx.hold(range_length(cx, arg))
            step = ONE if arg.step is None else cast(cx, arg.step, INT64).expr
            shape.append(count)
            strides.append(cx.op("mul", "int64", stride, step))
            if checked:
                _check_range(cx, array, start, count, step, size)
        else:
            start = as_index(cx, arg)
            if checked:
                cx.check(cx.op("outside", "bool", start.expr, size.expr), "BoundsError",
                         f"a view of `{array.name}` at {{0}} is out of bounds: the size there is {{1}}",
                         (start.expr, size.expr))  # fmt: skip
        offset = cx.op("add", "int64", offset, cx.op("mul", "int64", cx.op("sub", "int64", start.expr, ONE), stride))
    linear = len(shape) <= 1 and (not strides or strides[0] == ONE)
    return cx.hold_all(Array(array.name, array.elem, array.memory, tuple(shape), tuple(strides), offset, linear,
                             array.writable))  # fmt: skip


def _check_range(cx: Context, array: Array, start: Scalar, count: Scalar, step: Expr, size: Scalar) -> None:
    last = cx.op("add", "int64", start.expr,
                 cx.op("mul", "int64", cx.op("sub", "int64", count.expr, ONE), step))  # fmt: skip
    bad = cx.op(
        "or", "bool", cx.op("outside", "bool", start.expr, size.expr), cx.op("outside", "bool", last, size.expr)
    )
    some = cx.op("gt", "bool", count.expr, Lit(0, "int64"))
    cx.check(cx.op("and", "bool", some, bad), "BoundsError",
             f"a view of `{array.name}` from {{0}} to {{1}} is out of bounds: the size there is {{2}}",
             (start.expr, last, size.expr))  # fmt: skip


@builtin("view")
def _view(cx: Context, args: tuple[Value, ...]) -> Value:
    from jlkern.engines.numba.lower.values import Function

    parts = tuple(Symbol(":") if isinstance(a, Function) and a.name == ":" else a for a in args[1:])
    return view(cx, args[0], parts)


# --- memory made in the kernel ---


def new_array(cx: Context, kind: str, name: str, elem: Prim | ComplexT, dims: tuple[int, ...]) -> Array:
    """Make `@localmem`, `@private` or mutable static memory."""
    count = math.prod(dims)
    inner = elem.elem if isinstance(elem, ComplexT) else elem
    var = cx.fresh(name, inner.numpy)
    memory = simt.Memory(kind, var.name, inner.numpy, count * (2 if isinstance(elem, ComplexT) else 1), name)
    cx.memories.append(memory)
    # the work-group's copies of what is in row-major order are best in that order too; no kernel can tell
    rows = kind == "local" and cx.row_major and len(dims) > 1
    strides, scale = [], 1
    for d in reversed(dims) if rows else dims:
        strides.append(Lit(scale, "int64"))
        scale *= d
    if rows:
        strides.reverse()
    return Array(name, elem, memory, tuple(int64(d) for d in dims), tuple(strides), Lit(0, "int64"), not rows)
