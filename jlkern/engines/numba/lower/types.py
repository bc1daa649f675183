"""Julia's types as far as kernels use them: primitives, containers, abstract types, subtyping and promotion.

Source of the rules: Julia's manual, "Types" and "Conversion and Promotion".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True, slots=True)
class JType:
    """Base of the types."""


@dataclass(frozen=True, slots=True)
class Prim(JType):
    """A primitive number: `kind` is "bool", "int", "uint" or "float"."""

    julia: str
    numpy: str
    kind: str
    bits: int

    def __str__(self) -> str:
        return self.julia


BOOL = Prim("Bool", "bool", "bool", 8)
INTS = tuple(Prim(f"Int{b}", f"int{b}", "int", b) for b in (8, 16, 32, 64))
UINTS = tuple(Prim(f"UInt{b}", f"uint{b}", "uint", b) for b in (8, 16, 32, 64))
FLOATS = tuple(Prim(f"Float{b}", f"float{b}", "float", b) for b in (16, 32, 64))
INT8, INT16, INT32, INT64 = INTS
UINT8, UINT16, UINT32, UINT64 = UINTS
FLOAT16, FLOAT32, FLOAT64 = FLOATS
PRIMS: dict[str, Prim] = {p.julia: p for p in (BOOL, *INTS, *UINTS, *FLOATS)}
BY_NUMPY: dict[str, Prim] = {p.numpy: p for p in PRIMS.values()}


@dataclass(frozen=True, slots=True)
class ComplexT(JType):
    """`Complex{elem}`."""

    elem: Prim

    def __str__(self) -> str:
        return {FLOAT32: "ComplexF32", FLOAT64: "ComplexF64"}.get(self.elem, f"Complex{{{self.elem}}}")


@dataclass(frozen=True, slots=True)
class TupleT(JType):
    """`Tuple{items...}`, a NamedTuple with `names`."""

    items: tuple[JType, ...]
    names: tuple[str, ...] | None = None

    def __str__(self) -> str:
        if self.names is not None:
            return "NamedTuple{" + ", ".join(f"{n}::{t}" for n, t in zip(self.names, self.items, strict=True)) + "}"
        return "Tuple{" + ", ".join(map(str, self.items)) + "}"


@dataclass(frozen=True, slots=True)
class CartesianT(JType):
    """`CartesianIndex{n}`."""

    n: int

    def __str__(self) -> str:
        return f"CartesianIndex{{{self.n}}}"


@dataclass(frozen=True, slots=True)
class StaticT(JType):
    """`SArray` (or `MArray`) of static size."""

    dims: tuple[int, ...]
    elem: JType
    mutable: bool = False

    def __str__(self) -> str:
        letter = "M" if self.mutable else "S"
        if len(self.dims) == 1:
            return f"{letter}Vector{{{self.dims[0]}, {self.elem}}}"
        if len(self.dims) == 2:
            return f"{letter}Matrix{{{self.dims[0]}, {self.dims[1]}, {self.elem}}}"
        return f"{letter}Array{{Tuple{{{', '.join(map(str, self.dims))}}}, {self.elem}}}"


@dataclass(frozen=True, slots=True)
class ArrayT(JType):
    """An array argument, view, `@localmem` or `@private` array."""

    elem: JType
    ndim: int

    def __str__(self) -> str:
        return f"Array{{{self.elem}, {self.ndim}}}"


@dataclass(frozen=True, slots=True)
class RangeT(JType):
    """A range of numbers; `step` is False for a unit range."""

    elem: Prim
    step: bool

    def __str__(self) -> str:
        return f"StepRange{{{self.elem}, {self.elem}}}" if self.step else f"UnitRange{{{self.elem}}}"


@dataclass(frozen=True, slots=True)
class StructT(JType):
    """A struct defined in the source, with its type parameters' values."""

    name: str
    params: tuple[Any, ...] = ()
    parents: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name + ("{" + ", ".join(map(str, self.params)) + "}" if self.params else "")


@dataclass(frozen=True, slots=True)
class ValT(JType):
    """`Val{value}`."""

    value: Any

    def __str__(self) -> str:
        return f"Val{{{self.value}}}"


@dataclass(frozen=True, slots=True)
class FuncT(JType):
    """The type of a function value; `key` tells functions apart."""

    key: Any

    def __str__(self) -> str:
        return "Function"


@dataclass(frozen=True, slots=True)
class TypeT(JType):
    """`Type{of}`: the type of a type."""

    of: Any

    def __str__(self) -> str:
        return f"Type{{{self.of}}}"


@dataclass(frozen=True, slots=True)
class OtherT(JType):
    """Nothing, Symbol, String, CartesianIndices and other types that exist at compile time only."""

    name: str
    detail: Any = None

    def __str__(self) -> str:
        return self.name


NOTHING = OtherT("Nothing")
SYMBOL = OtherT("Symbol")
STRING = OtherT("String")


@dataclass(frozen=True, slots=True)
class Abstract(JType):
    """An abstract type or a partly given one (`AbstractArray{Float32}`); `args` is what is given, None where free."""

    name: str
    args: tuple[Any, ...] = ()
    parents: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name + ("{" + ", ".join("_" if a is None else str(a) for a in self.args) + "}" if self.args else "")


@dataclass(frozen=True, slots=True)
class TypeVar(JType):
    """A `where` parameter with its upper bound, free while a method is matched."""

    name: str
    bound: JType

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class UnionT(JType):
    """`Union{members...}`."""

    members: tuple[JType, ...]

    def __str__(self) -> str:
        return "Union{" + ", ".join(map(str, self.members)) + "}"


@dataclass(frozen=True, slots=True)
class VarargT(JType):
    """`NTuple{n, elem}` or `Tuple{Vararg{elem}}` as an annotation; n None is free, a TypeVar is bound by matching."""

    n: Any
    elem: Any

    def __str__(self) -> str:
        return f"NTuple{{{self.n}, {self.elem}}}"


ANY = Abstract("Any")

_PARENTS = {
    "Signed": "Integer", "Unsigned": "Integer", "Integer": "Real", "AbstractFloat": "Real", "Real": "Number",
    "Number": "Any", "AbstractRange": "AbstractVector", "Function": "Any", "AbstractIrrational": "Real",
}  # fmt: skip
ABSTRACTS = frozenset(_PARENTS) | {
    "Any", "AbstractArray", "AbstractVector", "AbstractMatrix", "AbstractVecOrMat", "DenseArray", "Array", "Vector",
    "Matrix", "StridedArray", "Tuple", "NTuple", "Val", "Type", "DataType", "StaticArray", "StaticVector",
    "StaticMatrix", "SVector", "SMatrix", "SArray", "MVector", "MMatrix", "MArray", "Complex", "CartesianIndex",
    "NamedTuple", "UnitRange", "StepRange", "OrdinalRange", "AbstractUnitRange", "Union", "Ref",
    "CartesianIndices",
}  # fmt: skip
_ARRAYS = {"AbstractArray": None, "AbstractVector": 1, "AbstractMatrix": 2, "DenseArray": None, "StridedArray": None}
_CONCRETE_ARRAYS = {"Array": None, "Vector": 1, "Matrix": 2}
_STATIC = {"SVector": (1, False), "SMatrix": (2, False), "SArray": (None, False), "MVector": (1, True),
           "MMatrix": (2, True), "MArray": (None, True), "StaticVector": (1, None), "StaticMatrix": (2, None),
           "StaticArray": (None, None)}  # fmt: skip


def _prim_parents(t: Prim) -> tuple[str, ...]:
    if t.kind == "float":
        return ("AbstractFloat", "Real", "Number", "Any")
    if t.kind == "bool":
        return ("Integer", "Real", "Number", "Any")
    return ("Signed" if t.kind == "int" else "Unsigned", "Integer", "Real", "Number", "Any")


Bindings = dict[str, Any]


def match(value: Any, pattern: Any, bound: Bindings) -> bool:
    """Tell whether a type (or parameter value) is a subtype of `pattern`, binding the pattern's type variables."""
    if pattern is None or pattern == ANY:
        return True
    if isinstance(pattern, TypeVar):
        if pattern.name in bound:
            return bool(bound[pattern.name] == value)
        if isinstance(value, JType) and not match(value, pattern.bound, bound):
            return False
        bound[pattern.name] = value
        return True
    if isinstance(pattern, UnionT):
        return any(match(value, m, bound) for m in pattern.members)
    if not isinstance(pattern, JType) or not isinstance(value, JType):
        return type(value) is type(pattern) and bool(value == pattern)
    if isinstance(pattern, VarargT):
        return _match_vararg(value, pattern, bound)
    if isinstance(pattern, TypeT):
        return isinstance(value, TypeT) and match(value.of, pattern.of, bound)
    if isinstance(pattern, TupleT) and isinstance(value, TupleT) and pattern.names == value.names:
        return len(pattern.items) == len(value.items) and all(
            match(v, p, bound) for v, p in zip(value.items, pattern.items, strict=True)
        )
    if isinstance(pattern, StructT) and isinstance(value, StructT) and pattern.name == value.name:
        return all(match(v, p, bound) for v, p in zip(value.params, pattern.params, strict=False))
    if isinstance(pattern, Abstract):
        return _match_abstract(value, pattern, bound)
    return value == pattern


def _match_vararg(value: JType, pattern: VarargT, bound: Bindings) -> bool:
    if not isinstance(value, TupleT) or value.names is not None:
        return False
    if pattern.n is not None and not match(len(value.items), pattern.n, bound):
        return False
    return all(match(v, pattern.elem, bound) for v in value.items)


def _match_args(values: tuple[Any, ...], patterns: tuple[Any, ...], bound: Bindings) -> bool:
    return len(patterns) <= len(values) and all(match(v, p, bound) for v, p in zip(values, patterns, strict=False))


def _match_abstract(value: JType, pattern: Abstract, bound: Bindings) -> bool:
    name, args = pattern.name, pattern.args
    if isinstance(value, Prim):
        return name in _prim_parents(value)
    if isinstance(value, Abstract):
        return value == pattern or (not args and name in (*ancestors(value.name), *value.parents))
    if isinstance(value, ComplexT):
        return name == "Number" or (name == "Complex" and _match_args((value.elem,), args, bound))
    if isinstance(value, ArrayT):
        if name in ("Array", "Vector", "Matrix", *_ARRAYS):
            n = {**_ARRAYS, **_CONCRETE_ARRAYS}[name]
            if n is not None and n != value.ndim:
                return False
            return _match_args((value.elem,) if n is not None else (value.elem, value.ndim), args, bound)
        return name == "AbstractVecOrMat" and value.ndim in (1, 2) and _match_args((value.elem,), args, bound)
    if isinstance(value, StaticT):
        if name in _STATIC:
            n, mutable = _STATIC[name]
            if (n is not None and n != len(value.dims)) or (mutable is not None and mutable != value.mutable):
                return False
            params = {1: (value.dims[0], value.elem), 2: (*value.dims, value.elem)}.get(n or 0, ())
            return not args or _match_args(params, args, bound)
        if name in _ARRAYS:
            return match(ArrayT(value.elem, len(value.dims)), pattern, bound)
        return False
    if isinstance(value, RangeT):
        if name in ("AbstractVector", "AbstractArray", "AbstractRange", "OrdinalRange"):
            return _match_args((value.elem, 1), args, bound)
        return name in (("StepRange",) if value.step else ("UnitRange", "AbstractUnitRange"))
    if isinstance(value, TupleT):
        return (name == "NamedTuple") == (value.names is not None) and name in ("Tuple", "NamedTuple", "NTuple")
    if isinstance(value, CartesianT):
        return name == "CartesianIndex" and _match_args((value.n,), args, bound)
    if isinstance(value, ValT):
        return name == "Val" and _match_args((value.value,), args, bound)
    if isinstance(value, FuncT):
        return name == "Function"
    if isinstance(value, TypeT):
        return name in ("Type", "DataType") or (name == "Function" and False)
    if isinstance(value, OtherT):
        return name == value.name
    if isinstance(value, StructT):
        return name in value.parents
    return False


def ancestors(name: str) -> tuple[str, ...]:
    """Return an abstract type's name and those above it."""
    chain = [name]
    while chain[-1] in _PARENTS:
        chain.append(_PARENTS[chain[-1]])
    if chain[-1] != "Any":
        chain.append("Any")
    return tuple(chain)


def is_subtype(a: Any, b: Any) -> bool:
    """Tell whether annotation `a` is at least as narrow as `b` (type variables stand for their bounds)."""
    if isinstance(a, TypeVar):
        return (isinstance(b, TypeVar) and a.name == b.name) or is_subtype(a.bound, b)
    if isinstance(b, TypeVar):
        return is_subtype(a, b.bound) if b.bound != ANY else True
    if b is None or b == ANY:
        return True
    if isinstance(a, UnionT):
        return all(is_subtype(m, b) for m in a.members)
    if isinstance(b, UnionT):
        return any(is_subtype(a, m) for m in b.members)
    if isinstance(a, Abstract) and isinstance(b, Abstract):
        if a.name == b.name:
            return len(b.args) <= len(a.args) and all(is_subtype(x, y) for x, y in zip(a.args, b.args, strict=False))
        narrower = {"AbstractVector": "AbstractArray", "AbstractMatrix": "AbstractArray", "Vector": "AbstractVector",
                    "Matrix": "AbstractMatrix", "Array": "AbstractArray", "SVector": "StaticVector",
                    "StaticVector": "AbstractVector", "SMatrix": "AbstractMatrix",
                    "UnitRange": "AbstractRange"}  # fmt: skip
        seen = a.name
        while seen in narrower:
            seen = narrower[seen]
            if seen == b.name or (seen in _ARRAYS and b.name == "AbstractArray"):
                return all(is_subtype(x, y) for x, y in zip(a.args, b.args, strict=False)) or not b.args
        return b.name in (*ancestors(a.name), *a.parents) and not b.args
    if isinstance(a, (VarargT, TupleT)) and isinstance(b, Abstract):
        return b.name == ("NamedTuple" if isinstance(a, TupleT) and a.names is not None else "Tuple")
    if isinstance(a, TupleT) and isinstance(b, TupleT):
        return len(a.items) == len(b.items) and all(is_subtype(x, y) for x, y in zip(a.items, b.items, strict=True))
    if isinstance(a, TupleT) and isinstance(b, VarargT):
        return (not isinstance(b.n, int) or b.n == len(a.items)) and all(is_subtype(x, b.elem) for x in a.items)
    if isinstance(a, VarargT) and isinstance(b, VarargT):
        return (b.n is None or a.n == b.n or isinstance(b.n, TypeVar)) and is_subtype(a.elem, b.elem)
    if isinstance(a, TypeT) and isinstance(b, TypeT):
        return is_subtype(a.of, b.of)
    if isinstance(a, JType) and isinstance(b, JType):
        return match(a, b, {})
    return bool(a == b)


@lru_cache(maxsize=1024)
def promote(a: JType, b: JType) -> JType | None:
    """Return `promote_type(a, b)` for numbers, None where Julia has no common concrete type.

    >>> str(promote(INT64, FLOAT32)), str(promote(UINT32, INT32)), str(promote(UINT64, INT64))
    ('Float32', 'UInt32', 'UInt64')
    """
    if a == b:
        return a
    if isinstance(a, ComplexT) or isinstance(b, ComplexT):
        inner = promote(a.elem if isinstance(a, ComplexT) else a, b.elem if isinstance(b, ComplexT) else b)
        return ComplexT(inner) if isinstance(inner, Prim) else None
    if not isinstance(a, Prim) or not isinstance(b, Prim):
        return None
    if a.kind == "bool":
        return b
    if b.kind == "bool":
        return a
    if a.kind == "float" or b.kind == "float":
        if a.kind == b.kind:
            return a if a.bits > b.bits else b
        return a if a.kind == "float" else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return a if a.kind == "uint" else b
