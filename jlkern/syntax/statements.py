"""Conversion of control flow and declarations inside functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jlkern.syntax.chains import check_word, condition
from jlkern.syntax.cst import Source, convert, converts, unsupported
from jlkern.syntax.definitions import block, declarations
from jlkern.syntax.nodes import Break, Continue, For, If, Let, Local, Node, Return, While

if TYPE_CHECKING:
    from tree_sitter import Node as Tree


def _named(source: Source, node: Tree) -> list[Tree]:
    """Return the named children of a node without comments."""
    return [kid for kid in source.kids(node) if kid.is_named]


@converts("compound_statement")
def _begin(source: Source, node: Tree) -> Node:
    return block(source, _named(source, node), source.pos(node))


@converts("if_statement", "elseif_clause")
def _if(source: Source, node: Tree) -> Node:
    kids = _named(source, node)
    pos = source.pos(node)
    if not kids:
        source.problem(node, "`if` needs a condition")
    orelse: Node | None = None
    clauses: list[Tree] = []
    while kids and kids[-1].type in ("else_clause", "elseif_clause"):
        clauses.append(kids.pop())
    for clause in clauses:
        if clause.type == "else_clause":
            orelse = block(source, _named(source, clause), source.pos(clause))
        else:
            made = convert(source, clause)
            assert isinstance(made, If)
            orelse = If(made.cond, made.then, orelse, pos=made.pos)
    cond = condition(source, kids[0], rest := kids[1:])
    return If(cond, block(source, rest, pos), orelse, pos=pos)


@converts("for_statement")
def _for(source: Source, node: Tree) -> Node:
    bindings: list[tuple[Node, Node]] = []
    kids = _named(source, node)
    headers = [kid for kid in kids if kid.type == "for_binding"]
    body = kids[len(headers) :]
    for kid in headers:
        parts = source.kids(kid)
        if parts[0].type == "outer":
            return unsupported(source, node, "`for outer`")
        if len(parts) != 3:
            source.problem(kid, "invalid loop header")
        if source.text(parts[1]) == "in":
            check_word(source, parts[1])
        values = condition(source, parts[2], body if kid is headers[-1] else [])
        bindings.append((convert(source, parts[0]), values))
    pos = source.pos(node)
    return For(tuple(bindings), block(source, body, pos), pos=pos)


@converts("while_statement")
def _while(source: Source, node: Tree) -> Node:
    kids = _named(source, node)
    pos = source.pos(node)
    cond = condition(source, kids[0], rest := kids[1:])
    return While(cond, block(source, rest, pos), pos=pos)


@converts("break_statement")
def _break(source: Source, node: Tree) -> Node:
    return Break(pos=source.pos(node))


@converts("continue_statement")
def _continue(source: Source, node: Tree) -> Node:
    return Continue(pos=source.pos(node))


@converts("return_statement")
def _return(source: Source, node: Tree) -> Node:
    kids = _named(source, node)
    return Return(convert(source, kids[0]) if kids else None, pos=source.pos(node))


@converts("let_statement")
def _let(source: Source, node: Tree) -> Node:
    """Convert `let`; its bindings are what stands before the first line break or `;`."""
    bindings: list[tuple[str, Node | None]] = []
    kids = source.kids(node)[1:-1]
    at = 0
    while at < len(kids) and _binds(source, node, kids, at):
        kid = kids[at]
        if kid.type == "let_binding":
            parts = source.kids(kid)
            if parts[0].type != "identifier":
                return unsupported(source, node, "`let` of anything but plain names")
            bindings.append((source.name(parts[0]), convert(source, parts[2])))
        elif kid.type == "identifier":
            bindings.append((source.name(kid), None))
        elif kid.type != ",":
            return unsupported(source, node, "`let` of anything but plain names")
        at += 1
    pos = source.pos(node)
    return Let(tuple(bindings), block(source, [kid for kid in kids[at:] if kid.is_named], pos), pos=pos)


def _binds(source: Source, node: Tree, kids: list[Tree], at: int) -> bool:
    """Whether a child of `let` belongs to its bindings."""
    start = kids[at - 1].end_byte if at else node.start_byte + 3
    between = source.data[start : kids[at].start_byte]
    after_comma = at > 0 and kids[at - 1].type == ","
    return after_comma or (b"\n" not in between and b";" not in between)


@converts("local_statement")
def _local(source: Source, node: Tree) -> Node:
    made = convert(source, _named(source, node)[0])
    return Local(declarations(made), pos=source.pos(node))


@converts("global_statement", "quote_statement", "try_statement")
def _refused(source: Source, node: Tree) -> Node:
    return unsupported(source, node, f"`{node.type.removesuffix('_statement')}`")
