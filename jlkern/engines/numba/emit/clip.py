"""Guards as bounds: `if 1 < i < n` around all that work-items do becomes a shorter loop over them.

Without the branch, the loop vectorises plainly, and work-items that have nothing to do cost nothing: in a tree
reduction that is most of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from jlkern.engines.numba.emit.regions import defined, walk
from jlkern.engines.numba.emit.text import text
from jlkern.engines.numba.lower.simt import Assign, Expr, If, Lit, Op, Special, Stmt, Var

_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq"}
_SMALL = 1 << 40


@dataclass
class Clip:
    """What is left of statements, and the bounds of the loops over work-items: texts by dimension, upper exclusive."""

    stmts: list[Stmt]
    lower: dict[int, list[str]] = field(default_factory=dict)
    upper: dict[int, list[str]] = field(default_factory=dict)


def clip(stmts: Sequence[Stmt], kept: Collection[str], again: Mapping[str, Assign]) -> Clip:
    """Move the conditions of a branch that holds all effects of `stmts` into bounds, as far as they are such.

    `kept` are variables with a value for each work-item that outlives the statements, `again` those that can be
    computed anew; other variables that are set elsewhere are the same for all work-items.
    """
    made = Clip(list(stmts))
    while True:
        effects = [s for s in made.stmts if not isinstance(s, Assign)]
        if len(effects) != 1 or not isinstance(effects[0], If) or effects[0].orelse or not effects[0].then:
            return made
        branch = effects[0]
        at = made.stmts.index(branch)
        plain = [s for s in made.stmts if isinstance(s, Assign)]
        if any(s.var.name in kept for s in plain):
            return made
        view = _view(made.stmts, made.stmts[:at], kept, again)
        rest = [c for c in _conjuncts(branch.cond, view) if not _bound(c, view, made)]
        if len(rest) == len(_conjuncts(branch.cond, view)):
            return made
        if rest:
            cond = rest[0]
            for other in rest[1:]:
                cond = Op("and", (cond, other), "bool")
            made.stmts = [*made.stmts[:at], If(cond, branch.then)]
            return made
        made.stmts = [*made.stmts[:at], *branch.then]


_View = Callable[[str], "Expr | None"]
"""What a variable is: the expression that it was set to, itself where all work-items agree on it, None otherwise."""


def _view(stmts: Sequence[Stmt], before: Sequence[Stmt], kept: Collection[str], again: Mapping[str, Assign]) -> _View:
    counts: dict[str, int] = {}
    for stmt in walk(list(stmts)):
        var = defined(stmt)
        if var is not None:
            counts[var.name] = counts.get(var.name, 0) + 1
    values: dict[str, Expr] = {n: a.expr for n, a in again.items() if n not in counts}
    values.update((s.var.name, s.expr) for s in before if isinstance(s, Assign) and counts[s.var.name] == 1)
    types = {v.name: v for s in walk(list(stmts)) if (v := defined(s)) is not None}

    def view(name: str) -> Expr | None:
        if name in values:
            return values[name]
        return None if name in kept or name in types else Var(name, "")

    return view


def _conjuncts(cond: Expr, view: _View) -> list[Expr]:
    if isinstance(cond, Op) and cond.op == "and" and cond.ty == "bool":
        return [c for a in cond.args for c in _conjuncts(a, view)]
    if isinstance(cond, Var):
        known = view(cond.name)
        if isinstance(known, Op):
            return _conjuncts(known, view)
    return [cond]


def _bound(cond: Expr, view: _View, made: Clip) -> bool:
    """Note a comparison of a work-item's index with something that all agree on as a bound; tell whether it is one."""
    if not isinstance(cond, Op) or cond.op not in _SWAPPED or cond.args[0].ty != "int64":
        return False
    first, second = cond.args
    for left, right, op in ((first, second, cond.op), (second, first, _SWAPPED[cond.op])):
        moving, limit = _index(left, view), _agreed(right, view)
        if moving is not None and limit is not None:
            place, offset = moving
            base = f"_b{place.dim}" if place.kind == "global" else ""
            lower, upper = made.lower.setdefault(place.dim, []), made.upper.setdefault(place.dim, [])
            if op in ("gt", "ge", "eq"):
                lower.append(f"sub_sat({text(limit)}, {_sum(base, offset - (op == 'gt'))})")
            if op in ("lt", "le", "eq"):
                upper.append(f"sub_sat({text(limit)}, {_sum(base, offset - (op != 'lt'))})")
            return True
    return False


def _sum(base: str, offset: int) -> str:
    number = str(offset) if offset >= 0 else f"({offset})"
    return f"{base} + {number}" if base and offset else base or number


def _index(expr: Expr, view: _View) -> tuple[Special, int] | None:
    """Return which index of a work-item an expression is, and what is added to it."""
    if isinstance(expr, Special):
        return (expr, 0) if expr.kind in ("local", "global") else None
    if isinstance(expr, Var):
        known = view(expr.name)
        return None if known is None or (isinstance(known, Var) and known.name == expr.name) else _index(known, view)
    if isinstance(expr, Op) and expr.op in ("add", "sub") and expr.ty == "int64":
        left, right = expr.args
        if isinstance(left, Lit) and expr.op == "add":
            left, right = right, left
        found = _index(left, view)
        if found is None or not isinstance(right, Lit):
            return None
        offset = found[1] + (int(right.value) if expr.op == "add" else -int(right.value))
        return (found[0], offset) if abs(offset) < _SMALL else None
    return None


def _agreed(expr: Expr, view: _View) -> Expr | None:
    """Return an expression in terms that are known before the loops over work-items, None where there are none."""
    if isinstance(expr, Special):
        return None if expr.kind in ("local", "global") else expr
    if isinstance(expr, Var):
        known = view(expr.name)
        return expr if isinstance(known, Var) and known.name == expr.name else known and _agreed(known, view)
    if isinstance(expr, Op):
        args = [_agreed(a, view) for a in expr.args]
        found = tuple(a for a in args if a is not None)
        return Op(expr.op, found, expr.ty) if len(found) == len(args) else None
    return expr
