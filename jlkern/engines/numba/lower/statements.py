"""Statements: blocks, assignments to every kind of target, scopes, loops and what leaves them."""

from __future__ import annotations

from collections.abc import Callable

from jlkern.engines.numba.lower import simt
from jlkern.engines.numba.lower.arrays import load_index, spread, store_index
from jlkern.engines.numba.lower.calls import call
from jlkern.engines.numba.lower.context import Context, Scope
from jlkern.engines.numba.lower.core import condition, handles, in_order, lower, lower_block
from jlkern.engines.numba.lower.expressions import index_args
from jlkern.engines.numba.lower.inlining import ascribe
from jlkern.engines.numba.lower.iterate import lower_for
from jlkern.engines.numba.lower.methods import type_of_node
from jlkern.engines.numba.lower.names import lookup_global
from jlkern.engines.numba.lower.powers import power
from jlkern.engines.numba.lower.scan import assigned, breaks
from jlkern.engines.numba.lower.structs import get_field
from jlkern.engines.numba.lower.values import Array, Nothing, Pair, Scalar, Static, Tuple, Unstable, Value, type_of
from jlkern.syntax import nodes as n


@handles(n.Assign)
def _assign(cx: Context, node: n.Assign) -> Value:
    if node.dotted:
        cx.unsupported("a broadcast assignment `.=`", "write a loop over the elements")
    if node.op is not None:
        return _update(cx, node)
    cx.hint = node.target.id if isinstance(node.target, n.Name) else ""
    value = lower(cx, node.value)
    cx.hint = ""
    if isinstance(value, Unstable):
        cx.unsupported(value.reason, "convert one of them, as in `zero(eltype(x))`")
    if isinstance(node.target, n.Name):
        store(cx, node.target, value)
        return _present(cx, node.target, value)
    if isinstance(node.target, n.TupleExpr) and isinstance(value, (Tuple, Static)):
        value = cx.snapshot(value)
    store(cx, node.target, value)
    return value


def _present(cx: Context, target: n.Name, value: Value) -> Value:
    """Return what an assignment to a variable gives: the variable's value, when it was not converted."""
    slot = cx.scope.find(target.id)
    bound = cx.bindings.get(slot) if slot is not None else None
    return bound if bound is not None and type_of(bound) == type_of(value) else value


def _update(cx: Context, node: n.Assign) -> Value:
    """`target op= value`: the target's parts are evaluated once."""
    assert node.op is not None
    target = node.target
    operator = _operator(cx, node.op)
    if isinstance(target, n.Index):
        obj = lower(cx, target.obj)
        args = tuple(cx.hold_all(a) for a in index_args(cx, obj, target.args))
        old = load_index(cx, obj, args)
        new = operator(old, lower(cx, node.value))
        cx.at(node)
        store_index(cx, obj, args, new)
        return new
    old, given = in_order(cx, [lambda: (lower(cx, target),), lambda: (lower(cx, node.value),)])
    new = operator(old, given)
    cx.at(node)
    store(cx, target, new)
    return _present(cx, target, new) if isinstance(target, n.Name) else new


def _operator(cx: Context, op: str) -> Callable[[Value, Value], Value]:
    if op == "^":
        return lambda a, b: power(cx, a, b, False)
    func = lookup_global(cx, op)
    return lambda a, b: call(cx, func, (a, b))


def store(cx: Context, target: n.Node, value: Value) -> None:
    """Store a value into the target of an assignment."""
    if isinstance(target, n.Name):
        if target.id == "_":
            return
        slot = cx.scope.find(target.id)
        if slot is None:
            slot = cx.scope.declare(target.id)
        declared = cx.globals.get(f"%declared {id(slot)}")
        if declared is not None:
            value = ascribe(cx, value, declared, conversion=True)
        cx.assign(slot, value)
    elif isinstance(target, n.Index):
        obj = lower(cx, target.obj)
        store_index(cx, obj, index_args(cx, obj, target.args), value)
    elif isinstance(target, n.TupleExpr):
        _destructure(cx, target, value)
    elif isinstance(target, n.Typed) and isinstance(target.value, n.Name):
        ty = type_of_node(cx, target.type, {})
        slot = cx.scope.find(target.value.id) or cx.scope.declare(target.value.id)
        cx.globals[f"%declared {id(slot)}"] = ty
        store(cx, target.value, value)
    elif isinstance(target, n.Field):
        cx.unsupported("assignment to a field", "structs in kernels are immutable; make a new one")
    else:
        cx.unsupported("this target of an assignment")


def _destructure(cx: Context, target: n.TupleExpr, value: Value) -> None:
    items = list(spread(cx, value)) if not isinstance(value, Pair) else [value.first, value.second]
    if isinstance(value, Scalar) and len(target.items) > 1:
        cx.unsupported(f"{len(target.items)} variables assigned from one number")
    if target.names is not None:  # (; a, b) = nt
        items = [get_field(cx, value, name) for name in target.names]
    if len(target.items) > 1:
        items = [cx.snapshot(v) if not isinstance(v, Array) else v for v in items]
    for at, part in enumerate(target.items):
        if isinstance(part, n.Splat):
            after = len(target.items) - at - 1
            store(cx, part.value, Tuple(tuple(items[at : len(items) - after])))
            items = [*items[:at], Nothing(), *items[len(items) - after :]]
            continue
        if at >= len(items):
            cx.unsupported(f"{len(target.items)} variables are assigned from a {type_of(value)}")
        store(cx, part, items[at])


@handles(n.Local)
def _local(cx: Context, node: n.Local) -> Value:
    value: Value = Nothing()
    for item in node.items:
        name = item if isinstance(item, n.Name) else item.target if isinstance(item, n.Assign) else item
        while isinstance(name, n.Typed) and name.value is not None:
            name = name.value
        if isinstance(name, n.Name) and name.id not in cx.scope.names:
            cx.scope.declare(name.id)
        if isinstance(item, n.Assign):
            value = lower(cx, item)
        elif isinstance(item, n.Typed) and isinstance(name, n.Name):
            slot = cx.scope.find(name.id)
            cx.globals[f"%declared {id(slot)}"] = type_of_node(cx, item.type, {})
    return value


@handles(n.Let)
def _let(cx: Context, node: n.Let) -> Value:
    outer = cx.scope
    try:
        for name, init in node.bindings:
            value = None if init is None else lower(cx, init)
            cx.scope = Scope(cx.scope)
            slot = cx.scope.declare(name)
            if value is not None:
                cx.assign(slot, value)
        cx.scope = Scope(cx.scope)
        for name in assigned(node.body, deep=False):
            if cx.scope.find(name) is None:
                cx.scope.declare(name)
        return lower_block(cx, node.body.body)
    finally:
        cx.scope = outer


@handles(n.While)
def _while(cx: Context, node: n.While) -> Value:
    from jlkern.engines.numba.lower.iterate import loop

    if node.cond == n.Literal(True, "Bool") and not breaks(node.body):
        cx.unsupported("a loop that never ends", "leave it with `break`")
    header: list[simt.Stmt] = []
    cond: list[Scalar] = []

    def body() -> None:
        header.clear()
        cond.clear()
        with cx.block() as stmts:
            cond.append(condition(cx, node.cond))
        header.extend(stmts)
        if cond[0].is_const and not cond[0].const:
            cx.dead = True
        scope = cx.scope
        cx.scope = Scope(scope)
        for name in assigned(node.body, deep=False):
            if cx.scope.find(name) is None:
                cx.scope.declare(name)
        try:
            lower_block(cx, node.body.body)
        finally:
            cx.scope = scope

    stmts = loop(cx, (node.cond, node.body), body)
    if not (cond[0].is_const and not cond[0].const):
        cx.emit(simt.While(tuple(header), cond[0].expr, tuple(stmts)))
    return Nothing()


@handles(n.For)
def _for(cx: Context, node: n.For) -> Value:
    lower_for(cx, node)
    return Nothing()


@handles(n.Break)
def _break(cx: Context, node: n.Break) -> Value:
    if not cx.loops:
        cx.unsupported("`break` outside of a loop of this function")
    cx.emit(simt.Break())
    cx.loops[-1].append(dict(cx.bindings))
    cx.dead = True
    return Nothing()


@handles(n.Continue)
def _continue(cx: Context, node: n.Continue) -> Value:
    if not cx.loops:
        cx.unsupported("`continue` outside of a loop of this function")
    cx.emit(simt.Continue())
    cx.loops[-1].append(dict(cx.bindings))
    cx.dead = True
    return Nothing()


@handles(n.Return)
def _return(cx: Context, node: n.Return) -> Value:
    cx.unsupported("`return` in this place", "return from a branch or a loop of the function's own body")
