"""Six problems: their data, what comes out, and how contenders answer `throughput.py`.

Inputs follow from indices, so that every contender makes the same without being handed any. A contender's result goes
back as a few numbers (`fingerprint`), which are compared with NumPy's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

F = np.float32
N, STENCIL, MATMUL, BODIES, IMAGE, LIMIT = 1 << 22, 2048, 512, 2048, 1024, 100
A, EPS = F(1e-3), F(0.01)
PROBLEMS = ("saxpy", "stencil", "matmul", "nbody", "mandelbrot", "sum")
SAMPLES = 5


def values(shape: int | tuple[int, ...], k: int, order: Any = "F") -> np.ndarray:
    """Return numbers between 0 and 1 that follow from the (column-major) index and `k`, page-aligned."""
    size = int(np.prod(shape))
    raw = np.empty(4 * size + 4096, np.uint8)
    start = -raw.ctypes.data % 4096
    out = raw[start : start + 4 * size].view(F).reshape(shape, order=order)
    out[...] = (((np.arange(size) * 7919 + k) % 1024 + 0.5) / 1024).astype(F).reshape(shape, order="F")
    return out


def reference(problem: str) -> list[np.ndarray]:
    """Return the outputs after one call, in double precision where that makes sense."""
    if problem == "saxpy":
        return [values(N, 1).astype(float) + float(A) * values(N, 2)]
    if problem == "stencil":
        u = values((STENCIL, STENCIL), 1).astype(float)
        v = np.zeros_like(u)
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        return [v]
    if problem == "matmul":
        return [values((MATMUL, MATMUL), 1).astype(float) @ values((MATMUL, MATMUL), 2).astype(float)]
    if problem == "nbody":
        p = np.stack([values(BODIES, k) for k in (1, 2, 3)], 1).astype(float)
        d = p[None] - p[:, None]
        r2 = (d**2).sum(2) + float(EPS)
        return list((d * (values(BODIES, 4)[None] / (r2 * np.sqrt(r2)))[:, :, None]).sum(1).T)
    if problem == "mandelbrot":
        d = F(3 / IMAGE)
        cy, cx = (F(-1.5) + np.arange(IMAGE, dtype=F) * d)[:, None], (F(-2) + np.arange(IMAGE, dtype=F) * d)[None]
        x, y, n = np.zeros((IMAGE, IMAGE), F), np.zeros((IMAGE, IMAGE), F), np.zeros((IMAGE, IMAGE), np.int32)
        alive = np.ones_like(n, bool)
        with np.errstate(all="ignore"):
            for _ in range(LIMIT):
                alive &= x * x + y * y <= 4
                n[alive] += 1
                x, y = x * x - y * y + cx, 2 * x * y + cy
        return [n]
    return [np.array([values(N, 1).sum(dtype=float)])]


def fingerprint(outputs: list[np.ndarray]) -> list[float]:
    """Return the sum, and a few elements, of each output."""
    found: list[float] = []
    for out in outputs:
        flat = np.asarray(out).reshape(-1, order="F")
        found.append(float(flat.sum(dtype=float)))
        found += [float(flat[k * flat.size // SAMPLES]) for k in range(SAMPLES)]
    return found


def agrees(problem: str, found: list[float], wanted: list[float]) -> bool:
    """Tell whether two fingerprints are of the same result; rounding moves the edge of the Mandelbrot set."""
    scale = float(np.abs(wanted).max())
    if problem == "mandelbrot":
        return abs(found[0] - wanted[0]) < 5e-3 * wanted[0]
    return len(found) == len(wanted) and bool(np.allclose(found, wanted, rtol=2e-3, atol=2e-6 * scale))


@dataclass(frozen=True)
class Contender:
    """One way to compute a problem: `runs` are its configurations; `reset` sets the outputs to their start."""

    runs: Mapping[str, Callable[[], Any]]
    outputs: Callable[[], list[np.ndarray]]
    reset: Callable[[], None] = lambda: None


def burst(run: Callable[[], Any], seconds: float, most: int = 30) -> list[float]:
    """Return the times of some calls in a row, after one that is not counted."""
    run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < most):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


def serve(make: Callable[[str], Mapping[str, Contender]], questions: TextIO, answers: TextIO) -> None:
    """Answer requests, one a line: `start problem`, `check problem name`, `burst problem name`.

    `start` answers with the contenders' names; `check` with the fastest configuration and the fingerprint of its
    result; `burst` with the median and the least seconds of some calls.
    """
    made: dict[str, Mapping[str, Contender]] = {}
    best: dict[tuple[str, str], Callable[[], Any]] = {}
    for line in questions:
        what, problem, *rest = line.rstrip("\n").split("\t")
        try:
            if what == "start":
                made[problem] = make(problem)
                answer = ["ok", *made[problem]]
            elif what == "check":
                contender = made[problem][rest[0]]
                label = min(contender.runs, key=lambda n: statistics.median(burst(contender.runs[n], 0.1, 10)))
                best[problem, rest[0]] = contender.runs[label]
                contender.reset()
                contender.runs[label]()
                answer = ["ok", label, *map(repr, fingerprint(contender.outputs()))]
            else:
                times = burst(best[problem, rest[0]], 0.05)
                answer = ["ok", repr(statistics.median(times)), repr(min(times))]
        except Exception as error:  # a peer that fails is a row that says so
            answer = ["failed", f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"]
        answers.write("\t".join(answer) + "\n")
        answers.flush()
