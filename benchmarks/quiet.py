"""Two processes that tune different kernels at once: does either take the other's time for its own?

    python benchmarks/quiet.py [--rounds 5]

Each round tunes two kernels alone, one after the other; then both at once in two processes; then both at once without
the machine-wide lock (a folder of its own for each). The table has the sum of the times that a tuning found for its
configurations as a multiple of what it found alone, the median over rounds and the worst.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

CHILD = """
import sys
import numpy as np
import jlkern

number = int(sys.argv[1])
kernel = jlkern.from_source(
    '''
    @kernel function work!(y, @Const(x))
        i = @index(Global)
        s = x[i] * NUMBER
        for k in 1:300
            s = s * 0.5 + x[i]
        end
        @inbounds y[i] = s
    end
    '''.replace("NUMBER", str(number)), tune={"block": [4, 16, 64, 256, 1024]}
)
y, x = np.empty(600_000), np.linspace(0, 1, 600_000)  # a launch is longer than a slice of time
kernel(y, x, config={"block": 4})  # what is slow in a process's first call
sys.stdin.readline()
result = kernel.tune(y, x, fresh=True)
print(sum(trial.seconds for trial in result.trials))
"""
KERNELS = (1, 2)


def start(number: int, locks: str, folder: str) -> subprocess.Popen[str]:
    """Start a process that waits for a line and tunes then."""
    environment = {**os.environ, "JLKERN_LOCK_DIR": locks, "JLKERN_CACHE_DIR": os.path.join(folder, str(number))}
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(number)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(processes: list[subprocess.Popen[str]]) -> list[float]:
    """Let them tune at once; return the sum of the times that each found."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [float(process.communicate()[0].split()[0]) for process in processes]


def main() -> None:
    from jlkern.report import table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found: dict[str, list[float]] = {"at once, with the lock": [], "at once, without": []}
    with tempfile.TemporaryDirectory(prefix="jlkern-quiet-") as folder:
        shared = os.path.join(folder, "locks")
        for _ in range(options.rounds):
            alone = [finish([start(number, shared, folder)])[0] for number in KERNELS]
            for what in found:
                apart = what.endswith("without")
                locks = [os.path.join(folder, f"lock{n}") if apart else shared for n in KERNELS]
                times = finish([start(n, lock, folder) for n, lock in zip(KERNELS, locks, strict=True)])
                found[what] += [t / a for t, a in zip(times, alone, strict=True)]
    rows = [(what, f"{statistics.median(r):.2f}", f"{max(r):.2f}") for what, r in found.items()]
    print(table(rows, ("two tunings", "times", "worst")))


if __name__ == "__main__":
    main()
