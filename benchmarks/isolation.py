"""What does `isolation="process"` cost: one tuning in this process and one in a worker, per candidate and at the start.

    python benchmarks/isolation.py

Rounds alternate between the two; the table has the medians. The first tuning in a worker also starts it.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from typing import Any

os.environ["JLKERN_CACHE_DIR"] = tempfile.mkdtemp(prefix="jlkern-isolation-")

import numpy as np

import jlkern
from jlkern.report import table

ROUNDS = 3
ITEM = "i = @index(Global); @inbounds y[i]"
CASES = {
    "written only, 8 kB": ("@kernel function f{n}!(y, @Const(x)) " + ITEM + " = x[i] * {n} end", 1000),
    "read and written, 400 kB": ("@kernel function f{n}!(y, @Const(x)) " + ITEM + " += {n} * x[i] end", 50_000),
}
BLOCKS = [16, 64, 256, 1024]


def run(source: str, size: int, number: int, isolation: Any) -> tuple[float, int]:
    # another number in the source each time, so that no compiled code is found again
    kernel = jlkern.from_source(source.replace("{n}", str(number)), tune={"block": BLOCKS}, isolation=isolation)
    y, x = np.zeros(size), np.ones(size)
    start = time.perf_counter()
    result = kernel.tune(y, x)
    return time.perf_counter() - start, len(result.trials)


def main() -> None:
    number = 2
    rows = []
    start = time.perf_counter()
    run(*CASES["written only, 8 kB"], 1, "none")
    here = time.perf_counter() - start
    start = time.perf_counter()
    run(*CASES["written only, 8 kB"], 1, "process")
    there = time.perf_counter() - start
    for name, (source, size) in CASES.items():
        seconds: dict[str, list[float]] = {"none": [], "process": []}
        trials = 1
        for _ in range(ROUNDS):
            for isolation in seconds:
                number += 1
                spent, trials = run(source, size, number, isolation)
                seconds[isolation].append(spent)
        none, process = (statistics.median(seconds[i]) / trials for i in ("none", "process"))
        rows.append((name, str(trials), f"{1e3 * none:.0f}", f"{1e3 * process:.0f}", f"{process / none:.2f}"))
    print(table(rows, ("kernel", "trials", "ms/trial none", "ms/trial process", "ratio")))
    print(f"first tuning of the process: {here:.1f} s without, {there:.1f} s in a worker that it starts")


if __name__ == "__main__":
    main()
