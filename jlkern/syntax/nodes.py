"""The tree that the parser makes of a Julia source string: small frozen dataclasses, each with its place.

The tree is Julia's own (every construct is an expression, operators are calls), after precedence has been settled by
`jlkern.syntax.operators`. It knows neither types nor KernelAbstractions, but for `@kernel`: `@index` and friends are
`MacroCall`s.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Pos:
    """A place in the source string: line and column, both from 1."""

    line: int
    column: int


NOWHERE = Pos(0, 0)


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all nodes. Two nodes are equal when their content is; the place does not count."""

    pos: Pos = field(default=NOWHERE, kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A number, bool, string, char, symbol or `nothing`; `type` names its type as Julia does (`Int64`, ...)."""

    value: int | float | bool | str | None
    type: str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """An identifier or operator used as a value: `x`, `f!`, `+`, `π`."""

    id: str


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`f(a, b; k = v)`, and every operator: `a + b` is `Call(Name("+"), (a, b))`, `a:b` is `Call(Name(":"), (a, b))`.

    n-ary `+` and `*` chains are flat, as Julia parses them: `a + b + c` is one call with three arguments.
    `f(x) do y ... end` has its `Lambda` as first argument. Juxtaposition `2x` is a call of `*`.
    """

    func: Node
    args: tuple[Node, ...]
    kwargs: tuple[tuple[str, Node], ...] = ()


@dataclass(frozen=True, slots=True)
class DotCall(Node):
    """A broadcast call: `f.(a, b)` and dotted operators, `a .+ b` being `DotCall(Name("+"), (a, b))`."""

    func: Node
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """A chained comparison `a < b <= c` (two or more operators); a single one is a `Call`."""

    operands: tuple[Node, ...]
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShortCircuit(Node):
    """`left && right` or `left || right`."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`obj[args...]`; `Name("end")` and `Name("begin")` stand for those words, `Name(":")` for a whole dimension."""

    obj: Node
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Field(Node):
    """`obj.name`."""

    obj: Node
    name: str


@dataclass(frozen=True, slots=True)
class TupleExpr(Node):
    """`(a, b)` or bare `a, b`; with `names`, the NamedTuple `(x = a, y = b)`."""

    items: tuple[Node, ...]
    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class VectorExpr(Node):
    """`[a, b]`."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MatrixExpr(Node):
    """`[a b; c d]`, by rows; `[a; b]` has rows of one item, and is a vector in Julia."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Curly(Node):
    """A type with parameters: `Val{N}`, `SVector{3, Float32}`."""

    base: Node
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Typed(Node):
    """`value::type`; `value` is None in an anonymous argument `::T`."""

    value: Node | None
    type: Node


@dataclass(frozen=True, slots=True)
class Splat(Node):
    """`value...`."""

    value: Node


@dataclass(frozen=True, slots=True)
class Where(Node):
    """`type where {params}` in type position (a method's own `where` is in `FunctionDef`)."""

    value: Node
    params: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Interpolated(Node):
    """A string with `$` interpolation; parts are `Literal` strings and expressions."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Block(Node):
    """Statements in order; its value is the last one's."""

    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class If(Node):
    """`if`/`elseif`/`else` and the ternary; a missing `else` is None, an `elseif` an `If` in `orelse`."""

    cond: Node
    then: Node
    orelse: Node | None
    ternary: bool = False


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """`target = value`, or `target op= value` with `op` set (`"+"` for `+=`); `dotted` for `.=`, `.+=`.

    The target is a `Name`, `Index`, `Field`, `Typed` or `TupleExpr` of them (with `Splat` for `a, b... = t`).
    """

    target: Node
    value: Node
    op: str | None = None
    dotted: bool = False


@dataclass(frozen=True, slots=True)
class For(Node):
    """`for a in A, b in B`: bindings from outermost to innermost; `break` leaves all of them."""

    bindings: tuple[tuple[Node, Node], ...]
    body: Block


@dataclass(frozen=True, slots=True)
class While(Node):
    """`while cond`."""

    cond: Node
    body: Block


@dataclass(frozen=True, slots=True)
class Break(Node):
    """`break`."""


@dataclass(frozen=True, slots=True)
class Continue(Node):
    """`continue`."""


@dataclass(frozen=True, slots=True)
class Return(Node):
    """`return` or `return value`."""

    value: Node | None


@dataclass(frozen=True, slots=True)
class Let(Node):
    """`let a = 1, b ... end`; a binding without value is a fresh name."""

    bindings: tuple[tuple[str, Node | None], ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Local(Node):
    """`local a, b = 1`: the declarations and assignments, in order."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Const(Node):
    """`const NAME = value`."""

    assign: Assign


@dataclass(frozen=True, slots=True)
class MacroCall(Node):
    """`@name args...`; `module` holds a qualifier (`"KernelAbstractions"` in `KernelAbstractions.@atomic`).

    `name` has no `@`. Both `@m(a, b)` and `@m a b` give args `(a, b)`.
    """

    name: str
    args: tuple[Node, ...]
    module: str | None = None


@dataclass(frozen=True, slots=True)
class Param(Node):
    """A parameter of a function: `name` is None in an anonymous `::T`; `const` when wrapped in `@Const`."""

    name: str | None
    type: Node | None = None
    default: Node | None = None
    vararg: bool = False
    const: bool = False


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """`(a, b) -> body` and the block of `do`."""

    params: tuple[Param, ...]
    body: Node


@dataclass(frozen=True, slots=True)
class FunctionDef(Node):
    """A function in long or short form; `where` holds its type parameters, a `Name` or a `Call` of `<:` each."""

    name: str
    params: tuple[Param, ...]
    body: Block
    where: tuple[Node, ...] = ()
    returns: Node | None = None
    kwparams: tuple[Param, ...] = ()


@dataclass(frozen=True, slots=True)
class StructDef(Node):
    """A `struct`: type parameters and fields (name, type or None); inner constructors are in `methods`."""

    name: str
    params: tuple[Node, ...]
    fields: tuple[tuple[str, Node | None], ...]
    supertype: Node | None = None
    mutable: bool = False
    methods: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class AbstractDef(Node):
    """`abstract type name <: supertype end`."""

    name: str
    supertype: str | None = None


@dataclass(frozen=True, slots=True)
class Using(Node):
    """A `using`/`import` line, kept as its text; `names` are the identifiers that it names."""

    text: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unsupported(Node):
    """A construct the tree has no node for (`try`, comprehension, ...): `what` names it for the error message.

    `names` holds the identifiers inside it, so that what it might write can be told.
    """

    what: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelDef(Node):
    """A function under `@kernel`, with the macro's literal options (`cpu`, `inbounds`, `unsafe_indices`)."""

    function: FunctionDef
    cpu: bool = True
    inbounds: bool = False
    unsafe_indices: bool = False


@dataclass(frozen=True, slots=True)
class Module(Node):
    """A whole source string: its top-level items in order."""

    items: tuple[Node, ...]
