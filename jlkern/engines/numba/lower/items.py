"""The items of what has a length known at compile time, and calling function values on them."""

from __future__ import annotations

from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.conversion import number
from jlkern.engines.numba.lower.registry import no_method
from jlkern.engines.numba.lower.values import (
    Array,
    Cartesian,
    CartesianRange,
    LinearRange,
    Range,
    Static,
    Tuple,
    Value,
    Zipped,
    constant,
    type_of,
)


def frozen(cx: Context, value: Value) -> Value:
    """Return an MVector's present value as an SVector."""
    if isinstance(value, Array) and value.static is not None:
        from jlkern.engines.numba.lower.arrays import spread

        outer, cx.inbounds = cx.inbounds, True
        items = spread(cx, value)
        cx.inbounds = outer
        return Static(value.static, items)
    return value


def items_of(cx: Context, value: Value, name: str) -> tuple[Value, ...]:
    if isinstance(value, (Tuple, Static, Cartesian)):
        return value.items
    if isinstance(value, Range) and value.start.is_const and value.stop.is_const:
        step = 1 if value.step is None else value.step.const
        if step is not None:
            low, high = value.start.const, value.stop.const
            return tuple(constant(k, value.elem) for k in range(low, high + (1 if step > 0 else -1), step))
    if isinstance(value, Array) and value.static is not None:
        return items_of(cx, frozen(cx, value), name)
    if number(value):
        return (value,)
    if isinstance(value, (Array, Range, CartesianRange, LinearRange, Zipped)):
        cx.unsupported(f"`{name}` over a {type_of(value)}, whose length is not known at compile time", "write a loop")
    no_method(cx, name, (value,))


def call_value(cx: Context, func: Value, *args: Value) -> Value:
    from jlkern.engines.numba.lower.calls import call

    return call(cx, func, args)


def fold_items(cx: Context, op: Value, items: tuple[Value, ...], name: str) -> Value:
    if not items:
        cx.unsupported(f"`{name}` over nothing")
    result = items[0]
    for item in items[1:]:
        result = call_value(cx, op, result, item)
    return result
