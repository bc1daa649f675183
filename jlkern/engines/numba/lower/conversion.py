"""Conversion and promotion of numbers, by the rules of Julia's manual ("Conversion and Promotion")."""

from __future__ import annotations

from typing import Any

from jlkern.engines.numba.lower import fold
from jlkern.engines.numba.lower.context import Context, truth
from jlkern.engines.numba.lower.registry import no_method
from jlkern.engines.numba.lower.simt import Expr, Lit
from jlkern.engines.numba.lower.types import FLOAT16, FLOAT64, ComplexT, Prim, promote
from jlkern.engines.numba.lower.values import (
    Complex,
    Irrational,
    Scalar,
    TypeValue,
    Value,
    constant,
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


def known(cx: Context, ty: Any) -> None:
    """Refuse numbers of a type that this engine does not have."""
    if ty in (FLOAT16, ComplexT(FLOAT16)):
        cx.unsupported(f"a number of type {ty}", "the numba engine has Float32 and Float64")


def cast(cx: Context, x: Scalar, ty: Prim) -> Scalar:
    """Convert without a check, as promotion does where it cannot lose anything but precision."""
    known(cx, ty)
    if ty.kind == "bool" and x.type != ty:
        return truth(cx.op("ne", "bool", x.expr, zero_of(x.type).expr))
    return x if x.type == ty else cx.scalar("cast", ty, x.expr)


def convert(cx: Context, value: Value, ty: Any) -> Value:
    """`convert(ty, value)` for numbers; throws InexactError at run time where Julia does."""
    known(cx, ty)
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


def together(cx: Context, name: str, args: tuple[Value, ...], exact: bool = False) -> list[Scalar]:
    """Promote real numbers to one type; where `exact`, a negative number does not become unsigned, as in `promote`."""
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
    return [to_prim(cx, x, ty) if exact else cast(cx, x, ty) for x in reals]


def truncated(cx: Context, value: Value, ty: Any) -> Scalar:
    """`x % T` for an integer type: the low bits."""
    if not isinstance(value, Scalar) or not isinstance(ty, Prim) or "float" in (value.type.kind, ty.kind):
        no_method(cx, "%", (value, TypeValue(ty)))
    if ty.kind == "bool":
        low = cx.op("and", value.type.numpy, value.expr, one_of(value.type).expr)
        return truth(cx.op("ne", "bool", low, zero_of(value.type).expr))
    return cast(cx, value, ty)


def prim_of(cx: Context, value: Value, name: str) -> Any:
    """Return the number type that a type or a number stands for."""
    ty = value.type if isinstance(value, TypeValue) else type_of(value)
    if isinstance(value, Irrational):
        ty = FLOAT64
    if not isinstance(ty, (Prim, ComplexT)):
        no_method(cx, name, (value,))
    if name not in ("float", "widen"):
        known(cx, ty)
    return ty


def zero_like(cx: Context, value: Value, name: str, unit: bool) -> Value:
    """`zero(x)` or `one(x)` of a number or number type."""
    ty = prim_of(cx, value, name)
    make = one_of if unit else zero_of
    return Complex(make(ty.elem), zero_of(ty.elem)) if isinstance(ty, ComplexT) else make(ty)
