"""The tree as Julia's own expression, written as `Meta.show_sexpr` writes it: how the parser is compared with Julia."""

from __future__ import annotations

from jlkern.syntax.nodes import Node


def to_sexpr(node: Node) -> str:
    """Return a node in the form of Julia's `Meta.show_sexpr`."""
    raise NotImplementedError
