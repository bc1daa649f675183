"""The analysis of a kernel's effects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jlkern.effects import Effects
from jlkern.effects.aliases import Findings
from jlkern.effects.functions import ARITHMETIC
from jlkern.effects.reading import Reading, Shared
from jlkern.syntax import nodes as n
from jlkern.syntax.walk import walk

_SCALARS = frozenset(
    "Number Real Integer Signed Unsigned AbstractFloat Complex Bool Int Int8 Int16 Int32 Int64 UInt UInt8 UInt16 UInt32"
    " UInt64 Float16 Float32 Float64 ComplexF32 ComplexF64 Val Type Function CartesianIndex Symbol".split()
)


def analyse(
    kernel: n.FunctionDef, functions: Mapping[str, Sequence[n.FunctionDef]], structs: frozenset[str]
) -> Findings:
    """Return what a function does to its parameters.

    Parameters
    ----------
    kernel
        The function.
    functions
        The methods that the source defines, by name.
    structs
        The names of the structs that the source defines.
    """
    return Reading(kernel, Shared(functions, structs), frozenset()).run()


def effects_of(kernel: n.FunctionDef, findings: Findings, exact: Iterable[str]) -> Effects:
    """Return the effects from the findings; `exact` are the parameters whose every write is at the global index."""
    scalars = _scalars(kernel) if findings.unknown else set()
    written = {write.param for write in findings.writes}
    once = {
        param
        for param in exact
        if param not in findings.reads
        and not findings.returns
        and all(write.plain and not write.conditional for write in findings.writes if write.param == param)
    }
    unknown = tuple(
        (param, *why) for param, why in findings.unknown.items() if param not in written and param not in scalars
    )
    doubtful = written & findings.unknown.keys()
    read = findings.reads | {write.param for write in findings.writes if not write.plain}
    restored = (written - once) | doubtful
    return Effects(frozenset(written), frozenset(restored), unknown, frozenset(restored - doubtful - read))


def _scalars(kernel: n.FunctionDef) -> set[str]:
    """Return the parameters that can be no arrays: by their type, or because arithmetic is done on them as they are."""
    found = set()
    for param in kernel.params:
        kind = param.type
        while isinstance(kind, n.Curly | n.Where):
            kind = kind.base if isinstance(kind, n.Curly) else kind.value
        if isinstance(kind, n.Name) and param.name is not None and kind.id in _SCALARS:
            found.add(param.name)
    names = {param.name for param in kernel.params}
    indexed = set()
    for node in walk(kernel.body):
        operands: tuple[n.Node, ...] = ()
        if isinstance(node, n.Call) and isinstance(node.func, n.Name) and node.func.id in ARITHMETIC:
            operands = node.args
        elif isinstance(node, n.Compare):
            operands = node.operands
        elif isinstance(node, n.Index):
            operands = node.args
            if isinstance(node.obj, n.Name):
                indexed.add(node.obj.id)
        found.update(arg.id for arg in operands if isinstance(arg, n.Name) and arg.id in names)
    return found - indexed
