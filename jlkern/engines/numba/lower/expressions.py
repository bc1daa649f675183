"""Expressions: comparisons, short circuits, indexing, tuples, types, text, macros."""

from __future__ import annotations

from jlkern.engines.numba.lower import fold, simt
from jlkern.engines.numba.lower.arrays import load_index, spread, view
from jlkern.engines.numba.lower.calls import call, lower_args
from jlkern.engines.numba.lower.context import Context, truth
from jlkern.engines.numba.lower.core import condition, handles, lower
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
    operands = [cx.hold_all(lower(cx, operand)) for operand in node.operands]
    result: simt.Expr = fold.TRUE
    for at, op in enumerate(node.ops):
        part = call(cx, lookup_global(cx, op), (operands[at], operands[at + 1]))
        if not isinstance(part, Scalar):
            cx.unsupported(f"the comparison `{op}` gives a {type_of(part)}")
        result = cx.op("and", "bool", result, part.expr)
    return truth(result)


@handles(n.ShortCircuit)
def _short_circuit(cx: Context, node: n.ShortCircuit) -> Value:
    left = condition(cx, node.left)
    stop = node.op == "||"
    if left.is_const:
        return left if bool(left.const) == stop else lower(cx, node.right)
    before = dict(cx.bindings)
    with cx.block() as body:
        right = lower(cx, node.right)
        dead = cx.dead
    if not body and not dead and isinstance(right, Scalar) and right.type == BOOL and cx.bindings == before:
        return truth(cx.op("or" if stop else "and", "bool", left.expr, right.expr))
    after, cx.bindings = cx.bindings, before
    cond = cx.op("not", "bool", left.expr) if stop else left.expr
    if isinstance(right, Scalar) and right.type == BOOL and not dead:
        result = cx.fresh("t", "bool")
        cx.emit(simt.Assign(result, fold.TRUE if stop else fold.FALSE))
        body.append(simt.Assign(result, right.expr))
        value: Value = Scalar(BOOL, result)
    else:
        value = Nothing()  # used as a statement: `i > n && return`
    empty: list[simt.Stmt] = []
    cx.bindings = before if dead else cx.merge(after, before, body, empty)
    cx.emit(simt.If(cond, tuple(body), () if dead else tuple(empty)))
    return value


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
        cx.unsupported(f"the macro `@{node.name}`")
    return handler(cx, node)


@handles(n.Unsupported)
def _unsupported(cx: Context, node: n.Unsupported) -> Value:
    cx.unsupported(node.what)


@handles(n.Using)
def _using(cx: Context, node: n.Node) -> Value:
    return Nothing()
