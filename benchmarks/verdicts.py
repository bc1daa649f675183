"""How good are the choices of a tuning: ten runs each with the memo off, judged by long interleaved measurements.

    python benchmarks/verdicts.py [--runs 10] [--rounds 200] [--within 5] [--verbose] [NAME]...

The truth about a kernel (from `tests/conformance/archetypes.py`) are the medians of rounds that sample every
configuration under every schedule in turn. A machine that others use has times in which one configuration is the best
and times in which another is, so a part of the rounds follows each run. The table says: configurations; how many runs
picked one within 5 % of the best one's true median, and of the best one's in the part that followed the run; the worst
pick's distance by the true medians; how often the runs agreed on one; what staying with the default would cost; how far
the best by either half of the truth is from the best by the other half, which is as well as anyone can know; and a
run's time as a part of trying every candidate of the run with the final number of samples (compiled code is shared by
both). NUMBA_NUM_THREADS=1 shows the same for one thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from jlkern.engines.base import CompileRequest, Launcher
from jlkern.engines.select import engine_named
from jlkern.memo.key import MemoKey
from jlkern.memo.store import Store
from jlkern.report import table
from jlkern.signature import classify
from jlkern.source import Origin, load_source
from jlkern.space import Config, make_space
from jlkern.tuning import bench
from jlkern.tuning.run import TuneResult, TuneSettings, TuneTask, tune
from jlkern.tuning.scratch import make_scratch
from jlkern.tuning.trial import Clock, Lab
from tests.conformance.archetypes import ARCHETYPES

# With 12 configurations or more each, of different kinds: streaming, stencil, transposition, convolution, product.
DEFAULT = ("triad_wpt", "heat3d_cart", "transpose_lmem", "conv2d", "matmul_naive")
# Arguments of sizes that are worth tuning for; the archetypes' own are those of quick tests.
ARGS = {
    "triad_wpt": lambda r: [F(200_000), R(r, 200_000), R(r, 200_000), np.float32(3), np.int32(200_000)],
    "heat3d_cart": lambda r: [F(66, 50, 34), R(r, 66, 50, 34), np.float64(0.1)],
    "transpose_lmem": lambda r: [F(300, 500), R(r, 500, 300)],
    "conv2d": lambda r: [F(96, 80, 4), R(r, 98, 82, 3), R(r, 3, 3, 3, 4), R(r, 4)],
    "matmul_naive": lambda r: [F(120, 100), R(r, 120, 90), R(r, 90, 100)],
}
# More values for those that have fewer.
MORE = {"matmul_naive": {"block_size_x": [1, 2, 4, 8, 16, 32], "block_size_y": [1, 4, 16]}}
FINAL_SAMPLES = bench.RACE_ROUNDS
# Runs whose time is compared with that of trying every candidate with so many samples.
COMPARED = 4


def F(*shape: int) -> np.ndarray:
    """Return float32 zeros in column-major order."""
    return np.zeros(shape, np.float32, order="F")


def R(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return random float32 numbers in column-major order."""
    return np.asfortranarray(rng.random(shape, np.float32))


def make_task(archetype: dict[str, Any], args: list[Any], seed: int) -> TuneTask:
    """Return a tuning with an empty memo of its own."""
    engine = engine_named("numba")
    values = {name: v for name, v in MORE.get(archetype["name"], {}).items() if name in archetype["tune"]}
    space = make_space({**archetype["tune"], **values}, lambda p: archetype["restrict"](p))
    source = load_source(archetype["source"], Origin(None, 1, False), space.names, archetype["kernel"])
    signature = tuple(classify(name, arg) for name, arg in zip(source.names, args, strict=True))

    def request(config: Config) -> CompileRequest:
        params = config.as_dict()
        dims = len(archetype["ndrange"](args, params))
        workgroup = archetype["workgroup"](params)
        return CompileRequest(
            source, signature, params, workgroup, dims, frozenset(source.effects.written), config.schedule
        )

    return TuneTask(
        engine=engine,
        space=space,
        request=request,
        ndrange=lambda params: archetype["ndrange"](args, params),
        names=source.names,
        args=tuple(args),
        effects=source.effects,
        key=MemoKey("numba", source.digest, (), tuple(map(str, signature)), (), engine.environment()),
        store=Store(None),
        settings=TuneSettings(seed=seed, effort="full", progress=False),
        name=archetype["name"],
    )


class Truth:
    """Samples of every configuration under every schedule, taken in turn, in parts."""

    def __init__(self, task: TuneTask) -> None:
        # The same arrays for all, placed as those of the call: where an array lies can matter too.
        args = make_scratch(task.names, task.args, task.effects.written, 1 << 30).args
        self.watches: dict[Config, bench.Stopwatch] = {}
        for params in task.space.configs():
            for schedule in task.engine.schedules(task.request(params)):
                config = params.with_schedule(schedule)
                launcher = task.engine.compile(task.request(config))
                watch = bench.Stopwatch(launcher.sampler(task.ndrange(config.as_dict()), args))
                watch.calibrate()
                self.watches[config] = watch
        self.parts: list[dict[Config, list[float]]] = []

    def measure(self, rounds: int) -> None:
        """Add a part."""
        samples: dict[Config, list[float]] = {config: [] for config in self.watches}
        for number in range(rounds):
            for config in samples if number % 2 == 0 else reversed(samples):
                samples[config].append(self.watches[config].sample())
        self.parts.append(samples)

    def medians(self, parts: Iterable[int]) -> dict[Config, float]:
        """Return the medians of some parts."""
        chosen = [self.parts[k] for k in parts]
        return {config: bench.median([s for part in chosen for s in part[config]]) for config in self.watches}


def exhaustive(task: TuneTask, configs: list[Config]) -> float:
    """Return the seconds of trying each configuration as a tuning does, but with `FINAL_SAMPLES` for each."""
    lab = Lab(task, make_scratch(task.names, task.args, task.effects.written, 1 << 30), Clock(None))

    def measure(config: Config, launcher: Launcher, ndrange: tuple[int, ...], settle: bool = False) -> list[float]:
        with lab.measuring():
            watch = lab.stopwatch(launcher, ndrange)
            watch.calibrate()
            return [watch.sample() for _ in range(FINAL_SAMPLES)]

    lab.measure = measure  # type: ignore[method-assign]
    start = time.perf_counter()
    for config in configs:
        lab.attempt(config)
    return time.perf_counter() - start


def apart(times: dict[Config, float], picks: list[Config]) -> list[float]:
    """Return how far each pick's time is from the least."""
    best = min(times.values())
    return [times[pick] / best - 1 for pick in picks]


def judge(archetype: dict[str, Any], options: argparse.Namespace) -> tuple[list[str], int, int]:
    """Return one row of the table, and how many runs were good by the whole truth and by the part after the run."""
    args = ARGS.get(archetype["name"], archetype["make_args"])(np.random.default_rng(1))
    task = make_task(archetype, args, 0)
    default, runs = task.space.default(), options.runs
    truth = Truth(task)
    results: list[TuneResult] = []
    seconds, whole = [], []
    for seed in range(runs):
        start = time.perf_counter()
        results.append(tune(make_task(archetype, args, seed)))
        seconds.append(time.perf_counter() - start)
        if seed < COMPARED:
            whole.append(exhaustive(make_task(archetype, args, seed), [t.config for t in results[-1].trials]))
        truth.measure(-(-options.rounds // runs))
    picks = [result.best for result in results]
    every = range(runs)
    medians = truth.medians(every)
    away = apart(medians, picks)
    own = [apart(truth.medians([k]), [pick])[0] for k, pick in enumerate(picks)]
    good, good_own = (sum(a <= options.within / 100 for a in found) for found in (away, own))
    # What two truths, from every second part each, make of each other's best.
    halves = truth.medians(every[::2]), truth.medians(every[1::2] or every)
    best = [min(half, key=half.__getitem__) for half in halves]
    repeat = max(apart(halves[1], best[:1])[0], apart(halves[0], best[1:])[0])
    same = Counter(picks).most_common(1)[0][1]
    part = statistics.median(s / w for s, w in zip(seconds, whole, strict=False))
    row = [archetype["name"], str(len(list(task.space.configs()))), f"{good}/{runs}", f"{good_own}/{runs}"]
    row += [f"{100 * max(away):.1f} %", f"{same}/{runs}", f"{100 * apart(medians, [default])[0]:.0f} %"]
    row += [f"{100 * repeat:.1f} %", f"{100 * part:.0f} %"]
    if options.verbose:
        for config in sorted(medians, key=medians.__getitem__):
            seen = [next((t for t in r.trials if t.config == config), None) for r in results]
            runs_text = " ".join(f"{1e6 * (t.seconds or 0):.4g}/{t.samples}" if t else "-" for t in seen)
            parts = " ".join(f"{1e6 * truth.medians([k])[config]:.4g}" for k in every)
            text = f"  {config}: {1e6 * medians[config]:.4g} us; picked {picks.count(config)}"
            print(f"{text}; truth {parts}; runs {runs_text}", file=sys.stderr)
    return row, good, good_own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=DEFAULT, metavar="NAME")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--within", type=float, default=5.0, help="percent")
    parser.add_argument("--verbose", action="store_true", help="every candidate's times: the truth and each run's")
    options = parser.parse_args()
    known = {a["name"]: a for a in ARCHETYPES}
    for name in options.names:
        if name not in known:
            parser.error(f"there is no archetype {name!r}; there are {', '.join(known)}")
    rows, good, good_own = [], 0, 0
    for name in options.names:
        row, count, count_own = judge(known[name], options)
        rows.append(row)
        good, good_own = good + count, good_own + count_own
        print(f"{name}: {count} of {options.runs}", file=sys.stderr, flush=True)
    head = ("kernel", "configs", f"within {options.within:g} %", "then", "worst", "agree", "default")
    print(table(rows, (*head, "truth", "time")))
    runs = options.runs * len(options.names)
    print(f"{good} of {runs} runs within {options.within:g} % of the best, {good_own} by what followed the run")
    with suppress(OSError):
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
