"""How fast tuned kernels are: six KernelAbstractions strings against Numba written by hand, and other peers.

    python benchmarks/throughput.py [--rounds 15] [--only matmul,sum] [--peers numba,numpy,taichi,warp,opencl,julia]

Every contender's result is compared with NumPy's first, and the fastest of its configurations is chosen. Then all
contenders of a problem take turns; a turn is a burst of calls. What counts is the ratio to Numba by hand (parallel,
fastmath) in the same round: its median over the rounds, and the ratio of the least times; lower is better. The
milliseconds are for orientation. jlkern and Numba share a process, every other peer has its own.

Peers that are not installed are left out. Real KernelAbstractions runs where `PYTHON_JULIACALL_EXE`, or `julia`, is a
Julia that has it: by a script of its own, and the same strings as jlkern's through the julia engine.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
HAND = "Numba by hand"
PACKAGES = {"numpy": "numpy", "taichi": "taichi", "warp": "warp", "opencl": "pyopencl"}


class Peer:
    """A process that answers for some contenders."""

    def __init__(self, name: str, command: list[str], **environment: str) -> None:
        self.name, self.command = name, command
        self.environment = {**os.environ, **environment}
        self.process: subprocess.Popen[str] | None = None

    def ask(self, *request: str) -> list[str]:
        """Return the answer to a request; a process that died answers with a failure, and is started anew."""
        if self.process is None or self.process.poll() is not None:
            pipe = subprocess.PIPE
            log = None if "THROUGHPUT_LOG" in os.environ else subprocess.DEVNULL
            self.process = subprocess.Popen(
                self.command, stdin=pipe, stdout=pipe, stderr=log, text=True, env=self.environment
            )
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write("\t".join(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return line.rstrip("\n").split("\t") if line else ["failed", "its process ended (THROUGHPUT_LOG=1 shows why)"]

    def close(self) -> None:
        if self.process is not None:
            self.process.communicate(timeout=60)


@dataclass
class Row:
    """What was measured of one contender."""

    peer: Peer
    name: str
    config: str = ""
    medians: list[float] = field(default_factory=list)
    least: float = float("inf")


def peers(wanted: list[str]) -> list[Peer]:
    """Return the peers that are installed, jlkern's and Numba's process first."""

    def python(*modules: str) -> list[str]:
        return [sys.executable, str(HERE / "throughput.py"), "--worker", *modules]

    found = [Peer("jlkern", python("by_jlkern", "by_numba"))]
    for name, package in PACKAGES.items():
        if name in wanted and importlib.util.find_spec(package) is not None:
            found.append(Peer(name, python(f"by_{name}")))
    julia = os.environ.get("PYTHON_JULIACALL_EXE") or shutil.which("julia")
    if "julia" in wanted and julia:
        count = str(len(os.sched_getaffinity(0)))
        command = [julia, "--startup-file=no", "-O3", str(HERE / "peers" / "by_julia.jl")]
        found.append(Peer("julia", command, JULIA_NUM_THREADS=count))
        found.append(Peer("jlkern, julia engine", python("by_jlkern:julia"), PYTHON_JULIACALL_THREADS=count))
    return found


def rows_of(problem: str, asked: list[Peer]) -> list[Row]:
    """Return the contenders of a problem, checked; say which ones fail."""
    from peers.problems import agrees, fingerprint, reference

    wanted = fingerprint(reference(problem))
    rows: list[Row] = []
    for peer in asked:
        status, *names = peer.ask("start", problem)
        if status != "ok":
            print(f"{problem:12}{peer.name:32}left out: {' '.join(names)}")
            continue
        for name in names:
            status, config, *numbers = peer.ask("check", problem, name)
            if status != "ok":
                print(f"{problem:12}{name:32}left out: {config}")
            elif not agrees(problem, [float(n) for n in numbers], wanted):
                print(f"{problem:12}{name:32}left out: its result is wrong")
            else:
                rows.append(Row(peer, name, config))
    return rows


def measure(problem: str, rows: list[Row], rounds: int) -> None:
    """Have all contenders take turns."""
    for _ in range(rounds):
        for row in rows:
            _, median, least = row.peer.ask("burst", problem, row.name)
            row.medians.append(float(median))
            row.least = min(row.least, float(least))
            if row.peer.name == "numpy":
                time.sleep(0.3)  # its threads go on spinning, at the cost of whoever comes next


def ratio(row: Row, base: Row) -> float:
    """Return the median of the ratios round by round."""
    return statistics.median(a / b for a, b in zip(row.medians, base.medians, strict=True))


def report(problem: str, rows: list[Row]) -> dict[str, float]:
    """Print a problem's table; return the ratios to Numba by hand."""
    base = next(row for row in rows if row.name == HAND)
    ratios = {row.name: ratio(row, base) for row in rows}
    for row in rows:
        ms, least = statistics.median(row.medians) * 1e3, row.least / base.least
        print(f"{problem:12}{row.name:32}{ms:10.3f}{ratios[row.name]:12.2f}{least:12.2f}  {row.config}", flush=True)
    return ratios


def summary(found: Mapping[str, Mapping[str, float]]) -> None:
    """Print the means over problems."""
    mine = ("jlkern", "jlkern, muladd")
    best = {p: min(r[n] for n in mine if n in r) for p, r in found.items()}
    print(f"geometric mean of jlkern's best form over {HAND}: {statistics.geometric_mean(best.values()):.2f}")
    others = {n for r in found.values() for n in r if n != HAND and not n.startswith("jlkern")}
    for name in sorted(others | {n for r in found.values() for n in r if n.endswith("julia engine")}):
        times = [r[name] / best[p] for p, r in found.items() if name in r]
        print(f"{name} takes {statistics.geometric_mean(times):.1f} times as long as jlkern (of {len(times)} problems)")
    for problem, r in found.items():
        if "jlkern, C order" in r:
            print(f"{problem}: C order takes {r['jlkern, C order'] / r['jlkern']:.2f} times as long as Fortran order")


def work(modules: list[str]) -> None:
    """Answer for the contenders of some modules; libraries get streams of their own."""
    questions, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    from peers.problems import Contender, serve

    def make(problem: str) -> dict[str, Contender]:
        made: dict[str, Contender] = {}
        for name in modules:
            module, _, engine = name.partition(":")
            options = {"name": f"jlkern, {engine} engine", "engine": engine} if engine else {}
            made |= importlib.import_module(f"peers.{module}").contenders(problem, **options)
        return made

    serve(make, questions, answers)


def main() -> None:
    from peers.problems import PROBLEMS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default=",".join(PROBLEMS))
    parser.add_argument("--peers", default="numpy,taichi,warp,opencl,julia", help="beside jlkern and Numba")
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options.worker)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JLKERN_CACHE_DIR"] = folder
        asked = peers(options.peers.split(","))
        print(f"{len(os.sched_getaffinity(0))} cores; {options.rounds} rounds in turn")
        print(f"{'':12}{'contender':32}{'median ms':>10}{'x by hand':>12}{'of least':>12}  configuration")
        found = {}
        for problem in options.only.split(","):
            rows = rows_of(problem, asked)
            measure(problem, rows, options.rounds)
            found[problem] = report(problem, rows)
        for peer in asked:
            peer.close()
    summary(found)


if __name__ == "__main__":
    main()
