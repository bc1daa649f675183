"""Arithmetic on static vectors and matrices, tuples as vectors, and CartesianIndex."""

from __future__ import annotations

from jlkern.engines.numba.lower.arithmetic import arithmetic, divide, negate
from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.conversion import cast, number
from jlkern.engines.numba.lower.items import fold_items, frozen, items_of
from jlkern.engines.numba.lower.mathematics import unary
from jlkern.engines.numba.lower.registry import BUILTINS, arity, builtin, no_method
from jlkern.engines.numba.lower.types import BOOL, INT64, Prim
from jlkern.engines.numba.lower.values import (
    Array,
    Cartesian,
    Complex,
    Irrational,
    Scalar,
    Static,
    Value,
    constant,
    int64,
    leaves,
    rebuild,
    type_of,
)
from jlkern.engines.numba.lower.values import Function as FunctionValue


def plain(cx: Context, name: str, a: Value, b: Value) -> Value:
    if number(a) and number(b):
        return divide(cx, a, b) if name == "/" else arithmetic(cx, name, a, b)
    if isinstance(a, Cartesian) or isinstance(b, Cartesian):
        return _cartesian_op(cx, name, a, b)
    if isinstance(a, Static) and isinstance(b, Static) and name == "*":
        return _matrix_product(cx, a, b)
    if (isinstance(a, Array) and a.static is not None) or (isinstance(b, Array) and b.static is not None):
        return plain(cx, name, frozen(cx, a), frozen(cx, b))
    if isinstance(a, Static) and isinstance(b, Static) and name in "+-":
        if a.dims != b.dims:
            cx.unsupported(f"`{name}` of static arrays of sizes {a.dims} and {b.dims}")
        return Static(a.dims, tuple(plain(cx, name, x, y) for x, y in zip(a.items, b.items, strict=True)))
    if isinstance(a, Static) and number(b) and name in "*/":
        return Static(a.dims, tuple(plain(cx, name, x, b) for x in a.items))
    if isinstance(b, Static) and number(a) and name == "*":
        return Static(b.dims, tuple(plain(cx, name, a, x) for x in b.items))
    no_method(cx, name, (a, b))


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
        result = plain(cx, "+", result, arg)
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
    return plain(cx, "-", *args)


@builtin("*")
def _times(cx: Context, args: tuple[Value, ...]) -> Value:
    result = args[0]
    for arg in args[1:]:
        result = plain(cx, "*", result, arg)
    return result


@builtin("/")
def _divide(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "/", args, 2)
    return plain(cx, "/", *args)


@builtin("\\")
def _left_divide(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "\\", args, 2)
    return plain(cx, "/", args[1], args[0])


@builtin("//")
def _rational(cx: Context, args: tuple[Value, ...]) -> Value:
    cx.unsupported("rational numbers `//`", "use floats")


@builtin("evalpoly")
def _evalpoly(cx: Context, args: tuple[Value, ...]) -> Value:
    """Horner's rule with fused steps, as Julia's docstring has it."""
    arity(cx, "evalpoly", args, 2)
    items = items_of(cx, args[1], "evalpoly")
    x = cx.hold_all(args[0])
    result = items[-1]
    for item in reversed(items[:-1]):
        result = BUILTINS["muladd"](cx, (x, result, item))
    return result


def _componentwise(name: str) -> None:
    scalar_version = BUILTINS[name]

    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        if args and all(type_of(a) == type_of(args[0]) and isinstance(a, Cartesian) for a in args):
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
    a, b = (items_of(cx, frozen(cx, v), "dot") for v in args)
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
    a, b = (items_of(cx, v, "cross") for v in args)
    if len(a) != 3 or len(b) != 3:
        cx.unsupported("`cross` of vectors that do not have 3 elements")

    def part(i: int, j: int) -> Value:
        return arithmetic(cx, "-", arithmetic(cx, "*", a[i], b[j]), arithmetic(cx, "*", a[j], b[i]))

    return Static((3,), (part(1, 2), part(2, 0), part(0, 1)))


@builtin("norm")
def _norm(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "norm", args, 1)
    total: Value | None = None
    for x in items_of(cx, frozen(cx, args[0]), "norm"):
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
    return fold_items(cx, FunctionValue("+", (), True), m.items[:: m.dims[0] + 1], "tr")


@builtin("normalize")
def _normalize(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "normalize", args, 1)
    a = frozen(cx, args[0])
    length = cx.hold_all(_norm(cx, (a,)))
    return plain(cx, "*", cx.hold_all(divide(cx, int64(1), length)), a)
