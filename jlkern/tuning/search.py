"""The search: Kernel Tuner's Searchspace and strategies, and one of ours, driven by a Runner of ours.

Kernel Tuner handles values by `==`, `str()` and arithmetic, which merges `True` with `1` and breaks on tuples. So its
named strategies see each value as its index in the tunable's list, and a configuration as a tuple of indices; what they
call "adjacent" is adjacent in the user's list. A strategy object of the user's sees values where these are distinct.

Only what `tests/test_search.py` pins of Kernel Tuner 1.5 is touched.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import logging
import os
import random
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from jlkern import log
from jlkern.errors import OptionError
from jlkern.interrupt import uninterrupted
from jlkern.space import Config, Space

# Kernel Tuner holds the whole space in memory; larger ones are thinned out to a random sample of this size.
MOST_CONFIGS: Final = 100_000
# A strategy that asks only for configurations that it has seen, this often in a row, has nothing left to find.
MOST_REPEATS: Final = 1000

# Strategies that need a package that Kernel Tuner does not depend on.
OPTIONAL: Final[Mapping[str, str]] = {"skopt": "skopt", "pyatf_strategies": "pyatf"}

_log = log.get(__name__)


@dataclass
class Search:
    """One search: what to evaluate, with what, and for how long.

    Arguments
    ---------
    space: the configurations.
    evaluate: returns the seconds of one, or None when it can not be used.
    free: tells that evaluating one costs nothing, since its outcome is known.
    stop: tells that the time is over.
    max_evals: evaluations that are not free, at most; None is no limit.
    strategy, options, seed: as in `TuneSettings`.
    """

    space: Space
    evaluate: Callable[[Config], float | None]
    free: Callable[[Config], bool] = lambda config: False
    stop: Callable[[], bool] = lambda: False
    max_evals: int | None = None
    strategy: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    seen: dict[Config, float | None] = field(default_factory=dict)
    spent: int = 0
    repeats: int = 0

    def run(self) -> bool:
        """Search; return True when every configuration of the space was evaluated."""
        check_strategy(self.strategy, self.options)
        named = self.strategy is None or isinstance(self.strategy, str)
        if named and (self.max_evals is None or not self.space.larger_than(self.max_evals)):
            return self._whole()
        _drive(self)
        return len(self.seen) >= self.space.full_size or not self.space.larger_than(len(self.seen))

    def ask(self, config: Config) -> float | None:
        """Evaluate a configuration once."""
        if config in self.seen:
            self.repeats += 1
            return self.seen[config]
        self.repeats = 0
        if not self.free(config):
            self.spent += 1
        seconds = self.seen[config] = self.evaluate(config)
        return seconds

    def done(self) -> bool:
        """Tell whether the budget is spent."""
        over = self.max_evals is not None and self.spent >= self.max_evals
        return over or self.repeats > MOST_REPEATS or self.stop()

    def _whole(self) -> bool:
        for config in _shuffled(self.space, self.seed):
            if self.stop():
                return False
            self.ask(config)
        return True


def propose(space: Space, known: Mapping[Config, float | None], seed: int) -> Config | None:
    """Return the configuration that the default strategy would try next, or None when all were.

    `known` has the seconds of each that was tried, or None where it can not be used.
    """
    import numpy as np

    from jlkern.tuning.surrogate import coordinates, propose_next

    configs = _thinned(space, seed)
    places = {config: i for i, config in enumerate(configs)}
    done = [(places[config], seconds) for config, seconds in known.items() if config in places]
    if len(done) >= len(configs):
        return None
    indices = np.array([space.rank(config) for config in configs], dtype=np.int64).reshape(len(configs), -1)
    with _seeded(seed + len(done)):
        rows = [coordinates(tunable.values) for tunable in space.tunables]
        return configs[propose_next(rows, indices, done)]


def check_strategy(strategy: Any, options: Mapping[str, Any] | None = None) -> None:
    """Raise `OptionError` unless the strategy exists, can be loaded, and knows the options."""
    if strategy is None:
        return
    if not isinstance(strategy, str):
        if not callable(getattr(strategy, "tune", None)) and not callable(strategy):
            raise OptionError(f"strategy= must be a name or an object with a tune method, got {strategy!r}")
        return
    names = strategies()
    if strategy not in names:
        raise OptionError(f"strategy= must be one of {', '.join(names)}, got {strategy!r}")
    try:
        known = set(getattr(_load(strategy), "_options", {}))
    except ImportError as problem:
        raise OptionError(f"strategy={strategy!r} needs a package that is not installed: {problem}") from None
    unknown = set(options or ()) - known - {"x0", "max_fevals", "time_limit"}
    if unknown and known:
        texts = ", ".join(sorted(unknown)), ", ".join(sorted(known))
        raise OptionError("strategy_options= of {!r} has no {}; it knows {}".format(strategy, *texts))


def strategies() -> tuple[str, ...]:
    """Return the names of Kernel Tuner's strategies, also of those that need a further package."""
    return tuple(sorted(_kernel_tuner().strategy_map))


# --- Kernel Tuner -----------------------------------------------------------------------------------------------------


@functools.cache
def _kernel_tuner() -> Any:
    """Import Kernel Tuner once, and make the classes that extend it."""
    with uninterrupted(), _silence():
        from kernel_tuner import util
        from kernel_tuner.interface import Options, strategy_map
        from kernel_tuner.runners.runner import Runner
        from kernel_tuner.searchspace import Searchspace
        from kernel_tuner.strategies.wrapper import OptAlgWrapper

    class Budget(util.TuningBudget):  # type: ignore[misc]
        """Ends when our search says so, on top of Kernel Tuner's own rules."""

        def __init__(self, search: Search) -> None:
            super().__init__(None, search.max_evals)
            self.search = search

        def is_done(self) -> bool:
            self.num_fevals = self.search.spent
            return bool(self.search.done() or super().is_done())

        def raise_exception_if_done(self) -> None:
            if self.is_done():
                raise util.StopCriterionReached("the search is over")

    class OurRunner(Runner):  # type: ignore[misc]
        """Evaluates configurations by asking the search."""

        def __init__(self, search: Search, decode: Callable[[Any], Config]) -> None:
            super().__init__()
            self.search, self.decode = search, decode
            self.dev = SimpleNamespace(name="jlkern", max_threads=2**31, units={"time": "ms"})
            self.units = {"time": "ms"}
            self.quiet = True
            self.simulation_mode = False

        def get_device_info(self) -> Any:
            return self.dev

        def get_environment(self, tuning_options: Any) -> dict[str, Any]:
            return {}

        def run(self, parameter_space: Any, tuning_options: Any) -> list[dict[str, Any] | None]:
            results: list[dict[str, Any] | None] = []
            for element in parameter_space:
                if tuning_options.budget.is_done():
                    results.append(None)
                    continue
                result = dict(zip(tuning_options.tune_params, element, strict=True))
                seconds = self.search.ask(self.decode(element))
                if seconds is None:
                    result["__error__"] = util.RuntimeFailedConfig()
                else:
                    result["time"] = seconds * 1e3
                tuning_options.cache[",".join(map(str, element))] = dict(result)
                results.append(result)
            return results

    class OurSearchspace(Searchspace):  # type: ignore[misc]
        """Kernel Tuner's own, without its error for a sample of the whole space."""

        def get_LHS_sample_indices(self, num_samples: int) -> list[int]:
            import numpy as np

            if num_samples >= self.size:
                return [int(i) for i in np.random.permutation(self.size)]
            return list(super().get_LHS_sample_indices(num_samples))

    return SimpleNamespace(
        util=util,
        Options=Options,
        strategy_map=strategy_map,
        Runner=OurRunner,
        Budget=Budget,
        Searchspace=OurSearchspace,
        OptAlgWrapper=OptAlgWrapper,
    )


def _load(name: str) -> Any:
    """Return a strategy's module; Kernel Tuner loads it lazily, which would hide a missing package till later."""
    lazy = _kernel_tuner().strategy_map[name]
    with uninterrupted(), _silence():
        if name in OPTIONAL or "pyatf" in name:
            importlib.import_module(OPTIONAL.get(name, "pyatf"))
        lazy.tune  # noqa: B018 (this imports it)
    return lazy


class _Row(tuple[Any, ...]):
    """One configuration in the shape of an entry of Kernel Tuner's cache, at the price of a tuple."""

    names: tuple[str, ...] = ()

    def items(self) -> Iterator[tuple[str, Any]]:
        return zip(self.names, self, strict=True)


def _drive(search: Search) -> None:
    """Run a strategy of Kernel Tuner's, or the user's, until it ends or the budget does."""
    kt = _kernel_tuner()
    space = search.space
    strategy = search.strategy if search.strategy is not None else _default(space)
    coded = isinstance(strategy, str) or getattr(strategy, "coded", False) or not _plain(space)
    tune_params: dict[str, list[Any]] = {
        t.name: list(range(len(t.values))) if coded else list(t.values) for t in space.tunables
    }
    configs = _thinned(space, search.seed)

    def encode(config: Config) -> tuple[Any, ...]:
        return space.rank(config) if coded else tuple(value for _, value in config.params)

    def decode(element: Any) -> Config:
        if not coded:
            return Config(tuple(zip(space.names, element, strict=True)))
        pairs = zip(space.tunables, element, strict=True)
        return Config(tuple((t.name, t.values[int(i)]) for t, i in pairs))

    row = type("Row", (_Row,), {"names": space.names})
    cache = {str(i): row(encode(config)) for i, config in enumerate(configs)}
    options = dict(search.options)
    if "x0" in options:
        options["x0"] = list(encode(space.resolve(dict(zip(space.names, options["x0"], strict=True)))))
    evals = search.max_evals
    if evals is not None and strategy != "brute_force":
        options["max_fevals"] = evals
    if isinstance(strategy, str):
        tuner = _load(strategy)
    else:
        tuner = strategy if hasattr(strategy, "tune") else kt.OptAlgWrapper(strategy)
    with _silence(), _seeded(search.seed):
        searchspace = kt.Searchspace(None, None, None, from_cache={"tune_params": tune_params, "cache": cache})
        tuning_options = kt.Options(
            tune_params=tune_params,
            strategy=strategy,
            strategy_options=kt.Options(options),
            objective=["time"],
            objective_higher_is_better=[False],
            budget=kt.Budget(search),
            cache={},
            cachefile=None,
            restrictions=[],
            metrics=None,
            verify=None,
            verbose=False,
            quiet=True,
            to_unit=None,
            seed=search.seed,
            simulated_time=0,
            snap=True,
        )
        if evals is not None:
            tuning_options["max_fevals"] = evals
        try:
            tuner.tune(searchspace, kt.Runner(search, decode), tuning_options)
        except kt.util.StopCriterionReached:
            pass
        except Exception as problem:
            # A strategy may stumble over a space that is too small for it or over None results at the budget's end.
            if not search.seen:
                raise OptionError(
                    f"the strategy {strategy!r} failed before its first configuration: {problem}"
                ) from problem
            log.event(_log, logging.WARNING, "strategy stopped early", strategy=strategy, problem=repr(problem))


def _default(space: Space) -> Any:
    from jlkern.tuning.surrogate import Surrogate, coordinates

    return Surrogate([coordinates(tunable.values) for tunable in space.tunables])


def _plain(space: Space) -> bool:
    """Tell whether Kernel Tuner can tell every tunable's values apart, by `==` and by `str()`."""
    return all(len(set(t.values)) == len(t.values) == len(set(map(str, t.values))) for t in space.tunables)


def _thinned(space: Space, seed: int) -> list[Config]:
    """Return all configurations, or a random sample of them when there are too many to hold."""
    if space.full_size <= MOST_CONFIGS or not space.larger_than(MOST_CONFIGS):
        return list(space.configs())
    _log.info("the space has more than %d configurations; the search goes over a random sample", MOST_CONFIGS)
    rng = random.Random(seed)
    found = {space.default(): None}
    for _ in range(20 * MOST_CONFIGS):
        params = {t.name: rng.choice(t.values) for t in space.tunables}
        if space.broken(params) is None:
            found[Config(tuple(params.items()))] = None
            if len(found) == MOST_CONFIGS:
                return list(found)
    # The restrictions leave so little that chance does not find it.
    return list(itertools.islice(space.configs(), MOST_CONFIGS))


def _shuffled(space: Space, seed: int) -> Iterator[Config]:
    """Yield every configuration; in random order, so that a search that ends early has seen something of everything."""
    if space.larger_than(MOST_CONFIGS):
        yield from space.configs()
        return
    configs = list(space.configs())
    random.Random(seed).shuffle(configs)
    yield from configs


@contextmanager
def _silence() -> Iterator[None]:
    """Keep what Kernel Tuner and the packages below it say off the user's terminal."""
    root = logging.getLogger()
    # `logging.debug(...)`, which Kernel Tuner calls, would install a handler on a root logger that has none.
    handler = None if root.handlers else logging.NullHandler()
    if handler is not None:
        root.addHandler(handler)
    try:
        with warnings.catch_warnings():
            for module in ("kernel_tuner", "sklearn", "scipy", "pymoo", "numpy", "skopt", "pyatf", "constraint"):
                warnings.filterwarnings("ignore", module=rf"{module}(\.|$)")
            yield
    finally:
        if handler is not None:
            root.removeHandler(handler)


# Strategies draw from process-wide generators, so that one search at a time may seed them.
_driving = threading.RLock()


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the generators that Kernel Tuner's strategies draw from, and give the user's streams back after."""
    import numpy as np

    with _driving:
        ours, numpys, default_rng = random.getstate(), np.random.get_state(), np.random.default_rng
        me = threading.get_ident()

        def seeded_rng(given: Any = None) -> np.random.Generator:
            # SciPy's Latin hypercube, which some strategies start from, takes fresh entropy here.
            if given is None and threading.get_ident() == me:
                given = int(np.random.randint(2**31))
            return default_rng(given)

        random.seed(seed)
        np.random.seed(seed % 2**32)
        np.random.default_rng = seeded_rng  # type: ignore[assignment]
        try:
            yield
        finally:
            np.random.default_rng = default_rng
            random.setstate(ours)
            np.random.set_state(numpys)


def _after_fork() -> None:
    global _driving
    _driving = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
