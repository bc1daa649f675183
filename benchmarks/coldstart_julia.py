"""How long until a fresh process has its first result from Julia? A plain start against one from the system image.

Every time is that of a process of its own, from its first line to the result in the array: imports, the start of Julia,
the compilation of the kernel. The two take turns. Each process says whether its runtime came from an image, so that
none is fast because it does something else. CPU time is printed beside the clock's, for a machine that is shared.

    jlkern setup --image && python benchmarks/coldstart_julia.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import median, print_table

LIMIT = 0.6
"""What a start from the image may take of a plain one."""

PROGRAM = '''
import time; start = time.perf_counter(), time.process_time()
import numpy as np
import jlkern

@jlkern.kernel(engine="julia")
def saxpy(y, a, x) -> None:
    """
    @kernel function saxpy!(y, a, @Const(x))
        i = @index(Global)
        @inbounds y[i] += a * x[i]
    end
    """

y, x = np.ones(4096, np.float32), np.ones(4096, np.float32)
saxpy(y, np.float32(2), x)
seconds = time.perf_counter() - start[0], time.process_time() - start[1]

import json
from juliacall import Main
print(json.dumps([*seconds, float(y.sum()), hasattr(Main.JlkernRuntime, "BUILT_FROM")]))
'''


def run(variables: dict[str, str], image: bool) -> tuple[float, float]:
    """Run the program in a process of its own; its seconds by the clock and of the CPU."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **variables}, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    clock, cpu, total, from_image = json.loads(done.stdout.splitlines()[-1])
    if total != 3 * 4096 or from_image != image:
        raise SystemExit(f"the result is {total}, and the image was {'' if from_image else 'not '}used")
    return clock, cpu


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds

    from jlkern.engines.julia import image, installation

    found = installation.find()
    path = image.find(found)
    if path is None:
        raise SystemExit("there is no system image that fits: jlkern setup --image")
    with tempfile.TemporaryDirectory() as folder:
        # a folder without images hides jlkern's own
        plain = {**installation.variables(found), "JLKERN_JULIA_DIR": folder, "JLKERN_CACHE_DIR": folder}
        imaged = {**plain, "PYTHON_JULIACALL_SYSIMAGE": path}
        run(plain, False), run(imaged, True)
        samples = [(run(plain, False), run(imaged, True)) for _ in range(rounds)]
    print(
        f"from the first line to the first result, {rounds} processes each; {Path(path).stat().st_size >> 20} MiB image"
    )
    for which, what in ((0, "by the clock"), (1, "CPU time")):
        rows = {"plain": [p[which] for p, _ in samples], "image": [i[which] for _, i in samples]}
        print(f"\n{what}")
        print_table(rows, "plain", "s", 1.0, {})
    ratio = median([i[0] / p[0] for p, i in samples])
    print(f"\nimage / plain, median of the rounds: {ratio:.2f} (at most {LIMIT})")
    raise SystemExit(ratio > LIMIT)


if __name__ == "__main__":
    main()
