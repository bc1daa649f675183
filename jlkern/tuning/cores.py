"""Taking the thread that measures to another core.

The threads of a launch can end up on one core while another is free, and stay there for hundreds of launches: the one
that waits spins, and the one that it waits for wants the same core. A kernel of 40 microseconds then takes 1500. The
same happens when another process keeps a core. Moving one of them ends it, and where the system has no way to ask for
that, nothing is done.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache


def change_core() -> bool:
    """Let the calling thread go on on another core of those that it may use; return whether there was one."""
    current = _getcpu()
    if current is None or not hasattr(os, "sched_setaffinity"):
        return False
    with suppress(OSError):
        allowed = os.sched_getaffinity(0)
        others = allowed - {current()}
        if not others:
            return False
        os.sched_setaffinity(0, others)
        try:
            return True
        finally:
            os.sched_setaffinity(0, allowed)
    return False


@cache
def _getcpu() -> Callable[[], int] | None:
    """Return the C library's function that tells the calling thread's core."""
    try:
        function = ctypes.CDLL(None).sched_getcpu
    except (AttributeError, OSError, TypeError):
        return None
    function.restype = ctypes.c_int
    return function
