"""Running work-groups on all cores, whatever threading layer Numba has in this process.

Numba's OpenMP and TBB layers take concurrent calls and cost a few microseconds; they are used as they are. The
workqueue layer aborts the process on concurrent calls, and OpenMP does on any call in a forked child: there, a pool of
Python threads runs compiled code without the GIL.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from jlkern.engines.numba.namespace import namespace

SLOTS = 16
"""int64 slots of the error area of one thread: the details of a failed check, and last its number."""

_WAITING = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
_lock = threading.Lock()
_pool: list[ThreadPoolExecutor] = []
_forked = False


def _after_fork() -> None:
    global _forked, _lock
    _forked = True
    _lock = threading.Lock()
    _pool.clear()


os.register_at_fork(after_in_child=_after_fork)


@cache
def layer() -> str:
    """Return the name of Numba's threading layer, starting it if nobody has: "omp", "tbb" or "workqueue"."""
    import numba
    from numba.np.ufunc.parallel import _launch_threads

    with _short_spins():
        _launch_threads()
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
    return name != "workqueue" and not (_forked and name != "tbb")


def count() -> int:
    """Return how many threads a launch may use: Numba's setting, the process's affinity and its CPU quota allow."""
    import numba
    from numba.np.ufunc import parallel as numba_parallel

    # asking Numba itself would start its threads
    started = bool(getattr(numba_parallel, "_is_initialized", True))
    allowed = numba.get_num_threads() if started else numba.config.NUMBA_NUM_THREADS
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(int(allowed), available, _quota()))


@cache
def _quota() -> int:
    """Return the number of CPUs that the control group grants, rounded up."""
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        return max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        return 1 << 16


Run = Callable[[int, int, int, int, int], int]


@cache
def serial(nogil: bool) -> Run:
    """Return `run(code, block, errors, first, last)`: work-groups `first` to before `last` in this thread."""
    import numba

    call_chunk = namespace()["call_chunk"]

    def run(code: int, block: int, errors: int, first: int, last: int) -> int:
        return call_chunk(code, block, errors, first, last)  # type: ignore[no-any-return]

    i64 = numba.int64
    compiled: Run = numba.njit(i64(i64, i64, i64, i64, i64), nogil=nogil)(run)
    return compiled


@cache
def repeated() -> Callable[[int, int, int, int, int], int]:
    """Return `run(code, block, errors, groups, times)`: all work-groups in this thread, several times over."""
    import numba

    call_chunk = namespace()["call_chunk"]

    def run(code: int, block: int, errors: int, groups: int, times: int) -> int:
        for _ in range(times):
            status = call_chunk(code, block, errors, 0, groups)
            if status != 0:
                return status  # type: ignore[no-any-return]
        return 0

    i64 = numba.int64
    compiled: Callable[[int, int, int, int, int], int] = numba.njit(i64(i64, i64, i64, i64, i64), nogil=True)(run)
    return compiled


@cache
def parallel() -> Run:
    """Return `run(code, block, errors, groups, threads)`: all work-groups on Numba's threads.

    The groups are cut into a few chunks per thread, dealt out in turn, so that uneven work evens out. Of several failed
    checks the first thread's is reported.
    """
    import numba

    call_chunk, pointer, load, store = (namespace()[n] for n in ("call_chunk", "pointer_int64", "load", "store"))
    prange = numba.prange

    def run(code: int, block: int, errors: int, groups: int, threads: int) -> int:
        chunks = min(groups, threads * 4)
        for t in prange(threads):
            status = 0
            area = errors + t * SLOTS * 8
            for c in range(t, chunks, threads):
                status = call_chunk(code, block, area, c * groups // chunks, (c + 1) * groups // chunks)
                if status != 0:
                    break
            store(pointer(area), SLOTS - 1, status)
        for t in range(threads):
            status = load(pointer(errors), t * SLOTS + SLOTS - 1)
            if status != 0:
                for k in range(SLOTS - 1):
                    store(pointer(errors), k, load(pointer(errors), t * SLOTS + k))
                return status  # type: ignore[no-any-return]
        return 0

    i64 = numba.int64
    compiled: Run = numba.njit(i64(i64, i64, i64, i64, i64), parallel=True, nogil=True)(run)
    return compiled


def pooled(code: int, block: int, errors: int, groups: int, threads: int) -> int:
    """Run all work-groups on Python threads; the same contract as `parallel`."""
    run = serial(True)
    with _lock:
        if not _pool:
            _pool.append(ThreadPoolExecutor(max(1, threads - 1), thread_name_prefix="jlkern"))
        pool = _pool[0]
    chunks = min(groups, threads)
    cuts = [c * groups // chunks for c in range(chunks + 1)]
    jobs = [pool.submit(run, code, block, errors + c * SLOTS * 8, cuts[c], cuts[c + 1]) for c in range(1, chunks)]
    statuses = [run(code, block, errors, cuts[0], cuts[1]), *(job.result() for job in jobs)]
    for c, status in enumerate(statuses):
        if status:
            _copy_details(errors, c)
            return status
    return 0


def _copy_details(errors: int, thread: int) -> None:
    import ctypes

    ctypes.memmove(errors, errors + thread * SLOTS * 8, (SLOTS - 1) * 8)


def run_parallel(code: int, block: int, errors: int, groups: int, threads: int) -> int:
    """Run all work-groups on several threads, by Numba's where they are safe."""
    run: Any = parallel() if numba_threads_usable() else pooled
    return int(run(code, block, errors, groups, threads))
