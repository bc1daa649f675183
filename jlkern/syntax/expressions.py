"""Conversion of expressions other than operators: calls, indexing, tuples, arrays, macro calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jlkern.syntax import definitions
from jlkern.syntax.building import operator_name, split_dot
from jlkern.syntax.chains import braces, elements, flatten_operand, prefixed, push_operator
from jlkern.syntax.cst import Source, convert, converts, fold, unsupported
from jlkern.syntax.nodes import (
    Assign,
    Block,
    Call,
    Curly,
    DotCall,
    Field,
    Index,
    Lambda,
    MatrixExpr,
    Name,
    Node,
    Param,
    Splat,
    TupleExpr,
    VectorExpr,
)
from jlkern.syntax.operators import Chain

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

# --- calls and what else stands behind a value -----------------------------------------------------------------------


@converts("call_expression")
def _call(source: Source, node: Tree) -> Node:
    if source.replaced:
        done = source.replaced.pop(node.id, None)
        if done is not None:
            return done
    whole = prefixed(source, node)
    if whole is not None:
        return whole
    kids = source.kids(node)
    pos = source.pos(node)
    args, kwargs = arguments(source, kids[1])
    if len(kids) > 2:
        args.insert(0, do_block(source, kids[2]))
    if kids[0].type == "operator":
        op = fold(source.text(kids[0]))
        base = split_dot(op)
        if op == "&" and len(args) == 1:
            source.problem(node, "unexpected `&`")
        if base is not None and not kwargs:
            return DotCall(operator_name(base), tuple(args), pos=pos)
        return Call(operator_name(op), tuple(args), tuple(kwargs), pos=pos)
    func = convert(source, kids[0])
    if isinstance(func, Name) and func.id == "ccall":
        return unsupported(source, node, "`ccall`")
    return Call(func, tuple(args), tuple(kwargs), pos=pos)


@converts("broadcast_call_expression")
def _broadcast(source: Source, node: Tree) -> Node:
    whole = prefixed(source, node)
    if whole is not None:
        return whole
    kids = source.kids(node)
    args, kwargs = arguments(source, kids[-1] if kids[-1].type == "argument_list" else kids[-2])
    if kwargs or kids[-1].type == "do_clause":
        return unsupported(source, node, "broadcast with keyword arguments or `do`")
    return DotCall(convert(source, kids[0]), tuple(args), pos=source.pos(node))


def arguments(source: Source, node: Tree) -> tuple[list[Node], list[tuple[str, Node]]]:
    """Return the positional and the keyword arguments of an argument list."""
    args: list[Node] = []
    kwargs: list[tuple[str, Node]] = []
    keywords = False
    for kid in source.kids(node):
        if not kid.is_named:
            keywords = keywords or kid.type == ";"
        elif kid.type == "named_argument":
            pair = named(source, kid)
            if isinstance(pair, tuple):
                kwargs.append(pair)
            else:
                args.append(pair)
        elif kid.type == "for_clause":
            return [unsupported(source, node, "generator")], []
        else:
            value = convert(source, kid)
            if not keywords:
                args.append(value)
            elif isinstance(value, Name):
                kwargs.append((value.id, value))
            elif isinstance(value, Field):
                kwargs.append((value.name, value))
            elif isinstance(value, Splat):
                kwargs.append(("...", value.value))
            else:
                source.problem(kid, "invalid keyword argument")
    return args, kwargs


def named(source: Source, node: Tree) -> tuple[str, Node] | Node:
    """Return the name and value of `k = v` in an argument list; `k!=v` there is a comparison."""
    kids = source.kids(node)
    name, equals = kids[0], kids[1]
    if source.data[equals.start_byte - 1] == 33 and name.end_byte == equals.start_byte:
        flat = Chain(source.data, source.place)
        flatten_operand(source, name, flat)
        push_operator(source, equals, flat)
        flatten_operand(source, kids[2], flat)
        return flat.parse()[0]
    if name.type != "identifier":
        source.problem(node, "invalid keyword argument")
    return source.name(name), convert(source, kids[2])


def do_block(source: Source, node: Tree) -> Node:
    """Return the function that a `do` block is."""
    params: tuple[Param, ...] = ()
    opening: tuple[Node, ...] = ()
    body = [kid for kid in source.kids(node) if kid.is_named]
    if body and body[0].type == "argument_list":
        params, _, opening = definitions.parameters(source, body.pop(0))
    block = definitions.block(source, body, source.pos(node))
    return Lambda(params, Block(opening + block.body, pos=block.pos), pos=source.pos(node))


@converts("index_expression")
def _index(source: Source, node: Tree) -> Node:
    whole = prefixed(source, node)
    if whole is not None:
        return whole
    kids = source.kids(node)
    base = convert(source, kids[0])
    inner = kids[1]
    if inner.type == "comprehension_expression":
        return unsupported(source, node, "comprehension")
    source.indexing += 1
    rows = rows_of(source, inner)
    args = items(source, inner) if rows is None else ()
    source.indexing -= 1
    if rows is not None:
        if not is_single(source, inner, rows):
            return unsupported(source, node, "typed matrix literal `T[a b]` (an index `a[i -1]` is read as one)")
        args = rows[0]
    return Index(base, args, pos=source.pos(node))


@converts("field_expression", "scoped_identifier")
def _field(source: Source, node: Tree) -> Node:
    whole = prefixed(source, node)
    if whole is not None:
        return whole
    kids = source.kids(node)
    base, last = convert(source, kids[0]), kids[-1]
    if last.type == "identifier":
        return Field(base, source.name(last), pos=source.pos(node))
    if last.type == "quote_expression":
        inner = last.children[-1]
        if inner.type in ("identifier", "operator"):
            return Field(base, fold(source.text(inner)), pos=source.pos(node))
    return unsupported(source, node, "computed field name")


@converts("adjoint_expression")
def _adjoint(source: Source, node: Tree) -> Node:
    whole = prefixed(source, node)
    if whole is not None:
        return whole
    return Call(operator_name("'"), (convert(source, source.kids(node)[0]),), pos=source.pos(node))


@converts("parametrized_type_expression")
def _curly(source: Source, node: Tree) -> Node:
    kids = source.kids(node)
    return Curly(convert(source, kids[0]), braces(source, kids[1]), pos=source.pos(node))


@converts("curly_expression")
def _braces(source: Source, node: Tree) -> Node:
    return unsupported(source, node, "braces `{...}`")


# --- parentheses and brackets ----------------------------------------------------------------------------------------


@converts("parenthesized_expression")
def _parenthesized(source: Source, node: Tree) -> Node:
    kids = source.kids(node)
    inner = [kid for kid in kids if kid.is_named]
    if any(kid.type == "for_clause" for kid in inner):
        return unsupported(source, node, "generator")
    if len(inner) == 1 and not any(kid.type == ";" for kid in kids):
        return convert(source, inner[0])
    return definitions.block(source, inner, source.pos(node))


@converts("tuple_expression")
def _tuple(source: Source, node: Tree) -> Node:
    kids = source.kids(node)
    pos = source.pos(node)
    items: list[Node] = []
    names: list[str] = []
    semicolon = False
    for kid in kids:
        if not kid.is_named:
            semicolon = semicolon or kid.type == ";"
        elif kid.type == "named_field":
            inner = source.kids(kid)
            names.append(source.name(inner[0]))
            items.append(convert(source, inner[2]))
        elif kid.type == "for_clause":
            return unsupported(source, node, "generator")
        else:
            value = convert(source, kid)
            items.append(value)
            if semicolon:
                if isinstance(value, Name | Field):
                    names.append(value.id if isinstance(value, Name) else value.name)
                else:
                    return unsupported(source, node, "splatted named tuple")
    if semicolon or names:
        if len(names) != len(items):
            return unsupported(source, node, "tuple with names for some of its items")
        return TupleExpr(tuple(items), tuple(names), pos=pos)
    return TupleExpr(tuple(items), pos=pos)


def rows_of(source: Source, node: Tree) -> list[tuple[Node, ...]] | None:
    """Return the rows of `[a b; c d]`, of which `[a; b]` has two of one; None for a list with commas or nothing."""
    kids = [kid for kid in source.kids(node) if kid.is_named]
    if node.type == "vector_expression":
        return [tuple(elements(source, kids))] if len(kids) == 1 and node.children[-2].type != "," else None
    return [tuple(elements(source, [k for k in source.kids(row) if k.is_named])) for row in kids]


def is_single(source: Source, node: Tree, rows: list[tuple[Node, ...]]) -> bool:
    """Whether brackets hold one item, so that they are a list; `[a;]` is a matrix."""
    behind = source.data[node.children[-2].end_byte : node.end_byte]
    return len(rows) == 1 and len(rows[0]) == 1 and b";" not in behind


def items(source: Source, node: Tree) -> tuple[Node, ...]:
    """Return the items of `[a, b]`."""
    found: list[Node] = []
    for kid in source.kids(node):
        if kid.type == "," and not found:
            source.problem(kid, "unexpected `,`")
        if kid.is_named:
            made = elements(source, [kid])
            if len(made) > 1:
                source.problem(kid, "unexpected comma in a matrix row")
            found += made
    return tuple(found)


@converts("vector_expression", "matrix_expression")
def _array(source: Source, node: Tree) -> Node:
    rows = rows_of(source, node)
    pos = source.pos(node)
    if rows is None:
        return VectorExpr(items(source, node), pos=pos)
    if is_single(source, node, rows):
        return VectorExpr(rows[0], pos=pos)
    return MatrixExpr(tuple(rows), pos=pos)


@converts("comprehension_expression")
def _comprehension(source: Source, node: Tree) -> Node:
    return unsupported(source, node, "comprehension")


@converts("interpolation_expression")
def _interpolation(source: Source, node: Tree) -> Node:
    return unsupported(source, node, "interpolation `$`")


# --- macro calls -----------------------------------------------------------------------------------------------------


@converts("macrocall_expression")
def _macro(source: Source, node: Tree) -> Node:
    kids = source.kids(node)
    at = next(i for i, kid in enumerate(kids) if kid.type == "macro_identifier")
    args: list[Node] = []
    for kid in kids[at + 1 :]:
        if kid.type == "macro_argument_list":
            args += elements(source, source.kids(kid))
        elif kid.type == "argument_list":
            args += macro_arguments(source, kid)
        elif kid.type == "do_clause":
            args.insert(0, do_block(source, kid))
        else:
            args.append(convert(source, kid))
    return definitions.macro_call(source, node, args)


def macro_arguments(source: Source, node: Tree) -> list[Node]:
    """Return the arguments of `@m(a, b = 3)`: there `b = 3` is an assignment."""
    args: list[Node] = []
    for kid in source.kids(node):
        if kid.type == "named_argument":
            pair = named(source, kid)
            if isinstance(pair, tuple):
                at = source.pos(kid)
                pair = Assign(Name(pair[0], pos=at), pair[1], pos=at)
            args.append(pair)
        elif kid.type == "for_clause":
            return [unsupported(source, node, "generator")]
        elif kid.is_named:
            args.append(convert(source, kid))
        elif kid.type == ";":
            source.problem(kid, "unexpected `;` among the arguments of a macro")
    return args
