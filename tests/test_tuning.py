"""Whole tuning runs on an engine whose kernels are NumPy functions and whose times are made up."""

from __future__ import annotations

import logging
import math
import os
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jlkern.effects import Effects
from jlkern.engines.base import CompileRequest, Device, Engine, Environment, Launcher
from jlkern.errors import BoundsError, CompileError, OptionError, TuningError, TuningWarning
from jlkern.knobs import knobs
from jlkern.memo.key import MemoKey
from jlkern.memo.store import Store, TrialRecord, Winner
from jlkern.space import Config, make_space
from jlkern.tuning import run as run_module
from jlkern.tuning import trial as trial_module
from jlkern.tuning.run import TuneSettings, TuneTask, tune


class FakeLauncher(Launcher):
    def __init__(self, engine: FakeEngine, request: CompileRequest) -> None:
        self.engine, self.request = engine, request
        self.config = Config(tuple(request.params.items()), request.schedule)

    def fire(self, ndrange):
        def fire(*args):
            self.engine.launches[self.config] += 1
            return self.engine.body(dict(self.request.params), *args) or 0

        return fire

    def fail(self, fire, status):
        raise BoundsError(f"status {status}")

    def bind(self, ndrange, args):
        fire = self.fire(ndrange)
        return lambda: fire(*args)

    def sampler(self, ndrange, args):
        fire = self.fire(ndrange)

        def sample(n: int) -> float:
            for _ in range(min(n, 3)):
                if fire(*args):
                    self.fail(fire, 1)
            self.engine.sampled[self.config] += 1
            return n * self.engine.cost(self.config) * (1 + abs(self.engine.rng.gauss(0, self.engine.noise)))

        return sample


@dataclass
class FakeEngine(Engine):
    body: Any
    cost: Any
    noise: float = 0.01
    alternatives: tuple = ((),)
    compiled: Counter = field(default_factory=Counter)
    launches: Counter = field(default_factory=Counter)
    sampled: Counter = field(default_factory=Counter)
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    name = "fake"

    def devices(self):
        return (Device("cpu", 0, "fake"),)

    def environment(self):
        return Environment((("version", "1"),), (("isa", "x"),))

    def check(self, source):
        pass

    def default_workgroup(self, ndrange):
        return (1,) * len(ndrange)

    def compile(self, request):
        self.compiled[Config(tuple(request.params.items()), request.schedule)] += 1
        if request.params.get("block") == "uncompilable":
            raise CompileError("no such block")
        return FakeLauncher(self, request)

    def schedules(self, request):
        return self.alternatives


@pytest.fixture(autouse=True)
def _locks(tmp_path, monkeypatch):
    monkeypatch.setenv("JLKERN_LOCK_DIR", str(tmp_path))


def add_one(params, y, x):
    y[...] = x + 1


BLOCKS = {"block": [64, 128, 256, 512]}
COSTS = {64: 1.0, 128: 0.5, 256: 0.8, 512: 2.0}


def cost_by_block(config: Config) -> float:
    return 1e-3 * COSTS[config.as_dict()["block"]]


def make_task(
    engine: FakeEngine,
    tune_values=BLOCKS,
    args=None,
    names=("y", "x"),
    written=("y",),
    read_first=(),
    unread=(),
    store=None,
    shapes=(("y", (8,)),),
    **settings,
) -> TuneTask:
    args = (np.zeros(8), np.arange(8.0)) if args is None else args
    space = make_space(tune_values, settings.pop("restrictions", None), settings.pop("default", None))

    def request(config: Config) -> CompileRequest:
        return CompileRequest(SimpleNamespace(), (), config.as_dict(), None, 1, frozenset(written), config.schedule)

    return TuneTask(
        engine=engine,
        space=space,
        request=request,
        ndrange=lambda params: (8,),
        names=names,
        args=args,
        effects=Effects(frozenset(written), frozenset(read_first), (), frozenset(unread)),
        key=MemoKey(
            "fake", "0" * 64, tuple((n, "const") for n in tune_values), ("f8[1]F",) * 2, shapes, engine.environment()
        ),
        store=Store(None) if store is None else store,
        settings=TuneSettings(**settings),
    )


def statuses(result):
    return {trial.config.as_dict().get("block"): trial.status for trial in result.trials}


# --- rule 1: no side effects ------------------------------------------------------------------------------------------


def test_the_best_is_found_remembered_and_the_arguments_stay():
    y, x = np.full(8, 7.0), np.arange(8.0)
    engine = FakeEngine(add_one, cost_by_block)
    task = make_task(engine, args=(y, x))
    result = tune(task)
    assert str(result.best) == "block=128"
    assert result.trials[0].config == result.default.config == task.space.default()
    assert result.speedup == pytest.approx(2.0, rel=0.1)
    assert result.seconds == pytest.approx(5e-4, rel=0.1)
    assert result.complete and not result.noisy and not result.interrupted and result.reference == "default"
    assert (y == 7).all() and (x == np.arange(8)).all()
    winner = task.store.winner(task.key)
    assert winner.config == result.best and winner.rank == "exact"
    assert winner.speedup == pytest.approx(2.0, rel=0.1)
    assert "block=128" in str(result) and "4 ok" in str(result)


def test_in_place_and_accumulating_kernels_are_verified_and_timed_on_restored_arrays():
    """A kernel that reads what it writes sees the caller's content before every launch that counts."""
    seen = []

    def accumulate(params, y, x):
        seen.append(y[0])
        y += x + 1

    y = np.full(8, 5.0)
    engine = FakeEngine(accumulate, cost_by_block)
    result = tune(make_task(engine, args=(y, np.arange(8.0)), read_first=("y",)))
    assert str(result.best) == "block=128" and set(statuses(result).values()) == {"ok"}
    assert set(seen) == {5.0}
    assert (y == 5).all()


@pytest.mark.parametrize(("unread", "overlap", "batches"), [((), False, 1), (("y",), False, 10), (("y",), True, 1)])
def test_what_is_never_read_is_timed_in_batches_unless_it_overlaps(unread, overlap, batches):
    lengths = set()

    class Engine2(FakeEngine):
        def compile(self, request):
            launcher = super().compile(request)
            sampler = launcher.sampler

            def noted(ndrange, args):
                sample = sampler(ndrange, args)
                return lambda n: lengths.add(n) or sample(n)

            launcher.sampler = noted
            return launcher

    whole = np.arange(16.0)
    args = (whole[:8], whole[4:12]) if overlap else (np.zeros(8), np.arange(8.0))
    tune(make_task(Engine2(add_one, lambda c: 1e-4), args=args, read_first=("y",), unread=unread))
    assert max(lengths) == pytest.approx(batches, abs=batches // 5)


@pytest.mark.parametrize("size", [8, 50_000])
def test_short_launches_on_restored_arrays_follow_each_other_on_copies_that_are_fresh(size):
    stale = []

    def body(params, y):
        stale.append(not (y == 5).all())
        y += 1

    engine = FakeEngine(body, lambda c: 1e-6)
    mine = np.full(size, 5.0)
    result = tune(make_task(engine, args=(mine,), names=("y",), read_first=("y",), shapes=(("y", (size,)),)))
    assert not any(stale) and (mine == 5).all() and set(statuses(result).values()) == {"ok"}
    in_a_row = sum(engine.launches.values()) >= trial_module.COPIES * 3 * len(result.trials)
    assert in_a_row == (size == 8)


def test_overlapping_arguments_stay_overlapping():
    base = np.arange(9.0)

    def shift(params, y, x):
        y[:] = x.copy()

    def check(params, y, x):
        assert np.shares_memory(y, x)
        shift(params, y, x)

    result = tune(make_task(FakeEngine(check, cost_by_block), args=(base[:-1], base[1:]), read_first=("y",)))
    assert set(statuses(result).values()) == {"ok"}
    assert (base == np.arange(9)).all()


def test_too_little_scratch_memory_runs_the_default_and_says_so():
    task = make_task(FakeEngine(add_one, cost_by_block), scratch_limit=100)
    with pytest.warns(TuningWarning, match="LIMIT is 100; the default is used"):
        result = tune(task)
    assert result.best == task.space.default() and result.trials == () and "LIMIT is 100" in result.notes[0]
    assert task.store.winner(task.key) is None


def test_an_empty_ndrange_tunes_and_stores_nothing():
    engine = FakeEngine(add_one, cost_by_block)
    task = replace(make_task(engine), ndrange=lambda params: (4, 0))
    result = tune(task)
    assert result.best == task.space.default() and not engine.compiled
    assert task.store.winner(task.key) is None and task.store.trials(task.key) == []


# --- rule 2: verified -------------------------------------------------------------------------------------------------


def test_a_candidate_with_a_wrong_result_never_wins():
    def body(params, y, x):
        y[...] = x + 1
        if params["block"] == 128:
            y[3] = 9.5

    result = tune(make_task(FakeEngine(body, cost_by_block)))
    assert str(result.best) == "block=256"
    wrong = next(t for t in result.trials if t.status == "wrong")
    assert wrong.reason.startswith("y[3] is 9.5, the reference has 4.0; 1 of 8 differ")


def test_a_candidate_that_writes_nothing_is_wrong_even_when_the_result_is_there_already():
    def body(params, y, x):
        if params["block"] != 128:
            y[...] = x + 1

    args = (np.arange(8.0) + 1, np.arange(8.0))  # y holds the right result
    result = tune(make_task(FakeEngine(body, cost_by_block), args=args))
    assert statuses(result)[128] == "wrong" and str(result.best) == "block=256"


@pytest.mark.parametrize("unread", [(), ("y",)])
@pytest.mark.parametrize("broken", ["nothing", "too much", "too little"])
def test_of_an_output_that_is_never_read_every_write_shows(unread, broken):
    def body(params, y, x):
        if params["block"] != 128:
            y[2:6] = x[2:6] + 1
        elif broken == "too much":
            y[2:7] = np.append(x[2:6] + 1, y[6] + (0 if unread else 1))
            y[6] = x[6] + 1
        elif broken == "too little":
            y[2:5] = x[2:5] + 1

    args = (np.arange(8.0) + 1, np.arange(8.0))  # y holds the right result
    if broken == "too much":
        args[0][6] = 99.0
    result = tune(make_task(FakeEngine(body, cost_by_block), args=args, read_first=("y",), unread=unread))
    seen = broken == "too much" or bool(unread)
    assert statuses(result)[128] == ("wrong" if seen else "ok")
    assert str(result.best) == ("block=256" if seen else "block=128")
    assert Counter(statuses(result).values())["ok"] == (3 if seen else 4)


def test_an_output_that_is_covered_in_part_is_no_error():
    def body(params, y, x):
        y[:4] = x[:4] + 1

    result = tune(make_task(FakeEngine(body, cost_by_block)))
    assert set(statuses(result).values()) == {"ok"}


def test_all_others_disagreeing_names_both_ways_out():
    def body(params, y, x):
        y[...] = params["block"]

    task = make_task(FakeEngine(body, cost_by_block))
    with pytest.raises(TuningError) as problem:
        tune(task)
    text = str(problem.value)
    assert "differ from those of block=64" in text and "y[0] is 128.0, the reference has 64.0" in text
    assert "compare={'y': np.sum}" in text and "compare={'y': None}" in text
    assert task.store.winner(task.key) is None
    assert str(tune(make_task(FakeEngine(body, cost_by_block), compare={"y": None})).best) == "block=128"
    assert str(tune(make_task(FakeEngine(body, cost_by_block), tolerance=100.0)).best) == "block=128"


def test_compare_maps_an_output():
    def partial_sums(params, y, x):
        y[...] = 0
        y[: 512 // params["block"]] = 512.0 / (512 // params["block"])

    result = tune(make_task(FakeEngine(partial_sums, cost_by_block), compare={"y": np.sum}))
    assert str(result.best) == "block=128"


@pytest.mark.parametrize("style", ["fills", "returns", "dict"])
def test_a_reference_function_decides_also_about_the_default(style):
    def body(params, y, x):
        y[...] = x + (2 if params["block"] == 64 else 1)

    def reference(y, x):
        assert y[0] == 3.0
        if style == "fills":
            y[...] = x + 1
            return None
        return x + 1 if style == "returns" else {"y": x + 1}

    args = (np.full(8, 3.0), np.arange(8.0))
    result = tune(make_task(FakeEngine(body, cost_by_block), args=args, reference=reference))
    assert statuses(result) == {64: "wrong", 128: "ok", 256: "ok", 512: "ok"}
    assert str(result.best) == "block=128" and result.reference == "reference=" and result.speedup is None
    assert "the default block=64 can not be used (wrong)" in result.notes[0]


def test_a_broken_reference_function_is_reported():
    def reference(y, x):
        raise ValueError("oops")

    with pytest.raises(TuningError, match="reference= raised ValueError: oops"):
        tune(make_task(FakeEngine(add_one, cost_by_block), reference=reference))
    with pytest.raises(TuningError, match="returned z, which is none of the outputs y"):
        tune(make_task(FakeEngine(add_one, cost_by_block), reference=lambda y, x: {"z": x}))


def test_without_a_default_that_works_the_first_that_does_is_the_reference():
    def body(params, y, x):
        if params["block"] == 64:
            raise BoundsError("x[9]")
        y[...] = x + 1

    result = tune(make_task(FakeEngine(body, cost_by_block)))
    assert str(result.best) == "block=128" and result.default.status == "launch"
    assert result.reference.startswith("block=") and any("not of the default" in note for note in result.notes)


# --- rule 3: failures cost one candidate ------------------------------------------------------------------------------


def test_each_kind_of_failure_costs_its_candidate():
    def body(params, y, x):
        if params["block"] == 1:
            raise MemoryError
        if params["block"] == 2:
            return 3
        y[...] = x + (params["block"] == 3)

    def cost(config):
        return {64: 1e-3, 4: math.nan, 5: math.inf, 6: 0.0, 7: 2e-4}.get(config.as_dict()["block"], 1e-4)

    blocks = {"block": [64, "uncompilable", 1, 2, 3, 4, 5, 6, 7]}
    task = make_task(FakeEngine(body, cost), blocks)
    result = tune(task)
    assert result.best.as_dict() == {"block": 7}
    assert statuses(result) == {
        64: "ok", "uncompilable": "compile", 1: "launch", 2: "launch", 3: "wrong",
        4: "launch", 5: "launch", 6: "launch", 7: "ok",
    }  # fmt: skip
    reasons = {t.config.as_dict()["block"]: t.reason for t in result.trials}
    assert reasons["uncompilable"] == "no such block" and reasons[1] == "MemoryError"
    assert reasons[2] == "BoundsError: status 3"


def test_a_broken_workgroup_or_request_costs_its_candidate():
    task = make_task(FakeEngine(add_one, cost_by_block))
    plain = task.request

    def request(config):
        if config.as_dict()["block"] == 128:
            raise ValueError("a bug of the caller's")
        return plain(config)

    result = tune(replace(task, request=request))
    assert statuses(result)[128] == "compile" and str(result.best) == "block=256"


def test_all_failing_groups_the_reasons_and_remembers_nothing():
    def body(params, y, x):
        raise BoundsError("y[10]")

    task = make_task(FakeEngine(body, cost_by_block), {"block": [64, 128, 256, "uncompilable"]})
    with pytest.raises(TuningError) as problem:
        tune(task)
    text = str(problem.value)
    assert text.count("BoundsError: y[10]") == 1 and "and 1 more" in text and "compile: no such block" in text
    assert task.store.winner(task.key) is None


# --- rule 4: the search -----------------------------------------------------------------------------------------------

LARGE = {"a": list(range(20)), "b": list(range(20)), "flag": [True, False]}


def cost_large(config: Config) -> float:
    p = config.as_dict()
    return 1e-3 * (1 + abs(p["a"] - 12) / 10 + abs(p["b"] - 5) / 10 + p["flag"])


def test_quick_is_at_most_sixty_evaluations():
    engine = FakeEngine(add_one, cost_large)
    result = tune(make_task(engine, LARGE))
    assert len(result.trials) <= 60 and not result.complete
    assert cost_large(result.best) < 0.6 * cost_large(result.default.config)


@pytest.mark.parametrize("evals", [1, 2, 7])
def test_max_evals_counts_the_default(evals):
    result = tune(make_task(FakeEngine(add_one, cost_large), LARGE, max_evals=evals))
    assert 1 <= len(result.trials) <= evals


def test_full_is_the_whole_space():
    values = {"a": list(range(9)), "b": list(range(9))}
    engine = FakeEngine(add_one, lambda c: 1e-3 * (1 + c.as_dict()["a"]))
    result = tune(make_task(engine, values, effort="full", restrictions=["a != b"], default={"a": 8, "b": 1}))
    assert len(result.trials) == 72 and result.complete and result.best.as_dict()["a"] == 0


def test_a_seed_makes_the_trials_repeatable():
    def trials(seed):
        return [t.config for t in tune(make_task(FakeEngine(add_one, cost_large, noise=0), LARGE, seed=seed)).trials]

    assert trials(3) == trials(3) != trials(4)


def test_settings_are_checked_before_anything_runs():
    engine = FakeEngine(add_one, cost_by_block)
    with pytest.raises(OptionError, match="strategy="):
        tune(make_task(engine, strategy="nope"))
    with pytest.raises(OptionError, match="'x', which is none of the outputs y"):
        tune(make_task(engine, compare={"x": None}))
    for wrong in ({"effort": "slow"}, {"max_evals": 0}, {"time_limit": -1}, {"on_busy": "x"}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            TuneSettings(**wrong)
    assert not engine.compiled


def test_the_time_limit_ends_the_search(monkeypatch):
    engine = FakeEngine(add_one, cost_large)
    result = None

    class Clock(run_module.Clock):
        def elapsed(self):
            return 0.1 * sum(engine.compiled.values())

    monkeypatch.setattr(run_module, "Clock", Clock)
    result = tune(make_task(engine, LARGE, effort="full", time_limit=2.0))
    assert 10 <= len(result.trials) <= 16


@pytest.fixture
def compile_clock(monkeypatch):
    """A clock that goes only when the last of the engines compiles, which takes a second."""
    engines = []

    class Clock(run_module.Clock):
        def elapsed(self):
            return float(sum(engines[-1].compiled.values()))

    monkeypatch.setattr(run_module, "Clock", Clock)
    return engines


def test_no_trial_starts_that_would_end_after_the_time_limit(compile_clock):
    others = ((), (("jam", 2),), (("jam", 4),), (("jam", 8),))
    for limit in (3.0, 5.0, 8.0, 20.0, 30.0):
        engine = FakeEngine(add_one, cost_large, alternatives=others)
        compile_clock.append(engine)
        result = tune(make_task(engine, LARGE, effort="full", time_limit=limit))
        assert 2 <= sum(engine.compiled.values()) <= limit
        # Remembered trials are no way around it, though finalists among them have to be compiled.
        store = Store(None)
        compile_clock.append(FakeEngine(add_one, cost_large))
        tune(make_task(compile_clock[-1], LARGE, effort="full", time_limit=30.0, store=store))
        engine = FakeEngine(add_one, cost_large, alternatives=others)
        compile_clock.append(engine)
        result = tune(make_task(engine, LARGE, effort="full", time_limit=limit, store=store))
        assert 2 <= sum(engine.compiled.values()) <= limit + 1
        assert result.best in {t.config for t in result.trials if t.status == "ok"}


@pytest.mark.parametrize("good, best", [(0.5, 128), (0.95, 64)])
def test_without_time_for_final_rounds_only_a_large_gain_replaces_the_default(compile_clock, good, best):
    compile_clock.append(engine := FakeEngine(add_one, lambda c: 1e-3 * (good if c.as_dict()["block"] == 128 else 1)))
    task = make_task(engine, {"block": [64, 128]}, time_limit=2.0)
    result = tune(task)
    assert result.best.as_dict()["block"] == best and any("no time for final rounds" in n for n in result.notes)
    # What was decided by final rounds is not given up for such a guess.
    compile_clock.append(engine)
    task.store.publish(task.key, Winner(Config((("block", 128),)), 1e-3, created=1.0))
    task.store.forget(task.key, trials_only=True)
    engine.compiled.clear()
    assert tune(task).best.as_dict()["block"] == 128


def test_max_evals_bounds_what_is_made_anew_when_trials_are_remembered():
    others = ((), (("jam", 2),), (("jam", 4),), (("jam", 8),))
    store = Store(None)
    tune(make_task(FakeEngine(add_one, cost_large), LARGE, store=store))
    engine = FakeEngine(add_one, cost_large, alternatives=others)
    result = tune(make_task(engine, LARGE, store=store, max_evals=2))
    made = [t for t in result.trials if not t.known]
    # The default and one more; two schedules; and in the final rounds two of the remembered and the old winner.
    assert sum(bool(t.config.schedule) for t in made) == 2
    assert sum(engine.compiled.values()) <= 2 + 2 + 2 + 1


# --- rule 5: honest timing --------------------------------------------------------------------------------------------


def test_noise_alone_does_not_replace_the_default():
    replaced = 0
    for seed in range(20):
        engine = FakeEngine(add_one, lambda config: 1e-3, noise=0.03, rng=random.Random(seed))
        replaced += str(tune(make_task(engine)).best) != "block=64"
    assert replaced <= 2


def test_ties_go_to_product_order():
    costs = {64: 1.0, 128: 2.0, 256: 0.5, 512: 0.5}
    for seed in range(5):
        engine = FakeEngine(add_one, lambda c: 1e-3 * costs[c.as_dict()["block"]], rng=random.Random(seed))
        assert str(tune(make_task(engine)).best) == "block=256"


def test_an_unsteady_machine_is_said_to_be():
    engine = FakeEngine(add_one, cost_by_block, noise=0.5)
    task = make_task(engine)
    result = tune(task)
    assert result.noisy and any("not steady" in note for note in result.notes)
    assert task.store.winner(task.key).noisy


class BusyEngine(FakeEngine):
    """Every second launch takes a hundred times longer, at random."""

    def compile(self, request):
        launcher = super().compile(request)
        quiet = launcher.sampler
        launcher.sampler = lambda ndrange, args: self.busy(quiet(ndrange, args))
        return launcher

    def busy(self, sample):
        return lambda n: sample(1) * n * (100 if self.rng.random() < 0.5 else 1)


def test_times_on_a_busy_machine_are_those_of_the_fast_launches():
    from jlkern.report import trials_table

    right = noisy = 0
    for seed in range(20):
        result = tune(make_task(BusyEngine(add_one, cost_by_block, rng=random.Random(seed))))
        assert result.noisy == any("not steady" in note for note in result.notes)
        noisy += result.noisy
        assert result.seconds == pytest.approx(cost_by_block(result.best), rel=0.1)
        right += str(result.best) == "block=128"
    assert right >= 17 and noisy >= 17
    result = tune(make_task(BusyEngine(add_one, cost_by_block)))
    table = trials_table(result.trials, result.best).splitlines()
    marked = [t.config.as_dict()["block"] for t in result.trials if (t.spread or 0) > 1]
    assert marked and [int(line.split()[0]) for line in table if line.endswith("noisy")] == sorted(
        marked, key=lambda b: next(t.seconds for t in result.trials if t.config.as_dict()["block"] == b)
    )


def test_a_noisier_run_does_not_replace_a_cleaner_record_with_a_slower_one():
    store = Store(None)
    task = make_task(FakeEngine(add_one, cost_by_block), store=store)
    tune(task)
    clean = store.winner(task.key)
    assert str(clean.config) == "block=128" and not clean.noisy

    def other(config):  # the machine is slower now, and treats the old winner badly
        return 3 * cost_by_block(config) * (4 if config == clean.config else 1)

    busy = replace(task, engine=BusyEngine(add_one, other))
    result = tune(busy)
    assert result.noisy and result.best == clean.config and any("earlier winner stays" in n for n in result.notes)
    kept = store.winner(task.key)
    assert (kept.config, kept.seconds, kept.noisy) == (clean.config, clean.seconds, False)
    # A steady run is believed, and so is a noisy one that found something faster.
    assert tune(replace(task, engine=FakeEngine(add_one, other))).best != clean.config
    store.publish(task.key, replace(clean, seconds=1.0))
    assert tune(busy).best != clean.config
    # What does not work any more does not stay.
    store.publish(task.key, clean)

    def broken(params, y, x):
        y[...] = x + 1 + (params["block"] == 128)

    assert tune(replace(task, engine=BusyEngine(broken, other))).best != clean.config


def test_losers_are_sampled_less():
    engine = FakeEngine(add_one, lambda c: 1e-3 * {64: 1, 128: 0.9, 256: 9, 512: 1.3}[c.as_dict()["block"]])
    samples = {t.config.as_dict()["block"]: t.samples for t in tune(make_task(engine)).trials}
    assert samples[256] < 3 <= samples[512] <= samples[128]


def test_the_device_lock_is_held_while_measuring_and_not_while_compiling(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    held = {"compile": [], "launch": []}

    def busy():
        with open(tmp_path / "jlkern-cpu-0.lock", "a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    class Engine2(FakeEngine):
        def compile(self, request):
            held["compile"].append(busy())
            return super().compile(request)

    def body(params, y, x):
        held["launch"].append(busy())
        y[...] = x + 1

    tune(make_task(Engine2(body, cost_by_block)))
    assert not any(held["compile"]) and all(held["launch"])


# --- rule 6: nothing is lost ------------------------------------------------------------------------------------------


def test_every_trial_is_journaled_as_it_happens():
    store = Store(None)
    open_trials = []

    def body(params, y, x):
        open_trials.append({r.config.as_dict()["block"] for r in store.trials(task.key) if r.status == "begun"})
        y[...] = x + 1

    engine = FakeEngine(body, cost_by_block)
    task = make_task(engine, store=store)
    tune(task)
    assert open_trials[0] == {64} and all(len(o) <= 1 for o in open_trials)
    assert {r.config.as_dict()["block"]: r.status for r in store.trials(task.key)} == dict.fromkeys(COSTS, "ok")


def test_ctrl_c_returns_the_best_so_far_and_the_next_run_goes_on():
    store = Store(None)
    stop_at = 30

    def body(params, y, x):
        if len(engine.compiled) == stop_at:
            raise KeyboardInterrupt
        y[...] = x + 1

    y = np.full(8, 2.0)
    engine = FakeEngine(body, cost_large)
    task = make_task(engine, LARGE, store=store, args=(y, np.arange(8.0)))
    result = tune(task)
    assert result.interrupted and result.best in {t.config for t in result.trials if t.status == "ok"}
    assert cost_large(result.best) == min(cost_large(t.config) for t in result.trials if t.status == "ok")
    assert store.winner(task.key) is None and (y == 2).all()
    assert Counter(t.status for t in result.trials) == {"ok": 29, "interrupted": 1}
    done = {t.config for t in result.trials if t.status == "ok"}

    stop_at = -1
    engine = FakeEngine(body, cost_large)
    again = tune(make_task(engine, LARGE, store=store))
    assert not again.interrupted and store.winner(task.key).config == again.best
    # What was tried before is known; only the default and the finalists are compiled again.
    assert len([c for c in engine.compiled if c in done]) <= 1 + run_module.FINALISTS
    assert sum(t.known for t in again.trials) >= 29 - 1 - run_module.FINALISTS


def test_ctrl_c_in_the_very_first_trial():
    def body(params, y, x):
        raise KeyboardInterrupt

    task = make_task(FakeEngine(body, cost_by_block))
    result = tune(task)
    assert result.interrupted and result.best == task.space.default() and result.default.status == "interrupted"
    assert task.store.acquire(task.key) is not None  # the lease was given back


def test_a_trial_that_never_ended_is_tried_once_more_and_then_skipped():
    victim, store = Config((("block", 128),)), Store(None)
    engine = FakeEngine(add_one, cost_by_block)
    task = make_task(engine, store=store)
    store.begin(task.key, victim)

    def killed(params, y, x):
        if params["block"] == 128:
            kept.append(next(r for r in store.trials(task.key) if r.config == victim))
        y[...] = x + 1

    kept = []
    result = tune(replace(task, engine=FakeEngine(killed, cost_by_block)))
    assert statuses(result)[128] == "ok" and result.best == victim
    assert any("block=128 was tried again" in note for note in result.notes)
    # As if the second trial had ended the process, too.
    store.end(task.key, kept[0])
    result = tune(task)
    assert statuses(result)[128] == "crashed" and victim not in engine.compiled and str(result.best) == "block=256"
    assert any("block=128 took the process down" in note and "fresh=True" in note for note in result.notes)
    # It stays so, until the user wants everything anew.
    assert statuses(tune(make_task(engine, store=store)))[128] == "crashed"
    assert statuses(tune(make_task(engine, store=store, fresh=True)))[128] == "ok"


@pytest.mark.parametrize("status", ["begun", "crashed", "hung"])
def test_the_default_is_tried_again_however_often_it_never_ended(status):
    store = Store(None)
    task = make_task(FakeEngine(add_one, cost_by_block), {"block": [64]}, store=store)
    for _ in range(3):
        store.end(task.key, TrialRecord(task.space.default(), status, reason="tried again"))
        result = tune(task)
        assert result.best == task.space.default() and result.default.status == "ok"
        assert any("block=64 was tried again" in note for note in result.notes)


def test_a_value_added_to_a_tunable_costs_its_own_trials_only():
    store = Store(None)
    tune(make_task(FakeEngine(add_one, cost_by_block), {"block": [64, 256, 512]}, store=store))
    engine = FakeEngine(add_one, cost_by_block)
    result = tune(make_task(engine, {"block": [64, 128, 256, 512]}, store=store))
    assert str(result.best) == "block=128"
    assert {c.as_dict()["block"] for c in engine.compiled} <= {64, 128, 256}
    assert 512 not in {c.as_dict()["block"] for c in engine.compiled}
    assert {t.config.as_dict()["block"] for t in result.trials if t.known} == {512} | (
        {256} - {c.as_dict()["block"] for c in engine.compiled}
    )
    # The default and the old winner were measured again, in turn with the new one.
    assert {64, 128, 256} == {c.as_dict()["block"] for c in engine.sampled}


def test_stored_times_do_not_beat_fresh_ones():
    """A stored time of a faster day makes a finalist, not a winner."""
    store = Store(None)
    engine = FakeEngine(add_one, cost_by_block)
    task = make_task(engine, store=store)
    store.end(task.key, TrialRecord(Config((("block", 512),)), "ok", 1e-6, 0.01, 9))
    result = tune(task)
    assert str(result.best) == "block=128"
    # Nothing was dropped for being slower than the stored time.
    assert next(t for t in result.trials if t.config.as_dict()["block"] == 256).samples >= 3


def test_a_finalist_known_from_an_earlier_run_is_verified_again():
    store = Store(None)
    tune(make_task(FakeEngine(add_one, cost_by_block), store=store))

    def body(params, y, x):  # the arguments of this run show what those of the earlier one did not
        y[...] = x + 1 + (params["block"] == 128)

    result = tune(make_task(FakeEngine(body, cost_by_block), store=store))
    assert statuses(result)[128] == "wrong" and str(result.best) == "block=256"


def test_wrong_results_and_failed_launches_are_tried_again():
    store = Store(None)

    def body(params, y, x):
        y[...] = x + (1 if params["block"] != 128 else 1.05)

    tune(make_task(FakeEngine(body, cost_by_block), store=store))
    result = tune(make_task(FakeEngine(body, cost_by_block), store=store, tolerance=0.1))
    assert str(result.best) == "block=128"


def test_winners_of_other_shapes_are_tried_early():
    store = Store(None)
    good = Config((("a", 12), ("b", 5), ("flag", False)))
    near = make_task(FakeEngine(add_one, cost_large), LARGE, store=store, shapes=(("y", (16,)),))
    store.publish(near.key, Winner(good, 1.0))
    result = tune(make_task(FakeEngine(add_one, cost_large), LARGE, store=store, max_evals=2))
    assert result.best == good


# --- rule 7: one owner per key ----------------------------------------------------------------------------------------


def test_a_busy_key_waits_and_adopts():
    store = Store(None)
    engine = FakeEngine(add_one, cost_by_block)
    task = make_task(engine, store=store)
    lease = store.acquire(task.key)
    best = Config((("block", 512),))

    def other():
        time.sleep(0.1)
        store.publish(task.key, Winner(best, 1e-3, created=time.time()))
        lease.release()

    thread = threading.Thread(target=other)
    thread.start()
    result = tune(task)
    thread.join()
    assert result.adopted and result.best == best and not engine.compiled


def test_a_busy_key_may_use_the_default_or_give_up():
    store = Store(None)
    engine = FakeEngine(add_one, cost_by_block)
    for settings in ({"on_busy": "default"}, {"wait_limit": 0.05}, {"time_limit": 0.05}):
        task = make_task(engine, store=store, **settings)
        lease = store.acquire(task.key)
        result = tune(task)
        assert result.best == task.space.default() and "another process" in result.notes[0] and not engine.compiled
        assert result.busy
        lease.release()
    found = tune(make_task(engine, store=store))
    assert str(found.best) == "block=128" and not found.busy


def test_an_owner_that_fails_leaves_the_key_to_the_next():
    store = Store(None)
    task = make_task(FakeEngine(add_one, cost_by_block), store=store)
    # A winner from before the wait is not what was waited for.
    store.publish(task.key, Winner(Config((("block", 512),)), created=time.time() - 60))
    lease = store.acquire(task.key)
    threading.Timer(0.05, lease.release).start()
    assert str(tune(task).best) == "block=128"


def test_threads_tune_one_key_once():
    store = Store(None)
    engine = FakeEngine(add_one, cost_by_block)
    results = []
    threads = [threading.Thread(target=lambda: results.append(tune(make_task(engine, store=store)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and len({r.best for r in results}) == 1


# --- schedules --------------------------------------------------------------------------------------------------------


def test_schedules_of_the_best_few_are_tried_after_the_params():
    jam = (("jam", 4),)

    def cost(config):
        return cost_by_block(config) * (0.5 if config.schedule == jam else 1.0)

    engine = FakeEngine(add_one, cost, alternatives=((), jam))
    task = make_task(engine, {"block": [64, 128, 256, 512]})
    result = tune(task)
    assert result.best == Config((("block", 128),), jam)
    tried = [t.config for t in result.trials if t.config.schedule]
    assert len(tried) == 3 and all(c.as_dict()["block"] != 512 for c in tried)
    assert task.store.winner(task.key).config.schedule == jam


def test_an_old_winner_is_measured_again_with_its_schedule():
    jam = (("jam", 4),)
    old = Config((("block", 512),), jam)

    def cost(config):
        return 1e-4 if config == old else cost_by_block(config)

    store = Store(None)
    task = make_task(FakeEngine(add_one, cost, alternatives=((), jam)), store=store)
    store.publish(task.key, Winner(old, 1.0))
    assert tune(task).best == old  # the best three params alone would not lead to it


def test_a_single_configuration_still_gets_its_schedules():
    jam = (("jam", 4),)
    engine = FakeEngine(add_one, lambda c: 1e-3 * (0.5 if c.schedule else 1), alternatives=((), jam))
    result = tune(make_task(engine, {}))
    assert result.best == Config((), jam) and result.complete


def test_nothing_is_printed_and_trials_are_logged(capfd, caplog):
    with caplog.at_level(logging.INFO, logger="jlkern"):
        tune(make_task(FakeEngine(add_one, cost_by_block)))
    assert capfd.readouterr() == ("", "")
    trials = [r for r in caplog.records if getattr(r, "event", "") == "trial"]
    assert {str(r.facts["config"]) for r in trials} == {f"block={b}" for b in COSTS}


# --- progress and the device lock -------------------------------------------------------------------------------------


def test_progress_is_on_stderr_only_when_wanted_and_only_after_a_while(capfd, monkeypatch):
    from jlkern.tuning import progress

    def shown(**settings) -> str:
        tune(make_task(FakeEngine(add_one, cost_by_block), **settings))
        out, err = capfd.readouterr()
        assert out == ""
        return err

    assert shown() == ""  # stderr is no terminal
    assert shown(progress=True) == ""  # too quick to be worth it
    monkeypatch.setattr(progress, "DELAY", 0.0)
    assert "tuning kernel" in shown(progress=True)
    assert shown(progress=False) == "" == shown()
    with knobs.scope(progress=True):
        assert "best" in shown()


def test_the_device_lock_excludes_threads_and_gives_up_politely(tmp_path):
    from jlkern.tuning.lock import lock_path, measuring

    device = Device("cpu", 0, "x")
    inside, most = [], []

    def work():
        with measuring(device):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.005)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1 and lock_path(device).parent == tmp_path
    with measuring(device):
        thread = threading.Thread(target=lambda: most.append(lock_path(Device("cuda", 1, "")).name))
        thread.start()
        thread.join()
        had = []

        def impatient():
            with measuring(device, patience=0.02) as held:
                had.append(held)

        thread = threading.Thread(target=impatient)
        thread.start()
        thread.join()
    assert most[-1] == "jlkern-cuda-1.lock" and had == [False]


def test_a_lock_file_that_can_not_be_made_locks_nothing(tmp_path):
    from jlkern.tuning.lock import measuring

    (tmp_path / "file").write_text("")
    with knobs.scope(lock_dir=tmp_path / "file"), measuring(Device("cpu", 0, "x")) as held:
        assert held


def test_a_lock_that_is_never_had_is_waited_for_once_within_the_time_limit(tmp_path, caplog):
    fcntl = pytest.importorskip("fcntl")
    with open(tmp_path / "jlkern-cpu-0.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        start = time.monotonic()
        with caplog.at_level(logging.WARNING, logger="jlkern"):
            result = tune(make_task(FakeEngine(add_one, cost_by_block), time_limit=2.0))
    assert 0.5 <= time.monotonic() - start < 2.0
    assert len([r for r in caplog.records if "lock" in r.getMessage()]) == 1
    assert result.noisy and str(result.best) == "block=128" and any("lock" in note for note in result.notes)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_keep_the_device_locked():
    from jlkern.tuning.lock import measuring

    device = Device("cpu", 0, "x")
    ends = os.pipe()
    with measuring(device):
        child = os.fork()
        if child == 0:
            os.read(ends[0], 1)
            os._exit(0)
    try:
        with measuring(device, patience=0.1) as held:
            assert held
    finally:
        os.write(ends[1], b"x")
        os.waitpid(child, 0)
        for end in ends:
            os.close(end)


# --- with the embedded engine -----------------------------------------------------------------------------------------


def test_a_real_kernel_end_to_end(tmp_path):
    """An accumulating kernel, half of whose configurations are fast and wrong: most work-items do nothing."""
    import jlkern

    source = r"""
    @kernel function accumulate!(y, @Const(x))
        i = @index(Global)
        if !lazy || i <= 64
            @inbounds y[i] += 2 * x[i]
        end
    end
    """
    with knobs.scope(cache_dir=tmp_path):
        add = jlkern.from_source(source, tune={"block": [64, 256], "lazy": [False, True]}, engine="numba")
        y, x = np.full(5000, 1.0), np.arange(5000.0)
        result = add.tune(y, x)
        assert (y == 1).all()
        assert Counter(t.status for t in result.trials if not t.config.schedule) == {"ok": 2, "wrong": 2}
        assert result.best.as_dict()["lazy"] is False and result.complete
        reason = next(t.reason for t in result.trials if t.status == "wrong")
        assert reason.startswith("y[64] is 1.0, the reference has 129.0; 4936 of 5000 differ")
        assert add.config_for(y, x) == result.best
        add(y, x)
        assert np.array_equal(y, 1 + 2 * x)
