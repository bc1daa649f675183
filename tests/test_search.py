"""Kernel Tuner's strategies over our spaces, and the parts of its interface that the driver relies on."""

from __future__ import annotations

import inspect
import logging
import math
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from importlib.metadata import version

import numpy as np
import pytest

from jlkern.errors import OptionError
from jlkern.space import Config, make_space
from jlkern.tuning import search as search_module
from jlkern.tuning.search import OPTIONAL, Search, check_strategy, strategies
from jlkern.tuning.task import STRATEGIES, TuneSettings

AVAILABLE = [name for name in strategies() if name not in OPTIONAL]

# Values that Kernel Tuner would merge or choke on by itself.
MIXED = {
    "flag": [True, False, 1, 0],
    "tile": [(8, 8), (16, 4), (4, 16)],
    "mode": ["a", "b,1", "1"],
    "x": [1, 1.0, 0.5, 2],
}


def cost(config: Config) -> float:
    p = config.as_dict()
    x = float(p["x"])
    return 1.0 + (p["flag"] is not True) * 0.5 + abs(p["tile"][0] - 16) / 16 + (p["mode"] != "b,1") * 0.3 + abs(x - 0.5)


def test_the_interface_that_the_driver_touches():
    assert version("kernel_tuner").startswith("1.5.")
    from kernel_tuner import util
    from kernel_tuner.interface import Options, strategy_map
    from kernel_tuner.runners.runner import Runner
    from kernel_tuner.searchspace import Searchspace
    from kernel_tuner.strategies.common import CostFunc
    from kernel_tuner.strategies.wrapper import OptAlgWrapper

    assert set(strategy_map) == {
        *"adaptive_tabu_greywolf basinhopping bayes_opt brute_force diff_evo dual_annealing firefly_algorithm".split(),
        *"genetic_algorithm greedy_ils greedy_mls hybrid_vndx minimize mls nsga2 nsga3 ordered_greedy_mls pso".split(),
        *"pyatf_strategies random_sample simulated_annealing skopt".split(),
    }
    assert issubclass(Options, dict) and Options(a=1).a == 1
    assert Runner.__abstractmethods__ == {"get_device_info", "get_environment", "run"}
    assert list(inspect.signature(Runner.run).parameters) == ["self", "parameter_space", "tuning_options"]
    assert list(inspect.signature(util.TuningBudget.__init__).parameters) == ["self", "time_limit", "max_fevals"]
    for method in ("is_done", "raise_exception_if_done", "add_evaluations", "get_fraction_consumed"):
        assert callable(getattr(util.TuningBudget, method))
    assert issubclass(util.StopCriterionReached, Exception) and issubclass(util.RuntimeFailedConfig, str)
    parameters = inspect.signature(Searchspace.__init__).parameters
    assert list(parameters)[1:4] == ["tune_params", "restrictions", "max_threads"] and "from_cache" in parameters
    assert list(inspect.signature(strategy_map["mls"].tune).parameters) == ["searchspace", "runner", "tuning_options"]
    assert list(inspect.signature(OptAlgWrapper.__init__).parameters) == ["self", "optimizer"]
    assert callable(CostFunc.eval_all)
    # What an error costs, and that the objective is read by its name.
    assert util.get_result_cost({"__error__": 1}, ["time"], [False]) == [sys.float_info.max]
    assert util.get_result_cost({"time": 2.0}, ["time"], [False]) == [2.0]


@pytest.mark.parametrize("name", AVAILABLE)
def test_every_strategy_runs_in_budget_and_keeps_values(name, capfd):
    space = make_space(MIXED, ["not (flag is False and mode == 'a')"])
    allowed = set(space.configs())
    asked: list[Config] = []

    def evaluate(config: Config) -> float | None:
        assert config in allowed  # an exception ends the strategy, see below
        asked.append(config)
        return None if config.as_dict()["mode"] == "1" else cost(config)

    search = Search(space, evaluate, max_evals=25, strategy=name, seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.run()
    assert 3 <= len(asked) <= 25 and len(set(asked)) == len(asked) == search.spent
    assert all(config in allowed for config in asked)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", AVAILABLE)
def test_a_seed_makes_a_run_repeatable(name):
    space = make_space({"a": list(range(12)), "b": list(range(12)), "c": [0, 1]})

    def run(seed: int) -> list[Config]:
        search = Search(
            space, lambda c: 1.0 + abs(c.as_dict()["a"] - 7) + c.as_dict()["b"], max_evals=20, strategy=name
        )
        search.seed = seed
        search.run()
        return list(search.seen)

    assert run(1) == run(1)
    if name != "brute_force":
        assert any(run(1) != run(seed) for seed in (2, 3, 4))


def test_the_callers_random_streams_and_root_logger_are_left_alone():
    space = make_space({"a": list(range(30)), "b": list(range(30))})
    random.seed(5)
    np.random.seed(5)
    expected = random.random(), np.random.random()
    random.seed(5)
    np.random.seed(5)
    root = logging.getLogger()
    handlers = list(root.handlers)
    Search(space, lambda c: 1.0, max_evals=10, strategy="genetic_algorithm").run()
    assert (random.random(), np.random.random()) == expected
    assert root.handlers == handlers


def test_no_handler_appears_on_a_bare_root_logger():
    code = """
import logging
from jlkern.space import make_space
from jlkern.tuning.search import Search
Search(make_space({"a": list(range(30))}), lambda c: 1.0, max_evals=10, strategy="mls").run()
assert not logging.getLogger().handlers
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_ctrl_c_waits_for_the_import_of_kernel_tuner():
    code = """
import os, signal, sys, threading, time
from jlkern.tuning import search
def interrupt():
    while "kernel_tuner" not in sys.modules:
        time.sleep(0.001)
    before = "kernel_tuner.interface" in sys.modules
    os.kill(os.getpid(), signal.SIGINT)
    print("in the import" if not before else "late", flush=True)
thread = threading.Thread(target=interrupt)
thread.start()
try:
    search.strategies()
except KeyboardInterrupt:
    print("interrupted", "kernel_tuner.interface" in sys.modules)
thread.join()
print(len(search.strategies()) > 5, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["in the import", "interrupted True", "True True"]


def test_ctrl_c_waits_only_in_the_main_thread_and_only_till_the_block_ends():
    from jlkern.interrupt import uninterrupted

    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.01)
        done.append(True)
    assert done and signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def work():
        with uninterrupted():
            done.append(signal.getsignal(signal.SIGINT) is signal.default_int_handler)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True, True]


def test_a_small_space_is_searched_whole_and_a_large_one_is_not():
    space = make_space({"a": list(range(5)), "b": [True, 1]}, ["a != 3"])
    search = Search(space, lambda c: 1.0, max_evals=8)
    assert search.run() is True and set(search.seen) == set(space.configs()) and search.spent == 8
    search = Search(space, lambda c: 1.0, max_evals=7)
    assert search.run() is False and search.spent == 7


def test_known_outcomes_cost_nothing():
    space = make_space({"a": list(range(20))})
    known = {c for c in space.configs() if c.as_dict()["a"] % 2}
    search = Search(space, lambda c: 1.0, free=known.__contains__, max_evals=5, strategy="random_sample")
    search.run()
    assert search.spent <= 5
    search = Search(space, lambda c: 1.0, free=known.__contains__, max_evals=20)
    search.run()
    assert search.spent == 10 and len(search.seen) == 20


def test_stop_ends_every_kind_of_search():
    space = make_space({"a": list(range(50))})
    for strategy in (None, "mls"):
        for evals in (None, 10):
            search = Search(space, lambda c: 1.0, max_evals=evals, strategy=strategy)
            search.stop = lambda search=search: len(search.seen) >= 3
            assert search.run() is False and len(search.seen) == 3


def test_a_strategy_that_only_repeats_itself_ends(monkeypatch):
    monkeypatch.setattr(search_module, "MOST_REPEATS", 50)
    space = make_space({"a": list(range(100))})

    class Stuck:
        def tune(self, searchspace, runner, tuning_options):
            while not tuning_options.budget.is_done():
                runner.run([searchspace.list[0]], tuning_options)
            return []

    search = Search(space, lambda c: 1.0, max_evals=60, strategy=Stuck())
    search.run()
    assert search.spent == 1


def test_a_users_strategy_sees_values_unless_they_would_be_confused():
    seen = []

    class Mine:
        def tune(self, searchspace, runner, tuning_options):
            seen.append(searchspace.list)
            return runner.run(searchspace.list[:2], tuning_options)

    asked: list[Config] = []

    def evaluate(config: Config) -> float:
        asked.append(config)
        return 1.0

    Search(make_space({"a": [16, 32], "m": ["x", "y"]}), evaluate, max_evals=60, strategy=Mine()).run()
    assert seen[0] == [(16, "x"), (16, "y"), (32, "x"), (32, "y")]
    assert [str(c) for c in asked] == ["a=16 m=x", "a=16 m=y"]
    Search(make_space({"a": [True, 1]}), evaluate, max_evals=60, strategy=Mine()).run()
    assert seen[1] == [(0,), (1,)]
    assert asked[2:] == [Config((("a", True),)), Config((("a", 1),))]


def test_kernel_tuners_own_form_of_a_users_strategy():
    def optimise(func, searchspace):
        best = min(searchspace.list, key=lambda x: func(list(x)))
        return best, func(list(best))

    space = make_space({"a": list(range(100))})
    search = Search(space, lambda c: 1.0 + c.as_dict()["a"], max_evals=30, strategy=optimise)
    search.run()
    assert search.spent == 30


def test_options_reach_the_strategy_and_wrong_ones_are_refused():
    space = make_space({"a": [2**i for i in range(10)], "b": list(range(10))})
    search = Search(space, cost_ab, max_evals=40, strategy="random_sample", options={"fraction": 0.1})
    search.run()
    assert search.spent == 40 or search.spent == 10
    search = Search(space, cost_ab, max_evals=4, strategy="mls", options={"restart": False})
    search.run()
    with pytest.raises(OptionError, match=r"'mls' has no restrat; it knows .*restart"):
        check_strategy("mls", {"restrat": False})
    with pytest.raises(OptionError, match="must be one of adaptive_tabu_greywolf"):
        check_strategy("anealing")
    with pytest.raises(OptionError, match="tune method"):
        check_strategy(3)
    for name in OPTIONAL:
        with pytest.raises(OptionError, match="needs a package that is not installed"):
            check_strategy(name)


def test_x0_is_given_in_values():
    space = make_space({"a": [2**i for i in range(8)], "b": ["u", "v", "w", "x"]})
    search = Search(space, cost_ab, max_evals=15, strategy="dual_annealing", options={"x0": [32, "w"]})
    search.run()
    assert next(iter(search.seen)).as_dict() == {"a": 32, "b": "w"}


def cost_ab(config: Config) -> float:
    p = config.as_dict()
    return 1.0 + abs(math.log2(p["a"]) - 4)


def test_the_default_finds_a_good_configuration_where_chance_does_not():
    space = make_space(
        {"bx": [8, 16, 32, 64, 128, 256], "by": [1, 2, 4, 8, 16], "items": [1, 2, 4, 8], "vec": [False, True]},
        ["bx * by <= 1024"],
    )

    def f(config: Config) -> float:
        p = config.as_dict()
        bx, by, items = (math.log2(p[n]) for n in ("bx", "by", "items"))
        t = 1 + abs(bx + by - 7) ** 2 * 0.1 + abs(bx - 5) * 0.15 + abs(items - 2) * 0.2
        return t * (0.8 if p["vec"] else 1.0)

    best = min(map(f, space.configs()))

    def mean(strategy: str | None) -> float:
        ratios = []
        for seed in range(6):
            search = Search(space, f, max_evals=50, strategy=strategy, seed=seed)
            search.run()
            ratios.append(min(v for v in search.seen.values() if v is not None) / best)
        return sum(ratios) / len(ratios)

    assert mean(None) < 1.05
    assert mean(None) < mean("random_sample")


def test_a_huge_space_is_thinned_out(monkeypatch):
    monkeypatch.setattr(search_module, "MOST_CONFIGS", 500)
    space = make_space({n: list(range(40)) for n in "abcdef"}, ["a <= b"])
    search = Search(space, lambda c: 1.0 + c.as_dict()["c"], max_evals=30, strategy="mls")
    assert search.run() is False
    assert search.spent == 30 and all(space.allows(c.as_dict()) for c in search.seen)


def test_an_exception_of_the_evaluation_is_not_swallowed():
    space = make_space({"a": list(range(100))})

    def evaluate(config: Config) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Search(space, evaluate, max_evals=5, strategy="mls").run()


def test_the_names_known_without_kernel_tuner_are_its_own():
    assert sorted(STRATEGIES) == sorted(strategies())
    with pytest.raises(OptionError, match=r"genetic_algorithm.*did you mean 'simulated_annealing'"):
        TuneSettings(strategy="simulated_anealing")


# --- the default strategy ---------------------------------------------------------------------------------------------


def replayed(strategy: str | None, seeds: int, evals: int) -> float:
    import statistics
    from pathlib import Path

    from benchmarks.search import TABLES, read, replay

    space, times = read(Path(TABLES) / "stencil.json.gz")
    return statistics.median(replay(space, times, strategy, seed, evals)[-1] for seed in range(seeds))


def test_on_measured_times_the_default_comes_near_the_best_and_beats_chance():
    assert replayed(None, 5, 30) <= min(0.03, 0.5 * replayed("random_sample", 15, 30))


def test_the_default_takes_what_no_number_is_and_what_fails():
    space = make_space({"how": ["a", "b", "c", (1, 2)], "x": list(range(50)), "flag": [True, False]})

    def f(config: Config) -> float | None:
        p = config.as_dict()
        return None if p["x"] % 7 == 3 else 1 + abs(p["x"] - 30) / 10 + (p["how"] != (1, 2)) + p["flag"]

    search = Search(space, f, max_evals=40, seed=3)
    search.run()
    assert search.spent == 40
    assert min(v for v in search.seen.values() if v is not None) <= 1.2
    Search(space, lambda config: None, max_evals=20).run()
    Search(space, lambda config: 1.0, max_evals=20).run()


def test_a_model_of_many_evaluations_stays_small(monkeypatch):
    from jlkern.tuning import surrogate

    monkeypatch.setattr(surrogate, "MODELLED", 12)
    monkeypatch.setattr(surrogate, "LOOKED_AT", 30)
    sizes = []
    fit = surrogate.Model.fit
    monkeypatch.setattr(surrogate.Model, "fit", lambda self, x, y: sizes.append(len(x)) or fit(self, x, y))
    search = Search(make_space({"a": list(range(12)), "b": list(range(12))}), cost_sum, max_evals=50, seed=1)
    search.run()
    assert search.spent == 50 and max(sizes) <= 12
    assert min(v for v in search.seen.values() if v is not None) == 1.0


def cost_sum(config: Config) -> float:
    p = config.as_dict()
    return 1.0 + abs(p["a"] - 9) + abs(p["b"] - 2)


@pytest.mark.parametrize("values", [[32, 8, 16], [True, False], ["x", "y"], [(1,), 2]])
def test_coordinates_tell_values_apart(values):
    from jlkern.tuning.surrogate import coordinates

    rows = coordinates(values)
    assert len(rows) == len(values) and len({tuple(row) for row in rows.tolist()}) == len(values)
    assert rows.min() >= 0 and rows.max() <= 1
