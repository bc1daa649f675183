"""Processes that tune one key: one does the work, and one that dies loses nothing but the trial that it died in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jlkern.memo.store import FILE_NAME, Store
from tests.test_tuning import FakeEngine, add_one, cost_by_block, make_task, statuses

TUNER = """
import sys, time
from pathlib import Path
from jlkern.memo.store import Store
from jlkern.tuning.run import tune
from tests.stress.test_tuning_processes import body
from tests.test_tuning import FakeEngine, cost_by_block, make_task
engine = FakeEngine(body(sys.argv[2]), cost_by_block)
result = tune(make_task(engine, store=Store(Path(sys.argv[1]))))
print(result.best, result.adopted, len(engine.compiled))
"""


def body(what: str):
    import time

    def run(params, y, x):
        add_one(params, y, x)
        if what == "slow":
            time.sleep(0.01)
        if params["block"] == {"crash": 128, "crash default": 64}.get(what):
            os.kill(os.getpid(), signal.SIGKILL)

    return run


def start(path: Path, what: str, locks: Path) -> subprocess.Popen:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([".", *sys.path]),
        "JLKERN_LOCK_DIR": str(locks),
    }
    command = [sys.executable, "-c", TUNER, str(path), what]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_of_many_processes_one_tunes_and_the_others_adopt(tmp_path):
    path = tmp_path / FILE_NAME
    tuners = [start(path, "slow", tmp_path) for _ in range(3)]
    said = []
    for tuner in tuners:
        out, errors = tuner.communicate(timeout=60)
        assert tuner.returncode == 0, errors
        said.append(out.split())
    assert {line[0] for line in said} == {"block=128"}
    # A process that starts after the others are done finds their trials: it compiles no more than the finalists.
    full = [line for line in said if line[1] == "False" and line[2] == "4"]
    assert len(full) == 1
    store = Store(path)
    assert store.winner(make_task(FakeEngine(add_one, cost_by_block)).key) is not None


needs_kill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")


@needs_kill
def test_a_candidate_that_kills_its_process_twice_is_skipped_from_then_on(tmp_path):
    path = tmp_path / FILE_NAME
    for _ in range(2):
        tuner = start(path, "crash", tmp_path)
        tuner.communicate(timeout=60)
        assert tuner.returncode == -signal.SIGKILL
    tuner = start(path, "crash", tmp_path)
    out, errors = tuner.communicate(timeout=60)
    assert tuner.returncode == 0, errors
    assert out.split()[0] == "block=256"
    store = Store(path)
    task = make_task(FakeEngine(add_one, cost_by_block), store=store)
    assert {t.config.as_dict()["block"]: t.status for t in store.trials(task.key)} == {
        64: "ok", 128: "crashed", 256: "ok", 512: "ok",
    }  # fmt: skip
    from jlkern.tuning.run import tune

    assert statuses(tune(task))[128] == "crashed"


@needs_kill
def test_a_process_that_is_killed_in_the_defaults_trial_leaves_the_kernel_usable(tmp_path):
    path = tmp_path / FILE_NAME
    for what in ("crash default", "crash default", "slow"):
        tuner = start(path, what, tmp_path)
        out, errors = tuner.communicate(timeout=60)
        assert tuner.returncode == (0 if what == "slow" else -signal.SIGKILL), errors
    assert out.split()[0] == "block=128"
