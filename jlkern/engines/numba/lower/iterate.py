"""Loops: what a `for` runs over, and what is known of variables inside and after a loop."""

from __future__ import annotations

from collections.abc import Callable

from jlkern.engines.numba.lower import simt
from jlkern.engines.numba.lower.arrays import length, load_index
from jlkern.engines.numba.lower.branches import by_option
from jlkern.engines.numba.lower.context import MAX_UNION, Bindings, Context, Scope, Slot, unstable
from jlkern.engines.numba.lower.conversion import cast
from jlkern.engines.numba.lower.core import lower, lower_block
from jlkern.engines.numba.lower.registry import BUILTINS
from jlkern.engines.numba.lower.scan import assigned, children, target_names
from jlkern.engines.numba.lower.types import INT64
from jlkern.engines.numba.lower.values import (
    FALSE,
    Array,
    Cartesian,
    CartesianRange,
    Closure,
    LinearRange,
    Nothing,
    Range,
    Scalar,
    Static,
    Tuple,
    Union,
    Unstable,
    Value,
    Zipped,
    int64,
    same_shape,
    type_of,
)
from jlkern.syntax import nodes as n

Body = Callable[[], None]
_STOP = "%stop"
_MAX_ROUNDS = 4
_REMEDY = "start `{}` with the type that it has in the loop, as in `zero(eltype(x))`"


def loop(cx: Context, nodes: tuple[n.Node, ...], body: Body) -> list[simt.Stmt]:
    """Lower the body of a loop, once for all rounds: a variable that changes its type becomes a union of its types."""
    names = {name for node in nodes for name in assigned(node, deep=True)}
    found = [cx.scope.find(name) for name in sorted(names)]
    found += [slot for slot in _captured(cx) if slot not in found]
    carried = [slot for slot in found if slot is not None and slot in cx.bindings]
    for slot in carried:
        cx.settle(slot)
    line = cx.line
    for _ in range(_MAX_ROUNDS):
        entry, memories = dict(cx.bindings), len(cx.memories)
        stmts, ends = _attempt(cx, body)
        cx.line, cx.bindings = line, dict(entry)
        grown = {slot: kinds for slot in carried if (kinds := _grown(cx, slot, entry, ends)) is not None}
        if not grown:
            break
        del cx.memories[memories:]
        for slot, options in grown.items():
            cx.widen(slot, options)
    else:
        cx.unsupported("the types of variables keep changing from round to round of this loop")
    for slot in {s for s in found if s is not None and s not in entry}:
        _bind_after(cx, slot, [end[slot] for end in ends if slot in end])
    return stmts


def _captured(cx: Context) -> list[Slot]:
    """Return the variables that a closure which a loop might call assigns."""
    slots: dict[Slot, None] = {}
    todo: list[Value] = list(cx.bindings.values())
    while todo:
        value = todo.pop()
        if isinstance(value, Tuple):
            todo.extend(value.items)
        if isinstance(value, Closure):
            own = {p.name for p in value.definition.params}
            for name in assigned(n.Block((value.definition.body,)), deep=True):
                slot = value.scope.find(name)
                if slot is not None and name not in own:
                    slots[slot] = None
    return list(slots)


def _attempt(cx: Context, body: Body) -> tuple[list[simt.Stmt], list[Bindings]]:
    """Lower a loop's body; return its statements and the bindings with which a round can end."""
    cx.loops.append([])
    with cx.block() as stmts:
        body()
        ends: list[Bindings] = [] if cx.dead else [cx.bindings]
    ends.extend(cx.loops.pop())
    return stmts, ends


def _grown(cx: Context, slot: Slot, entry: Bindings, ends: list[Bindings]) -> dict[int, Value] | None:
    """Return the types that a variable has when a round starts or ends, None when a round does not add any."""
    options = dict(cx.options(entry[slot]))
    before = len(options)
    for end in ends:
        value = end[slot]
        if isinstance(value, Unstable):
            cx.unsupported(value.reason, _REMEDY.format(slot.name))
        for kind, option in cx.options(value):
            options.setdefault(kind, option)
    if len(options) > MAX_UNION:
        cx.unsupported(f"the variable `{slot.name}` has {len(options)} types in this loop", _REMEDY.format(slot.name))
    return options if len(options) > before else None


def _bind_after(cx: Context, slot: Slot, values: list[Value]) -> None:
    """Bind a variable that only the loop assigns: after it, it holds what the last round left, or zero."""
    if not values:
        return
    for other in values[1:]:
        if not same_shape(values[0], other):
            cx.bindings[slot] = unstable(slot.name, values[0], other)
            return
    cx.bindings[slot] = cx._maybe(slot, values[0])


def lower_for(cx: Context, node: n.For) -> None:
    """Lower `for`; with several iterators the last runs fastest."""
    if len(node.bindings) > 1 and _leaves(node.body):
        node = _nested(node)
    _level(cx, node.bindings, node.body)


def _leaves(node: n.Node) -> bool:
    """Tell whether a body has a `break` of its own loop."""
    if isinstance(node, n.Break):
        return True
    if isinstance(node, (n.For, n.While, n.Lambda, n.FunctionDef)):
        return False
    return any(_leaves(child) for child in children(node))


def _left_early(cx: Context, target: n.Node, items: tuple[Value, ...], body: n.Block) -> None:
    """Lower a loop over items that `break` or `continue` leaves: a loop of one round for each, and a flag."""
    outer = cx.scope
    cx.scope = Scope(outer)
    stop = n.Name(f"{_STOP}{cx.key()}")
    cx.assign(cx.scope.declare(stop.id), FALSE)
    once = n.Call(n.Name(":"), (n.Literal(1, "Int64"), n.Literal(1, "Int64")))
    marked = _marked(body, stop)
    try:
        for item in items:
            holder = n.Name(f"%item{cx.key()}")
            cx.bindings[cx.scope.declare(holder.id)] = item
            inner = n.Block((n.Assign(target, holder), marked))
            names = n.Local(tuple(n.Name(name) for name in target_names(target)))
            lower(cx, n.If(stop, n.Block(()), n.For(((n.Name("_"), once),), n.Block((names, inner))), pos=body.pos))
    finally:
        cx.scope = outer


def _nested(node: n.For) -> n.For:
    """Write a loop over several iterators that `break` leaves as loops within loops and a flag."""
    inner: n.Node = n.Block((_marked(node.body, n.Name(_STOP)),), pos=node.pos)
    for binding in reversed(node.bindings[1:]):
        leave = n.ShortCircuit("&&", n.Name(_STOP), n.Break(), pos=node.pos)
        start = n.Assign(n.Name(_STOP), n.Literal(False, "Bool"), pos=node.pos)
        inner = n.Block((start, n.For((binding,), inner, pos=node.pos), leave), pos=node.pos)  # type: ignore[arg-type]
    return n.For(node.bindings[:1], inner, pos=node.pos)  # type: ignore[arg-type]


def _marked(node: n.Node, stop: n.Name) -> n.Node:
    """Return a loop's body in which each `break` of that loop sets a flag too."""

    def mark(stmt: n.Node) -> n.Node:
        if isinstance(stmt, n.Break):
            return n.Block((n.Assign(stop, n.Literal(True, "Bool")), stmt), pos=stmt.pos)
        if isinstance(stmt, n.Block):
            return n.Block(tuple(mark(s) for s in stmt.body), pos=stmt.pos)
        if isinstance(stmt, n.If):
            orelse = None if stmt.orelse is None else mark(stmt.orelse)
            return n.If(stmt.cond, mark(stmt.then), orelse, pos=stmt.pos)
        if isinstance(stmt, n.ShortCircuit):
            return n.ShortCircuit(stmt.op, stmt.left, mark(stmt.right), pos=stmt.pos)
        if isinstance(stmt, n.MacroCall):
            return n.MacroCall(stmt.name, tuple(mark(a) for a in stmt.args), stmt.module, pos=stmt.pos)
        return stmt

    return mark(node)


def _level(cx: Context, bindings: tuple[tuple[n.Node, n.Node], ...], body: n.Block) -> None:
    (target, values), rest = bindings[0], bindings[1:]
    over = cx.hold_all(lower(cx, values))

    def inside(bind: Callable[[], Value]) -> None:
        outer = cx.scope
        cx.scope = Scope(outer)
        for name in target_names(target):
            cx.scope.declare(name)
        if not rest:
            for name in assigned(body, deep=False):
                if cx.scope.find(name) is None:
                    cx.scope.declare(name)
        try:
            _bind(cx, target, bind(), body)
            if rest:
                _level(cx, rest, body)
            else:
                lower_block(cx, body.body)
        finally:
            cx.scope = outer

    _over(cx, over, bindings, body, inside)


def _over(
    cx: Context,
    over: Value,
    bindings: tuple[tuple[n.Node, n.Node], ...],
    body: n.Block,
    inside: Callable[[Callable[[], Value]], None],
) -> Value:
    """Lower the loop over one value; `inside` lowers the body for an item."""
    (target, _), rest = bindings[0], bindings[1:]
    nodes = (body, *(b for pair in rest for b in pair))
    if isinstance(over, Union):
        return by_option(cx, over, lambda option: _over(cx, option, bindings, body, inside))
    if isinstance(over, Range):
        name = target.id if isinstance(target, n.Name) and target.id != "_" else "k"
        _range_loop(cx, over, name, nodes, lambda k: inside(lambda: k))
    elif isinstance(over, CartesianRange):
        _cartesian_loop(cx, over.ranges, (), nodes, lambda index: inside(lambda: index))
    elif isinstance(over, (Tuple, Static, Cartesian)):
        if not rest and (_leaves(body) or _continues(body)):
            _left_early(cx, target, over.items, body)
            return Nothing()
        for item in over.items:
            inside(lambda item=item: item)  # type: ignore[misc]
    elif isinstance(over, Array):
        count = Range(int64(1), length(cx, over))
        _range_loop(cx, count, "k", nodes, lambda k: inside(lambda: load_index(cx, over, (k,))))
    elif isinstance(over, (Zipped, LinearRange)):
        count = Range(int64(1), count_of(cx, over))
        _range_loop(cx, count, "k", nodes, lambda k: inside(lambda: item_at(cx, over, k)))
    elif isinstance(over, Scalar):
        inside(lambda: over)
    else:
        cx.unsupported(f"a loop over a {type_of(over)}", "loop over a range, a tuple or an array")
    return Nothing()


def count_of(cx: Context, value: Value) -> Scalar:
    """Return how many items a value has for a loop."""
    parts = value.parts if isinstance(value, Zipped) else (value,)
    counts = [BUILTINS["length"](cx, (part,)) for part in parts]
    least = counts[0]
    for count in counts[1:]:
        least = BUILTINS["min"](cx, (least, count))
    assert isinstance(least, Scalar)
    return cx.hold(least)


def item_at(cx: Context, value: Value, k: Scalar) -> Value:
    """Return the item that a loop over a value has in round `k`."""
    if isinstance(value, Zipped):
        return Tuple(tuple(item_at(cx, part, k) for part in value.parts))
    if isinstance(value, LinearRange):
        return k
    outer, cx.inbounds = cx.inbounds, True
    try:
        return load_index(cx, value, (k,))
    finally:
        cx.inbounds = outer


def _continues(node: n.Node) -> bool:
    if isinstance(node, n.Continue):
        return True
    if isinstance(node, (n.For, n.While, n.Lambda, n.FunctionDef)):
        return False
    return any(_continues(child) for child in children(node))


def _bind(cx: Context, target: n.Node, value: Value, body: n.Block) -> None:
    from jlkern.engines.numba.lower.statements import store

    if isinstance(target, n.Name):
        if target.id == "_":
            return
        slot = cx.scope.find(target.id)
        assert slot is not None
        if target.id in set(assigned(body, deep=True)):
            cx.assign(slot, value)
        else:
            cx.bindings[slot] = value
        return
    store(cx, target, value)


def _range_loop(cx: Context, over: Range, name: str, nodes: tuple[n.Node, ...], body: Callable[[Scalar], None]) -> None:
    if over.elem.kind == "float":
        cx.unsupported("a loop over a range of floats", "loop over integers and compute the value")
    raw = cx.fresh(name, "int64")
    start, stop = cast(cx, over.start, INT64).expr, cast(cx, over.stop, INT64).expr
    step = simt.Lit(1, "int64") if over.step is None else cast(cx, over.step, INT64).expr
    if not isinstance(step, simt.Lit):
        bad = cx.op("eq", "bool", step, simt.Lit(0, "int64"))
        cx.check(bad, "KernelThrownError", "ArgumentError: the step of a range cannot be zero")

    def inside() -> None:
        k = Scalar(INT64, raw)
        if over.elem != INT64:
            k = cx.hold(cast(cx, k, over.elem), name)
        body(k)

    stmts = loop(cx, nodes, inside)
    cx.emit(simt.For(raw, start, stop, step, tuple(stmts)))


def _cartesian_loop(
    cx: Context,
    ranges: tuple[Range, ...],
    found: tuple[Scalar, ...],
    nodes: tuple[n.Node, ...],
    body: Callable[[Cartesian], None],
) -> None:
    """The first dimension runs fastest, so it is the innermost loop."""
    if not ranges:
        body(Cartesian(found))
        return
    _range_loop(cx, ranges[-1], "k", nodes, lambda k: _cartesian_loop(cx, ranges[:-1], (k, *found), nodes, body))
