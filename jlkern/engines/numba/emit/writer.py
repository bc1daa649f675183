"""Statements of the SIMT form as the text of one work-item."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from jlkern.engines.numba import printing
from jlkern.engines.numba.emit.regions import Plan
from jlkern.engines.numba.emit.text import text
from jlkern.engines.numba.lower import simt
from jlkern.engines.numba.lower.simt import Expr, Kernel, Memory, Stmt
from jlkern.errors import CompileError


@dataclass
class Writer:
    """The text made so far, and what the statements in it mean here."""

    kernel: Kernel
    plan: Plan | None
    order: tuple[int, ...]
    orders: dict[int, tuple[int, ...]] = field(default_factory=dict)
    lane: int = 0
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    soft: list[int] = field(default_factory=list)
    diverged: int = 0
    counter: int = 0

    def line(self, code: str) -> None:
        self.lines.append("    " * self.depth + code)

    @contextmanager
    def indent(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1


def statements(w: Writer, stmts: tuple[Stmt, ...]) -> None:
    if not stmts:
        w.line("pass")
    for stmt in stmts:
        _statement(w, stmt)


def offset_text(w: Writer, memory: Memory, offset: Expr) -> str:
    if w.plan is not None and memory.name in w.plan.shared_private:
        items = math.prod(w.kernel.workgroup)
        return f"{text(offset)} * {items} + _lane"
    return text(offset)


def _statement(w: Writer, stmt: Stmt) -> None:
    if isinstance(stmt, simt.Assign):
        w.line(f"{stmt.var.name} = {text(stmt.expr)}")
    elif isinstance(stmt, simt.Load):
        w.line(f"{stmt.var.name} = load({stmt.memory.name}, {offset_text(w, stmt.memory, stmt.offset)})")
    elif isinstance(stmt, simt.Store):
        w.line(f"store({stmt.memory.name}, {offset_text(w, stmt.memory, stmt.offset)}, {text(stmt.value)})")
    elif isinstance(stmt, simt.Atomic):
        _atomic(w, stmt)
    elif isinstance(stmt, simt.If):
        _if(w, stmt)
    elif isinstance(stmt, simt.For):
        for_header(w, stmt)
        with w.indent():
            for_start(w, stmt)
            statements(w, stmt.body)
    elif isinstance(stmt, simt.While):
        _while(w, stmt)
    elif isinstance(stmt, (simt.Break, simt.Continue)):
        w.line("break" if isinstance(stmt, simt.Break) else "continue")
    elif isinstance(stmt, simt.Check):
        _check(w, stmt)
    elif isinstance(stmt, simt.Print):
        _print(w, stmt)
    else:
        raise CompileError(f"`{w.kernel.name}`: {type(stmt).__name__} cannot be run by the numba engine")


def _print(w: Writer, stmt: simt.Print) -> None:
    for part in stmt.parts:
        if isinstance(part, str):
            w.line(f"print_part({printing.kind('text')}, {printing.text_number(part)})")
            continue
        narrow = part.ty not in ("int64", "uint64", "float32", "float64", "bool")
        wide = f"{'int64' if part.ty[0] == 'i' else 'uint64'}({text(part)})" if narrow else text(part)
        w.line(f"print_part({printing.kind(part.ty)}, bits_of({wide}))")
    w.line(f"print_part({printing.END}, 0)".replace("-1", "(-1)"))


def _if(w: Writer, stmt: simt.If) -> None:
    cond, then, orelse = text(stmt.cond), stmt.then, stmt.orelse
    if not then:
        cond, then, orelse = f"not {cond}", orelse, ()
    w.line(f"if {cond}:")
    with w.indent():
        statements(w, then)
    while len(orelse) == 1 and isinstance(orelse[0], simt.If) and orelse[0].then:  # a chain stays flat
        w.line(f"elif {text(orelse[0].cond)}:")
        with w.indent():
            statements(w, orelse[0].then)
        orelse = orelse[0].orelse
    if orelse:
        w.line("else:")
        with w.indent():
            statements(w, orelse)


def _while(w: Writer, stmt: simt.While) -> None:
    if not stmt.header:
        w.line(f"while {text(stmt.cond)}:")
        with w.indent():
            statements(w, stmt.body)
        return
    w.line("while True:")
    with w.indent():
        statements(w, stmt.header)
        w.line(f"if not {text(stmt.cond)}:")
        with w.indent():
            w.line("break")
        statements(w, stmt.body)


def for_header(w: Writer, loop: simt.For) -> None:
    start, stop = text(loop.start), loop.stop
    if isinstance(loop.step, simt.Lit):
        step = int(loop.step.value)
        end = text(simt.Op("add", (stop, simt.Lit(1, "int64")), "int64")) if step > 0 else f"{text(stop)} - 1"
        w.line(f"for {loop.var.name} in range({start}, {end}{'' if step == 1 else f', {step}'}):")
        return
    w.counter += 1
    k = f"_k{w.counter}"
    w.line(f"_s{w.counter} = {text(loop.step)}")
    w.line(f"_a{w.counter} = {start}")
    w.line(f"for {k} in range(fld({text(stop)} - _a{w.counter}, _s{w.counter}) + 1):")


def for_start(w: Writer, loop: simt.For) -> None:
    if not isinstance(loop.step, simt.Lit):
        c = w.lines[-1].strip().split()[1].removeprefix("_k")
        w.line(f"{loop.var.name} = _a{c} + _k{c} * _s{c}")


def _check(w: Writer, stmt: simt.Check) -> None:
    bad = text(stmt.bad)
    if stmt.soft:
        w.line(f"_soft{stmt.site} = _soft{stmt.site} | {bad}")
        return
    w.line(f"if {bad}:")
    with w.indent():
        if stmt.details:
            w.line("_report = pointer_int64(_errors)")
        for n, detail in enumerate(stmt.details):
            value = f"bits_of({text(detail)})" if detail.ty.startswith("float") else f"int64({text(detail)})"
            w.line(f"store(_report, {n}, {value})")
        for site in w.soft:  # what was noted before this came first
            w.line(f"if _soft{site}:")
            with w.indent():
                w.line(f"return {site}")
        w.line(f"return {stmt.site}")


def _atomic(w: Writer, stmt: simt.Atomic) -> None:
    name, offset, value = stmt.memory.name, offset_text(w, stmt.memory, stmt.offset), text(stmt.value)
    if stmt.memory.kind != "param":  # one thread runs a work-group, so nothing can come between
        w.line(f"{stmt.old.name} = load({name}, {offset})")
        if stmt.op == "cas":
            statements(w, stmt.body) if stmt.body else None
        elif stmt.op != "xchg":
            value = text(simt.Op(stmt.op, (stmt.old, stmt.value), stmt.memory.ty))
        w.line(f"store({name}, {offset}, {value})")
        return
    if stmt.op != "cas":
        w.line(f"{stmt.old.name} = atomic_{stmt.op}({name}, {offset}, {value})")
        return
    w.line("while True:")
    with w.indent():
        w.line(f"{stmt.old.name} = load({name}, {offset})")
        statements(w, stmt.body) if stmt.body else None
        w.line(f"if compare_exchange({name}, {offset}, {stmt.old.name}, {value}):")
        with w.indent():
            w.line("break")
