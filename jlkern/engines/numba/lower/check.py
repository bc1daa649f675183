"""What can be said of a source before its arguments are known: constructs that this engine never supports."""

from __future__ import annotations

from typing import NoReturn

from jlkern.engines.numba.lower import collections as _collections
from jlkern.engines.numba.lower.kernel_macros import MACROS
from jlkern.engines.numba.lower.scan import children
from jlkern.errors import UnsupportedError
from jlkern.source import KernelSource
from jlkern.syntax import nodes as n

assert _collections

_TOP = frozenset({"kernel", "inline", "noinline", "propagate_inbounds", "generated", "Const"})


def check(source: KernelSource) -> None:
    """Look through the kernel and the functions that it can reach. Raises `UnsupportedError` with its line."""
    functions: dict[str, list[n.FunctionDef]] = {}
    for item in source.module.items:
        while isinstance(item, n.MacroCall) and item.args:
            item = item.args[-1]
        if isinstance(item, n.FunctionDef):
            functions.setdefault(item.name, []).append(item)
    seen: set[str] = set()
    todo: list[n.Node] = [source.kernel.function]
    while todo:
        for node in _walk(todo.pop()):
            _check(source, node)
            if isinstance(node, n.Name) and node.id in functions and node.id not in seen:
                seen.add(node.id)
                todo.extend(functions[node.id])


def _walk(node: n.Node) -> list[n.Node]:
    found = [node]
    for child in children(node):
        found.extend(_walk(child))
    return found


def _check(source: KernelSource, node: n.Node) -> None:
    if isinstance(node, n.Unsupported):
        _refuse(source, node, node.what)
    if isinstance(node, n.MacroCall) and node.name not in MACROS and node.name not in _TOP:
        _refuse(source, node, f"the macro `@{node.name}`")
    if isinstance(node, n.Assign) and node.dotted:
        _refuse(source, node, "a broadcast assignment `.=`")


def _refuse(source: KernelSource, node: n.Node, what: str) -> NoReturn:
    raise UnsupportedError(f"{source.origin.where(node.pos.line)}: {what} is not supported by the numba engine")
