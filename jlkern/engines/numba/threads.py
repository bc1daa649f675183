"""Running work-groups in one thread, and on all cores where jlkern has no threads of its own (`team`).

There it takes whatever threading layer Numba has in this process. Numba's OpenMP and TBB layers take concurrent calls
and cost a few microseconds; they are used as they are. The workqueue layer aborts the process on concurrent calls, and
OpenMP does on any call in a forked child: there, a pool of Python threads runs compiled code without the GIL.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from jlkern.engines.cpus import usable_cpus
from jlkern.engines.numba import kept
from jlkern.engines.numba.namespace import namespace

SLOTS = 16
"""int64 slots for what a thread has to say of a failed check: the details, and last the check's number."""

MOST = 64
"""The most threads that a launch uses."""

_WAITING = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
_lock = threading.Lock()
_pool: list[ThreadPoolExecutor] = []
_forked = False


def _after_fork() -> None:
    global _forked, _lock
    _forked = True
    _lock = threading.Lock()
    _pool.clear()


_held_over_fork: list[Any] = []
"""Locks of compilation: a fork waits for them, so that no child is born with one that nobody will release."""


def hold_over_fork(lock: Any, innermost: bool = False) -> None:
    """Have forks wait for a lock; one that is taken while another is held must come before that one.

    `innermost` says that no other is ever taken while this one is held.
    """
    _held_over_fork.insert(len(_held_over_fork) if innermost else 0, lock)


def _before_fork() -> None:
    for lock in _held_over_fork:
        lock.acquire()


def _release() -> None:
    for lock in reversed(_held_over_fork):
        lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_release, after_in_child=_release)
os.register_at_fork(after_in_child=_after_fork)


@cache
def layer() -> str:
    """Return the name of Numba's threading layer, starting it if nobody has: "omp", "tbb", "workqueue" or "none"."""
    import numba
    from numba.np.ufunc.parallel import _launch_threads

    try:
        with _short_spins():
            _launch_threads()
    except ValueError:  # the layer that NUMBA_THREADING_LAYER names is not there
        return "none"
    return str(numba.threading_layer())


@contextmanager
def _short_spins() -> Iterator[None]:
    """Let OpenMP threads spin for about 0.1 ms instead of some milliseconds, unless the user has set how they wait.

    A thread that spins when another process wants its core is descheduled for whole time slices, and every launch then
    waits for it: on a busy machine of two cores a kernel of 0.2 ms took 6. libgomp reads the variable when it is loaded
    and never again, so it need not stay set.
    """
    if any(name in os.environ for name in _WAITING):
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "30000"
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def numba_threads_usable() -> bool:
    """Tell whether compiled code may use Numba's own threads here and now."""
    name = layer()
    return name in ("omp", "tbb") and not (_forked and name == "omp")


def count() -> int:
    """Return how many threads a launch may use: Numba's setting, the process's affinity and its CPU quota allow."""
    import numba
    from numba.np.ufunc import parallel as numba_parallel

    # asking Numba itself would start its threads
    started = bool(getattr(numba_parallel, "_is_initialized", True))
    allowed = numba.get_num_threads() if started else numba.config.NUMBA_NUM_THREADS
    return max(1, min(int(allowed), usable_cpus(), MOST))


Run = Callable[[int, int, int, int], int]
"""A function that runs work-groups; it returns 0, or the address of a report on a failed check (`read_report`)."""


@cache
def serial(nogil: bool) -> Run:
    """Return `run(code, block, first, last)`: work-groups `first` to before `last` in this thread."""
    call_chunk, stack, address_of, keep_report = _names("call_chunk stack_int64 address_of keep_report")

    def run(code: int, block: int, first: int, last: int) -> int:
        details = stack(16)
        status = call_chunk(code, block, address_of(details), first, last)
        if status != 0:
            return keep_report(status, details)  # type: ignore[no-any-return]
        return 0

    return kept.compiled(run, nogil=nogil)  # type: ignore[no-any-return]


@cache
def repeated() -> Run:
    """Return `run(code, block, groups, times)`: all work-groups in this thread, several times over."""
    call_chunk, stack, address_of, keep_report = _names("call_chunk stack_int64 address_of keep_report")

    def run(code: int, block: int, groups: int, times: int) -> int:
        details = stack(16)
        for _ in range(times):
            status = call_chunk(code, block, address_of(details), 0, groups)
            if status != 0:
                return keep_report(status, details)  # type: ignore[no-any-return]
        return 0

    return kept.compiled(run, nogil=True)  # type: ignore[no-any-return]


@cache
def parallel() -> Run:
    """Return `run(code, block, groups, threads)`: all work-groups on Numba's threads, of which there are at most 64.

    The groups are cut into a few chunks per thread, dealt out in turn, so that uneven work evens out. Of several failed
    checks the first thread's is reported.
    """
    import numba

    call_chunk, stack, address_of, keep_report = _names("call_chunk stack_int64 address_of keep_report")
    pointer, load, store = _names("pointer_int64 load store")
    prange = numba.prange

    def run(code: int, block: int, groups: int, threads: int) -> int:
        areas = address_of(stack(1024))  # SLOTS for each of MOST threads
        chunks = min(groups, threads * 4)
        for t in prange(threads):
            status = 0
            area = areas + t * SLOTS * 8
            for c in range(t, chunks, threads):
                status = call_chunk(code, block, area, c * groups // chunks, (c + 1) * groups // chunks)
                if status != 0:
                    break
            store(pointer(area), SLOTS - 1, status)
        for t in range(threads):
            area = areas + t * SLOTS * 8
            status = load(pointer(area), SLOTS - 1)
            if status != 0:
                return keep_report(status, pointer(area))  # type: ignore[no-any-return]
        return 0

    return kept.compiled(run, parallel=True, nogil=True)  # type: ignore[no-any-return]


def _names(names: str) -> list[Any]:
    return [namespace()[name] for name in names.split()]


def pooled(code: int, block: int, groups: int, threads: int) -> int:
    """Run all work-groups on Python threads; the same contract as `parallel`."""
    run = serial(True)
    with _lock:
        if not _pool:
            _pool.append(ThreadPoolExecutor(max(1, threads - 1), thread_name_prefix="jlkern"))
        pool = _pool[0]
    chunks = min(groups, threads)
    cuts = [c * groups // chunks for c in range(chunks + 1)]
    jobs = [pool.submit(run, code, block, cuts[c], cuts[c + 1]) for c in range(1, chunks)]
    reports = [run(code, block, cuts[0], cuts[1]), *(job.result() for job in jobs)]
    failed = [report for report in reports if report]
    for report in failed[1:]:
        read_report(report)
    return failed[0] if failed else 0


def read_report(address: int) -> tuple[int, list[int]]:
    """Return a report's check and details, and free it; it can be read once."""
    record = (ctypes.c_int64 * SLOTS).from_address(address)
    site, *details = record
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(address)
    return site, details
