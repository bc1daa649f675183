"""Operations of the SIMT form, computed here when their arguments are known, by the same rules as at run time."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jlkern.engines.numba.lower.simt import Expr, Lit, Op, Special, Var

TRUE, FALSE = Lit(True, "bool"), Lit(False, "bool")

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_BITS: dict[str, Callable[[Any, Any], Any]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def is_float(ty: str) -> bool:
    """Tell whether a primitive type is a floating-point one."""
    return ty.startswith("float")


def wrap(value: Any, ty: str) -> Any:
    """Bring a Python number into the range and precision of a primitive type."""
    if ty == "bool":
        return bool(value)
    if is_float(ty):
        if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:  # rounded once, not by way of a Python float
            value = np.uint64(value) if value >= 1 << 63 else np.int64(value)
        with np.errstate(all="ignore"):
            return float(np.array(value).astype(ty))
    bits = int(ty.lstrip("uint"))
    value = int(value) & ((1 << bits) - 1)
    return value - (1 << bits) if ty[0] == "i" and value >> (bits - 1) else value


def variables(expr: Expr) -> set[str]:
    """Return the names of the variables that an expression reads."""
    if isinstance(expr, Var):
        return {expr.name}
    if isinstance(expr, Op):
        found: set[str] = set()
        for arg in expr.args:
            found |= variables(arg)
        return found
    return set()


def specials(expr: Expr) -> set[Special]:
    """Return the built-in quantities that an expression reads."""
    if isinstance(expr, Special):
        return {expr}
    if isinstance(expr, Op):
        found: set[Special] = set()
        for arg in expr.args:
            found |= specials(arg)
        return found
    return set()


def substitute(expr: Expr, names: dict[str, Expr]) -> Expr:
    """Return an expression with variables replaced."""
    if isinstance(expr, Var):
        return names.get(expr.name, expr)
    if isinstance(expr, Op):
        return Op(expr.op, tuple(substitute(a, names) for a in expr.args), expr.ty)
    return expr


def op(name: str, ty: str, args: tuple[Expr, ...]) -> Expr:
    """Return the operation `name` on `args`, of type `ty`: a literal when it can be computed, else an `Op`."""
    if all(isinstance(a, Lit) for a in args):
        known = _known(name, ty, tuple(a.value for a in args if isinstance(a, Lit)), args[0].ty)
        if known is not None:
            return Lit(known, ty)
    simple = _simplify(name, ty, args)
    return Op(name, args, ty) if simple is None else simple


def _known(name: str, ty: str, v: tuple[Any, ...], of: str) -> Any:
    if name in _ARITHMETIC:
        if is_float(ty):
            kind = np.dtype(ty).type
            with np.errstate(all="ignore"):
                return float(_ARITHMETIC[name](kind(v[0]), kind(v[1])))
        return wrap(_ARITHMETIC[name](int(v[0]), int(v[1])), ty)
    if name in _COMPARE:
        return bool(_COMPARE[name](v[0], v[1]))
    if name in _BITS:
        return wrap(_BITS[name](v[0], v[1]), ty)
    if name == "cast":
        if is_float(of) and not is_float(ty):
            return None
        return wrap(v[0], ty)
    if name == "neg":
        return -v[0] if is_float(ty) else wrap(-v[0], ty)
    if name == "not":
        return (not v[0]) if ty == "bool" else wrap(~v[0], ty)
    if name == "fdiv" and v[1] != 0:
        kind = np.dtype(ty).type
        with np.errstate(all="ignore"):
            return float(kind(v[0]) / kind(v[1]))
    if name in ("div", "rem") and v[1] != 0:
        quotient = abs(v[0]) // abs(v[1]) * (1 if (v[0] < 0) == (v[1] < 0) else -1)
        return wrap(quotient if name == "div" else v[0] - quotient * v[1], ty)
    if name == "fld" and v[1] != 0:
        return wrap(v[0] // v[1], ty)
    if name == "mod" and v[1] != 0:
        return wrap(v[0] % v[1], ty)
    if name == "shl":
        return wrap(v[0] << v[1], ty) if 0 <= v[1] < 64 else (0 if v[1] >= 64 else None)
    if name == "shr" and v[1] >= 0:
        return wrap(v[0] >> min(v[1], 64), ty)
    if name == "min" and not is_float(ty):
        return min(v)
    if name == "max" and not is_float(ty):
        return max(v)
    if name == "select":
        return v[1] if v[0] else v[2]
    return None


def _simplify(name: str, ty: str, args: tuple[Expr, ...]) -> Expr | None:
    a = args[0]
    if name == "cast":
        return a if a.ty == ty else None
    if name == "select":
        return (args[1] if a.value else args[2]) if isinstance(a, Lit) else None
    if name == "not" and isinstance(a, Op) and a.op == "not" and ty == "bool":
        return a.args[0]
    if len(args) != 2:
        return None
    b = args[1]
    if name in ("and", "or") and ty == "bool":
        for x, y in ((a, b), (b, a)):
            if isinstance(x, Lit):
                return y if bool(x.value) == (name == "and") else Lit(name == "or", "bool")
    if is_float(ty) or ty == "bool":
        return None
    if isinstance(b, Lit):
        if name in ("add", "sub", "shl", "shr") and b.value == 0:
            return a
        if name in ("mul", "div") and b.value == 1:
            return a
        if name == "mul" and b.value == 0:
            return b
        # (x + c) - d and the like, which 1-based indices make everywhere
        if name in ("add", "sub") and isinstance(a, Op) and a.op in ("add", "sub") and isinstance(a.args[1], Lit):
            inner = int(a.args[1].value) * (1 if a.op == "add" else -1)
            total = wrap(inner + int(b.value) * (1 if name == "add" else -1), ty)
            if total == 0:
                return a.args[0]
            if total > 0 or total == wrap(-total, ty):  # the least integer has no opposite
                return Op("add", (a.args[0], Lit(total, ty)), ty)
            return Op("sub", (a.args[0], Lit(-total, ty)), ty)
    if isinstance(a, Lit):
        if name == "add" and a.value == 0:
            return b
        if name == "mul" and a.value == 1:
            return b
        if name == "add":
            return op("add", ty, (b, a))
    return None
