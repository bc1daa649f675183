"""The one thread that may call Julia, and how others get there.

Julia's runtime keeps state per thread that only threads of its own have: a call from any other can crash the process.
So the thread that starts Julia owns it. When that is the main thread, calls go straight in and other threads are
refused. When Julia is first needed by another thread, or JLKERN_JULIA_THREAD=dedicated says so, it gets a thread of its
own, which lives as long as the process, and every call is handed over.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from jlkern.errors import EngineError, WrongThreadError
from jlkern.interrupt import uninterrupted

T = TypeVar("T")


class Owner:
    """Who owns Julia: `ident` is the thread's; None before the start, in a forked child, and when Julia has `ended`."""

    __slots__ = ("ended", "ident", "later", "queue", "started")

    def __init__(self) -> None:
        self.ident: int | None = None
        self.queue: SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] | None = None
        self.started = False
        self.ended = False
        self.later: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()


owner = Owner()
"""This process's; the hot path compares `owner.ident` with the caller's thread."""


def claim(dedicated: bool) -> None:
    """Decide who owns Julia, once: the caller when it is the main thread, else a thread made for it."""
    if owner.started:
        return
    owner.started = True
    if not dedicated and threading.current_thread() is threading.main_thread():
        owner.ident = threading.get_ident()
        return
    owner.queue = SimpleQueue()
    thread = threading.Thread(target=_serve, args=(owner.queue,), name="jlkern-julia", daemon=True)
    before = threading.stack_size(0)  # Julia takes its stack for one of the system's usual size
    try:
        thread.start()
    finally:
        threading.stack_size(before)
    owner.ident = thread.ident


def claim_main() -> None:
    """Take it that the main thread owns Julia: somebody else has started it, where that is the rule."""
    if owner.started:
        return
    owner.started = True
    owner.ident = threading.main_thread().ident


def run(function: Callable[..., T], *args: Any) -> T:
    """Call a function in the thread that owns Julia and return its result.

    Raises
    ------
    WrongThreadError
        The owner is the main thread, and this is another.
    EngineError
        This process was forked from one that had started Julia, or it is about to end.
    """
    if threading.get_ident() == owner.ident:
        while owner.later:
            with suppress(IndexError):  # another call of this thread, from a finalizer, was faster
                waiting, its = owner.later.popleft()
                waiting(*its)
        return function(*args)
    if owner.ended:
        raise EngineError(
            "Julia has ended, since the process is about to; functions of atexit that call it must be registered after "
            "its start"
        )
    if owner.ident is None:
        raise EngineError(
            "Julia was started before this process was forked, and a fork of Julia does not work; "
            "start processes by multiprocessing's 'spawn' method, or use engine='numba'"
        )
    if owner.queue is None:
        raise WrongThreadError(
            "the main thread owns Julia, and this is another thread; call from the main thread, or set "
            "JLKERN_JULIA_THREAD=dedicated before Julia is started, which gives Julia a thread of its own"
        )
    future: Future[T] = Future()
    owner.queue.put((future, run, (function, *args)))
    try:
        return future.result()
    except KeyboardInterrupt:
        # Julia may be at work on the caller's arrays: it is let finish, as in the main thread, whatever else comes
        with uninterrupted():
            if not future.cancel():
                wait([future])
        raise


def soon(function: Callable[..., Any], *args: Any) -> None:
    """Have a function called before the next call of `run`; for finalizers, which run in any thread."""
    owner.later.append((function, args))


def _serve(queue: SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]]) -> None:
    while True:
        future, function, args = queue.get()
        if not future.set_running_or_notify_cancel():
            continue
        try:
            result = function(*args)
        except BaseException as problem:
            future.set_exception(problem)
        else:
            future.set_result(result)
        del future, function, args  # or the last call's arrays would live until the next
        result = None


def at_exit(functions: Sequence[Callable[[], Any]]) -> None:
    """Have functions called when the process ends, in the thread that owns Julia, which is over then.

    Not in a forked child.
    """

    def end() -> None:
        if owner.ident is not None:
            for function in reversed(functions):
                with suppress(EngineError, WrongThreadError):
                    run(function)
            owner.ended, owner.ident = True, None

    atexit.register(end)


def _after_fork() -> None:
    owner.started = owner.started or "juliacall" in sys.modules  # half a start, or the user's own, counts as one
    owner.ident = None
    owner.queue = None
    owner.later.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
