"""Functions of the user's that are told what a tuning does.

A hook is called in the thread that tunes, outside of what is timed. What it raises does not reach the tuning: it is
logged, and warned of once; only what is no `Exception` (Ctrl-C) goes through.
"""

from __future__ import annotations

import os
import threading
import warnings
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from jlkern import log
from jlkern.errors import OptionError, TuningWarning

if TYPE_CHECKING:
    from jlkern.tuning.task import Trial, TuneResult

_log = log.get(__name__)


class TrialHook(Protocol):
    """Called after every trial of every tuning in this process."""

    def __call__(self, *, kernel: str, trial: Trial, number: int) -> object:
        """Take the kernel's name, the trial, and its number in its run, from 1 (the default configuration)."""


class VerdictHook(Protocol):
    """Called at the end of every tuning that tried something, also of one that was interrupted."""

    def __call__(self, *, kernel: str, result: TuneResult) -> object:
        """Take the kernel's name and what the tuning found."""


H = TypeVar("H")


class Hook(Generic[H]):
    """A registered hook. It ends with `remove()`, or as a context manager with its block."""

    def __init__(self, hooks: list[Hook[H]], function: H) -> None:
        self.function = function
        self._hooks = hooks
        self._warned = False
        with _lock:
            hooks.append(self)

    def remove(self) -> None:
        """Call the function no more; removing twice is fine."""
        with _lock:
            if self in self._hooks:
                self._hooks.remove(self)

    def __enter__(self) -> Hook[H]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()

    def _failed(self, problem: Exception) -> None:
        name = getattr(self.function, "__qualname__", repr(self.function))
        _log.warning("the hook %s raised", name, exc_info=problem)
        if not self._warned:
            self._warned = True
            text = f"the hook {name} raised {type(problem).__name__}: {problem}; the tuning goes on"
            warnings.warn(text, TuningWarning, stacklevel=4)


_lock = threading.Lock()
_trials: Final[list[Hook[TrialHook]]] = []
_verdicts: Final[list[Hook[VerdictHook]]] = []


def on_trial(function: TrialHook) -> Hook[TrialHook]:
    """Call a function after every trial, with `kernel=`, `trial=` and `number=`.

    Returns
    -------
    Hook
        `remove()` ends it; so does the end of its `with` block.

    >>> with on_trial(lambda *, kernel, trial, number: print(kernel, number, trial)):
    ...     pass
    """
    return Hook(_trials, _checked(function, "on_trial"))


def on_verdict(function: VerdictHook) -> Hook[VerdictHook]:
    """Call a function at the end of every tuning, with `kernel=` and `result=`.

    Returns
    -------
    Hook
        `remove()` ends it; so does the end of its `with` block.

    >>> hook = on_verdict(lambda *, kernel, result: print(kernel, result.best))
    >>> hook.remove()
    """
    return Hook(_verdicts, _checked(function, "on_verdict"))


def tell_trial(kernel: str, trial: Trial, number: int) -> None:
    """Tell all hooks of a trial."""
    _tell(_trials, kernel=kernel, trial=trial, number=number)


def tell_verdict(kernel: str, result: TuneResult) -> None:
    """Tell all hooks of a tuning's end."""
    _tell(_verdicts, kernel=kernel, result=result)


def _tell(hooks: list[Any], **facts: Any) -> None:
    for hook in list(hooks):
        try:
            hook.function(**facts)
        except Exception as problem:
            hook._failed(problem)


def _checked(function: H, what: str) -> H:
    if not callable(function):
        raise OptionError(f"{what} takes a function, got {function!r}")
    return function


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
