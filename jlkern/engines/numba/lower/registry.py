"""The table of built-in functions, filled by the modules beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from jlkern.engines.numba.lower.types import JType
from jlkern.engines.numba.lower.values import Value, type_of

if TYPE_CHECKING:
    from jlkern.engines.numba.lower.context import Context

Builtin = Callable[["Context", tuple[Value, ...]], Value]

BUILTINS: dict[str, Builtin] = {}


def builtin(*names: str) -> Callable[[Builtin], Builtin]:
    """Register a function under the names that Julia has for it."""

    def register(function: Builtin) -> Builtin:
        for name in names:
            BUILTINS[name] = function
        return function

    return register


def no_method(cx: Context, name: str, args: tuple[Value, ...]) -> NoReturn:
    """Refuse a call that no method fits, as Julia's MethodError says it."""
    types = ", ".join(_show(type_of(a)) for a in args)
    cx.unsupported(
        f"no method of `{name}` that this engine knows fits ({types})", "convert the arguments or define a method"
    )


def arity(cx: Context, name: str, args: tuple[Value, ...], low: int, high: int | None = None) -> None:
    """Check how many arguments a call has."""
    if not low <= len(args) <= (low if high is None else high):
        no_method(cx, name, args)


def _show(t: object) -> str:
    return f"::{t}" if isinstance(t, JType) else str(t)
