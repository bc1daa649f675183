"""Functions that go over the items of tuples and static vectors: `map`, `sum`, `any`, `argmax`, `in`, ..."""

from __future__ import annotations

from jlkern.engines.numba.lower import fold
from jlkern.engines.numba.lower.arithmetic import arithmetic
from jlkern.engines.numba.lower.comparison import equal
from jlkern.engines.numba.lower.context import Context, truth
from jlkern.engines.numba.lower.conversion import cast, number
from jlkern.engines.numba.lower.items import call_value, fold_items, frozen, items_of
from jlkern.engines.numba.lower.registry import BUILTINS, arity, builtin, no_method
from jlkern.engines.numba.lower.simt import Expr
from jlkern.engines.numba.lower.types import BOOL, INT64, UINT64
from jlkern.engines.numba.lower.values import (
    Cartesian,
    CartesianRange,
    Nothing,
    Range,
    Scalar,
    Static,
    Tuple,
    Value,
    ValValue,
    canonical,
    constant,
    int64,
)
from jlkern.engines.numba.lower.values import Function as FunctionValue


@builtin("tuple")
def _tuple(cx: Context, args: tuple[Value, ...]) -> Value:
    return Tuple(args)


@builtin("ntuple")
def _ntuple(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "ntuple", args, 2)
    count = args[1].value if isinstance(args[1], ValValue) else canonical(args[1])
    if not isinstance(count, int):
        cx.unsupported("`ntuple` with a length that is not known at compile time", "use Val(N)")
    return Tuple(tuple(cx.hold_all(call_value(cx, args[0], int64(k + 1))) for k in range(count)))


@builtin("map")
def _map(cx: Context, args: tuple[Value, ...]) -> Value:
    columns = [items_of(cx, a, "map") for a in args[1:]]
    made = tuple(call_value(cx, args[0], *row) for row in zip(*columns, strict=False))
    first = args[1]
    return Static(first.dims, made) if isinstance(first, Static) else made[0] if number(first) else Tuple(made)


@builtin("foreach")
def _foreach(cx: Context, args: tuple[Value, ...]) -> Value:
    _map(cx, args)
    return Nothing()


def _started(cx: Context, items: tuple[Value, ...], init: Value | None) -> tuple[Value, ...]:
    return items if init is None else (init, *items)


def _wide(cx: Context, value: Value) -> Value:
    """Small integers are added and multiplied as Int64 or UInt64."""
    if not isinstance(value, Scalar) or value.type.kind == "float":
        return value
    return cast(cx, value, UINT64 if value.type.kind == "uint" else INT64)


def folded(cx: Context, name: str, args: tuple[Value, ...], init: Value | None) -> Value:
    """Call one of the folding functions, with the value of its keyword argument `init`."""
    if name in _REDUCTIONS:
        arity(cx, name, args, 1, 2)
        items = items_of(cx, args[-1], name)
        if len(args) == 2:
            items = tuple(call_value(cx, args[0], item) for item in items)
        if not items and init is None and name in ("sum", "prod"):
            return int64(0 if name == "sum" else 1)
        if name in ("sum", "prod"):
            items = tuple(_wide(cx, item) for item in items)
        return fold_items(cx, FunctionValue(_REDUCTIONS[name], (), True), _started(cx, items, init), name)
    arity(cx, name, args, 3 if "map" in name else 2)
    items = items_of(cx, args[-1], name)
    if "map" in name:
        items = tuple(call_value(cx, args[0], item) for item in items)
    op = args[-2]
    if name.endswith("foldr"):
        items = items if init is None else (*items, init)
        if not items:
            cx.unsupported(f"`{name}` over nothing")
        result = items[-1]
        for item in reversed(items[:-1]):
            result = call_value(cx, op, item, result)
        return result
    return fold_items(cx, op, _started(cx, items, init), name)


def _reduction(name: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        return folded(cx, name, args, None)


_REDUCTIONS = {"sum": "+", "prod": "*", "maximum": "max", "minimum": "min"}


FOLDS = (*_REDUCTIONS, "reduce", "foldl", "foldr", "mapreduce", "mapfoldl", "mapfoldr")


for _name in FOLDS:
    _reduction(_name)


def _quantifier(name: str, op: str, empty: bool) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 1, 2)
        result = constant(empty, BOOL)
        for item in items_of(cx, args[-1], name):
            test = call_value(cx, args[0], item) if len(args) == 2 else item
            if not isinstance(test, Scalar) or test.type != BOOL:
                no_method(cx, name, args)
            result = truth(cx.op(op, "bool", result.expr, test.expr))
        return result


_quantifier("any", "or", False)


_quantifier("all", "and", True)


def _best(cx: Context, value: Value, name: str, op: str) -> tuple[Value, Value]:
    """Return the first largest (or smallest) item and its index."""
    items = items_of(cx, frozen(cx, value), name)
    if not items:
        cx.unsupported(f"`{name}` of nothing")
    best, at = items[0], int64(1)
    for k, item in enumerate(items[1:], 2):
        pair = (best, item) if op == "max" else (item, best)
        better = cx.hold_all(BUILTINS["isless"](cx, pair))
        best = cx.hold_all(BUILTINS["ifelse"](cx, (better, item, best)))
        at = cx.hold_all(BUILTINS["ifelse"](cx, (better, int64(k), at)))  # type: ignore[assignment]
    return best, at


def _extreme(name: str, op: str, which: slice) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 1)
        found = list(_best(cx, args[0], name, op))[which]
        return found[0] if len(found) == 1 else Tuple(tuple(found))


for _name, _op, _which in (
    ("argmax", "max", slice(1, 2)),
    ("argmin", "min", slice(1, 2)),
    ("findmax", "max", slice(0, 2)),
    ("findmin", "min", slice(0, 2)),
):
    _extreme(_name, _op, _which)


@builtin("extrema")
def _extrema(cx: Context, args: tuple[Value, ...]) -> Value:
    return Tuple((BUILTINS["minimum"](cx, args), BUILTINS["maximum"](cx, args)))


@builtin("count")
def _count(cx: Context, args: tuple[Value, ...]) -> Value:
    total: Value = int64(0)
    for item in items_of(cx, args[-1], "count"):
        total = arithmetic(cx, "+", total, call_value(cx, args[0], item) if len(args) == 2 else item)
    return total


def _in_steps(cx: Context, x: Scalar, where: Range) -> Value:
    """Tell whether an integer is in a range with a step."""
    if x.type.kind == "float":
        cx.unsupported("`in` of a float and a range with a step", "compare with the items")
    assert where.step is not None
    apart = cx.hold_all(arithmetic(cx, "-", cast(cx, x, INT64), cast(cx, where.start, INT64)))
    step = cx.hold(cast(cx, where.step, INT64))
    number = cx.hold_all(BUILTINS["fld"](cx, (apart, step)))
    count = BUILTINS["length"](cx, (where,))
    tests = (
        equal(cx, arithmetic(cx, "*", number, step), apart),
        BUILTINS[">="](cx, (number, int64(0))),
        BUILTINS["<"](cx, (number, count)),
    )
    result: Expr = fold.TRUE
    for test in tests:
        assert isinstance(test, Scalar)
        result = cx.op("and", "bool", result, test.expr)
    return truth(result)


@builtin("in", "∈")
def _in(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "in", args, 2)
    x, where = args
    if isinstance(where, Range) and isinstance(x, Scalar):
        low = BUILTINS["<="](cx, (where.start, x))
        high = BUILTINS["<="](cx, (x, where.stop))
        assert isinstance(low, Scalar) and isinstance(high, Scalar)
        if where.step is not None:
            return _in_steps(cx, x, where)
        between = cx.op("and", "bool", low.expr, high.expr)
        if x.type.kind == "float":
            whole = equal(cx, BUILTINS["trunc"](cx, (x,)), x)
            between = cx.op("and", "bool", between, whole.expr)
        return truth(between)
    if isinstance(where, CartesianRange) and isinstance(x, Cartesian):
        both = constant(True, BOOL)
        for coordinate, part in zip(x.items, where.ranges, strict=True):
            inside = _in(cx, (coordinate, part))
            assert isinstance(inside, Scalar)
            both = truth(cx.op("and", "bool", both.expr, inside.expr))
        return both
    result = constant(False, BOOL)
    for item in items_of(cx, where, "in"):
        result = truth(cx.op("or", "bool", result.expr, equal(cx, x, item).expr))
    return result


@builtin("∉")
def _not_in(cx: Context, args: tuple[Value, ...]) -> Value:
    found = _in(cx, args)
    assert isinstance(found, Scalar)
    return truth(cx.op("not", "bool", found.expr))
