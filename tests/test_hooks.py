"""Hooks hear of every trial and verdict, and cannot harm a tuning."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import jlkern
from jlkern.errors import OptionError, TuningWarning
from jlkern.tuning import hooks
from jlkern.tuning.run import tune
from tests.test_tuning import FakeEngine, add_one, cost_by_block, make_task


def test_trials_and_verdicts_are_told() -> None:
    trials: list[Any] = []
    verdicts: list[Any] = []
    with (
        jlkern.on_trial(lambda **facts: trials.append(facts)),
        jlkern.on_verdict(lambda **facts: verdicts.append(facts)),
    ):
        result = tune(make_task(FakeEngine(add_one, cost_by_block)))
    assert [facts["number"] for facts in trials] == [1, 2, 3, 4]
    assert trials[0]["trial"].config == result.default.config
    assert {facts["kernel"] for facts in trials} == {"kernel"}
    assert verdicts == [{"kernel": "kernel", "result": result}]
    tune(make_task(FakeEngine(add_one, cost_by_block)))
    assert len(trials) == 4 and len(verdicts) == 1 and not hooks._trials and not hooks._verdicts


def test_a_hook_can_be_removed_by_its_handle_also_twice() -> None:
    told: list[int] = []
    hook = jlkern.on_trial(lambda *, kernel, trial, number: told.append(number))
    other = jlkern.on_trial(lambda *, kernel, trial, number: told.append(-number))
    hook.remove()
    hook.remove()
    tune(make_task(FakeEngine(add_one, cost_by_block), max_evals=1))
    other.remove()
    assert told == [-1]


def test_what_a_hook_raises_is_logged_and_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*, kernel: str, trial: jlkern.Trial, number: int) -> None:
        raise ValueError("mine")

    with jlkern.on_trial(broken), pytest.warns(TuningWarning, match="broken raised ValueError: mine") as warned:
        with caplog.at_level(logging.WARNING, "jlkern"):
            result = tune(make_task(FakeEngine(add_one, cost_by_block)))
    assert len(result.trials) == 4 and result.best.as_dict() == {"block": 128}
    assert len([w for w in warned if "mine" in str(w.message)]) == 1
    assert len([r for r in caplog.records if "broken" in r.getMessage()]) == 4


def test_a_hook_may_interrupt() -> None:
    def enough(*, kernel: str, trial: jlkern.Trial, number: int) -> None:
        if number == 2:
            raise KeyboardInterrupt

    verdicts: list[jlkern.TuneResult] = []
    with jlkern.on_trial(enough), jlkern.on_verdict(lambda *, kernel, result: verdicts.append(result)):
        result = tune(make_task(FakeEngine(add_one, cost_by_block)))
    assert result.interrupted and len(result.trials) == 2 and verdicts == [result]


def test_only_functions_are_hooks() -> None:
    for register in (jlkern.on_trial, jlkern.on_verdict):
        with pytest.raises(OptionError, match="takes a function"):
            register(3)  # type: ignore[arg-type]
