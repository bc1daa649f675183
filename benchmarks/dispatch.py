"""What does a warm call cost? A kernel of three arrays (n=64) and a scalar, against peers that do the same work.

All contenders are measured in one run, interleaved: in every round, 100 fresh sets of arrays are made (and those of
the round before freed, so that nothing that goes by an object's identity helps), and each contender runs through all
sets in turn some times. Waiting for the result is part of every call. Peers that are not installed are skipped, with
the reason.

    python benchmarks/dispatch.py [--rounds 40]
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# A memo of its own, before jlkern is imported: a benchmark must not depend on what the user tuned before.
_FOLDER = tempfile.TemporaryDirectory(prefix="jlkern-bench-")
os.environ["JLKERN_CACHE_DIR"] = _FOLDER.name
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from measure import print_table

import jlkern

N = 64
SETS = 100
PASSES = 5

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.float32]
Pass = Callable[[], None]  # one call for each set
Prepare = Callable[[list[Arrays]], Pass]  # what may be done once per set of arrays, outside the timing


def make_sets() -> list[Arrays]:
    rng = np.random.default_rng()
    return [
        (np.zeros(N, np.float32), rng.random(N, np.float32), rng.random(N, np.float32), np.float32(1 + i))
        for i in range(SETS)
    ]


def calling(f: Callable[..., Any]) -> Prepare:
    """Return how a function that takes a set as it is runs through the sets."""

    def prepare(sets: list[Arrays]) -> Pass:
        def run() -> None:
            for c, a, b, s in sets:
                f(c, a, b, s)

        return run

    return prepare


def firing(bind: Callable[..., Callable[[], Any]]) -> Prepare:
    """Return how functions of nothing, made once per set, run through the sets."""

    def prepare(sets: list[Arrays]) -> Pass:
        bound = [bind(*arrays) for arrays in sets]

        def run() -> None:
            for f in bound:
                f()

        return run

    return prepare


@jlkern.kernel(tune={"block": [64, 32, 16]})
def triad(c, a, b, s) -> None:
    r"""
    @kernel function triad!(c, @Const(a), @Const(b), s)
        i = @index(Global)
        @inbounds c[i] = a[i] + s * b[i]
    end
    """


# --- contenders: each yields (name, prepare); raising ImportError or RuntimeError says why it is skipped ------------


def with_jlkern() -> Iterator[tuple[str, Prepare]]:
    yield "jlkern call", calling(triad)
    yield "jlkern bind()", firing(triad.bind)


def with_numba() -> Iterator[tuple[str, Prepare]]:
    import numba

    @numba.njit
    def bare(c, a, b, s):
        for i in range(c.size):
            c[i] = a[i] + s * b[i]

    yield "bare Numba, serial", calling(bare)


def with_numpy() -> Iterator[tuple[str, Prepare]]:
    yield "NumPy", calling(lambda c, a, b, s: np.add(a, s * b, out=c))


def with_kernel_tuner() -> Iterator[tuple[str, Prepare]]:
    import shutil

    import kernel_tuner

    if shutil.which("gcc") is None:
        raise RuntimeError("no gcc for its C backend")
    source = (
        'extern "C" float triad(float *c, const float *a, const float *b, float s) '
        "{ for (int i = 0; i < 64; ++i) c[i] = a[i] + s * b[i]; return 0.0f; }"
    )

    def run(c: np.ndarray, a: np.ndarray, b: np.ndarray, s: np.float32) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            c[:] = kernel_tuner.run_kernel("triad", source, N, [c, a, b, s], {}, lang="C")[0]

    yield "Kernel Tuner run_kernel (compiles)", calling(run)


def with_pyopencl() -> Iterator[tuple[str, Prepare]]:
    import pyopencl as cl

    try:
        devices = [d for p in cl.get_platforms() for d in p.get_devices(cl.device_type.CPU)]
    except cl.Error as error:
        raise RuntimeError(f"no OpenCL platform ({error})") from None
    if not devices:
        raise RuntimeError("no OpenCL device for this CPU")
    context = cl.Context(devices[:1])
    queue = cl.CommandQueue(context)
    source = cl.Program(
        context,
        "__kernel void triad(__global float *c, __global const float *a, __global const float *b, float s)"
        "{ int i = get_global_id(0); c[i] = a[i] + s * b[i]; }",
    )
    try:
        program = source.build()
    except cl.Error as error:
        raise RuntimeError(f"OpenCL compiles nothing here ({str(error).splitlines()[-1]})") from None
    kernel = cl.Kernel(program, "triad")

    def prepare(sets: list[Arrays]) -> Pass:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        wrapped = [(*(cl.Buffer(context, flags, hostbuf=v) for v in (c, a, b)), s) for c, a, b, s in sets]

        def run() -> None:
            for c, a, b, s in wrapped:
                kernel(queue, (N,), (N,), c, a, b, s)
                queue.finish()

        return run

    yield "PyOpenCL (buffers made once)", prepare


def with_warp() -> Iterator[tuple[str, Prepare]]:
    import warp as wp

    wp.config.quiet = True
    wp.config.kernel_cache_dir = _FOLDER.name + "/warp"
    wp.init()
    floats = wp.array(dtype=wp.float32)

    def body(c, a, b, s):
        i = wp.tid()
        c[i] = a[i] + s * b[i]

    body.__annotations__ = {"c": floats, "a": floats, "b": floats, "s": wp.float32}
    kernel = wp.kernel(body)

    def wrap(sets: list[Arrays]) -> list[tuple[Any, ...]]:
        return [(*(wp.array(v, device="cpu", copy=False) for v in (c, a, b)), float(s)) for c, a, b, s in sets]

    def plain(sets: list[Arrays]) -> Pass:
        wrapped = wrap(sets)

        def run() -> None:
            for arrays in wrapped:
                wp.launch(kernel, dim=N, inputs=arrays, device="cpu")

        return run

    def recorded(sets: list[Arrays]) -> Pass:
        wrapped = wrap(sets)  # kept: a recorded launch does not own its arrays
        commands = [wp.launch(kernel, dim=N, inputs=w, device="cpu", record_cmd=True).launch for w in wrapped]

        def run(_keep: object = wrapped) -> None:
            for f in commands:
                f()

        return run

    yield "Warp launch (arrays wrapped once)", plain
    yield "Warp recorded launch", recorded


def with_taichi() -> Iterator[tuple[str, Prepare]]:
    import taichi as ti

    ti.init(arch=ti.cpu, log_level=ti.ERROR)
    floats = ti.types.ndarray(dtype=ti.f32, ndim=1)

    def body(c, a, b, s):
        for i in range(c.shape[0]):
            c[i] = a[i] + s * b[i]

    body.__annotations__ = {"c": floats, "a": floats, "b": floats, "s": ti.f32}
    kernel = ti.kernel(body)

    def run(c: np.ndarray, a: np.ndarray, b: np.ndarray, s: np.float32) -> None:
        kernel(c, a, b, float(s))
        ti.sync()

    yield "Taichi (NumPy arrays)", calling(run)


PEERS = {
    "jlkern": with_jlkern,
    "Numba": with_numba,
    "NumPy": with_numpy,
    "Kernel Tuner": with_kernel_tuner,
    "PyOpenCL": with_pyopencl,
    "Warp": with_warp,
    "Taichi": with_taichi,
}


def check(name: str, prepare: Prepare) -> float:
    """Run a contender once on a few sets, compare what it did with NumPy, and return a warm call's seconds, roughly."""
    sets = make_sets()[:3]
    run = prepare(sets)
    run()
    start = time.perf_counter()
    run()
    seconds = (time.perf_counter() - start) / len(sets)
    for c, a, b, s in sets:
        if not np.allclose(c, a + s * b, rtol=1e-5):
            raise AssertionError(f"{name} computes something else")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40, help="rounds, each with arrays of its own (40)")
    rounds = parser.parse_args().rounds

    contenders: dict[str, Prepare] = {"(the loop alone)": calling(lambda c, a, b, s: None)}
    skipped: dict[str, str] = {}
    calls: dict[str, int] = {"(the loop alone)": SETS}
    for peer, load in PEERS.items():
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # some greet
                found = [(name, prepare, check(name, prepare)) for name, prepare in load()]
            for name, prepare, seconds in found:
                contenders[name] = prepare
                calls[name] = SETS if seconds < 1e-3 else 1
        except ModuleNotFoundError as error:
            skipped[peer] = f"{error.name} is not installed"
        except (ImportError, RuntimeError) as error:
            skipped[peer] = str(error)

    times: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders)
    for number in range(rounds):
        sets = make_sets()
        for name in order[number % len(order) :] + order[: number % len(order)]:
            some = sets[: calls[name]]
            if len(some) < SETS and number >= 5:
                continue  # a call of milliseconds needs no more samples than these
            run = contenders[name](some)
            run()
            gc.disable()
            for _ in range(PASSES if len(some) == SETS else 1):
                start = time.perf_counter()
                run()
                times[name].append((time.perf_counter() - start) / len(some))
            gc.enable()
            del run
        del sets, some

    print(f"warm call, three float32 arrays (n={N}) and a scalar; {rounds} rounds over {SETS} sets of arrays")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores\n")
    print_table(times, "jlkern call", "us", 1e6, skipped)


if __name__ == "__main__":
    main()
