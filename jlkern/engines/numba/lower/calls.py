"""Calls: operators, methods chosen by dispatch and inlined, closures, types as constructors, broadcasting."""

from __future__ import annotations

from functools import partial

from jlkern.engines.numba.lower.arrays import spread
from jlkern.engines.numba.lower.branches import by_option
from jlkern.engines.numba.lower.broadcast import broadcast
from jlkern.engines.numba.lower.context import Context, Scope
from jlkern.engines.numba.lower.core import handles, in_order, lower
from jlkern.engines.numba.lower.folds import FOLDS, folded
from jlkern.engines.numba.lower.inlining import inline
from jlkern.engines.numba.lower.methods import choose, fit, parents_of, type_of_node
from jlkern.engines.numba.lower.names import lookup_global
from jlkern.engines.numba.lower.powers import power
from jlkern.engines.numba.lower.registry import BUILTINS, no_method
from jlkern.engines.numba.lower.structs import construct_type, new_struct
from jlkern.engines.numba.lower.types import BOOL, StructT
from jlkern.engines.numba.lower.values import (
    Closure,
    Composed,
    Function,
    Struct,
    Tuple,
    TypeValue,
    Union,
    Unstable,
    Value,
    constant,
    type_of,
)
from jlkern.syntax import nodes as n


@handles(n.Call)
def _call(cx: Context, node: n.Call) -> Value:
    literal = node.func.id if isinstance(node.func, n.Name) else ""
    if literal == "^" and len(node.args) == 2 and cx.scope.find("^") is None and "^" not in cx.globals:
        base, exponent = lower_args(cx, node.args)
        if isinstance(base, Union) and not isinstance(exponent, Union):
            return by_option(cx, base, lambda v: power(cx, v, exponent, _is_literal_int(node.args[1])))
        return power(cx, base, exponent, _is_literal_int(node.args[1]))
    made = cx.globals.get("%new")
    if made is not None and (literal == "new" or (isinstance(node.func, n.Curly) and node.func.base == n.Name("new"))):
        given = [type_of_node(cx, a, {}) for a in node.func.args] if isinstance(node.func, n.Curly) else ()
        return new_struct(cx, made, StructT(made.name, tuple(given), parents_of(cx, made)), lower_args(cx, node.args))
    func = lower(cx, node.func)
    args = lower_args(cx, node.args)
    kwargs = {name: lower(cx, value) for name, value in node.kwargs}
    cx.at(node)
    return call(cx, func, args, kwargs)


def _is_literal_int(node: n.Node) -> bool:
    if isinstance(node, n.Literal):
        return node.type == "Int64"
    if isinstance(node, n.Call) and isinstance(node.func, n.Name) and node.func.id == "-" and len(node.args) == 1:
        return _is_literal_int(node.args[0])
    return False


def lower_args(cx: Context, args: tuple[n.Node, ...]) -> tuple[Value, ...]:
    """Lower the arguments of a call, with splats spread out."""

    def one(arg: n.Node) -> tuple[Value, ...]:
        if isinstance(arg, n.Splat):
            return spread(cx, lower(cx, arg.value))
        value = lower(cx, arg)
        if isinstance(value, Unstable):
            cx.unsupported(value.reason, "convert one of them, as in `zero(eltype(x))`")
        return (value,)

    if len(args) < 2:
        return one(args[0]) if args else ()
    return in_order(cx, [partial(one, arg) for arg in args])


def call(cx: Context, func: Value, args: tuple[Value, ...], kwargs: dict[str, Value] | None = None) -> Value:
    """Call a function value: a method of the source, a built-in, a closure, or a type as a constructor."""
    kwargs = kwargs or {}
    for at, arg in enumerate((func, *args)):
        if isinstance(arg, Union):
            parts = (func, *args)
            return by_option(cx, arg, partial(_call_with, cx, parts, at, kwargs))
    if isinstance(func, Function) and not func.builtin:
        bound = choose(cx, func.name, func.methods, args)
        if bound is not None:
            return inline(cx, bound.method, bound.values, bound.types, Scope(None, function=True), kwargs)
        if func.name not in BUILTINS:
            no_method(cx, func.name, args)
        func = Function(func.name, (), True)
    if isinstance(func, Closure):
        bound = fit(cx, func.definition, args)
        if bound is None:
            no_method(cx, "#anonymous", args)
        scope = Scope(func.scope, function=True)
        return inline(cx, func.definition, bound.values, bound.types, scope, kwargs, func.inbounds)
    if isinstance(func, Composed):
        return func.call(cx, args)
    if isinstance(func, Function) and func.name in FOLDS and set(kwargs) == {"init"}:
        return folded(cx, func.name, args, kwargs["init"])
    if kwargs:
        cx.unsupported(f"keyword arguments for `{getattr(func, 'name', type_of(func))}`")
    if isinstance(func, Function):
        if func.name == "^" and len(args) == 2:
            return power(cx, args[0], args[1], False)
        if not args and func.name not in _NEEDS_NOTHING:
            no_method(cx, func.name, args)
        if len(args) == 1 and func.name in CURRIED and not isinstance(args[0], (Tuple, TypeValue)):
            fixed = args[0]
            key = (func.name, type_of(fixed), cx.key())
            return Composed(lambda c, xs: call(c, func, (*xs, fixed)), key)
        if func.name == "!" and len(args) == 1 and isinstance(args[0], (Function, Closure, Composed)):
            inner = args[0]
            return Composed(lambda c, xs: call(c, func, (call(c, inner, xs),)), ("!", type_of(inner)))
        if func.name in ("<", "isless") and len(args) == 2 and all(isinstance(arg, Tuple) for arg in args):
            return _less_tuples(cx, func.name, *args)
        if any(isinstance(arg, Struct) for arg in args):
            implied = _implied(cx, func.name, args)
            if implied is not None:
                return implied
        return BUILTINS[func.name](cx, args)
    if isinstance(func, TypeValue):
        return construct_type(cx, func.type, args)
    cx.unsupported(f"a {type_of(func)} is called like a function")


def _less_tuples(cx: Context, name: str, a: Value, b: Value) -> Value:
    """Compare tuples item by item: the first difference counts; `<` goes by `==` and `<`, `isless` by `isequal`."""
    assert isinstance(a, Tuple) and isinstance(b, Tuple)
    names = ("==", "<") if name == "<" else ("isequal", "isless")
    result: Value = constant(len(a.items) < len(b.items), BOOL)
    for x, y in reversed(list(zip(a.items, b.items, strict=False))):
        equal, less = (call(cx, lookup_global(cx, n), (x, y)) for n in names)
        result = call(cx, lookup_global(cx, "ifelse"), (equal, result, less))
    return result


_NEEDS_NOTHING = frozenset({"tuple", "eps", "floatmax", "floatmin", "error", "throw", "merge", "zeros", "ones"})
CURRIED = frozenset({"==", "!=", "<", "<=", ">", ">=", "≤", "≥", "≠", "isequal", "in", "∈", "∉"})
"""Functions that Julia fixes the second argument of when they are called with one."""


def _implied(cx: Context, name: str, args: tuple[Value, ...]) -> Value | None:
    """Return what a function of Base does with structs by way of other functions, as `a > b` is `b < a`."""

    def through(other: str, *parts: Value) -> Value:
        return call(cx, lookup_global(cx, other), parts)

    if name == "==" and len(args) == 2:
        return through("===", *args)
    if name in ("!=", "≠") and len(args) == 2:
        return through("!", through("==", *args))
    if name == "isequal" and len(args) == 2:
        return through("==", *args)
    if name == "<" and "isless" in cx.globals:
        return through("isless", *args)
    if name == ">":
        return through("<", *reversed(args))
    if name in ("max", "min") and len(args) == 2 and "isless" in cx.globals:
        a, b = args if name == "max" else reversed(args)
        return through("ifelse", through("isless", args[1], args[0]), a, b)
    return None


def _call_with(cx: Context, parts: tuple[Value, ...], at: int, kwargs: dict[str, Value], value: Value) -> Value:
    chosen = (*parts[:at], value, *parts[at + 1 :])
    return call(cx, chosen[0], chosen[1:], kwargs)


@handles(n.DotCall)
def _dot_call(cx: Context, node: n.DotCall) -> Value:
    if isinstance(node.func, n.Name) and node.func.id == "^" and len(node.args) == 2 and _is_literal_int(node.args[1]):
        return broadcast(cx, lambda xs: power(cx, xs[0], xs[1], True), lower_args(cx, node.args))
    func = lower(cx, node.func)
    args = lower_args(cx, node.args)
    cx.at(node)
    return broadcast(cx, lambda xs: call(cx, func, xs), args)


@handles(n.Lambda)
def _lambda(cx: Context, node: n.Lambda) -> Value:
    return Closure(node, cx.scope, cx.key(), cx.inbounds)


@handles(n.FunctionDef)
def _function(cx: Context, node: n.FunctionDef) -> Value:
    closure = Closure(node, cx.scope, cx.key(), False)
    slot = cx.scope.find(node.name) or cx.scope.declare(node.name)
    cx.bindings[slot] = closure
    return closure
