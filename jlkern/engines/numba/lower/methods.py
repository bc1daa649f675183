"""Julia's multiple dispatch for the functions of the source: annotations as types, matching, the narrowest method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jlkern.engines.numba.lower.types import (
    ABSTRACTS,
    ANY,
    FLOAT32,
    FLOAT64,
    INT64,
    NOTHING,
    PRIMS,
    STRING,
    SYMBOL,
    UINT64,
    Abstract,
    Bindings,
    ComplexT,
    JType,
    Prim,
    StructT,
    TupleT,
    TypeT,
    TypeVar,
    UnionT,
    VarargT,
    ancestors,
    is_subtype,
    match,
)
from jlkern.engines.numba.lower.values import Tuple, TypeValue, Value, canonical, type_of
from jlkern.syntax import nodes as n

if TYPE_CHECKING:
    from jlkern.engines.numba.lower.context import Context

ALIASES: dict[str, Any] = {
    **PRIMS,
    "Int": INT64,
    "UInt": UINT64,
    "ComplexF32": ComplexT(FLOAT32),
    "ComplexF64": ComplexT(FLOAT64),
    "Nothing": NOTHING,
    "Symbol": SYMBOL,
    "String": STRING,
    "AbstractString": STRING,
    "Cvoid": NOTHING,
}


def named_type(name: str) -> Any:
    """Return the type of a name of Julia's own, None for any other name."""
    if name in ALIASES:
        return ALIASES[name]
    return Abstract(name) if name in ABSTRACTS else None


def type_of_node(cx: Context, node: n.Node, free: dict[str, TypeVar]) -> Any:
    """Return the type (or the value of a type parameter) that an annotation stands for."""
    from jlkern.engines.numba.lower.core import lower

    if isinstance(node, n.Name):
        if node.id in free:
            return free[node.id]
        value = lower(cx, node)
        known = canonical(value)
        if known is None:
            cx.unsupported(f"`{node.id}` is no type or constant, in an annotation")
        return known
    if isinstance(node, n.Literal):
        return canonical(lower(cx, node))
    if isinstance(node, n.Where):
        return type_of_node(cx, node.value, {**free, **type_vars(cx, node.params, free)})
    if isinstance(node, n.Curly):
        return apply_type(cx, node, free)
    if isinstance(node, n.Call) and isinstance(node.func, n.Name) and node.func.id == "<:" and len(node.args) == 1:
        return TypeVar(f"%{cx.key()}", type_of_node(cx, node.args[0], free))
    known = canonical(lower(cx, node))
    if known is None:
        cx.unsupported("this annotation is not known at compile time")
    return known


def type_vars(cx: Context, params: tuple[n.Node, ...], free: dict[str, TypeVar]) -> dict[str, TypeVar]:
    """Return the type variables of a `where`."""
    found: dict[str, TypeVar] = {}
    for param in params:
        if isinstance(param, n.Name):
            found[param.id] = TypeVar(param.id, ANY)
        elif isinstance(param, n.Call) and isinstance(param.func, n.Name) and param.func.id == "<:":
            name, bound = param.args
            assert isinstance(name, n.Name)
            found[name.id] = TypeVar(name.id, type_of_node(cx, bound, {**free, **found}))
        elif isinstance(param, n.Compare) and len(param.operands) == 3 and isinstance(param.operands[1], n.Name):
            found[param.operands[1].id] = TypeVar(param.operands[1].id, ANY)
        else:
            cx.unsupported("this form of `where` parameter")
    return found


def parents_of(cx: Context, definition: n.Node) -> tuple[str, ...]:
    """Return the names of the abstract types above a type of the source, the nearest first."""
    above: n.Node | str | None = getattr(definition, "supertype", None)
    found: list[str] = []
    while above is not None:
        name = above if isinstance(above, str) else above.id if isinstance(above, n.Name) else ""
        if not name or name in found:
            break
        found.append(name)
        known = cx.globals.get(name)
        if not isinstance(known, n.AbstractDef):
            found.extend(ancestors(name)[1:])
            break
        above = known.supertype
    return tuple(found)


def apply_type(cx: Context, node: n.Curly, free: dict[str, TypeVar]) -> Any:
    """Return the type `Base{args...}`."""
    base = node.base.id if isinstance(node.base, n.Name) else node.base.name if isinstance(node.base, n.Field) else ""
    args = tuple(type_of_node(cx, a, free) for a in node.args)
    if base == "Complex" and isinstance(args[0], Prim):
        return ComplexT(args[0])
    if base == "NTuple":
        return VarargT(args[0], args[1] if len(args) > 1 else ANY)
    if base == "Tuple":
        if len(args) == 1 and isinstance(args[0], VarargT):
            return args[0]
        return TupleT(args)
    if base == "Vararg":
        return VarargT(args[1] if len(args) > 1 else None, args[0])
    if base == "Union":
        return UnionT(args)
    if base == "Type":
        return TypeT(args[0])
    if base == "SArray" or base == "MArray":
        dims = args[0].items if isinstance(args[0], TupleT) else ()
        return Abstract({1: "SVector", 2: "SMatrix"}[len(dims)].replace("S", base[0], 1), (*dims, *args[1:2]))
    if base in ABSTRACTS:
        return Abstract(base, args)
    value = cx.globals.get(base)
    if isinstance(value, n.StructDef):
        return StructT(base, args, parents_of(cx, value))
    cx.unsupported(f"the type `{base}{{...}}`")


@dataclass(frozen=True)
class Bound:
    """A method that fits a call: its parameters' values and its type variables'."""

    method: n.FunctionDef | n.Lambda
    values: tuple[tuple[n.Param, Value | None], ...]
    types: Bindings
    patterns: tuple[Any, ...]
    vararg: bool
    rest: Any = None


def fit(cx: Context, method: n.FunctionDef | n.Lambda, args: tuple[Value, ...]) -> Bound | None:
    """Return how a method takes `args`, None when it does not fit."""
    params = method.params
    vararg = bool(params) and params[-1].vararg
    required = sum(p.default is None and not p.vararg for p in params)
    if len(args) < required or (len(args) > len(params) and not vararg):
        return None
    free = type_vars(cx, method.where, {}) if isinstance(method, n.FunctionDef) else {}
    types: Bindings = {}
    values: list[tuple[n.Param, Value | None]] = []
    patterns: list[Any] = []
    other: Any = None
    for at, param in enumerate(params):
        pattern = ANY if param.type is None else type_of_node(cx, param.type, free)
        if param.vararg:
            rest = args[at:]
            if not all(match(type_of(a), pattern, types) for a in rest):
                return None
            values.append((param, Tuple(rest)))
            other = pattern
            patterns.extend(pattern for _ in rest)
        elif at < len(args):
            if not match(type_of(args[at]), pattern, types):
                return None
            values.append((param, args[at]))
            patterns.append(pattern)
        else:
            values.append((param, None))
    return Bound(method, tuple(values), types, tuple(patterns), vararg, other)


def choose(cx: Context, name: str, methods: tuple[n.FunctionDef, ...], args: tuple[Value, ...]) -> Bound | None:
    """Return the most specific method that fits; None when none does. An ambiguous call is refused, as in Julia."""
    fitting = [b for b in (fit(cx, m, args) for m in methods) if b is not None]
    if len(fitting) <= 1:
        return fitting[0] if fitting else None
    best = [a for a in fitting if all(a is b or _narrower(a, b) for b in fitting)]
    if not best:
        cx.unsupported(f"the call of `{name}` is ambiguous: no method that fits is the most specific")
    return best[-1]  # of two equal signatures the later definition counts


def _narrower(a: Bound, b: Bound) -> bool:
    forward = all(is_subtype(x, y) for x, y in zip(a.patterns, b.patterns, strict=True))
    backward = all(is_subtype(y, x) for x, y in zip(a.patterns, b.patterns, strict=True))
    if forward and backward:
        if a.vararg != b.vararg:
            return not a.vararg
        if a.vararg and not (is_subtype(a.rest, b.rest) and is_subtype(b.rest, a.rest)):
            return is_subtype(a.rest, b.rest)
        return _repeats(a) >= _repeats(b)
    return forward


def _repeats(bound: Bound) -> int:
    """Return how often a type variable stands where it stood before: `f(x::T, y::T)` is narrower than `f(x, y)`."""
    names = [p.name for p in bound.patterns if isinstance(p, TypeVar)]
    return len(names) - len(set(names))


def static_parameter(cx: Context, value: Any) -> Value:
    """Return the value that a matched type variable has in the method's body."""
    from jlkern.engines.numba.lower.values import from_canonical

    return TypeValue(value) if isinstance(value, JType) else from_canonical(value)
