"""Whether a kernel writes an array at exactly its global index, so that the array's shape is the ndrange."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from jlkern.effects.aliases import Findings
from jlkern.syntax import nodes as n
from jlkern.syntax.walk import walk

_LINEAR, _CARTESIAN, _NTUPLE = "Linear", "Cartesian", "NTuple"


@dataclass(frozen=True)
class Proof:
    """The parameter whose shape is the ndrange, or why there is none.

    `dims` is the number of dimensions that the proof holds for; None where it holds for any. `exact` are all parameters
    that are written at the global index only.
    """

    param: str | None
    problem: str
    dims: int | None
    exact: frozenset[str]


class _Indices:
    """The variables of a kernel that hold its global index and nothing else."""

    def __init__(self, kernel: n.FunctionDef) -> None:
        nodes = list(walk(kernel.body))
        self.assigned = Counter(_assigned(kernel, nodes))
        self.whole: dict[str, str] = {}  # i = @index(Global), I = @index(Global, Cartesian or NTuple)
        self.part: dict[str, tuple[int, int, int]] = {}  # i, j = @index(Global, NTuple): statement, place, count
        statements = [node for node in nodes if isinstance(node, n.Assign) and node.op is None]
        for node in statements:
            kind = self.kind(node.value)
            if kind is not None and isinstance(node.target, n.Name):
                self.whole[node.target.id] = kind
        for number, node in enumerate(statements):
            if isinstance(node.target, n.TupleExpr) and self.kind(node.value) == _NTUPLE:
                for at, item in enumerate(node.target.items):
                    if isinstance(item, n.Name):
                        self.part[item.id] = (number, at, len(node.target.items))

    def kind(self, node: n.Node) -> str | None:
        """Return which form of the global index an expression is."""
        if isinstance(node, n.MacroCall) and node.name == "index" and node.args and node.args[0] == n.Name("Global"):
            if len(node.args) == 1:
                return _LINEAR
            kind = node.args[1].id if len(node.args) == 2 and isinstance(node.args[1], n.Name) else None
            return kind if kind in (_LINEAR, _CARTESIAN, _NTUPLE) else None
        if isinstance(node, n.Name):
            return self.whole.get(node.id) if self.assigned[node.id] == 1 else None
        if isinstance(node, n.Call) and node.func == n.Name("Tuple") and len(node.args) == 1:
            return _NTUPLE if self.kind(node.args[0]) == _CARTESIAN else None
        return None

    def dims(self, target: n.Index) -> int | None:
        """Return for how many dimensions an index is exactly the global one: 0 for any number, None for none."""
        args = target.args
        if len(args) == 1:
            only = args[0]
            if isinstance(only, n.Splat):
                return 0 if self.kind(only.value) == _NTUPLE else None
            if self.kind(only) in (_LINEAR, _CARTESIAN):
                return 0
        parts = [self.place(arg) for arg in args]
        first = parts[0] if parts else None
        if first is None or first[2] not in (len(args), -1):
            return None
        expected = [(first[0], at, first[2]) for at in range(len(args))]
        return len(args) if parts == expected else None

    def place(self, node: n.Node) -> tuple[object, int, int] | None:
        """Return which part of the global index an expression is: of which variable, the how-manieth, of how many."""
        if isinstance(node, n.Name) and self.assigned[node.id] == 1:
            return self.part.get(node.id)
        if isinstance(node, n.Index) and len(node.args) == 1 and isinstance(node.obj, n.Name):
            at = node.args[0]
            if self.kind(node.obj) in (_CARTESIAN, _NTUPLE) and isinstance(at, n.Literal) and isinstance(at.value, int):
                return node.obj.id, at.value - 1, -1
        return None

    def reassigned(self, target: n.Index) -> str | None:
        """Return an index variable in a target that is assigned more than once."""
        for node in walk(target):
            if (
                isinstance(node, n.Name)
                and self.assigned[node.id] > 1
                and (node.id in self.whole or node.id in self.part)
            ):
                return node.id
        return None


def _assigned(kernel: n.FunctionDef, nodes: list[n.Node]) -> list[str]:
    """Return every name that the kernel gives a value, once for each place."""
    names = [param.name for param in (*kernel.params, *kernel.kwparams) if param.name is not None]
    for node in nodes:
        kind = node.__class__
        if kind not in _BINDERS:
            continue
        if isinstance(node, n.Assign):
            names += _targets(node.target)
        elif isinstance(node, n.For):
            names += [name for target, _ in node.bindings for name in _targets(target)]
        elif isinstance(node, n.Let):
            names += [name for name, _ in node.bindings]
        elif isinstance(node, n.Param) and node.name is not None:
            names.append(node.name)
        elif isinstance(node, n.FunctionDef):
            names.append(node.name)
        elif isinstance(node, n.Unsupported):
            names += node.names
    return names


_BINDERS = frozenset((n.Assign, n.For, n.Let, n.Param, n.FunctionDef, n.Unsupported))


def _targets(node: n.Node) -> list[str]:
    if isinstance(node, n.Name):
        return [node.id]
    if isinstance(node, n.TupleExpr):
        return [name for item in node.items for name in _targets(item)]
    if isinstance(node, n.Splat | n.Typed) and node.value is not None:
        return _targets(node.value)
    return []


def prove(kernel: n.FunctionDef, findings: Findings, where: Callable[[int], str] = "line {}".format) -> Proof:
    """Return the array parameter whose shape is the ndrange: the first written one, if all is written at the index.

    `where` says how the message calls a line of the source.
    """
    indices = _Indices(kernel)
    dims: dict[str, set[int | None]] = {}
    first_bad: dict[str, str] = {}
    for write in findings.writes:
        found = indices.dims(write.target) if write.target is not None else None
        dims.setdefault(write.param, set()).add(found)
        if found is None and write.param not in first_bad:
            again = indices.reassigned(write.target) if write.target is not None else None
            if write.target is None:
                why = f"{where(write.line)} writes `{write.param}` through a view, an alias or a helper"
            elif again is not None:
                why = f"{where(write.line)} writes `{write.param}` at `{again}`, which is assigned more than once"
            else:
                why = f"{where(write.line)} writes `{write.param}` elsewhere than at exactly the global index"
            first_bad[write.param] = why
    exact = frozenset(param for param, found in dims.items() if None not in found)
    for param in kernel.params:
        name = param.name
        if name is None:
            continue
        if name in dims:
            sizes = {size for size in dims[name] if size}
            if name not in exact:
                return Proof(None, first_bad[name], None, exact)
            if len(sizes) > 1:
                return Proof(None, f"`{name}` is written with different numbers of indices", None, exact)
            return Proof(name, "", sizes.pop() if sizes else None, exact)
        if name in findings.unknown:
            line, reason = findings.unknown[name]
            return Proof(None, f"whether `{name}` is written cannot be told: {where(line)}, {reason}", None, exact)
    return Proof(None, "the kernel writes to none of its parameters", None, exact)
