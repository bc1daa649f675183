"""Every node under a node, for whoever looks for something anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from jlkern.syntax.nodes import Node

_FIELDS: dict[type[Node], tuple[str, ...]] = {}


def children(node: Node) -> list[Node]:
    """Return the nodes that a node holds, in the order of its fields."""
    names = _FIELDS.get(node.__class__)
    if names is None:
        names = _FIELDS[node.__class__] = tuple(
            field.name for field in fields(node) if field.name != "pos" and _may_hold_nodes(str(field.type))
        )
    found: list[Node] = []
    for name in names:
        value = getattr(node, name)
        if value.__class__ is tuple:
            if value:
                _collect(value, found)
        elif isinstance(value, Node):
            found.append(value)
    return found


def _may_hold_nodes(annotation: str) -> bool:
    return annotation not in ("str", "bool", "str | None", "tuple[str, ...]", "tuple[str, ...] | None")


def _collect(values: tuple[Any, ...], found: list[Node]) -> None:
    for value in values:
        if value.__class__ is tuple:
            _collect(value, found)
        elif isinstance(value, Node):
            found.append(value)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes under it, outer ones first, in the order of the text."""
    stack = [node]
    while stack:
        this = stack.pop()
        yield this
        inner = children(this)
        if inner:
            inner.reverse()
            stack += inner
