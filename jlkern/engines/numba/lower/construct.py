"""Types called as constructors: `Float32(x)`, `SVector(a, b)`, `CartesianIndex(i, j)`, `Val(n)`."""

from __future__ import annotations

import math
from typing import Any

from jlkern.engines.numba.lower.arrays import new_array, store_index
from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.conversion import cast, convert, real, together, zero_of
from jlkern.engines.numba.lower.registry import no_method
from jlkern.engines.numba.lower.types import INT64, Abstract, ComplexT, Prim, TupleT, VarargT, promote
from jlkern.engines.numba.lower.values import (
    Array,
    Cartesian,
    Complex,
    Irrational,
    Scalar,
    Static,
    Symbol,
    Tuple,
    Value,
    ValValue,
    canonical,
    int64,
    type_of,
)


def construct(cx: Context, ty: Any, args: tuple[Value, ...]) -> Value:
    """Call a type."""
    if isinstance(ty, ComplexT) and len(args) == 2:
        re, im = convert(cx, args[0], ty.elem), convert(cx, args[1], ty.elem)
        assert isinstance(re, Scalar) and isinstance(im, Scalar)
        return Complex(re, im)
    if isinstance(ty, (Prim, ComplexT)):
        if len(args) != 1:
            no_method(cx, str(ty), args)
        return convert(cx, args[0], ty)
    if isinstance(ty, (TupleT, VarargT)):
        return _tuple(cx, ty, args)
    if isinstance(ty, Abstract):
        return _abstract(cx, ty, args)
    cx.unsupported(f"the constructor of {ty}")


def _abstract(cx: Context, ty: Abstract, args: tuple[Value, ...]) -> Value:
    name = ty.name
    if name == "Val":
        known = ty.args[0] if ty.args else canonical(args[0]) if len(args) == 1 else None
        if known is None:
            cx.unsupported("`Val(x)` of a value that is not known at compile time")
        return ValValue(known)
    if name == "CartesianIndex":
        items = args[0].items if len(args) == 1 and isinstance(args[0], (Tuple, Cartesian)) else args
        if not all(isinstance(i, Scalar) for i in items):
            no_method(cx, name, args)
        return Cartesian(tuple(cast(cx, i, INT64) for i in items if isinstance(i, Scalar)))
    if name == "Tuple":
        return _tuple(cx, None, args)
    if name == "NamedTuple":
        cx.unsupported("the constructor NamedTuple", "write (a = 1, b = 2)")
    if name == "Complex" and len(args) == 1:
        if isinstance(args[0], Complex):
            return args[0]
        x = real(cx, args[0], name)
        return Complex(x, zero_of(x.type))
    if name == "Complex" and len(args) == 2:
        return Complex(*together(cx, name, args))
    if name in ("SVector", "SMatrix", "MVector", "MMatrix"):
        return static(cx, name, ty.args, args)
    if name in ("Integer", "Signed"):
        return convert(cx, args[0], INT64) if isinstance(args[0], Scalar) and args[0].type.kind == "float" else args[0]
    if name == "Ref":
        cx.unsupported("`Ref`", "assign to a variable, or use @private")
    cx.unsupported(f"the constructor of the abstract type {ty}")


def _tuple(cx: Context, ty: Any, args: tuple[Value, ...]) -> Value:
    from jlkern.engines.numba.lower.arrays import spread

    items = spread(cx, args[0]) if len(args) == 1 else args
    if isinstance(ty, TupleT):
        return Tuple(tuple(convert(cx, v, t) if isinstance(t, (Prim, ComplexT)) else v
                           for v, t in zip(items, ty.items, strict=True)))  # fmt: skip
    if isinstance(ty, VarargT) and isinstance(ty.elem, (Prim, ComplexT)):
        return Tuple(tuple(convert(cx, v, ty.elem) for v in items))
    return Tuple(items)


def common_type(cx: Context, items: tuple[Value, ...]) -> Any:
    """Return the type that numbers are promoted to in one static array."""
    types = [type_of(v) for v in items if not isinstance(v, Irrational)]
    if not types:
        cx.unsupported("a static array of nothing without an element type")
    ty = types[0]
    for other in types[1:]:
        joined = promote(ty, other)
        if joined is None:
            cx.unsupported(f"a static array of {ty} and {other}")
        ty = joined
    return ty


def static(cx: Context, name: str, params: tuple[Any, ...], args: tuple[Value, ...]) -> Value:
    """`SVector{N, T}(...)` and its relatives; elements are promoted or converted to one type."""
    from jlkern.engines.numba.lower.arrays import spread

    rank = 1 if name.endswith("Vector") else 2
    dims = tuple(d for d in params[:rank] if isinstance(d, int))
    elem = params[rank] if len(params) > rank else None
    if args == (Symbol("undef"),):
        args = ()
    if len(args) == 1 and isinstance(args[0], (Tuple, Static, Array)):
        items = spread(cx, args[0])
        if isinstance(args[0], Static) and not dims:
            dims = args[0].dims
    else:
        items = args
    if len(dims) != rank:
        dims = (len(items),) if rank == 1 else (*dims, len(items) // max(dims[0], 1)) if dims else ()
    if len(dims) != rank or math.prod(dims) != len(items):
        if name in ("MVector", "MMatrix") and not items and len(dims) == rank:
            return make_mutable(cx, dims, elem, ())
        cx.unsupported(f"{len(items)} values for a {name} of size {dims}")
    return made(cx, dims, elem, items, name.startswith("M"))


def made(cx: Context, dims: tuple[int, ...], elem: Any, items: tuple[Value, ...], mutable: bool) -> Value:
    """Return a static array of the items, converted to `elem` or promoted."""
    ty = elem if elem is not None else common_type(cx, items)
    if isinstance(ty, (Prim, ComplexT)):
        items = tuple(convert(cx, v, ty) for v in items)
    if mutable:
        return make_mutable(cx, dims, ty, items)
    return Static(dims, items)


def make_mutable(cx: Context, dims: tuple[int, ...], elem: Any, items: tuple[Value, ...]) -> Value:
    """Make an MVector or MMatrix: private memory."""
    if not isinstance(elem, (Prim, ComplexT)):
        cx.unsupported(f"a mutable static array of {elem}")
    array = new_array(cx, "private", "m", elem, dims)
    array = Array(**{f: getattr(array, f) for f in array.__dataclass_fields__ if f != "static"}, static=dims)
    outer, cx.inbounds = cx.inbounds, True
    for k, item in enumerate(items):
        store_index(cx, array, (int64(k + 1),), item)
    cx.inbounds = outer
    return array
