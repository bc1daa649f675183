"""Every node under a node, for whoever looks for something anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from jlkern.syntax.nodes import Node

_FIELDS: dict[type[Node], tuple[str, ...]] = {}


def children(node: Node) -> list[Node]:
    """Return the nodes that a node holds, in the order of its fields."""
    names = _FIELDS.get(type(node))
    if names is None:
        names = _FIELDS[type(node)] = tuple(field.name for field in fields(node) if field.name != "pos")
    found: list[Node] = []
    for name in names:
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif value.__class__ is tuple and value:
            _collect(value, found)
    return found


def _collect(values: tuple[Any, ...], found: list[Node]) -> None:
    for value in values:
        if isinstance(value, Node):
            found.append(value)
        elif value.__class__ is tuple:
            _collect(value, found)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes under it, outer ones first, in the order of the text."""
    stack = [node]
    while stack:
        this = stack.pop()
        yield this
        stack.extend(reversed(children(this)))
