"""What does jlkern cost before anything runs? `import jlkern` against `import numpy`, and the decoration of one kernel.

Every import is timed in a fresh process, both in turn; decoration is timed once the parser is loaded, on sources that
are all different.

    python benchmarks/imports.py [--rounds 15]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_FOLDER = tempfile.TemporaryDirectory(prefix="jlkern-bench-")
os.environ["JLKERN_CACHE_DIR"] = _FOLDER.name
ROOT = str(Path(__file__).resolve().parent.parent)
sys.path.insert(0, ROOT)

from measure import median, print_table

SOURCE = """
@kernel function saxpy!(y, a, @Const(x))
    i = @index(Global)
    @inbounds y[i] += a * x[i] + {number}
end
"""


def import_seconds(package: str) -> float:
    """Return what importing a package takes in a process of its own, start of Python not included."""
    code = f"import time; t = time.perf_counter(); import {package}; print(time.perf_counter() - t)"
    environment = {**os.environ, "PYTHONPATH": ROOT}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else jlkern would be compiled on every import, numpy not
    return float(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout)


def decoration_seconds(number: int) -> float:
    """Return what making a kernel takes, of a source that was not seen before."""
    import jlkern

    source = SOURCE.format(number=number)
    start = time.perf_counter()
    jlkern.from_source(source, tune={"block": [64, 128, 256]})
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="processes per package (15)")
    rounds = parser.parse_args().rounds

    packages = ("numpy", "jlkern", "numba")
    for package in packages:
        import_seconds(package)  # the disk's cache, and the compiled files
    times: dict[str, list[float]] = {f"import {package}": [] for package in packages}
    for _ in range(rounds):
        for package in packages:
            times[f"import {package}"].append(import_seconds(package))
    print(f"in fresh processes, {rounds} each, in turn\n")
    print_table(times, "import numpy", "ms", 1e3, {})

    first = decoration_seconds(0)
    rest = [decoration_seconds(number) for number in range(1, 51)]
    print(f"\ndecorating a kernel: {median(rest) * 1e3:.3f} ms (median of {len(rest)})")
    print(f"the first one, the parser's import included: {first * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
