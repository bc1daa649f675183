"""Running the SIMT form directly: each work-item is a generator that stops at barriers; independent of `emit`."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jlkern.engines.numba.lower import simt

_NUMBERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64"
KINDS: dict[str, Any] = {"bool": np.bool_, **{n: np.dtype(n).type for n in _NUMBERS.split()}}


def _divide(a: Any, b: Any) -> Any:
    q = abs(int(a)) // abs(int(b))
    return q if (int(a) < 0) == (int(b) < 0) else -q


OPS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "fdiv": lambda a, b: a / b, "neg": operator.neg,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "eq": operator.eq, "ne": operator.ne,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "min": min, "max": max, "abs": abs,
    "div": _divide, "rem": lambda a, b: int(a) - _divide(a, b) * int(b), "mod": lambda a, b: int(a) % int(b),
    "fld": lambda a, b: int(a) // int(b), "cld": lambda a, b: -(-int(a) // int(b)),
    "udiv": lambda a, b: int(a) // int(b),
    "urem": lambda a, b: int(a) % int(b), "shr": lambda a, n: int(a) >> int(n), "shl": lambda a, n: int(a) << int(n),
    "cast": lambda a: a, "fptoint": math.trunc, "sqrt": np.sqrt, "exp": np.exp, "trunc": np.trunc, "floor": np.floor,
    "outside": lambda i, n: not 1 <= i <= n,
}  # fmt: skip


class Group:
    """One work-group: its memory and place."""

    def __init__(
        self, kernel: simt.Kernel, args: dict[str, Any], ndrange: tuple[int, ...], at: tuple[int, ...]
    ) -> None:
        self.kernel, self.args, self.ndrange, self.at = kernel, args, ndrange, at
        self.local = {m.name: np.zeros(max(1, m.size), KINDS[m.ty]) for m in kernel.memories if m.kind == "local"}


class Item:
    """One work-item."""

    def __init__(self, group: Group, lane: tuple[int, ...]) -> None:
        self.group, self.lane = group, lane
        self.vars: dict[str, Any] = {v.name: KINDS[v.ty](0) for v in group.kernel.undefined}
        memories = group.kernel.memories
        self.private = {m.name: np.zeros(max(1, m.size), KINDS[m.ty]) for m in memories if m.kind == "private"}

    def special(self, s: simt.Special) -> Any:
        g, w = self.group, self.group.kernel.workgroup
        if s.kind in ("size", "stride", "arg"):
            return KINDS[s.ty](g.args[s.name, s.kind, s.dim])
        return np.int64({
            "local": lambda d: self.lane[d], "group": lambda d: g.at[d],
            "global": lambda d: g.at[d] * w[d] + self.lane[d],
            "ndrange": lambda d: g.ndrange[d], "groups": lambda d: -(-g.ndrange[d] // w[d]),
        }[s.kind](s.dim))  # fmt: skip

    def value(self, e: simt.Expr) -> Any:
        if isinstance(e, simt.Lit):
            return KINDS[e.ty](e.value)
        if isinstance(e, simt.Var):
            return self.vars[e.name]
        if isinstance(e, simt.Special):
            return self.special(e)
        args = [self.value(a) for a in e.args]
        with np.errstate(all="ignore"):
            if e.op == "select":
                return args[1] if args[0] else args[2]
            if e.op == "not":
                return np.bool_(not args[0]) if e.ty == "bool" else ~args[0]
            result = OPS[e.op](*args)
            if e.ty == "bool" or e.ty.startswith("float"):
                return KINDS[e.ty](result)
            bits = int(e.ty.lstrip("uint"))
            number = int(result) & ((1 << bits) - 1)
            return KINDS[e.ty](number - (1 << bits) if e.ty[0] == "i" and number >> (bits - 1) else number)

    def memory(self, m: simt.Memory) -> np.ndarray:
        return {"param": self.group.args, "local": self.group.local, "private": self.private}[m.kind][m.name]

    def run(self, body: tuple[simt.Stmt, ...]) -> Iterator[int]:
        """Run statements; yield at each barrier; return "break" or "continue" where control leaves a loop."""
        for s in body:
            if isinstance(s, simt.Assign):
                self.vars[s.var.name] = self.value(s.expr)
            elif isinstance(s, simt.Load):
                self.vars[s.var.name] = KINDS[s.var.ty](self.memory(s.memory)[int(self.value(s.offset))])
            elif isinstance(s, simt.Store):
                self.memory(s.memory)[int(self.value(s.offset))] = self.value(s.value)
            elif isinstance(s, simt.Atomic):
                memory, at = self.memory(s.memory), int(self.value(s.offset))
                self.vars[s.old.name] = KINDS[s.old.ty](memory[at])
                yield from self.run(s.body)
                new = s.value if s.op in ("cas", "xchg") else simt.Op(s.op, (s.old, s.value), s.old.ty)
                memory[at] = self.value(new)
            elif isinstance(s, simt.If):
                left = yield from self.run(s.then if self.value(s.cond) else s.orelse)
                if left:
                    return left
            elif isinstance(s, simt.For):
                start, stop, step = (int(self.value(e)) for e in (s.start, s.stop, s.step))
                for k in range(start, stop + (1 if step > 0 else -1), step):
                    self.vars[s.var.name] = np.int64(k)
                    left = yield from self.run(s.body)
                    if left == "break":
                        break
            elif isinstance(s, simt.While):
                while True:
                    yield from self.run(s.header)
                    if not self.value(s.cond):
                        break
                    left = yield from self.run(s.body)
                    if left == "break":
                        break
            elif isinstance(s, simt.Barrier):
                yield s.line
            elif isinstance(s, (simt.Break, simt.Continue)):
                return "break" if isinstance(s, simt.Break) else "continue"
            elif isinstance(s, simt.Check) and not s.soft and self.value(s.bad):
                raise AssertionError(self.group.kernel.sites[s.site - 1])
        return None


def run(kernel: simt.Kernel, args: dict[Any, Any], ndrange: tuple[int, ...], order: int = 1) -> None:
    """Run a kernel.

    `args` has arrays (flat, by memory name) and numbers by (name, kind, dim); with `order` -1 items go backwards.
    """
    groups = itertools.product(*(range(-(-n // w)) for n, w in zip(ndrange, kernel.workgroup, strict=True)))
    for at in list(groups)[::order]:
        group = Group(kernel, args, ndrange, at)
        lanes = list(itertools.product(*map(range, kernel.workgroup)))[::order]
        inside = [
            lane for lane in lanes
            if not kernel.masked
            or all(g * w + i < n for g, w, i, n in zip(at, kernel.workgroup, lane, ndrange, strict=True))
        ]  # fmt: skip
        running = [Item(group, lane).run(kernel.body) for lane in inside]
        while running:
            stops = [next(item, None) for item in running]
            assert len({stop is None for stop in stops}) == 1, (
                "some work-items wait at a barrier that others never reach"
            )
            if stops[0] is None:
                break
