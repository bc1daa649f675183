"""How near does a search come to the best: the default strategy against chance, replayed on tables of measured times.

    python benchmarks/search.py [--seeds 50] [--strategy NAME]... [TABLE]...
    python benchmarks/search.py --record [NAME]...
    python benchmarks/search.py --live

A table (`benchmarks/tables/*.json.gz`) holds the time of every configuration of one kernel, measured with one thread on
the machine that it names. Replaying runs the search of `effort="quick"` itself, which asks the table for times.
The rows say by how many percent the best found after 10, 20, 40 and 60 evaluations (the default configuration is the
first of them) is slower than the best of the table: the median over the seeds, and the upper quartile.

`--record` measures the tables anew. `--live` times one tuning of 60 evaluations, with everything that it takes.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import gzip
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

if "--record" in sys.argv:
    os.environ["NUMBA_NUM_THREADS"] = "1"  # what others do on the machine disturbs one thread least

import numpy as np

from jlkern.report import table, trials_table
from jlkern.space import Config, Space, make_space
from jlkern.tuning import bench
from jlkern.tuning.search import Search

TABLES = Path(__file__).resolve().parent / "tables"
EVALS = (10, 20, 40, 60)


@dataclass(frozen=True)
class Case:
    """A kernel with some 1000 configurations; `ndrange` takes the arguments and the configuration's params."""

    source: str
    tune: dict[str, list[Any]]
    restrictions: list[str]
    args: Callable[[np.random.Generator], list[Any]]
    ndrange: Callable[[list[Any], dict[str, Any]], tuple[int, ...]]


def F(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return random float32 numbers in column-major order."""
    return np.asfortranarray(rng.random(shape, np.float32))


def cld(a: int, b: int) -> int:
    """Divide and round up."""
    return -(-a // b)


CASES = {
    # columns of the product per work-item, neighbours or a stride apart; the sum in pieces
    "product": Case(
        """
        @kernel function product!(c, @Const(a), @Const(b))
            i, g = @index(Global, NTuple)
            _, groups = @ndrange()
            for q in 1:cols
                j = strided ? g + (q - 1) * groups : (g - 1) * cols + q
                if j <= size(c, 2)
                    s = 0f0
                    for k in 1:depth:size(a, 2)
                        for m in k:min(k + depth - 1, size(a, 2))
                            @inbounds s += a[i, m] * b[m, j]
                        end
                    end
                    @inbounds c[i, j] = s
                end
            end
        end
        """,
        {
            "block_size_x": [16, 1, 2, 4, 8, 32, 64],
            "block_size_y": [16, 1, 2, 4, 8, 32],
            "cols": [1, 2, 3, 4, 6, 8],
            "depth": [1, 4],
            "strided": [False, True],
        },
        ["block_size_x * block_size_y <= 1024"],
        lambda r: [np.zeros((72, 60), np.float32, "F"), F(r, 72, 48), F(r, 48, 60)],
        lambda a, p: (a[0].shape[0], cld(a[0].shape[1], p["cols"])),
    ),
    # planes of a 3D stencil per work-item
    "stencil": Case(
        """
        @kernel function stencil!(y, @Const(x), w)
            i, j, g = @index(Global, NTuple)
            _, _, groups = @ndrange()
            for q in 1:planes
                k = strided ? g + (q - 1) * groups : (g - 1) * planes + q
                if k <= size(y, 3)
                    @inbounds y[i, j, k] = x[i + 1, j + 1, k + 1] + w * (x[i, j + 1, k + 1] + x[i + 2, j + 1, k + 1] +
                        x[i + 1, j, k + 1] + x[i + 1, j + 2, k + 1] + x[i + 1, j + 1, k] + x[i + 1, j + 1, k + 2])
                end
            end
        end
        """,
        {
            "block_size_x": [16, 4, 8, 32, 64],
            "block_size_y": [4, 1, 2, 8, 16],
            "block_size_z": [2, 1, 4, 8],
            "planes": [1, 2, 3, 4, 6, 8],
            "strided": [False, True],
        },
        ["block_size_x * block_size_y * block_size_z <= 1024"],
        lambda r: [np.zeros((62, 30, 22), np.float32, "F"), F(r, 64, 32, 24), np.float32(0.1)],
        lambda a, p: (*a[0].shape[:2], cld(a[0].shape[2], p["planes"])),
    ),
    # forces between bodies: bodies per work-item, sources in tiles, two ways to the inverse cube
    "bodies": Case(
        """
        @kernel function bodies!(f, @Const(x), @Const(m))
            g = @index(Global)
            groups = @ndrange()[1]
            for q in 1:each
                i = strided ? g + (q - 1) * groups : (g - 1) * each + q
                if i <= length(f)
                    s = 0f0
                    for t in 1:tile:length(x)
                        for j in t:min(t + tile - 1, length(x))
                            @inbounds d = x[j] - x[i]
                            r2 = d * d + 1f-2
                            inverse = power ? 1f0 / (r2 * sqrt(r2)) : (1f0 / sqrt(r2))^3
                            @inbounds s += m[j] * d * inverse
                        end
                    end
                    @inbounds f[i] = s
                end
            end
        end
        """,
        {
            "block_size_x": [64, 4, 8, 16, 32, 128, 256],
            "each": [1, 2, 3, 4, 6, 8],
            "tile": [8, 1, 2, 4, 16, 32],
            "strided": [False, True],
            "power": [False, True],
        },
        ["block_size_x * each <= 1024"],
        lambda r: [np.zeros(400, np.float32), F(r, 400), F(r, 400)],
        lambda a, p: (cld(a[0].size, p["each"]),),
    ),
}


SAXPY = """
@kernel function saxpy!(y, a, @Const(x))
    g = @index(Global)
    groups = @ndrange()[1]
    for i in g:groups:length(y)
        @inbounds y[i] = a * x[i] + y[i]
    end
end
"""


# --- recording --------------------------------------------------------------------------------------------------------


def record(name: str, passes: int = 3, samples: int = 5) -> dict[str, Any]:
    """Measure every configuration: passes in random order, a few samples each; the lower quartile counts."""
    from importlib.metadata import version

    from jlkern.engines.base import CompileRequest
    from jlkern.engines.select import engine_named
    from jlkern.signature import classify
    from jlkern.source import Origin, load_source

    case = CASES[name]
    engine = engine_named("numba")
    space = make_space(case.tune, case.restrictions)
    source = load_source(case.source, Origin(None, 1, False), space.names, None)
    args = case.args(np.random.default_rng(1))
    signature = tuple(classify(n, arg) for n, arg in zip(source.names, args, strict=True))
    configs = list(space.configs())
    watches = []
    for number, config in enumerate(configs):
        params = config.as_dict()
        ndrange = case.ndrange(args, params)
        workgroup = tuple(params[n] for n in ("block_size_x", "block_size_y", "block_size_z") if n in params)
        launcher = engine.compile(
            CompileRequest(source, signature, params, workgroup, len(ndrange), frozenset(source.effects.written))
        )
        watches.append(bench.Stopwatch(launcher.sampler(ndrange, tuple(args))))
        watches[-1].calibrate()
        if number % 100 == 0:
            print(f"{name}: {number} of {len(configs)} compiled", file=sys.stderr, flush=True)
    found: list[list[float]] = [[] for _ in configs]
    rng = random.Random(0)
    for _ in range(passes):
        for i in rng.sample(range(len(configs)), len(configs)):
            found[i] += [watches[i].sample() for _ in range(samples)]
    times = [bench.location(s) for s in found]
    # How well one pass repeats another says how far the table can be trusted.
    first, last = ([bench.location(s[k : k + samples]) for s in found] for k in (0, (passes - 1) * samples))
    repeat = statistics.median(abs(a / b - 1) for a, b in zip(first, last, strict=True))
    return {
        "kernel": name,
        "machine": f"{_processor()}, {os.cpu_count()} cores, shared with others (load {os.getloadavg()[0]:.1f})",
        "date": datetime.date.today().isoformat(),
        "versions": {n: version(n) for n in ("jlkern", "numba", "llvmlite", "numpy")}
        | {"python": platform.python_version()},
        "how": f"numba engine, one thread, lower quartile of {passes} x {samples} samples, default schedule",
        "repeat": f"two passes differ by {100 * repeat:.1f} % (median)",
        "source": case.source,
        "tune": case.tune,
        "restrictions": case.restrictions,
        "nanoseconds": [round(1e9 * t) for t in times],  # in the order of Space.configs()
    }


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


# --- replaying --------------------------------------------------------------------------------------------------------


def read(path: Path) -> tuple[Space, dict[Config, float]]:
    """Return a table's space, and each configuration's seconds."""
    data = json.loads(gzip.decompress(path.read_bytes()))
    space = make_space(data["tune"], data["restrictions"])
    return space, dict(zip(space.configs(), (1e-9 * t for t in data["nanoseconds"]), strict=True))


def replay(space: Space, times: dict[Config, float], strategy: Any, seed: int, evals: int = EVALS[-1]) -> list[float]:
    """Return the regret after each evaluation of one search, as a tuning runs it: the default is the first."""
    default, found = space.default(), [times[space.default()]]

    def evaluate(config: Config) -> float:
        if config != default:
            found.append(times[config])
        return times[config]

    Search(space, evaluate, free=lambda c: c == default, max_evals=evals - 1, strategy=strategy, seed=seed).run()
    best, least, regrets = min(times.values()), float("inf"), []
    for seconds in found[:evals]:
        least = min(least, seconds)
        regrets.append(least / best - 1)
    return regrets + regrets[-1:] * (evals - len(regrets))


def compare(paths: list[Path], strategies: list[Any], seeds: int) -> list[list[str]]:
    """Return the rows of the table: each strategy on each table."""
    rows = []
    for path in paths:
        space, times = read(path)
        best = min(times.values())
        default = times[space.default()] / best - 1
        for strategy in strategies:
            regrets = [replay(space, times, strategy, seed) for seed in range(seeds)]
            row = [path.name.partition(".")[0], str(len(times)), f"{100 * default:.0f} %", strategy or "the default"]
            for evals in EVALS:
                found = sorted(r[evals - 1] for r in regrets)
                row.append(f"{100 * statistics.median(found):.1f} % ({100 * bench.quantile(found, 0.75):.1f})")
            rows.append(row)
            print(" ".join(row), file=sys.stderr, flush=True)
    return rows


def live(verbose: bool) -> None:
    """Time one tuning of 60 evaluations of a simple kernel with 120 configurations."""
    import tempfile

    os.environ["JLKERN_CACHE_DIR"] = tempfile.mkdtemp(prefix="jlkern-search-")
    import jlkern

    kernel = jlkern.from_source(
        SAXPY,
        tune={"block": [64, *(2**k for k in range(2, 6)), *(2**k for k in range(7, 12))], "items": [*range(1, 13)]},
        ndrange=lambda y, items: cld(y.size, items),
    )
    rng = np.random.default_rng(1)
    args = [F(rng, 100_000), np.float32(2), F(rng, 100_000)]
    start = time.perf_counter()
    result = kernel.tune(*args, max_evals=60)
    spent = time.perf_counter() - start
    if verbose:
        print(trials_table(result.trials, result.best))
    params = len({trial.config.params for trial in result.trials})
    print(f"{params} evaluations and {len(result.trials) - params} schedules in {spent:.1f} s: {result}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--strategy", action="append", default=[], help="another strategy to compare with")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="with --live: every trial")
    options = parser.parse_args()
    if options.live:
        live(options.verbose)
        return
    if options.record:
        for name in options.names or CASES:
            data = json.dumps(record(name)).encode()
            (TABLES / f"{name}.json.gz").write_bytes(gzip.compress(data, mtime=0))
        return
    paths = [TABLES / f"{name}.json.gz" for name in options.names] or sorted(TABLES.glob("*.json.gz"))
    rows = compare(paths, [None, "random_sample", *options.strategy], options.seeds)
    print(table(rows, ("table", "configs", "default", "strategy", *(f"after {n}" for n in EVALS))))


if __name__ == "__main__":
    main()
