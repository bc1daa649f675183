"""Functions of functions, selection, pairs, and what throws."""

from __future__ import annotations

from jlkern.engines.numba.lower import fold
from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.items import call_value
from jlkern.engines.numba.lower.registry import arity, builtin, no_method
from jlkern.engines.numba.lower.simt import Expr
from jlkern.engines.numba.lower.types import BOOL
from jlkern.engines.numba.lower.values import Composed, Nothing, Pair, Scalar, Text, Value, type_of


@builtin("identity")
def _identity(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "identity", args, 1)
    return args[0]


@builtin("ifelse")
def _ifelse(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "ifelse", args, 3)
    cond, a, b = args
    if not isinstance(cond, Scalar) or cond.type != BOOL:
        no_method(cx, "ifelse", args)
    if cond.is_const:
        return a if cond.const else b
    from jlkern.engines.numba.lower.branches import branch

    return branch(cx, cond, lambda: a, lambda: b)


@builtin("∘")
def _compose(cx: Context, args: tuple[Value, ...]) -> Value:
    outer, inner = args
    return Composed(
        lambda c, xs: call_value(c, outer, call_value(c, inner, *xs)), ("∘", type_of(outer), type_of(inner))
    )


@builtin("|>")
def _pipe(cx: Context, args: tuple[Value, ...]) -> Value:
    return call_value(cx, args[1], args[0])


@builtin("=>")
def _pair(cx: Context, args: tuple[Value, ...]) -> Value:
    return Pair(*args)


@builtin("Fix1")
def _fix1(cx: Context, args: tuple[Value, ...]) -> Value:
    func, x = args
    return Composed(lambda c, xs: call_value(c, func, x, *xs), ("Fix1", cx.key()))


@builtin("Fix2")
def _fix2(cx: Context, args: tuple[Value, ...]) -> Value:
    func, x = args
    return Composed(lambda c, xs: call_value(c, func, *xs, x), ("Fix2", cx.key()))


@builtin("error", "throw", "ArgumentError", "ErrorException", "DomainError", "BoundsError", "AssertionError", "string")
def _error(cx: Context, args: tuple[Value, ...]) -> Value:
    text = ""
    details: list[Expr] = []
    for arg in args:
        parts: tuple[str | Value, ...] = arg.parts if isinstance(arg, Text) else (arg,)
        for part in parts:
            if isinstance(part, str):
                text += part.replace("{", "{{").replace("}", "}}")
            elif isinstance(part, Scalar):
                text += f"{{{len(details)}}}"
                details.append(part.expr)
    cx.check(fold.TRUE, "KernelThrownError", text or "the kernel threw an error", tuple(details))
    cx.dead = True
    return Nothing()
