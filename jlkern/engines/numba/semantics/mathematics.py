"""Mathematical functions of floats, each within one unit in the last place of the correctly rounded value.

Float64: the C library's where it is that good everywhere, those of `doubled` otherwise. Float32: the C library's own
where it computes in Float64 inside, the Float64 function rounded otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir

from jlkern.engines.numba.semantics import doubled
from jlkern.engines.numba.semantics.intrinsics import Build, binary, call, llvm, unary

_F64 = ir.DoubleType()

#: Functions that LLVM knows; it hands them to the C library, unless it can compute them at once.
_LLVM = ("exp", "exp2", "log", "log2", "sin", "cos")
_C = ("tan", "asin", "acos", "atan")
_DOUBLED: dict[str, Callable[..., doubled.F]] = {
    "cbrt": doubled.cbrt, "expm1": doubled.expm1, "log1p": doubled.log1p, "log10": doubled.log10, "sinh": doubled.sinh,
    "cosh": doubled.cosh, "tanh": doubled.tanh, "asinh": doubled.asinh, "acosh": doubled.acosh, "atanh": doubled.atanh,
    "sinpi": doubled.sinpi, "cospi": doubled.cospi, "hypot": doubled.hypot, "logb": doubled.quotient_of_logarithms,
}  # fmt: skip
#: Those of which the C library has no Float64 version to round for Float32.
_OURS_ONLY = ("sinpi", "cospi", "logb")


def _defined(name: str, build: Callable[..., doubled.F], b: Any, args: tuple[Any, ...]) -> Any:
    """Call a function of Float64s, which is written into the module where it is not there yet."""
    module = b.module
    full = f"jlkern.{name}"
    function = module.globals.get(full)
    if function is None:
        function = ir.Function(module, ir.FunctionType(_F64, [_F64] * len(args)), full)
        function.linkage = "internal"
        inner = ir.IRBuilder(function.append_basic_block("entry"))
        inner.ret(build(*(doubled.F(inner, a) for a in function.args)).v)
    return b.call(function, args)


def _function(name: str) -> Build:
    def build(b: Any, _ty: Any, *args: Any) -> Any:
        if isinstance(args[0].type, ir.DoubleType):
            return _defined(name, _DOUBLED[name], b, args) if name in _DOUBLED else call(b, name, list(args))
        wide = tuple(b.fpext(a, _F64) for a in args)
        result = _defined(name, _DOUBLED[name], b, wide) if name in _OURS_ONLY else call(b, name, list(wide))
        return b.fptrunc(result, args[0].type)

    return build


def _exp10(b: Any, _ty: Any, x: Any) -> Any:
    single = isinstance(x.type, ir.FloatType)
    return call(b, "powf" if single else "pow", [ir.Constant(x.type, 10.0), x])


def _power(b: Any, _ty: Any, x: Any, y: Any) -> Any:
    return call(b, "powf" if isinstance(x.type, ir.FloatType) else "pow", [x, y])


UNARY = (
    {name: unary(lambda b, _, x, name=name: llvm(b, name, x)) for name in _LLVM}
    | {name: unary(_function(name)) for name in (*_C, *_DOUBLED) if name not in ("hypot", "logb")}
    | {"exp10": unary(_exp10)}
)
BINARY = {name: binary(_function(name)) for name in ("atan2", "hypot", "logb")} | {"power": binary(_power)}
MATH = UNARY | BINARY
