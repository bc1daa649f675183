"""What KernelAbstractions' CPU backend would run with another meaning, found before it runs.

On the CPU it turns a work-group into loops over its items, one for each stretch between barriers. A plain variable
lives in one of these loops only; `@uniform`, `@private`, `@localmem` and `@index` make what lives longer. On GPUs every
variable lives on. So a variable of one stretch that another reads, a parameter that is assigned, and a `@uniform` that
is assigned without it mean something else here than there, or are not defined.

Source: KernelAbstractions 0.9, `macros.jl`, `transform_cpu!` and `split`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from jlkern.syntax import nodes as n
from jlkern.syntax.walk import children, walk

KEPT = ("@uniform", "@private", "@localmem", "@index")


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, at a line of the source."""

    line: int
    text: str


@dataclass
class _Reading:
    """What is known of a kernel's variables while its statements are read in order; stretches are numbered."""

    parameters: frozenset[str]
    stretch: int = 0
    kept: set[str] = field(default_factory=set)
    uniform: set[str] = field(default_factory=set)
    defined: dict[str, set[int]] = field(default_factory=dict)
    read: list[tuple[str, int, int]] = field(default_factory=list)  # name, stretch (-1: by the group), line
    findings: list[Finding] = field(default_factory=list)

    def block(self, node: n.Node) -> None:
        for statement in node.body if isinstance(node, n.Block) else (node,):
            if _is(statement, ("@synchronize",)):
                self.stretch += 1
            elif _has_barrier(statement):
                self.stretch += 1
                self.around(statement)
                self.stretch += 1
            else:
                self.visit(statement)

    def around(self, node: n.Node) -> None:
        """Read a statement that holds a barrier: its head runs once per group."""
        if isinstance(node, n.For):
            for target, values in node.bindings:
                self.by_group(values)
                self.kept.update(_names(target))
            self.block(node.body)
        elif isinstance(node, n.While):
            self.by_group(node.cond)
            self.block(node.body)
        elif isinstance(node, n.If):
            self.by_group(node.cond)
            self.block(node.then)
            if node.orelse is not None:
                self.stretch += 1
                self.block(node.orelse)
        elif isinstance(node, n.Let):
            self.kept.update(name for name, _ in node.bindings)
            self.block(node.body)
        elif isinstance(node, n.MacroCall):
            for part in node.args:
                self.block(part)
        else:
            self.block(n.Block(tuple(children(node))))

    def by_group(self, node: n.Node) -> None:
        self.read += [(name.id, -1, _line(name, node)) for name in walk(node) if isinstance(name, n.Name)]

    def visit(self, node: n.Node) -> None:
        """Read what items do, in the order of evaluation."""
        inner = node.args[-1] if isinstance(node, n.MacroCall) and node.args else None
        if _is(node, KEPT) and isinstance(inner, n.Assign):
            self.keep(inner.target, _is(node, ("@uniform",)))
        elif isinstance(node, n.Assign) and _is(node.value, KEPT):
            self.keep(node.target, _is(node.value, ("@uniform",)))
        elif isinstance(node, n.Assign):
            self.visit(node.value)
            targets = _names(node.target)
            if node.op is not None or not targets:
                self.visit(node.target)
            for name in targets:
                self.define(name, _line(node.target, node))
        elif isinstance(node, n.For):
            for target, values in node.bindings:
                self.visit(values)
                for name in _names(target):
                    self.defined.setdefault(name, set()).add(self.stretch)
            self.visit(node.body)
        elif isinstance(node, n.Lambda):
            own = {p.name for p in node.params}
            inside = [x for x in walk(node.body) if isinstance(x, n.Name) and x.id not in own]
            for free in inside:
                self.use(free.id, _line(free, node))
        elif isinstance(node, n.Name):
            self.use(node.id, node.pos.line)
        else:
            for child in children(node):
                self.visit(child)

    def keep(self, target: n.Node, uniform: bool) -> None:
        self.kept.update(_names(target))
        if uniform:
            self.uniform.update(_names(target))

    def define(self, name: str, line: int) -> None:
        if name in self.uniform:
            text = (
                f"`{name}` is `@uniform` and is assigned without it, once per work-item; write `@uniform {name} = ...`"
            )
            self.findings.append(Finding(line, text))
        elif name in self.parameters:
            text = f"the parameter `{name}` is assigned, which the other work-items would see; use another name"
            self.findings.append(Finding(line, text))
        self.defined.setdefault(name, set()).add(self.stretch)

    def use(self, name: str, line: int) -> None:
        if self.stretch not in self.defined.get(name, ()):
            self.read.append((name, self.stretch, line))

    def finish(self) -> None:
        for name, stretch, line in self.read:
            where = self.defined.get(name, set())
            if name in self.kept or not where or where == {stretch}:
                continue
            text = f"`{name}` is set before a `@synchronize` and read after it, or in what decides over one"
            self.findings.append(
                Finding(line, f"{text}; keep it with `@private {name} = ...` or `@uniform {name} = ...`")
            )


def unlike_simt(kernel: n.KernelDef) -> Finding | None:
    """Return the first thing in a kernel that the CPU backend gives another meaning than GPUs do, or None."""
    function = kernel.function
    reading = _Reading(frozenset(p.name for p in function.params if p.name is not None))
    reading.block(function.body)
    reading.finish()
    return min(reading.findings, key=lambda found: found.line, default=None)


def _is(node: n.Node, names: Iterable[str]) -> bool:
    return isinstance(node, n.MacroCall) and f"@{node.name.lstrip('@')}" in names


def _has_barrier(node: n.Node) -> bool:
    return any(_is(inner, ("@synchronize",)) for inner in walk(node))


def _names(target: n.Node) -> list[str]:
    """Return the variables that an assignment to a target sets."""
    if isinstance(target, n.Name):
        return [target.id]
    if isinstance(target, n.TupleExpr):
        return [name for item in target.items for name in _names(item)]
    if isinstance(target, n.Typed) and target.value is not None:
        return _names(target.value)
    return []


def _line(node: n.Node, otherwise: n.Node) -> int:
    return node.pos.line or otherwise.pos.line
