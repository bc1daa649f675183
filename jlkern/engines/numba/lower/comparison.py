"""Comparison, which is exact whatever the types, and the extremes."""

from __future__ import annotations

from jlkern.engines.numba.lower import fold
from jlkern.engines.numba.lower.context import Context, truth
from jlkern.engines.numba.lower.conversion import (
    as_number,
    cast,
    number,
    real,
    together,
    zero_of,
)
from jlkern.engines.numba.lower.registry import BUILTINS, arity, builtin, no_method
from jlkern.engines.numba.lower.simt import Expr, Lit
from jlkern.engines.numba.lower.types import BOOL, FLOAT32, FLOAT64, INT64, UINT64, Prim, promote
from jlkern.engines.numba.lower.values import (
    Cartesian,
    Complex,
    Nothing,
    Range,
    Scalar,
    Static,
    Symbol,
    Tuple,
    TypeValue,
    Value,
    ValValue,
    constant,
    leaves,
    same_shape,
)


def compare(cx: Context, op: str, a: Value, b: Value) -> Scalar:
    """`eq`, `ne`, `lt`, `le`, `gt` or `ge` of two real numbers, exact whatever their types."""
    x, y = as_number(a, b), as_number(b, a)
    if not isinstance(x, Scalar) or not isinstance(y, Scalar):
        no_method(cx, {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[op], (a, b))
    if x.type == y.type:
        return truth(cx.op(op, "bool", x.expr, y.expr))
    kinds = {x.type.kind, y.type.kind}
    if "float" in kinds and kinds != {"float"}:
        return _compare_mixed(cx, op, x, y)
    if kinds == {"int", "uint"}:
        return _compare_signs(cx, op, x, y)
    ty = promote(x.type, y.type)
    assert isinstance(ty, Prim)
    return truth(cx.op(op, "bool", cast(cx, x, ty).expr, cast(cx, y, ty).expr))


_FLIP = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def _compare_mixed(cx: Context, op: str, x: Scalar, y: Scalar) -> Scalar:
    if x.type.kind == "float":
        return _compare_mixed(cx, _FLIP[op], y, x)
    exact = x.type.bits < (32 if y.type == FLOAT32 else 64)
    if exact or (x.is_const and abs(x.const) <= 1 << (24 if y.type == FLOAT32 else 53)):
        return truth(cx.op(op, "bool", cast(cx, x, y.type).expr, y.expr))
    wide = cast(cx, y, FLOAT64)
    if x.type.bits < 64:
        return truth(cx.op(op, "bool", cast(cx, x, FLOAT64).expr, wide.expr))
    return truth(cx.op(f"{op}_exact", "bool", x.expr, wide.expr))


def _compare_signs(cx: Context, op: str, x: Scalar, y: Scalar) -> Scalar:
    if x.type.kind == "uint":
        return _compare_signs(cx, _FLIP[op], y, x)
    if y.type.bits < 64:  # both fit Int64
        return truth(cx.op(op, "bool", cast(cx, x, INT64).expr, cast(cx, y, INT64).expr))
    x = cx.hold(x)
    negative = cx.op("lt", "bool", x.expr, zero_of(x.type).expr)
    same = cx.op(op, "bool", cast(cx, x, UINT64).expr, y.expr)
    if op in ("lt", "le", "ne"):
        return truth(cx.op("or", "bool", negative, same))
    return truth(cx.op("and", "bool", cx.op("not", "bool", negative), same))


def equal(cx: Context, a: Value, b: Value) -> Scalar:
    """`a == b` of any two values."""
    if number(a) and number(b):
        x, y = as_number(a, b), as_number(b, a)
        if isinstance(x, Scalar) and isinstance(y, Scalar):
            return compare(cx, "eq", x, y)
        ar, ai = (x.re, x.im) if isinstance(x, Complex) else (x, None)
        br, bi = (y.re, y.im) if isinstance(y, Complex) else (y, None)
        assert isinstance(ar, Scalar) and isinstance(br, Scalar)
        same = compare(cx, "eq", ar, br)
        imag = compare(cx, "eq", ai or zero_of(ar.type), bi or zero_of(br.type))
        return truth(cx.op("and", "bool", same.expr, imag.expr))
    if isinstance(a, (Tuple, Static, Cartesian)) and type(a) is type(b):
        assert isinstance(b, (Tuple, Static, Cartesian))
        if len(a.items) != len(b.items):
            return constant(False, BOOL)
        result: Expr = fold.TRUE
        for x, y in zip(a.items, b.items, strict=True):  # type: ignore[assignment]
            result = cx.op("and", "bool", result, equal(cx, x, y).expr)  # type: ignore[arg-type]
        return truth(result)
    if isinstance(a, Range) and isinstance(b, Range) and a.step is None and b.step is None:
        empty = [cx.op("lt", "bool", r.stop.expr, r.start.expr) for r in (a, b)]
        ends = [compare(cx, "eq", x, y).expr for x, y in ((a.start, b.start), (a.stop, b.stop))]
        return truth(cx.op("or", "bool", cx.op("and", "bool", *empty), cx.op("and", "bool", *ends)))
    if isinstance(a, (TypeValue, Symbol, Nothing, ValValue)) or isinstance(b, (TypeValue, Symbol, Nothing, ValValue)):
        return constant(a == b, BOOL)
    no_method(cx, "==", (a, b))


@builtin("==")
def _eq(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "==", args, 2)
    return equal(cx, *args)


@builtin("!=", "≠")
def _ne(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "!=", args, 2)
    return truth(cx.op("not", "bool", equal(cx, *args).expr))


@builtin("===", "≡")
def _egal(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "===", args, 2)
    a, b = args
    if next(leaves(a), None) is None or next(leaves(b), None) is None or not same_shape(a, b):
        return constant(a == b, BOOL)
    result: Expr = fold.TRUE
    for x, y in zip(leaves(a), leaves(b), strict=True):
        result = cx.op("and", "bool", result, cx.op("egal", "bool", x.expr, y.expr))
    return truth(result)


@builtin("!==", "≢")
def _not_egal(cx: Context, args: tuple[Value, ...]) -> Value:
    same = _egal(cx, args)
    assert isinstance(same, Scalar)
    return truth(cx.op("not", "bool", same.expr))


def _comparison(name: str, op: str) -> None:
    @builtin(*name.split())
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 2)
        a, b = args
        if isinstance(a, Tuple) and isinstance(b, Tuple) and op == "lt":
            result: Expr = Lit(len(a.items) < len(b.items), "bool")
            for x, y in reversed(list(zip(a.items, b.items, strict=False))):
                less, same = compare(cx, "lt", x, y).expr, equal(cx, x, y).expr
                result = cx.op("or", "bool", less, cx.op("and", "bool", same, result))
            return truth(result)
        return compare(cx, op, a, b)


for _names, _op in (("<", "lt"), ("<= ≤", "le"), (">", "gt"), (">= ≥", "ge")):
    _comparison(_names, _op)


def _nan(cx: Context, x: Scalar) -> Expr:
    return cx.op("ne", "bool", x.expr, x.expr) if x.type.kind == "float" else fold.FALSE


def _sign(cx: Context, x: Scalar) -> Expr:
    if x.type.kind == "float":
        return cx.op("signbit", "bool", x.expr)
    return cx.op("lt", "bool", x.expr, zero_of(x.type).expr) if x.type.kind == "int" else fold.FALSE


def _reals(cx: Context, name: str, args: tuple[Value, ...]) -> tuple[Scalar, Scalar]:
    arity(cx, name, args, 2)
    x, y = as_number(args[0], args[1]), as_number(args[1], args[0])
    if not isinstance(x, Scalar) or not isinstance(y, Scalar):
        no_method(cx, name, args)
    return cx.hold(x), cx.hold(y)


@builtin("isless")
def _isless(cx: Context, args: tuple[Value, ...]) -> Value:
    x, y = _reals(cx, "isless", args)
    if x.type == y.type and x.type.kind == "float":
        return truth(cx.op("isless", "bool", x.expr, y.expr))
    less = compare(cx, "lt", x, y)
    if "float" not in (x.type.kind, y.type.kind):
        return less
    signs = cx.op("and", "bool", _sign(cx, x), cx.op("not", "bool", _sign(cx, y)))  # -0.0 before 0
    other = cx.op("and", "bool", cx.op("not", "bool", _nan(cx, x)), cx.op("or", "bool", _nan(cx, y), signs))
    return truth(cx.op("or", "bool", less.expr, other))


@builtin("isequal")
def _isequal(cx: Context, args: tuple[Value, ...]) -> Value:
    if any(isinstance(a, Complex) for a in args):
        arity(cx, "isequal", args, 2)
        pairs = zip(*((BUILTINS["real"](cx, (a,)), BUILTINS["imag"](cx, (a,))) for a in args), strict=True)
        parts = [_isequal(cx, pair) for pair in pairs]
        return truth(cx.op("and", "bool", *(p.expr for p in parts if isinstance(p, Scalar))))
    x, y = _reals(cx, "isequal", args)
    same = compare(cx, "eq", x, y)
    if "float" not in (x.type.kind, y.type.kind):
        return same
    signs = cx.op("not", "bool", cx.op("xor", "bool", _sign(cx, x), _sign(cx, y)))
    both = cx.op("and", "bool", _nan(cx, x), _nan(cx, y))
    return truth(cx.op("or", "bool", both, cx.op("and", "bool", same.expr, signs)))


def _extreme(name: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        if len(args) == 1 and number(args[0]):
            return args[0]
        if len(args) < 2:
            no_method(cx, name, args)
        values = together(cx, name, args, exact=True)
        result = values[0]
        for value in values[1:]:
            result = cx.scalar(name, result.type, cx.hold(result).expr, cx.hold(value).expr)
        return result


_extreme("min")
_extreme("max")


@builtin("minmax")
def _minmax(cx: Context, args: tuple[Value, ...]) -> Value:
    return Tuple((BUILTINS["min"](cx, args), BUILTINS["max"](cx, args)))


@builtin("clamp")
def _clamp(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "clamp", args, 3)
    x, low, high = (cx.hold(real(cx, a, "clamp")) for a in args)
    plain, least, greatest = together(cx, "clamp", (x, low, high), exact=True)
    ty = plain.type
    inner = cx.op("select", ty.numpy, compare(cx, "lt", x, low).expr, least.expr, plain.expr)
    return cx.scalar("select", ty, compare(cx, "gt", x, high).expr, greatest.expr, inner)
