"""Launches from many threads, under every threading layer, in forked children; each case is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jlkern.engines.numba import team

PRELUDE = """
import os, threading
import numpy as np
from jlkern.engines.base import CompileRequest
from jlkern.engines.numba import engine, threads
from jlkern.signature import classify
from jlkern.source import Origin, load_source

TEXT = '''
@kernel function scale!(y, @Const(x), a)
    i = @index(Global)
    s = x[i]
    for k in 1:20
        s = muladd(s, 0.5, a)
    end
    @inbounds y[i] = s
end
'''
source = load_source(TEXT, Origin(None, 1, False), ())

def launcher(args, **options):
    signature = tuple(classify(name, a) for name, a in zip(source.names, args))
    return engine().compile(CompileRequest(source, signature, {}, (64,), 1, source.effects.written, **options))

def expected(x, a):
    s = x.copy()
    for _ in range(20):
        s = s * 0.5 + a
    return s

x = np.arange(20000.0)
large = launcher((x, x, 1.0))

def run(n=20000, a=1.0):
    y = np.zeros(n)
    fire = large.fire((n,))
    assert fire(y, x[:n], a) == 0
    np.testing.assert_allclose(y, expected(x[:n], a), rtol=1e-12)
"""


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    program = textwrap.dedent(PRELUDE) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120)


def passes(code: str, **environment: str) -> str:
    done = python(code, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


CONCURRENT = """
failures = []
def work(k):
    try:
        for _ in range(30):
            run(a=float(k))
    except BaseException as error:
        failures.append(error)
workers = [threading.Thread(target=work, args=(k,)) for k in range(6)]
[w.start() for w in workers]
[w.join() for w in workers]
assert not failures, failures
print(threads.layer())
"""


LAYERS = ["team", "default", "omp", "tbb", "workqueue"]


def with_layer(code: str, layer: str) -> str:
    """Run code under a threading layer, if this machine has it; "team" are jlkern's own threads."""
    if layer == "team":
        return passes(code, NUMBA_NUM_THREADS="2")
    code = "from jlkern.engines.numba import team\nteam.usable = lambda: False\n" + textwrap.dedent(code)
    if layer == "omp" and not _has_openmp():
        pytest.skip("this machine has no OpenMP runtime library")
    if layer == "tbb":  # where pip puts it, Numba does not look
        library = Path(sys.prefix) / "lib" / "libtbb.so.12"
        if not library.exists():
            pytest.skip("TBB is not installed")
        code = f"import ctypes\nctypes.CDLL({str(library)!r}, ctypes.RTLD_GLOBAL)\n" + textwrap.dedent(code)
    return passes(code, NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="2")


@pytest.mark.parametrize("layer", LAYERS)
def test_many_threads_at_once(layer: str) -> None:
    printed = with_layer(CONCURRENT, layer)
    assert layer in ("team", "default", printed.strip())


BY_USER = """
import numba
@numba.njit(parallel=True)
def theirs(y):
    for i in numba.prange(y.size):
        y[i] += 1
def check_theirs():
    y = np.zeros(100000)
    theirs(y)
    assert (y == 1).all()
"""


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_beside_the_users_own_parallel_code(first: str, layer: str) -> None:
    calls = ["run()", "check_theirs()"]
    code = (
        BY_USER
        + "\n".join(calls if first == "ours" else reversed(calls))
        + """
for k in range(50):
    run(a=float(k))
    check_theirs()
assert numba.threading_layer() == threads.layer()
assert threads.count() == 2
print(threads.layer())
"""
    )
    printed = with_layer(code, layer).strip()
    assert layer in ("team", "default", printed)


@pytest.mark.parametrize("layer", LAYERS)
def test_no_launch_pays_for_the_workqueue_layer(layer: str) -> None:
    code = """
    kinds = [large._plan((n,))[-1] for n in (100, 20000)]
    run()
    print(*kinds, threads.layer())
    """
    small, large, name = with_layer(code, layer).split()
    kind = "team" if layer == "team" else "pooled" if name == "workqueue" else "parallel"
    assert (small, large) == ("serial", kind) and layer in ("team", "default", name)


@pytest.mark.parametrize("layer", LAYERS)
def test_forked_child_launches(layer: str) -> None:
    code = """
    run()
    child = os.fork()
    if not child:
        try:
            run(a=3.0)
            os._exit(7)
        except BaseException as error:
            print(error, flush=True)
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    run()
    """
    with_layer(code, layer)


def test_small_launches_start_no_threads() -> None:
    code = """
    run(100)
    assert threads.count() == 2
    engine().environment()
    from numba.np.ufunc import parallel
    assert not parallel._is_initialized and threads.layer.cache_info().currsize == 0
    assert threading.active_count() == 1
    """
    passes(code, NUMBA_NUM_THREADS="2")


def test_a_failing_check_in_a_parallel_launch_is_reported() -> None:
    code = """
    from jlkern.errors import BoundsError
    y = np.zeros(20000)
    fire = large.fire((20000,))
    for short in (19999, 10000, 1):
        status = fire(y, x[:short], 1.0)
        try:
            large.fail(fire, status)
        except BoundsError as error:
            assert "is out of bounds" in str(error) and "line 4" in str(error), error
        else:
            raise AssertionError("no error")
    run()
    """
    passes(code, NUMBA_NUM_THREADS="2")
    passes(code, NUMBA_NUM_THREADS="2", NUMBA_THREADING_LAYER="workqueue")


def test_same_bits_whatever_the_number_of_threads() -> None:
    code = """
    y = np.zeros(20000)
    fire = large.fire((20000,))
    assert fire(y, x, 0.1) == 0
    print(hash(y.tobytes()))
    """
    env = {"PYTHONHASHSEED": "0"}
    results = {passes(code, NUMBA_NUM_THREADS=count, **env) for count in ("1", "2")}
    results.add(passes(code, NUMBA_NUM_THREADS="2", NUMBA_THREADING_LAYER="workqueue", **env))
    assert len(results) == 1


def _has_openmp() -> bool:
    from numba.core.errors import NumbaError

    try:
        from numba.np.ufunc import omppool
    except (ImportError, NumbaError):
        return False
    return omppool is not None


def test_the_environment_is_left_as_it_was() -> None:
    with_layer("""
    before = dict(os.environ)
    run()
    assert threads.layer.cache_info().currsize == 1
    assert dict(os.environ) == before
    """, "default")  # fmt: skip


def test_failing_launches_at_the_same_time_keep_their_errors_apart() -> None:
    passes("""
    import re
    from jlkern.errors import BoundsError
    fire = large.fire((400,))
    bound = {n: large.bind((400,), (np.zeros(400), x[:n], 1.0)) for n in (50, 100, 399, 400)}
    mixed = []
    def work(n):
        for k in range(400):
            status = fire(np.zeros(400), x[:n], 1.0) if k % 2 else bound[n]()
            if n == 400:
                mixed.extend([status] if status else [])
                continue
            try:
                large.fail(fire, status)
            except BoundsError as error:
                if f"`x[{n + 1}]` is out of bounds: the size is ({n},)" not in str(error):
                    mixed.append(str(error))
            else:
                mixed.append("no error")
    workers = [threading.Thread(target=work, args=(n,)) for n in (50, 100, 399, 400, 400)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert not mixed, mixed[:3]
    """)


def test_a_layer_that_is_not_there_is_done_without() -> None:
    assert passes("run()\nprint(threads.layer())", NUMBA_THREADING_LAYER="tbb").strip() in ("none", "tbb")


def test_fork_while_another_thread_compiles() -> None:
    passes("""
    def compile_on():
        for n in range(2, 12):
            text = TEXT.replace("1:20", f"1:{n}")
            other = load_source(text, Origin(None, 1, False), ())
            signature = tuple(classify(name, a) for name, a in zip(other.names, (x, x, 1.0)))
            engine().compile(CompileRequest(other, signature, {}, (64,), 1, other.effects.written))
    worker = threading.Thread(target=compile_on)
    worker.start()
    for _ in range(5):
        child = os.fork()
        if not child:
            try:
                y = np.zeros(100, np.float32)
                fire = launcher((y, y, np.float32(1))).fire((100,))
                os._exit(7 if fire(y, y.copy(), np.float32(1)) == 0 else 2)
            except BaseException as error:
                print(repr(error), flush=True)
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    worker.join()
    """)


def test_affinity_and_numba_bound_the_number_of_threads() -> None:
    passes("""
    import numba
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    assert threads.count() == 1 and large._plan((20000,))[-1] == "nogil"
    """, NUMBA_NUM_THREADS="2")  # fmt: skip
    passes("""
    run()
    import numba
    numba.set_num_threads(1)
    assert threads.count() == 1 and large._plan((20000,))[-1] == "nogil"
    run()
    """, NUMBA_NUM_THREADS="2")  # fmt: skip


@pytest.mark.parametrize(("granted", "count"), [("150000 100000", 2), ("max 100000", 1 << 16), ("20000 100000", 1)])
def test_quota_of_the_control_group(granted: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins
    import io

    from jlkern.engines import cpus

    monkeypatch.setattr(builtins, "open", lambda *_, **__: io.StringIO(granted + "\n"))
    cpus._quota.cache_clear()
    try:
        assert cpus._quota() == count
    finally:
        monkeypatch.undo()
        cpus._quota.cache_clear()


TEAM = pytest.mark.skipif(not team.usable(), reason="teams are for Linux")


@TEAM
def test_a_team_starts_no_layer_of_numbas() -> None:
    passes("""
    run()
    from numba.np.ufunc import parallel
    assert not parallel._is_initialized and threads.layer.cache_info().currsize == 0
    assert [t.name for t in threading.enumerate() if t.name.startswith("jlkern")] == ["jlkern-0"]
    """, NUMBA_NUM_THREADS="2")  # fmt: skip


@TEAM
def test_every_group_is_run_once_whatever_the_numbers_of_groups_and_helpers() -> None:
    passes("""
    from jlkern.engines.numba import team
    COUNT = '''
    @kernel inbounds = true function count!(y)
        i = @index(Global)
        y[i] += 1
    end
    '''
    source = load_source(COUNT, Origin(None, 1, False), ())
    y = np.zeros(1000, np.int64)
    request = CompileRequest(source, (classify("y", y),), {}, (1,), 1, source.effects.written, (("threads", "all"),))
    made = engine().compile(request)
    bound = {}
    for helpers in (1, 2, 3):
        threads.count = lambda: helpers + 1
        bound |= {(helpers, n): made.bind((n,), (y,)) for n in (2, 3, 7, 8, 9, 13, 1000)}
    assert len(team._helpers) == 3
    rng = np.random.default_rng(1)
    keys = list(bound)
    for k in rng.integers(0, len(keys), 20000):
        helpers, n = keys[k]
        y[:] = 0
        assert bound[helpers, n]() == 0
        assert y.sum() == n and (y[:n] == 1).all(), keys[k]
    """)  # fmt: skip


@TEAM
def test_helpers_that_sleep_are_woken_and_end_with_the_process() -> None:
    code = """
    import time
    for _ in range(5):
        run()
        time.sleep(0.02)
    child = os.fork()
    if not child:
        run(a=2.0)
        assert sum(t.name.startswith("jlkern") for t in threading.enumerate()) == 1
        sys_exit = __import__("sys").exit
        sys_exit(7)  # runs what is registered for the end, in the child too
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    run()
    print("end", flush=True)
    """
    import time

    start = time.perf_counter()
    assert passes(code, NUMBA_NUM_THREADS="2") == "end\n"
    assert time.perf_counter() - start < 60


@TEAM
def test_a_fork_in_the_middle_of_launches() -> None:
    passes("""
    run()  # imports, whose locks a fork must not meet
    stop = []
    def launch_on():
        while not stop:
            run(a=1.0)
    worker = threading.Thread(target=launch_on)
    worker.start()
    made = large.fire((20000,))
    for _ in range(10):
        child = os.fork()
        if not child:
            try:
                y = np.zeros(20000)
                assert made(y, x, 4.0) == 0  # made before the fork: alone
                np.testing.assert_allclose(y, expected(x, 4.0), rtol=1e-12)
                for _ in range(20):
                    run(a=5.0)
                os._exit(7)
            except BaseException as error:
                print(repr(error), flush=True)
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    stop.append(1)
    worker.join()
    """, NUMBA_NUM_THREADS="2")  # fmt: skip
