"""Python source for Numba of a kernel's work-groups: the SIMT form as loops over groups and work-items."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jlkern.engines.numba.emit import lanes
from jlkern.engines.numba.emit.block import ArraySlots, layout
from jlkern.engines.numba.emit.clip import Clip, clip
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
from jlkern.engines.numba.emit.strides import far_accesses, single_values, steps
from jlkern.engines.numba.emit.text import literal, text
from jlkern.engines.numba.emit.writer import Writer, for_header, for_start, offset_text, statements
from jlkern.engines.numba.lower import simt
from jlkern.engines.numba.lower.fold import variables
from jlkern.engines.numba.lower.simt import For, Kernel, ParamArray, ParamScalar, Stmt, Var
from jlkern.errors import CompileError

STACK_LIMIT = 256 * 1024
"""Bytes of local memory and kept variables that one work-group may use: they live on a thread's stack."""

DIVERGED = "@synchronize is reached by some work-items of a group only: the condition around it differs between them"


def emit(kernel: Kernel, schedule: Mapping[str, Any]) -> str:
    """Return the source of `chunk(_block, _errors, _first, _last)`, which runs work-groups `_first` to before `_last`.

    It returns 0, or the number (from 1) of the check that failed, after storing the check's details in `_errors`; one
    past the last check stands for a barrier that was not reached by all. `schedule` may hold "order" (the dimensions
    from the outermost loop to the innermost), "loops" and "lanes"; see `embedded`. Raises `CompileError` when a group
    needs more memory than a thread's stack has.
    """
    order = tuple(schedule.get("order") or default_order(kernel))
    cut = lanes.lanes(kernel)
    width = schedule.get("lanes") or (1 if "loops" in schedule else default_lanes(kernel, cut, order))
    if cut is not None and width > 1:
        return _in_lanes(kernel, cut, width, order)
    loops = schedule.get("loops") or default_loops(kernel, order)
    body = hoisted(kernel.body) if loops == "outside" else kernel.body
    made = plan(body, kernel.undefined) if any(map(in_step, body)) else None
    w = Writer(kernel, made, order, diverged=len(kernel.sites) + 1)
    if made is not None and "order" not in schedule:
        w.orders, w.lane = _region_orders(kernel, made, order)
    _check_memory(kernel, made)
    with _chunk(w):
        _memories(w)
        with _groups(w):
            if made is None:
                clipped = clip(kernel.body, (), {})
                with _items(w, clipped=clipped):
                    for var in kernel.undefined:
                        w.line(f"{var.name} = {literal(0, var.ty)}")
                    statements(w, tuple(clipped.stmts))
            else:
                _kept_start(w, made)
                _nodes(w, made.nodes)
    return _finished(w)


def default_order(kernel: Kernel) -> tuple[int, ...]:
    """Return the dimensions from the outermost loop over work-items to the innermost: the contiguous one is last."""
    dims = range(len(kernel.workgroup))
    votes = sum(1 if p.layout == "C" else -1 for p in kernel.params if isinstance(p, ParamArray) and p.ndim > 1)
    return tuple(dims) if votes > 0 else tuple(reversed(dims))


def _region_orders(kernel: Kernel, made: Plan, order: tuple[int, ...]) -> tuple[dict[int, tuple[int, ...]], int]:
    """Return each region's order, so that its innermost loop walks memory in order, and the dimension along which what
    is kept for each work-item lies: that of the region that does most.
    """
    dims = [d for d in reversed(order) if kernel.workgroup[d] > 1] or [order[-1]]
    values = single_values(kernel.body)

    def far(stmts: Sequence[Stmt], lane: int | None) -> dict[int, float]:
        return {d: far_accesses(stmts, d, values, lane, made.shared_private) for d in dims}

    gains = [(max(found.values()) - min(found.values()), found) for r in made.regions for found in [far(r.stmts, None)]]
    most, found = max(gains, key=lambda g: g[0], default=(0.0, {}))
    lane = min(dims, key=lambda d: found[d]) if most else order[-1]
    orders = {}
    for region in made.regions:
        found = far(region.stmts, lane)
        inner = min(dims, key=lambda d: found[d])
        orders[region.number] = (*(d for d in order if d != inner), inner)
    return orders, lane


def default_loops(kernel: Kernel, order: tuple[int, ...]) -> str:
    """Return where uniform loops run: "outside" the loops over work-items where these then walk memory in order.

    With barriers the loops stay inside: the group's memory is small and near, and the compiler unrolls what it can.
    """
    if has_barrier(kernel.body):
        return "inside"
    found = list(steps(hoisted(kernel.body), order[-1]))
    return "outside" if found and all(step in (0, 1) for step in found) else "inside"


def default_lanes(kernel: Kernel, cut: lanes.Lanes | None, order: tuple[int, ...]) -> int:
    """Return how many lanes run loops of unequal length in step; 1 is none."""
    offered = lanes.widths(kernel.workgroup[order[-1]])
    if cut is None or lanes.reads_memory(cut) or not offered:
        return 1
    return lanes.DEFAULT_WIDTH if lanes.DEFAULT_WIDTH in offered else offered[-1]


def _finished(w: Writer) -> str:
    return "\n".join([*_notes(w.kernel), *_used(w.lines)]) + "\n"


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


@contextmanager
def _chunk(w: Writer) -> Iterator[None]:
    """Open the function; at its end, what soft checks noted is reported."""
    w.line("def chunk(_block, _errors, _first, _last):")
    with w.indent():
        _arguments(w)
        w.soft = sorted({s.site for s in walk(w.kernel.body) if isinstance(s, simt.Check) and s.soft})
        for site in w.soft:
            w.line(f"_soft{site} = False")
        yield
        for site in w.soft:
            w.line(f"if _soft{site}:")
            with w.indent():
                w.line(f"return {site}")
        w.line("return 0")


@contextmanager
def _groups(w: Writer) -> Iterator[None]:
    w.line("for _g in range(_first, _last):")
    with w.indent():
        _group_indices(w, len(w.kernel.workgroup))
        yield


def _arguments(w: Writer) -> None:
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


def _strides(w: Writer, param: ParamArray, entry: ArraySlots) -> None:
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


def _memories(w: Writer) -> None:
    items = math.prod(w.kernel.workgroup)
    for memory in w.kernel.memories:
        shared = w.plan is not None and memory.name in w.plan.shared_private
        count = max(1, memory.size * (items if shared else 1))
        w.line(f"{memory.name} = stack_{memory.ty}({count})")
    if w.plan is not None:
        for name, var in w.plan.kept.items():
            w.line(f"_kept_{name} = stack_{var.ty}({items})")


def _group_indices(w: Writer, dims: int) -> None:
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
def _items(w: Writer, order: tuple[int, ...] | None = None, clipped: Clip | None = None) -> Iterator[None]:
    """Open the loops over the work-items of a group, padded ones left out unless the kernel runs them too."""
    depth = w.depth
    bounds = {}
    for d in w.order if order is None else order:
        bound = f"_h{d}" if w.kernel.masked else str(w.kernel.workgroup[d])
        first = ""
        for limit in clipped.lower.get(d, ()) if clipped else ():
            w.line(f"_low{d} = greatest({first or 0}, {limit})")
            first = f"_low{d}"
        for limit in clipped.upper.get(d, ()) if clipped else ():
            w.line(f"_high{d} = least({bound}, {limit})")
            bound = f"_high{d}"
        bounds[d] = f"{first}, {bound}" if first else bound
    for d, span in bounds.items():
        w.line(f"for _l{d} in range({span}):")
        w.depth += 1
        w.line(f"_i{d} = _b{d} + _l{d}")
    yield
    w.depth = depth


def _lane(w: Writer) -> str:
    dims = range(len(w.kernel.workgroup))
    result = ""
    for d in (*(d for d in reversed(dims) if d != w.lane), w.lane):
        result = f"_l{d}" if not result else f"_l{d} + {w.kernel.workgroup[d]} * ({result})"
    return result


def _kept_start(w: Writer, made: Plan) -> None:
    zeroed = [v for v in w.kernel.undefined if v.name in made.kept]
    if zeroed:
        with _items(w):
            w.line(f"_lane = {_lane(w)}")
            for var in zeroed:
                w.line(f"store(_kept_{var.name}, _lane, {literal(0, var.ty)})")


# --- lanes ---


def _in_lanes(kernel: Kernel, cut: lanes.Lanes, width: int, order: tuple[int, ...]) -> str:
    w = Writer(kernel, None, order)
    _check_memory(kernel, None)
    inner = order[-1]
    with _chunk(w):
        _memories(w)
        for name, var in (*cut.kept.items(), ("_alive", Var("_alive", "bool"))):
            w.line(f"_kept_{name} = stack_{var.ty}({width})")
        with _groups(w), _items(w, order[:-1]):
            bound = f"_h{inner}" if kernel.masked else str(kernel.workgroup[inner])
            w.line(f"for _v in range(0, {bound}, {width}):")
            with w.indent():
                w.line(f"_w = least({width}, {bound} - _v)")
                with _each_lane(w, str(width)):
                    for name, var in cut.kept.items():
                        w.line(f"store(_kept_{name}, _k, {literal(0, var.ty)})")
                for piece in cut.pieces:
                    if isinstance(piece, lanes.Straight):
                        _straight(w, cut, piece)
                    else:
                        _together(w, cut, piece, width)
    return _finished(w)


@contextmanager
def _each_lane(w: Writer, bound: str) -> Iterator[None]:
    inner = w.order[-1]
    w.line(f"for _k in range({bound}):")
    with w.indent():
        w.line(f"_l{inner} = _v + _k")
        w.line(f"_i{inner} = _b{inner} + _l{inner}")
        yield


def _straight(w: Writer, cut: lanes.Lanes, piece: lanes.Straight) -> None:
    if not piece.stmts:
        return
    names, own = _mentioned(piece.stmts), _defined(piece.stmts)
    with _each_lane(w, "_w"):
        depth = w.depth
        if piece.flag is not None:
            w.line(f"if load(_kept_{piece.flag.name}, _k):")
            w.depth += 1
        for var in w.kernel.undefined:
            if var.name in names and var.name not in cut.kept:
                w.line(f"{var.name} = {literal(0, var.ty)}")
        for name in cut.kept:
            if name in names:
                w.line(f"{name} = load(_kept_{name}, _k)")
        statements(w, tuple(piece.stmts))
        for name in cut.kept:
            if name in own:
                w.line(f"store(_kept_{name}, _k, {name})")
        w.depth = depth


def _together(w: Writer, cut: lanes.Lanes, piece: lanes.Together, width: int) -> None:
    loop = piece.loop
    names, own = _mentioned([loop]), _defined([loop])
    with _each_lane(w, str(width)):
        running = "(_k < _w)" if piece.flag is None else f"load(_kept_{piece.flag.name}, _k)"
        w.line(f"store(_kept__alive, _k, {running})")
    equal = isinstance(loop, For) and not _mentioned_in(loop.start, loop.stop) & cut.kept.keys()
    if equal:
        assert isinstance(loop, For)
        for_header(w, loop)
    else:
        if isinstance(loop, For):
            w.line("_round = 0")
        w.line("while True:")
    with w.indent():
        w.line("_any = False")
        with _each_lane(w, str(width)):
            for name in cut.kept:
                if name in names:
                    w.line(f"{name} = load(_kept_{name}, _k)")
            w.line("_alive = load(_kept__alive, _k)")
            w.line("_now = _alive")
            if isinstance(loop, For) and not equal:
                w.line(f"{loop.var.name} = {text(loop.start)} + _round * {text(loop.step)}")
                w.line(f"_now = _now & ({loop.var.name} {_bound(loop)})")
                w.line("_alive = _now")
            lanes.LaneBody(w.line, cut.kept, lambda load: offset_text(w, load.memory, load.offset)).write(loop)
            for name in cut.kept:
                if name in own:
                    w.line(f"store(_kept_{name}, _k, {name})")
            w.line("store(_kept__alive, _k, _alive)")
            w.line("_any = _any | _alive")
        w.line("if not _any:")
        with w.indent():
            w.line("break")
        if isinstance(loop, For) and not equal:
            w.line("_round = _round + 1")


def _bound(loop: For) -> str:
    assert isinstance(loop.step, simt.Lit)
    return f"< {text(loop.stop)} + 1" if loop.step.value > 0 else f"> {text(loop.stop)} - 1"


# --- the tree of regions ---


def _nodes(w: Writer, nodes: list[Node]) -> None:
    if not nodes:
        w.line("pass")
    for node in nodes:
        if isinstance(node, Region):
            _region(w, node)
        elif isinstance(node, GroupFor):
            _agree(w, node.agreed)
            for_header(w, node.loop)
            with w.indent():
                for_start(w, node.loop)
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


def _agree(w: Writer, agreed: tuple[Var, ...]) -> None:
    """Read what the items computed to steer the group, and stop when they do not agree."""
    for var in agreed:
        w.line(f"{var.name} = load(_kept_{var.name}, 0)")
        with _items(w):
            w.line(f"if load(_kept_{var.name}, {_lane(w)}) != {var.name}:")
            with w.indent():
                w.line(f"return {w.diverged}")


def _region(w: Writer, region: Region) -> None:
    made = w.plan
    assert made is not None
    for assign in region.uniform:
        w.line(f"{assign.var.name} = {text(assign.expr)}")
    stmts = _needed(region.stmts, made)
    if not stmts:
        return
    names = _mentioned(stmts)
    own = _defined(stmts)
    kept = [n for n in made.kept if n in names]
    clipped = clip(stmts, made.kept, made.again)
    with _items(w, w.orders.get(region.number), clipped):
        private = any(m is not None and m in made.shared_private for m in _private(stmts))
        if kept or private:
            w.line(f"_lane = {_lane(w)}")
        for name in _needed_again(made, names - own):
            w.line(f"{name} = {text(made.again[name].expr)}")
        for name in kept:
            w.line(f"{name} = load(_kept_{name}, _lane)")
        statements(w, tuple(clipped.stmts))
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


def _mentioned_in(*exprs: simt.Expr) -> set[str]:
    return set().union(*map(variables, exprs))


def _defined(stmts: list[Stmt]) -> set[str]:
    return {v.name for s in walk(stmts) if (v := defined(s)) is not None}


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
