"""What operators build: calls, functions, lambdas, and the pieces that live only while a chain is put together."""

from __future__ import annotations

from dataclasses import dataclass

from jlkern.syntax.nodes import (
    Block,
    Call,
    DotCall,
    Field,
    FunctionDef,
    Index,
    Lambda,
    Literal,
    Name,
    Node,
    Param,
    Pos,
    Splat,
    TupleExpr,
    Typed,
    Unsupported,
)
from jlkern.syntax.problem import SyntaxProblem
from jlkern.syntax.walk import walk

_NAMES: dict[str, Name] = {}


# --- pieces --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Signature(Node):
    """The left side of a short-form function."""

    head: FunctionDef


@dataclass(frozen=True, slots=True)
class Params(Node):
    """The parenthesised parameters of a lambda, and the statements that take its tuple parameters apart."""

    params: tuple[Param, ...]
    opening: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Braces(Node):
    """`{T, S}` after `where`."""

    items: tuple[Node, ...]


def operator_name(op: str) -> Name:
    """Return the shared `Name` of an operator."""
    name = _NAMES.get(op)
    if name is None:
        name = _NAMES[op] = Name(op)
    return name


def split_dot(op: str) -> str | None:
    """Return the operator under a dotted one (`.+` gives `+`), or None when `op` is not dotted."""
    return op[1:] if len(op) > 1 and op[0] == "." and op[1] != "." else None


def operation(op: str, args: tuple[Node, ...], pos: Pos) -> Node:
    """Return the call that an operator between (or before) its operands stands for."""
    base = split_dot(op)
    return Call(operator_name(op), args, pos=pos) if base is None else DotCall(operator_name(base), args, pos=pos)


def refused(what: str, *nodes: Node) -> Unsupported:
    """Return the node of a construct that we have no node for, with the names in its parts."""
    names = (found.id for node in nodes for found in walk(node) if isinstance(found, Name))
    return Unsupported(what, tuple(dict.fromkeys(names)), pos=nodes[0].pos)


def finished(node: Node) -> Node:
    """Return an operand as it stands in the tree: a literal that no engine has becomes `Unsupported`."""
    if isinstance(node, Literal):
        return Unsupported(f"{node.type} literal", pos=node.pos) if node.type in _BIG else node
    if isinstance(node, Braces):
        return Unsupported("braces `{...}`", pos=node.pos)
    return node


_BIG = frozenset(("Int128", "UInt128", "BigInt"))


def signed_literal(op: str, number: Literal, pos: Pos) -> Literal | None:
    """Return the literal of `-2` or `+2.0`; None where the sign stays a call, as in `-0x01`."""
    if number.type.startswith("UInt"):
        return Literal(number.value, number.type, pos=pos) if op == "+" else None
    value = number.value
    assert isinstance(value, int | float)
    if op == "-":
        value = -value
    kind = number.type
    if kind == "Int128" and value == -(2**63):
        kind = "Int64"
    elif kind == "BigInt" and value == -(2**127):
        kind = "Int128"
    return Literal(value, kind, pos=pos)


def define(head: FunctionDef, value: Node) -> FunctionDef:
    """Return the function of a head and the value after its `=`."""
    body = value.body if isinstance(value, Block) else (value,)
    opening = head.body.body
    return FunctionDef(
        head.name,
        head.params,
        Block(opening + body, pos=value.pos),
        head.where,
        head.returns,
        head.kwparams,
        pos=head.pos,
    )


def make_lambda(left: Node, body: Node) -> Node:
    """Return `left -> body`."""
    if isinstance(left, Params):
        params, opening = left.params, left.opening
    elif isinstance(left, Name):
        params, opening = (Param(left.id, pos=left.pos),), ()
    elif isinstance(left, Typed) and (left.value is None or isinstance(left.value, Name)):
        name = left.value.id if left.value is not None else None
        params, opening = (Param(name, left.type, pos=left.pos),), ()
    elif isinstance(left, TupleExpr) and all(isinstance(item, Name) for item in left.items):
        params, opening = tuple(Param(item.id, pos=item.pos) for item in left.items if isinstance(item, Name)), ()
    else:
        raise SyntaxProblem(left.pos.line, left.pos.column, "invalid parameters of `->`")
    if opening:
        rest = body.body if isinstance(body, Block) else (body,)
        body = Block(opening + rest, pos=body.pos)
    return Lambda(params, body, pos=left.pos)


def assignable(node: Node) -> bool:
    """Whether a node can stand on the left of an assignment."""
    kind = node.__class__
    if kind in (Name, Index, Field):
        return True
    if isinstance(node, Typed):
        return node.value is not None and assignable(node.value)
    if isinstance(node, TupleExpr):
        return all(assignable(item.value if isinstance(item, Splat) else item) for item in node.items)
    return False
