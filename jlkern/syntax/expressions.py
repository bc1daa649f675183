"""Conversion of expressions: operator chains, calls, indexing, tuples, arrays, macro calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jlkern.syntax import definitions
from jlkern.syntax.cst import FACTOR_MARK, Source, convert, converts, fold, unsupported
from jlkern.syntax.literals import integer
from jlkern.syntax.nodes import (
    Assign,
    Block,
    Call,
    Curly,
    DotCall,
    Field,
    Index,
    Lambda,
    MacroCall,
    MatrixExpr,
    Name,
    Node,
    Param,
    Splat,
    TupleExpr,
    VectorExpr,
)
from jlkern.syntax.operators import JUXTAPOSED, UNARY, Braces, Chain, operator_name, split_dot

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

# --- operator chains -------------------------------------------------------------------------------------------------

# What is flattened, with the index of the child that is the operator where the child is a named node.
_CHAINED = {
    "binary_expression": 1,
    "assignment": 1,
    "compound_assignment_expression": 1,
    "unary_expression": 0,
    "range_expression": -1,
    "splat_expression": -1,
    "typed_expression": -1,
    "unary_typed_expression": -1,
    "where_expression": -1,
    "juxtaposition_expression": -1,
    "ternary_expression": -1,
    "arrow_function_expression": -1,
    "open_tuple": -1,
}
_FACTOR_MARK = FACTOR_MARK.decode()
_NO_FACTORS = frozenset(
    ("integer_literal", "float_literal", "string_literal", "character_literal", "macrocall_expression", "operator")
)
_POSTFIX = frozenset(
    ("call_expression", "index_expression", "field_expression", "adjoint_expression", "broadcast_call_expression")
)
_CALLABLE_HEADS = frozenset(("call_expression", "where_expression", "typed_expression"))
# What may stand beside an operator that is used as a value.
_BEFORE_OPERATOR = frozenset((b"", *(bytes((char,)) for char in b" \t\n([{,=;")))
_AFTER_OPERATOR = frozenset((b"", *(bytes((char,)) for char in b" \t\n)]},;")))
_OPERATOR_STARTS = frozenset(b"+-!~<>\xc2\xe2")


@converts(*_CHAINED)
def chain(source: Source, node: Tree) -> Node:
    """Return the tree of an operator expression."""
    flat = Chain(source.data, source.place)
    flatten(source, node, flat)
    return flat.parse()[0]


def elements(source: Source, nodes: list[Tree]) -> list[Node]:
    """Return the expressions of a row, where space separates: `[a -b]` and `@m a -b` have two, `[2x]` has one."""
    if len(nodes) == 1 and nodes[0].type not in _CHAINED:
        return [convert(source, nodes[0])]
    flat = Chain(source.data, source.place, sensitive=True)
    before = ""
    for node in nodes:
        start = node.start_byte
        if flat.ends and flat.ends[-1] == start:
            if node.type in _NO_FACTORS or before == "macrocall_expression":
                source.problem(node, f"unexpected `{source.text(node)[:40]}`")
            flat.push(JUXTAPOSED, start, start)
        before = node.type
        flatten_operand(source, node, flat)
    return flat.parse()


def flatten(source: Source, node: Tree, flat: Chain) -> None:
    """Append the operands and operators under a node to a chain."""
    operator_at = _CHAINED[node.type]
    kids = source.kids(node)
    if node.type == "juxtaposition_expression":
        if kids[0].end_byte != kids[1].start_byte:
            source.problem(kids[1], f"unexpected `{source.text(kids[1])[:40]}`")
        if kids[0].type != "adjoint_expression":
            factor_checked(source, kids[0], kids[1])
        flatten_operand(source, kids[0], flat)
        flat.push(JUXTAPOSED, kids[1].start_byte, kids[1].start_byte)
        flatten_operand(source, kids[1], flat)
        return
    first = 0
    if operator_at == 1 and node.type == "assignment" and kids[0].type in _CALLABLE_HEADS:
        head = definitions.short_form(source, kids[0])
        if head is not None:
            flat.push(head, kids[0].start_byte, kids[0].end_byte)
            first = 1
    for at in range(first, len(kids)):
        kid = kids[at]
        if at == operator_at or not kid.is_named or kid.is_error:
            if not kid.is_missing:
                push_operator(source, kid, flat)
        else:
            flatten_operand(source, kid, flat)


def check_word(source: Source, node: Tree) -> None:
    """Raise when an operator that is a word is the start of a longer one: `i index` is no `i in dex`."""
    follows = source.data[node.end_byte : node.end_byte + 2].decode(errors="ignore")[:1]
    if (
        follows.isalnum()
        or follows == "_"
        or (not follows and source.data[node.end_byte : node.end_byte + 1] > b"\x7f")
    ):
        source.problem(node, f"unexpected `{source.text(node)}{follows}`")


def factor_checked(source: Source, number: Tree, factor: Tree) -> None:
    """Raise when what looks like `2x` is a number that Julia refuses: `0b2`, `0x1g`, `2.x`."""
    text = source.text(number)
    if text[-1] == "." or (factor.type == "identifier" and (text[1:2] in ("x", "b", "o") or text == "0")):
        follows = source.text(factor)[:20]
        if text[-1] == "." or text != "0" or follows[0] in "xbo":
            source.problem(number, f"invalid number `{text}{follows}`")


def push_operator(source: Source, kid: Tree, flat: Chain) -> None:
    """Append an operator; the `!` of `x!=y` belongs to it, though the grammar gives it to the name."""
    op, start = source.text(kid), kid.start_byte
    if source.inserted and op == _FACTOR_MARK:
        flat.push(JUXTAPOSED, kid.end_byte, kid.end_byte)
        return
    if not op.isascii():
        op = fold(op)
    if op == "-" and flat.ends and flat.ends[-1] == start and flat.items[-1] == "-":
        source.problem(kid, "invalid operator `--`")
    if op in ("in", "isa", "where"):
        check_word(source, kid)
    if source.original is not None and op == "=":  # the compound assignment that it was before the repair
        while source.data[start - 1] == 32 and source.original[start - 1] != 32:
            start -= 1
        op = fold(source.original[start : kid.end_byte].decode())
    if op in ("=", "==") and flat.ends and flat.ends[-1] == start and source.data[start - 1] == 33:  # 33 is `!`
        name = flat.items[-1]
        if isinstance(name, Name):
            flat.items[-1] = Name(name.id[:-1], pos=name.pos)
            flat.ends[-1] = start = start - 1
            op = "!" + op
    flat.push(op, start, kid.end_byte)


def flatten_operand(source: Source, node: Tree, flat: Chain) -> None:
    """Append an operand, or the operators and operands that it is made of."""
    kind = node.type
    if kind in _CHAINED:
        flatten(source, node, flat)
        return
    start, end = node.start_byte, node.end_byte
    if kind == "operator" and flat.sensitive:
        source.problem(node, f"unexpected `{source.text(node)}`")
    if kind == "integer_literal":
        flat.push(integer(source, node), start, end)
        return
    if kind == "curly_expression":
        flat.push(Braces(braces(source, node), pos=source.pos(node)), start, end)
        return
    if kind in _POSTFIX and source.data[start] in _OPERATOR_STARTS:
        call = unary_head(source, node)
        if call is not None:
            operator, arguments = call.children[0], call.children[1]
            source.replaced[call.id] = convert(source, arguments.children[1])
            push_operator(source, operator, flat)
            start = arguments.start_byte
    flat.push(convert(source, node), start, end)


def unary_head(source: Source, node: Tree) -> Tree | None:
    """Return the `-(a)` that a postfix expression as `-(a)[1]` or `-(a)` starts with.

    Julia takes `-` before one parenthesised operand as the prefix operator, which binds looser than what follows, so
    `-(a)^2` is `-(a^2)`; the grammar takes it as a call.
    """
    while node.type in _POSTFIX:
        first = node.children[0]
        if node.type == "call_expression" and first.type == "operator":
            kids = source.kids(node)
            inner = source.kids(kids[1])
            plain = len(kids) == 2 and len(inner) == 3 and inner[1].type not in ("splat_expression", "named_argument")
            return node if plain and source.text(first) in UNARY and node.id not in source.replaced else None
        node = first
    return None


@converts("operator")
def _operator(source: Source, node: Tree) -> Node:
    text = fold(source.text(node))
    around = source.data[node.start_byte - 1 : node.start_byte], source.data[node.end_byte : node.end_byte + 1]
    if around[0] not in _BEFORE_OPERATOR or around[1] not in _AFTER_OPERATOR:
        source.problem(node, f"unexpected `{source.text(node)}`")
    return Name(text, pos=source.pos(node))


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


def prefixed(source: Source, node: Tree) -> Node | None:
    """Return what a postfix expression is that starts with a prefix operator, as `-(a)[1]`; None for any other."""
    if source.data[node.start_byte] not in _OPERATOR_STARTS:
        return None
    head = unary_head(source, node)
    if head is None or head.id == node.id:
        return None
    flat = Chain(source.data, source.place)
    flatten_operand(source, node, flat)
    return flat.parse()[0]


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
        if len(rows) != 1 or len(rows[0]) != 1 or b";" in source.data[inner.start_byte : inner.end_byte]:
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


def braces(source: Source, node: Tree) -> tuple[Node, ...]:
    """Return the items of `{a, b}`."""
    return tuple(convert(source, kid) for kid in source.kids(node) if kid.is_named)


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
            source.problem(node, "a tuple has names for all its items or for none")
        return TupleExpr(tuple(items), tuple(names), pos=pos)
    return TupleExpr(tuple(items), pos=pos)


def rows_of(source: Source, node: Tree) -> list[tuple[Node, ...]] | None:
    """Return the rows of `[a b; c d]`, of which `[a; b]` has two of one; None for a list with commas or nothing."""
    kids = [kid for kid in source.kids(node) if kid.is_named]
    if node.type == "vector_expression":
        return [tuple(elements(source, kids))] if len(kids) == 1 and node.children[-2].type != "," else None
    return [tuple(elements(source, [k for k in source.kids(row) if k.is_named])) for row in kids]


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
    if len(rows) == 1 and len(rows[0]) == 1 and b";" not in source.data[node.start_byte : node.end_byte]:
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
    qualifier = source.text(kids[0]) if at else None
    inner = source.kids(kids[at])[-1]
    name = fold(source.text(inner))
    if inner.start_byte != kids[at].start_byte + 1 or (inner.type == "operator" and name != ".") or "?" in name:
        source.problem(kids[at], f"unexpected `{source.text(kids[at])}`")
    if inner.type == "scoped_identifier":
        qualifier, name = name.rsplit(".", 1)
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
    if name == "kernel":
        made = definitions.kernel(source, node, args)
        if made is not None:
            return made
    return MacroCall(name, tuple(args), qualifier, pos=source.pos(node))


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
