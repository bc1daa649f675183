"""The names that emitted code may use: `semantics` under the names that `emit` writes."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def namespace() -> dict[str, Any]:
    """Return the globals of emitted code."""
    from jlkern.engines.numba.semantics import intrinsics, mathematics, memory

    names: dict[str, Any] = {"inf": float("inf"), "nan": float("nan")}
    for name in (
        "div rem mod fld cld udiv urem frem fmod fdivtrunc fdivfloor fdivceil shl shr ushr shl_any shr_any ushr_any "
        "ctpop ctlz cttz bitnot sub_sat outside egal isless eq_exact ne_exact lt_exact le_exact gt_exact ge_exact "
        "select least greatest absolute signbit copysign fdiv fneg fma muladd sqrt floor ceil trunc rint round_away "
        "round_up ipow"
    ).split():
        names[name] = getattr(intrinsics, name)
    names.update(mathematics.MATH)
    names.update(intrinsics.CONVERSIONS)
    names.update({f"as_{k}": v for k, v in intrinsics.REINTERPRETATIONS.items()})
    for name in (
        "load store address_of bits_of compare_exchange call_chunk keep_report print_part input_address output_address"
    ).split():
        names[name] = getattr(memory, name)
    names.update({f"pointer_{k}": v for k, v in memory.POINTERS.items()})
    names.update({f"stack_{k}": v for k, v in memory.STACKS.items()})
    names.update({f"bits_{k}": v for k, v in memory.FROM_BITS.items()})
    names.update({f"atomic_{k}": v for k, v in memory.ATOMICS.items()})
    return names
