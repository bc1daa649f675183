"""How far apart neighbouring work-items reach into memory: what decides which loop should be the innermost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from jlkern.engines.numba.emit.regions import GroupLoop, blocks, defined, memory_of, walk
from jlkern.engines.numba.lower.simt import (
    Assign,
    Atomic,
    Expr,
    For,
    Lit,
    Load,
    Op,
    Special,
    Stmt,
    Store,
    Var,
    While,
)

FAR = 1 << 30
"""A step whose size is not known."""


def steps(body: tuple[Stmt, ...], inner: int) -> Iterator[int | None]:
    """Yield, for each access in a loop that can run around the work-items, by how many elements it moves from one
    work-item to the next along dimension `inner`; None where the index is not linear.
    """
    values = single_values(body)
    found: dict[str, int | None] = {}
    for loop in walk(body):
        if isinstance(loop, GroupLoop):
            for stmt in walk(loop.body):
                if isinstance(stmt, (Load, Store, Atomic)):
                    memory = memory_of(stmt)
                    if memory is not None and memory.kind != "private":
                        yield _step(stmt.offset, values, inner, found)


def far_accesses(
    stmts: Sequence[Stmt], inner: int, values: Mapping[str, Expr | None], lane: int | None, kept: Collection[str]
) -> float:
    """Return how many accesses of statements reach far from one work-item to the next along dimension `inner`.

    `values` are the kernel's variables (`single_values`), `kept` the memories with a place for each work-item, which
    are next to each other along dimension `lane`. What is in a loop counts more, and so does memory of the caller's.
    """
    found: dict[str, int | None] = {}

    def count(block: Sequence[Stmt], weight: float) -> float:
        total = 0.0
        for stmt in block:
            if isinstance(stmt, (Load, Store, Atomic)) and (stmt.memory.kind != "private" or stmt.memory.name in kept):
                near = inner == lane if stmt.memory.name in kept else _step(stmt.offset, values, inner, found) in (0, 1)
                total += 0 if near else weight * (2 if stmt.memory.kind == "param" else 1)
            for part in blocks(stmt):
                total += count(part, weight * (16 if isinstance(stmt, (For, While)) else 1))
        return total

    return count(stmts, 1.0)


def single_values(body: tuple[Stmt, ...]) -> dict[str, Expr | None]:
    """Return what each variable is, where it is assigned once; None for a variable of a loop or of several values."""
    values: dict[str, Expr | None] = {}
    for stmt in walk(body):
        var = defined(stmt)
        if var is not None:
            once = isinstance(stmt, Assign) and var.name not in values
            values[var.name] = stmt.expr if isinstance(stmt, Assign) and once else None
    return values


def _step(expr: Expr, values: Mapping[str, Expr | None], inner: int, found: dict[str, int | None]) -> int | None:
    if isinstance(expr, Lit):
        return 0
    if isinstance(expr, Special):
        return int(expr.kind in ("local", "global") and expr.dim == inner)
    if isinstance(expr, Var):
        if expr.name not in found:
            found[expr.name] = 0  # what a variable that follows from itself counts as
            known = values.get(expr.name)
            if known is not None:
                found[expr.name] = _step(known, values, inner, found)
        return found[expr.name]
    return _operation(expr, values, inner, found)


def _operation(expr: Op, values: Mapping[str, Expr | None], inner: int, found: dict[str, int | None]) -> int | None:
    parts = [_step(a, values, inner, found) for a in expr.args]
    if any(p is None for p in parts):
        return None
    known = [p for p in parts if p is not None]
    if not any(known):
        return 0
    if expr.op in ("add", "sub"):
        return known[0] + known[1] if expr.op == "add" else known[0] - known[1]
    if expr.op == "cast":
        return known[0]
    if expr.op == "mul":
        moving, other = (0, 1) if known[0] else (1, 0)
        if known[other]:
            return None
        factor = expr.args[other]
        return known[moving] * int(factor.value) if isinstance(factor, Lit) else FAR
    return None
