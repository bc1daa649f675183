"""Threads of jlkern's own that share the work-groups of a launch (Linux).

Whoever is free takes the next chunk of work-groups; the caller takes part, and returns when all chunks are done. So it
never waits for a thread that has not begun: when other processes keep the cores busy, a launch takes as long as the
caller alone would need, where a barrier of all threads takes time slices of the scheduler's. A helper that finds
nothing to do looks for work for some microseconds, then sleeps until it is woken.

The team is a row of int64. `WORD` holds the launch's number in its upper half and the next chunk in its lower; a chunk
is taken by exchanging the word that was seen for the one after it. What a launch is (`CODE` to `SEATS`) is written
before its word and stays until all its chunks are done. Helpers are Python threads in compiled code without the GIL. In
a forked child there are none until the next kernel is made ready; its caller finds all chunks for itself.
"""

from __future__ import annotations

import atexit
import os
import platform
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from jlkern.engines.numba import kept
from jlkern.engines.numba.namespace import namespace

LOCK, WORD, DONE, SLEEPING, FAILED = 0, 8, 16, 24, 32  # each on a cache line of its own
CODE, BLOCK, GROUPS, CHUNKS, SEATS = 40, 41, 42, 43, 44
STOP, DETAILS, LENGTH = 48, 56, 72

NONE = 0xFFFFFFFF
"""The lower half of a word of which there is nothing to take."""

CHUNKS_EACH = 4
"""Chunks per thread, so that uneven work evens out."""

SPIN = 3000
"""Looks for work before a helper sleeps: some 50 microseconds, in which a loop of launches has made the next one."""

PATIENCE = 2000
"""Looks at whether the others are done before the caller offers its core to them."""

_team: list[np.ndarray[Any, np.dtype[np.int64]]] = []
_helpers: list[threading.Thread] = []
_lock = threading.Lock()


def usable() -> bool:
    """Tell whether this system has what teams need."""
    return sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")


def seats(count: int) -> int:
    """Return what `run` needs to know of the team, with `count` threads taking part; starts those that are missing.

    It is the team's address, whose last bits are free, plus the number of helpers.
    """
    with _lock:
        if not _team:
            memory = np.zeros(LENGTH + 8, np.int64)
            first = -memory.ctypes.data % 64 // 8
            _team.append(memory[first : first + LENGTH])
        address = int(_team[0].ctypes.data)
        while len(_helpers) < count - 1 and not _team[0][STOP]:
            number = len(_helpers)
            helper = threading.Thread(target=help_out(), args=(address, number), name=f"jlkern-{number}", daemon=True)
            helper.start()
            _helpers.append(helper)
    return address + count - 1


def _dismiss() -> None:
    """End the helpers while the code that they run still exists."""
    with _lock:
        if not _team:
            return
        _team[0][STOP] = 1
        for helper in _helpers:
            for _ in range(100):  # one that was about to fall asleep is woken by a later call
                _wake()(int(_team[0].ctypes.data))
                helper.join(0.01)
                if not helper.is_alive():
                    break


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _helpers.clear()
    for team in _team:
        team[[LOCK, SLEEPING, STOP, CHUNKS]] = 0


if usable():
    atexit.register(_dismiss)
    os.register_at_fork(after_in_child=_after_fork)


@cache
def _take() -> Any:
    import numba

    from jlkern.engines.numba.semantics.waiting import watch

    names = "pointer_int64 load store compare_exchange atomic_add call_chunk"
    pointer, load, store, exchange, add, call_chunk = (namespace()[name] for name in names.split())

    def take(team: int, details: int) -> int:
        """Run the next chunk, if there is one: 1, or 0 when there is none."""
        t = pointer(team)
        word = watch(t, WORD)
        code, block, groups, chunks = watch(t, CODE), watch(t, BLOCK), watch(t, GROUPS), watch(t, CHUNKS)
        chunk = word & NONE
        if chunk >= chunks:
            return 0
        if exchange(t, WORD, word, word + 1):  # the word is the one seen, so what was read belongs to it
            status = call_chunk(code, block, details, chunk * groups // chunks, (chunk + 1) * groups // chunks)
            if status != 0 and exchange(t, FAILED, 0, status):
                for k in range(15):
                    store(t, DETAILS + k, load(pointer(details), k))
            add(t, DONE, 1)
        return 1

    return numba.njit(inline="always")(take)


@cache
def help_out() -> Callable[[int, int], int]:
    """Return `help_out(team, number)`, which a helper runs until the team is dismissed."""
    from jlkern.engines.numba.semantics.waiting import WAIT, futex, relax, watch

    pointer, stack, address_of, add = (
        namespace()[n] for n in "pointer_int64 stack_int64 address_of atomic_add".split()
    )
    take = _take()

    def help_out(team: int, number: int) -> int:
        details = address_of(stack(16))
        t = pointer(team)
        while watch(t, STOP) == 0:
            seen = watch(t, WORD) >> 32
            if number < watch(t, SEATS):
                while take(team, details) != 0:
                    pass
            looks = 0
            while looks < SPIN and watch(t, WORD) >> 32 == seen:
                relax()
                looks += 1
            if looks == SPIN:
                add(t, SLEEPING, 1)
                futex(team + WORD * 8 + 4, WAIT, seen)
                add(t, SLEEPING, -1)
        return watch(t, STOP)  # type: ignore[no-any-return]

    return kept.compiled(help_out, nogil=True)  # type: ignore[no-any-return]


@cache
def _wake() -> Callable[[int], int]:
    from jlkern.engines.numba.semantics.waiting import WAKE, futex

    def wake(team: int) -> int:
        return futex(team + WORD * 8 + 4, WAKE, 64)  # type: ignore[no-any-return]

    return kept.compiled(wake, nogil=True)  # type: ignore[no-any-return]


@cache
def run() -> Callable[[int, int, int, int], int]:
    """Return `run(code, block, groups, seats)`: all work-groups, by the team; alone, when another launch has it.

    Of several failed checks, the first to be noticed is reported.
    """
    from jlkern.engines.numba.semantics.waiting import WAKE, futex, give_way, publish, relax, watch

    names = "pointer_int64 stack_int64 address_of compare_exchange call_chunk keep_report"
    pointer, stack, address_of, exchange, call_chunk, keep_report = (namespace()[name] for name in names.split())
    take = _take()

    def run(code: int, block: int, groups: int, seats: int) -> int:
        details = address_of(stack(16))
        helpers = seats & 63
        team = seats - helpers
        t = pointer(team)
        if not exchange(t, LOCK, 0, 1):
            status = call_chunk(code, block, details, 0, groups)
            if status != 0:
                return keep_report(status, pointer(details))  # type: ignore[no-any-return]
            return 0
        chunks = min(groups, (helpers + 1) * CHUNKS_EACH)
        number = ((watch(t, WORD) >> 32) + 1) & 0x7FFFFFFF
        publish(t, WORD, watch(t, WORD) | NONE)  # whoever saw the word of the last launch takes nothing of this one
        publish(t, DONE, 0)
        publish(t, FAILED, 0)
        publish(t, CODE, code)
        publish(t, BLOCK, block)
        publish(t, GROUPS, groups)
        publish(t, SEATS, helpers)
        publish(t, CHUNKS, chunks)
        publish(t, WORD, number << 32)
        if watch(t, SLEEPING) > 0:
            futex(team + WORD * 8 + 4, WAKE, helpers)
        while take(team, details) != 0:
            pass
        looks = 0
        while watch(t, DONE) < chunks:
            relax()
            looks += 1
            if looks > PATIENCE:
                give_way()
        report = 0
        status = watch(t, FAILED)
        if status != 0:
            report = keep_report(status, pointer(team + DETAILS * 8))
        publish(t, LOCK, 0)
        return report

    return kept.compiled(run, nogil=True)  # type: ignore[no-any-return]
