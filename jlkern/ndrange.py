"""How many work-items a call launches: the forms of `ndrange=`, and the default where the source proves it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jlkern.devices import is_array
from jlkern.errors import NDRangeError, close_to
from jlkern.space import Params, call_named

Sizes = tuple[int, ...]

# One item of a tuple, or the whole option: a function of everything that a call knows, by name.
_Part = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class NDRange:
    """A rule that gives a call's ndrange from its arguments and tunables.

    `scalars` are the parameters whose values the ndrange follows from, so that they belong to the key of a call;
    `dynamic` rules hold callables, which are asked on every call; `tunables` are the tunables that the rule reads.
    """

    text: str
    scalars: frozenset[str]
    tunables: frozenset[str]
    dynamic: bool
    _wanted: tuple[tuple[str, int], ...]
    _evaluate: Callable[[Mapping[str, Any]], Sizes]

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that the rule reads."""
        return tuple(name for name, _ in self._wanted)

    def __call__(self, args: tuple[Any, ...], params: Params) -> Sizes:
        """Return the ndrange of a call. Raises `NDRangeError` when the rule does not give non-negative ints."""
        return self._evaluate({**params, **{name: args[i] for name, i in self._wanted}})


def check_sizes(raw: object, what: str) -> Sizes:
    """Return an int or a tuple of ints as a tuple of plain non-negative ints.

    >>> check_sizes(5, "ndrange=")
    (5,)
    """
    items = raw if isinstance(raw, (tuple, list)) else (raw,)
    if any(isinstance(item, str) for item in items):
        raise NDRangeError(
            f"{what} gives {raw!r}; a call takes sizes, ints or a tuple of ints: names of parameters and tunables go "
            "into the decorator's ndrange="
        )
    if not items:
        raise NDRangeError(f"{what} gives an empty tuple; it must have a size for each dimension")
    return tuple(_size(item, raw, what) for item in items)


def make_ndrange(option: object, names: tuple[str, ...], tunables: tuple[str, ...]) -> NDRange:
    """Return the rule that `ndrange=` asks for.

    Parameters
    ----------
    option
        A parameter's name (its shape), a tuple of ints, names of scalar parameters, names of tunables or callables, or
        one int or callable.
    names
        The Python names of the kernel's parameters.
    tunables
        The tunables' names.

    Raises
    ------
    NDRangeError
        A name is unknown, or the option is of a wrong kind.
    """
    if isinstance(option, str):
        if option in names:
            return shape_of(option, names)
        if option not in tunables:
            raise NDRangeError(_unknown(option, names, tunables))
        option = (option,)
    if callable(option) or not isinstance(option, (tuple, list)):
        option = (option,)
        whole = True
    else:
        whole = False
    if not option:
        raise NDRangeError("ndrange= is an empty tuple; give a size for each dimension")
    parts: list[_Part] = []
    wanted: set[str] = set()
    scalars: set[str] = set()
    dynamic = False
    for item in option:
        if isinstance(item, str):
            if item not in names and item not in tunables:
                raise NDRangeError(_unknown(item, names, tunables))
            if item in names:
                scalars.add(item)
            wanted.add(item)
            parts.append(_named(item))
        elif callable(item):
            call = call_named(item, (*names, *tunables), "ndrange=")
            wanted.update(call.names)
            dynamic = True
            parts.append(call)
        else:
            parts.append(_constant(_size(item, option, "ndrange=")))

    def evaluate(known: Mapping[str, Any]) -> Sizes:
        if whole:
            return check_sizes(parts[0](known), "ndrange=")
        raw = tuple(part(known) for part in parts)
        return tuple(_size(item, raw, "ndrange=") for item in raw)

    return NDRange(
        text=_text(option[0] if whole else option),
        scalars=frozenset(scalars),
        tunables=frozenset(wanted & set(tunables)),
        dynamic=dynamic,
        _wanted=tuple((name, names.index(name)) for name in names if name in wanted),
        _evaluate=evaluate,
    )


def shape_of(name: str, names: tuple[str, ...], dims: int | None = None) -> NDRange:
    """Return the rule that takes an array parameter's shape; with `dims` only of an array of so many dimensions."""

    def evaluate(known: Mapping[str, Any]) -> Sizes:
        value = known[name]
        if not is_array(value):
            if dims is None and isinstance(value, (int, np.integer)) and not isinstance(value, bool):
                raise NDRangeError(
                    f"the ndrange is the shape of {name!r}, which is a number in this call; for so many work-items "
                    f"write ndrange=({name!r},)"
                )
            raise NDRangeError(
                f"the ndrange is the shape of {name!r}, which is no array in this call but a {type(value).__name__}; "
                "pass ndrange= in the call or the decorator"
            )
        if dims is not None and value.ndim != dims:
            raise NDRangeError(
                f"the kernel takes its ndrange from {name!r} by {dims} indices, and this call passes an array of "
                f"{value.ndim} dimensions; pass one of {dims}, or ndrange="
            )
        return tuple(value.shape) or (1,)

    return NDRange(f"{name}.shape", frozenset(), frozenset(), False, ((name, names.index(name)),), evaluate)


def _named(name: str) -> _Part:
    def value(known: Mapping[str, Any]) -> Any:
        found = known[name]
        if is_array(found) and found.ndim:
            raise NDRangeError(
                f"ndrange= names {name!r} within a tuple, so it must be a number, and this call passes an array; "
                f"write ndrange={name!r} for its shape"
            )
        return found

    return value


def _constant(size: int) -> _Part:
    return lambda known: size


def _size(item: object, raw: object, what: str) -> int:
    try:
        size = -1 if isinstance(item, (bool, np.bool_)) else operator.index(item)  # type: ignore[arg-type]
    except TypeError:
        size = -1
    if size < 0:
        raise NDRangeError(f"{what} gives {raw!r}; it must be a non-negative int or a tuple of them (use // to divide)")
    return size


def _unknown(name: str, names: tuple[str, ...], tunables: tuple[str, ...]) -> str:
    known = ", ".join((*names, *tunables)) or "(none)"
    hint = close_to(name, (*names, *tunables))
    return f"ndrange= names {name!r}, which is no parameter and no tunable; known are {known}{hint}"


def _text(option: object) -> str:
    if isinstance(option, (tuple, list)):
        return f"({', '.join(map(_text, option))}{',' if len(option) == 1 else ''})"
    return option if isinstance(option, str) else getattr(option, "__name__", None) or repr(option)
