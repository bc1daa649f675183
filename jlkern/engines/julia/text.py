"""Julia text for what a request holds: constants, types, and how each argument is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from jlkern.signature import ArgType, ArrayArg, FunctionArg, ScalarArg, Signature, TupleArg, TypeArg

TYPES: Final = {
    "bool": "Bool",
    **{f"int{n}": f"Int{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"UInt{n}" for n in (8, 16, 32, 64)},
    **{f"float{n}": f"Float{n}" for n in (16, 32, 64)},
    "complex64": "ComplexF32",
    "complex128": "ComplexF64",
}


def literal(value: Any) -> str:
    """Return a constant in Julia; text is a Symbol.

    >>> literal((1, True, -0.5, float("inf"), 'a"$'))
    '(1, true, -0.5, Inf, Symbol("a\\\\"\\\\$"),)'
    """
    if isinstance(value, tuple):
        return "(" + "".join(f"{literal(item)}, " for item in value).rstrip(" ") + ")"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"Symbol({quoted(value)})"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return ("Inf" if value > 0 else "-Inf") if math.isinf(value) else repr(value)
    return repr(value)


def quoted(text: str) -> str:
    """Return a Julia string literal.

    >>> quoted("a\\n$b")
    '"a\\\\n\\\\$b"'
    """
    plain = {"\\": "\\\\", '"': '\\"', "$": "\\$"}
    return (
        '"'
        + "".join(plain.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in text).replace(
            "\\U0000000a", "\\n"
        )
        + '"'
    )


def constants(params: Mapping[str, Any]) -> str:
    """Return the definitions of tunables.

    >>> constants({"block": 64, "how": "fast"})
    'const block = 64\\nconst how = Symbol("fast")\\n'
    """
    return "".join(f"const {name} = {literal(value)}\n" for name, value in params.items())


def specs(signature: Signature, written: tuple[bool, ...]) -> str:
    """Return the specs of `runtime.jl` for the arguments of a signature, as a tuple."""
    return "(" + "".join(f"{spec(arg, writes)}, " for arg, writes in zip(signature, written, strict=True)) + ")"


def spec(arg: ArgType, writes: bool) -> str:
    """Return the spec of one argument."""
    # NumPy's own dtypes and scalar types live as long as the process, so that their addresses stand for them
    if isinstance(arg, ArrayArg):
        kind = f"{TYPES[arg.dtype]}, {arg.ndim}, :{arg.layout}, {literal(writes)}"
        return f"ArraySpec{{{kind}}}(Object({id(np.dtype(arg.dtype)):#x}))"
    if isinstance(arg, ScalarArg):
        return f"ScalarSpec{{{TYPES[arg.dtype]}}}(Object({id(np.dtype(arg.dtype).type):#x}))"
    if isinstance(arg, TupleArg):
        return f"TupleSpec({specs(arg.items, (False,) * len(arg.items))})"
    if isinstance(arg, TypeArg):
        return f"Fixed({TYPES[arg.dtype]})"
    if isinstance(arg, FunctionArg):
        return f"Fixed(Core.eval(home, :({arg.name})))"
    return f"Fixed(Val({literal(arg.value)}))"


def literal_vals(values: Sequence[Any]) -> str:
    """Return constants as a tuple of `Val`s.

    >>> literal_vals([3, "fast"])
    '(Val(3), Val(Symbol("fast")),)'
    """
    return "(" + "".join(f"Val({literal(value)}), " for value in values).rstrip(" ") + ")"
