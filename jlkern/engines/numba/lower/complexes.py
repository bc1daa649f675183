"""The parts of complex numbers."""

from __future__ import annotations

from jlkern.engines.numba.lower.arithmetic import (
    negate,
)
from jlkern.engines.numba.lower.context import Context
from jlkern.engines.numba.lower.conversion import (
    real,
    together,
    zero_of,
)
from jlkern.engines.numba.lower.registry import BUILTINS, arity, builtin
from jlkern.engines.numba.lower.types import ComplexT
from jlkern.engines.numba.lower.values import (
    Complex,
    Tuple,
    TypeValue,
    Value,
)


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
    x, y = together(cx, "complex", args, exact=True)
    return Complex(x, y)
