"""Frozen processes note what they would have tuned, and `jlkern tune --from` does it elsewhere."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import jlkern
from jlkern import policy
from jlkern.cli import main

KERNELS = '''
import jlkern

@jlkern.kernel(tune={"block": [32, 64]}, max_evals=2)
def saxpy(y, a, x) -> None:
    """
    @kernel function saxpy!(y, a, @Const(x))
        i = @index(Global)
        @inbounds y[i] += a * x[i]
    end
    """

some = jlkern.from_source(
    "@kernel function part!(y, n) i = @index(Global); @inbounds y[i] = n end",
    tune={"block": [32, 64]}, ndrange=("n",), max_evals=2,
)
'''


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    import importlib
    import sys

    monkeypatch.setenv("JLKERN_CACHE_DIR", str(tmp_path / "memo"))
    monkeypatch.setenv("JLKERN_LOCK_DIR", str(tmp_path))
    (tmp_path / "jlkern_record_kernels.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("jlkern_record_kernels")
    sys.modules.pop("jlkern_record_kernels")


def call(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_misses_are_written_once_and_tuned_elsewhere(kernels: Any, tmp_path: Path) -> None:
    file = tmp_path / "misses.jsonl"
    y, x = np.zeros((20, 30), np.float32), np.ones((20, 30), np.float32)
    long = np.zeros(50)
    with jlkern.frozen(record=file) as misses:
        for _ in range(3):
            kernels.saxpy(y, np.float32(2), x)
        kernels.saxpy(y, np.float32(2), x, ndrange=(20, 10))
        kernels.some(long, 40)
    assert len(misses) == 3
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["kernel"] for line in lines] == ["jlkern_record_kernels:saxpy"] * 2 + ["jlkern_record_kernels:part"]
    assert lines[0]["shapes"] == {"y": [20, 30], "x": [20, 30]} and lines[0]["ndrange"] is None
    assert lines[1]["ndrange"] == [20, 10]
    # of the arguments only what the ndrange reads
    assert lines[0]["values"] == {} and lines[2]["values"] == {"n": 40}
    assert [policy.read_miss(json.dumps(line)).line() for line in lines] == [
        json.dumps(line, sort_keys=True) for line in lines
    ]
    assert kernels.saxpy.config_for(y, np.float32(2), x) is None
    result = call("tune", "--from", str(file))
    assert result.exit_code == 0, result.output
    assert "tuned 3 of 3 recorded calls" in result.output
    assert kernels.saxpy.explain(y, np.float32(2), x).origin == "memo"
    assert kernels.saxpy.explain(y, np.float32(2), x, ndrange=(20, 10)).origin == "memo"
    assert kernels.some.explain(long, 40).origin == "memo"
    assert kernels.some.explain(long, 41).origin == "unknown"


def test_what_can_not_be_tuned_is_said_and_the_rest_is_done(kernels: Any, tmp_path: Path) -> None:
    file = tmp_path / "misses.jsonl"
    with jlkern.frozen(record=str(file)):
        kernels.saxpy(np.zeros(7), 1.0, np.ones(7))
    good = json.loads(file.read_text())
    bad: list[Any] = [
        "nonsense",
        {**good, "format": "other"},
        {**good, "shapes": {"y": [-1]}},
        {**good, "kernel": "jlkern_no_such_module:f"},
        {**good, "kernel": "__main__:saxpy"},
        {**good, "source": "0" * 64},
        {**good, "types": ["float64[:]"]},
        {**good, "types": ["float64[:]", "(float64, int64)", "float64[:]"]},
    ]
    file.write_text("\n".join([*(b if isinstance(b, str) else json.dumps(b) for b in bad), json.dumps(good)]))
    result = call("tune", "--from", str(file))
    assert result.exit_code == 1
    assert f"tuned 1 of {len(bad) + 1} recorded calls" in result.output
    for text in (
        "no record of a miss",
        "cannot import",
        "a script's kernel",
        "no kernel saxpy with the source",
        "takes (y",
    ):
        assert text in result.output


def test_a_frozen_process_records_too(kernels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JLKERN_FROZEN", "1")
    monkeypatch.setenv("JLKERN_RECORD", str(tmp_path / "record"))
    for _ in range(2):
        kernels.saxpy(np.zeros(9), 1.0, np.ones(9))
    assert len((tmp_path / "record").read_text().splitlines()) == 1


def test_a_record_that_can_not_be_written_stops_nothing(
    kernels: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    y = np.zeros(9)
    with caplog.at_level(logging.WARNING, "jlkern"), jlkern.frozen(record=tmp_path / "no" / "folder") as misses:
        kernels.saxpy(y, 1.0, np.ones(9))
    assert (y == 1).all() and len(misses) == 1
    assert "can not be recorded" in caplog.text


def test_usage() -> None:
    assert "pass a MODULE, or --from" in call("tune").output
    nothing = call("tune", "--from", "no-such-file")  # what a process that missed nothing leaves behind
    assert nothing.exit_code == 0 and "nothing was recorded" in nothing.output
