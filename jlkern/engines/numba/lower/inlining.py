"""Inlining: the body of a method in place of its call."""

from __future__ import annotations

from typing import Any

from jlkern.engines.numba.lower.context import Context, Scope
from jlkern.engines.numba.lower.conversion import convert
from jlkern.engines.numba.lower.core import lower, lower_block
from jlkern.engines.numba.lower.methods import static_parameter, type_of_node
from jlkern.engines.numba.lower.scan import assigned, has_return, returned_names, tail
from jlkern.engines.numba.lower.types import ComplexT, Prim
from jlkern.engines.numba.lower.values import Value, type_of
from jlkern.syntax import nodes as n

_MAX_DEPTH = 60


def inline(
    cx: Context,
    method: n.FunctionDef | n.Lambda,
    values: tuple[tuple[n.Param, Value | None], ...],
    types: dict[str, Any],
    scope: Scope,
    kwargs: dict[str, Value],
    inbounds: bool = False,
) -> Value:
    """Lower the body of a method in place of its call."""
    name = method.name if isinstance(method, n.FunctionDef) else "an anonymous function"
    if cx.depth >= _MAX_DEPTH:
        cx.unsupported(f"`{name}` calls itself too deeply", "write it as a loop")
    outer_scope, outer_inbounds, outer_line, outer_dead = cx.scope, cx.inbounds, cx.line, cx.dead
    outer_loops, cx.loops = cx.loops, []
    body = method.body.body if isinstance(method.body, n.Block) else (method.body,)
    cx.scope, cx.depth = scope, cx.depth + 1
    cx.inbounds = inbounds
    try:
        for variable, known in types.items():
            if not variable.startswith("%"):
                cx.bindings[scope.declare(variable)] = static_parameter(cx, known)
        own = set(assigned(n.Block(body), deep=True))
        for param, value in values:
            _bind_param(cx, param, value, own)
        if isinstance(method, n.FunctionDef):
            _bind_keywords(cx, method, kwargs, own)
        elif kwargs:
            cx.unsupported("keyword arguments for an anonymous function")
        params = {p.name for p, _ in values}
        if has_return(n.Block(body)):
            body = tail(body)
            for special in returned_names():
                scope.declare(special)
        for variable in assigned(n.Block(body), deep=False):
            if variable not in params and variable not in scope.names and scope.find(variable) is None:
                scope.declare(variable)
        result = lower_block(cx, body)
        if isinstance(method, n.FunctionDef) and method.returns is not None:
            result = ascribe(cx, result, type_of_node(cx, method.returns, {}), conversion=True)
        return result
    finally:
        cx.scope, cx.inbounds, cx.line = outer_scope, outer_inbounds, outer_line
        cx.depth -= 1
        cx.loops = outer_loops
        if not cx.dead:
            cx.dead = outer_dead


def _bind_param(cx: Context, param: n.Param, value: Value | None, own: set[str]) -> None:
    if value is None:
        assert param.default is not None
        value = lower(cx, param.default)
    if param.name is None:
        return
    slot = cx.scope.declare(param.name)
    if param.name in own:
        cx.assign(slot, value)
    else:
        cx.bindings[slot] = cx.hold_all(value)


def _bind_keywords(cx: Context, method: n.FunctionDef, kwargs: dict[str, Value], own: set[str]) -> None:
    for param in method.kwparams:
        value = kwargs.get(param.name or "")
        if value is None and param.default is None:
            cx.unsupported(f"`{method.name}` needs the keyword argument `{param.name}`")
        _bind_param(cx, param, value, own)
    unknown = set(kwargs) - {p.name for p in method.kwparams}
    if unknown:
        cx.unsupported(f"`{method.name}` has no keyword argument `{sorted(unknown)[0]}`")


def ascribe(cx: Context, value: Value, ty: Any, *, conversion: bool) -> Value:
    """`value::T`: check the type, or convert to it where Julia converts (declared variables and results)."""
    from jlkern.engines.numba.lower.types import match

    if match(type_of(value), ty, {}):
        return value
    if conversion and isinstance(ty, (Prim, ComplexT)):
        return convert(cx, value, ty)
    cx.unsupported(f"a value of type {type_of(value)} is asserted to be {ty}")
