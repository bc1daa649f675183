"""Loops that each work-item leaves at a time of its own: run by many lanes in step, against one item after another."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pytest
import simt

from jlkern.engines.base import CompileRequest, Launcher
from jlkern.engines.numba import engine
from jlkern.engines.numba.emit import lanes
from jlkern.engines.numba.lower.kernel import lower_kernel
from jlkern.errors import DomainError
from jlkern.signature import classify
from jlkern.source import Origin, load_source

GROUP, SIZE = 24, 61  # neither fills its lanes
NAMES = ("a", "b", "c", "f")


class Writer:
    """Writes a kernel with loops that end early, in branches of their own, with branches inside."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def number(self, deep: int = 2) -> str:
        r = self.random
        if deep == 0 or r.random() < 0.3:
            return r.choice(["a", "b", "c", "i", "n", str(r.randint(-3, 9))])
        op = r.choice(["+", "-", "*", "max", "min", "?", "÷"])
        x, y = self.number(deep - 1), self.number(deep - 1)
        if op == "?":
            return f"ifelse({x} > {y}, {self.number(deep - 1)}, {y})"
        if op == "÷":
            return f"({x} ÷ {r.choice([2, 3, 8])})"
        return f"{op}({x}, {y})" if op in ("max", "min") else f"({x} {op} {y})"

    def condition(self) -> str:
        r = self.random
        simple = f"{self.number(1)} {r.choice(['>', '<', '==', '!=', '<='])} {self.number(1)}"
        return simple if r.random() < 0.7 else f"f {r.choice(['>', '<='])} {r.randint(0, 9)}.5"

    def set(self, depth: int) -> None:
        r = self.random
        name = r.choice(NAMES)
        if name == "f":
            self.line(depth, f"f = {r.choice(['0.5 * f + a', 'sqrt(abs(f)) + 1.5', 'f / 3 - b', 'min(f, c * 0.25)'])}")
        else:
            self.line(depth, f"{name} {r.choice(['=', '+=', '-='])} {self.number()} % 64")

    def inside(self, depth: int, length: int) -> None:
        """Write statements of a loop that lanes can run in step."""
        r = self.random
        for _ in range(length):
            kind = r.choice(["set", "set", "fresh", "if", "leave", "load"])
            if kind == "fresh":
                name = f"q{r.randint(1, 2)}"
                self.line(depth, f"{name} = {self.number()}")
                self.line(depth, f"{r.choice('abc')} = ({name} + {self.number(1)}) % 64")
            elif kind == "load":
                self.line(depth, f"{r.choice('abc')} += v[{r.choice(['mod1(b, 7)', '(i & 3) + 1', '2'])}]")
            elif kind == "leave":
                self.line(depth, f"{self.condition()} && {r.choice(['break', 'continue'])}")
            elif kind == "if" and depth < 4:
                self.line(depth, f"if {self.condition()}")
                self.inside(depth + 1, r.randint(1, 2))
                if r.random() < 0.5:
                    self.line(depth, "else")
                    self.inside(depth + 1, 1)
                self.line(depth, "end")
            else:
                self.set(depth)

    def loop(self, depth: int) -> None:
        r = self.random
        if r.random() < 0.5:
            limit = r.choice(["9", "n", "i % 11", "a % 5 + 3"])
            start = r.choice(["1", "1", "c % 3", "2:2"])
            self.line(depth, f"for k in {start}:{limit}")
            self.inside(depth + 1, r.randint(1, 3))
            self.line(depth + 1, f"({self.number(1)} + k) % {r.randint(2, 7)} == 0 && break")
        else:
            self.line(depth, f"w = {r.randint(1, 12)}")
            self.line(depth, f"while w > 0 && {self.condition()}")
            self.line(depth + 1, "w -= 1")
            self.inside(depth + 1, r.randint(1, 3))
        self.set(depth + 1)
        self.line(depth, "end")

    def block(self, depth: int, length: int) -> None:
        r = self.random
        for _ in range(length):
            kind = r.choice(["set", "loop", "if"])
            if kind == "if" and depth < 3:
                self.line(depth, f"if {self.condition()}")
                self.block(depth + 1, 2)
                if r.random() < 0.5:
                    self.line(depth, "else")
                    self.block(depth + 1, 1)
                self.line(depth, "end")
            elif kind == "loop":
                self.loop(depth)
            else:
                self.set(depth)

    def kernel(self) -> str:
        self.line(1, "i = @index(Global, Linear)")
        self.line(1, "a, b, c, f = x[i], i, 0, 0.5 * i")
        self.block(1, 3)
        self.loop(1)
        self.line(1, "y[i] = a + 100b + 10000c")
        self.line(1, "z[i] = f")
        body = "\n".join(self.lines)
        return f"@kernel inbounds = true function k!(y, z, @Const(x), @Const(v), n)\n{body}\nend\n"


def compiled(text: str, args: list[Any], lanes: int, group: int = GROUP) -> Launcher:
    source = load_source(text, Origin(None, 1, False), ())
    signature = tuple(classify(name, a) for name, a in zip(source.names, args, strict=True))
    schedule = (("lanes", lanes), ("threads", "one"))
    return engine().compile(CompileRequest(source, signature, {}, (group,), 1, source.effects.written, schedule))


def same(text: str) -> bool:
    """Compare lanes with the SIMT form run item by item; return whether the kernel suits lanes."""
    source = load_source(text, Origin(None, 1, False), ())
    x, v, n = np.arange(SIZE) * 7 % 23, np.array([5, 9, -2, 7, 0, 3, 11]), np.int64(11)
    args: list[Any] = [np.zeros(SIZE, np.int64), np.zeros(SIZE), x, v, n]
    signature = tuple(classify(name, a) for name, a in zip(source.names, args, strict=True))
    kernel = lower_kernel(source, signature, {}, (GROUP,), source.effects.written, False)
    wanted: dict[Any, Any] = {"y": np.zeros(SIZE, np.int64), "z": np.zeros(SIZE)}
    flat: dict[Any, Any] = {}
    for param, value in zip(kernel.params, args, strict=True):
        if hasattr(param, "memory"):
            flat[param.memory.name] = wanted.get(param.memory.source, value)
            flat[param.memory.name, "size", 0] = value.size
        else:
            flat[param.name, "arg", 0] = value  # type: ignore[union-attr]
    simt.run(kernel, flat, (SIZE,))
    for width in (1, 16, 64):
        launcher = compiled(text, args, width)
        args[0], args[1] = np.zeros(SIZE, np.int64), np.zeros(SIZE)
        assert launcher.fire((SIZE,))(*args) == 0
        for got, name in zip(args, wanted, strict=False):
            np.testing.assert_array_equal(
                got.view(np.int64),
                wanted[name].view(np.int64),
                err_msg=f"lanes {width}, {name}:\n{text}\n{launcher.text}",
            )
    return lanes.lanes(kernel) is not None


def test_random_kernels() -> None:
    suited = [same(Writer(seed).kernel()) for seed in range(8)]
    assert sum(suited) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_random_kernels(seed: int) -> None:
    same(Writer(seed).kernel())


ESCAPE = """@kernel function escape!(out, @Const(c), limit)
    i = @index(Global)
    if i <= length(out)
        @inbounds z = z0 = c[i]
        n = 0
        for k in 1:limit
            abs2(z) > 4 && break
            z = z * z + z0
            n += 1
        end
        @inbounds out[i] = n
    end
end"""


def offered(text: str, args: list[Any], group: int = 256) -> list[Any]:
    launcher = compiled(text, args, 1, group)
    return [dict(s).get("lanes") for s in engine().schedules(launcher.request)]  # type: ignore[attr-defined]


def test_lanes_are_the_default_where_a_loop_ends_early_without_reading_memory() -> None:
    args = [np.zeros(100, np.int64), np.zeros(100, np.complex64), 50]
    assert offered(ESCAPE, args) == [None, 1, 16, 64]
    assert offered(ESCAPE, args, 16) == [None, 1]  # 16 is the default: more have no work
    source = load_source(ESCAPE, Origin(None, 1, False), ())
    signature = tuple(classify(name, a) for name, a in zip(source.names, args, strict=True))
    request = CompileRequest(source, signature, {}, (256,), 1, source.effects.written)
    assert "stack_float32(32)" in engine().compile(request).text  # type: ignore[attr-defined]


SEARCH = """@kernel inbounds = true function search!(out, @Const(sorted), @Const(keys))
    i = @index(Global)
    low, high = 1, length(sorted) + 1
    key = keys[i]
    while low < high
        middle = (low + high) >> 1
        if sorted[middle] < key
            low = middle + 1
        else
            high = middle
        end
    end
    out[i] = low
end"""


@pytest.mark.parametrize("length", [0, 1, 1000])
def test_lanes_that_are_done_read_nothing(length: int) -> None:
    rng = np.random.default_rng(1)
    table, keys, out = np.sort(rng.random(length)), rng.random(333), np.zeros(333, np.int64)
    args = [out, table, keys]
    assert offered(SEARCH, args) == [None, 16, 32, 64]  # reading memory, lanes are tried and not the default
    assert compiled(SEARCH, args, 64, 256).fire((333,))(*args) == 0
    np.testing.assert_array_equal(out, np.searchsorted(table, keys) + 1)


@pytest.mark.parametrize("text", [
    "for k in 1:n\n s += k * x[i]\n end",  # nothing ends early
    "while s < n\n s += 1\n y[i] = s\n end",  # writes on the way
    "while s < n\n s += exp(x[i])\n end",  # a call for each lane
    "while s < n\n s += 10 / x[i + n]\n end",  # a bounds check
    "p = @private Float64 1\n p[1] = 1\n while s < n\n s += 1\n end\n s += p[1]",
    "@synchronize\n while s < n\n s += 1\n end",
])  # fmt: skip
def test_other_loops_are_not_offered_lanes(text: str) -> None:
    text = f"@kernel function k!(y, @Const(x), n)\n i = @index(Global)\n s = 0.0\n {text}\n @inbounds y[i] = s\n end"
    assert offered(text, [np.zeros(100), np.ones(100), 5])[1:] in ([], [None])


def test_domain_error_of_a_lane_that_still_runs_only() -> None:
    text = """@kernel inbounds = true function k!(y, @Const(x))
        i = @index(Global)
        s, n = x[i], 0
        while n < 9 && s >= 0
            t = sqrt(s)
            n += 1
            s -= 1
        end
        y[i] = n
    end"""
    x = np.arange(64.0) - 5
    y = np.zeros(64)
    launcher = compiled(text, [y, x], 16, 64)
    assert launcher.fire((64,))(y, x) == 0
    broken = text.replace("s >= 0", "s >= -1")
    launcher = compiled(broken, [y, x], 16, 64)
    fire = launcher.fire((64,))
    with pytest.raises(DomainError):
        launcher.fail(fire, fire(y, x))


def test_lanes_vectorise() -> None:
    n = 1 << 14
    rng = np.random.default_rng(1)
    c = (rng.random(n) * 3 - 2 + 1j * (rng.random(n) * 3 - 1.5)).astype(np.complex64)
    args = [np.zeros(n, np.int64), c, 200]
    best = {}
    for width in (1, 32):
        run = compiled(ESCAPE, args, width, 256).bind((n,), tuple(args))
        times = []
        for _ in range(15):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        best[width] = min(times)
    assert best[32] < best[1], best
