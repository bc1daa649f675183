"""Kernels with barriers, made at random: what the emitter makes of them against the SIMT form run item by item."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import simt

from jlkern.engines.base import CompileRequest
from jlkern.engines.numba import engine
from jlkern.engines.numba.lower.kernel import lower_kernel
from jlkern.errors import KernelError
from jlkern.signature import classify
from jlkern.source import Origin, load_source

GROUP, SIZE = 8, 21  # the last group is not full
NAMES = ("a", "b", "c")


class Writer:
    """Writes a kernel whose barriers all work-items reach and whose work-items never race."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def number(self, deep: int = 2) -> str:
        r = self.random
        if deep == 0 or r.random() < 0.35:
            return r.choice([*NAMES, "l", "i", "s", "n", str(r.randint(-3, 9)), "v[2]", "p[1]"])
        op = r.choice(["+", "-", "*", "max", "min", "?"])
        x, y = self.number(deep - 1), self.number(deep - 1)
        if op == "?":
            return f"({x} > {y} ? {self.number(deep - 1)} : {y})"
        return f"{op}({x}, {y})" if op in ("max", "min") else f"({x} {op} {y})"

    def uniform(self) -> str:
        return self.random.choice(["s", "n", "3", "s - 1", "g", "n ÷ 2"])

    def statement(self, depth: int) -> None:
        r = self.random
        kind = r.choice(["set", "set", "if", "for", "private", "mine"])
        if kind == "set":
            self.line(depth, f"{r.choice(NAMES)} {r.choice(['=', '+=', '-='])} {self.number()} % 1000")
        elif kind == "private":
            self.line(depth, f"p[{r.choice(['1', '2', 'mod1(l, 2)'])}] = {self.number()} % 1000")
        elif kind == "mine":
            self.line(depth, f"t[l] = {self.number()} % 1000")
        elif kind == "if":
            self.line(depth, f"if {self.number(1)} > {self.number(1)}")
            self.line(depth + 1, f"{r.choice(NAMES)} = {self.number()} % 1000")
            if r.random() < 0.5:
                self.line(depth, "else")
                self.line(depth + 1, f"{r.choice(NAMES)} -= {self.number()} % 1000")
            self.line(depth, "end")
        else:
            self.line(depth, f"for k in 1:{r.choice(['3', 'mod1(l, 3)', 'n % 4', 's % 3'])}")
            self.line(depth + 1, f"{r.choice(NAMES)} += k * {self.number(1)} % 100")
            if r.random() < 0.3:
                self.line(depth + 1, f"{self.number(1)} > 50 && {r.choice(['break', 'continue'])}")
                self.line(depth + 1, f"{r.choice(NAMES)} -= k")
            self.line(depth, "end")

    def exchange(self, depth: int) -> None:
        """Read a neighbour's element between two barriers."""
        self.line(depth, "@synchronize")
        self.line(depth, f"{self.random.choice(NAMES)} += t[mod1(l + {self.random.randint(1, 7)}, full)]")
        self.line(depth, "@synchronize")

    def block(self, depth: int, length: int) -> None:
        r = self.random
        for _ in range(length):
            kind = r.choice(["statement"] * 4 + ["exchange", "loop", "branch", "while", "uniform"])
            if kind == "statement":
                self.statement(depth)
            elif kind == "exchange":
                self.exchange(depth)
            elif kind == "uniform":
                self.line(depth, f"s = ({self.uniform()} + {r.randint(0, 3)}) % 7")
            elif depth >= 3:
                self.statement(depth)
            elif kind == "loop":
                self.line(depth, f"for q{depth} in 1:{r.choice(['2', '3', 's % 3', 'n % 4'])}")
                self.block(depth + 1, 2)
                self.exchange(depth + 1)
                if r.random() < 0.4:
                    self.line(depth + 1, f"{self.uniform()} > 4 && {r.choice(['break', 'continue'])}")
                    self.statement(depth + 1)
                self.line(depth, "end")
            elif kind == "while":
                self.line(depth, f"w{depth} = {r.randint(1, 3)}")
                self.line(depth, f"while w{depth} > 0")
                self.block(depth + 1, 1)
                self.exchange(depth + 1)
                self.line(depth + 1, f"w{depth} -= 1")
                self.line(depth, "end")
            else:
                self.line(depth, f"if {self.uniform()} > {self.uniform()}")
                self.block(depth + 1, 1)
                self.exchange(depth + 1)
                if r.random() < 0.5:
                    self.line(depth, "else")
                    self.block(depth + 1, 1)
                self.line(depth, "end")

    def kernel(self) -> str:
        for text in ("i = @index(Global, Linear)", "l = @index(Local, Linear)", "g = @index(Group, Linear)",
                     f"full = min({GROUP}, length(x) - (g - 1) * {GROUP})", f"t = @localmem Int64 ({GROUP},)",
                     "p = @private Int64 (2,)", "p[1] = l", "p[2] = 2l", "t[l] = x[i]",
                     "a, b, c = x[i], i, 0", "s = n % 5"):  # fmt: skip
            self.line(1, text)
        self.block(1, 6)
        self.line(1, "y[i] = a + 10b + 100c + p[1] + 3p[2] + 7t[l] + s")
        body = "\n".join(self.lines)
        return f"@kernel inbounds = true function k!(y, @Const(x), @Const(v), n)\n{body}\nend\n"


def both(text: str) -> None:
    """Run a kernel both ways in all schedules and compare."""
    source = load_source(text, Origin(None, 1, False), ())
    x, v, n = np.arange(SIZE) * 7 % 23, np.array([5, 9]), np.int64(11)
    args: list[Any] = [np.zeros(SIZE, np.int64), x, v, n]
    signature = tuple(classify(name, a) for name, a in zip(source.names, args, strict=True))
    kernel = lower_kernel(source, signature, {}, (GROUP,), source.effects.written, False)
    wanted = np.zeros(SIZE, np.int64)
    flat: dict[Any, Any] = {"y": wanted, "x": x, "v": v}
    for param, value in zip(kernel.params, args, strict=True):
        if hasattr(param, "memory"):
            flat[param.memory.name] = {"y": wanted, "x": x, "v": v}[param.memory.source]
            flat[param.memory.name, "size", 0] = value.size
        else:
            flat[param.name, "arg", 0] = value  # type: ignore[union-attr]
    simt.run(kernel, flat, (SIZE,))
    backwards = np.zeros(SIZE, np.int64)
    again = {key: backwards if value is wanted else value for key, value in flat.items()}
    simt.run(kernel, again, (SIZE,), order=-1)
    np.testing.assert_array_equal(wanted, backwards, err_msg=f"the kernel races, so it tests nothing:\n{text}")
    for loops in ("inside", "outside"):
        request = CompileRequest(source, signature, {}, (GROUP,), 1, source.effects.written, (("loops", loops),))
        launcher = engine().compile(request)
        args[0] = np.zeros(SIZE, np.int64)
        fire = launcher.fire((SIZE,))
        status = fire(*args)
        assert not status, f"status {status}\n{text}"
        np.testing.assert_array_equal(args[0], wanted, err_msg=f"loops {loops}:\n{text}\n{launcher.text}")


@pytest.mark.parametrize("seed", range(6))
def test_random_kernel(seed: int) -> None:
    both(Writer(seed).kernel())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_random_kernels(seed: int) -> None:
    both(Writer(seed).kernel())


def test_a_barrier_that_only_some_reach_is_an_error() -> None:
    text = """@kernel cpu = false function k!(y)
        i = @index(Global, Linear)
        if y[i] > 3
            @synchronize
        end
        y[i] = 1
    end"""
    source = load_source(text, Origin(None, 1, False), ())
    signature = (classify("y", np.zeros(8)),)
    launcher = engine().compile(CompileRequest(source, signature, {}, (8,), 1, source.effects.written))
    fire = launcher.fire((8,))
    assert fire(np.full(8, 5.0)) == 0
    assert fire(np.zeros(8)) == 0
    y = np.arange(8.0)
    with pytest.raises(KernelError, match="@synchronize is reached by some work-items"):
        launcher.fail(fire, fire(y))
