"""The schedule "lanes": loops that each work-item leaves at a time of its own, run by many work-items in step.

A compiler does not vectorise a loop whose length depends on what it computes. Here neighbouring work-items, the lanes,
go through such a loop together: each round does the body for all of them, with branches turned into selections, and a
lane whose work-item has left keeps its values until all have. That innermost loop is over lanes and vectorises. What a
work-item computes, and in which order, stays the same.

`lanes` cuts a kernel into statements that each lane runs by itself and such loops; `LaneBody` writes a loop's text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from jlkern.engines.numba.emit.regions import (
    blocks,
    defined,
    expressions,
    has_barrier,
    per_item,
    uniform_variables,
    walk,
)
from jlkern.engines.numba.emit.text import literal, text
from jlkern.engines.numba.lower.fold import variables
from jlkern.engines.numba.lower.simt import (
    Assign,
    Atomic,
    Break,
    Check,
    Continue,
    Expr,
    For,
    If,
    Kernel,
    Lit,
    Load,
    Op,
    Print,
    Stmt,
    Store,
    Var,
    While,
)

WIDTHS = (16, 32, 64)
"""Numbers of lanes worth trying: two vectors and more, since one waits for its own results most of the time."""

DEFAULT_WIDTH = 32

_VECTORISED = frozenset(
    "add sub mul neg and or xor not eq ne lt le gt ge egal min max abs fma muladd select cast fptoint bitcast shl shr "
    "ushr fdiv sqrt floor ceil trunc rint copysign signbit outside".split()
)
_DIVISIONS = frozenset(("div", "rem", "mod", "fld", "cld", "udiv", "urem"))


@dataclass
class Straight:
    """Statements that lanes run one after another, those in which `flag` holds."""

    flag: Var | None
    stmts: list[Stmt] = field(default_factory=list)


@dataclass
class Together:
    """A loop that lanes run in step, those in which `flag` holds; `start` and `stop` as it finds them."""

    flag: Var | None
    loop: For | While


Piece = Straight | Together


@dataclass
class Lanes:
    """A kernel cut for lanes: its pieces, and the variables that have a place for each lane."""

    pieces: list[Piece]
    kept: dict[str, Var]
    uniform: frozenset[str]


def lanes(kernel: Kernel) -> Lanes | None:
    """Return a kernel cut for lanes, or None where the schedule has nothing to gain or cannot be."""
    body = kernel.body
    stmts = list(walk(body))
    if has_barrier(body) or any(isinstance(s, Print) for s in stmts):
        return None
    if any(isinstance(s, (Load, Store, Atomic)) and s.memory.kind == "private" for s in stmts):
        return None  # one work-item after another uses it
    counts: dict[str, int] = {}
    for stmt in stmts:
        var = defined(stmt)
        if var is not None:
            counts[var.name] = counts.get(var.name, 0) + 1
    never = frozenset(v.name for v in kernel.undefined)
    uniform = frozenset(n for n in uniform_variables(body, never) if counts.get(n) == 1)
    made = list(_pieces(body, None, uniform, [0]))
    if not any(isinstance(p, Together) for p in made):
        return None
    return Lanes(made, _kept(made, uniform), uniform)


def reads_memory(cut: Lanes) -> bool:
    """Tell whether a loop that lanes run in step reads memory: from scattered places, which can be slow."""
    return any(isinstance(s, Load) for p in cut.pieces if isinstance(p, Together) for s in walk([p.loop]))


def widths(inner: int) -> tuple[int, ...]:
    """Return the numbers of lanes worth trying for a work-group of `inner` items along the innermost dimension."""
    return tuple(w for w in WIDTHS if w < 2 * inner)


# --- what can run in step ---


def _suits(stmt: Stmt) -> bool:
    """Tell whether lanes can run a loop in step, and gain by it."""
    if isinstance(stmt, While):
        left = any(isinstance(s, (Break, Continue)) for s in walk(stmt.header))
        return not left and _simple(stmt.header) and _vectorises(stmt.cond) and _simple(stmt.body)
    if not isinstance(stmt, For) or not isinstance(stmt.step, Lit) or not _simple(stmt.body):
        return False
    if any((v := defined(s)) is not None and v.name == stmt.var.name for s in walk(stmt.body)):
        return False
    return any(isinstance(s, Break) for s in walk(stmt.body))  # without one there was no gain to be measured


def _simple(body: tuple[Stmt, ...]) -> bool:
    for stmt in walk(body):
        known = isinstance(stmt, (Assign, Load, If, Break, Continue)) or (isinstance(stmt, Check) and stmt.soft)
        if not known or not all(_vectorises(e) for e in expressions(stmt)):
            return False
    return True


def _vectorises(expr: Expr) -> bool:
    if not isinstance(expr, Op):
        return True
    if expr.op in _DIVISIONS:
        divisor = expr.args[1]
        return isinstance(divisor, Lit) and divisor.value > 0 and all(map(_vectorises, expr.args))
    return expr.op in _VECTORISED and all(map(_vectorises, expr.args))


def _pieces(body: tuple[Stmt, ...], flag: Var | None, uniform: frozenset[str], count: list[int]) -> Iterator[Piece]:
    current = Straight(flag)

    def name(kind: str, ty: str) -> Var:
        count[0] += 1
        return Var(f"_{kind}{count[0]}", ty)

    for stmt in body:
        if _suits(stmt):
            loop = stmt
            if isinstance(stmt, For):
                bounds = []
                for kind, bound in (("start", stmt.start), ("stop", stmt.stop)):
                    if per_item(bound, set(uniform)):
                        var = name(kind, "int64")
                        current.stmts.append(Assign(var, bound))
                        bound = var
                    bounds.append(bound)
                loop = For(stmt.var, bounds[0], bounds[1], stmt.step, stmt.body)
            assert isinstance(loop, (For, While))
            yield from (current, Together(flag, loop))
            current = Straight(flag)
        elif isinstance(stmt, If) and any(_suits(s) for s in _under_branches(stmt)):
            sides = [(stmt.cond, stmt.then), (Op("not", (stmt.cond,), "bool"), stmt.orelse)]
            inside = [(name("in", "bool"), cond, block) for cond, block in sides if block]
            current.stmts.extend(Assign(var, cond) for var, cond, _ in inside)
            yield current
            for var, _, block in inside:
                yield from _pieces(block, var, uniform, count)
            current = Straight(flag)
        else:
            current.stmts.append(stmt)
    yield current


def _under_branches(stmt: If) -> Iterator[Stmt]:
    for inner in (*stmt.then, *stmt.orelse):
        yield inner
        if isinstance(inner, If):
            yield from _under_branches(inner)


# --- how variables live ---


def _kept(made: list[Piece], uniform: frozenset[str]) -> dict[str, Var]:
    """Return the variables that several pieces share, or that a loop carries from one round to the next."""
    seen: dict[str, set[int]] = {}
    types: dict[str, Var] = {}
    carried: set[str] = set()
    for number, piece in enumerate(made):
        stmts: list[Stmt] = piece.stmts if isinstance(piece, Straight) else [piece.loop]
        names = {piece.flag.name} if piece.flag is not None else set()
        for stmt in walk(stmts):
            var = defined(stmt)
            if var is not None:
                types[var.name] = var
                names.add(var.name)
            names.update(n for e in expressions(stmt) for n in variables(e))
        for name in sorted(names):
            seen.setdefault(name, set()).add(number)
        if isinstance(piece, Together):
            carried |= _carried(piece.loop)
    return {
        name: types[name]
        for name, where in seen.items()
        if (len(where) > 1 or name in carried) and name not in uniform and name in types
    }


def _carried(loop: For | While) -> set[str]:
    """Return the variables that a round of the loop may read before it has set them."""
    found: set[str] = set()

    def read(expr: Expr, known: set[str]) -> None:
        found.update(variables(expr) - known)

    def run(block: tuple[Stmt, ...], known: set[str]) -> set[str] | None:
        """Return what is set after a block; None where it does not get to its end."""
        for stmt in block:
            for expr in expressions(stmt):
                read(expr, known)
            if isinstance(stmt, (Break, Continue)):
                return None
            if isinstance(stmt, If):
                ends = [run(stmt.then, set(known)), run(stmt.orelse, set(known))]
                reached = [e for e in ends if e is not None]
                if not reached:
                    return None
                known = set.intersection(*reached)
            var = defined(stmt)
            if var is not None:
                known = known | {var.name}
        return known

    if isinstance(loop, While):
        before = run(loop.header, set())
        assert before is not None
        read(loop.cond, before)
        run(loop.body, before)
    else:
        run(loop.body, {loop.var.name})
    return found


# --- the text of a loop ---

Line = Callable[[str], None]


@dataclass
class LaneBody:
    """Writes the body of a loop for one lane, masked; `indented` opens a block of one more indentation."""

    line: Line
    kept: dict[str, Var]
    offset: Callable[[Load], str]
    counter: int = 0
    masks: list[str] = field(default_factory=list)
    chosen: set[str] = field(default_factory=set)

    def write(self, loop: For | While) -> None:
        """Write the statements; `_now` tells where this round still runs, `_alive` where there will be another."""
        inner = (*loop.header, *loop.body) if isinstance(loop, While) else loop.body
        self._choose(inner)
        self.masks = ["_now"]
        if isinstance(loop, While):
            self.block(loop.header)
            self.line(f"_now = _now & {text(loop.cond)}")
            self.line("_alive = _now")
        self.block(loop.body)

    def _choose(self, body: tuple[Stmt, ...]) -> None:
        """Find the variables that keep their value in lanes that do not run a statement."""
        definitions: dict[str, list[int]] = {}
        types: dict[str, Var] = {}

        def look(block: tuple[Stmt, ...], depth: int) -> None:
            for stmt in block:
                var = defined(stmt)
                if var is not None:
                    definitions.setdefault(var.name, []).append(depth)
                    types[var.name] = var
                for inner in blocks(stmt):
                    look(inner, depth + 1)

        look(body, 0)
        self.chosen = set(self.kept)
        for name, depths in definitions.items():
            if name not in self.kept and len(depths) > 1 and any(depths):
                self.chosen.add(name)
                self.line(f"{name} = {literal(0, types[name].ty)}")

    def block(self, stmts: tuple[Stmt, ...]) -> None:
        for stmt in stmts:
            mask = self.masks[-1]
            if isinstance(stmt, Assign):
                value = text(stmt.expr)
                name = stmt.var.name
                self.line(f"{name} = select({mask}, {value}, {name})" if name in self.chosen else f"{name} = {value}")
            elif isinstance(stmt, Load):
                if stmt.var.name not in self.chosen:
                    self.line(f"{stmt.var.name} = {literal(0, stmt.var.ty)}")
                self.line(f"if {mask}:")  # lanes that are done must not read
                self.line(f"    {stmt.var.name} = load({stmt.memory.name}, {self.offset(stmt)})")
            elif isinstance(stmt, If):
                self.branch(stmt, mask)
            elif isinstance(stmt, Check):
                self.line(f"_soft{stmt.site} = _soft{stmt.site} | ({mask} & {text(stmt.bad)})")
            else:
                if isinstance(stmt, Break):
                    self.line(f"_alive = _alive & (not {mask})")
                for outer in self.masks[:-1]:
                    self.line(f"{outer} = {outer} & (not {mask})")
                return

    def branch(self, stmt: If, mask: str) -> None:
        self.counter += 1
        then, orelse = f"_then{self.counter}", f"_else{self.counter}"
        cond = text(stmt.cond)
        self.line(f"{then} = {mask} & {cond}")
        if stmt.orelse:
            self.line(f"{orelse} = {mask} & (not {cond})")
        for name, block in ((then, stmt.then), (orelse, stmt.orelse)):
            if block:
                self.masks.append(name)
                self.block(block)
                self.masks.pop()
