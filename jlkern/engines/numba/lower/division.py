"""Integer division and its relatives: `div`, `rem`, `mod`, `fld`, `cld`, and those that start from 1."""

from __future__ import annotations

from jlkern.engines.numba.lower.arithmetic import arithmetic
from jlkern.engines.numba.lower.context import Context, truth
from jlkern.engines.numba.lower.conversion import cast, limits, real, together, truncated, zero_of
from jlkern.engines.numba.lower.prelude import call_prelude
from jlkern.engines.numba.lower.registry import arity, builtin, no_method
from jlkern.engines.numba.lower.simt import Expr, Lit
from jlkern.engines.numba.lower.types import BOOL, INTS, UINTS, Prim, promote
from jlkern.engines.numba.lower.values import Function, Irrational, Scalar, Tuple, TypeValue, Value, constant

_FLOAT = {"div": "fdivtrunc", "fld": "fdivfloor", "cld": "fdivceil", "rem": "frem", "mod": "fmod"}

#: The rounding modes, as names that have no other use; `rounding` tells which one a value is.
MODES = ("RoundNearest", "RoundToZero", "RoundUp", "RoundDown", "RoundNearestTiesAway", "RoundNearestTiesUp")
_TOWARDS = {"RoundToZero": "div", "RoundUp": "cld", "RoundDown": "fld"}


def rounding_mode(value: Value) -> str | None:
    """Return the name of a rounding mode, None for any other value."""
    return value.name if isinstance(value, Function) and value.name in MODES else None


def _mode(name: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        cx.unsupported(f"`{name}` as a function")


for _name in MODES:
    _mode(_name)


def integer_division(cx: Context, name: str, a: Value, b: Value) -> Scalar:
    """`div`, `rem`, `mod`, `fld`, `cld` of two real numbers."""
    if isinstance(a, Irrational) or isinstance(b, Irrational):
        a, b = together(cx, name, (a, b))
    x, y = real(cx, a, name), real(cx, b, name)
    kinds = {x.type.kind, y.type.kind}
    if kinds == {"bool"}:
        cx.check(cx.op("not", "bool", y.expr), "DivideError", "integer division by zero")
        return x if name in ("div", "fld", "cld") else constant(False, BOOL)
    if kinds == {"int", "uint"}:
        return _mixed(cx, name, x, y)
    x, y = (cx.hold(v) for v in together(cx, name, (x, y)))
    ty = x.type
    if ty.kind == "float":
        return cx.scalar(_FLOAT[name], ty, x.expr, y.expr)
    _not_zero(cx, y)
    if ty.kind == "int" and name in ("div", "fld", "cld") and (not y.is_const or y.const == -1):
        overflow = cx.op("and", "bool", cx.op("eq", "bool", y.expr, Lit(-1, ty.numpy)),
                         cx.op("eq", "bool", x.expr, Lit(limits(ty)[0], ty.numpy)))  # fmt: skip
        cx.check(overflow, "DivideError", f"{ty} division overflow: {{0}} ÷ -1", (x.expr,))
    return cx.scalar(name, ty, x.expr, y.expr)


def _not_zero(cx: Context, y: Scalar) -> None:
    if not y.is_const or y.const == 0:
        cx.check(cx.op("eq", "bool", y.expr, zero_of(y.type).expr), "DivideError", "integer division by zero")


def _below_zero(cx: Context, x: Scalar) -> Expr:
    return cx.op("lt", "bool", x.expr, zero_of(x.type).expr)


def _magnitude(cx: Context, x: Scalar, ty: Prim) -> Scalar:
    """The absolute value as an unsigned number: that of the least integer fits."""
    if x.type.kind == "int":
        x = cast(cx, cx.scalar("abs", x.type, x.expr), next(t for t in UINTS if t.bits == x.type.bits))
    return cx.hold(cast(cx, x, ty))


def _mixed(cx: Context, name: str, x: Scalar, y: Scalar) -> Scalar:
    """A signed and an unsigned number: magnitudes are divided, and the type is that of `x`, or of `y` for `mod`."""
    x, y = cx.hold(x), cx.hold(y)
    _not_zero(cx, y)
    joined = promote(x.type, y.type)
    assert isinstance(joined, Prim)
    unsigned = next(t for t in UINTS if t.bits == joined.bits)
    signed = next(t for t in INTS if t.bits == joined.bits)
    u, v = _magnitude(cx, x, unsigned), _magnitude(cx, y, unsigned)
    signed_one = x if x.type.kind == "int" else y
    negative = _below_zero(cx, signed_one)
    remainder = cx.hold(cx.scalar("rem", unsigned, u.expr, v.expr))
    uneven = cx.op("ne", "bool", remainder.expr, zero_of(unsigned).expr)
    result = unsigned if x.type.kind == "uint" else signed
    if name == "rem":
        return _signed_as(cx, remainder, result, negative) if result is signed else remainder
    if name == "mod":
        other = cx.scalar("sub", unsigned, remainder.expr, v.expr)  # below zero: for a negative y
        if result is signed:
            other, result = cx.scalar("neg", unsigned, other.expr), unsigned
        else:
            result = signed
        back = cx.op("and", "bool", negative, uneven)
        return cx.scalar("select", result, back, cast(cx, other, result).expr, cast(cx, remainder, result).expr)
    quotient = cx.hold(_signed_as(cx, cx.scalar("div", unsigned, u.expr, v.expr), result, negative))
    if name == "div":
        return quotient
    moved = cx.op("and", "bool", uneven, negative if name == "fld" else cx.op("not", "bool", negative))
    return cx.scalar("sub" if name == "fld" else "add", result, quotient.expr, cx.op("cast", result.numpy, moved))


def _signed_as(cx: Context, x: Scalar, ty: Prim, negative: Expr) -> Scalar:
    x = cx.hold(cast(cx, x, ty))
    return cx.scalar("select", ty, negative, cx.op("neg", ty.numpy, x.expr), x.expr)


def _division(names: str, op: str) -> None:
    @builtin(*names.split())
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        name = names.split()[0]
        arity(cx, name, args, 2, 3 if op == "div" else 2)
        if op == "rem" and isinstance(args[1], TypeValue):
            return truncated(cx, args[0], args[1].type)
        if len(args) == 3:
            return _towards(cx, args)
        return integer_division(cx, op, *args)


for _names, _op in (("div ÷", "div"), ("rem %", "rem"), ("mod", "mod"), ("fld", "fld"), ("cld", "cld")):
    _division(_names, _op)


def _towards(cx: Context, args: tuple[Value, ...]) -> Scalar:
    """`div(x, y, r)`."""
    mode = rounding_mode(args[2])
    if mode is None:
        no_method(cx, "div", args)
    if mode in _TOWARDS:
        return integer_division(cx, _TOWARDS[mode], *args[:2])
    x, y = (cx.hold(v) for v in together(cx, "div", args[:2]))
    if x.type.kind == "float":
        if mode != "RoundNearest":
            no_method(cx, "div", args)
        return real(cx, call_prelude(cx, "nearest_quotient", (x, y)), "div")
    quotient = cx.hold(integer_division(cx, "div", x, y))
    if x.type.kind == "bool":
        return quotient
    ty = x.type
    remainder = cx.scalar("rem", ty, x.expr, y.expr)
    unsigned = next(t for t in UINTS if t.bits == ty.bits)
    left, whole = _magnitude(cx, remainder, unsigned), _magnitude(cx, y, unsigned)
    other = cx.op("sub", unsigned.numpy, whole.expr, left.expr)  # what is missing to the next quotient
    opposite = cx.op("xor", "bool", _below_zero(cx, x), _below_zero(cx, y))
    tie = {
        "RoundNearest": cx.op("ne", "bool", cx.op("and", ty.numpy, quotient.expr, Lit(1, ty.numpy)), Lit(0, ty.numpy)),
        "RoundNearestTiesAway": Lit(True, "bool"),
        "RoundNearestTiesUp": cx.op("not", "bool", opposite),
    }[mode]
    beyond = cx.op("or", "bool", cx.op("gt", "bool", left.expr, other),
                   cx.op("and", "bool", cx.op("eq", "bool", left.expr, other), tie))  # fmt: skip
    one = Lit(1, ty.numpy)
    step = cx.op("select", ty.numpy, opposite, cx.op("neg", ty.numpy, one), one)
    return cx.scalar("select", ty, beyond, cx.op("add", ty.numpy, quotient.expr, step), quotient.expr)


@builtin("mod1")
def _mod1(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "mod1", args, 2)
    x, y = (cx.hold(v) for v in together(cx, "mod1", args, exact=True))
    m = cx.hold(integer_division(cx, "mod", x, y))
    return cx.scalar("select", m.type, cx.op("eq", "bool", m.expr, zero_of(m.type).expr), y.expr, m.expr)


@builtin("fld1")
def _fld1(cx: Context, args: tuple[Value, ...]) -> Value:
    arity(cx, "fld1", args, 2)
    x, y = (cx.hold(v) for v in together(cx, "fld1", args, exact=True))
    if x.type.kind == "float":
        m = _mod1(cx, (x, y))
        return integer_division(cx, "fld", arithmetic(cx, "+", arithmetic(cx, "-", x, m), y), y)
    d = cx.hold(integer_division(cx, "div", x, y))
    back = arithmetic(cx, "*", d, y)
    uneven = cx.op("ne", "bool", real(cx, back, "fld1").expr, cast(cx, x, real(cx, back, "fld1").type).expr)
    same = cx.op("eq", "bool", _below_zero(cx, x), _below_zero(cx, y))
    return arithmetic(cx, "+", d, truth(cx.op("and", "bool", same, uneven)))


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
