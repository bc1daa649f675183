"""Broadcasting over tuples, static vectors and numbers: `f.(x)`, `a .+ b`."""

from __future__ import annotations

from collections.abc import Callable

from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.values import Array, Cartesian, Range, Static, Tuple, Value, type_of


def broadcast(cx: Context, function: Callable[[tuple[Value, ...]], Value], args: tuple[Value, ...]) -> Value:
    """Apply a function item by item; tuples give a tuple, static vectors a static vector, numbers a number."""
    arrays = [a for a in args if isinstance(a, (Array, Range))]
    if arrays:
        cx.unsupported(f"broadcasting over a {type_of(arrays[0])} would allocate", "write a loop over the elements")
    statics = [a for a in args if isinstance(a, Static)]
    tuples = [a for a in args if isinstance(a, Tuple)]
    if statics:
        dims = max((s.dims for s in statics), key=len)
        for other in statics:
            if other.dims != dims[: len(other.dims)]:
                cx.unsupported(f"broadcasting of sizes {dims} and {other.dims}")
        count = 1
        for d in dims:
            count *= d
        items = tuple(function(tuple(_item(cx, a, k, count) for a in args)) for k in range(count))
        return Static(dims, items)
    if tuples:
        count = max(len(t.items) for t in tuples)
        for t in tuples:
            if len(t.items) not in (1, count):
                cx.unsupported(f"broadcasting of tuples of {count} and {len(t.items)} items")
        return Tuple(tuple(function(tuple(_item(cx, a, k, count) for a in args)) for k in range(count)))
    return function(args)


def _item(cx: Context, value: Value, k: int, count: int) -> Value:
    if isinstance(value, (Static, Tuple)):
        if not value.items:
            cx.unsupported("broadcasting over nothing")
        return value.items[k % len(value.items)]
    if isinstance(value, Cartesian):
        cx.unsupported("broadcasting over a CartesianIndex", "use Tuple(I)")
    assert isinstance(value, Value)
    return value
