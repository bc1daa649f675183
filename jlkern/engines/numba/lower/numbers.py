"""Arithmetic, comparison, conversion and mathematics on numbers, by Julia's rules.

Each rule is the one of Julia's manual ("Mathematical Operations", "Conversion and Promotion") and of the docstring of the
function; what runs is an operation of the SIMT form, defined in `semantics`.
"""

from __future__ import annotations

import math
from typing import Any

from jlkern.engines.numba.lower import fold
from jlkern.engines.numba.lower.context import Context, as_scalar, truth
from jlkern.engines.numba.lower.registry import BUILTINS, arity, builtin, no_method
from jlkern.engines.numba.lower.simt import Expr, Lit
from jlkern.engines.numba.lower.types import BOOL, FLOAT32, FLOAT64, INT32, INT64, UINT64, ComplexT, Prim, promote
from jlkern.engines.numba.lower.values import (
    Cartesian,
    Complex,
    Irrational,
    Nothing,
    Scalar,
    Static,
    Symbol,
    Tuple,
    TypeValue,
    Value,
    ValValue,
    constant,
    int64,
    leaves,
    same_shape,
    type_of,
)

Number = Scalar | Complex


def number(value: Value) -> bool:
    """Tell whether a value is a number."""
    return isinstance(value, (Scalar, Complex, Irrational))


def limits(ty: Prim) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    if ty.kind == "bool":
        return 0, 1
    if ty.kind == "uint":
        return 0, (1 << ty.bits) - 1
    return -(1 << (ty.bits - 1)), (1 << (ty.bits - 1)) - 1


# --- conversion ---


def cast(cx: Context, x: Scalar, ty: Prim) -> Scalar:
    """Convert without a check, as promotion does where it cannot lose anything but precision."""
    return x if x.type == ty else cx.scalar("cast", ty, x.expr)


def convert(cx: Context, value: Value, ty: Any) -> Value:
    """`convert(ty, value)` for numbers; throws InexactError at run time where Julia does."""
    if isinstance(value, Irrational):
        if isinstance(ty, ComplexT):
            return Complex(constant(fold.wrap(value.value, ty.elem.numpy), ty.elem), constant(0.0, ty.elem))
        if isinstance(ty, Prim) and ty.kind == "float":
            return constant(fold.wrap(value.value, ty.numpy), ty)
        no_method(cx, f"convert(::Type{{{ty}}}, ...)", (value,))
    if isinstance(ty, ComplexT):
        if isinstance(value, Complex):
            return Complex(to_prim(cx, value.re, ty.elem), to_prim(cx, value.im, ty.elem))
        if isinstance(value, Scalar):
            return Complex(to_prim(cx, value, ty.elem), zero_of(ty.elem))
    if isinstance(ty, Prim):
        if isinstance(value, Complex):
            cx.check(cx.op("ne", "bool", value.im.expr, zero_of(value.im.type).expr), "InexactError",
                     f"{ty}(z): the imaginary part is not zero")  # fmt: skip
            value = value.re
        if isinstance(value, Scalar):
            return to_prim(cx, value, ty)
    if type_of(value) == ty:
        return value
    no_method(cx, f"convert(::Type{{{ty}}}, ...)", (value,))


def to_prim(cx: Context, x: Scalar, ty: Prim) -> Scalar:
    """`ty(x)` for a primitive type, with the InexactError check."""
    of = x.type
    if of == ty:
        return x
    if of.kind == "float" and ty.kind != "float":
        return float_to_int(cx, x, ty, exact=True)
    if ty.kind == "float" or of.kind == "bool":
        return cast(cx, x, ty)
    low, high = limits(ty)
    x = cx.hold(x)
    least, greatest = limits(of)
    if x.is_const:
        if not low <= x.const <= high:
            cx.check(fold.TRUE, "InexactError", f"{ty}({x.const})")
        return constant(fold.wrap(x.const, ty.numpy), ty)
    bad: Expr = fold.FALSE
    if least < low:
        bad = cx.op("lt", "bool", x.expr, Lit(low, of.numpy))
    if greatest > high:
        bad = cx.op("or", "bool", bad, cx.op("gt", "bool", x.expr, Lit(high, of.numpy)))
    cx.check(bad, "InexactError", f"{ty}({{0}})", (x.expr,))
    return cast(cx, x, ty)


def float_to_int(cx: Context, x: Scalar, ty: Prim, exact: bool) -> Scalar:
    """Convert a float that must lie in range and, where `exact`, be whole."""
    x = cx.hold(x)
    low, high = limits(ty)
    kind = x.type.numpy
    fits = cx.op("and", "bool",
                 cx.op("ge", "bool", x.expr, Lit(float(low), kind)),
                 cx.op("lt", "bool", x.expr, Lit(float(high + 1), kind)))  # fmt: skip
    if exact:
        fits = cx.op("and", "bool", fits, cx.op("eq", "bool", cx.op("trunc", kind, x.expr), x.expr))
    cx.check(cx.op("not", "bool", fits), "InexactError", f"{ty}({{0}})", (x.expr,))
    if ty.kind == "bool":
        return truth(cx.op("ne", "bool", x.expr, Lit(0.0, kind)))
    return cx.scalar("fptoint", ty, x.expr)


def zero_of(ty: Prim) -> Scalar:
    """Return `zero(ty)`."""
    return constant({"bool": False, "float": 0.0}.get(ty.kind, 0), ty)


def one_of(ty: Prim) -> Scalar:
    """Return `one(ty)`."""
    return constant({"bool": True, "float": 1.0}.get(ty.kind, 1), ty)


def real(cx: Context, value: Value, name: str) -> Scalar:
    """Return a real number as a scalar (an irrational as Float64)."""
    if isinstance(value, Irrational):
        return constant(value.value, FLOAT64)
    if isinstance(value, Scalar):
        return value
    no_method(cx, name, (value,))


def as_number(value: Value, other: Value | None = None) -> Number | None:
    """Return a number as scalar or complex; an irrational takes the precision of `other`."""
    if isinstance(value, Irrational):
        ty = FLOAT64
        if isinstance(other, (Scalar, Complex)):
            elem = other.type if isinstance(other, Scalar) else other.re.type
            ty = elem if elem.kind == "float" else FLOAT64
        return constant(fold.wrap(value.value, ty.numpy), ty)
    return value if isinstance(value, (Scalar, Complex)) else None


def floated(cx: Context, x: Scalar) -> Scalar:
    """Return `float(x)`."""
    return x if x.type.kind == "float" else cast(cx, x, FLOAT64)


def together(cx: Context, name: str, args: tuple[Value, ...]) -> list[Scalar]:
    """Promote real numbers to one type."""
    reals = [real(cx, a, name) for a in args]
    for a, value in zip(args, reals, strict=True):
        if isinstance(a, Irrational):
            others = [b.type for b in reals if b is not value and b.type.kind == "float"]
            if others:
                ty = others[0]
                reals[reals.index(value)] = constant(fold.wrap(a.value, ty.numpy), ty)
    ty = reals[0].type
    for x in reals[1:]:
        joined = promote(ty, x.type)
        if not isinstance(joined, Prim):
            no_method(cx, name, args)
        ty = joined
    return [cast(cx, x, ty) for x in reals]


# --- arithmetic ---

_OPS = {"+": "add", "-": "sub", "*": "mul"}


def arithmetic(cx: Context, name: str, a: Value, b: Value) -> Value:
    """`a + b`, `a - b` or `a * b` of two numbers."""
    x, y = as_number(a, b), as_number(b, a)
    if x is None or y is None:
        no_method(cx, name, (a, b))
    if isinstance(x, Scalar) and isinstance(y, Scalar):
        return _real_arithmetic(cx, name, x, y)
    if name == "*":
        return _complex_times(cx, x, y)
    zero = None
    if isinstance(x, Scalar) and isinstance(y, Complex):
        im = y.im if name == "+" else negate(cx, y.im)
        return _complex(cx, _real_arithmetic(cx, name, x, y.re), _widen(cx, im, x.type))
    if isinstance(x, Complex) and isinstance(y, Scalar):
        return _complex(cx, _real_arithmetic(cx, name, x.re, y), _widen(cx, x.im, y.type))
    assert isinstance(x, Complex) and isinstance(y, Complex) and zero is None
    return _complex(cx, _real_arithmetic(cx, name, x.re, y.re), _real_arithmetic(cx, name, x.im, y.im))


def _widen(cx: Context, x: Scalar, other: Prim) -> Scalar:
    ty = promote(x.type, other)
    assert isinstance(ty, Prim)
    return cast(cx, x, ty)


def _complex(cx: Context, re: Scalar, im: Scalar) -> Complex:
    ty = promote(re.type, im.type)
    assert isinstance(ty, Prim)
    return Complex(cast(cx, re, ty), cast(cx, im, ty))


def _complex_times(cx: Context, x: Number, y: Number) -> Value:
    if isinstance(x, Scalar):
        assert isinstance(y, Complex)
        return _complex(cx, _real_arithmetic(cx, "*", x, y.re), _real_arithmetic(cx, "*", x, y.im))
    if isinstance(y, Scalar):
        return _complex(cx, _real_arithmetic(cx, "*", x.re, y), _real_arithmetic(cx, "*", x.im, y))
    a, b, c, d = (cx.hold(v) for v in (x.re, x.im, y.re, y.im))

    def times(p: Scalar, q: Scalar) -> Scalar:
        return _real_arithmetic(cx, "*", p, q)

    return _complex(
        cx,
        _real_arithmetic(cx, "-", times(a, c), times(b, d)),
        _real_arithmetic(cx, "+", times(a, d), times(b, c)),
    )


def _real_arithmetic(cx: Context, name: str, x: Scalar, y: Scalar) -> Scalar:
    if name == "*" and (x.type.kind == "bool") != (y.type.kind == "bool"):
        flag, other = (x, y) if x.type.kind == "bool" else (y, x)
        if other.type.kind == "float":  # `false` is a strong zero: false * NaN is 0
            other = cx.hold(other)
            zero = cx.op("copysign", other.type.numpy, zero_of(other.type).expr, other.expr)
            return cx.scalar("select", other.type, flag.expr, other.expr, zero)
    ty = promote(x.type, y.type)
    if not isinstance(ty, Prim):
        no_method(cx, name, (x, y))
    if ty.kind == "bool":
        if name == "*":
            return cx.scalar("and", BOOL, x.expr, y.expr)
        ty = INT64
    return cx.scalar(_OPS[name], ty, cast(cx, x, ty).expr, cast(cx, y, ty).expr)


def negate(cx: Context, x: Scalar) -> Scalar:
    """Return `-x`."""
    if x.type.kind == "bool":
        x = cast(cx, x, INT64)
    return cx.scalar("neg", x.type, x.expr)


def divide(cx: Context, a: Value, b: Value) -> Value:
    """`a / b` of two numbers."""
    x, y = as_number(a, b), as_number(b, a)
    if x is None or y is None:
        no_method(cx, "/", (a, b))
    if isinstance(x, Scalar) and isinstance(y, Scalar):
        ty = promote(x.type, y.type)
        assert isinstance(ty, Prim)
        ty = ty if ty.kind == "float" else FLOAT64
        return cx.scalar("fdiv", ty, cast(cx, x, ty).expr, cast(cx, y, ty).expr)
    if isinstance(x, Complex) and isinstance(y, Scalar):
        re, im = divide(cx, x.re, y), divide(cx, x.im, y)
        assert isinstance(re, Scalar) and isinstance(im, Scalar)
        return Complex(re, im)
    assert isinstance(y, Complex)
    if isinstance(x, Scalar):
        return arithmetic(cx, "*", x, _complex_inverse(cx, y))
    return _complex_divide(cx, x, y)


def _complex_inverse(cx: Context, z: Complex) -> Complex:
    ty = z.re.type if z.re.type.kind == "float" else FLOAT64
    return _complex_divide(cx, Complex(one_of(ty), zero_of(ty)), Complex(cast(cx, z.re, ty), cast(cx, z.im, ty)))


def _complex_divide(cx: Context, z: Complex, w: Complex) -> Complex:
    """Smith's method, on the wider type for Float32, as Julia does (Smith, CACM 5 (1962) 435)."""
    ty = promote(promote(z.re.type, w.re.type) or FLOAT64, FLOAT32)
    assert isinstance(ty, Prim)
    a, b, c, d = (cx.hold(cast(cx, v, FLOAT64)).expr for v in (z.re, z.im, w.re, w.im))
    kind = "float64"

    def f(op: str, p: Expr, q: Expr) -> Expr:
        return cx.hold(as_scalar(FLOAT64, cx.op(op, kind, p, q))).expr

    swap = cx.hold(truth(cx.op("le", "bool", cx.op("abs", kind, c), cx.op("abs", kind, d)))).expr

    def pick(p: Expr, q: Expr) -> Expr:
        return cx.hold(as_scalar(FLOAT64, cx.op("select", kind, swap, p, q))).expr

    big, small = pick(d, c), pick(c, d)
    r = f("fdiv", small, big)
    den = f("add", big, f("mul", r, small))
    re = f("fdiv", pick(f("add", f("mul", a, r), b), f("add", a, f("mul", b, r))), den)
    im = f("fdiv", pick(f("sub", f("mul", b, r), a), f("sub", b, f("mul", a, r))), den)
    return Complex(cast(cx, Scalar(FLOAT64, re), ty), cast(cx, Scalar(FLOAT64, im), ty))


def integer_division(cx: Context, name: str, a: Value, b: Value) -> Scalar:
    """`div`, `rem`, `mod`, `fld`, `cld` of two real numbers."""
    x, y = together(cx, name, (a, b))
    ty = x.type
    if ty.kind == "float":
        return cx.scalar({"div": "fdivtrunc", "fld": "fdivfloor", "cld": "fdivceil", "rem": "frem", "mod": "fmod"}[name],
                         ty, x.expr, y.expr)  # fmt: skip
    if ty.kind == "bool":
        x, y, ty = cast(cx, x, INT64), cast(cx, y, INT64), INT64
    x, y = cx.hold(x), cx.hold(y)
    if not y.is_const or y.const == 0:
        cx.check(cx.op("eq", "bool", y.expr, zero_of(ty).expr), "DivideError", "integer division by zero")
    if ty.kind == "int" and name in ("div", "fld", "cld") and (not y.is_const or y.const == -1):
        overflow = cx.op("and", "bool", cx.op("eq", "bool", y.expr, Lit(-1, ty.numpy)),
                         cx.op("eq", "bool", x.expr, Lit(limits(ty)[0], ty.numpy)))  # fmt: skip
        cx.check(overflow, "DivideError", f"{ty} division overflow: {{0}} ÷ -1", (x.expr,))
    return cx.scalar(name, ty, x.expr, y.expr)


# --- comparison ---


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
    exact = x.type.bits < (32 if y.type == FLOAT32 else 64) and not (x.type.bits == 32 and y.type == FLOAT32)
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


@builtin("isless")
def _isless(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isless", args, 2)
    x, y = together(cx, "isless", args)
    if x.type.kind == "float":
        return truth(cx.op("isless", "bool", x.expr, y.expr))
    return compare(cx, "lt", x, y)


@builtin("isequal")
def _isequal(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isequal", args, 2)
    x, y = together(cx, "isequal", args)
    if x.type.kind == "float":
        both = cx.op("and", "bool", cx.op("ne", "bool", x.expr, x.expr), cx.op("ne", "bool", y.expr, y.expr))
        return truth(cx.op("or", "bool", both, cx.op("egal", "bool", x.expr, y.expr)))
    return compare(cx, "eq", x, y)


# --- division and its relatives ---


def _division(names: str, op: str) -> None:
    @builtin(*names.split())
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, names.split()[0], args, 2)
        if op == "rem" and isinstance(args[1], TypeValue):
            return truncated(cx, args[0], args[1].type)
        return integer_division(cx, op, *args)


for _names, _op in (("div ÷", "div"), ("rem %", "rem"), ("mod", "mod"), ("fld", "fld"), ("cld", "cld")):
    _division(_names, _op)


def truncated(cx: Context, value: Value, ty: Any) -> Scalar:
    """`x % T` for an integer type: the low bits."""
    if not isinstance(value, Scalar) or not isinstance(ty, Prim) or "float" in (value.type.kind, ty.kind):
        no_method(cx, "%", (value, TypeValue(ty)))
    if ty.kind == "bool":
        low = cx.op("and", value.type.numpy, value.expr, one_of(value.type).expr)
        return truth(cx.op("ne", "bool", low, zero_of(value.type).expr))
    return cast(cx, value, ty)


@builtin("mod1")
def _mod1(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "mod1", args, 2)
    x, y = (cx.hold(v) for v in together(cx, "mod1", args))
    m = cx.hold(integer_division(cx, "mod", x, y))
    return cx.scalar(
        "select", m.type, cx.op("eq", "bool", m.expr, zero_of(m.type).expr), cast(cx, y, m.type).expr, m.expr
    )


@builtin("fld1")
def _fld1(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "fld1", args, 2)
    x, y = (cx.hold(v) for v in together(cx, "fld1", args))
    d = cx.hold(integer_division(cx, "fld", x, y))
    if d.type.kind == "float":
        return integer_division(cx, "cld", x, y)
    back = arithmetic(cx, "*", d, y)
    assert isinstance(back, Scalar)
    uneven = cx.op("ne", "bool", back.expr, cast(cx, x, d.type).expr)
    return cx.scalar("add", d.type, d.expr, cx.op("cast", d.type.numpy, uneven))


@builtin("fldmod1")
def _fldmod1(cx: Context, args: tuple[Value, ...]) -> Value:
    return Tuple((_fld1(cx, args), _mod1(cx, args)))


@builtin("divrem")
def _divrem(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "divrem", args, 2)
    return Tuple((integer_division(cx, "div", *args), integer_division(cx, "rem", *args)))


@builtin("fldmod")
def _fldmod(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "fldmod", args, 2)
    return Tuple((integer_division(cx, "fld", *args), integer_division(cx, "mod", *args)))


@builtin("inv")
def _inv(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "inv", args, 1)
    x = as_number(args[0])
    if isinstance(x, Complex):
        return _complex_inverse(cx, x)
    if not isinstance(x, Scalar):
        no_method(cx, "inv", args)
    return divide(cx, one_of(x.type), x)


# --- powers ---


def power(cx: Context, a: Value, b: Value, literal: bool) -> Value:
    """`a ^ b`; with a literal integer exponent as Julia's `literal_pow` has it."""
    x, y = as_number(a), as_number(b, a)
    if x is None or not isinstance(y, Scalar):
        no_method(cx, "^", (a, b))
    if literal and y.is_const and y.type.kind == "int":
        if y.const in (0, 1, 2, 3):
            return _repeat(cx, x, int(y.const))
        if y.const in (-1, -2):
            base = _inv(cx, (x,))
            return base if y.const == -1 else arithmetic(cx, "*", *(cx.hold_all(base),) * 2)
    if isinstance(x, Complex):
        if y.is_const and y.type.kind == "int" and abs(y.const) <= 64:
            z = _repeat(cx, x, abs(int(y.const)))
            return z if y.const >= 0 else _inv(cx, (z,))
        no_method(cx, "^", (a, b))
    if x.type.kind != "float" and y.type.kind != "float":
        if x.type.kind == "bool":
            x = cast(cx, x, INT64)
        if y.type.kind == "int":
            unit = cx.op("or", "bool", cx.op("eq", "bool", x.expr, one_of(x.type).expr),
                         cx.op("eq", "bool", x.expr, cx.op("neg", x.type.numpy, one_of(x.type).expr)))  # fmt: skip
            negative = cx.op("lt", "bool", y.expr, zero_of(y.type).expr)
            cx.check(cx.op("and", "bool", negative, cx.op("not", "bool", unit)), "DomainError",
                     "{0} ^ {1}: an integer to a negative power; make the base a float", (x.expr, y.expr))  # fmt: skip
        return cx.scalar("ipow", x.type, x.expr, cast(cx, y, INT64).expr)
    if y.type.kind != "float":
        ty = x.type
        if y.is_const and abs(y.const) == 1 << 20:
            no_method(cx, "^", (a, b))
        wide = cx.op("pow", "float64", cast(cx, x, FLOAT64).expr, cast(cx, y, FLOAT64).expr)
        return cast(cx, as_scalar(FLOAT64, wide), ty)
    x, y = (cx.hold(v) for v in together(cx, "^", (x, y)))
    whole = cx.op("eq", "bool", cx.op("trunc", y.type.numpy, y.expr), y.expr)
    bad = cx.op("and", "bool", cx.op("lt", "bool", x.expr, zero_of(x.type).expr), cx.op("not", "bool", whole))
    cx.check(bad, "DomainError", "a negative number to a fractional power", soft=True)
    return cx.scalar("pow", x.type, x.expr, y.expr)


def _repeat(cx: Context, x: Number, n: int) -> Value:
    if n == 0:
        ty = x.type if isinstance(x, Scalar) else x.re.type
        one = one_of(ty)
        return one if isinstance(x, Scalar) else Complex(one, zero_of(ty))
    if isinstance(x, Scalar) and x.type.kind == "bool":
        return x
    held = cx.hold_all(x)
    result: Value = held
    for _ in range(n - 1):
        result = arithmetic(cx, "*", result, held)
    return result


# --- extremes, selection, fused ---


def _extreme(name: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        if len(args) == 1 and number(args[0]):
            return args[0]
        if len(args) < 2:
            no_method(cx, name, args)
        values = together(cx, name, args)
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
    x, low, high = (cx.hold(v) for v in together(cx, "clamp", args))
    inner = cx.op("select", x.type.numpy, cx.op("lt", "bool", x.expr, low.expr), low.expr, x.expr)
    return cx.scalar("select", x.type, cx.op("gt", "bool", x.expr, high.expr), high.expr, inner)


def _three(name: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 3)
        if any(isinstance(a, Complex) for a in args):
            return arithmetic(cx, "+", arithmetic(cx, "*", args[0], args[1]), args[2])
        x, y, z = together(cx, name, args)
        if x.type.kind != "float":
            return arithmetic(cx, "+", arithmetic(cx, "*", x, y), z)
        return cx.scalar(name, x.type, x.expr, y.expr, z.expr)


_three("muladd")
_three("fma")


# --- bits ---


def _bitwise(names: str, op: str) -> None:
    @builtin(*names.split())
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        if len(args) < 2:
            no_method(cx, names.split()[0], args)
        values = together(cx, names.split()[0], args)
        if values[0].type.kind == "float":
            no_method(cx, names.split()[0], args)
        result = values[0].expr
        for value in values[1:]:
            result = cx.op(op, value.type.numpy, result, value.expr)
        return as_scalar(values[0].type, result)


for _names, _op in (("&", "and"), ("|", "or"), ("⊻ xor", "xor")):
    _bitwise(_names, _op)


@builtin("⊼", "nand")
def _nand(cx: Context, args: tuple[Value, ...]) -> Value:
    return _not(cx, (BUILTINS["&"](cx, args),))


@builtin("⊽", "nor")
def _nor(cx: Context, args: tuple[Value, ...]) -> Value:
    return _not(cx, (BUILTINS["|"](cx, args),))


@builtin("~")
def _not(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "~", args, 1)
    x = args[0]
    if not isinstance(x, Scalar) or x.type.kind == "float":
        no_method(cx, "~", args)
    return cx.scalar("not", x.type, x.expr)


@builtin("!")
def _logical_not(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "!", args, 1)
    x = args[0]
    if not isinstance(x, Scalar) or x.type != BOOL:
        no_method(cx, "!", args)
    return truth(cx.op("not", "bool", x.expr))


def _shift(name: str, op: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 2)
        x, n = args
        if not isinstance(x, Scalar) or not isinstance(n, Scalar) or "float" in (x.type.kind, n.type.kind):
            no_method(cx, name, args)
        if x.type.kind == "bool":
            x = cast(cx, x, INT64)
        if n.type.kind == "int" and not (n.is_const and n.const >= 0):
            return cx.scalar(f"{op}_any", x.type, x.expr, cast(cx, n, INT64).expr)
        return cx.scalar(op, x.type, x.expr, cast(cx, n, UINT64).expr)


for _name, _op in (("<<", "shl"), (">>", "shr"), (">>>", "ushr")):
    _shift(_name, _op)


def _count(name: str, op: str, invert: bool = False) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 1)
        x = args[0]
        if not isinstance(x, Scalar) or x.type.kind == "float":
            no_method(cx, name, args)
        expr = cx.op("not", x.type.numpy, x.expr) if invert else x.expr
        return cast(cx, as_scalar(x.type, cx.op(op, x.type.numpy, expr)), INT64)


for _name, _op, _inv_ in (("count_ones", "ctpop", False), ("count_zeros", "ctpop", True), ("leading_zeros", "ctlz", False),
                          ("trailing_zeros", "cttz", False), ("leading_ones", "ctlz", True),
                          ("trailing_ones", "cttz", True)):  # fmt: skip
    _count(_name, _op, _inv_)


# --- functions of one number ---

#: The functions that the C library or LLVM computes, with the test for arguments outside their domain.
_DOMAINS: dict[str, str] = {
    "sqrt": "negative", "log": "negative", "log2": "negative", "log10": "negative", "log1p": "below -1",
    "asin": "beyond 1", "acos": "beyond 1", "acosh": "below 1", "atanh": "beyond 1", "sin": "infinite",
    "cos": "infinite", "tan": "infinite",
}  # fmt: skip
_UNARY = ("sqrt", "cbrt", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin",
          "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")  # fmt: skip


def _outside(cx: Context, rule: str, x: Scalar) -> Expr:
    kind = x.type.numpy
    if rule == "negative":
        return cx.op("lt", "bool", x.expr, Lit(0.0, kind))
    if rule == "below -1":
        return cx.op("lt", "bool", x.expr, Lit(-1.0, kind))
    if rule == "below 1":
        return cx.op("lt", "bool", x.expr, Lit(1.0, kind))
    size = cx.op("abs", kind, x.expr)
    if rule == "beyond 1":
        return cx.op("gt", "bool", size, Lit(1.0, kind))
    return cx.op("eq", "bool", size, Lit(math.inf, kind))


def unary(cx: Context, name: str, x: Scalar) -> Scalar:
    """Apply a mathematical function of one real number."""
    x = cx.hold(floated(cx, x))
    if name in _DOMAINS:
        cx.check(
            _outside(cx, _DOMAINS[name], x), "DomainError", f"an argument of {name} is {_DOMAINS[name]}", soft=True
        )
    return cx.scalar(name, x.type, x.expr)


def _unary(name: str) -> None:
    aliases = (name, "√") if name == "sqrt" else (name, "∛") if name == "cbrt" else (name,)

    @builtin(*aliases)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        if name == "atan" and len(args) == 2:
            y, x = (floated(cx, v) for v in together(cx, "atan", args))
            return cx.scalar("atan2", y.type, y.expr, x.expr)
        if name == "log" and len(args) == 2:
            return divide(cx, unary(cx, "log", real(cx, args[1], name)), unary(cx, "log", real(cx, args[0], name)))
        arity(cx, name, args, 1)
        if isinstance(args[0], Complex):
            return _complex_unary(cx, name, args[0])
        return unary(cx, name, real(cx, args[0], name))


for _name in _UNARY:
    _unary(_name)


def _complex_unary(cx: Context, name: str, z: Complex) -> Value:
    if name == "exp":
        re = cx.hold(floated(cx, z.re))
        im = cx.hold(floated(cx, z.im))
        size = cx.hold(unary(cx, "exp", re))
        cos, sin = unary(cx, "cos", im), unary(cx, "sin", im)
        return _complex_times(cx, size, Complex(cos, sin))
    no_method(cx, name, (z,))


@builtin("sincos")
def _sincos(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "sincos", args, 1)
    x = cx.hold(real(cx, args[0], "sincos"))
    return Tuple((unary(cx, "sin", x), unary(cx, "cos", x)))


def _pi_scaled(name: str, inner: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 1)
        x = floated(cx, real(cx, args[0], name))
        return cx.scalar(name, x.type, x.expr)


_pi_scaled("sinpi", "sin")
_pi_scaled("cospi", "cos")


@builtin("cis")
def _cis(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "cis", args, 1)
    x = cx.hold(real(cx, args[0], "cis"))
    return Complex(unary(cx, "cos", x), unary(cx, "sin", x))


@builtin("hypot")
def _hypot(cx: Context, args: tuple[Value, ...]) -> Value:
    if len(args) == 3:
        return _hypot(cx, (_hypot(cx, args[:2]), args[2]))
    arity(cx, "hypot", args, 2)
    x, y = (floated(cx, v) for v in together(cx, "hypot", args))
    return cx.scalar("hypot", x.type, x.expr, y.expr)


@builtin("deg2rad")
def _deg2rad(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "deg2rad", args, 1)
    x = floated(cx, real(cx, args[0], "deg2rad"))
    return arithmetic(cx, "*", x, constant(fold.wrap(math.pi / 180, x.type.numpy), x.type))


@builtin("rad2deg")
def _rad2deg(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "rad2deg", args, 1)
    x = floated(cx, real(cx, args[0], "rad2deg"))
    return arithmetic(cx, "*", x, constant(fold.wrap(180 / math.pi, x.type.numpy), x.type))


@builtin("abs")
def _abs(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "abs", args, 1)
    x = as_number(args[0])
    if isinstance(x, Complex):
        return _hypot(cx, (x.re, x.im))
    if not isinstance(x, Scalar):
        no_method(cx, "abs", args)
    return x if x.type.kind in ("bool", "uint") else cx.scalar("abs", x.type, x.expr)


@builtin("abs2")
def _abs2(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "abs2", args, 1)
    x = as_number(args[0])
    if isinstance(x, Complex):
        re, im = cx.hold(x.re), cx.hold(x.im)
        return arithmetic(cx, "+", arithmetic(cx, "*", re, re), arithmetic(cx, "*", im, im))
    if not isinstance(x, Scalar):
        no_method(cx, "abs2", args)
    return _repeat(cx, x, 2)


@builtin("sign")
def _sign(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "sign", args, 1)
    x = args[0]
    if not isinstance(x, Scalar):
        no_method(cx, "sign", args)
    if x.type.kind == "bool":
        return x
    x = cx.hold(x)
    zero, one = zero_of(x.type).expr, one_of(x.type).expr
    positive = cx.op("gt", "bool", x.expr, zero)
    if x.type.kind == "uint":
        return cx.scalar("select", x.type, positive, one, zero)
    negative = cx.op("select", x.type.numpy, cx.op("lt", "bool", x.expr, zero), cx.op("neg", x.type.numpy, one), x.expr)
    return cx.scalar("select", x.type, positive, one, negative)


@builtin("signbit")
def _signbit(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "signbit", args, 1)
    x = real(cx, args[0], "signbit")
    if x.type.kind == "float":
        return truth(cx.op("signbit", "bool", x.expr))
    return truth(cx.op("lt", "bool", x.expr, zero_of(x.type).expr))


@builtin("copysign", "flipsign")
def _copysign(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "copysign", args, 2)
    x, y = together(cx, "copysign", args)
    if x.type.kind != "float":
        no_method(cx, "copysign", args)
    return cx.scalar("copysign", x.type, x.expr, y.expr)


_ROUND = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint"}


def _rounding(name: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        ty: Any = None
        if args and isinstance(args[0], TypeValue):
            ty, args = args[0].type, args[1:]
        if name == "round" and len(args) == 2:
            cx.unsupported("`round` with a rounding mode", "use floor, ceil or trunc")
        arity(cx, name, args, 1)
        x = real(cx, args[0], name)
        if x.type.kind == "float":
            x = cx.scalar(_ROUND[name], x.type, x.expr)
        if ty is None:
            return x
        if not isinstance(ty, Prim):
            no_method(cx, name, (TypeValue(ty), x))
        return (
            float_to_int(cx, x, ty, exact=False)
            if x.type.kind == "float" and ty.kind != "float"
            else to_prim(cx, x, ty)
        )


for _name in _ROUND:
    _rounding(_name)


@builtin("unsafe_trunc")
def _unsafe_trunc(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "unsafe_trunc", args, 2)
    ty, x = args
    if not isinstance(ty, TypeValue) or not isinstance(ty.type, Prim) or not isinstance(x, Scalar):
        no_method(cx, "unsafe_trunc", args)
    return cx.scalar("fptoint", ty.type, x.expr) if x.type.kind == "float" else cast(cx, x, ty.type)


# --- tests ---


@builtin("isnan")
def _isnan(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isnan", args, 1)
    if isinstance(args[0], Complex):
        parts = [_isnan(cx, (p,)) for p in (args[0].re, args[0].im)]
        return truth(cx.op("or", "bool", *(p.expr for p in parts if isinstance(p, Scalar))))
    x = cx.hold(real(cx, args[0], "isnan"))
    return truth(cx.op("ne", "bool", x.expr, x.expr)) if x.type.kind == "float" else constant(False, BOOL)


@builtin("isinf")
def _isinf(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isinf", args, 1)
    x = real(cx, args[0], "isinf")
    return truth(_outside(cx, "infinite", x)) if x.type.kind == "float" else constant(False, BOOL)


@builtin("isfinite")
def _isfinite(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isfinite", args, 1)
    x = real(cx, args[0], "isfinite")
    if x.type.kind != "float":
        return constant(True, BOOL)
    return truth(cx.op("lt", "bool", cx.op("abs", x.type.numpy, x.expr), Lit(math.inf, x.type.numpy)))


@builtin("iszero")
def _iszero(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "iszero", args, 1)
    return equal(cx, args[0], int64(0))


@builtin("isone")
def _isone(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "isone", args, 1)
    return equal(cx, args[0], int64(1))


def _parity(name: str, op: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 1)
        x = args[0]
        if not isinstance(x, Scalar) or x.type.kind == "float":
            no_method(cx, name, args)
        low = cx.op("and", x.type.numpy, x.expr, one_of(x.type).expr)
        return truth(cx.op(op, "bool", low, zero_of(x.type).expr))


_parity("iseven", "eq")
_parity("isodd", "ne")


@builtin("ispow2")
def _ispow2(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "ispow2", args, 1)
    x = args[0]
    if not isinstance(x, Scalar) or x.type.kind not in ("int", "uint"):
        no_method(cx, "ispow2", args)
    ones = cx.op("eq", "bool", cx.op("ctpop", x.type.numpy, x.expr), one_of(x.type).expr)
    return truth(cx.op("and", "bool", cx.op("gt", "bool", x.expr, zero_of(x.type).expr), ones))


# --- complex parts ---


@builtin("real")
def _real(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "real", args, 1)
    if isinstance(args[0], TypeValue):
        return TypeValue(args[0].type.elem if isinstance(args[0].type, ComplexT) else args[0].type)
    return args[0].re if isinstance(args[0], Complex) else args[0]


@builtin("imag")
def _imag(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "imag", args, 1)
    x = args[0]
    return x.im if isinstance(x, Complex) else zero_of(real(cx, x, "imag").type)


@builtin("reim")
def _reim(cx: Context, args: tuple[Value, ...]) -> Value:
    return Tuple((_real(cx, args), _imag(cx, args)))


@builtin("conj")
def _conj(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "conj", args, 1)
    x = args[0]
    return Complex(x.re, negate(cx, x.im)) if isinstance(x, Complex) else x


@builtin("angle")
def _angle(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "angle", args, 1)
    return BUILTINS["atan"](cx, (_imag(cx, args), _real(cx, args)))


@builtin("complex")
def _complex_of(cx: Context, args: tuple[Value, ...]) -> Value:
    if len(args) == 1 and isinstance(args[0], Complex):
        return args[0]
    if len(args) == 1:
        x = real(cx, args[0], "complex")
        return Complex(x, zero_of(x.type))
    arity(cx, "complex", args, 2)
    x, y = together(cx, "complex", args)
    return Complex(x, y)


# --- reinterpretation and limits ---


@builtin("reinterpret")
def _reinterpret(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "reinterpret", args, 2)
    ty, x = args
    if not isinstance(ty, TypeValue) or not isinstance(ty.type, Prim) or not isinstance(x, Scalar):
        no_method(cx, "reinterpret", args)
    if ty.type.bits != x.type.bits or BOOL in (ty.type, x.type):
        cx.unsupported(f"reinterpret of {x.type} as {ty.type}", "both need the same size")
    return x if ty.type == x.type else cx.scalar("bitcast", ty.type, x.expr)


def prim_of(cx: Context, value: Value, name: str) -> Any:
    """Return the number type that a type or a number stands for."""
    ty = value.type if isinstance(value, TypeValue) else type_of(value)
    if isinstance(value, Irrational):
        ty = FLOAT64
    if not isinstance(ty, (Prim, ComplexT)):
        no_method(cx, name, (value,))
    return ty


def _limit(name: str, low: bool) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        arity(cx, name, args, 1)
        ty = prim_of(cx, args[0], name)
        if not isinstance(ty, Prim):
            no_method(cx, name, args)
        if ty.kind == "float":
            return constant(-math.inf if low else math.inf, ty)
        value = limits(ty)[0 if low else 1]
        return constant(bool(value) if ty == BOOL else value, ty)


_limit("typemin", True)
_limit("typemax", False)


@builtin("eps")
def _eps(cx: Context, args: tuple[Value, ...]) -> Value:
    ty = prim_of(cx, args[0], "eps") if args else FLOAT64
    if args and not isinstance(args[0], TypeValue):
        cx.unsupported("`eps` of a value", "use eps(T)")
    return constant({"float32": 2.0**-23, "float64": 2.0**-52}[ty.numpy], ty)


@builtin("floatmax")
def _floatmax(cx: Context, args: tuple[Value, ...]) -> Value:
    import numpy as np

    ty = prim_of(cx, args[0], "floatmax") if args else FLOAT64
    return constant(float(np.finfo(ty.numpy).max), ty)


@builtin("floatmin")
def _floatmin(cx: Context, args: tuple[Value, ...]) -> Value:
    import numpy as np

    ty = prim_of(cx, args[0], "floatmin") if args else FLOAT64
    return constant(float(np.finfo(ty.numpy).tiny), ty)


def zero_like(cx: Context, value: Value, name: str, unit: bool) -> Value:
    """`zero(x)` or `one(x)` of a number or number type."""
    ty = prim_of(cx, value, name)
    make = one_of if unit else zero_of
    return Complex(make(ty.elem), zero_of(ty.elem)) if isinstance(ty, ComplexT) else make(ty)


@builtin("signed")
def _signed(cx: Context, args: tuple[Value, ...]) -> Value:
    from jlkern.engines.numba.lower.types import INTS

    arity(cx, "signed", args, 1)
    ty = prim_of(cx, args[0], "signed")
    target = next(t for t in INTS if t.bits == ty.bits)
    return TypeValue(target) if isinstance(args[0], TypeValue) else cast(cx, real(cx, args[0], "signed"), target)


@builtin("unsigned")
def _unsigned(cx: Context, args: tuple[Value, ...]) -> Value:
    from jlkern.engines.numba.lower.types import UINTS

    arity(cx, "unsigned", args, 1)
    ty = prim_of(cx, args[0], "unsigned")
    target = next(t for t in UINTS if t.bits == ty.bits)
    return TypeValue(target) if isinstance(args[0], TypeValue) else cast(cx, real(cx, args[0], "unsigned"), target)


@builtin("float")
def _float(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "float", args, 1)
    x = args[0]
    if isinstance(x, TypeValue):
        ty = x.type
        inner = ty.elem if isinstance(ty, ComplexT) else ty
        inner = inner if inner.kind == "float" else FLOAT64
        return TypeValue(ComplexT(inner) if isinstance(ty, ComplexT) else inner)
    if isinstance(x, Complex):
        return Complex(floated(cx, x.re), floated(cx, x.im))
    return floated(cx, real(cx, x, "float"))


@builtin("widen")
def _widen_fn(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "widen", args, 1)
    ty = prim_of(cx, args[0], "widen")
    wider = {"Float32": FLOAT64, "Int8": "Int16", "Int16": INT32, "Int32": INT64, "UInt32": UINT64}.get(str(ty))
    if not isinstance(wider, Prim):
        cx.unsupported(f"`widen` of {ty}")
    return TypeValue(wider) if isinstance(args[0], TypeValue) else convert(cx, args[0], wider)
