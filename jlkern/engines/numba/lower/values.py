"""What an expression is while a kernel is lowered: scalars of the SIMT form, and what only exists until then.

Tuples, structs, complex numbers, static vectors are trees whose leaves are scalars; functions, types and symbols are
known at compile time. `leaves` and `rebuild` take such a tree apart and put it together again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from jlkern.engines.numba.lower import simt
from jlkern.engines.numba.lower.types import (
    BOOL,
    FLOAT64,
    INT64,
    NOTHING,
    STRING,
    SYMBOL,
    ArrayT,
    CartesianT,
    ComplexT,
    FuncT,
    JType,
    OtherT,
    Prim,
    RangeT,
    StaticT,
    StructT,
    TupleT,
    TypeT,
    UnionT,
    ValT,
)
from jlkern.syntax.nodes import FunctionDef, Lambda, StructDef


@dataclass(frozen=True, slots=True)
class Value:
    """Base of the values."""


@dataclass(frozen=True, slots=True)
class Scalar(Value):
    """A number: an expression of the SIMT form, and its value where that is known."""

    type: Prim
    expr: simt.Expr
    const: Any = None

    @property
    def is_const(self) -> bool:
        return self.const is not None


def constant(value: Any, ty: Prim) -> Scalar:
    """Return a scalar whose value is known."""
    return Scalar(ty, simt.Lit(value, ty.numpy), value)


def int64(value: int) -> Scalar:
    """Return a known Int64."""
    return constant(value, INT64)


TRUE = constant(True, BOOL)
FALSE = constant(False, BOOL)


@dataclass(frozen=True, slots=True)
class Irrational(Value):
    """`π` and `ℯ`: a number that takes the precision of what it meets."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Complex(Value):
    """A complex number."""

    re: Scalar
    im: Scalar


@dataclass(frozen=True, slots=True)
class Tuple(Value):
    """A tuple, or a NamedTuple with `names`."""

    items: tuple[Value, ...]
    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Cartesian(Value):
    """A CartesianIndex."""

    items: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Static(Value):
    """An SVector, SMatrix or SArray: its elements in column-major order; `adjoint` marks a vector's transpose."""

    dims: tuple[int, ...]
    items: tuple[Value, ...]
    adjoint: bool = False


@dataclass(frozen=True, slots=True)
class Struct(Value):
    """An instance of a struct of the source."""

    definition: StructDef = field(compare=False)
    type: StructT
    fields: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Nothing(Value):
    """`nothing`."""


@dataclass(frozen=True, slots=True)
class Symbol(Value):
    """A symbol known at compile time."""

    name: str


@dataclass(frozen=True, slots=True)
class Text(Value):
    """A string; parts that are values are printed in error messages only."""

    parts: tuple[str | Value, ...]


@dataclass(frozen=True, slots=True)
class TypeValue(Value):
    """A type used as a value."""

    type: Any


@dataclass(frozen=True, slots=True)
class ValValue(Value):
    """`Val(value)`: value is a Python int, bool, float, `Symbol` name (str) or tuple of these."""

    value: Any


@dataclass(frozen=True, slots=True)
class Range(Value):
    """A range of integers, both ends inclusive; `step` None is 1."""

    start: Scalar
    stop: Scalar
    step: Scalar | None = None

    @property
    def elem(self) -> Prim:
        return self.start.type


@dataclass(frozen=True, slots=True)
class CartesianRange(Value):
    """`CartesianIndices`: one range per dimension."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Zipped(Value):
    """`zip` and `enumerate` of what has no length known at compile time."""

    parts: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class LinearRange(Value):
    """`LinearIndices` of the sizes."""

    dims: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Array(Value):
    """An array: an argument, a view of one, `@localmem`, `@private` or an MVector.

    `strides` and `offset` are in elements of `elem` and make the address; `shape` the bounds. `linear` says that the
    elements lie in column-major order without gaps, so that one index reaches all.
    """

    name: str
    elem: Prim | ComplexT
    memory: simt.Memory
    shape: tuple[Scalar, ...]
    strides: tuple[simt.Expr, ...]
    offset: simt.Expr
    linear: bool
    writable: bool = True
    static: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Function(Value):
    """A function of the source by name (with its methods), or a built-in one."""

    name: str
    methods: tuple[FunctionDef, ...] = ()
    builtin: bool = False


@dataclass(frozen=True, slots=True)
class Closure(Value):
    """An anonymous or nested function with the scope that it was made in."""

    definition: Lambda | FunctionDef = field(compare=False)
    scope: Any = field(compare=False)
    key: int = 0
    inbounds: bool = False


@dataclass(frozen=True, slots=True)
class Composed(Value):
    """`f ∘ g`, `Base.Fix1`, `Base.Fix2`, `!f`: a function made of others by `call`."""

    call: Callable[..., Value] = field(compare=False)
    key: Any = None


@dataclass(frozen=True, slots=True)
class Namespace(Value):
    """A module name: `Base`, `KernelAbstractions`, ..."""

    name: str


@dataclass(frozen=True, slots=True)
class Pair(Value):
    """`a => b`."""

    first: Value
    second: Value


@dataclass(frozen=True, slots=True)
class Union(Value):
    """A value of one of several types, as Julia's small unions: `tag` says at run time which option it is.

    The options' numbers are the context's, one for each type (`Context.kind`).
    """

    tag: Scalar
    options: tuple[tuple[int, Value], ...]


@dataclass(frozen=True, slots=True)
class Unstable(Value):
    """A variable that has no single type here; using it is an error that says why."""

    reason: str


def type_of(value: Value) -> Any:
    """Return the Julia type of a value."""
    if isinstance(value, Scalar):
        return value.type
    if isinstance(value, Complex):
        return ComplexT(value.re.type)
    if isinstance(value, Tuple):
        return TupleT(tuple(type_of(v) for v in value.items), value.names)
    if isinstance(value, Cartesian):
        return CartesianT(len(value.items))
    if isinstance(value, Static):
        return StaticT(value.dims, type_of(value.items[0]) if value.items else FLOAT64)
    if isinstance(value, Struct):
        return value.type
    if isinstance(value, Array):
        if value.static is not None:
            return StaticT(value.static, value.elem, True)
        return ArrayT(value.elem, len(value.shape))
    if isinstance(value, Range):
        return RangeT(value.elem, value.step is not None)
    if isinstance(value, ValValue):
        return ValT(value.value)
    if isinstance(value, TypeValue):
        return TypeT(value.type)
    if isinstance(value, Symbol):
        return SYMBOL
    if isinstance(value, Text):
        return STRING
    if isinstance(value, Nothing):
        return NOTHING
    if isinstance(value, Function):
        return FuncT((value.name, value.builtin))
    if isinstance(value, Closure):
        return FuncT(("closure", value.key))
    if isinstance(value, Composed):
        return FuncT(("composed", value.key))
    if isinstance(value, Irrational):
        return OtherT("Irrational", value.name)
    if isinstance(value, CartesianRange):
        return OtherT("CartesianIndices", len(value.ranges))
    if isinstance(value, Zipped):
        return OtherT("Zip", tuple(type_of(v) for v in value.parts))
    if isinstance(value, LinearRange):
        return OtherT("LinearIndices", len(value.dims))
    if isinstance(value, Pair):
        return OtherT("Pair", (type_of(value.first), type_of(value.second)))
    if isinstance(value, Namespace):
        return OtherT("Module", value.name)
    if isinstance(value, Union):
        return UnionT(tuple(type_of(option) for _, option in value.options))
    return OtherT(type(value).__name__)


def leaves(value: Value) -> Iterator[Scalar]:
    """Yield the scalars that a value is made of; shapes of views and ends of ranges too."""
    if isinstance(value, Scalar):
        yield value
    elif isinstance(value, Complex):
        yield value.re
        yield value.im
    elif isinstance(value, (Tuple, Static, Cartesian)):
        for item in value.items:
            yield from leaves(item)
    elif isinstance(value, Struct):
        for item in value.fields:
            yield from leaves(item)
    elif isinstance(value, Range):
        yield value.start
        yield value.stop
        if value.step is not None:
            yield value.step
    elif isinstance(value, (CartesianRange, Zipped)):
        for item in value.ranges if isinstance(value, CartesianRange) else value.parts:
            yield from leaves(item)
    elif isinstance(value, Pair):
        yield from leaves(value.first)
        yield from leaves(value.second)
    elif isinstance(value, Union):
        yield value.tag
        for _, option in value.options:
            yield from leaves(option)
    elif isinstance(value, Array):
        yield from value.shape
        for expr in (*value.strides, value.offset):
            yield Scalar(INT64, expr, expr.value if isinstance(expr, simt.Lit) else None)


def rebuild(value: Value, scalars: Iterator[Scalar]) -> Value:
    """Return `value` with its leaves replaced, in the order of `leaves`."""
    if isinstance(value, Scalar):
        return next(scalars)
    if isinstance(value, Complex):
        return Complex(next(scalars), next(scalars))
    if isinstance(value, (Tuple, Static)):
        return replace(value, items=tuple(rebuild(v, scalars) for v in value.items))
    if isinstance(value, Cartesian):
        return Cartesian(tuple(next(scalars) for _ in value.items))
    if isinstance(value, Struct):
        return replace(value, fields=tuple(rebuild(v, scalars) for v in value.fields))
    if isinstance(value, Range):
        start, stop = next(scalars), next(scalars)
        return Range(start, stop, None if value.step is None else next(scalars))
    if isinstance(value, CartesianRange):
        return CartesianRange(tuple(_range(rebuild(r, scalars)) for r in value.ranges))
    if isinstance(value, Zipped):
        return Zipped(tuple(rebuild(v, scalars) for v in value.parts))
    if isinstance(value, Pair):
        return Pair(rebuild(value.first, scalars), rebuild(value.second, scalars))
    if isinstance(value, Union):
        tag = next(scalars)
        return Union(tag, tuple((kind, rebuild(option, scalars)) for kind, option in value.options))
    if isinstance(value, Array):
        shape = tuple(next(scalars) for _ in value.shape)
        strides = tuple(next(scalars).expr for _ in value.strides)
        return replace(value, shape=shape, strides=strides, offset=next(scalars).expr)
    return value


def _range(value: Value) -> Range:
    assert isinstance(value, Range)
    return value


def same_shape(a: Value, b: Value) -> bool:
    """Tell whether two values have the same type, and are the same where they exist at compile time only."""
    if isinstance(a, Array) and isinstance(b, Array):
        return a.memory == b.memory and len(a.shape) == len(b.shape) and a.linear == b.linear and a.elem == b.elem
    if isinstance(a, (Tuple, Static)) and isinstance(b, (Tuple, Static)):
        return (
            type(a) is type(b)
            and len(a.items) == len(b.items)
            and getattr(a, "dims", None) == getattr(b, "dims", None)
            and getattr(a, "names", None) == getattr(b, "names", None)
            and all(same_shape(x, y) for x, y in zip(a.items, b.items, strict=True))
        )
    if isinstance(a, Struct) and isinstance(b, Struct):
        return a.type == b.type and all(same_shape(x, y) for x, y in zip(a.fields, b.fields, strict=True))
    if isinstance(a, Union) and isinstance(b, Union):
        return [k for k, _ in a.options] == [k for k, _ in b.options]
    if next(leaves(a), None) is None:
        return a == b
    return type(a) is type(b) and bool(type_of(a) == type_of(b))


def canonical(value: Any) -> Any:
    """Return a compile-time value (of a `Val`, a type parameter, a tunable) in Python's own terms."""
    if isinstance(value, Scalar) and value.is_const:
        return value.const
    if isinstance(value, Symbol):
        return Symbol(value.name)
    if isinstance(value, Tuple):
        items = tuple(canonical(v) for v in value.items)
        return None if any(v is None for v in items) else items
    if isinstance(value, TypeValue):
        return value.type
    if isinstance(value, (Nothing, Function, ValValue)):
        return value
    return None


def from_canonical(value: Any) -> Value:
    """Return the value that a compile-time value stands for."""
    if isinstance(value, Value):
        return value
    if isinstance(value, bool):
        return constant(value, BOOL)
    if isinstance(value, int):
        return constant(value, INT64)
    if isinstance(value, float):
        return constant(value, FLOAT64)
    if isinstance(value, str):
        return Symbol(value)
    if isinstance(value, tuple):
        return Tuple(tuple(from_canonical(v) for v in value))
    if isinstance(value, JType):
        return TypeValue(value)
    raise TypeError(f"no compile-time value: {value!r}")
