"""Literals, and what names mean: variables, the source's own definitions, tunables, Julia's functions and types."""

from __future__ import annotations

import difflib

from jlkern.engines.numba.lower.context import Context, Scope
from jlkern.engines.numba.lower.core import handles, lower
from jlkern.engines.numba.lower.methods import named_type, parents_of
from jlkern.engines.numba.lower.registry import BUILTINS
from jlkern.engines.numba.lower.types import BOOL, FLOAT32, FLOAT64, PRIMS, Abstract, StructT
from jlkern.engines.numba.lower.values import (
    Complex,
    Function,
    Irrational,
    Namespace,
    Nothing,
    Symbol,
    Text,
    TypeValue,
    Unstable,
    Value,
    constant,
)
from jlkern.syntax import nodes as n

MODULES = frozenset({"Base", "Core", "KernelAbstractions", "KA", "Atomix", "StaticArrays", "LinearAlgebra", "Math",
                     "Extras", "UnsafeAtomics", "FastMath", "Iterators", "SpecialFunctions"})  # fmt: skip


_ALLOCATES = "kernels do not allocate; use a tuple, an SVector, or `@private T (n,)`"
_REMEDIES = {
    **dict.fromkeys(("similar", "copy", "deepcopy", "collect", "fill", "vcat", "hcat", "cat", "reshape", "Vector",
                     "Array", "push!", "append!", "Dict", "Set", "sort", "sort!", "filter", "vec", "repeat"),
                    _ALLOCATES),
    **dict.fromkeys(("println", "print", "show", "display", "printstyled", "@printf"), "print outside of the kernel"),
    **dict.fromkeys(("rand", "randn", "shuffle"), "pass random numbers as an array, or compute them by a formula"),
    **dict.fromkeys(("Int128", "UInt128", "BigInt", "BigFloat", "big"), "use the types up to 64 bits"),
    **dict.fromkeys(("Rational", "rationalize"), "use floats"),
    **dict.fromkeys(("eval", "Meta", "invokelatest"), "write the code that it makes"),
}  # fmt: skip
CONSTANTS: dict[str, Value] = {
    "π": Irrational("π", 3.141592653589793), "pi": Irrational("π", 3.141592653589793),
    "ℯ": Irrational("ℯ", 2.718281828459045),
    "Inf": constant(float("inf"), FLOAT64), "NaN": constant(float("nan"), FLOAT64),
    "Inf32": constant(float("inf"), FLOAT32), "NaN32": constant(float("nan"), FLOAT32),
    "Inf64": constant(float("inf"), FLOAT64), "NaN64": constant(float("nan"), FLOAT64),
    "nothing": Nothing(),
    "im": Complex(constant(False, BOOL), constant(True, BOOL)),
    "undef": Symbol("undef"),
}  # fmt: skip


@handles(n.Literal)
def _literal(cx: Context, node: n.Literal) -> Value:
    if node.type in PRIMS:
        assert isinstance(node.value, (int, float, bool))
        return constant(node.value, PRIMS[node.type])
    if node.type == "Symbol":
        return Symbol(str(node.value))
    if node.type == "String":
        return Text((str(node.value),))
    if node.type == "Nothing":
        return Nothing()
    cx.unsupported(f"a literal of type {node.type}")


@handles(n.Name)
def _name(cx: Context, node: n.Name) -> Value:
    slot = cx.scope.find(node.id)
    if slot is not None:
        value = cx.bindings.get(slot)
        if value is None:
            cx.unsupported(f"the variable `{node.id}` is used before it is assigned")
        if isinstance(value, Unstable):
            cx.unsupported(value.reason, "give it one type on all paths, as in `zero(eltype(x))`")
        return value
    return lookup_global(cx, node.id)


def lookup_global(cx: Context, name: str) -> Value:
    """Return what a global name means: the source's own definition, then a tunable or type parameter, then Julia's."""
    if name in cx.globals:
        found = cx.globals[name]
        if isinstance(found, Value):
            return found
        if isinstance(found, n.StructDef):
            return TypeValue(StructT(found.name, (), parents_of(cx, found)))
        if isinstance(found, n.AbstractDef):
            return TypeValue(Abstract(found.name, (), parents_of(cx, found)))
        if isinstance(found, tuple):
            return Function(name, found)
        if name in cx.defining:
            cx.unsupported(f"the constant `{name}` is defined by itself")
        outer_scope, outer_bounds, line = cx.scope, cx.inbounds, cx.line
        cx.defining.add(name)
        cx.scope, cx.inbounds = Scope(None, function=True), False
        try:
            return lower(cx, found)
        finally:
            cx.scope, cx.inbounds, cx.line = outer_scope, outer_bounds, line
            cx.defining.discard(name)
    if name in CONSTANTS:
        return CONSTANTS[name]
    ty = None if name in BUILTINS else named_type(name)
    if ty is not None:
        return TypeValue(ty)
    if name in BUILTINS or name in ("^", ":"):
        return Function(name, (), True)
    if name in MODULES:
        return Namespace(name)
    if name in ("end", "begin"):
        cx.unsupported(f"`{name}` outside of an index")
    if name in _REMEDIES:
        cx.unsupported(f"`{name}`", _REMEDIES[name])
    known = [k for k in (*cx.globals, *BUILTINS, *CONSTANTS) if not k.startswith("%")]
    close = difflib.get_close_matches(name, known, 1, 0.75) if len(name) > 2 else []
    remedy = f"did you mean `{close[0]}`?" if close else "define it in the source, or make it a parameter or a tunable"
    cx.unsupported(f"`{name}` is not defined", remedy)
