"""From Julia source to the tree of `jlkern.syntax.nodes`.

tree-sitter-julia makes a concrete tree; `convert` turns it into ours with one function per node type. Operator
precedence is settled by `operators.Chain`, because the grammar gets some of it wrong.
"""

from __future__ import annotations

from jlkern.syntax import expressions as _expressions  # noqa: F401  (registers its converters)
from jlkern.syntax import literals as _literals  # noqa: F401
from jlkern.syntax import statements as _statements  # noqa: F401
from jlkern.syntax.cst import Source, convert
from jlkern.syntax.definitions import NOTHING
from jlkern.syntax.nodes import Interpolated, Literal, Module, Node
from jlkern.syntax.problem import KernelOptionProblem, SyntaxProblem
from jlkern.syntax.sexpr import to_sexpr

__all__ = ["KernelOptionProblem", "SyntaxProblem", "parse_expression", "parse_module", "parse_source", "to_sexpr"]


def parse_module(text: str) -> Module:
    """Return the items of a Julia source.

    Parameters
    ----------
    text
        The source.

    Returns
    -------
    Module
        Its top-level items; `@kernel` functions are `KernelDef`s, docstrings are dropped.

    Raises
    ------
    SyntaxProblem
        When the text is no Julia, or `KernelOptionProblem` for a wrong option of `@kernel`.

    Examples
    --------
    >>> module = parse_module("@kernel function f!(y)\\n y[@index(Global)] = 1\\nend")
    >>> module.items[0].function.name
    'f!'
    """
    return parse_source(text)[0]


def parse_source(text: str) -> tuple[Module, Source]:
    """Return the module of a text, and its CST for whoever needs the tokens."""
    try:
        source = Source(text)
        nodes = [kid for kid in source.kids(source.root) if kid.is_named]
        items: list[Node] = []
        for node in nodes:
            made = convert(source, node)
            if items and isinstance(items[-1], Interpolated | Literal) and _is_text(items[-1]):
                items.pop()  # the docstring of this item
            if made is not NOTHING:
                items.append(made)
        return Module(tuple(items)), source
    except RecursionError:
        raise SyntaxProblem(1, 1, "the source is nested too deeply") from None


def _is_text(node: Node) -> bool:
    return isinstance(node, Interpolated) or (isinstance(node, Literal) and node.type == "String")


def parse_expression(text: str) -> Node:
    """Return the node of one expression or statement.

    Examples
    --------
    >>> to_sexpr(parse_expression("2x^2"))
    '(call * 2 (call ^ x 2))'
    """
    items = parse_module(text).items
    if len(items) != 1:
        raise SyntaxProblem(1, 1, f"expected one expression, found {len(items)}")
    return items[0]
