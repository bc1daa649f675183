"""The julia engine's own costs: what a call adds to a launch, how well kernels are timed, what candidates leave behind.

    python benchmarks/julia.py [--peers] [--candidates N]

Three tables. Calls: the three-array kernel of 64 elements over 100 sets of arrays in rotation, against the launch
measured inside Julia. Timing: kernels of 1 to 10 microseconds, one work-group, against a loop around `time_ns` written
by hand in Julia, taken in turn with ours; with --peers also what Kernel Tuner's own Julia backend reports for them.
Memory: the resident size that each compiled candidate adds. Needs a Julia that is set up.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import jlkern
from jlkern.engines.select import engine_named

AXPY = """
@kernel function axpy!(c, @Const(a), @Const(b), s)
    i = @index(Global)
    @inbounds c[i] = a[i] + s * b[i]
end
"""
SINES = """
@kernel function sines!(y, @Const(x))
    i = @index(Global)
    @inbounds y[i] = sin(x[i])
end
"""
BY_HAND = """
module ByHand
using KernelAbstractions
{source}
const KA = KernelAbstractions
# the work-group's function itself, and KernelAbstractions' call around it
function body(k, n)
    range, _, space, check = KA.launch_config(k, n, nothing)
    context = KA.mkcontext(k, first(KA.blocks(space)), range, space, check)
    return (y, x) -> k.f(context, y, x)
end
call(k, n) = (y, x) -> k(y, x; ndrange = n)
function loop(form, n, seconds)
    x, y = rand(n), zeros(n)
    return timed(form(sines!(CPU(), n), n), y, x, seconds)
end
function timed(run, y, x, seconds)
    run(y, x)
    times = 1
    while true
        start = time_ns()
        for _ in 1:times
            run(y, x)
        end
        taken = (time_ns() - start) / 1e9
        taken > seconds && return taken / times
        times *= 2
    end
end
end
"""
ROUNDS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", action="store_true", help="time with Kernel Tuner's Julia backend too")
    parser.add_argument("--candidates", type=int, default=100, help="candidates of the memory table")
    options = parser.parse_args()
    engine_named("julia")
    calls()
    timing(options.peers)
    memory(options.candidates)


def calls() -> None:
    kernel = jlkern.from_source(AXPY, engine="julia")
    rng = np.random.default_rng(0)
    sets = [[rng.random(64, np.float32) for _ in range(3)] for _ in range(100)]
    two = np.float32(2)
    kernel(*sets[0], two)
    for c, a, b in sets:
        kernel(c, a, b, two)
        assert np.allclose(c, a + 2 * b)
    bounds = [kernel.bind(c, a, b, two) for c, a, b in sets]
    sample = _sampler(kernel, (*sets[0], two))

    def every_call() -> None:
        for c, a, b in sets:
            kernel(c, a, b, two)

    def every_bound() -> None:
        for bound in bounds:
            bound()

    def nothing() -> None:
        for _c, _a, _b in sets:
            pass

    rows: dict[str, list[float]] = {"launch inside Julia": [], "call": [], "bind()": []}
    for _ in range(ROUNDS):
        empty = _per_set(nothing)
        rows["launch inside Julia"].append(sample(20_000) / 20_000 * 1e6)
        rows["call"].append(_per_set(every_call) - empty)
        rows["bind()"].append(_per_set(every_bound) - empty)
    inside = statistics.median(rows["launch inside Julia"])
    print("calls: three arrays of 64 float32 and a scalar, 100 sets in rotation (microseconds, medians)")
    for name, values in rows.items():
        middle = statistics.median(values)
        over = "" if name.startswith("launch") else f"   {middle - inside:5.2f} over the launch"
        print(f"  {name:22s} {middle:6.3f}{over}")


def timing(peers: bool) -> None:
    from juliacall import Main

    Main.seval(BY_HAND.format(source=SINES))
    kernel = jlkern.from_source(SINES, engine="julia")
    loop = Main.ByHand.loop
    print("timing: one work-group; ours / a loop by hand around the same function, median of rounds in turn (range)")
    for n in (256, 512, 1024, 2048, 4096):
        x, y = np.random.default_rng(0).random(n), np.zeros(n)
        sample = _sampler(kernel, (y, x), workgroup=(n,))
        sample(2000)
        ratios, hands, calls_ = [], [], []
        for _ in range(ROUNDS):
            hand = float(loop(Main.ByHand.body, n, 5e-3))
            times = max(1, int(5e-3 / hand))
            ratios.append(sample(times) / times / hand)
            hands.append(hand)
            calls_.append(float(loop(Main.ByHand.call, n, 5e-3)) / hand)
        hand = statistics.median(hands)
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        line = f"  {hand * 1e6:6.2f} us by hand   {statistics.median(ratios):5.2f} ({spread})"
        line += f"   KernelAbstractions' own call {statistics.median(calls_):5.2f}"
        if peers and n <= 1024:  # what Kernel Tuner takes for the largest work-group
            line += f"   Kernel Tuner's backend {_kernel_tuner(n) / hand:6.1f}"
        print(line)


def memory(count: int) -> None:
    source = SINES.replace("sin(x[i])", "sin(x[i]) + m")
    kernel = jlkern.from_source(source, engine="julia", tune={"m": [*range(count)]})
    x, y = np.random.default_rng(0).random(64), np.zeros(64)
    launched = 0.0
    for m in range(count):
        before = _resident()
        kernel(y, x, config={"m": m})
        if m >= count // 5:  # the first ones also grow what is shared
            launched += _resident() - before
    print(f"memory: {launched / (count - count // 5):.2f} MiB per compiled candidate ({count} candidates)")


def _resident() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def _sampler(kernel: Any, args: tuple[Any, ...], workgroup: tuple[int, ...] | None = None) -> Callable[[int], float]:
    """Return what times a kernel's launch inside Julia, as the tuner does."""
    from dataclasses import replace

    runtime = kernel._runtime
    engine, signature = runtime.validate(args)
    declaration = runtime.declaration
    _, sizes = declaration.sizes(args, None)
    request = declaration.request(signature, declaration.space.default(), len(sizes))
    launcher = engine.compile(replace(request, workgroup=workgroup or request.workgroup))
    sample: Callable[[int], float] = launcher.sampler(sizes, args)
    return sample


def _per_set(run: Callable[[], None], times: int = 20) -> float:
    start = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - start) / times / 100 * 1e6


def _kernel_tuner(n: int) -> float:
    """Return the seconds that Kernel Tuner's Julia backend reports."""
    from kernel_tuner import tune_kernel

    source = "using KernelAbstractions\n" + SINES.replace("@Const(x))", "@Const(x), ::Val{B}) where {B}")
    x, y = np.random.default_rng(0).random(n), np.zeros(n)
    with contextlib.redirect_stdout(io.StringIO()):
        results, _ = tune_kernel(
            "sines!",
            source,
            (n,),
            [y, x],
            [("block_size_x", [n])],
            lang="julia",
            compiler_options=["CPU"],
            iterations=15,
        )
    return float(np.median(results[0]["times"])) / 1e3


if __name__ == "__main__":
    main()
