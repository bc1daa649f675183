"""What the arguments of a call are, as far as compiled code depends on it: types, dimensions, layouts; no values or
shapes.

`classify` is the gate that every argument passes before anything is compiled or launched: what it lets through, an
engine can read; everything else is an `ArgumentError` that says what to pass instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from jlkern.devices import DeviceArray, is_array
from jlkern.errors import ArgumentError

Layout: TypeAlias = Literal["F", "C", "S"]

DTYPES: tuple[str, ...] = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
"""The element types that a kernel can take, by NumPy's names."""

PYTHON_SCALARS: dict[type, str] = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
"""What a plain Python number is in the kernel."""

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


# --- the kinds of argument ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArrayArg:
    """An array: "F" is column-major contiguous (as any contiguous 0-d or 1-d one is), "C" row-major, "S" strided."""

    dtype: str
    ndim: int
    layout: Layout

    def __str__(self) -> str:
        order = {"F": "" if self.ndim < 2 else ", order='F'", "C": ", order='C'", "S": ", strided"}[self.layout]
        return f"{self.dtype}[{', '.join(':' * self.ndim)}{order}]"


@dataclass(frozen=True, slots=True)
class ScalarArg:
    """A number, by value."""

    dtype: str

    def __str__(self) -> str:
        return self.dtype


@dataclass(frozen=True, slots=True)
class TupleArg:
    """A tuple of numbers, or of such tuples."""

    items: tuple[ArgType, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))}{',' if len(self.items) == 1 else ''})"


@dataclass(frozen=True, slots=True)
class TypeArg:
    """A number type handed to the kernel as a `Type`."""

    dtype: str

    def __str__(self) -> str:
        return f"Type[{self.dtype}]"


@dataclass(frozen=True, slots=True)
class FunctionArg:
    """A Julia function, by name."""

    name: str

    def __str__(self) -> str:
        return f"julia({self.name!r})"


@dataclass(frozen=True, slots=True)
class ValArg:
    """A compile-time constant, Julia's `Val(value)`. `kind` keeps `Val(1)`, `Val(1.0)` and `Val(true)` apart."""

    value: ValValue
    kind: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", _kind(self.value))

    def __str__(self) -> str:
        return f"Val({self.value!r})"


ValValue: TypeAlias = "bool | int | float | str | tuple[Any, ...]"
ArgType: TypeAlias = "ArrayArg | ScalarArg | TupleArg | TypeArg | FunctionArg | ValArg"
Signature: TypeAlias = "tuple[ArgType, ...]"


def _kind(value: ValValue) -> str:
    """Return the nested type names of a constant: equal constants of different types must compile differently."""
    if isinstance(value, tuple):
        return f"({','.join(map(_kind, value))})"
    return type(value).__name__


# --- what users write for arguments that are no array or number -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Val:
    """A compile-time constant for a kernel parameter `::Val{N}` that is not tuned.

    >>> Val(3)
    Val(value=3)
    """

    value: ValValue

    def __post_init__(self) -> None:
        if not _is_constant(self.value):
            raise ArgumentError(
                f"Val({self.value!r}): a Val holds a bool, int, float, str or tuples, not {_kind_of(self.value)}"
            )


def _is_constant(value: object) -> bool:
    if type(value) is tuple:
        return all(map(_is_constant, value))
    return type(value) in (bool, int, float, str)


@dataclass(frozen=True, slots=True)
class JuliaFunction:
    """A Julia function as an argument; `jlkern.julia` makes it."""

    name: str


_FUNCTION = re.compile(r"[^\W\d]\w*!?(\.[^\W\d]\w*!?)*|[-+*/\\^%÷<>=!&|~⊻≤≥≠√]+")


def julia(name: str) -> JuliaFunction:
    """Name a Julia function to pass to a kernel that takes a function.

    Parameters
    ----------
    name
        The function's name in Julia, or an operator.

    Returns
    -------
    JuliaFunction
        What to pass as the argument. The name is part of the key: each function gets its own compiled code and tuning.

    >>> julia("abs2")
    JuliaFunction(name='abs2')
    """
    if not isinstance(name, str) or not _FUNCTION.fullmatch(name):
        raise ArgumentError(f"julia({name!r}): pass the name of a Julia function or an operator, as julia('abs2')")
    return JuliaFunction(name)


@dataclass(frozen=True, slots=True)
class Array:
    """An array by description, for `jlkern.precompile`: no memory behind it.

    Parameters
    ----------
    dtype
        Element type, anything `numpy.dtype` takes.
    shape
        The shape, an int or a tuple.
    order
        "C" (NumPy's default), "F", or "S" for a strided view.

    >>> Array("float32", (480, 640))
    Array(dtype='float32', shape=(480, 640), order='C')
    """

    dtype: str
    shape: tuple[int, ...]
    order: Literal["C", "F", "S"] = "C"

    def __init__(self, dtype: Any, shape: int | tuple[int, ...], order: Literal["C", "F", "S"] = "C") -> None:
        try:
            plain = np.dtype(dtype)
        except TypeError as error:
            raise ArgumentError(f"Array: {dtype!r} is not a NumPy dtype") from error
        sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 0 for n in sizes):
            raise ArgumentError(f"Array: the shape is an int or a tuple of non-negative ints, not {shape!r}")
        if order not in ("C", "F", "S"):
            raise ArgumentError(f"Array: order must be 'C', 'F' or 'S' (a strided view), not {order!r}")
        object.__setattr__(self, "dtype", _dtype_name("Array", plain))
        object.__setattr__(self, "shape", tuple(int(n) for n in sizes))
        object.__setattr__(self, "order", order)

    def empty(self) -> np.ndarray[Any, Any]:
        """Return a new uninitialised array of this description."""
        if self.order == "S" and self.shape:
            # every second element along the first dimension, and room so that even a length of 1 stays a view
            return np.empty((2 * self.shape[0] + 2, *self.shape[1:]), self.dtype, order="F")[1:-1:2]
        return np.empty(self.shape, self.dtype, order="F" if self.order == "F" else "C")


# --- the gate -------------------------------------------------------------------------------------------------------


def classify(name: str, value: object) -> ArgType:
    """Return what an argument is to a kernel.

    Parameters
    ----------
    name
        The parameter's name, for messages.
    value
        What the caller passed.

    Returns
    -------
    ArgType

    Raises
    ------
    ArgumentError
        The value is of a kind that no kernel can take.
    """
    if isinstance(value, np.ndarray):
        return _classify_array(name, value)
    if isinstance(value, DeviceArray):
        return _classify_device_array(name, value)
    if isinstance(value, np.generic):
        if isinstance(value, (np.void, np.character, np.datetime64, np.timedelta64)):
            raise ArgumentError(
                f"argument {name!r}: a NumPy {type(value).__name__} is not a number; pass numbers or arrays"
            )
        return ScalarArg(_dtype_name(name, value.dtype))
    kind = PYTHON_SCALARS.get(type(value))
    if kind is not None:
        if kind == "int64" and not INT64_MIN <= value <= INT64_MAX:  # type: ignore[operator]
            raise ArgumentError(
                f"argument {name!r}: {value} does not fit Int64, which a Python int is in a kernel; "
                "pass a NumPy scalar of a wider type, as np.uint64(...), or a float"
            )
        return ScalarArg(kind)
    if type(value) is tuple:
        try:
            return TupleArg(tuple(_classify_item(name, item) for item in value))
        except RecursionError:
            raise ArgumentError(f"argument {name!r}: the tuple is nested too deeply") from None
    if isinstance(value, np.dtype):
        return TypeArg(_dtype_name(name, value))
    if isinstance(value, type):
        return _classify_type(name, value)
    if isinstance(value, JuliaFunction):
        return FunctionArg(value.name)
    if isinstance(value, Val):
        return ValArg(value.value)
    raise ArgumentError(f"argument {name!r}: {_advice(value)}")


def check_written(name: str, value: object) -> None:
    """Check that a kernel can write an argument.

    Raises
    ------
    ArgumentError
        The array is read-only, or several of its elements share one place in memory.
    """
    if not is_array(value):
        raise ArgumentError(f"argument {name!r}: the kernel writes it, so it must be an array, not {_kind_of(value)}")
    array: Any = value
    if not (array.writeable if isinstance(value, DeviceArray) else array.flags.writeable):
        raise ArgumentError(
            f"argument {name!r}: the kernel writes it, and the array is read-only; pass a writable array or a copy"
        )
    if (
        array.size
        and 0 in array.strides
        and any(step == 0 and size > 1 for step, size in zip(array.strides, array.shape, strict=True))
    ):
        raise ArgumentError(
            f"argument {name!r}: the kernel writes it, and this is a broadcast view whose elements share memory "
            f"(shape {array.shape}, strides {array.strides}); pass a copy"
        )


def scalar_dtype(kind: object) -> str | None:
    """Return the name of a scalar class or dtype that a kernel can take, as `np.float32` or `float`, else None."""
    if isinstance(kind, np.dtype):
        return kind.name if kind.name in DTYPES and kind.isnative else None
    if not isinstance(kind, type):
        return None
    if kind in PYTHON_SCALARS:
        return PYTHON_SCALARS[kind]
    # abstract classes such as np.floating are no type for a kernel, and np.dtype() of them warns
    if issubclass(kind, np.generic) and kind not in _ABSTRACT:
        name = np.dtype(kind).name
        return name if name in DTYPES else None
    return None


_ABSTRACT: frozenset[type] = frozenset((
    *(np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating),
    *(np.complexfloating, np.flexible, np.character),
))  # fmt: skip


def _classify_array(name: str, value: np.ndarray[Any, Any]) -> ArrayArg:
    kind = type(value)
    if kind is not np.ndarray:
        if isinstance(value, np.ma.MaskedArray):
            raise ArgumentError(
                f"argument {name!r}: a masked array; pass x.data, and the mask as an array of its own, or x.filled(...)"
            )
        if kind.__array_ufunc__ is not np.ndarray.__array_ufunc__:
            # such a class gives its numbers a meaning (units, uncertainty) that the memory alone has not
            raise ArgumentError(
                f"argument {name!r}: a {kind.__name__} has arithmetic of its own; pass its numbers, x.view(np.ndarray)"
            )
    dtype, flags = value.dtype, value.flags
    text = _dtype_name(name, dtype)
    if not dtype.isnative:
        raise ArgumentError(
            f"argument {name!r}: not in this machine's byte order; pass x.astype(x.dtype.newbyteorder('='))"
        )
    if not flags.aligned:
        raise ArgumentError(f"argument {name!r}: the array is not aligned in memory; pass x.copy()")
    layout: Layout = "F" if flags.f_contiguous else "C" if flags.c_contiguous else "S"
    if layout == "S":
        _check_steps(name, value.shape, value.strides, dtype.itemsize)
    return ArrayArg(text, value.ndim, layout)


def _classify_device_array(name: str, value: DeviceArray) -> ArrayArg:
    dtype = value.dtype
    text = _dtype_name(name, dtype)
    if not dtype.isnative:
        raise ArgumentError(f"argument {name!r}: not in this machine's byte order; pass x.astype({text!r})")
    if value.size and value.pointer % min(dtype.itemsize, 8):
        raise ArgumentError(f"argument {name!r}: the array is not aligned in memory; pass x.copy()")
    layout: Layout = "F" if value.contiguous("F") else "C" if value.contiguous("C") else "S"
    if layout == "S":
        _check_steps(name, value.shape, value.strides, dtype.itemsize)
    return ArrayArg(text, value.ndim, layout)


def _check_steps(name: str, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> None:
    if any(step % itemsize and n > 1 for step, n in zip(strides, shape, strict=True)):
        raise ArgumentError(
            f"argument {name!r}: its strides {strides} are no multiples of its item size {itemsize} "
            "(as a field of a structured array has them); pass x.copy()"
        )


def _classify_item(name: str, item: object) -> ArgType:
    kind = classify(name, item)
    if not isinstance(kind, (ScalarArg, TupleArg)):
        raise ArgumentError(f"argument {name!r}: a tuple may hold numbers and tuples of numbers, not {_kind_of(item)}")
    return kind


def _classify_type(name: str, value: type) -> TypeArg:
    dtype = scalar_dtype(value)
    if dtype is None:
        raise ArgumentError(f"argument {name!r}: {value.__name__} is no number type; pass one such as np.float32")
    return TypeArg(dtype)


def _dtype_name(name: str, dtype: np.dtype[Any]) -> str:
    text = str(dtype.name)
    if text in DTYPES:
        return text
    if dtype.kind == "V" and dtype.names:
        reason, advice = "a structured dtype", "pass its fields as arrays of their own, x['field'].copy()"
    elif dtype.kind in "mM":
        reason, advice = f"dtype {text}", "pass x.view(np.int64), and mind the unit"
    elif dtype.kind == "O":
        reason, advice = "Python objects", "pass an array of numbers, x.astype(np.float64)"
    elif dtype.kind in "SUT":
        reason, advice = "text", "pass an array of numbers"
    else:
        reason, advice = (
            f"dtype {text}",
            "no kernel can take it; pass x.astype(np.float64) or another of " + ", ".join(DTYPES),
        )
    raise ArgumentError(f"argument {name!r}: {reason}; {advice}")


def _kind_of(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _advice(value: object) -> str:
    """Say what to pass instead of a value that no kernel can take."""
    if value is None:
        return "None is no argument for a kernel; pass an array or a number"
    if isinstance(value, (list, range)):
        return f"a {type(value).__name__} is no array; pass np.array(...) of it, or a tuple for a few numbers"
    if isinstance(value, (str, bytes)):
        return "text is no argument; pass jlkern.julia(name) for a Julia function, jlkern.Val(text) for a Symbol"
    if isinstance(value, tuple):
        return f"a {type(value).__name__} is a tuple of another kind; pass tuple(...) of it"
    for kind in PYTHON_SCALARS:
        if isinstance(value, kind):
            return f"a {type(value).__name__} is no plain {kind.__name__}; pass {kind.__name__}(...) of it"
    if callable(value):
        return "a Python function cannot run in a kernel; pass jlkern.julia(name) for a Julia function"
    if hasattr(value, "__array__"):
        return f"a {type(value).__name__} is no NumPy array; pass np.asarray(...) of it"
    return f"{_kind_of(value)} is no argument for a kernel; pass arrays, numbers, tuples of numbers or types"
