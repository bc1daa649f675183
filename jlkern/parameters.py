"""The Python side of a kernel's parameters: names, defaults, annotations that convert, and the signature users see."""

from __future__ import annotations

import dis
import inspect
import keyword
import sys
import types
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Union, get_args, get_origin

import numpy as np

from jlkern.errors import ArgumentError, SignatureError
from jlkern.signature import scalar_dtype

RESERVED = ("ndrange", "config")


@dataclass(frozen=True)
class Parameters:
    """The parameters of a kernel in order. `converts` maps a name to the dtype that its annotation asks for."""

    names: tuple[str, ...]
    signature: inspect.Signature
    converts: Mapping[str, str]

    def __str__(self) -> str:
        """Return the parameters as the user wrote them: annotations that are text stand without quotes."""
        listed = [p.replace(annotation=_bare(p.annotation)) for p in self.signature.parameters.values()]
        returns = _bare(self.signature.return_annotation)
        return str(self.signature.replace(parameters=listed, return_annotation=returns))

    def full_signature(self) -> inspect.Signature:
        """Return the signature with the keywords that every call takes."""
        extra = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in RESERVED]
        return self.signature.replace(parameters=[*self.signature.parameters.values(), *extra])

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the arguments of a call in order, defaults filled in. Raises `TypeError` as a Python function does."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments[name] for name in self.names)

    def convert(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments with annotated scalars converted."""
        if not self.converts:
            return args
        return tuple(
            convert(name, value, self.converts[name]) if name in self.converts else value
            for name, value in zip(self.names, args, strict=True)
        )


def parameters_of(function: Callable[..., Any]) -> Parameters:
    """Return the parameters of a decorated Python function.

    Raises
    ------
    SignatureError
        `*args` or `**kwargs`, or a parameter named like a keyword of every call.
    """
    try:
        signature = _signature(function)
    except (TypeError, ValueError):
        raise SignatureError(f"{function!r} has no signature to take the parameters from") from None
    where = getattr(function, "__qualname__", repr(function))
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise SignatureError(f"{where} takes {parameter}; name every data parameter of the kernel, in order")
        if name in RESERVED:
            raise SignatureError(
                f"{where}: every call takes the keyword {name}=, so no parameter may be named {name!r}"
            )
    names = tuple(signature.parameters)
    converts = {
        name: dtype
        for name, parameter in signature.parameters.items()
        if parameter.annotation is not parameter.empty
        and (dtype := _conversion(parameter.annotation, function)) is not None
    }
    return Parameters(names, signature, converts)


def check_body(function: types.FunctionType, signature: inspect.Signature) -> None:
    """Check that a decorated function's body is empty: what runs is the source, code here would be lost silently."""
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise SignatureError(f"{function.__qualname__} is a coroutine or generator; a kernel is a plain function")
    loads = (i for i in dis.get_instructions(code) if i.opname in ("LOAD_CONST", "RETURN_CONST"))
    if not set(code.co_code[::2]) <= _EMPTY_BODY or any(load.argval is not None for load in loads):
        raise SignatureError(
            f"{function.__qualname__} has code in its body, which would never run; leave only the docstring "
            "(or `...`), the kernel's source is what runs"
        )
    returns = signature.return_annotation
    if returns not in (None, "None", types.NoneType, inspect.Signature.empty):
        raise SignatureError(
            f"{function.__qualname__} returns {returns!r}; a kernel writes into its arrays: write -> None"
        )


_EMPTY_BODY = frozenset(
    dis.opmap[name]
    for name in ("CACHE", "RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "COPY_FREE_VARS", "NOT_TAKEN")
    if name in dis.opmap
)


class _Bare(str):
    """Text whose repr is itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _bare(annotation: object) -> object:
    return _Bare(annotation) if isinstance(annotation, str) else annotation


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return a signature; annotations that cannot be evaluated (names for type checkers only) stay as they are."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(function)


def parameters_named(names: tuple[str | None, ...]) -> Parameters:
    """Return parameters with Julia's names; one that is no identifier in Python becomes `arg1`, `arg2`, ..."""
    chosen: list[str] = []
    for place, name in enumerate(names, 1):
        usable = (
            name is not None
            and name.isidentifier()
            and not keyword.iskeyword(name)
            and unicodedata.normalize("NFKC", name) == name
            and name not in chosen
        )
        chosen.append(name if usable and name is not None else f"arg{place}")
    for name in chosen:
        if name in RESERVED:
            raise SignatureError(
                f"every call takes the keyword {name}=, so no parameter may be named {name!r}; "
                "rename it in the source, or decorate a Python function that gives it another name"
            )
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return Parameters(tuple(chosen), inspect.Signature([inspect.Parameter(name, kind) for name in chosen]), {})


def convert(name: str, value: object, dtype: str) -> Any:
    """Convert an argument to its parameter's annotated scalar type, as `a: np.float32` asks.

    Raises
    ------
    ArgumentError
        The value is not a number, or does not fit the type (ints out of range, complex to real, fractions to int).

    >>> convert("a", 0.5, "float32")
    np.float32(0.5)
    """
    kind = np.dtype(dtype)
    if isinstance(value, np.ndarray) and value.ndim == 0 and not isinstance(value, np.ma.MaskedArray):
        value = value[()]
    if not isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        raise ArgumentError(f"argument {name!r}: annotated as {dtype}, so it must be a number, not {value!r:.60}")
    try:
        if kind.kind in "iu":
            exact = int(value)  # type: ignore[arg-type]
            if exact != value or not np.iinfo(kind).min <= exact <= np.iinfo(kind).max:
                raise ValueError
            return kind.type(exact)
        if kind.kind == "b" and value not in (0, 1):
            raise ValueError
        if kind.kind != "c" and isinstance(value, (complex, np.complexfloating)):
            raise ValueError
        with np.errstate(over="ignore"):
            return kind.type(value)
    except (ValueError, OverflowError, TypeError):
        raise ArgumentError(f"argument {name!r}: {value!r} does not fit {dtype}, the type in the annotation") from None


def _conversion(annotation: object, function: Callable[..., Any]) -> str | None:
    """Return the dtype that an annotation converts to, else None.

    Only NumPy's scalar classes and dtypes convert, alone or in a union with Python's numbers (`np.float32 | float`):
    `float` and `int` are how type checkers spell "a number", and converting to them would widen a NumPy scalar.
    """
    members = _members(annotation, function)
    numpy = [m for m in members if (isinstance(m, type) and issubclass(m, np.generic)) or isinstance(m, np.dtype)]
    others = [m for m in members if not any(m is n for n in numpy)]
    if len(numpy) != 1 or not all(m in (bool, int, float, complex) for m in others):
        return None
    return scalar_dtype(numpy[0])


def _members(annotation: object, function: Callable[..., Any]) -> list[object]:
    """Return what an annotation names, a union split up. Text is looked up name by name, never evaluated."""
    if isinstance(annotation, str):
        return [_look_up(part.strip(), function) for part in annotation.split("|")]
    if get_origin(annotation) is Union or type(annotation).__name__ == "UnionType":
        return list(get_args(annotation))
    return [annotation]


def _look_up(text: str, function: Callable[..., Any]) -> object:
    first, *rest = text.split(".")
    scope = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    try:
        found = scope[first].cell_contents if first in scope else _global(first, function)
        for name in rest:
            found = getattr(found, name)
    except (AttributeError, KeyError, ValueError):
        return None
    return found


def _global(name: str, function: Callable[..., Any]) -> Any:
    namespace = function.__globals__
    if name in namespace:
        return namespace[name]
    return {"bool": bool, "int": int, "float": float, "complex": complex}[name]
