"""Expressions: comparisons, short circuits, indexing, tuples, types, text, macros."""

from __future__ import annotations

from collections.abc import Callable

from jlkern.engines.numba.lower.arrays import load_index, spread, view
from jlkern.engines.numba.lower.branches import branch
from jlkern.engines.numba.lower.calls import call, lower_args
from jlkern.engines.numba.lower.context import Context, truth
from jlkern.engines.numba.lower.core import condition, handles, in_order, lower
from jlkern.engines.numba.lower.inlining import ascribe
from jlkern.engines.numba.lower.kernel_macros import MACROS
from jlkern.engines.numba.lower.methods import apply_type, type_of_node
from jlkern.engines.numba.lower.names import lookup_global
from jlkern.engines.numba.lower.registry import BUILTINS
from jlkern.engines.numba.lower.types import BOOL, PRIMS
from jlkern.engines.numba.lower.values import (
    Array,
    Nothing,
    Range,
    Scalar,
    Symbol,
    Text,
    Tuple,
    TypeValue,
    Value,
    constant,
    type_of,
)
from jlkern.syntax import nodes as n


@handles(n.Compare)
def _compare(cx: Context, node: n.Compare) -> Value:
    """`a < b < c` is `a < b && b < c` with `b` evaluated once."""

    def operand(at: int) -> Value:
        return cx.hold_all(lower(cx, node.operands[at]))

    def rest(at: int, left: Value) -> Value:
        right = operand(at + 1)
        part = call(cx, lookup_global(cx, node.ops[at]), (left, right))
        if at == len(node.ops) - 1:
            return part
        if not isinstance(part, Scalar) or part.type != BOOL:
            cx.unsupported(f"the comparison `{node.ops[at]}` gives a {type_of(part)}")
        return _shortened(cx, part, lambda: rest(at + 1, right), stop=False)

    first, second = in_order(cx, [lambda: (operand(0),), lambda: (operand(1),)])
    start = call(cx, lookup_global(cx, node.ops[0]), (first, second))
    if not isinstance(start, Scalar) or start.type != BOOL:
        cx.unsupported(f"the comparison `{node.ops[0]}` gives a {type_of(start)}")
    return _shortened(cx, start, lambda: rest(1, second), stop=False)


@handles(n.ShortCircuit)
def _short_circuit(cx: Context, node: n.ShortCircuit) -> Value:
    left = condition(cx, node.left)
    return _shortened(cx, left, lambda: lower(cx, node.right), stop=node.op == "||")


def _shortened(cx: Context, left: Scalar, right: Callable[[], Value], stop: bool) -> Value:
    """`left && right()`, or `left || right()` with `stop`: the right side runs only where the left does not decide."""
    if left.is_const:
        return left if bool(left.const) == stop else right()
    before, sites = dict(cx.bindings), len(cx.body)
    with cx.block() as body:
        value = right()
        dead = cx.dead
    if not body and not dead and isinstance(value, Scalar) and value.type == BOOL and cx.bindings == before:
        return truth(cx.op("or" if stop else "and", "bool", left.expr, value.expr))
    assert len(cx.body) == sites
    after, cx.bindings = cx.bindings, before

    def lowered() -> Value:
        cx.body.extend(body)
        cx.bindings, cx.dead = after, dead
        return value

    decided = constant(stop, BOOL)
    return branch(cx, left, lambda: decided, lowered) if stop else branch(cx, left, lowered, lambda: decided)


@handles(n.TupleExpr)
def _tuple(cx: Context, node: n.TupleExpr) -> Value:
    return Tuple(lower_args(cx, node.items), node.names)


@handles(n.Index)
def _index(cx: Context, node: n.Index) -> Value:
    obj = lower(cx, node.obj)
    if isinstance(obj, TypeValue):
        cx.unsupported("a typed array literal", "kernels do not allocate; use a tuple or SVector")
    args = index_args(cx, obj, node.args)
    cx.at(node)
    if cx.views and any(isinstance(a, (Range, Symbol)) for a in args) and isinstance(obj, Array):
        return view(cx, obj, args)
    return load_index(cx, obj, args)


def index_args(cx: Context, obj: Value, args: tuple[n.Node, ...]) -> tuple[Value, ...]:
    """Lower the arguments of an index; `end` and `begin` mean the object's own."""
    values: list[Value] = []
    for at, arg in enumerate(args):
        if isinstance(arg, n.Name) and arg.id == ":":
            values.append(Symbol(":"))
            continue
        saved = cx.globals.get("end"), cx.globals.get("begin")
        uses_end = _mentions_end(arg)
        if uses_end:
            last = (obj,) if len(args) == 1 else (obj, constant(at + 1, PRIMS["Int64"]))
            cx.globals["end"] = BUILTINS["lastindex"](cx, last)
            cx.globals["begin"] = constant(1, PRIMS["Int64"])
        try:
            if isinstance(arg, n.Splat):
                values.extend(spread(cx, lower(cx, arg.value)))
            else:
                values.append(lower(cx, arg))
        finally:
            if uses_end:
                for key, old in zip(("end", "begin"), saved, strict=True):
                    cx.globals.pop(key)
                    if old is not None:
                        cx.globals[key] = old
    return tuple(values)


def _mentions_end(node: n.Node) -> bool:
    from jlkern.engines.numba.lower.scan import children

    if isinstance(node, n.Name):
        return node.id in ("end", "begin")
    return any(_mentions_end(c) for c in children(node))


@handles(n.Curly)
def _curly(cx: Context, node: n.Curly) -> Value:
    return TypeValue(apply_type(cx, node, {}))


@handles(n.Typed)
def _typed(cx: Context, node: n.Typed) -> Value:
    if node.value is None:
        cx.unsupported("`::T` without a value here")
    return ascribe(cx, lower(cx, node.value), type_of_node(cx, node.type, {}), conversion=False)


@handles(n.VectorExpr, n.MatrixExpr)
def _vector(cx: Context, node: n.VectorExpr) -> Value:
    cx.unsupported("an array literal `[...]`", "kernels do not allocate; use a tuple, `SVector` or `@SVector`")


@handles(n.Interpolated)
def _interpolated(cx: Context, node: n.Interpolated) -> Value:
    parts: list[str | Value] = []
    for part in node.parts:
        value = lower(cx, part)
        parts.extend(value.parts if isinstance(value, Text) else (value,))
    return Text(tuple(parts))


@handles(n.MacroCall)
def _macro(cx: Context, node: n.MacroCall) -> Value:
    handler = MACROS.get(node.name)
    if handler is None:
        remedy = "write to an array, or print outside of the kernel" if node.name in ("print", "show", "printf") else ""
        cx.unsupported(f"the macro `@{node.name}`", remedy)
    if not node.args and node.name not in ("index", "groupsize", "ndrange", "synchronize", "print"):
        cx.unsupported(f"`@{node.name}` without arguments")
    return handler(cx, node)


@handles(n.Unsupported)
def _unsupported(cx: Context, node: n.Unsupported) -> Value:
    cx.unsupported(node.what, "write a loop" if node.what in ("generator", "comprehension") else "")


@handles(n.Using)
def _using(cx: Context, node: n.Node) -> Value:
    return Nothing()
