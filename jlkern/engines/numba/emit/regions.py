"""Barriers: which statements run as one loop over the work-items, which once per group, and what must be kept between.

A kernel without barriers is one region. With barriers its body becomes a tree: regions (run for every work-item, one
item after another) and control flow that holds a barrier (run once for the group). A variable that several regions
use is kept per work-item, computed anew in each region, or, when it is the same for all items, held once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from jlkern.engines.numba.lower.fold import specials, variables
from jlkern.engines.numba.lower.simt import (
    Assign,
    Atomic,
    Barrier,
    Break,
    Check,
    Continue,
    Expr,
    For,
    If,
    Load,
    Memory,
    Print,
    Stmt,
    Store,
    Var,
    While,
)


@dataclass
class Region:
    """Statements that every work-item runs without a barrier between; `uniform` ones run once, before the items."""

    number: int
    path: tuple[int, ...]
    uniform: list[Assign] = field(default_factory=list)
    stmts: list[Stmt] = field(default_factory=list)


@dataclass
class GroupFor:
    """A `for` that holds a barrier; `agreed` are variables that must be the same in all work-items."""

    loop: For
    body: list[Node]
    agreed: tuple[Var, ...] = ()


@dataclass
class GroupWhile:
    """A `while` that holds a barrier; `header` computes its condition."""

    cond: Expr
    header: list[Node]
    body: list[Node]
    agreed: tuple[Var, ...] = ()


@dataclass
class GroupIf:
    """A branch that holds a barrier, or leaves a loop that does."""

    cond: Expr
    then: list[Node]
    orelse: list[Node]
    agreed: tuple[Var, ...] = ()


@dataclass
class Leave:
    """`break` or `continue` of a loop that holds a barrier."""

    stmt: Break | Continue


Node: TypeAlias = Region | GroupFor | GroupWhile | GroupIf | Leave


@dataclass
class Plan:
    """What the emitter needs to know of a kernel with barriers."""

    nodes: list[Node]
    regions: list[Region]
    uniform: set[str]
    again: dict[str, Assign]
    kept: dict[str, Var]
    shared_private: set[str]


def blocks(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """Return the statement lists inside a statement."""
    if isinstance(stmt, If):
        return (stmt.then, stmt.orelse)
    if isinstance(stmt, For):
        return (stmt.body,)
    if isinstance(stmt, While):
        return (stmt.header, stmt.body)
    if isinstance(stmt, Atomic):
        return (stmt.body,)
    return ()


def walk(stmts: tuple[Stmt, ...] | list[Stmt]) -> Iterator[Stmt]:
    """Yield statements and all that is inside them."""
    for stmt in stmts:
        yield stmt
        for block in blocks(stmt):
            yield from walk(block)


@dataclass(frozen=True, slots=True)
class GroupLoop(For):
    """A `for` that all work-items of a group run in step, by choice; see `hoist`."""


def in_step(stmt: Stmt) -> bool:
    """Tell whether a statement runs once for the group: it holds a barrier or a loop that was chosen to."""
    return any(isinstance(s, (Barrier, GroupLoop)) for s in walk([stmt]))


def has_barrier(stmts: tuple[Stmt, ...] | list[Stmt]) -> bool:
    """Tell whether a barrier is among or inside statements."""
    return any(isinstance(s, Barrier) for s in walk(stmts))


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """Return the expressions that a statement itself reads."""
    if isinstance(stmt, Assign):
        return (stmt.expr,)
    if isinstance(stmt, Load):
        return (stmt.offset,)
    if isinstance(stmt, (Store, Atomic)):
        return (stmt.offset, stmt.value)
    if isinstance(stmt, (If, While)):
        return (stmt.cond,)
    if isinstance(stmt, For):
        return (stmt.start, stmt.stop, stmt.step)
    if isinstance(stmt, Check):
        return (stmt.bad, *stmt.details)
    if isinstance(stmt, Print):
        return tuple(p for p in stmt.parts if not isinstance(p, str))
    return ()


def defined(stmt: Stmt) -> Var | None:
    """Return the variable that a statement itself sets."""
    if isinstance(stmt, (Assign, Load, For)):
        return stmt.var
    if isinstance(stmt, Atomic):
        return stmt.old
    return None


def memory_of(stmt: Stmt) -> Memory | None:
    """Return the memory that a statement itself touches."""
    return stmt.memory if isinstance(stmt, (Load, Store, Atomic)) else None


def reads(stmts: tuple[Stmt, ...] | list[Stmt]) -> set[str]:
    """Return the names of the variables that statements read, at any depth."""
    found: set[str] = set()
    for stmt in walk(stmts):
        for expr in expressions(stmt):
            found |= variables(expr)
    return found


def _leaves(stmt: Stmt) -> bool:
    """Tell whether a statement breaks out of, or continues, a loop around it."""
    if isinstance(stmt, (Break, Continue)):
        return True
    if isinstance(stmt, If):
        return any(_leaves(s) for block in blocks(stmt) for s in block)
    return False


def per_item(expr: Expr, uniform: set[str]) -> bool:
    return not variables(expr) <= uniform or any(s.kind in ("local", "global") for s in specials(expr))


def uniform_variables(stmts: tuple[Stmt, ...], never: frozenset[str] = frozenset()) -> set[str]:
    """Return the variables that have the same value in all work-items whenever they are set; but for `never`."""
    definitions: list[tuple[Var, Stmt, bool]] = []

    def collect(block: tuple[Stmt, ...], top: bool, in_group_loop: bool) -> None:
        for stmt in block:
            var = defined(stmt)
            grouped = in_step(stmt) or (in_group_loop and _leaves(stmt))
            if var is not None and not (grouped and isinstance(stmt, For)):  # all items run such a loop together
                definitions.append((var, stmt, top and isinstance(stmt, Assign)))
            for inner in blocks(stmt):
                loops = isinstance(stmt, (For, While))
                collect(inner, top and grouped, grouped if loops else in_group_loop)

    collect(stmts, True, False)
    rounds = {s.var.name for s in walk(stmts) if isinstance(s, For) and in_step(s)}
    uniform = ({var.name for var, _, _ in definitions} | rounds) - never
    changed = True
    while changed:
        changed = False
        for var, stmt, top in definitions:
            if var.name not in uniform:
                continue
            if not top or any(per_item(e, uniform) for e in expressions(stmt)):
                uniform.discard(var.name)
                changed = True
    return uniform


def plan(stmts: tuple[Stmt, ...], undefined: tuple[Var, ...]) -> Plan:
    """Split a kernel's body at its barriers and decide how each variable lives."""
    uniform = uniform_variables(stmts, frozenset(v.name for v in undefined))
    regions: list[Region] = []

    def region(path: tuple[int, ...]) -> Region:
        regions.append(Region(len(regions), path))
        return regions[-1]

    loops = 0
    together: list[Var] = []

    def agree(
        exprs: tuple[Expr, ...], nodes: list[Node], path: tuple[int, ...]
    ) -> tuple[tuple[Expr, ...], tuple[Var, ...]]:
        """Have each work-item compute what steers the group, unless it is the same for all by construction."""
        agreed: list[Var] = []
        steering: list[Expr] = []
        for expr in exprs:
            if per_item(expr, uniform):
                var = Var(f"_steer{len(together)}", expr.ty)
                together.append(var)
                agreed.append(var)
                made = region(path)
                made.stmts.append(Assign(var, expr))
                nodes.append(made)
                expr = var
            steering.append(expr)
        return tuple(steering), tuple(agreed)

    def split(block: tuple[Stmt, ...], path: tuple[int, ...], in_loop: bool) -> list[Node]:
        nonlocal loops
        nodes: list[Node] = []
        current: Region | None = None
        for stmt in block:
            if isinstance(stmt, Barrier):
                current = None
                continue
            if isinstance(stmt, (Break, Continue)) and in_loop:
                nodes.append(Leave(stmt))
                current = None
                continue
            if in_step(stmt) or (in_loop and _leaves(stmt)):
                current = None
                if isinstance(stmt, For):
                    (start, stop, step), agreed = agree((stmt.start, stmt.stop, stmt.step), nodes, path)
                    loops += 1
                    loop = For(stmt.var, start, stop, step, stmt.body)
                    nodes.append(GroupFor(loop, split(stmt.body, (*path, loops), True), agreed))
                elif isinstance(stmt, While):
                    loops += 1
                    inner = (*path, loops)
                    header = split(stmt.header, inner, True)
                    (cond,), agreed = agree((stmt.cond,), header, inner)
                    nodes.append(GroupWhile(cond, header, split(stmt.body, inner, True), agreed))
                elif isinstance(stmt, If):
                    (cond,), agreed = agree((stmt.cond,), nodes, path)
                    then, orelse = split(stmt.then, path, in_loop), split(stmt.orelse, path, in_loop)
                    nodes.append(GroupIf(cond, then, orelse, agreed))
                continue
            if isinstance(stmt, Assign) and stmt.var.name in uniform:
                # the items before this statement must still see the old value
                if current is None or stmt.var.name in reads(current.stmts):
                    current = region(path)
                    nodes.append(current)
                current.uniform.append(stmt)
                continue
            if current is None:
                current = region(path)
                nodes.append(current)
            current.stmts.append(stmt)
        return nodes

    nodes = split(stmts, (), False)
    again = _computed_again(regions, nodes, uniform)
    kept = _kept(regions, nodes, uniform, again, (*undefined, *together))
    shared = _private_across(regions)
    return Plan(nodes, regions, uniform, again, kept, shared)


def _group_loops(
    nodes: list[Node], path: tuple[int, ...], counter: list[int]
) -> Iterator[tuple[GroupFor, tuple[int, ...]]]:
    for node in nodes:
        if isinstance(node, GroupFor):
            counter[0] += 1
            inner = (*path, counter[0])
            yield node, inner
            yield from _group_loops(node.body, inner, counter)
        elif isinstance(node, GroupWhile):
            counter[0] += 1
            inner = (*path, counter[0])
            yield from _group_loops([*node.header, *node.body], inner, counter)
        elif isinstance(node, GroupIf):
            yield from _group_loops([*node.then, *node.orelse], path, counter)


def _computed_again(regions: list[Region], nodes: list[Node], uniform: set[str]) -> dict[str, Assign]:
    """Find variables that cost nothing to compute anew: set once, from indices and values that do not change."""
    count: dict[str, int] = {}
    where: dict[str, tuple[Assign, tuple[int, ...]]] = {}
    uses: dict[str, set[tuple[int, ...]]] = {}
    for region in regions:
        for stmt in walk([*region.uniform, *region.stmts]):
            var = defined(stmt)
            if var is not None:
                count[var.name] = count.get(var.name, 0) + 1
            for name in (n for e in expressions(stmt) for n in variables(e)):
                uses.setdefault(name, set()).add(region.path)
        for stmt in (*region.uniform, *region.stmts):
            if isinstance(stmt, Assign):
                where[stmt.var.name] = (stmt, region.path)
    loop_vars = {node.loop.var.name: path for node, path in _group_loops(nodes, (), [0])}
    fixed = dict(loop_vars)
    fixed.update({n: p for n, (_, p) in where.items() if n in uniform and count.get(n) == 1})
    found: dict[str, Assign] = {}
    changed = True
    while changed:
        changed = False
        for name, (stmt, path) in where.items():
            if name in found or name in uniform or name.startswith("_steer") or count.get(name) != 1:
                continue
            parts = variables(stmt.expr)
            if not all(p in found or p in fixed for p in parts):
                continue
            if not all(use[: len(path)] == path for use in uses.get(name, ())):
                continue
            found[name] = stmt
            changed = True
    return found


def _kept(
    regions: list[Region], nodes: list[Node], uniform: set[str], again: dict[str, Assign], undefined: tuple[Var, ...]
) -> dict[str, Var]:
    """Find the variables that several regions share, or that the control flow of the group reads."""
    seen: dict[str, set[int]] = {}
    types: dict[str, Var] = {v.name: v for v in undefined}
    for var in undefined:
        seen.setdefault(var.name, set()).add(-2)
    for region in regions:
        for stmt in walk(region.stmts):
            own = defined(stmt)
            names = {n for e in expressions(stmt) for n in variables(e)}
            if own is not None:
                names.add(own.name)
                types[own.name] = own
            for name in sorted(names):
                seen.setdefault(name, set()).add(region.number)
    return {
        name: types[name]
        for name, where in seen.items()
        if len(where) > 1 and name not in uniform and name not in again and name in types
    }


def _private_across(regions: list[Region]) -> set[str]:
    seen: dict[str, set[int]] = {}
    for region in regions:
        for stmt in walk(region.stmts):
            memory = memory_of(stmt)
            if memory is not None and memory.kind == "private":
                seen.setdefault(memory.name, set()).add(region.number)
    return {name for name, where in seen.items() if len(where) > 1}
