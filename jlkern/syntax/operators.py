"""The re-association of flat operator chains by Julia's precedence.

The grammar that makes the CST gets some of Julia wrong without an error node (`2x^2`, `2^3^2`, `a < b < c`), so the
parser flattens every operator expression to a chain of operands and operators, and `Chain` builds the tree anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from jlkern.syntax.building import (
    Braces,
    Signature,
    assignable,
    define,
    finished,
    make_lambda,
    operation,
    operator_name,
    refused,
    signed_literal,
    split_dot,
)
from jlkern.syntax.nodes import (
    Assign,
    Call,
    Compare,
    Curly,
    DotCall,
    If,
    Literal,
    MacroCall,
    Name,
    Node,
    Pos,
    ShortCircuit,
    Splat,
    TupleExpr,
    Typed,
    Unsupported,
    Where,
)
from jlkern.syntax.precedence import AND, ASSIGN, COLON, COMPARE, COND, LEVEL, OR, PAIR, PIPE_LEFT, PLUS, POWER, RIGHT
from jlkern.syntax.problem import SyntaxProblem

UNARY = frozenset("+ - ! ~ ¬ √ ∛ ∜ ± ∓ <: >:".split())
JUXTAPOSED = ""  # stands between the factors of `2x`; it is no operator, so it has no level
_CHAINED = frozenset(("+", "++", "*"))  # `a + b + c` is one call of three arguments
_BOTH = frozenset("+ - ~ & $ ± ∓ ⋆ :".split())  # `[a -b]` has two elements where these are concerned
_OPEN = Name("@")  # stands for the macro call that a chain ends in
_DEEPEST = 150  # operators that nest to the left: who walks the tree recurses that deep


class Chain:
    """One flat operator expression: operands (nodes) and operators (strings) with their places, and its parser.

    Parameters
    ----------
    data
        The source's bytes, for the whitespace around operators.
    place
        From a byte offset to the place.
    sensitive
        Whether `a -b` is two expressions, as among the arguments of a macro and in a matrix row.
    """

    __slots__ = (
        "at", "colon", "continues", "data", "ends", "function", "items", "macro", "place", "sensitive", "starts",
        "tail", "where",
    )  # fmt: skip

    def __init__(self, data: bytes, place: Callable[[int], Pos], sensitive: bool = False) -> None:
        self.items: list[Node | str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.at = 0
        self.data = data
        self.place = place
        self.sensitive = sensitive
        self.colon = True  # whether `:` makes a range: not so between `?` and `:`
        self.where = True
        self.continues = False  # whether the operand to come starts with an infix operator
        self.function: str | None = None  # a word operator that is the function of the operand to come
        self.tail: Chain | None = None  # the arguments of an open macro call: all that follows is theirs
        self.macro: Callable[[list[Node]], Node] | None = None

    def open_macro(self, finish: Callable[[list[Node]], Node], start: int, end: int) -> Chain:
        """Append an operand that is a macro call without parentheses, and return the chain of its arguments.

        In `a && @inbounds y[i] = 1` the macro's argument goes to the end, but the grammar ends it before the `=`.
        """
        self.push(_OPEN, start, end)
        self.macro = finish
        self.tail = Chain(self.data, self.place, sensitive=True)
        return self.tail

    def last(self) -> Chain:
        """Return the chain that takes what comes next: this one, or the arguments of a macro call that it ends in."""
        chain = self
        while chain.tail is not None:
            chain = chain.tail
        return chain

    def push(self, item: Node | str, start: int, end: int) -> None:
        """Append an operand or an operator with its bytes."""
        self.items.append(item)
        self.starts.append(start)
        self.ends.append(end)

    def parse(self) -> list[Node]:
        """Return the expressions: one, or several in a space-sensitive place."""
        found = [self.assignment(True)]
        while self.at < len(self.items):
            if not self.sensitive:
                self.unexpected()
            found.append(self.assignment(True))
        return found

    # --- reading ---

    def next(self) -> str | None:
        """Return the operator at hand, or None at an operand and at the end."""
        if self.at < len(self.items):
            item = self.items[self.at]
            if isinstance(item, str):
                return item
        return None

    def unexpected(self) -> NoReturn:
        """Raise the problem of the item at hand."""
        at = self.at
        if self.next() == JUXTAPOSED:
            at += 1
        if at < len(self.items):
            pos = self.place(self.starts[at])
            text = self.data[self.starts[at] : self.ends[at]].decode(errors="replace")
            raise SyntaxProblem(pos.line, pos.column, f"unexpected `{_short(text)}`")
        pos = self.place(self.ends[-1])
        raise SyntaxProblem(pos.line, pos.column, "an expression is missing")

    def splits(self) -> bool:
        """Whether the operator at hand starts a new expression: `[a -b]`."""
        at = self.at
        return (
            self.items[at] in _BOTH
            and self.starts[at] > self.ends[at - 1]
            and at + 1 < len(self.items)
            and self.starts[at + 1] == self.ends[at]
        )

    # --- levels, loosest first ---

    def assignment(self, commas: bool) -> Node:
        """Parse `a = b`, with bare tuples on both sides when `commas`."""
        left = self.binary(PAIR)
        if self.at >= len(self.items):
            return left
        if commas and self.items[self.at] == ",":
            left = self.comma(left)
        op = self.next()
        if op is None or LEVEL.get(op) != ASSIGN or (self.sensitive and self.splits()):
            return left
        self.at += 1
        return self.assign(left, op, self.assignment(commas))

    def comma(self, first: Node) -> Node:
        """Parse the rest of `a, b`; the comma of `a, = t` may be the last."""
        items = [first]
        while self.next() == ",":
            self.at += 1
            if self.next() == "=":
                break
            items.append(self.binary(PAIR))
        return TupleExpr(tuple(items), pos=first.pos)

    def assign(self, left: Node, op: str, right: Node) -> Node:
        """Return the assignment, or the function that a short form defines."""
        if op == "=" and isinstance(left, Signature):
            return define(left.head, right)
        if isinstance(left, Unsupported):
            return left
        if isinstance(left, MacroCall):
            return refused(f"`{op}` to the macro call `@{left.name}`", left, right)
        if op in ("~", ".~"):
            return operation(op, (left, right), left.pos)
        base = split_dot(op) or op
        if base in (":=", "≔", "⩴", "≕", "$="):
            return refused(f"operator `{op}`", left, right)
        if left.__class__ is Curly and op == "=":
            return refused("parametric type alias", left, right)
        if base is not op and left.__class__ in (Call, DotCall):
            return refused(f"`{op}` to a call", left, right)
        if not assignable(left) or (left.__class__ is TupleExpr and base != "="):
            why = "; put the assignment in parentheses" if left.__class__ in (ShortCircuit, If) else ""
            raise SyntaxProblem(left.pos.line, left.pos.column, f"invalid target of `{op}`{why}")
        under = operator_name(base[:-1]).id if base != "=" else None
        return Assign(left, right, under, base is not op, pos=left.pos)

    def binary(self, level: int) -> Node:
        """Parse operators of `level` and tighter, down to shifts, by precedence climbing."""
        left = self.prefix()
        items = self.items
        depth = 0
        while self.at < len(items):
            op = items[self.at]
            depth += 1
            if depth > _DEEPEST:
                pos = self.place(self.starts[self.at])
                raise SyntaxProblem(pos.line, pos.column, f"more than {_DEEPEST} operators in a row; split it up")
            if not isinstance(op, str):
                if not self.sensitive:
                    self.unexpected()
                return left
            this = LEVEL.get(op, 0)
            if this < level or (self.sensitive and self.splits()):
                return left
            if this == COLON:
                if op == ":" and not self.colon:
                    return left
                left = self.range(left, op)
            elif this == COMPARE:
                left = self.comparison(left)
            elif this == COND:
                left = self.conditional(left)
            elif this == POWER:  # `^` is taken where its base is parsed
                self.unexpected()
            else:
                self.at += 1
                left = self.operate(left, op, this)
        return left

    def operate(self, left: Node, op: str, level: int) -> Node:
        """Parse the right side of an operator that is just behind, and its like to the right of it."""
        right = self.binary(level if level in RIGHT else level + 1)
        if level in (OR, AND):
            if op[0] == ".":
                return refused(f"operator `{op}`", left, right)
            return ShortCircuit(op, left, right, pos=left.pos)
        if op not in _CHAINED:
            return operation(op, (left, right), left.pos)
        args = [left, right]
        while self.next() == op and not (self.sensitive and self.splits()):
            self.at += 1
            args.append(self.binary(level + 1))
        return Call(operator_name(op), tuple(args), pos=left.pos)

    def conditional(self, cond: Node) -> Node:
        """Parse `? a : b`."""
        self.spaced("?")
        self.at += 1
        before, self.colon = self.colon, False
        then = self.assignment(False)
        self.colon = before
        if self.next() != ":":
            self.unexpected()
        self.spaced(":")
        self.at += 1
        return If(cond, then, self.assignment(False), True, pos=cond.pos)

    def spaced(self, op: str) -> None:
        """Raise when a mark of the ternary has no space on one side, which Julia wants."""
        at = self.at
        if self.starts[at] == self.ends[at - 1] or (at + 1 < len(self.items) and self.starts[at + 1] == self.ends[at]):
            pos = self.place(self.starts[at])
            raise SyntaxProblem(pos.line, pos.column, f"space required around `{op}` of `a ? b : c`")

    def comparison(self, left: Node) -> Node:
        """Parse one comparison or a chain of them."""
        operands, ops = [left], []
        while (op := self.next()) is not None and LEVEL.get(op) == COMPARE:
            self.at += 1
            ops.append(op)
            operands.append(self.binary(PIPE_LEFT))
        if len(ops) == 1:
            return operation(ops[0], tuple(operands), left.pos)
        return Compare(tuple(operands), tuple(ops), pos=left.pos)

    def range(self, left: Node, op: str) -> Node:
        """Parse `a:b`, `a:s:b`, another operator of that level, or the `...` of a splat."""
        if op == "...":
            self.at += 1
            if LEVEL.get(self.next() or "", 0) >= COLON:
                self.unexpected()
            return Splat(left, pos=left.pos)
        if op != ":":
            self.at += 1
            return operation(op, (left, self.binary(PLUS)), left.pos)
        args = [left]
        while self.next() == ":" and not (self.sensitive and self.splits()):
            self.at += 1
            args.append(self.binary(PLUS))
            if len(args) == 3:
                args = [Call(operator_name(":"), tuple(args), pos=left.pos)]
        return args[0] if len(args) == 1 else Call(operator_name(":"), tuple(args), pos=left.pos)

    # --- tighter than every infix operator but `^` and `::` ---

    def prefix(self) -> Node:
        """Parse `<: T`, or a factor with its `where`."""
        at = self.at
        if at < len(self.items):
            item = self.items[at]
            if not isinstance(item, str):  # most operands stand between plain infix operators
                follows = self.items[at + 1] if at + 1 < len(self.items) else "="
                if isinstance(follows, str) and LEVEL.get(follows, POWER) < POWER and item is not _OPEN:
                    self.at = at + 1
                    return finished(item)
        op = self.next()
        if op in ("<:", ">:"):
            pos = self.place(self.starts[self.at])
            self.at += 1
            return Call(operator_name(op), (self.prefix(),), pos=pos)
        return self.wheres(self.juxtaposed())

    def juxtaposed(self) -> Node:
        """Parse `2x` and `2(x)y`, each one product; `2^3x` is `2^(3x)`, so this is also what stands right of `^`."""
        left = self.unary()
        if self.next() != JUXTAPOSED:
            return left
        factors = [left]
        while self.next() == JUXTAPOSED:
            self.at += 1
            factors.append(self.factor())
        return Call(operator_name("*"), tuple(factors), pos=left.pos)

    def wheres(self, left: Node) -> Node:
        """Parse `where T` and `where {T, S}`, any number of them."""
        while self.where and self.next() == "where":
            self.at += 1
            item = self.items[self.at] if self.at < len(self.items) else None
            if isinstance(item, Braces):
                self.at += 1
                params = item.items
            else:
                self.where = False
                params = (self.binary(COMPARE),)
                self.where = True
            left = Where(left, params, pos=left.pos)
        return left

    def unary(self) -> Node:
        """Parse prefix operators; a sign right before a decimal number belongs to the number."""
        op = self.next()
        if op is None or op == "::":
            return self.factor()
        if (split_dot(op) or op) not in UNARY:
            self.unexpected()
        at = self.at
        pos = self.place(self.starts[at])
        if op in ("-", "+") and at + 1 < len(self.items) and self.starts[at + 1] == self.ends[at]:
            number = self.items[at + 1]
            follows = self.items[at + 2] if at + 2 < len(self.items) else ""
            power = isinstance(follows, str) and LEVEL.get(follows) == POWER
            if isinstance(number, Literal) and self.data[self.starts[at + 1]] in b".0123456789" and not power:
                signed = signed_literal(op, number, pos)
                if signed is not None:
                    self.at += 2
                    return self.after(signed)
        self.at += 1
        return operation(op, (self.unary(),), pos)

    def factor(self) -> Node:
        """Parse an operand with its `::T`, `-> body` and `^ exponent`."""
        if self.next() == "::":
            pos = self.place(self.starts[self.at])
            self.at += 1
            return self.after(Typed(None, self.wheres(self.operand()), pos=pos))
        return self.after(self.operand())

    def after(self, left: Node) -> Node:
        """Parse what follows an operand at the levels of `::`, `->` and `^`."""
        while (op := self.next()) is not None:
            if op == "::":
                self.at += 1
                left = Typed(left, self.wheres(self.operand()), pos=left.pos)
            elif op == "->":
                self.at += 1
                return make_lambda(left, self.assignment(False))
            elif LEVEL.get(op) == POWER:
                self.at += 1
                return operation(op, (left, self.juxtaposed()), left.pos)
            else:
                break
        return left

    def operand(self) -> Node:
        """Return the operand at hand."""
        if self.at >= len(self.items):
            self.unexpected()
        item = self.items[self.at]
        if isinstance(item, str):
            self.unexpected()
        self.at += 1
        if item is _OPEN and self.tail is not None and self.macro is not None:
            return self.macro(self.tail.parse())
        return finished(item)


def _short(text: str) -> str:
    """Return the first line of a text, cut to a length fit for a message."""
    line = text.split("\n", 1)[0]
    return line if len(line) <= 40 else line[:37] + "..."
