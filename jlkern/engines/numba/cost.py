"""A rough count of what one work-item does, for the choice between one thread and all of them."""

from __future__ import annotations

from jlkern.engines.numba.lower.simt import Assign, Atomic, Expr, For, If, Lit, Load, Op, Stmt, Store, While

ROUNDS = 16
"""How often a loop of unknown length is taken to run."""

_SLOW = {"fdiv": 4, "sqrt": 6, "div": 8, "rem": 8, "mod": 10, "fld": 10, "power": 40, "pow": 40}
_MATH = 20
_CHEAP = frozenset(
    "add sub mul cast select and or xor not neg eq ne lt le gt ge min max abs fma muladd outside shl shr ushr bitcast "
    "udiv urem".split()
)


def _expr(expr: Expr) -> float:
    if not isinstance(expr, Op):
        return 0.0
    own = _SLOW.get(expr.op, 1 if expr.op in _CHEAP else _MATH)
    return own + sum(_expr(a) for a in expr.args)


def per_item(stmts: tuple[Stmt, ...]) -> float:
    """Return about how many simple instructions the statements are."""
    total = 0.0
    for stmt in stmts:
        if isinstance(stmt, Assign):
            total += _expr(stmt.expr)
        elif isinstance(stmt, Load):
            total += 2 + _expr(stmt.offset)
        elif isinstance(stmt, Store):
            total += 2 + _expr(stmt.offset) + _expr(stmt.value)
        elif isinstance(stmt, Atomic):
            total += 20 + _expr(stmt.value)
        elif isinstance(stmt, If):
            total += 1 + _expr(stmt.cond) + max(per_item(stmt.then), per_item(stmt.orelse))
        elif isinstance(stmt, For):
            total += _rounds(stmt) * (1 + per_item(stmt.body))
        elif isinstance(stmt, While):
            total += ROUNDS * (1 + _expr(stmt.cond) + per_item(stmt.header) + per_item(stmt.body))
    return total


def _rounds(loop: For) -> float:
    if isinstance(loop.start, Lit) and isinstance(loop.stop, Lit) and isinstance(loop.step, Lit):
        return max(0, (int(loop.stop.value) - int(loop.start.value)) // int(loop.step.value) + 1)
    return ROUNDS
