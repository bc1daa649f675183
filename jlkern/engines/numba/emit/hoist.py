"""The schedule "loops outside": uniform loops run around the loops over work-items instead of inside them.

Work-items of a group then go through such a loop in step, so that the innermost loop is over work-items and
vectorises, at the price of keeping each item's variables in memory. What an item computes, and in which order, stays
the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from jlkern.engines.numba.emit.regions import GroupLoop, blocks, defined, has_barrier, per_item, uniform_variables, walk
from jlkern.engines.numba.lower.simt import Barrier, Break, Continue, For, If, Op, Stmt, Var, While


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is known where a statement stands: the variables that are the same for all work-items."""

    uniform: frozenset[str]


def can_hoist(body: tuple[Stmt, ...]) -> bool:
    """Tell whether the schedule changes anything."""
    return any(isinstance(s, GroupLoop) for s in walk(hoisted(body)))


def hoisted(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements with every loop that can run around the work-items marked as a `GroupLoop`."""
    return _hoist(body, _Scope(frozenset(uniform_variables(body))))


def _hoist(body: tuple[Stmt, ...], scope: _Scope) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For) and not has_barrier([stmt]) and _runs_in_step(stmt, scope):
            inner = _hoist(stmt.body, _Scope(scope.uniform | {stmt.var.name}))
            out.append(GroupLoop(stmt.var, stmt.start, stmt.stop, stmt.step, inner))
        elif isinstance(stmt, If) and not has_barrier([stmt]):
            out.extend(_distribute(stmt, scope))
        elif has_barrier([stmt]) and not isinstance(stmt, Barrier):
            out.append(_inside(stmt, scope))
        else:
            out.append(stmt)
    return tuple(out)


def _inside(stmt: Stmt, scope: _Scope) -> Stmt:
    """Hoist within control flow that holds a barrier and so runs in step anyway."""
    if isinstance(stmt, For):
        return replace(stmt, body=_hoist(stmt.body, _Scope(scope.uniform | {stmt.var.name})))
    if isinstance(stmt, While):
        return replace(stmt, body=_hoist(stmt.body, scope))
    if isinstance(stmt, If):
        return replace(stmt, then=_hoist(stmt.then, scope), orelse=_hoist(stmt.orelse, scope))
    return stmt


def _runs_in_step(loop: For, scope: _Scope) -> bool:
    uniform = set(scope.uniform)
    return not any(per_item(e, uniform) for e in (loop.start, loop.stop, loop.step)) and not _left(loop.body)


def _left(body: tuple[Stmt, ...]) -> bool:
    """Tell whether a loop's body breaks out of the loop or goes on to its next round early."""
    for stmt in body:
        if isinstance(stmt, (Break, Continue)):
            return True
        if not isinstance(stmt, (For, While)) and any(_left(block) for block in blocks(stmt)):
            return True
    return False


def _distribute(stmt: If, scope: _Scope) -> list[Stmt]:
    """Pull loops out of a branch: each of its statements gets the condition for itself."""
    then, orelse = _hoist(stmt.then, scope), _hoist(stmt.orelse, scope)
    own = {v.name for s in walk([stmt]) if (v := defined(s)) is not None}
    if not isinstance(stmt.cond, Var) or stmt.cond.name in own:
        return [stmt]  # the condition can change on the way
    if not any(isinstance(s, GroupLoop) for s in (*then, *orelse)):
        return [stmt]
    return [*_under(stmt.cond, then), *_under(Op("not", (stmt.cond,), "bool"), orelse)]


def _under(cond: Var | Op, body: tuple[Stmt, ...]) -> list[Stmt]:
    out: list[Stmt] = []
    run: list[Stmt] = []

    def close() -> None:
        if run:
            out.append(If(cond, tuple(run)))
            run.clear()

    for stmt in body:
        if isinstance(stmt, GroupLoop):
            close()
            out.append(replace(stmt, body=tuple(_under(cond, stmt.body))))
        else:
            run.append(stmt)
    close()
    return out
