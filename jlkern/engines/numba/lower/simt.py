"""The SIMT form: what a kernel does for one work-item, in scalars, with barriers, and with no target in it.

`lower` makes it from the source, a signature and the tunables; tuples, structs, complex numbers, closures, helper
functions and type parameters are gone: what is left are scalar variables, memory, structured control flow and barriers.
Splitting work-groups into loops is the emitter's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union


@dataclass(frozen=True, slots=True, eq=False)
class Lit:
    """A constant of a primitive type (NumPy's name); 0.0 and -0.0 are two."""

    value: int | float | bool
    ty: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lit) and self.ty == other.ty and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((self.value, self.ty))


@dataclass(frozen=True, slots=True)
class Var:
    """A scalar variable of the work-item."""

    name: str
    ty: str


@dataclass(frozen=True, slots=True)
class Special:
    """A built-in int64 quantity, from 0 where it is an index.

    `kind`: "local" and "group" index, "global" index, "ndrange" size, "groups" (how many) along dimension `dim`; "size"
    and "stride" (in elements) of parameter `name` along `dim`; "arg": leaf `dim` of scalar parameter `name`.
    """

    kind: str
    dim: int
    name: str = ""
    ty: str = "int64"


@dataclass(frozen=True, slots=True)
class Op:
    """A pure operation on scalars, named as in `semantics`."""

    op: str
    args: tuple[Expr, ...]
    ty: str


Expr = Union[Lit, Var, Special, Op]  # noqa: UP007


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of elements of one primitive type.

    `kind`: "param" (an array argument), "local" (of the work-group), "private" (of the work-item); the last two have a
    static `size` in elements. `source` is the name in the Julia source.
    """

    kind: str
    name: str
    ty: str
    size: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True)
class Assign:
    """`var = expr`."""

    var: Var
    expr: Expr


@dataclass(frozen=True, slots=True)
class Load:
    """`var = memory[offset]`, offset in elements from 0."""

    var: Var
    memory: Memory
    offset: Expr


@dataclass(frozen=True, slots=True)
class Store:
    """`memory[offset] = value`."""

    memory: Memory
    offset: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Atomic:
    """`old = memory[offset]; memory[offset] = new` as one step.

    `op` is "add", "sub", "min", "max", "and", "or", "xor", "xchg" with the operand `value`; or "cas", where `new` is an
    expression of `old` computed by `body`, tried until nothing came between.
    """

    op: str
    memory: Memory
    offset: Expr
    value: Expr
    old: Var
    body: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class If:
    """`if cond`."""

    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class For:
    """`for var in start:step:stop` (inclusive, int64; `step` is a constant or an expression, and never zero)."""

    var: Var
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class While:
    """`while true; header; cond || break; body`."""

    header: tuple[Stmt, ...]
    cond: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Break:
    """`break`."""


@dataclass(frozen=True, slots=True)
class Continue:
    """`continue`."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """`@synchronize`."""

    line: int = 0


@dataclass(frozen=True, slots=True)
class Check:
    """Stop the launch with error site `site` and the values `details` when `bad` holds.

    A soft check only notes the site and goes on: the value computed meanwhile is a NaN that nobody sees, and loops with
    it stay vectorisable.
    """

    bad: Expr
    site: int
    details: tuple[Expr, ...] = ()
    soft: bool = False


@dataclass(frozen=True, slots=True)
class Print:
    """`@print`: texts and values."""

    parts: tuple[str | Expr, ...]


Stmt = Union[Assign, Load, Store, Atomic, If, For, While, Break, Continue, Barrier, Check, Print]  # noqa: UP007


@dataclass(frozen=True, slots=True)
class Site:
    """What a failed check means: error class name, message template for the details, line in the source."""

    error: str
    message: str
    line: int


@dataclass(frozen=True, slots=True)
class ParamArray:
    """An array argument: its memory, dimensions, and layout ("F", "C" or "S"); complex elements count as two."""

    memory: Memory
    ndim: int
    layout: str
    components: int


@dataclass(frozen=True, slots=True)
class ParamScalar:
    """A scalar or tuple argument: the primitive types of its leaves, complex ones as two."""

    name: str
    leaves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel in SIMT form for one signature, configuration and work-group size.

    `params` follow the kernel's parameters; None for those that exist at compile time only (types, functions).
    `comments` tells for emitted names what they are called in the source where that differs.
    """

    name: str
    params: tuple[ParamArray | ParamScalar | None, ...]
    workgroup: tuple[int, ...]
    body: tuple[Stmt, ...]
    memories: tuple[Memory, ...]
    sites: tuple[Site, ...]
    masked: bool
    fastmath: bool = False
    comments: dict[str, str] = field(default_factory=dict)
    undefined: tuple[Var, ...] = ()
