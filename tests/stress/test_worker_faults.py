"""What candidates can do to a worker process, done for real: hang, crash, run out of memory, be killed from outside."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jlkern
from jlkern.knobs import knobs
from jlkern.tuning import worker as worker_module
from jlkern.tuning.worker import Worker

pytestmark = [pytest.mark.stress, pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")]

SOURCE = """
@kernel function risky!(y, @Const(x))
    i = @index(Global)
    v = x[i]
    while mode == 1 && v < 2
        v *= one(v)
    end
    if mode == 2
        @inbounds y[i + 1_000_000_000_000] = v
    else
        @inbounds y[i] = v + 1
    end
end
"""


@pytest.fixture(autouse=True)
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Worker]]:
    """Each test starts without workers, and knows those that it uses."""
    monkeypatch.setenv("JLKERN_LOCK_DIR", str(tmp_path))
    monkeypatch.setenv("JLKERN_CACHE_DIR", str(tmp_path / "memo"))
    worker_module.end_idle()
    used: list[Worker] = []
    real = worker_module.borrow
    monkeypatch.setattr("jlkern.tuning.isolate.borrow", lambda: used.append(real()) or used[-1])
    yield used
    worker_module.end_idle()


def risky(modes: list[int], **options: Any) -> jlkern.Kernel[...]:
    return jlkern.from_source(SOURCE, tune={"mode": modes}, ndrange="y", inout="y", isolation="process", **options)


def modes(result: jlkern.TuneResult) -> dict[Any, str]:
    return {t.config.as_dict()["mode"]: t.status for t in result.trials}


def reason(result: jlkern.TuneResult, mode: int) -> str:
    return next(t.reason for t in result.trials if t.config.as_dict()["mode"] == mode)


def test_a_candidate_that_never_ends_costs_itself(workers: list[Worker]) -> None:
    kernel = risky([0, 1, 3], trial_limit=2)
    y, x = np.zeros(100), np.ones(100)
    start = time.monotonic()
    result = kernel.tune(y, x)
    assert modes(result) == {0: "ok", 1: "hung", 3: "ok"}
    assert "did not end within 2 s" in reason(result, 1)
    assert time.monotonic() - start < 60 and not y.any()
    kernel(y, x)
    assert (y == 2).all()
    # it is known: the next run leaves it out
    started = workers[0].generation
    again = kernel.tune(y, x)
    assert modes(again)[1] == "hung" and workers[-1].generation == started
    assert any("did not end in an earlier run" in note for note in again.notes)


def test_the_default_limit_is_some_seconds() -> None:
    result = risky([0, 1]).tune(np.zeros(100), np.ones(100))
    assert modes(result) == {0: "ok", 1: "hung"} and "within 5 s" in reason(result, 1)


def test_a_segmentation_fault_costs_itself(workers: list[Worker]) -> None:
    result = risky([0, 2, 3]).tune(np.zeros(100), np.ones(100))
    assert modes(result) == {0: "ok", 2: "crashed", 3: "ok"}
    assert "SIGSEGV" in reason(result, 2)
    # the worker is started once more, at the latest for the next tuning
    assert modes(risky([0, 3]).tune(np.zeros(101), np.ones(101))) == {0: "ok", 3: "ok"}
    assert workers[-1] is workers[0] and workers[0].generation == 2


def test_a_default_that_crashes_is_not_the_end() -> None:
    result = risky([2, 0, 3]).tune(np.zeros(100), np.ones(100))
    assert modes(result) == {2: "crashed", 0: "ok", 3: "ok"} and result.best.as_dict()["mode"] != 2


def test_all_crashing_is_an_error_with_the_reasons() -> None:
    with pytest.raises(jlkern.TuningError, match="crashed: it took its worker process down by SIGSEGV"):
        risky([2]).tune(np.zeros(100), np.ones(100))


def test_writes_outside_an_array_do_not_reach_the_caller_or_later_candidates() -> None:
    source = """
    @kernel function stray!(y, @Const(x))
        i = @index(Global)
        @inbounds y[i] = x[i]
        if mode == 1
            @inbounds y[i + 150] = 99
        end
    end
    """
    kernel = jlkern.from_source(source, tune={"mode": [0, 1, 2, 3]}, ndrange=100, inout="y", isolation="process")
    block = np.zeros(300)
    y, x = block[:100], block[150:250]  # where the stray writes go, but in no overlap that anything could know of
    x[:] = 1
    result = kernel.tune(y, x)
    assert {t.config.as_dict()["mode"] for t in result.trials if t.status == "ok"} >= {0, 2, 3}
    assert (x == 1).all() and not y.any()


def test_a_worker_that_is_killed_costs_one_candidate(workers: list[Worker]) -> None:
    kernel = risky([0, 3, 4, 5, 6, 7, 8, 9])
    killed: list[int] = []

    def kill() -> None:
        while not workers or workers[0].pid is None:
            time.sleep(0.01)
        time.sleep(1.5)  # it takes some 2 s
        pid = workers[0].pid
        if pid is not None:
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        result = kernel.tune(np.zeros(100), np.ones(100))
    finally:
        thread.join()
    lost = [t for t in result.trials if t.status == "crashed"]
    assert killed and len(lost) <= 1
    assert all("SIGKILL" in t.reason for t in lost)


def test_memory_that_ends_in_the_worker_costs_itself() -> None:
    source = """
    @kernel function large!(y)
        i = @index(Global)
        l = @index(Local)
        tile = @localmem Float64 (size,)
        @inbounds tile[l] = i
        @synchronize
        @inbounds y[i] = tile[l]
    end
    """
    kernel = jlkern.from_source(
        source, tune={"size": [256, 400_000_000, 512]}, workgroup=64, ndrange="y", isolation="process"
    )
    with knobs.scope(worker_memory="2GiB"):
        result = kernel.tune(np.zeros(1000))
    found = {t.config.as_dict()["size"]: t.status for t in result.trials}
    assert found[256] == found[512] == "ok"
    assert found[400_000_000] in ("crashed", "launch", "compile")


def test_ctrl_c_in_a_hang_ends_the_worker_and_gives_the_best_so_far(workers: list[Worker]) -> None:
    kernel = risky([0, 1, 3], trial_limit=60)
    timer = threading.Timer(6.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    try:
        result = kernel.tune(np.zeros(100), np.ones(100))
    finally:
        timer.cancel()
    assert result.interrupted and time.monotonic() - start < 30
    assert modes(result)[0] == "ok" and modes(result)[1] == "interrupted"
    assert workers[0].pid is None


def test_a_worker_whose_parent_is_killed_ends_too(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = f"""
import numpy as np, jlkern, threading, time
from jlkern.tuning import isolate
real = isolate.borrow
def borrow():
    worker = real()
    def tell():
        while worker.pid is None:
            time.sleep(0.01)
        print(worker.pid, flush=True)
    threading.Thread(target=tell, daemon=True).start()
    return worker
isolate.borrow = borrow
k = jlkern.from_source({SOURCE!r}, tune={{"mode": [1]}}, ndrange="y", inout="y", isolation="process", trial_limit=3)
k.tune(np.zeros(100), np.ones(100))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *filter(None, sys.path)])}
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(1)
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 30
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not alive(pid)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
