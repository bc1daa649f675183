"""`first_call="amortise"`: candidates are tried one by one after live calls, for a share of the time that these take.

1. A live call runs the best configuration so far, and its result is complete before anything is tried.
2. A candidate is tried on scratch copies of the call's arrays, when what all tries took in this process, with what the
   next one will probably take, is at most `JLKERN_AMORTISE` times the time of the live calls.
3. Trials are in the memo, so that the next process goes on from there. When enough have been made, the best of them
   and the default are measured in turn, and the winner is remembered as that of any other tuning.
"""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from jlkern import log, policy
from jlkern.choice import Case, advance_tuning, best_so_far
from jlkern.errors import JlkernError, TuningWarning
from jlkern.knobs import knobs
from jlkern.tuning.task import Advance

if TYPE_CHECKING:
    from jlkern.space import Config

FIRST: Final = 0.2
"""Seconds that the first try is expected to take: it compiles, and takes samples till the machine is steady."""

FINAL: Final = 4.0
"""How many times a try the final rounds are expected to take."""

_log = log.get(__name__)


@dataclass
class Account:
    """The time of the live calls of one kind in this process, and of what was tried after them."""

    live: float = 0.0
    spent: float = 0.0
    next: float = FIRST
    final: bool = False  # what is left to do are the final rounds
    over: bool = False
    lock: Any = field(default_factory=threading.Lock)

    def due(self) -> bool:
        """Tell whether the next try fits."""
        return not self.over and self.spent + self.next <= knobs.amortise * self.live


class Amortising:
    """A launch that also pays for tries.

    Arguments
    ---------
    fire: the launch.
    config: its configuration.
    account: what is spent, shared by all launches of this kind of call.
    case_of: returns the case of a call's arguments.
    reset: makes the next calls ask anew which configuration they get.
    """

    def __init__(
        self,
        fire: Callable[..., int],
        config: Config,
        account: Account,
        case_of: Callable[[tuple[Any, ...]], Case],
        reset: Callable[[], None],
    ) -> None:
        self.inner = getattr(fire, "inner", fire)  # what a launcher's `fail` is given
        self._fire, self._config, self._account = fire, config, account
        self._case_of, self._reset = case_of, reset

    def __call__(self, *args: Any) -> int:
        account = self._account
        start = time.perf_counter()
        status = self._fire(*args)
        account.live += time.perf_counter() - start
        if not status and account.due() and not policy.is_frozen() and account.lock.acquire(blocking=False):
            try:
                self._try(args)
            finally:
                account.lock.release()
        return status

    def _try(self, args: tuple[Any, ...]) -> None:
        account = self._account
        start = time.perf_counter()
        case = self._case_of(args)
        try:
            advance = advance_tuning(case, account.final)
        except JlkernError as problem:
            # The call itself has done its work; that nothing better can be found for it is no reason to raise.
            account.over = True
            log.event(_log, logging.WARNING, "no more is tried", kernel=case.declaration.title, reason=problem)
            text = f"{case.declaration.title}: nothing more is tried for these calls: {problem}"
            warnings.warn(text, TuningWarning, stacklevel=4)
            return
        finally:
            took = time.perf_counter() - start
            account.spent += took
        if advance is Advance.TRIED:
            account.next = took
        elif advance is Advance.ENOUGH:
            account.final, account.next = True, FINAL * account.next
        elif advance is Advance.DONE:
            account.over = True
        if account.over or best_so_far(case).config != self._config:
            self._reset()
