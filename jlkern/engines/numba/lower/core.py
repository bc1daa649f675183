"""The heart of lowering: one handler for each kind of node, found by its class.

Lowering is abstract interpretation: the kernel is run once with types and known values in place of numbers, and what is
left to do for each work-item is written down. Julia's scoping and dispatch are followed; what cannot be followed is
refused with its line. The other modules of this folder register the handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jlkern.engines.numba.lower import fold, simt
from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.types import BOOL
from jlkern.engines.numba.lower.values import Nothing, Scalar, Union, Value, leaves, type_of
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
    if isinstance(value, Union) and any(type_of(option) == BOOL for _, option in value.options):
        from jlkern.engines.numba.lower.branches import by_option

        value = by_option(cx, value, lambda option: _must_be_bool(cx, option))
    if not isinstance(value, Scalar) or value.type != BOOL:
        cx.unsupported(f"a condition must be Bool, and is {type_of(value)}", "compare, as in `x != 0`")
    return value


def in_order(cx: Context, parts: Iterable[Callable[[], tuple[Value, ...]]]) -> tuple[Value, ...]:
    """Lower the parts of an expression from left to right; a later one's assignments do not change an earlier value."""
    found: list[tuple[tuple[Value, ...], int]] = []
    for part in parts:
        values = part()
        found.append((values, len(cx.body)))
    result: list[Value] = []
    for values, at in reversed(found):
        changed = changed_variables(cx.body[at:])
        if changed:
            kept, cx.body[at:] = cx.body[at:], []
            dead, cx.dead = cx.dead, False
            values = tuple(
                cx.snapshot(v) if any(fold.variables(x.expr) & changed for x in leaves(v)) else v for v in values
            )
            cx.dead = dead
            cx.body.extend(kept)
        result[:0] = values
    return tuple(result)


def changed_variables(stmts: list[simt.Stmt]) -> set[str]:
    """Return the names of the variables that statements assign."""
    found: set[str] = set()
    for stmt in stmts:
        if isinstance(stmt, (simt.Assign, simt.Load, simt.For)):
            found.add(stmt.var.name)
        if isinstance(stmt, simt.Atomic):
            found.add(stmt.old.name)
        for name in ("then", "orelse", "header", "body"):
            inner = getattr(stmt, name, ())
            if inner:
                found |= changed_variables(list(inner))
    return found


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


def _must_be_bool(cx: Context, value: Value) -> Value:
    if type_of(value) != BOOL:
        text = f"TypeError: a {type_of(value)} is used as a condition"
        cx.check(fold.TRUE, "KernelThrownError", text)
        cx.dead = True
    return value
