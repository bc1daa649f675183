"""Expressions of the SIMT form as Python text for Numba."""

from __future__ import annotations

import math

from jlkern.engines.numba.lower.simt import Expr, Lit, Op, Special, Var

_INFIX = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_NAMES = {"min": "least", "max": "greatest", "abs": "absolute", "pow": "power"}


def special(item: Special) -> str:
    """Return the name of a built-in quantity in emitted code; a leading underscore keeps it apart from variables."""
    if item.kind in ("size", "stride"):
        return f"_{item.name}_{item.kind}{item.dim}"
    if item.kind == "arg":
        return f"_{item.name}_{item.dim}"
    return {"local": "_l", "group": "_g", "global": "_i", "ndrange": "_n", "groups": "_m"}[item.kind] + str(item.dim)


def literal(value: int | float | bool, ty: str) -> str:
    """Return a constant of a primitive type."""
    if ty == "bool":
        return str(bool(value))
    if ty.startswith("float"):
        number = float(value)
        text = (
            "nan" if math.isnan(number) else ("inf" if number > 0 else "-inf") if math.isinf(number) else repr(number)
        )
        return (
            text
            if ty == "float64" and not text.startswith("-")
            else f"({text})"
            if ty == "float64"
            else f"{ty}({text})"
        )
    if ty == "int64":
        return str(value) if value >= 0 else f"({value})"
    return f"{ty}({value})"


def text(expr: Expr) -> str:
    """Return an expression as Python text."""
    if isinstance(expr, Lit):
        return literal(expr.value, expr.ty)
    if isinstance(expr, Var):
        return expr.name
    if isinstance(expr, Special):
        return special(expr)
    return _operation(expr)


def _operation(expr: Op) -> str:
    args = [text(a) for a in expr.args]
    of = expr.args[0].ty
    name = expr.op
    if name in _INFIX:
        plain = f"({args[0]} {_INFIX[name]} {args[1]})"
        narrow = expr.ty not in ("int64", "uint64", "float32", "float64", "bool")
        return f"{expr.ty}{plain}" if narrow else plain
    if name in _COMPARE:
        return f"({args[0]} {_COMPARE[name]} {args[1]})"
    if name == "not":
        return f"(not {args[0]})" if expr.ty == "bool" else f"bitnot({args[0]})"
    if name == "neg":
        if expr.ty.startswith("float"):
            return f"fneg({args[0]})"
        return f"(0 - {args[0]})" if expr.ty == "int64" else f"{expr.ty}({literal(0, expr.ty)} - {args[0]})"
    if name in ("cast", "fptoint"):
        return f"{expr.ty}({args[0]})"
    if name == "bitcast":
        return f"as_{expr.ty}({args[0]})"
    if name == "trunc" and of.startswith("int"):
        return args[0]
    return f"{_NAMES.get(name, name)}({', '.join(args)})"
