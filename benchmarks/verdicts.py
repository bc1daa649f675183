"""How good are the choices of a tuning: ten runs each with the memo off, judged by long interleaved measurements after.

    python benchmarks/verdicts.py [--runs 10] [--rounds 101] [--within 5] [NAME]...

For each archetype kernel (`tests/conformance/archetypes.py`) the table says: configurations; how many runs picked one
whose true median is within 5 % of the best one's; the worst pick's distance from it; how often the runs agreed on one
configuration; what staying with the default would cost; and a run's time as a part of measuring every configuration
with the final number of samples (compiled code is shared by both). The true medians come from rounds that sample every
configuration in turn, after all runs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from jlkern.engines.base import CompileRequest
from jlkern.engines.select import engine_named
from jlkern.memo.key import MemoKey
from jlkern.memo.store import Store
from jlkern.report import table
from jlkern.signature import classify
from jlkern.source import Origin, load_source
from jlkern.space import Config, make_space
from jlkern.tuning import bench
from jlkern.tuning.run import TuneSettings, TuneTask, tune
from jlkern.tuning.scratch import make_scratch
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
FINAL_SAMPLES = 31


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


def medians(task: TuneTask, configs: list[Config], rounds: int) -> tuple[dict[Config, float], float]:
    """Return every configuration's median over rounds that sample each in turn, and the seconds of `FINAL_SAMPLES`."""
    watches = {}
    # The same arrays for all, placed as those of the call: where an array lies can matter more than the configuration.
    args = make_scratch(task.names, task.args, task.effects.written, 1 << 30).args
    for config in configs:
        launcher = task.engine.compile(task.request(config))
        watches[config] = bench.Stopwatch(launcher.sampler(task.ndrange(config.as_dict()), args))
    start = time.perf_counter()
    for watch in watches.values():
        watch.calibrate()
    samples: dict[Config, list[float]] = {config: [] for config in configs}
    for number in range(rounds):
        for config in configs if number % 2 == 0 else configs[::-1]:
            samples[config].append(watches[config].sample())
    spent = time.perf_counter() - start
    return {config: bench.median(s) for config, s in samples.items()}, spent * FINAL_SAMPLES / rounds


def judge(archetype: dict[str, Any], runs: int, rounds: int, within: float) -> tuple[list[str], int]:
    """Return one row of the table and how many runs were good."""
    args = ARGS.get(archetype["name"], archetype["make_args"])(np.random.default_rng(1))
    task = make_task(archetype, args, 0)
    default = task.space.default()
    picks, seconds = [], []
    for seed in range(runs):
        start = time.perf_counter()
        picks.append(tune(make_task(archetype, args, seed)).best)
        seconds.append(time.perf_counter() - start)
    usable = list(dict.fromkeys([*task.space.configs(), *picks]))
    truth, whole = medians(task, usable, rounds)
    best = min(truth.values())
    apart = [truth[pick] / best - 1 for pick in picks]
    good = sum(a <= within / 100 for a in apart)
    same = Counter(picks).most_common(1)[0][1]
    # the first run compiles everything, which measuring everything after it need not
    part = statistics.median(seconds[1:] or seconds) / whole
    row = [archetype["name"], str(len(list(task.space.configs()))), f"{good}/{runs}", f"{100 * max(apart):.1f} %"]
    row += [f"{same}/{runs}", f"{100 * (truth[default] / best - 1):.0f} %", f"{100 * part:.0f} %"]
    return row, good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=DEFAULT, metavar="NAME")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--within", type=float, default=5.0, help="percent")
    options = parser.parse_args()
    known = {a["name"]: a for a in ARCHETYPES}
    for name in options.names:
        if name not in known:
            parser.error(f"there is no archetype {name!r}; there are {', '.join(known)}")
    rows, good = [], 0
    for name in options.names:
        row, count = judge(known[name], options.runs, options.rounds, options.within)
        rows.append(row)
        good += count
        print(f"{name}: {count} of {options.runs}", file=sys.stderr, flush=True)
    head = ("kernel", "configs", f"within {options.within:g} %", "worst", "agree", "default", "time")
    print(table(rows, head))
    print(f"{good} of {options.runs * len(options.names)} runs within {options.within:g} % of the best")


if __name__ == "__main__":
    main()
