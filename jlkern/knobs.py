"""Settings of the process: one declaration is an environment variable, an attribute of `knobs`, and a scope.

>>> from jlkern.knobs import knobs
>>> with knobs.scope(frozen=True):
...     knobs.frozen
True

What a scope sets wins over an assignment to the attribute, that over the environment variable, that over the default.
A scope holds for the code that it runs (it is a context variable), an assignment for the whole process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, overload

from jlkern.errors import OptionError

T = TypeVar("T")

_scoped: ContextVar[dict[str, Any]] = ContextVar("jlkern_knobs", default={})  # noqa: B039 (never changed in place)


class Knob(Generic[T]):
    """A descriptor: the environment variable `env`, read by `parse`, else `default()`.

    `parse` turns the variable's text or an assigned value into a T, and raises `ValueError` with what was expected.
    """

    def __init__(self, env: str, parse: Callable[[Any], T], default: Callable[[], T], doc: str) -> None:
        self.env = env
        self.parse = parse
        self.default = default
        self.__doc__ = doc
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Knob[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Knob[T] | T:
        if instance is None:
            return self
        for layer in (_scoped.get(), instance.__dict__):
            if self.name in layer:
                value: T = layer[self.name]
                return value
        text = os.environ.get(self.env, "")
        return self.read(text, self.env) if text.strip() else self.default()

    def __set__(self, instance: object, value: object) -> None:
        instance.__dict__[self.name] = self.read(value, self.name)

    def __delete__(self, instance: object) -> None:
        instance.__dict__.pop(self.name, None)

    def read(self, value: Any, source: str) -> T:
        """Parse a value; the error names where it came from."""
        try:
            return self.parse(value)
        except ValueError as problem:
            raise OptionError(f"unable to use {source}={value!r}: expected {problem}") from None


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off"):
        return False
    raise ValueError("a bool (1/0, true/false, yes/no, on/off)")


def _maybe_flag(value: Any) -> bool | None:
    return None if value is None or str(value).strip().lower() == "auto" else _flag(value)


def _share(value: Any) -> float:
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = -1.0
    if not 0 <= share < float("inf"):
        raise ValueError("a number that is not negative, as 0.1")
    return share


def _choice(*words: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        text = str(value).strip().lower()
        if text not in words:
            raise ValueError("one of " + ", ".join(words))
        return text

    return parse


def _path(value: Any) -> Path:
    if isinstance(value, (str, os.PathLike)) and str(value).strip():
        return Path(value).expanduser().absolute()
    raise ValueError("a path")


_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def _bytes(value: Any) -> int:
    text = str(value).strip().lower().removesuffix("b").removesuffix("i")
    number = text.rstrip("kmgt")
    try:
        size = int(float(number) * _UNITS[text[len(number) :]])
    except (KeyError, ValueError, OverflowError):
        size = -1
    if size < 0:
        raise ValueError("a number of bytes, as 500000000, 500M or 2GiB")
    return size


def _maybe_path(value: Any) -> Path | None:
    return None if value is None else _path(value)


def _maybe_bytes(value: Any) -> int | None:
    return None if str(value).strip().lower() in ("none", "auto") else _bytes(value)


def _default_cache_dir() -> Path:
    from platformdirs import user_cache_path

    try:
        return user_cache_path("jlkern", appauthor=False)
    except (RuntimeError, OSError):
        # As in some containers. This folder can not be made, so that the memo stays in memory and says so.
        return Path(os.devnull) / "no home directory"


def _default_julia_dir() -> Path:
    from platformdirs import user_data_path

    try:
        return user_data_path("jlkern", appauthor=False) / "julia"
    except (RuntimeError, OSError):
        return Path(os.devnull) / "no home directory"


class Knobs:
    """All settings. Read and assign them as attributes; `del` returns one to its environment variable."""

    cache_dir = Knob("JLKERN_CACHE_DIR", _path, _default_cache_dir, "Where the memo and compiled code are kept.")
    code_cache = Knob(
        "JLKERN_CODE_CACHE", _bytes, lambda: 256 << 20, "Bytes of compiled code kept between processes; 0 keeps none."
    )
    lock_dir = Knob(
        "JLKERN_LOCK_DIR", _path, lambda: Path(tempfile.gettempdir()), "Where the machine-wide device locks are."
    )
    engine = Knob("JLKERN_ENGINE", _choice("auto", "numba", "julia"), lambda: "auto", "The engine that `auto` means.")
    julia_dir = Knob("JLKERN_JULIA_DIR", _path, _default_julia_dir, "Where `jlkern setup` puts Julia's packages.")
    julia_thread = Knob(
        "JLKERN_JULIA_THREAD",
        _choice("caller", "dedicated"),
        lambda: "caller",
        "The thread that owns Julia: the one that starts it, or one of its own.",
    )
    check_bounds = Knob(
        "JLKERN_CHECK_BOUNDS", _flag, lambda: False, "Check every index, also where the source says `@inbounds`."
    )
    frozen = Knob("JLKERN_FROZEN", _flag, lambda: False, "Never tune on a call; use what is known, else the default.")
    amortise = Knob(
        "JLKERN_AMORTISE",
        _share,
        lambda: 0.1,
        'With `first_call="amortise"`, the time of tries as a part of the live calls\' time, at most.',
    )
    record = Knob(
        "JLKERN_RECORD", _maybe_path, lambda: None, "The file where a frozen process notes what it would have tuned."
    )
    progress = Knob("JLKERN_PROGRESS", _maybe_flag, lambda: None, "Show progress bars; auto is on a terminal.")
    scratch_limit = Knob("JLKERN_SCRATCH_LIMIT", _bytes, lambda: 4 << 30, "Bytes of scratch memory a tuning may use.")
    worker_memory = Knob(
        "JLKERN_WORKER_MEMORY", _maybe_bytes, lambda: None, "Bytes of address space that a worker process may use."
    )
    log = Knob("JLKERN_LOG", _choice("off", "warning", "info", "debug"), lambda: "off", "Log to stderr from here on.")

    @contextmanager
    def scope(self, **values: Any) -> Iterator[Knobs]:
        """Set knobs for the code in a `with` block, in this context only.

        Raises
        ------
        OptionError: for a name that is no knob, or a value that does not fit.
        """
        layer = dict(_scoped.get())
        for name, value in values.items():
            layer[name] = _knob(name).read(value, name)
        token = _scoped.set(layer)
        try:
            yield self
        finally:
            _scoped.reset(token)

    def __repr__(self) -> str:
        shown = []
        for name, knob in vars(Knobs).items():
            if isinstance(knob, Knob):
                try:
                    shown.append(f"{name}={_text(getattr(self, name))}")
                except OptionError:  # a variable of the environment that does not parse
                    shown.append(f"{name}=<{knob.env}={os.environ.get(knob.env)!r} is not valid>")
        return f"<jlkern knobs: {', '.join(shown)}>"

    def __setattr__(self, name: str, value: Any) -> None:
        _knob(name)
        super().__setattr__(name, value)


def describe() -> list[tuple[str, str, str]]:
    """Return every knob as (environment variable, value now, what it is for)."""
    rows = []
    for name, knob in vars(Knobs).items():
        if isinstance(knob, Knob):
            rows.append((knob.env, str(getattr(knobs, name)), knob.__doc__ or ""))
    return rows


def _text(value: object) -> str:
    return repr(str(value)) if isinstance(value, Path) else repr(value)


def _knob(name: str) -> Knob[Any]:
    knob = vars(Knobs).get(name)
    if not isinstance(knob, Knob):
        names = ", ".join(n for n, k in vars(Knobs).items() if isinstance(k, Knob))
        raise OptionError(f"there is no knob {name!r}; there are {names}")
    return knob


knobs: Final = Knobs()
