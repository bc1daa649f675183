"""A Julia source string: its kernels, their parameters, which tunables they name, what they write, and its hash."""

from __future__ import annotations

import hashlib
import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jlkern.effects import Effects, analyse, effects_of
from jlkern.errors import SourceError, SourceSyntaxError, TunableError
from jlkern.itemindex import prove
from jlkern.syntax import nodes as n
from jlkern.syntax.problem import KernelOptionProblem, SyntaxProblem
from jlkern.syntax.walk import walk

__all__ = ["Effects", "KernelSource", "Origin", "find_origin", "list_kernels", "load_source"]


@dataclass(frozen=True)
class Origin:
    """Where a source string stands: the file and the line in it of the string's first line.

    `exact` says that line breaks in the string are line breaks in the file, so that lines can be mapped.

    Examples
    --------
    >>> Origin("saxpy.py", 10, True).where(3)
    'saxpy.py:12'
    >>> Origin(None, 1, False).where(3)
    'line 3 of the source'
    """

    file: str | None
    line: int
    exact: bool

    def where(self, line: int) -> str:
        """Return the place of a line of the source (from 1) for a message."""
        if self.exact and self.file is not None:
            return f"{self.file}:{self.line + line - 1}"
        return f"line {line} of the source"


@dataclass(frozen=True)
class KernelSource:
    """A kernel with all that its source says about it.

    `parameters` are the data parameters; `vals` has, for each trailing `::Val` parameter that is no data parameter, the
    tunable that fills it, or None where its default stands. `ndrange_param` is the parameter whose shape is proved to
    be the ndrange, for `ndrange_dims` dimensions (None: any number), else `ndrange_problem` says why there is none.
    """

    text: str
    origin: Origin
    name: str
    kernel: n.KernelDef
    module: n.Module
    parameters: tuple[n.Param, ...]
    vals: tuple[str | None, ...]
    digest: str
    effects: Effects
    ndrange_param: str | None
    ndrange_problem: str
    ndrange_dims: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the data parameters; an anonymous one is `#1`, `#2`, ... by its place."""
        return tuple(param.name or f"#{place}" for place, param in enumerate(self.parameters, 1))

    @property
    def place(self) -> str:
        """Where the kernel's definition stands, for messages."""
        return self.origin.where(self.kernel.function.pos.line)

    def mentions(self) -> frozenset[str] | None:
        """Return every name in the kernel and in what it reaches of the source: helpers, constants, types.

        None where there is a construct whose names are not known.
        """
        definitions: dict[str, list[n.Node]] = {}
        todo: list[n.Node] = [self.kernel.function]
        for item in self.module.items:
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


def load_source(
    text: str,
    origin: Origin,
    tunables: tuple[str, ...],
    name: str | None = None,
    python_name: str | None = None,
) -> KernelSource:
    """Read a source and pick its kernel.

    Parameters
    ----------
    text
        The Julia source.
    origin
        Where it stands, for the lines in messages.
    tunables
        The names of the tunables, in order.
    name
        The kernel to pick, where there are several; else the one named like `python_name`, with or without `!`.
    python_name
        The name of the decorated Python function.

    Returns
    -------
    KernelSource

    Raises
    ------
    SourceSyntaxError
        The text does not parse as Julia.
    SourceError
        No kernel, several without a choice, or an option that `@kernel` does not know.
    TunableError
        A tunable is named like a parameter, or the trailing `::Val` parameters fit the tunables neither by name nor by
        number.

    Examples
    --------
    >>> text = "@kernel function f!(y)\\n i = @index(Global)\\n y[i] = 1\\nend"
    >>> source = load_source(text, Origin(None, 1, False), ())
    >>> source.name, source.names, source.ndrange_param
    ('f!', ('y',), 'y')
    """
    module, digest = _parse(text, origin)
    kernel = _pick(_kernels(module), origin, name, python_name)
    function = kernel.function
    parameters, vals = _split(function, tunables, origin)
    _check_tunables(function, tunables, vals, origin)
    try:
        findings = analyse(function, *_definitions(module))
        proof = prove(function, findings, origin.where)
        effects = effects_of(function, findings, proof.exact)
    except RecursionError:
        raise SourceSyntaxError(f"{origin.where(function.pos.line)}: the source is nested too deeply") from None
    _check_const(parameters, findings.writes, origin)
    data = {param.name for param in parameters}
    unknown = tuple(item for item in effects.unknown if item[0] in data)
    return KernelSource(
        text=text,
        origin=origin,
        name=function.name,
        kernel=kernel,
        module=module,
        parameters=parameters,
        vals=vals,
        digest=hashlib.sha256(f"{function.name}\0{digest}".encode()).hexdigest(),
        effects=Effects(effects.written & data, effects.read_first & data, unknown),
        ndrange_param=proof.param,
        ndrange_problem=proof.problem,
        ndrange_dims=proof.dims,
    )


def list_kernels(text: str) -> tuple[str, ...]:
    """Return the names of the kernels of a source, in order.

    Examples
    --------
    >>> list_kernels("@kernel f!(x) = x[1] = 1")
    ('f!',)
    """
    module, _ = _parse(text, Origin(None, 1, False))
    return tuple(kernel.function.name for kernel in _kernels(module))


# --- parsing ----------------------------------------------------------------------------------------------------------


def _parse(text: str, origin: Origin) -> tuple[n.Module, str]:
    """Return the module of a text and its tokens, both for the analysis."""
    from jlkern.syntax.parser import parse_source

    try:
        module, source = parse_source(text)
    except KernelOptionProblem as problem:
        raise SourceError(_described(problem, text, origin)) from None
    except SyntaxProblem as problem:
        raise SourceSyntaxError(_described(problem, text, origin)) from None
    return module, source.tokens()


def _described(problem: SyntaxProblem, text: str, origin: Origin) -> str:
    """Return the message of a problem with the line of the source that it is in."""
    lines = text.split("\n")
    line = lines[problem.line - 1] if 0 < problem.line <= len(lines) else ""
    marked = f"\n    {line}\n    {' ' * (problem.column - 1)}^" if line.strip() else ""
    return f"{origin.where(problem.line)}: {problem.message}{marked}"


def _kernels(module: n.Module) -> list[n.KernelDef]:
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


def _pick(kernels: list[n.KernelDef], origin: Origin, name: str | None, python_name: str | None) -> n.KernelDef:
    """Return the kernel that is meant."""
    if not kernels:
        raise SourceError(f"{origin.where(1)}: the source has no `@kernel` function")
    names = [kernel.function.name for kernel in kernels]
    for place, known in enumerate(names):
        if known in names[:place]:
            line = kernels[place].pos.line
            raise SourceError(f"{origin.where(line)}: the kernel `{known}` is defined twice; give one another name")
    listed = ", ".join(f"`{known}`" for known in names)
    wanted = [name] if name is not None else [python_name, f"{python_name}!"] if python_name is not None else []
    for known, kernel in zip(names, kernels, strict=True):
        if known in wanted and (name is not None or len(kernels) > 1):
            return kernel
    if name is not None:
        raise SourceError(f"{origin.where(kernels[0].pos.line)}: no kernel `{name}`; the source has {listed}")
    if len(kernels) > 1:
        line = kernels[1].pos.line
        raise SourceError(f"{origin.where(line)}: the source has several kernels ({listed}); pick one with name=")
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
    function: n.FunctionDef, tunables: tuple[str, ...], origin: Origin
) -> tuple[tuple[n.Param, ...], tuple[str | None, ...]]:
    """Return the data parameters, and for each other one (all are trailing `::Val`s) its tunable or None."""
    params = function.params
    start = len(params)
    while start and _val_name(params[start - 1]) is not None and not params[start - 1].vararg:
        start -= 1
    run = params[start:]
    names = [_val_name(param) or "" for param in run]
    fill = _fill(run, names, tunables, origin)
    # Data parameters come first: what no tunable fills and has no default must stand before all that is filled.
    while run and fill[0] is None and run[0].default is None:
        start += 1
        run, fill = run[1:], fill[1:]
    for param, name, tunable in zip(run, names[len(names) - len(run) :], fill, strict=True):
        if tunable is None and param.default is None:
            raise TunableError(
                f"{origin.where(param.pos.line)}: `::Val{{{name}}}` is no tunable and has no default; "
                "put it before the parameters that tunables fill, or give it a default"
            )
    return params[:start], tuple(fill)


def _fill(run: tuple[n.Param, ...], names: list[str], tunables: tuple[str, ...], origin: Origin) -> list[str | None]:
    """Return the tunable of each trailing `::Val` parameter."""
    by_name = [name if name in tunables else None for name in names]
    if all(by_name) or not tunables or not run:
        return by_name
    if len(run) == len(tunables):
        for name, tunable in zip(names, tunables, strict=True):
            if name in tunables and name != tunable:
                raise TunableError(
                    f"{origin.where(run[0].pos.line)}: `::Val{{{name}}}` stands where the tunable {tunable!r} belongs; "
                    "name the trailing `::Val` parameters after the tunables, or put them in the tunables' order"
                )
        return list(tunables)
    if not any(by_name) and any(param.default is None for param in run):
        listed = ", ".join(f"`::Val{{{name}}}`" for name in names)
        raise TunableError(
            f"{origin.where(run[0].pos.line)}: the trailing {listed} fit the tunables ({', '.join(tunables)}) neither "
            "by name nor by number; name each after a tunable, or give it a default"
        )
    return by_name


def _check_tunables(
    function: n.FunctionDef, tunables: tuple[str, ...], vals: tuple[str | None, ...], origin: Origin
) -> None:
    """Raise when a parameter hides a tunable."""
    line = origin.where(function.pos.line)
    for param in (*function.params, *function.kwparams):
        if param.name in tunables:
            place = origin.where(param.pos.line)
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


def _check_const(parameters: tuple[n.Param, ...], writes: list[Any], origin: Origin) -> None:
    """Raise when a kernel writes what it declares to be read-only."""
    const = {param.name for param in parameters if param.const}
    for write in writes:
        if write.param in const and write.target is not None:
            raise SourceError(f"{origin.where(write.line)}: `{write.param}` is declared `@Const` and is written here")


# --- the place of a string in its Python file -------------------------------------------------------------------------

_QUOTE = re.compile(r"""\"\"\"|'''|"|'""")


def find_origin(function: Callable[..., Any], text: str) -> Origin:
    """Return where a source string stands in the Python file of a function: its docstring, or a string near it.

    Scripts, modules, zip files and notebook cells have lines to look at; where there are none, or where escapes in the
    string shift its lines, the origin is not exact.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return Origin(None, 1, False)
    file = code.co_filename
    linecache.checkcache(file)
    lines = linecache.getlines(file, getattr(function, "__globals__", None))
    wanted = [line.strip() for line in text.split("\n")]
    first = code.co_firstlineno - 1
    for start, stop in ((first, len(lines)), (0, first)):
        for at in range(start, min(stop, len(lines) - len(wanted) + 1)):
            if _starts(lines, at, wanted):
                return Origin(file, at + 1, True)
    return Origin(file if lines else None, code.co_firstlineno, False)


def _starts(lines: list[str], at: int, wanted: list[str]) -> bool:
    """Whether a string of these (stripped) lines starts in a line of the file."""
    line = lines[at]
    if '"' not in line and "'" not in line:
        return False
    last = len(wanted) - 1
    for quote in _QUOTE.finditer(line):
        rest = line[quote.end() :].strip()
        if last == 0:
            if rest.startswith(wanted[0]):
                return True
        elif rest == wanted[0] and lines[at + last].strip().startswith(wanted[last]):
            if all(lines[at + k].strip() == wanted[k] for k in range(1, last)):
                return True
    return False
