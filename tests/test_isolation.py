"""Candidates in a worker process: the same results as without, arrays as the caller's are, and what travels between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jlkern
from jlkern.choice import the_store
from jlkern.errors import OptionError, TuningWarning
from jlkern.knobs import knobs
from jlkern.tuning import isolate, wire
from jlkern.tuning import worker as worker_module
from tests.helpers import install
from tests.test_tuning import FakeEngine, add_one, cost_by_block, make_task

STENCIL = """
@kernel function mix!(y, @Const(x), a)
    i, j = @index(Global, NTuple)
    if i + k <= size(x, 1)
        @inbounds y[i, j] += a * x[i, j] + x[i + k, j] * scale
    end
end
"""


@pytest.fixture(autouse=True)
def memo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JLKERN_LOCK_DIR", str(tmp_path))
    monkeypatch.setenv("JLKERN_CACHE_DIR", str(tmp_path / "memo"))


@pytest.fixture(scope="module", autouse=True)
def no_worker_left() -> Iterator[None]:
    yield
    worker_module.end_idle()


VALUES: list[Any] = [
    True, 3, -(2**63), 0.1, float("inf"), 1 - 2j, np.float32(0.1), np.int8(-3), np.bool_(True), np.complex64(1 + 2j),
    (1, 2.5, (np.uint8(3),)), np.float32, np.dtype("int16"), float, jlkern.Val((1, "a")), jlkern.julia("abs2"),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_as_they_were(value: Any) -> None:
    back = wire.decode_value(json.loads(json.dumps(wire.encode_value(value))))
    assert type(back) is type(value) and back == value


def test_a_value_that_is_not_a_number_comes_back_too() -> None:
    assert np.isnan(wire.decode_value(wire.encode_value(float("nan"))))
    with pytest.raises(TypeError, match="can not be sent"):
        wire.encode_value(object())


def test_errors_keep_their_kind() -> None:
    problem = wire.decode_error(wire.encode_error(jlkern.BoundsError("line 3")))
    assert type(problem) is jlkern.BoundsError and str(problem) == "line 3"
    assert type(wire.decode_error(["MemoryError", ""])) is MemoryError
    assert str(wire.decode_error(["KeyError", "'x'"])) == "KeyError: 'x'"
    assert type(wire.decode_error(["JlkernError.__init__", ""])) is wire.WorkerError


def laid_out(layout: str) -> tuple[Any, Any]:
    base = np.arange(3000.0).reshape(50, 60)
    if layout == "strided":
        return np.zeros((100, 120))[::2, ::2], np.arange(6000.0).reshape(50, 120)[:, 1::2]
    if layout == "overlap":
        both = np.arange(6000.0).reshape(100, 60)
        return both[:50], both[50:][::-1]
    if layout == "read-only":
        base.flags.writeable = False
    return np.zeros((50, 60), order="F" if layout == "F" else "C"), base.copy("F") if layout == "F" else base


@pytest.mark.parametrize("layout", ["C", "F", "strided", "overlap", "read-only"])
def test_a_worker_finds_what_this_process_finds(layout: str) -> None:
    mix = jlkern.from_source(STENCIL, tune={"k": [1], "scale": [2.0, 3.0]}, ndrange="y", reference=lambda y, x, a: None,
                             compare={"y": None}, isolation="process", max_evals=2)  # fmt: skip
    y, x = laid_out(layout)
    before = y.copy(), x.copy()
    result = mix.tune(y, x, np.float32(0.5))
    assert {t.status for t in result.trials} == {"ok"}
    assert np.array_equal(y, before[0]) and np.array_equal(x, before[1])
    mix(y, x, np.float32(0.5))


def test_wrong_and_failing_candidates_are_told_as_ever() -> None:
    source = """
    @kernel function odd!(y, @Const(x))
        i = @index(Global)
        if mode == 1
            y[i + 100000] = x[i]
        elseif mode == 2
            y[i] = no_such_function(x[i])
        elseif mode == 3
            y[i] = 7
        else
            y[i] += x[i]
        end
    end
    """
    odd = jlkern.from_source(source, tune={"mode": [0, 1, 2, 3, 4]}, ndrange="y", inout="y", isolation="process")
    y, x = np.ones(1000), np.arange(1000.0)
    result = odd.tune(y, x)
    found = {t.config.as_dict()["mode"]: t for t in result.trials if not t.config.schedule}
    assert {mode: t.status for mode, t in found.items()} == {0: "ok", 1: "launch", 2: "compile", 3: "wrong", 4: "ok"}
    assert found[1].reason.startswith("BoundsError: ") and found[3].reason.startswith(
        "y[0] is 7.0, the reference has 1.0"
    )
    assert "no_such_function" in found[2].reason and (y == 1).all()


def test_a_worker_is_reused_and_its_memory_is_given_back() -> None:
    before = set(Path("/dev/shm").iterdir()) if Path("/dev/shm").is_dir() else set()
    numbers = []
    for size in (500, 600):
        k = jlkern.from_source(
            "@kernel function f!(y) i = @index(Global); @inbounds y[i] += 1 end", tune={"block": [32, 64]},
            isolation="process",
        )  # fmt: skip
        k.tune(np.zeros(size))
        numbers.append(worker_module._idle[0].pid)
    assert numbers[0] == numbers[1] is not None
    if before:
        assert not {p for p in set(Path("/dev/shm").iterdir()) - before if p.name.startswith("psm_")}


def test_callables_stay_here_and_see_shared_arrays() -> None:
    seen: list[int] = []

    def reference(y: Any, x: Any) -> Any:
        seen.append(1)
        return x + 1

    def view(y: Any) -> Any:
        seen.append(2)
        return y

    source = "@kernel function f!(y, @Const(x)) i = @index(Global); @inbounds y[i] = x[i] + off end"
    f = jlkern.from_source(
        source, tune={"off": [1, 2]}, ndrange=lambda y: y.size, reference=reference, compare={"y": view},
        isolation="process",
    )  # fmt: skip
    result = f.tune(np.zeros(100), np.arange(100.0))
    assert {t.config.as_dict()["off"]: t.status for t in result.trials} == {1: "ok", 2: "wrong"}
    assert {1, 2} <= set(seen)


def test_shared_memory_that_is_too_small_runs_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    f = jlkern.from_source(
        "@kernel function f!(y) i = @index(Global); @inbounds y[i] += 1 end", tune={"block": [32, 64]},
        isolation="process",
    )  # fmt: skip
    y = np.zeros(50_000)
    with knobs.scope(scratch_limit=100_000), pytest.warns(TuningWarning, match="the default is used"):
        f(y)

    def full(*args: Any, **kwargs: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(isolate, "Segment", full)
    y = np.ones(60_000)
    with pytest.warns(TuningWarning, match="shared memory can not be had .*the default is used"):
        f(y)
    assert (y == 2).all()


def test_an_engine_without_a_worker_is_refused() -> None:
    from jlkern.tuning.run import tune

    task = make_task(FakeEngine(add_one, cost_by_block), isolation="process")
    with pytest.raises(jlkern.JlkernError):
        tune(task)


def test_other_conditions_than_those_of_calls_are_refused() -> None:
    import numba

    if numba.get_num_threads() == 1:
        pytest.skip("needs more than one thread")
    f = jlkern.from_source(
        "@kernel function f!(y) i = @index(Global); @inbounds y[i] += 1 end", tune={"block": [32, 64]},
        isolation="process",
    )  # fmt: skip
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        assert all(trial.status == "ok" for trial in f.tune(np.zeros(100)).trials)
        assert ("threads", "1") in [fact for key, _ in the_store().entries() for fact in key.environment.exact]
    finally:
        numba.set_num_threads(before)
    assert f.tune(np.zeros(100)).trials


def test_options_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    source = "@kernel function f!(y) i = @index(Global); @inbounds y[i] += 1 end"
    with pytest.raises(OptionError, match="isolation= must be"):
        jlkern.from_source(source, tune={"block": [1]}, isolation="thread")
    for limit in (0, -1, True, "long"):
        with pytest.raises(OptionError, match="trial_limit= must be"):
            jlkern.from_source(source, tune={"block": [1]}, trial_limit=limit)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="isolation= must be"):
        jlkern.from_source(source, tune={"block": [1, 2]}).tune(np.zeros(3), isolation="thread")
