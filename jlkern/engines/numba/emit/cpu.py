"""Python source for Numba of a kernel's work-groups: the SIMT form as loops over groups and work-items."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jlkern.engines.numba import printing
from jlkern.engines.numba.emit.block import ArraySlots, layout
from jlkern.engines.numba.emit.hoist import hoisted
from jlkern.engines.numba.emit.regions import (
    GroupFor,
    GroupIf,
    GroupWhile,
    Leave,
    Node,
    Plan,
    Region,
    defined,
    expressions,
    has_barrier,
    in_step,
    plan,
    reads,
    walk,
)
from jlkern.engines.numba.emit.strides import steps
from jlkern.engines.numba.emit.text import literal, text
from jlkern.engines.numba.lower import simt
from jlkern.engines.numba.lower.fold import variables
from jlkern.engines.numba.lower.simt import Expr, Kernel, Memory, ParamArray, ParamScalar, Stmt, Var
from jlkern.errors import CompileError

STACK_LIMIT = 256 * 1024
"""Bytes of local memory and kept variables that one work-group may use: they live on a thread's stack."""

DIVERGED = "@synchronize is reached by some work-items of a group only: the condition around it differs between them"


@dataclass
class _Writer:
    """The text made so far, and what the statements in it mean here."""

    kernel: Kernel
    plan: Plan | None
    order: tuple[int, ...]
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


def emit(kernel: Kernel, schedule: Mapping[str, Any]) -> str:
    """Return the source of `chunk(_block, _errors, _first, _last)`, which runs work-groups `_first` to before `_last`.

    It returns 0, or the number (from 1) of the check that failed, after storing the check's details in `_errors`; one
    past the last check stands for a barrier that was not reached by all. `schedule` may hold "order", the dimensions
    from the outermost loop to the innermost. Raises `CompileError` when a group needs more memory than a thread's
    stack has.
    """
    dims = len(kernel.workgroup)
    order = tuple(schedule.get("order") or default_order(kernel))
    loops = schedule.get("loops") or default_loops(kernel, order)
    body = hoisted(kernel.body) if loops == "outside" else kernel.body
    made = plan(body, kernel.undefined) if any(map(in_step, body)) else None
    w = _Writer(kernel, made, order, diverged=len(kernel.sites) + 1)
    _check_memory(kernel, made)
    w.line("def chunk(_block, _errors, _first, _last):")
    with w.indent():
        _arguments(w)
        _memories(w)
        soft = sorted({s.site for s in walk(kernel.body) if isinstance(s, simt.Check) and s.soft})
        w.soft = soft
        for site in soft:
            w.line(f"_soft{site} = False")
        w.line("for _g in range(_first, _last):")
        with w.indent():
            _group_indices(w, dims)
            if made is None:
                with _items(w):
                    for var in kernel.undefined:
                        w.line(f"{var.name} = {literal(0, var.ty)}")
                    _statements(w, kernel.body)
            else:
                _kept_start(w, made)
                _nodes(w, made.nodes)
        for site in soft:
            w.line(f"if _soft{site}:")
            with w.indent():
                w.line(f"return {site}")
        w.line("return 0")
    notes = _notes(kernel)
    return "\n".join([*notes, *_used(w.lines)]) + "\n"


def default_order(kernel: Kernel) -> tuple[int, ...]:
    """Return the dimensions from the outermost loop over work-items to the innermost: the contiguous one is last."""
    dims = range(len(kernel.workgroup))
    votes = sum(1 if p.layout == "C" else -1 for p in kernel.params if isinstance(p, ParamArray) and p.ndim > 1)
    return tuple(dims) if votes > 0 else tuple(reversed(dims))


def default_loops(kernel: Kernel, order: tuple[int, ...]) -> str:
    """Return where uniform loops run: "outside" the loops over work-items where these then walk memory in order.

    With barriers the loops stay inside: the group's memory is small and near, and the compiler unrolls what it can.
    """
    if has_barrier(kernel.body):
        return "inside"
    found = list(steps(hoisted(kernel.body), order[-1]))
    return "outside" if found and all(step in (0, 1) for step in found) else "inside"


def _notes(kernel: Kernel) -> list[str]:
    head = [f"# {kernel.name}, work-group {kernel.workgroup}"]
    named = [f"{ours} is {theirs}" for ours, theirs in kernel.comments.items() if not theirs.isascii()]
    return head + ([f"# {', '.join(named)}"] if named else [])


def _check_memory(kernel: Kernel, made: Plan | None) -> None:
    items = math.prod(kernel.workgroup)
    size = {"bool": 1}
    total = 0
    for memory in kernel.memories:
        width = size.get(memory.ty) or int(memory.ty.lstrip("uintfloa")) // 8
        copies = items if made is not None and memory.name in made.shared_private else 1
        total += memory.size * width * copies
    if made is not None:
        total += 8 * items * len(made.kept)
    if total > STACK_LIMIT:
        raise CompileError(
            f"`{kernel.name}` needs {total} bytes of local memory for a work-group of {kernel.workgroup}, "
            f"and a thread has {STACK_LIMIT}; use a smaller work-group or smaller @localmem"
        )


# --- the start of a chunk ---


def _arguments(w: _Writer) -> None:
    kernel = w.kernel
    place = layout(kernel)
    w.line("_args = pointer_int64(_block)")
    for d in range(len(kernel.workgroup)):
        w.line(f"_n{d} = load(_args, {d})")
        w.line(f"_m{d} = udiv(_n{d} + {kernel.workgroup[d] - 1}, {kernel.workgroup[d]})")
    for param, entry in zip(kernel.params, place.entries, strict=True):
        if isinstance(param, ParamArray) and isinstance(entry, ArraySlots):
            name = param.memory.name
            w.line(f"{name} = pointer_{param.memory.ty}(load(_args, {entry.first}))")
            for d, at in enumerate(entry.sizes):
                w.line(f"_{name}_size{d} = load(_args, {at})")
            _strides(w, param, entry)
        elif isinstance(param, ParamScalar) and isinstance(entry, range):
            for n, (ty, at) in enumerate(zip(param.leaves, entry, strict=True)):
                w.line(f"_{param.name}_{n} = bits_{ty}(load(_args, {at}))")


def _strides(w: _Writer, param: ParamArray, entry: ArraySlots) -> None:
    """Strides of contiguous arrays follow from the sizes; so the compiler knows them too."""
    name = param.memory.name
    dims = range(param.ndim)
    if param.layout == "S":
        for d, at in enumerate(entry.strides):
            w.line(f"_{name}_stride{d} = load(_args, {at})")
        return
    walked = list(dims) if param.layout == "F" else list(reversed(dims))
    for before, d in itertools.pairwise(walked):
        scale = f"_{name}_stride{before} * " if before != walked[0] else ""
        w.line(f"_{name}_stride{d} = {scale}_{name}_size{before}")


def _memories(w: _Writer) -> None:
    items = math.prod(w.kernel.workgroup)
    for memory in w.kernel.memories:
        shared = w.plan is not None and memory.name in w.plan.shared_private
        count = max(1, memory.size * (items if shared else 1))
        w.line(f"{memory.name} = stack_{memory.ty}({count})")
    if w.plan is not None:
        for name, var in w.plan.kept.items():
            w.line(f"_kept_{name} = stack_{var.ty}({items})")


def _group_indices(w: _Writer, dims: int) -> None:
    rest = "_g"
    for d in range(dims):
        last = d == dims - 1
        w.line(f"_g{d} = {rest}" if last else f"_g{d} = urem({rest}, _m{d})")
        if not last:
            w.line(f"_q{d} = udiv({rest}, _m{d})")
            rest = f"_q{d}"
    for d, width in enumerate(w.kernel.workgroup):
        w.line(f"_b{d} = _g{d} * {width}")
        if w.kernel.masked:
            w.line(f"_h{d} = least({width}, _n{d} - _b{d})")


def _used(lines: list[str]) -> list[str]:
    """Drop set-up lines whose name is not read: they only name what a kernel may ask for."""
    import re

    kept = list(lines)
    changed = True
    while changed:
        changed = False
        words: dict[str, int] = {}
        for line in kept:
            for word in re.findall(r"\b[A-Za-z_]\w*", line):
                words[word] = words.get(word, 0) + 1
        for at in range(len(kept) - 1, -1, -1):
            found = re.match(r"\s*(_(?!soft|kept)\w+) = (?!.*atomic)", kept[at])
            if found and words[found[1]] == 1:
                del kept[at]
                changed = True
    return kept


# --- loops over work-items ---


@contextmanager
def _items(w: _Writer) -> Iterator[None]:
    """Open the loops over the work-items of a group, padded ones left out unless the kernel runs them too."""
    depth = w.depth
    for d in w.order:
        bound = f"_h{d}" if w.kernel.masked else str(w.kernel.workgroup[d])
        w.line(f"for _l{d} in range({bound}):")
        w.depth += 1
        w.line(f"_i{d} = _b{d} + _l{d}")
    yield
    w.depth = depth


def _lane(w: _Writer) -> str:
    result = ""
    for d in reversed(range(len(w.kernel.workgroup))):
        result = f"_l{d}" if not result else f"_l{d} + {w.kernel.workgroup[d]} * ({result})"
    return result


def _kept_start(w: _Writer, made: Plan) -> None:
    zeroed = [v for v in w.kernel.undefined if v.name in made.kept]
    if zeroed:
        with _items(w):
            w.line(f"_lane = {_lane(w)}")
            for var in zeroed:
                w.line(f"store(_kept_{var.name}, _lane, {literal(0, var.ty)})")


# --- the tree of regions ---


def _nodes(w: _Writer, nodes: list[Node]) -> None:
    if not nodes:
        w.line("pass")
    for node in nodes:
        if isinstance(node, Region):
            _region(w, node)
        elif isinstance(node, GroupFor):
            _agree(w, node.agreed)
            _for_header(w, node.loop)
            with w.indent():
                _for_start(w, node.loop)
                _nodes(w, node.body)
        elif isinstance(node, GroupWhile):
            w.line("while True:")
            with w.indent():
                _nodes(w, node.header) if node.header else None
                _agree(w, node.agreed)
                w.line(f"if not {text(node.cond)}:")
                with w.indent():
                    w.line("break")
                _nodes(w, node.body)
        elif isinstance(node, GroupIf):
            _agree(w, node.agreed)
            w.line(f"if {text(node.cond)}:")
            with w.indent():
                _nodes(w, node.then)
            if node.orelse:
                w.line("else:")
                with w.indent():
                    _nodes(w, node.orelse)
        elif isinstance(node, Leave):
            w.line("break" if isinstance(node.stmt, simt.Break) else "continue")


def _agree(w: _Writer, agreed: tuple[Var, ...]) -> None:
    """Read what the items computed to steer the group, and stop when they do not agree."""
    for var in agreed:
        w.line(f"{var.name} = load(_kept_{var.name}, 0)")
        with _items(w):
            w.line(f"if load(_kept_{var.name}, {_lane(w)}) != {var.name}:")
            with w.indent():
                w.line(f"return {w.diverged}")


def _region(w: _Writer, region: Region) -> None:
    made = w.plan
    assert made is not None
    for assign in region.uniform:
        w.line(f"{assign.var.name} = {text(assign.expr)}")
    stmts = _needed(region.stmts, made)
    if not stmts:
        return
    names = _mentioned(stmts)
    own = {v.name for s in walk(stmts) if (v := defined(s)) is not None}
    kept = [n for n in made.kept if n in names]
    with _items(w):
        private = any(m is not None and m in made.shared_private for m in _private(stmts))
        if kept or private:
            w.line(f"_lane = {_lane(w)}")
        for name in _needed_again(made, names - own):
            w.line(f"{name} = {text(made.again[name].expr)}")
        for name in kept:
            w.line(f"{name} = load(_kept_{name}, _lane)")
        _statements(w, tuple(stmts))
        for name in kept:
            if name in own:
                w.line(f"store(_kept_{name}, _lane, {name})")


def _needed(stmts: list[Stmt], made: Plan) -> list[Stmt]:
    """Leave out what is computed anew where it is read, and not read here."""
    kept = list(stmts)
    while True:
        used = reads(kept)
        idle = made.again.keys() - used
        shorter = [s for s in kept if not (isinstance(s, simt.Assign) and s.var.name in idle)]
        if len(shorter) == len(kept):
            return kept
        kept = shorter


def _mentioned(stmts: list[Stmt]) -> set[str]:
    found: set[str] = set()
    for stmt in walk(stmts):
        var = defined(stmt)
        if var is not None:
            found.add(var.name)
        for expr in expressions(stmt):
            found |= variables(expr)
    return found


def _private(stmts: list[Stmt]) -> set[str]:
    return {s.memory.name for s in walk(stmts) if isinstance(s, (simt.Load, simt.Store, simt.Atomic))}


def _needed_again(made: Plan, names: set[str]) -> list[str]:
    """Return the variables to compute anew, those that others need first."""
    ordered: list[str] = []

    def need(name: str) -> None:
        if name in made.again and name not in ordered:
            for part in sorted(variables(made.again[name].expr)):
                need(part)
            ordered.append(name)

    for name in sorted(names):
        need(name)
    return ordered


# --- statements ---


def _statements(w: _Writer, stmts: tuple[Stmt, ...]) -> None:
    if not stmts:
        w.line("pass")
    for stmt in stmts:
        _statement(w, stmt)


def _offset(w: _Writer, memory: Memory, offset: Expr) -> str:
    if w.plan is not None and memory.name in w.plan.shared_private:
        items = math.prod(w.kernel.workgroup)
        return f"{text(offset)} * {items} + _lane"
    return text(offset)


def _statement(w: _Writer, stmt: Stmt) -> None:
    if isinstance(stmt, simt.Assign):
        w.line(f"{stmt.var.name} = {text(stmt.expr)}")
    elif isinstance(stmt, simt.Load):
        w.line(f"{stmt.var.name} = load({stmt.memory.name}, {_offset(w, stmt.memory, stmt.offset)})")
    elif isinstance(stmt, simt.Store):
        w.line(f"store({stmt.memory.name}, {_offset(w, stmt.memory, stmt.offset)}, {text(stmt.value)})")
    elif isinstance(stmt, simt.Atomic):
        _atomic(w, stmt)
    elif isinstance(stmt, simt.If):
        _if(w, stmt)
    elif isinstance(stmt, simt.For):
        _for_header(w, stmt)
        with w.indent():
            _for_start(w, stmt)
            _statements(w, stmt.body)
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


def _print(w: _Writer, stmt: simt.Print) -> None:
    for part in stmt.parts:
        if isinstance(part, str):
            w.line(f"print_part({printing.kind('text')}, {printing.text_number(part)})")
            continue
        narrow = part.ty not in ("int64", "uint64", "float32", "float64", "bool")
        wide = f"{'int64' if part.ty[0] == 'i' else 'uint64'}({text(part)})" if narrow else text(part)
        w.line(f"print_part({printing.kind(part.ty)}, bits_of({wide}))")
    w.line(f"print_part({printing.END}, 0)".replace("-1", "(-1)"))


def _if(w: _Writer, stmt: simt.If) -> None:
    cond, then, orelse = text(stmt.cond), stmt.then, stmt.orelse
    if not then:
        cond, then, orelse = f"not {cond}", orelse, ()
    w.line(f"if {cond}:")
    with w.indent():
        _statements(w, then)
    while len(orelse) == 1 and isinstance(orelse[0], simt.If) and orelse[0].then:  # a chain stays flat
        w.line(f"elif {text(orelse[0].cond)}:")
        with w.indent():
            _statements(w, orelse[0].then)
        orelse = orelse[0].orelse
    if orelse:
        w.line("else:")
        with w.indent():
            _statements(w, orelse)


def _while(w: _Writer, stmt: simt.While) -> None:
    if not stmt.header:
        w.line(f"while {text(stmt.cond)}:")
        with w.indent():
            _statements(w, stmt.body)
        return
    w.line("while True:")
    with w.indent():
        _statements(w, stmt.header)
        w.line(f"if not {text(stmt.cond)}:")
        with w.indent():
            w.line("break")
        _statements(w, stmt.body)


def _for_header(w: _Writer, loop: simt.For) -> None:
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


def _for_start(w: _Writer, loop: simt.For) -> None:
    if not isinstance(loop.step, simt.Lit):
        c = w.lines[-1].strip().split()[1].removeprefix("_k")
        w.line(f"{loop.var.name} = _a{c} + _k{c} * _s{c}")


def _check(w: _Writer, stmt: simt.Check) -> None:
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


def _atomic(w: _Writer, stmt: simt.Atomic) -> None:
    name, offset, value = stmt.memory.name, _offset(w, stmt.memory, stmt.offset), text(stmt.value)
    if stmt.memory.kind != "param":  # one thread runs a work-group, so nothing can come between
        w.line(f"{stmt.old.name} = load({name}, {offset})")
        if stmt.op == "cas":
            _statements(w, stmt.body) if stmt.body else None
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
        _statements(w, stmt.body) if stmt.body else None
        w.line(f"if compare_exchange({name}, {offset}, {stmt.old.name}, {value}):")
        with w.indent():
            w.line("break")
