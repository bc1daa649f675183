"""Conversion of operator expressions: flattened to a chain, which `operators.Chain` puts together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jlkern.syntax import definitions
from jlkern.syntax.building import Braces, operator_name
from jlkern.syntax.cst import FACTOR_MARK, Source, convert, converts, fold
from jlkern.syntax.literals import integer
from jlkern.syntax.nodes import Call, Name, Node, TupleExpr
from jlkern.syntax.operators import JUXTAPOSED, UNARY, Chain

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

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
_CONTINUES = frozenset(b".+-~<>*/\\^%&|=\xc2\xc3\xe2:")  # what an infix operator may start with
_OPERATOR_STARTS = frozenset(b".+-!~<>*/\\^%&|=\xc2\xc3\xe2")


@converts(*_CHAINED)
def chain(source: Source, node: Tree) -> Node:
    """Return the tree of an operator expression."""
    flat = Chain(source.data, source.place)
    flatten(source, node, flat)
    return flat.parse()[0]


def condition(source: Source, node: Tree, rest: list[Tree]) -> Node:
    """Return the condition of `if` or `while`, taking from the statements behind it what belongs to it.

    The grammar reads `if a - b < c` as the condition `a` and the statement `-b < c` on the same line.
    """
    if not rest or source.data[rest[0].start_byte] not in _CONTINUES or separated(source, node, rest[0]):
        return convert(source, node)
    flat = Chain(source.data, source.place)
    flatten_operand(source, node, flat)
    flat.continues = True
    flatten_operand(source, rest.pop(0), flat)
    return flat.parse()[0]


def separated(source: Source, before: Tree, node: Tree) -> bool:
    """Whether a line break or `;` stands between two nodes."""
    between = source.data[before.end_byte : node.start_byte]
    return b"\n" in between or b";" in between


def elements(source: Source, nodes: list[Tree]) -> list[Node]:
    """Return the expressions of a row, where space separates: `[a -b]` and `@m a -b` have two, `[2x]` has one."""
    if len(nodes) == 1 and nodes[0].type not in _CHAINED:
        return [convert(source, nodes[0])]
    flat = Chain(source.data, source.place, sensitive=True)
    flatten_row(source, nodes, flat)
    return flat.parse()


def word_call(source: Source, left: Tree, flat: Chain) -> Chain | None:
    """Begin `!isa(a, T)` or `@m isa(a, T)`, where the grammar takes `isa` for an operator; None where it is one."""
    if left.type == "operator":
        push_operator(source, left, flat)
        return flat
    if left.type == "macrocall_expression" and source.kids(left)[-1].type == "macro_identifier":
        return flat.open_macro(lambda args: definitions.macro_call(source, left, args), left.start_byte, left.end_byte)
    return None


def flatten_row(source: Source, nodes: list[Tree], flat: Chain) -> None:
    """Append the expressions of a row; the grammar splits `2x` there in two, and joins `0 x` to a product."""
    before = ""
    for node in nodes:
        if before and flat.ends[-1] == node.start_byte and not isinstance(flat.items[-1], str):
            if node.type in _NO_FACTORS or before == "macrocall_expression":
                source.problem(node, f"unexpected `{source.text(node)[:40]}`")
            flatten_factor(source, node, flat)
        else:
            flatten_operand(source, node, flat)
        before = node.type


def flatten_factor(source: Source, node: Tree, flat: Chain) -> None:
    """Append what stands right behind an operand: a factor of a product, or `-(a)`, which is a difference there."""
    flat = flat.last()
    start = node.start_byte
    call = unary_head(source, node, any_operator=True) if source.data[start] in _OPERATOR_STARTS else None
    if call is None:
        flat.push(JUXTAPOSED, start, start)
        flatten_operand(source, node, flat)
        return
    operator, arguments = source.kids(call)
    source.replaced[call.id] = convert(source, source.kids(arguments)[1])
    push_operator(source, operator, flat)
    flat.push(convert(source, node), arguments.start_byte, node.end_byte)


def flatten(source: Source, node: Tree, flat: Chain) -> None:
    """Append the operands and operators under a node to a chain."""
    flat = flat.last()
    operator_at = _CHAINED[node.type]
    kids = source.kids(node)
    if node.type == "juxtaposition_expression":
        flatten_operand(source, kids[0], flat)
        if kids[0].end_byte == kids[1].start_byte:
            if kids[0].type != "adjoint_expression":
                factor_checked(source, kids[0], kids[1])
            flatten_factor(source, kids[1], flat)
        elif (call := unary_head(source, kids[1], any_operator=True)) is not None and (
            not flat.sensitive or source.text(call.children[0]) not in UNARY
        ):
            flatten_factor(source, kids[1], flat)
        elif flat.sensitive:
            flatten_operand(source, kids[1], flat)
        else:
            source.problem(kids[1], f"unexpected `{source.text(kids[1])[:40]}`")
        return
    first = 0
    if operator_at == 1:
        if node.type == "assignment" and kids[0].type in _CALLABLE_HEADS:
            head = definitions.short_form(source, kids[0])
            if head is not None:
                flat.push(head, kids[0].start_byte, kids[0].end_byte)
                first = 1
        elif source.text(kids[1]) in ("isa", "in") and source.data[kids[1].end_byte] == 40:  # 40 is `(`
            rest = word_call(source, kids[0], flat)
            if rest is not None:
                rest.function = source.text(kids[1])
                flatten_operand(source, kids[2], rest)
                return
    for at in range(first, len(kids)):
        kid = kids[at]
        behind_fault = kid.type == "operator" and at > 0 and kids[at - 1].is_error
        if at == operator_at or not kid.is_named or kid.is_error or behind_fault:
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
    if flat.tail is not None:
        flat = flat.last()
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
    if flat.tail is not None:
        flat = flat.last()
    if flat.continues:
        flat.continues = False
        if unary_head(source, node, any_operator=True) is not None:
            flatten_factor(source, node, flat)
            return
    start, end = node.start_byte, node.end_byte
    if flat.function is not None:
        name, flat.function = flat.function, None
        if kind not in ("tuple_expression", "parenthesized_expression"):
            source.problem(node, f"unexpected `{source.text(node)[:40]}`")
        inner = convert(source, node)
        args = inner.items if isinstance(inner, TupleExpr) and kind == "tuple_expression" else (inner,)
        flat.push(Call(operator_name(name), args, pos=source.pos(node)), start, end)
        return
    if kind == "macrocall_expression" and node.children[-1].type == "macro_argument_list":
        rest = flat.open_macro(lambda args: definitions.macro_call(source, node, args), start, end)
        flatten_row(source, source.kids(node.children[-1]), rest)
        return
    if kind == "operator" and flat.items and flat.items[-1] == "-" and source.data[start - 1 : end] == b"->":
        flat.items[-1] = "->"  # split in two where the grammar expects no lambda, as in `@ntuple 3 k -> k`
        flat.ends[-1] = end
        return
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


def unary_head(source: Source, node: Tree, any_operator: bool = False) -> Tree | None:
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
            known = any_operator or source.text(first) in UNARY
            return node if plain and known and node.id not in source.replaced else None
        node = first
    return None


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


def braces(source: Source, node: Tree) -> tuple[Node, ...]:
    """Return the items of `{a, b}`."""
    return tuple(convert(source, kid) for kid in source.kids(node) if kid.is_named)


@converts("operator")
def _operator(source: Source, node: Tree) -> Node:
    text = fold(source.text(node))
    around = source.data[node.start_byte - 1 : node.start_byte], source.data[node.end_byte : node.end_byte + 1]
    if around[0] not in _BEFORE_OPERATOR or around[1] not in _AFTER_OPERATOR:
        source.problem(node, f"unexpected `{source.text(node)}`")
    return Name(text, pos=source.pos(node))
