"""How long one candidate takes to compile: from the source and a configuration to machine code, with nothing kept.

    python benchmarks/compiling.py [--rounds 7]

The six kernels of `throughput.py`. Each round compiles another configuration of each, so that nothing is known, and the
same emitted text by Numba's own pipeline, for the ratio.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ["JLKERN_CODE_CACHE"] = "0"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from peers.by_jlkern import BODY, ESCAPE, FUSED, SAXPY, STENCIL_5, STRICT, TILED, TREE

from jlkern.engines.base import CompileRequest
from jlkern.engines.numba import engine
from jlkern.engines.numba.launcher import compile_by_numba
from jlkern.signature import classify
from jlkern.source import Origin, load_source

F32 = np.float32


def line(count: int) -> list[np.ndarray]:
    return [np.zeros(64, F32) for _ in range(count)]


def plane(count: int) -> list[np.ndarray]:
    return [np.zeros((64, 64), F32, order="F") for _ in range(count)]


KERNELS: dict[str, tuple[str, list[Any], str, int]] = {
    "saxpy": (SAXPY, [line(1)[0], F32(2), line(1)[0]], "block", 1),
    "stencil": (STENCIL_5, plane(2), "block", 2),
    "sum": (TREE, line(2), "block", 1),
    "mandelbrot": (ESCAPE, [np.zeros((64, 64), np.int32, order="F"), 100], "block", 2),
    "matmul": (TILED.replace("STEP", STRICT), plane(3), "T", 2),
    "matmul, muladd": (TILED.replace("STEP", FUSED), plane(3), "T", 2),
    "nbody": (BODY, [*line(7), F32(0.01), 64], "block", 1),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    ours: dict[str, list[float]] = {name: [] for name in KERNELS}
    numbas: dict[str, list[float]] = {name: [] for name in KERNELS}
    for number in range(rounds + 1):
        for name, (source, args, tunable, dims) in KERNELS.items():
            size = 8 * (number + 2)
            loaded = load_source(source, Origin(None, 1, False), (tunable,))
            signature = tuple(classify(n, a) for n, a in zip(loaded.names, args, strict=True))
            workgroup = (size,) * (2 if tunable == "T" else 1)
            request = CompileRequest(loaded, signature, {tunable: size}, workgroup, dims, loaded.effects.written)
            start = time.perf_counter()
            launcher: Any = engine().compile(request)
            _ = launcher.code
            middle = time.perf_counter()
            compile_by_numba(launcher.text, loaded.name)
            if number:  # the first compiles what is shared too
                ours[name].append(middle - start)
                numbas[name].append(time.perf_counter() - middle)
    print(f"{'':16s} {'ms per candidate':>17s} {'25 % .. 75 %':>15s}   ratio to Numba's pipeline, same text")
    for name, seconds in ours.items():
        low, middle, high = statistics.quantiles(seconds, n=4)
        ratio = statistics.median(a / b for a, b in zip(seconds, numbas[name], strict=True))
        print(f"{name:16s} {middle * 1e3:17.0f} {low * 1e3:7.0f} .. {high * 1e3:4.0f} {ratio:10.2f}")


if __name__ == "__main__":
    main()
