"""How long until a fresh process has its first result? jlkern with a known configuration against Numba's `cache=True`.

Every time is that of a process of its own, from its first line to the result in the array: imports, the making of the
kernel and of its arguments, the first call. Contenders take turns. Each process also says what it imported and what
its result is, so that none is fast because it does something else.

    python benchmarks/coldstart.py [--rounds 9]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import median, print_table

LIMIT = 1.5
"""How many times Numba's time jlkern may take."""

HEAD = """
import time; start = time.perf_counter()
import json, sys
import numpy as np
"""
TAIL = """
seconds = time.perf_counter() - start
heavy = [name for name in ("tree_sitter", "jlkern.syntax", "kernel_tuner") if name in sys.modules]
print(json.dumps([seconds, float(np.abs(out).sum(dtype=np.float64)), heavy]))
"""

ARGUMENTS = {
    "saxpy": """
out, x = np.ones(1 << 22, np.float32), np.ones(1 << 22, np.float32)
saxpy(out, np.float32(2), x)
""",
    "stencil": """
out, x = np.zeros((2000, 2000), np.float32), np.ones((2000, 2000), np.float32)
stencil(out, x)
""",
    "nbody": """
out = np.zeros(2000, np.float32)
x = np.linspace(0, 1, 2000, dtype=np.float32)
nbody(out, x)
""",
}

NUMBA = {
    "saxpy": """
@njit(parallel=True, cache=True, fastmath=True)
def saxpy(y, a, x):
    for i in prange(y.size):
        y[i] += a * x[i]
""",
    "stencil": """
@njit(parallel=True, cache=True, fastmath=True)
def stencil(y, x):
    n, m = y.shape
    for i in prange(1, n - 1):
        for j in range(1, m - 1):
            y[i, j] = np.float32(0.25) * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])
""",
    "nbody": """
@njit(parallel=True, cache=True, fastmath=True)
def nbody(f, x):
    for i in prange(f.size):
        sum = np.float32(0)
        for j in range(x.size):
            d = x[j] - x[i]
            sum += d / np.sqrt(d * d * d * d * d * d + np.float32(1e-3))
        f[i] = sum
""",
}

JLKERN = {
    "saxpy": '''
@jlkern.kernel(tune={"block": [256, 1024]})
def saxpy(y, a, x) -> None:
    """
    @kernel function saxpy!(y, a, @Const(x))
        i = @index(Global)
        @inbounds y[i] += a * x[i]
    end
    """
''',
    "stencil": '''
@jlkern.kernel(tune={"bx": [1, 8], "by": [64, 256]}, workgroup=("bx", "by"))
def stencil(y, x) -> None:
    """
    @kernel function stencil!(y, @Const(x))
        i, j = @index(Global, NTuple)
        n, m = @ndrange()
        if 1 < i < n && 1 < j < m
            @inbounds y[i, j] = 0.25f0 * (x[i-1, j] + x[i+1, j] + x[i, j-1] + x[i, j+1])
        end
    end
    """
''',
    "nbody": '''
@jlkern.kernel(tune={"block": [64, 256]}, ndrange="f")
def nbody(f, x) -> None:
    """
    @kernel function nbody!(f, @Const(x))
        i = @index(Global)
        @inbounds begin
            sum = 0f0
            for j in 1:length(x)
                d = x[j] - x[i]
                sum += d / sqrt(d * d * d * d * d * d + 1f-3)
            end
            f[i] = sum
        end
    end
    """
''',
}


def contenders(folder: Path, name: str) -> dict[str, Callable[[], list[Any]]]:
    """Write the scripts of a kernel; return what runs each in a fresh process."""
    environment = {**os.environ, "JLKERN_CACHE_DIR": str(folder / "jlkern"), "NUMBA_CACHE_DIR": str(folder / "numba")}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parent.parent)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.pop("JLKERN_CODE_CACHE", None)
    numba, jlkern = folder / f"{name}_numba.py", folder / f"{name}_jlkern.py"
    numba.write_text(f"{HEAD}from numba import njit, prange\n{NUMBA[name]}{ARGUMENTS[name]}{TAIL}")
    jlkern.write_text(f"{HEAD}import jlkern\n{JLKERN[name]}{ARGUMENTS[name]}{TAIL}")

    def process(script: Path, **more: str) -> list[Any]:
        done = subprocess.run(
            [sys.executable, str(script)], env={**environment, **more}, stdout=subprocess.PIPE, check=True, text=True
        )
        return list(json.loads(done.stdout))

    return {
        "Numba, cache=True": lambda: process(numba),
        "jlkern": lambda: process(jlkern),
        "jlkern, no code kept": lambda: process(jlkern, JLKERN_CODE_CACHE="0"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="processes per contender (9)")
    rounds = parser.parse_args().rounds

    ratios = {}
    with tempfile.TemporaryDirectory(prefix="jlkern-bench-") as folder:
        for name in JLKERN:
            runs = contenders(Path(folder), name)
            for run in runs.values():
                run()  # compiles and tunes
                run()  # the disk's cache
            times: dict[str, list[float]] = {label: [] for label in runs}
            results = {}
            for _ in range(rounds):
                for label, run in runs.items():
                    seconds, results[label], heavy = run()
                    times[label].append(seconds)
                    if label == "jlkern" and heavy:
                        raise SystemExit(f"a known configuration imported {', '.join(heavy)}")
            first = results["Numba, cache=True"]
            if any(abs(result - first) > 1e-3 * abs(first) + 1e-3 for result in results.values()):
                raise SystemExit(f"{name}: the results differ: {results}")
            print(f"{name}: a fresh process's first result, {rounds} processes each, in turn\n")
            print_table(times, "Numba, cache=True", "ms", 1e3, {})
            print()
            ratios[name] = median(times["jlkern"]) / median(times["Numba, cache=True"])
    worst = max(ratios.values())
    print(f"at most {LIMIT} times Numba's time: {'yes' if worst <= LIMIT else 'NO'} ({worst:.2f})")


if __name__ == "__main__":
    main()
