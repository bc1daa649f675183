"""The state of one lowering: scopes, what names are bound to, the statements made so far, errors with their place."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from jlkern.engines.numba.lower import fold, simt
from jlkern.engines.numba.lower.types import BOOL, BY_NUMPY, INT64, Prim
from jlkern.engines.numba.lower.values import Array, Scalar, Union, Unstable, Value, leaves, rebuild, same_shape
from jlkern.errors import UnsupportedError
from jlkern.source import KernelSource
from jlkern.syntax.nodes import Node

RESERVED = frozenset(keyword.kwlist) | {
    "block",
    "errors",
    "first",
    "last",
    "print",
    "range",
    "min",
    "max",
    "abs",
    "int",
}


MAX_UNION = 4
"""How many types one variable may have."""


class Slot:
    """One variable of one scope of one inlined call; bindings map it to its present value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Scope:
    """A lexical scope; `function` marks the outermost scope of a function body."""

    __slots__ = ("function", "names", "parent")

    def __init__(self, parent: Scope | None, *, function: bool = False) -> None:
        self.parent = parent
        self.names: dict[str, Slot] = {}
        self.function = function

    def declare(self, name: str) -> Slot:
        """Make a variable of this scope."""
        slot = self.names[name] = Slot(name)
        return slot

    def find(self, name: str) -> Slot | None:
        """Return the variable that a name means here, None for a global."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None


Bindings = dict[Slot, Value]


@dataclass
class Context:
    """Everything that lowering one kernel for one request carries along."""

    source: KernelSource
    globals: dict[str, Any]
    workgroup: tuple[int, ...]
    params: Mapping[str, Any]
    check_bounds: bool
    written: frozenset[str] = frozenset()
    scope: Scope = field(default_factory=lambda: Scope(None, function=True))
    bindings: Bindings = field(default_factory=dict)
    body: list[simt.Stmt] = field(default_factory=list)
    dead: bool = False
    inbounds: bool = False
    fastmath: bool = False
    hint: str = ""
    views: bool = False
    line: int = 0
    depth: int = 0
    loops: list[list[Bindings]] = field(default_factory=list)
    sites: list[simt.Site] = field(default_factory=list)
    memories: list[simt.Memory] = field(default_factory=list)
    comments: dict[str, str] = field(default_factory=dict)
    undefined: dict[str, simt.Var] = field(default_factory=dict)
    row_major: bool = False
    _used: set[str] = field(default_factory=set)
    _canonical: dict[tuple[Slot, int, int], simt.Var] = field(default_factory=dict)
    _kinds: list[Value] = field(default_factory=list)
    tagged: set[Slot] = field(default_factory=set)
    defining: set[str] = field(default_factory=set)
    _keys: int = 0

    # --- errors ---

    def unsupported(self, what: str, remedy: str = "", line: int | None = None) -> NoReturn:
        """Refuse a construct: what it is, where, and what to do."""
        where = self.source.origin.where(line or self.line)
        raise UnsupportedError(f"{where}: {what}" + (f"; {remedy}" if remedy else ""))

    def at(self, node: Node) -> None:
        """Note the place that errors and checks made from now on belong to."""
        if node.pos.line:
            self.line = node.pos.line

    # --- statements ---

    def emit(self, stmt: simt.Stmt) -> None:
        """Add a statement, unless it cannot be reached."""
        if not self.dead:
            self.body.append(stmt)

    @contextmanager
    def block(self) -> Iterator[list[simt.Stmt]]:
        """Collect the statements made inside into a list of their own."""
        outer, self.body = self.body, []
        dead = self.dead
        try:
            yield self.body
        finally:
            self.body, self.dead = outer, dead

    def check(
        self, bad: simt.Expr, error: str, message: str, details: tuple[simt.Expr, ...] = (), soft: bool = False
    ) -> None:
        """Make the launch fail with `error` when `bad` holds; the message's `{0}`, `{1}`, ... are the details."""
        if isinstance(bad, simt.Lit) and not bad.value:
            return
        site = simt.Site(error, message, self.line)
        if site not in self.sites:
            self.sites.append(site)
        self.emit(simt.Check(bad, self.sites.index(site) + 1, details, soft))

    # --- names ---

    def fresh(self, name: str, ty: str) -> simt.Var:
        """Return a new variable; its name is ASCII and unlike any other, with the Julia name noted where it differs."""
        base = name if name.isascii() else _transliterate(name)
        base = re.sub(r"[^A-Za-z0-9_]", "_", base).strip("_") or "v"
        if base[0].isdigit() or base in RESERVED or base in BY_NUMPY or hasattr(fold, base):
            base = f"v_{base}"
        unique, n = base, 1
        while unique in self._used:
            n += 1
            unique = f"{base}_{n}"
        self._used.add(unique)
        if unique != name and not name.startswith("%"):
            self.comments[unique] = name
        return simt.Var(unique, ty)

    def key(self) -> int:
        """Return a number that was not returned before."""
        self._keys += 1
        return self._keys

    def kind(self, value: Value) -> int:
        """Return the number of a value's type; values that exist at compile time only are each a type of their own."""
        for number, known in enumerate(self._kinds):
            if same_shape(known, value):
                return number
        self._kinds.append(value)
        return len(self._kinds) - 1

    def options(self, value: Value) -> tuple[tuple[int, Value], ...]:
        """Return what a value may be: itself, or a union's options, with the numbers of their types."""
        return value.options if isinstance(value, Union) else ((self.kind(value), value),)

    def holders(self, slot: Slot, value: Value) -> list[simt.Var]:
        """Return the variables that hold the leaves of a slot's value; each type that it can have has its own."""
        if isinstance(value, Union):
            return [self.tag(slot), *(v for _, option in value.options for v in self.holders(slot, option))]
        kind, items = self.kind(value), list(leaves(value))
        names = []
        for n, item in enumerate(items):
            key = (slot, kind, n)
            if key not in self._canonical:
                name = f"{slot.name}_{n + 1}" if len(items) > 1 else slot.name
                self._canonical[key] = self.fresh(name, item.type.numpy)
            names.append(self._canonical[key])
        return names

    def tag(self, slot: Slot) -> simt.Var:
        """Return the variable that tells which type a slot's value has."""
        key = (slot, -1, 0)
        if key not in self._canonical:
            self._canonical[key] = self.fresh(f"{slot.name}_kind", "int64")
        return self._canonical[key]

    # --- values ---

    def op(self, op: str, ty: str, *args: simt.Expr) -> simt.Expr:
        """Return an operation, folded where all is known."""
        return fold.op(op, ty, args)

    def scalar(self, op: str, ty: Prim, *args: simt.Expr) -> Scalar:
        """Return an operation as a value."""
        return as_scalar(ty, fold.op(op, ty.numpy, args))

    def hold(self, value: Scalar, name: str = "%t") -> Scalar:
        """Return a scalar that is cheap to use several times: an expression is put into a variable."""
        if value.is_const or not isinstance(value.expr, simt.Op):
            return value
        var = self.fresh(name.replace("%", "") or "t", value.type.numpy)
        self.comments.pop(var.name, None)
        self.emit(simt.Assign(var, value.expr))
        return Scalar(value.type, var)

    def hold_all(self, value: Value) -> Value:
        """Return a value whose leaves are all cheap to use several times."""
        return rebuild(value, iter([self.hold(leaf) for leaf in leaves(value)]))

    def snapshot(self, value: Value) -> Value:
        """Return a value that later assignments do not change."""
        fresh = []
        for leaf in leaves(value):
            if leaf.is_const or not fold.variables(leaf.expr):
                fresh.append(leaf)
            else:
                var = self.fresh("t", leaf.type.numpy)
                self.emit(simt.Assign(var, leaf.expr))
                fresh.append(Scalar(leaf.type, var))
        return rebuild(value, iter(fresh))

    def load(self, memory: simt.Memory, offset: simt.Expr) -> Scalar:
        """Read memory into a variable."""
        var = self.fresh("t", memory.ty)
        self.emit(simt.Load(var, memory, offset))
        return Scalar(BY_NUMPY[memory.ty], var)

    # --- variables ---

    def assign(self, slot: Slot, value: Value) -> None:
        """Bind a variable to a value; its leaves go into the variable's own emitted names."""
        items = list(leaves(value))
        if isinstance(value, Array) and not any(fold.variables(item.expr) for item in items):
            self.bindings[slot] = value  # nothing in it can change
            return
        names = self.holders(slot, value)
        if len(items) > 1:
            targets: set[str] = set()
            for name, item in zip(names, items, strict=True):
                if targets & fold.variables(item.expr):
                    value = self.snapshot(value)
                    items = list(leaves(value))
                    break
                targets.add(name.name)
        bound = []
        for name, item in zip(names, items, strict=True):
            if item.expr != name:
                self.emit(simt.Assign(name, item.expr))
            bound.append(item if item.is_const else Scalar(item.type, name))
        if slot in self.tagged and not isinstance(value, Union):
            self.emit(simt.Assign(self.tag(slot), simt.Lit(self.kind(value), "int64")))
        self.bindings[slot] = rebuild(value, iter(bound))

    def settle(self, slot: Slot) -> None:
        """Forget what is known of a variable's value, for code that runs with several values of it."""
        value = self.bindings[slot]
        if isinstance(value, Unstable):
            return
        if isinstance(value, Union):
            self.tagged.add(slot)
        settled = []
        for name, item in zip(self.holders(slot, value), leaves(value), strict=True):
            if item.expr != name:
                self.emit(simt.Assign(name, item.expr))
            settled.append(Scalar(item.type, name))
        self.bindings[slot] = rebuild(value, iter(settled))

    def widen(self, slot: Slot, options: dict[int, Value]) -> None:
        """Let a settled variable have more types than the one that it has now."""
        present = self.bindings[slot]
        if not isinstance(present, Union):
            self.emit(simt.Assign(self.tag(slot), simt.Lit(self.kind(present), "int64")))
        self.tagged.add(slot)
        self.bindings[slot] = self._union(slot, options)

    def _union(self, slot: Slot, options: dict[int, Value]) -> Value:
        held = tuple((kind, self._held(slot, value)) for kind, value in sorted(options.items()))
        return Union(Scalar(INT64, self.tag(slot)), held)

    def _held(self, slot: Slot, value: Value) -> Value:
        """Return a slot's value of a type as its variables hold it; they are zero until they are set."""
        names = self.holders(slot, value)
        for name in names:
            self.undefined[name.name] = name
        return rebuild(value, iter([Scalar(v.type, n) for n, v in zip(names, leaves(value), strict=True)]))

    def merge(self, a: Bindings, b: Bindings, a_body: list[simt.Stmt], b_body: list[simt.Stmt]) -> Bindings:
        """Return the bindings after two branches, adding to their bodies the assignments that make them agree."""
        merged: Bindings = {}
        for slot in {**a, **b}:
            left, right = a.get(slot), b.get(slot)
            if left is right and left is not None:
                merged[slot] = left
            elif left is None or right is None:
                merged[slot] = self._maybe(slot, left or right)
            elif isinstance(left, Unstable) or isinstance(right, Unstable):
                merged[slot] = left if isinstance(left, Unstable) else right
            elif not same_shape(left, right):
                merged[slot] = self._unite(slot, left, right, a_body, b_body)
            else:
                merged[slot] = self._join(slot, left, right, a_body, b_body)
        return merged

    def _maybe(self, slot: Slot, value: Value | None) -> Value:
        """Bind a variable that only one branch assigned: what it holds otherwise is zero."""
        assert value is not None
        return value if isinstance(value, Unstable) else self._held(slot, value)

    def _join(self, slot: Slot, a: Value, b: Value, a_body: list[simt.Stmt], b_body: list[simt.Stmt]) -> Value:
        joined = []
        for name, x, y in zip(self.holders(slot, a), leaves(a), leaves(b), strict=True):
            if x.expr == y.expr:
                joined.append(x)
                continue
            for item, body in ((x, a_body), (y, b_body)):
                if item.expr != name and simt.Assign(name, item.expr) not in body[-4:]:
                    body.append(simt.Assign(name, item.expr))
            joined.append(Scalar(x.type, name))
        return rebuild(a, iter(joined))

    def _unite(self, slot: Slot, a: Value, b: Value, a_body: list[simt.Stmt], b_body: list[simt.Stmt]) -> Value:
        options = dict((*self.options(a), *self.options(b)))
        if len(options) > MAX_UNION:
            return unstable(slot.name, a, b)
        for side, body in ((a, a_body), (b, b_body)):
            for name, item in zip(self.holders(slot, side), leaves(side), strict=True):
                if item.expr != name:
                    body.append(simt.Assign(name, item.expr))
            if not isinstance(side, Union):
                body.append(simt.Assign(self.tag(slot), simt.Lit(self.kind(side), "int64")))
        return self._union(slot, options)


def unstable(name: str, a: Value, b: Value) -> Unstable:
    """Return the mark of a variable that has two types."""
    from jlkern.engines.numba.lower.values import type_of

    return Unstable(f"the variable `{name}` is {type_of(a)} on one path and {type_of(b)} on another")


def as_scalar(ty: Prim, expr: simt.Expr) -> Scalar:
    """Return an expression as a value, known when it is a literal."""
    return Scalar(ty, expr, expr.value) if isinstance(expr, simt.Lit) else Scalar(ty, expr)


def truth(expr: simt.Expr) -> Scalar:
    """Return a Bool value."""
    return as_scalar(BOOL, expr)


def _transliterate(name: str) -> str:
    out = []
    for ch in name:
        if ch.isascii():
            out.append(ch)
        else:
            words = unicodedata.name(ch, f"u{ord(ch):x}").lower().split()
            out.append("_" + words[-1] + "_" if words[0] in ("greek", "latin") else f"_u{ord(ch):x}_")
    return "".join(out)
