"""The heart of lowering: one handler for each kind of node, found by its class.

Lowering is abstract interpretation: the kernel is run once with types and known values in place of numbers, and what is left
to do for each work-item is written down. Julia's scoping and dispatch are followed; what cannot be followed is refused with
its line. The other modules of this folder register the handlers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.types import BOOL
from jlkern.engines.numba.lower.values import Nothing, Scalar, Value, type_of
from jlkern.syntax import nodes as n

Handler = Callable[[Context, Any], Value]
_HANDLERS: dict[type[n.Node], Handler] = {}


def handles(*kinds: type[n.Node]) -> Callable[[Handler], Handler]:
    """Register how nodes of some classes are lowered."""

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            _HANDLERS[kind] = handler
        return handler

    return register


def lower(cx: Context, node: n.Node) -> Value:
    """Lower an expression: emit what it does, return what it is."""
    cx.at(node)
    handler = _HANDLERS.get(type(node))
    if handler is None:
        cx.unsupported(f"{type(node).__name__} here")
    return handler(cx, node)


def scalar(cx: Context, node: n.Node, what: str) -> Scalar:
    """Lower an expression that must be a real number."""
    value = lower(cx, node)
    if not isinstance(value, Scalar):
        cx.unsupported(f"{what} must be a number, and is {type_of(value)}")
    return value


def condition(cx: Context, node: n.Node) -> Scalar:
    """Lower a condition, which must be a Bool."""
    value = lower(cx, node)
    if not isinstance(value, Scalar) or value.type != BOOL:
        cx.unsupported(f"a condition must be Bool, and is {type_of(value)}", "compare, as in `x != 0`")
    return value


def lower_block(cx: Context, body: tuple[n.Node, ...]) -> Value:
    """Lower statements in order; the value is the last one's."""
    value: Value = Nothing()
    for stmt in body:
        if cx.dead:
            break
        value = lower(cx, stmt)
    return value


@handles(n.Block)
def _block(cx: Context, node: n.Block) -> Value:
    return lower_block(cx, node.body)
