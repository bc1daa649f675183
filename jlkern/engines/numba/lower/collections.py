"""Built-in functions on tuples, static vectors, CartesianIndex, types and functions."""

from __future__ import annotations

from typing import Any, NoReturn

from jlkern.engines.numba.lower import fold
from jlkern.engines.numba.lower.arithmetic import arithmetic, divide, negate
from jlkern.engines.numba.lower.arrays import load_index
from jlkern.engines.numba.lower.comparison import equal
from jlkern.engines.numba.lower.construct import made
from jlkern.engines.numba.lower.context import Context, truth
from jlkern.engines.numba.lower.conversion import cast, convert, number, to_prim, zero_like
from jlkern.engines.numba.lower.mathematics import unary
from jlkern.engines.numba.lower.registry import BUILTINS, arity, builtin, no_method
from jlkern.engines.numba.lower.simt import Expr
from jlkern.engines.numba.lower.types import BOOL, INT64, UINT64, Abstract, ComplexT, JType, Prim, match, promote
from jlkern.engines.numba.lower.values import (
    Array,
    Cartesian,
    CartesianRange,
    Complex,
    Composed,
    Irrational,
    LinearRange,
    Nothing,
    Pair,
    Range,
    Scalar,
    Static,
    Struct,
    Symbol,
    Text,
    Tuple,
    TypeValue,
    Value,
    ValValue,
    Zipped,
    canonical,
    constant,
    from_canonical,
    int64,
    leaves,
    rebuild,
    type_of,
)
from jlkern.engines.numba.lower.values import Function as FunctionValue

# --- + - * / on everything ---


def _plain(cx: Context, name: str, a: Value, b: Value) -> Value:
    if number(a) and number(b):
        return divide(cx, a, b) if name == "/" else arithmetic(cx, name, a, b)
    if isinstance(a, Cartesian) or isinstance(b, Cartesian):
        return _cartesian_op(cx, name, a, b)
    if isinstance(a, Static) and isinstance(b, Static) and name == "*":
        return _matrix_product(cx, a, b)
    if (isinstance(a, Array) and a.static is not None) or (isinstance(b, Array) and b.static is not None):
        return _plain(cx, name, frozen(cx, a), frozen(cx, b))
    if isinstance(a, Static) and isinstance(b, Static) and name in "+-":
        if a.dims != b.dims:
            cx.unsupported(f"`{name}` of static arrays of sizes {a.dims} and {b.dims}")
        return Static(a.dims, tuple(_plain(cx, name, x, y) for x, y in zip(a.items, b.items, strict=True)))
    if isinstance(a, Static) and number(b) and name in "*/":
        return Static(a.dims, tuple(_plain(cx, name, x, b) for x in a.items))
    if isinstance(b, Static) and number(a) and name == "*":
        return Static(b.dims, tuple(_plain(cx, name, a, x) for x in b.items))
    no_method(cx, name, (a, b))


def frozen(cx: Context, value: Value) -> Value:
    """Return an MVector's present value as an SVector."""
    if isinstance(value, Array) and value.static is not None:
        from jlkern.engines.numba.lower.arrays import spread

        outer, cx.inbounds = cx.inbounds, True
        items = spread(cx, value)
        cx.inbounds = outer
        return Static(value.static, items)
    return value


def _cartesian_op(cx: Context, name: str, a: Value, b: Value) -> Value:
    if isinstance(a, Cartesian) and isinstance(b, Cartesian) and name in "+-" and len(a.items) == len(b.items):
        pairs = zip(a.items, b.items, strict=True)
        items = [arithmetic(cx, name, x, y) for x, y in pairs]
    elif name == "*" and isinstance(b, Cartesian) and isinstance(a, Scalar):
        items = [arithmetic(cx, "*", a, x) for x in b.items]
    elif name == "*" and isinstance(a, Cartesian) and isinstance(b, Scalar):
        items = [arithmetic(cx, "*", x, b) for x in a.items]
    else:
        no_method(cx, name, (a, b))
    return Cartesian(tuple(i for i in items if isinstance(i, Scalar)))


def _matrix_product(cx: Context, a: Static, b: Static) -> Value:
    if a.adjoint and len(b.dims) == 1:
        return _dot(cx, (Static((len(a.items),), a.items), b))
    rows, inner = a.dims if len(a.dims) == 2 else (a.dims[0], 1)
    columns = b.dims[1] if len(b.dims) == 2 else 1
    if b.dims[0] != inner:
        cx.unsupported(f"the product of static arrays of sizes {a.dims} and {b.dims}")
    items: list[Value] = []
    for j in range(columns):
        for i in range(rows):
            total: Value | None = None
            for k in range(inner):
                term = arithmetic(cx, "*", a.items[i + k * rows], b.items[k + j * inner])
                total = term if total is None else arithmetic(cx, "+", total, term)
            assert total is not None
            items.append(total)
    return Static((rows, columns) if len(b.dims) == 2 else (rows,), tuple(items))


@builtin("+")
def _plus(cx: Context, args: tuple[Value, ...]) -> Value:
    if len(args) == 1:
        x = args[0]
        return cast(cx, x, INT64) if isinstance(x, Scalar) and x.type == BOOL else x
    result = args[0]
    for arg in args[1:]:
        result = _plain(cx, "+", result, arg)
    return result


@builtin("-")
def _minus(cx: Context, args: tuple[Value, ...]) -> Value:
    if len(args) == 1:
        x = args[0]
        if isinstance(x, Scalar):
            return negate(cx, x)
        if isinstance(x, Irrational):
            return constant(-x.value, Prim("Float64", "float64", "float", 64))
        if isinstance(x, (Complex, Static, Cartesian)):
            return rebuild(x, iter([negate(cx, v) for v in leaves(x)]))
        no_method(cx, "-", args)
    arity(cx, "-", args, 2)
    return _plain(cx, "-", *args)


@builtin("*")
def _times(cx: Context, args: tuple[Value, ...]) -> Value:
    result = args[0]
    for arg in args[1:]:
        result = _plain(cx, "*", result, arg)
    return result


@builtin("/")
def _divide(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "/", args, 2)
    return _plain(cx, "/", *args)


@builtin("\\")
def _left_divide(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "\\", args, 2)
    return _plain(cx, "/", args[1], args[0])


@builtin("//")
def _rational(cx: Context, args: tuple[Value, ...]) -> Value:
    cx.unsupported("rational numbers `//`", "use floats")


@builtin("evalpoly")
def _evalpoly(cx: Context, args: tuple[Value, ...]) -> Value:
    """Horner's rule with fused steps, as Julia's docstring has it."""
    arity(cx, "evalpoly", args, 2)
    items = _items(cx, args[1], "evalpoly")
    x = cx.hold_all(args[0])
    result = items[-1]
    for item in reversed(items[:-1]):
        result = BUILTINS["muladd"](cx, (x, result, item))
    return result


def _componentwise(name: str) -> None:
    scalar_version = BUILTINS[name]

    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        if args and all(isinstance(a, Cartesian) for a in args):
            columns = zip(*(a.items for a in args if isinstance(a, Cartesian)), strict=True)
            items = [scalar_version(cx, column) for column in columns]
            return Cartesian(tuple(i for i in items if isinstance(i, Scalar)))
        return scalar_version(cx, args)


_componentwise("min")
_componentwise("max")


@builtin("dot", "⋅")
def _dot(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "dot", args, 2)
    if number(args[0]) and number(args[1]):
        return arithmetic(cx, "*", BUILTINS["conj"](cx, args[:1]), args[1])
    a, b = (_items(cx, frozen(cx, v), "dot") for v in args)
    if len(a) != len(b) or not a:
        cx.unsupported("`dot` of vectors of different lengths")
    total: Value | None = None
    for x, y in zip(a, b, strict=True):
        term = arithmetic(cx, "*", BUILTINS["conj"](cx, (x,)), y)
        total = term if total is None else arithmetic(cx, "+", total, term)
    assert total is not None
    return total


@builtin("cross", "×")
def _cross(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "cross", args, 2)
    a, b = (_items(cx, v, "cross") for v in args)
    if len(a) != 3 or len(b) != 3:
        cx.unsupported("`cross` of vectors that do not have 3 elements")

    def part(i: int, j: int) -> Value:
        return arithmetic(cx, "-", arithmetic(cx, "*", a[i], b[j]), arithmetic(cx, "*", a[j], b[i]))

    return Static((3,), (part(1, 2), part(2, 0), part(0, 1)))


@builtin("norm")
def _norm(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "norm", args, 1)
    total: Value | None = None
    for x in _items(cx, frozen(cx, args[0]), "norm"):
        term = BUILTINS["abs2"](cx, (x,))
        total = term if total is None else arithmetic(cx, "+", total, term)
    if not isinstance(total, Scalar):
        no_method(cx, "norm", args)
    return unary(cx, "sqrt", total)


@builtin("transpose", "adjoint", "'")
def _transpose(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "transpose", args, 1)
    x = args[0]
    if number(x):
        return x
    if not isinstance(x, Static):
        no_method(cx, "transpose", args)
    if len(x.dims) == 1:
        return Static((1, x.dims[0]), x.items, True)
    rows, columns = x.dims
    return Static((columns, rows), tuple(x.items[i + j * rows] for i in range(rows) for j in range(columns)))


@builtin("tr")
def _trace(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "tr", args, 1)
    m = frozen(cx, args[0])
    if not isinstance(m, Static) or len(m.dims) != 2 or m.dims[0] != m.dims[1]:
        no_method(cx, "tr", args)
    return _fold(cx, FunctionValue("+", (), True), m.items[:: m.dims[0] + 1], "tr")


@builtin("normalize")
def _normalize(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "normalize", args, 1)
    a = frozen(cx, args[0])
    length = cx.hold_all(_norm(cx, (a,)))
    return _plain(cx, "*", cx.hold_all(divide(cx, int64(1), length)), a)


# --- items ---


def _items(cx: Context, value: Value, name: str) -> tuple[Value, ...]:
    if isinstance(value, (Tuple, Static, Cartesian)):
        return value.items
    if isinstance(value, Range) and value.start.is_const and value.stop.is_const:
        step = 1 if value.step is None else value.step.const
        if step is not None:
            low, high = value.start.const, value.stop.const
            return tuple(constant(k, value.elem) for k in range(low, high + (1 if step > 0 else -1), step))
    if isinstance(value, Array) and value.static is not None:
        return _items(cx, frozen(cx, value), name)
    if number(value):
        return (value,)
    no_method(cx, name, (value,))


@builtin("tuple")
def _tuple(cx: Context, args: tuple[Value, ...]) -> Value:
    return Tuple(args)


def _call(cx: Context, func: Value, *args: Value) -> Value:
    from jlkern.engines.numba.lower.calls import call

    return call(cx, func, args)


@builtin("ntuple")
def _ntuple(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "ntuple", args, 2)
    count = args[1].value if isinstance(args[1], ValValue) else canonical(args[1])
    if not isinstance(count, int):
        cx.unsupported("`ntuple` with a length that is not known at compile time", "use Val(N)")
    return Tuple(tuple(cx.hold_all(_call(cx, args[0], int64(k + 1))) for k in range(count)))


@builtin("map")
def _map(cx: Context, args: tuple[Value, ...]) -> Value:
    columns = [_items(cx, a, "map") for a in args[1:]]
    made = tuple(_call(cx, args[0], *row) for row in zip(*columns, strict=False))
    first = args[1]
    return Static(first.dims, made) if isinstance(first, Static) else made[0] if number(first) else Tuple(made)


@builtin("foreach")
def _foreach(cx: Context, args: tuple[Value, ...]) -> Value:
    _map(cx, args)
    return Nothing()


def _fold(cx: Context, op: Value, items: tuple[Value, ...], name: str) -> Value:
    if not items:
        cx.unsupported(f"`{name}` over nothing")
    result = items[0]
    for item in items[1:]:
        result = _call(cx, op, result, item)
    return result


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
        items = _items(cx, args[-1], name)
        if len(args) == 2:
            items = tuple(_call(cx, args[0], item) for item in items)
        if not items and init is None and name in ("sum", "prod"):
            return int64(0 if name == "sum" else 1)
        if name in ("sum", "prod"):
            items = tuple(_wide(cx, item) for item in items)
        return _fold(cx, FunctionValue(_REDUCTIONS[name], (), True), _started(cx, items, init), name)
    arity(cx, name, args, 3 if "map" in name else 2)
    items = _items(cx, args[-1], name)
    if "map" in name:
        items = tuple(_call(cx, args[0], item) for item in items)
    op = args[-2]
    if name.endswith("foldr"):
        items = items if init is None else (*items, init)
        if not items:
            cx.unsupported(f"`{name}` over nothing")
        result = items[-1]
        for item in reversed(items[:-1]):
            result = _call(cx, op, item, result)
        return result
    return _fold(cx, op, _started(cx, items, init), name)


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
        for item in _items(cx, args[-1], name):
            test = _call(cx, args[0], item) if len(args) == 2 else item
            if not isinstance(test, Scalar) or test.type != BOOL:
                no_method(cx, name, args)
            result = truth(cx.op(op, "bool", result.expr, test.expr))
        return result


_quantifier("any", "or", False)
_quantifier("all", "and", True)


def _best(cx: Context, value: Value, name: str, op: str) -> tuple[Value, Value]:
    """Return the first largest (or smallest) item and its index."""
    items = _items(cx, frozen(cx, value), name)
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


@builtin("OneTo")
def _one_to(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "OneTo", args, 1)
    return _colon(cx, (int64(1), args[0]))


@builtin("count")
def _count(cx: Context, args: tuple[Value, ...]) -> Value:
    total: Value = int64(0)
    for item in _items(cx, args[-1], "count"):
        total = arithmetic(cx, "+", total, _call(cx, args[0], item) if len(args) == 2 else item)
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
    for item in _items(cx, where, "in"):
        result = truth(cx.op("or", "bool", result.expr, equal(cx, x, item).expr))
    return result


@builtin("∉")
def _not_in(cx: Context, args: tuple[Value, ...]) -> Value:
    found = _in(cx, args)
    assert isinstance(found, Scalar)
    return truth(cx.op("not", "bool", found.expr))


@builtin("first")
def _first(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "first", args, 1)
    if isinstance(args[0], Range):
        return args[0].start
    if isinstance(args[0], Pair):
        return args[0].first
    return load_index(cx, args[0], (int64(1),))


def _end(cx: Context, r: Range) -> Value:
    """The last number of a range; of an empty one, what Julia has in its place: the one before the first."""
    one = constant(1, r.elem).expr
    before, after = (cx.op(op, r.elem.numpy, r.start.expr, one) for op in ("sub", "add"))
    if r.step is None:
        return cx.scalar("select", r.elem, cx.op("ge", "bool", r.stop.expr, r.start.expr), r.stop.expr, before)
    count = BUILTINS["length"](cx, (r,))
    found = load_index(cx, r, (count,))
    assert isinstance(count, Scalar) and isinstance(found, Scalar)
    up = cx.op("gt", "bool", r.step.expr, constant(0, r.elem).expr)
    nothing = cx.op("select", r.elem.numpy, up, before, after)
    empty = cx.op("eq", "bool", count.expr, constant(0, count.type).expr)
    return cx.scalar("select", r.elem, empty, nothing, found.expr)


@builtin("last")
def _last(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "last", args, 1)
    if isinstance(args[0], Range):
        return _end(cx, args[0])
    if isinstance(args[0], Pair):
        return args[0].second
    count = BUILTINS["length"](cx, args)
    return load_index(cx, args[0], (count,))


@builtin("step")
def _step(cx: Context, args: tuple[Value, ...]) -> Value:
    value = args[0]
    if not isinstance(value, Range):
        no_method(cx, "step", args)
    return value.step or constant(1, value.elem)


@builtin("reverse")
def _reverse(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "reverse", args, 1)
    value = args[0]
    if isinstance(value, Range):
        step = value.step or constant(1, value.elem)
        last = load_index(cx, value, (BUILTINS["length"](cx, args),))
        assert isinstance(last, Scalar)
        return Range(cx.hold(last), value.start, negate(cx, step))
    items = _items(cx, value, "reverse")
    return Static(value.dims, items[::-1]) if isinstance(value, Static) else Tuple(items[::-1])


@builtin("Base.tail", "tail")
def _tail(cx: Context, args: tuple[Value, ...]) -> Value:
    return Tuple(_items(cx, args[0], "tail")[1:])


@builtin("front")
def _front(cx: Context, args: tuple[Value, ...]) -> Value:
    return Tuple(_items(cx, args[0], "front")[:-1])


@builtin("isempty")
def _isempty(cx: Context, args: tuple[Value, ...]) -> Value:
    count = BUILTINS["length"](cx, args)
    return equal(cx, count, int64(0))


def _lazy(value: Value) -> bool:
    """Tell whether the items of a value are not known one by one at compile time."""
    if isinstance(value, Range):
        return not (value.start.is_const and value.stop.is_const and (value.step is None or value.step.is_const))
    if isinstance(value, Array):
        return value.static is None
    return isinstance(value, (CartesianRange, LinearRange, Zipped))


@builtin("zip")
def _zip(cx: Context, args: tuple[Value, ...]) -> Value:
    if any(_lazy(a) for a in args):
        return Zipped(args)
    columns = [_items(cx, a, "zip") for a in args]
    return Tuple(tuple(Tuple(row) for row in zip(*columns, strict=False)))


@builtin("enumerate")
def _enumerate(cx: Context, args: tuple[Value, ...]) -> Value:
    if _lazy(args[0]):
        return Zipped((Range(int64(1), BUILTINS["length"](cx, args)), args[0]))  # type: ignore[arg-type]
    items = _items(cx, args[0], "enumerate")
    return Tuple(tuple(Tuple((int64(k + 1), v)) for k, v in enumerate(items)))


@builtin("getfield", "getproperty")
def _getfield(cx: Context, args: tuple[Value, ...]) -> Value:
    from jlkern.engines.numba.lower.structs import get_field

    arity(cx, "getfield", args, 2)
    if isinstance(args[1], Symbol):
        return get_field(cx, args[0], args[1].name)
    if isinstance(args[0], Struct):
        return load_index(cx, Tuple(args[0].fields), args[1:])
    return load_index(cx, args[0], args[1:])


@builtin("keys")
def _keys(cx: Context, args: tuple[Value, ...]) -> Value:
    if isinstance(args[0], Tuple) and args[0].names is not None:
        return Tuple(tuple(Symbol(k) for k in args[0].names))
    return BUILTINS["eachindex"](cx, args)


@builtin("values")
def _values(cx: Context, args: tuple[Value, ...]) -> Value:
    return Tuple(_items(cx, args[0], "values"))


@builtin("setindex")
def _setindex(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "setindex", args, 3)
    value, new, at = args
    if not isinstance(value, (Tuple, Static)) or not isinstance(at, Scalar):
        no_method(cx, "setindex", args)
    items = []
    for k, item in enumerate(value.items):
        here = equal(cx, at, int64(k + 1)).expr
        fresh = convert(cx, new, type_of(item)) if isinstance(type_of(item), (Prim, ComplexT)) else new
        parts = zip(leaves(fresh), leaves(item), strict=True)
        items.append(rebuild(item, iter([cx.scalar("select", y.type, here, x.expr, y.expr) for x, y in parts])))
    return Static(value.dims, tuple(items)) if isinstance(value, Static) else Tuple(tuple(items), value.names)


@builtin("merge")
def _merge(cx: Context, args: tuple[Value, ...]) -> Value:
    found: dict[str, Value] = {}
    for arg in args:
        if not isinstance(arg, Tuple) or arg.names is None:
            no_method(cx, "merge", args)
        found.update(zip(arg.names, arg.items, strict=True))
    return Tuple(tuple(found.values()), tuple(found))


@builtin("haskey", "hasproperty", "hasfield")
def _haskey(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "haskey", args, 2)
    holder, name = args
    if not isinstance(name, Symbol):
        no_method(cx, "haskey", args)
    if isinstance(holder, Tuple) and holder.names is not None:
        return constant(name.name in holder.names, BOOL)
    if isinstance(holder, Struct):
        return constant(name.name in [field for field, _ in holder.definition.fields], BOOL)
    no_method(cx, "haskey", args)


@builtin("isnothing")
def _isnothing(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isnothing", args, 1)
    return constant(isinstance(args[0], Nothing), BOOL)


@builtin("something")
def _something(cx: Context, args: tuple[Value, ...]) -> Value:
    for arg in args:
        if not isinstance(arg, Nothing):
            return arg
    cx.check(fold.TRUE, "KernelThrownError", "ArgumentError: No value arguments present")
    cx.dead = True
    return Nothing()


@builtin("sizeof")
def _sizeof(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "sizeof", args, 1)
    ty = args[0].type if isinstance(args[0], TypeValue) else type_of(args[0])
    inner = ty.elem if isinstance(ty, ComplexT) else ty
    if not isinstance(inner, Prim):
        no_method(cx, "sizeof", args)
    return int64(inner.bits // 8 * (2 if isinstance(ty, ComplexT) else 1))


# --- ranges ---


@builtin(":")
def _colon(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, ":", args, 2, 3)
    if all(isinstance(a, Cartesian) for a in args) and len(args) == 2:
        low, high = (a.items for a in args if isinstance(a, Cartesian))
        return CartesianRange(tuple(Range(x, y) for x, y in zip(low, high, strict=True)))
    parts = []
    for arg in args:
        if not isinstance(arg, Scalar):
            no_method(cx, ":", args)
        parts.append(arg)
    ty: JType = parts[0].type
    for part in parts[1:]:
        ty = promote(ty, part.type) or ty
    assert isinstance(ty, Prim)
    if ty.kind == "bool":
        ty = INT64
    parts = [cx.hold(to_prim(cx, p, ty)) for p in parts]
    if len(parts) == 3:
        zero = constant(0, ty).expr
        cx.check(cx.op("eq", "bool", parts[1].expr, zero), "KernelThrownError", "the step of a range is zero")
    return Range(parts[0], parts[1]) if len(parts) == 2 else Range(parts[0], parts[2], parts[1])


@builtin("range")
def _range(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "range", args, 2)
    return _colon(cx, args)


# --- types ---


@builtin("typeof")
def _typeof(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "typeof", args, 1)
    return TypeValue(type_of(args[0]))


@builtin("isa")
def _isa(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isa", args, 2)
    if not isinstance(args[1], TypeValue):
        no_method(cx, "isa", args)
    return constant(match(type_of(args[0]), args[1].type, {}), BOOL)


@builtin("<:")
def _subtype(cx: Context, args: tuple[Value, ...]) -> Value:
    from jlkern.engines.numba.lower.types import is_subtype

    arity(cx, "<:", args, 2)
    if not all(isinstance(a, TypeValue) for a in args):
        no_method(cx, "<:", args)
    a, b = (v.type for v in args if isinstance(v, TypeValue))
    return constant(is_subtype(a, b), BOOL)


@builtin("convert")
def _convert(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "convert", args, 2)
    if not isinstance(args[0], TypeValue):
        no_method(cx, "convert", args)
    ty = args[0].type
    if isinstance(ty, (Prim, ComplexT)):
        return convert(cx, args[1], ty)
    if match(type_of(args[1]), ty, {}):
        return args[1]
    from jlkern.engines.numba.lower.construct import construct

    return construct(cx, ty, args[1:])


@builtin("oftype")
def _oftype(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "oftype", args, 2)
    return _convert(cx, (TypeValue(type_of(args[0])), args[1]))


@builtin("promote_type")
def _promote_type(cx: Context, args: tuple[Value, ...]) -> Value:
    ty: Any = None
    for arg in args:
        if not isinstance(arg, TypeValue):
            no_method(cx, "promote_type", args)
        ty = arg.type if ty is None else promote(ty, arg.type)
        if ty is None:
            no_method(cx, "promote_type", args)
    return TypeValue(ty)


@builtin("promote")
def _promote(cx: Context, args: tuple[Value, ...]) -> Value:
    ty = _promote_type(cx, tuple(TypeValue(type_of(a)) for a in args))
    assert isinstance(ty, TypeValue)
    return Tuple(tuple(convert(cx, a, ty.type) for a in args))


def _refuse_array(cx: Context, name: str) -> NoReturn:
    cx.unsupported(f"`{name}` makes an array", "kernels do not allocate; use `@private T (n,)` or a static array")


def _unit(name: str, unit: bool) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        if name in ("zeros", "ones") and len(args) != 1:
            _refuse_array(cx, name)
        arity(cx, name, args, 1)
        x = args[0]
        if isinstance(x, Static) and not unit:
            return Static(x.dims, tuple(zero_like(cx, v, name, False) for v in x.items))
        if isinstance(x, Cartesian):
            return Cartesian(tuple(int64(int(unit)) for _ in x.items))
        ty: Any = getattr(x, "type", None)
        if name in ("zeros", "ones") and not hasattr(ty, "dims") and not isinstance(ty, Abstract):
            _refuse_array(cx, name)
        if isinstance(x, TypeValue) and getattr(ty, "name", "") in ("SVector", "SMatrix", "MVector", "MMatrix"):
            return _static_zero(cx, ty, unit)
        if isinstance(x, TypeValue) and hasattr(ty, "dims"):
            count = 1
            for d in ty.dims:
                count *= d
            return Static(ty.dims, tuple(zero_like(cx, TypeValue(ty.elem), name, unit) for _ in range(count)))
        return zero_like(cx, x, name, unit)


def _static_zero(cx: Context, ty: Any, unit: bool) -> Value:
    rank = 1 if ty.name.endswith("Vector") else 2
    dims, elem = ty.args[:rank], ty.args[rank]
    count = 1
    for d in dims:
        count *= d
    items = tuple(zero_like(cx, TypeValue(elem), "zero", unit) for _ in range(count))
    return made(cx, tuple(dims), elem, items, ty.name.startswith("M"))


for _name, _is_unit in (("zero", False), ("zeros", False), ("one", True), ("ones", True), ("oneunit", True)):
    _unit(_name, _is_unit)


# --- functions, selection, errors ---


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
    return Composed(lambda c, xs: _call(c, outer, _call(c, inner, *xs)), ("∘", type_of(outer), type_of(inner)))


@builtin("|>")
def _pipe(cx: Context, args: tuple[Value, ...]) -> Value:
    return _call(cx, args[1], args[0])


@builtin("=>")
def _pair(cx: Context, args: tuple[Value, ...]) -> Value:
    return Pair(*args)


@builtin("Fix1")
def _fix1(cx: Context, args: tuple[Value, ...]) -> Value:
    func, x = args
    return Composed(lambda c, xs: _call(c, func, x, *xs), ("Fix1", cx.key()))


@builtin("Fix2")
def _fix2(cx: Context, args: tuple[Value, ...]) -> Value:
    func, x = args
    return Composed(lambda c, xs: _call(c, func, *xs, x), ("Fix2", cx.key()))


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


__all__ = ["LinearRange", "from_canonical", "frozen"]
