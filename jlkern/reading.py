"""The reading of a source: parsed, its kernel picked, its parameters and tunables checked, its effects found."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from jlkern.effects import Effects
from jlkern.effects.aliases import Findings
from jlkern.effects.analysis import analyse, effects_of
from jlkern.errors import SourceError, SourceSyntaxError, TunableError
from jlkern.itemindex import Proof, prove
from jlkern.syntax import nodes as n
from jlkern.syntax.parser import parse_source
from jlkern.syntax.problem import KernelOptionProblem, SyntaxProblem
from jlkern.syntax.walk import walk

Where: TypeAlias = Callable[[int], str]
"""What a message calls a line of the source."""


@dataclass(frozen=True)
class Tree:
    """A kernel in its syntax tree; `parameters` are the data parameters."""

    module: n.Module
    kernel: n.KernelDef
    parameters: tuple[n.Param, ...]


@dataclass(frozen=True)
class Read:
    """What was read; the fields are those of `source.KernelSource`."""

    name: str
    names: tuple[str, ...]
    line: int
    vals: tuple[str | None, ...]
    digest: str
    effects: Effects
    mentioned: frozenset[str] | None
    ndrange_param: str | None
    ndrange_dims: int | None
    tree: Tree


def read(text: str, where: Where, tunables: tuple[str, ...], name: str | None, python_name: str | None) -> Read:
    """Read a source; the arguments and errors are those of `source.load_source`."""
    module, digest = parse(text, where)
    kernel = _pick(kernels(module), where, name, python_name)
    function = kernel.function
    parameters, vals = _split(function, tunables, where)
    _check_tunables(function, tunables, vals, where)
    tree = Tree(module, kernel, parameters)
    try:
        findings, proof = _proof(tree, where)
        effects = effects_of(function, findings, proof.exact)
    except RecursionError:
        raise SourceSyntaxError(f"{where(function.pos.line)}: the source is nested too deeply") from None
    _check_const(parameters, findings.writes, where)
    data = {param.name for param in parameters}
    unknown = tuple(item for item in effects.unknown if item[0] in data)
    return Read(
        name=function.name,
        names=tuple(param.name or f"#{place}" for place, param in enumerate(parameters, 1)),
        line=function.pos.line,
        vals=vals,
        digest=hashlib.sha256(f"{function.name}\0{digest}".encode()).hexdigest(),
        effects=Effects(effects.written & data, effects.read_first & data, unknown, effects.unread & data),
        mentioned=_mentioned(tree),
        ndrange_param=proof.param,
        ndrange_dims=proof.dims,
        tree=tree,
    )


def tree_of(text: str, where: Where, name: str, vals: tuple[str | None, ...]) -> Tree:
    """Return the tree of a source that has been read before, of the kernel of this name."""
    module, _ = parse(text, where)
    kernel = _pick(kernels(module), where, name, None)
    params = kernel.function.params
    return Tree(module, kernel, params[: len(params) - len(vals)])


def ndrange_problem(tree: Tree, where: Where) -> str:
    """Return why no parameter's shape is proved to be the ndrange."""
    return _proof(tree, where)[1].problem


def _proof(tree: Tree, where: Where) -> tuple[Findings, Proof]:
    function = tree.kernel.function
    findings = analyse(function, *_definitions(tree.module))
    return findings, prove(function, findings, where)


def _mentioned(tree: Tree) -> frozenset[str] | None:
    """Return every name in the kernel and in what it reaches of the source; None where names may be hidden."""
    definitions: dict[str, list[n.Node]] = {}
    todo: list[n.Node] = [tree.kernel.function]
    for item in tree.module.items:
        while isinstance(item, n.MacroCall) and item.args:
            item = item.args[-1]
        assign = item.assign if isinstance(item, n.Const) else item
        if isinstance(item, n.FunctionDef):
            definitions.setdefault(item.name.rpartition(".")[2], []).append(item)
        elif isinstance(assign, n.Assign) and isinstance(assign.target, n.Name):
            definitions.setdefault(assign.target.id, []).append(assign.value)
        elif not isinstance(item, n.KernelDef):
            todo.append(item)  # whatever may be called without its name
    found: set[str] = set()
    while todo:
        for node in walk(todo.pop()):
            if isinstance(node, n.Unsupported):
                return None
            if isinstance(node, n.Name):
                found.add(node.id)
                todo += definitions.pop(node.id, ())
            elif isinstance(node, n.Field):
                todo += definitions.pop(node.name, ())
    return frozenset(found)


# --- parsing ----------------------------------------------------------------------------------------------------------


def parse(text: str, where: Where) -> tuple[n.Module, str]:
    """Return the module of a text and its tokens, both for the analysis."""
    try:
        module, source = parse_source(text)
    except KernelOptionProblem as problem:
        raise SourceError(_described(problem, text, where)) from None
    except SyntaxProblem as problem:
        raise SourceSyntaxError(_described(problem, text, where)) from None
    return module, source.tokens()


def _described(problem: SyntaxProblem, text: str, where: Where) -> str:
    """Return the message of a problem with the line of the source that it is in."""
    lines = text.split("\n")
    line = lines[problem.line - 1] if 0 < problem.line <= len(lines) else ""
    marked = f"\n    {line}\n    {' ' * (problem.column - 1)}^" if line.strip() else ""
    return f"{where(problem.line)}: {problem.message}{marked}"


def kernels(module: n.Module) -> list[n.KernelDef]:
    """Return the kernels at the top level, under any macro."""
    found = []
    for item in module.items:
        while isinstance(item, n.MacroCall) and item.args:
            item = item.args[-1]
        if isinstance(item, n.KernelDef):
            found.append(item)
    return found


def _definitions(module: n.Module) -> tuple[dict[str, list[n.FunctionDef]], frozenset[str]]:
    """Return the functions and the structs of a source, by name."""
    functions: dict[str, list[n.FunctionDef]] = {}
    structs = set()
    for item in module.items:
        while isinstance(item, n.MacroCall) and item.args:
            item = item.args[-1]
        if isinstance(item, n.FunctionDef):
            functions.setdefault(item.name, []).append(item)
        elif isinstance(item, n.StructDef):
            structs.add(item.name)
        elif isinstance(item, n.Const | n.Assign):
            assign = item.assign if isinstance(item, n.Const) else item
            if isinstance(assign.target, n.Name) and isinstance(assign.value, n.Lambda):
                value = assign.value
                body = value.body if isinstance(value.body, n.Block) else n.Block((value.body,))
                made = n.FunctionDef(assign.target.id, value.params, body, pos=item.pos)
                functions.setdefault(assign.target.id, []).append(made)
    return functions, frozenset(structs)


def _pick(kernels: list[n.KernelDef], where: Where, name: str | None, python_name: str | None) -> n.KernelDef:
    """Return the kernel that is meant."""
    if not kernels:
        raise SourceError(f"{where(1)}: the source has no `@kernel` function")
    names = [kernel.function.name for kernel in kernels]
    for place, known in enumerate(names):
        if known in names[:place]:
            line = kernels[place].pos.line
            raise SourceError(f"{where(line)}: the kernel `{known}` is defined twice; give one another name")
    listed = ", ".join(f"`{known}`" for known in names)
    wanted = [name] if name is not None else [python_name, f"{python_name}!"] if python_name is not None else []
    for known, kernel in zip(names, kernels, strict=True):
        if known in wanted and (name is not None or len(kernels) > 1):
            return kernel
    if name is not None:
        raise SourceError(f"{where(kernels[0].pos.line)}: no kernel `{name}`; the source has {listed}")
    if len(kernels) > 1:
        line = kernels[1].pos.line
        raise SourceError(f"{where(line)}: the source has several kernels ({listed}); pick one with name=")
    return kernels[0]


# --- parameters and tunables ------------------------------------------------------------------------------------------


def _val_name(param: n.Param) -> str | None:
    """Return the N of `::Val{N}`; "" for a `::Val` without a name; None for any other parameter."""
    kind = param.type
    if isinstance(kind, n.Name) and kind.id == "Val":
        return ""
    if isinstance(kind, n.Curly) and kind.base == n.Name("Val") and len(kind.args) == 1:
        only = kind.args[0]
        return only.id if isinstance(only, n.Name) else ""
    return None


def _split(
    function: n.FunctionDef, tunables: tuple[str, ...], where: Where
) -> tuple[tuple[n.Param, ...], tuple[str | None, ...]]:
    """Return the data parameters, and for each other one (all are trailing `::Val`s) its tunable or None."""
    params = function.params
    start = len(params) - len(tunables)
    if _by_place(params, start, tunables):
        return params[:start], tunables
    start = len(params)
    while start and _val_name(params[start - 1]) is not None and not params[start - 1].vararg:
        start -= 1
    run = params[start:]
    names = [_val_name(param) or "" for param in run]
    fill = _fill(run, names, tunables, where)
    # Data parameters come first: what no tunable fills and has no default must stand before all that is filled.
    while run and fill[0] is None and run[0].default is None:
        start += 1
        run, fill = run[1:], fill[1:]
    for param, name, tunable in zip(run, names[len(names) - len(run) :], fill, strict=True):
        if tunable is None and param.default is None:
            raise TunableError(
                f"{where(param.pos.line)}: `::Val{{{name}}}` is no tunable and has no default; "
                "put it before the parameters that tunables fill, or give it a default"
            )
    return params[:start], tuple(fill)


def _by_place(params: tuple[n.Param, ...], start: int, tunables: tuple[str, ...]) -> bool:
    """Tell whether the last parameters take all tunables in order, some of them without a `::Val`.

    So Kernel Tuner's Julia backend calls kernels: with a `Val` for every tunable. It is only taken for meant where
    another of them says `::Val`, or where the name is one of Kernel Tuner's for the work-group.
    """
    run = params[start:] if start >= 0 else ()
    bare = [_val_name(param) is None for param in run]
    fits = (
        all(
            not is_bare or (param.name == tunable and param.type is None and not param.const and not param.vararg)
            for param, tunable, is_bare in zip(run, tunables, bare, strict=True)
        )
        if run
        else False
    )
    meant = not all(bare) or all(name.startswith("block_size_") for name in tunables)
    return any(bare) and fits and meant


def _fill(run: tuple[n.Param, ...], names: list[str], tunables: tuple[str, ...], where: Where) -> list[str | None]:
    """Return the tunable of each trailing `::Val` parameter."""
    by_name = [name if name in tunables else None for name in names]
    if all(by_name) or not tunables or not run:
        return by_name
    if len(run) == len(tunables):
        for name, tunable in zip(names, tunables, strict=True):
            if name in tunables and name != tunable:
                raise TunableError(
                    f"{where(run[0].pos.line)}: `::Val{{{name}}}` stands where the tunable {tunable!r} belongs; "
                    "name the trailing `::Val` parameters after the tunables, or put them in the tunables' order"
                )
        return list(tunables)
    if not any(by_name) and any(param.default is None for param in run):
        listed = ", ".join(f"`::Val{{{name}}}`" for name in names)
        raise TunableError(
            f"{where(run[0].pos.line)}: the trailing {listed} fit the tunables ({', '.join(tunables)}) neither "
            "by name nor by number; name each after a tunable, or give it a default"
        )
    return by_name


def _check_tunables(
    function: n.FunctionDef, tunables: tuple[str, ...], vals: tuple[str | None, ...], where: Where
) -> None:
    """Raise when a parameter hides a tunable."""
    line = where(function.pos.line)
    for param in (*function.params[: len(function.params) - len(vals)], *function.kwparams):
        if param.name in tunables:
            place = where(param.pos.line)
            raise TunableError(f"{place}: the tunable {param.name!r} is named like a parameter of `{function.name}`")
    filled = (
        {_val_name(param): tunable for param, tunable in zip(function.params[-len(vals) :], vals, strict=True)}
        if vals
        else {}
    )
    for node in function.where:
        found = node.args[0] if isinstance(node, n.Call) and node.args else node
        if isinstance(found, n.Name) and found.id in tunables and filled.get(found.id) != found.id:
            raise TunableError(f"{line}: the tunable {found.id!r} is named like a type parameter of `{function.name}`")


def _check_const(parameters: tuple[n.Param, ...], writes: list[Any], where: Where) -> None:
    """Raise when a kernel writes what it declares to be read-only."""
    const = {param.name for param in parameters if param.const}
    for write in writes:
        if write.param in const and write.target is not None:
            raise SourceError(f"{where(write.line)}: `{write.param}` is declared `@Const` and is written here")
