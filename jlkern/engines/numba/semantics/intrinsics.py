"""Julia's rules for single operations, as functions that Numba compiles to a few LLVM instructions.

Each function here is one operation of the SIMT form on operands of one primitive type. Operands are promoted and
converted before, so that no rule of Python's or Numba's own (negative indices, widening, floor division) is left in
what runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import intrinsic

types: Any = _types  # its own stubs lack most of it
Build = Callable[..., Any]


def _int(bits: int) -> ir.IntType:
    return ir.IntType(bits)


def _const(value: ir.Value, number: int) -> ir.Constant:
    return ir.Constant(value.type, number)


def _signed(ty: Any) -> bool:
    return bool(getattr(ty, "signed", False))


def call(b: Any, name: str, args: list[Any], ret: Any = None) -> Any:
    """Call an LLVM intrinsic or a C function."""
    fnty = ir.FunctionType(ret or args[0].type, [a.type for a in args])
    return b.call(cgutils.get_or_insert_function(b.module, fnty, name), args)


def _suffix(value: ir.Value) -> str:
    ty = value.type
    if isinstance(ty, ir.FloatType):
        return "f32"
    if isinstance(ty, ir.DoubleType):
        return "f64"
    return f"i{ty.width}"


def llvm(b: Any, name: str, *args: Any) -> Any:
    """Call the LLVM intrinsic of a name for the operands' type."""
    return call(b, f"llvm.{name}.{_suffix(args[0])}", list(args))


def unary(build: Build, result: Any = None) -> Any:
    """Make an operation of one operand; `build(builder, type, x)` writes it."""

    @intrinsic
    def operation(_typing: Any, x: Any) -> Any:
        x = types.unliteral(x)

        def codegen(_context: Any, b: Any, sig: Any, args: Any) -> Any:
            return build(b, sig.args[0], args[0])

        return (result or x)(x), codegen

    return operation


def binary(build: Build, result: Any = None) -> Any:
    """Make an operation of two operands of one type; `build(builder, type, x, y)` writes it."""

    @intrinsic
    def operation(_typing: Any, x: Any, y: Any) -> Any:
        x = types.unliteral(x)

        def codegen(_context: Any, b: Any, sig: Any, args: Any) -> Any:
            return build(b, sig.args[0], args[0], args[1])

        return (result or x)(x, x), codegen

    return operation


# --- integer division: checks come before it; without one, no operands trap ---


def _divisor(b: Any, ty: Any, y: Any) -> Any:
    """The divisor, or 1 in place of those that the hardware traps at: 0, and -1 for the least integer."""
    bad = b.icmp_unsigned("==", y, _const(y, 0))
    if _signed(ty):
        bad = b.or_(bad, b.icmp_unsigned("==", y, _const(y, -1)))
    return b.select(bad, _const(y, 1), y)


def _div(b: Any, ty: Any, x: Any, y: Any) -> Any:
    if not _signed(ty):
        return b.udiv(x, _divisor(b, ty, y))
    return b.select(b.icmp_unsigned("==", y, _const(y, -1)), b.neg(x), b.sdiv(x, _divisor(b, ty, y)))


def _rem(b: Any, ty: Any, x: Any, y: Any) -> Any:
    return (b.srem if _signed(ty) else b.urem)(x, _divisor(b, ty, y))


def _mod(b: Any, ty: Any, x: Any, y: Any) -> Any:
    r = _rem(b, ty, x, y)
    if not _signed(ty):
        return r
    differ = b.icmp_signed("<", b.xor(r, y), _const(r, 0))
    adjust = b.and_(differ, b.icmp_signed("!=", r, _const(r, 0)))
    return b.select(adjust, b.add(r, y), r)


def _fld(b: Any, ty: Any, x: Any, y: Any) -> Any:
    q = _div(b, ty, x, y)
    if not _signed(ty):
        return q
    r = b.sub(x, b.mul(q, y))
    down = b.and_(b.icmp_signed("!=", r, _const(r, 0)), b.icmp_signed("<", b.xor(x, y), _const(r, 0)))
    return b.select(down, b.sub(q, _const(q, 1)), q)


def _cld(b: Any, ty: Any, x: Any, y: Any) -> Any:
    q = _div(b, ty, x, y)
    r = b.sub(x, b.mul(q, y))
    some = b.icmp_unsigned("!=", r, _const(r, 0))
    up = b.and_(some, b.icmp_signed(">=", b.xor(x, y), _const(r, 0))) if _signed(ty) else some
    return b.select(up, b.add(q, _const(q, 1)), q)


div, rem, mod, fld, cld = (binary(f) for f in (_div, _rem, _mod, _fld, _cld))
udiv = binary(lambda b, ty, x, y: b.udiv(x, _divisor(b, types.uint64, y)))
urem = binary(lambda b, ty, x, y: b.urem(x, _divisor(b, types.uint64, y)))

# --- float division and remainder ---


def _frem(b: Any, _ty: Any, x: Any, y: Any) -> Any:
    return b.frem(x, y)


def _fmod(b: Any, _ty: Any, x: Any, y: Any) -> Any:
    """`mod(x, y)`: the sign of y."""
    r = b.frem(x, y)
    zero = _const_float(r, 0.0)
    differ = b.xor(b.fcmp_ordered(">", r, zero), b.fcmp_ordered(">", y, zero))
    moved = b.select(differ, b.fadd(r, y), r)
    return b.select(b.fcmp_ordered("==", r, zero), llvm(b, "copysign", r, y), moved)


def _const_float(like: ir.Value, number: float) -> ir.Constant:
    return ir.Constant(like.type, number)


def _rounded_quotient(how: str) -> Build:
    def build(b: Any, ty: Any, x: Any, y: Any) -> Any:
        if how == "ceil":
            up = b.fmul(y, llvm(b, "ceil", b.fdiv(x, y)))
            return llvm(b, "rint", b.fdiv(b.fsub(x, b.fsub(x, up)), y))
        r = _fmod(b, ty, x, y) if how == "floor" else b.frem(x, y)
        return llvm(b, "rint", b.fdiv(b.fsub(x, r), y))

    return build


frem, fmod = binary(_frem), binary(_fmod)
fdivtrunc, fdivfloor, fdivceil = (binary(_rounded_quotient(h)) for h in ("trunc", "floor", "ceil"))

# --- bits ---


def _shift(op: str) -> Build:
    """A shift by a count of any size: beyond the width all bits are gone (or all are the sign)."""

    def build(b: Any, ty: Any, x: Any, n: Any) -> Any:
        bits = x.type.width
        big = b.icmp_unsigned(">=", n, _const(n, bits))
        arithmetic = op == "shr" and _signed(ty)
        if arithmetic:
            n = b.select(big, _const(n, bits - 1), n)
        count = b.trunc(n, x.type) if bits < 64 else n
        if arithmetic:
            return b.ashr(x, count)
        shifted = b.shl(x, count) if op == "shl" else b.lshr(x, count)
        return b.select(big, _const(x, 0), shifted)

    return build


def _shift_by(build: Build, count: Any) -> Any:
    @intrinsic
    def operation(_typing: Any, x: Any, n: Any) -> Any:
        x = types.unliteral(x)

        def codegen(_context: Any, b: Any, sig: Any, args: Any) -> Any:
            return build(b, sig.args[0], args[0], args[1])

        return x(x, count), codegen

    return operation


def _any_shift(op: str) -> Build:
    """A shift by a signed count: a negative one goes the other way."""
    back = {"shl": "shr", "shr": "shl", "ushr": "shl"}[op]

    def build(b: Any, ty: Any, x: Any, n: Any) -> Any:
        negative = b.icmp_signed("<", n, _const(n, 0))
        there, here = _shift(op)(b, ty, x, n), _shift(back)(b, ty, x, b.neg(n))
        return b.select(negative, here, there)

    return build


shl, shr, ushr = (_shift_by(_shift(op), types.uint64) for op in ("shl", "shr", "ushr"))
shl_any, shr_any, ushr_any = (_shift_by(_any_shift(op), types.int64) for op in ("shl", "shr", "ushr"))
ctpop = unary(lambda b, _, x: llvm(b, "ctpop", x))
ctlz = unary(lambda b, _, x: call(b, f"llvm.ctlz.{_suffix(x)}", [x, ir.Constant(_int(1), 0)]))
cttz = unary(lambda b, _, x: call(b, f"llvm.cttz.{_suffix(x)}", [x, ir.Constant(_int(1), 0)]))
bitnot = unary(lambda b, _, x: b.not_(x))
sub_sat = binary(lambda b, _, x, y: llvm(b, "ssub.sat", x, y))
outside = binary(lambda b, _, i, n: b.icmp_unsigned(">=", b.sub(i, _const(i, 1)), n), types.boolean)

# --- comparison and selection ---


def _egal(b: Any, _ty: Any, x: Any, y: Any) -> Any:
    """`===`: the same bits."""
    if isinstance(x.type, ir.IntType):
        return b.icmp_unsigned("==", x, y)
    bits = _int(32 if isinstance(x.type, ir.FloatType) else 64)
    return b.icmp_unsigned("==", b.bitcast(x, bits), b.bitcast(y, bits))


def _isless(b: Any, _ty: Any, x: Any, y: Any) -> Any:
    """`isless` of floats: -0.0 before 0.0, NaN last."""
    bits = _int(32 if isinstance(x.type, ir.FloatType) else 64)
    i, j = b.bitcast(x, bits), b.bitcast(y, bits)
    mask = ir.Constant(bits, (1 << (bits.width - 1)) - 1)
    shift = ir.Constant(bits, bits.width - 1)

    def ordered(v: Any) -> Any:
        return b.xor(v, b.and_(b.ashr(v, shift), mask))

    less = b.icmp_signed("<", ordered(i), ordered(j))
    nan_x, nan_y = b.fcmp_unordered("uno", x, x), b.fcmp_unordered("uno", y, y)
    return b.and_(b.not_(nan_x), b.or_(nan_y, less))


egal = binary(_egal, types.boolean)
isless = binary(_isless, types.boolean)


def _exact(op: str) -> Any:
    """Compare an Int64 or UInt64 with a Float64 by value, without rounding the integer."""

    @intrinsic
    def operation(_typing: Any, x: Any, y: Any) -> Any:
        x = types.unliteral(x)

        def codegen(_context: Any, b: Any, sig: Any, args: Any) -> Any:
            i, f = args
            signed = _signed(sig.args[0])
            near = b.sitofp(i, f.type) if signed else b.uitofp(i, f.type)
            name = "llvm.fptosi.sat.i64.f64" if signed else "llvm.fptoui.sat.i64.f64"
            whole = call(b, name, [f], i.type)
            # equal as floats: then f is whole (or 2^63, 2^64, above every integer) and the integers decide
            top = ir.Constant(f.type, 2.0**63 if signed else 2.0**64)
            above = b.fcmp_ordered(">=", f, top)
            compare = b.icmp_signed if signed else b.icmp_unsigned
            tie = {
                "eq": b.and_(b.not_(above), compare("==", i, whole)),
                "ne": b.or_(above, compare("!=", i, whole)),
                "lt": b.or_(above, compare("<", i, whole)),
                "le": b.or_(above, compare("<=", i, whole)),
                "gt": b.and_(b.not_(above), compare(">", i, whole)),
                "ge": b.and_(b.not_(above), compare(">=", i, whole)),
            }[op]
            if op == "ne":
                plain = b.fcmp_unordered("!=", near, f)
            else:
                plain = b.fcmp_ordered({"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[op], near, f)
            return b.select(b.fcmp_ordered("==", near, f), tie, plain)

        return types.boolean(x, types.float64), codegen

    return operation


eq_exact, ne_exact, lt_exact, le_exact, gt_exact, ge_exact = (_exact(o) for o in ("eq", "ne", "lt", "le", "gt", "ge"))


@intrinsic
def select(_typing: Any, cond: Any, x: Any, y: Any) -> Any:
    """`cond ? x : y` with both computed."""
    x = types.unliteral(x)

    def codegen(_context: Any, b: Any, _sig: Any, args: Any) -> Any:
        return b.select(args[0], args[1], args[2])

    return x(types.boolean, x, x), codegen


def _extreme(name: str) -> Build:
    def build(b: Any, ty: Any, x: Any, y: Any) -> Any:
        if not isinstance(x.type, ir.IntType):
            return llvm(b, "minimum" if name == "min" else "maximum", x, y)
        compare = b.icmp_signed if _signed(ty) else b.icmp_unsigned
        return b.select(compare("<" if name == "min" else ">", x, y), x, y)

    return build


least, greatest = binary(_extreme("min")), binary(_extreme("max"))

# --- conversion ---


def _sizes(ty: Any) -> Any:
    """Return the LLVM type of a primitive value."""
    if isinstance(ty, types.Float):
        return ir.FloatType() if ty.bitwidth == 32 else ir.DoubleType()
    return _int(1 if ty is types.boolean else ty.bitwidth)


def _cast(b: Any, of: Any, to: Any, x: Any) -> Any:
    target = _sizes(to)
    if isinstance(of, types.Float):
        if isinstance(to, types.Float):
            return x if of == to else b.fpext(x, target) if to.bitwidth > of.bitwidth else b.fptrunc(x, target)
        convert = "fptosi" if _signed(to) else "fptoui"
        return call(b, f"llvm.{convert}.sat.i{target.width}.{_suffix(x)}", [x], target)
    if isinstance(to, types.Float):
        return b.sitofp(x, target) if _signed(of) else b.uitofp(x, target)
    if target.width == x.type.width:
        return x
    if target.width < x.type.width:
        return b.trunc(x, target)
    return b.sext(x, target) if _signed(of) else b.zext(x, target)


def _conversion(to: Any) -> Any:
    @intrinsic
    def operation(_typing: Any, x: Any) -> Any:
        x = types.unliteral(x)

        def codegen(_context: Any, b: Any, sig: Any, args: Any) -> Any:
            return _cast(b, sig.args[0], to, args[0])

        return to(x), codegen

    return operation


#: `to_float32(x)` and its like: conversion without a check; float to integer rounds to zero and saturates.
NUMERIC = (types.int8, types.int16, types.int32, types.int64, types.uint8, types.uint16, types.uint32, types.uint64,
           types.float32, types.float64)  # fmt: skip
CONVERSIONS = {str(ty): _conversion(ty) for ty in NUMERIC}


def _reinterpretation(to: Any) -> Any:
    @intrinsic
    def operation(_typing: Any, x: Any) -> Any:
        x = types.unliteral(x)

        def codegen(_context: Any, b: Any, _sig: Any, args: Any) -> Any:
            target = _sizes(to)
            return args[0] if args[0].type == target else b.bitcast(args[0], target)

        return to(x), codegen

    return operation


REINTERPRETATIONS = {str(ty): _reinterpretation(ty) for ty in NUMERIC}

# --- floating point ---


def _abs(b: Any, _ty: Any, x: Any) -> Any:
    if not isinstance(x.type, ir.IntType):
        return llvm(b, "fabs", x)
    return b.select(b.icmp_signed("<", x, _const(x, 0)), b.sub(_const(x, 0), x), x)


def _signbit(b: Any, _ty: Any, x: Any) -> Any:
    bits = _int(32 if isinstance(x.type, ir.FloatType) else 64)
    return b.icmp_signed("<", b.bitcast(x, bits), ir.Constant(bits, 0))


absolute = unary(_abs)
signbit = unary(_signbit, types.boolean)
copysign = binary(lambda b, _, x, y: llvm(b, "copysign", x, y))
fdiv = binary(lambda b, _, x, y: b.fdiv(x, y))
fneg = unary(lambda b, _, x: b.fneg(x))


def _ternary(build: Build) -> Any:
    @intrinsic
    def operation(_typing: Any, x: Any, y: Any, z: Any) -> Any:
        x = types.unliteral(x)

        def codegen(_context: Any, b: Any, _sig: Any, args: Any) -> Any:
            return build(b, *args)

        return x(x, x, x), codegen

    return operation


fma = _ternary(lambda b, x, y, z: llvm(b, "fma", x, y, z))
muladd = _ternary(lambda b, x, y, z: llvm(b, "fmuladd", x, y, z))

sqrt, floor, ceil, trunc, rint, round_away = (
    unary(lambda b, _, x, name=name: llvm(b, name, x)) for name in ("sqrt", "floor", "ceil", "trunc", "rint", "round")
)


def _round_up(b: Any, _ty: Any, x: Any) -> Any:
    """The nearest whole number, of two the greater."""
    low = llvm(b, "floor", x)
    upper = b.fcmp_ordered(">=", b.fsub(x, low), _const_float(x, 0.5))
    return llvm(b, "copysign", b.select(upper, b.fadd(low, _const_float(x, 1.0)), low), x)


round_up = unary(_round_up)


def _ipow(b: Any, _ty: Any, x: Any, n: Any) -> Any:
    """`x ^ n` of integers by repeated squaring, wrapping."""
    entry = b.basic_block
    loop, done = b.append_basic_block("ipow"), b.append_basic_block("ipow.done")
    b.branch(loop)
    b.position_at_end(loop)
    result, base, left = b.phi(x.type), b.phi(x.type), b.phi(n.type)
    odd = b.trunc(left, _int(1))
    result_next = b.select(odd, b.mul(result, base), result)
    base_next, left_next = b.mul(base, base), b.lshr(left, _const(left, 1))
    for phi, start, following in ((result, _const(x, 1), result_next), (base, x, base_next), (left, n, left_next)):
        phi.add_incoming(start, entry)
        phi.add_incoming(following, loop)
    b.cbranch(b.icmp_unsigned("!=", left_next, _const(left, 0)), loop, done)
    b.position_at_end(done)
    return result_next


ipow = _shift_by(_ipow, types.uint64)
