"""Many processes write one store; some are killed while they do."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from jlkern.engines.base import Environment
from jlkern.memo.key import MemoKey
from jlkern.memo.store import FILE_NAME, Store, TrialRecord, Winner
from jlkern.space import Config

KEY = MemoKey("numba", "a" * 64, (("i", "const"),), ("float32[1]F",), (("y", (8,)),), Environment((("v", "1"),), ()))

WRITER = """
import sys, warnings
from pathlib import Path
from tests.stress.test_store_processes import KEY, write
warnings.simplefilter("error")
write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
"""


def config(i: int) -> Config:
    return Config((("i", i),))


def write(path, number: int, count: int) -> None:
    store = Store(path)
    for i in range(number * 10_000, number * 10_000 + count):
        store.begin(KEY, config(i))
        store.end(KEY, TrialRecord(config(i), "ok", 1e-3, reason="x" * 500))
        store.publish(KEY, Winner(config(i), 1e-3))
        assert store.path == path  # still on the disk
        print(i, flush=True)


def start(path, number: int, count: int) -> subprocess.Popen:
    command = [sys.executable, "-c", WRITER, str(path), str(number), str(count)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([".", *sys.path])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_nothing_of_many_writers_is_lost(tmp_path):
    path = tmp_path / FILE_NAME
    writers = [start(path, number, 25) for number in range(5)]
    for writer in writers:
        _, errors = writer.communicate(timeout=60)
        assert writer.returncode == 0, errors
    store = Store(path)
    done = {t.config.as_dict()["i"] for t in store.trials(KEY) if t.status == "ok"}
    assert done == {number * 10_000 + i for number in range(5) for i in range(25)}
    assert store.winner(KEY).config.as_dict()["i"] in done
    assert not list(tmp_path.glob("*.bad-*"))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_writers_leave_the_store_readable(tmp_path):
    path = tmp_path / FILE_NAME
    rng = random.Random(0)
    said: set[int] = set()
    for round_ in range(4):
        victim, witness = start(path, 2 * round_, 5000), start(path, 2 * round_ + 1, 8)
        first = victim.stdout.readline()
        assert first, victim.stderr.read()
        said.add(int(first))
        time.sleep(rng.uniform(0, 0.05))
        victim.send_signal(signal.SIGKILL)
        out, _ = victim.communicate()
        said |= set(map(int, out.split()))
        out, errors = witness.communicate(timeout=60)
        assert witness.returncode == 0, errors
        said |= set(map(int, out.split()))
    store = Store(path)
    trials = {t.config.as_dict()["i"]: t.status for t in store.trials(KEY)}
    assert said <= set(trials)  # what a writer said that it had written is there, killed or not
    assert sum(status == "begun" for status in trials.values()) <= 4  # at most the trial that each was killed in
    assert store.winner(KEY) is not None and store.path == path
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert not list(tmp_path.glob("*.bad-*"))
