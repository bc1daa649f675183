"""A Julia source string: its kernels, their parameters, which tunables they name, what they write, and its hash.

What a source says is kept on the disk (`disk`) once one of its kernels has been compiled. So a process that meets it
again parses nothing, unless someone asks for its tree.
"""

from __future__ import annotations

import json
import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jlkern import disk
from jlkern.effects import Effects

if TYPE_CHECKING:
    from jlkern.reading import Tree
    from jlkern.syntax import nodes as n

# jlkern.reading is imported where it is needed: it brings the syntax tree, which known sources can do without.

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

    `names` are its data parameters (an anonymous one is `#1`, `#2`, ... by its place), `line` is where it starts;
    `vals` has, for each trailing `::Val` parameter that is no data parameter, the tunable that fills it, or None where
    its default stands. `mentioned` are all names in the kernel and in what it reaches of the source (helpers,
    constants, types), or None where there is a construct whose names are not known. `ndrange_param` is the parameter
    whose shape is proved to be the ndrange, for `ndrange_dims` dimensions (None: any number), else `ndrange_problem`
    says why there is none.
    """

    text: str
    origin: Origin
    name: str
    names: tuple[str, ...]
    line: int
    vals: tuple[str | None, ...]
    digest: str
    effects: Effects
    mentioned: frozenset[str] | None
    ndrange_param: str | None
    ndrange_dims: int | None = None

    @cached_property
    def tree(self) -> Tree:
        """The kernel in its syntax tree; parsed when first asked for, if the source was known."""
        from jlkern.reading import tree_of

        return tree_of(self.text, self.origin.where, self.name, self.vals)

    @property
    def kernel(self) -> n.KernelDef:
        """The kernel's definition."""
        return self.tree.kernel

    @property
    def module(self) -> n.Module:
        """All items of the source."""
        return self.tree.module

    @property
    def parameters(self) -> tuple[n.Param, ...]:
        """The data parameters."""
        return self.tree.parameters

    @property
    def ndrange_problem(self) -> str:
        """Why no parameter's shape is proved to be the ndrange; empty when one is."""
        from jlkern.reading import ndrange_problem

        return "" if self.ndrange_param is not None else ndrange_problem(self.tree, self.origin.where)

    @property
    def place(self) -> str:
        """Where the kernel's definition stands, for messages."""
        return self.origin.where(self.line)

    def mentions(self) -> frozenset[str] | None:
        """Return `mentioned`."""
        return self.mentioned

    def keep(self) -> None:
        """Keep what the source says on the disk, for the next process; it is checked by then and compiles."""
        key = self.__dict__.pop("_unkept", None)
        if key is not None:
            disk.write(key, _facts(self))


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
    key = json.dumps(["source", text, tunables, name, python_name])
    known = disk.read(key, lambda facts, _: _from_facts(facts, text, origin))
    if known is not None:
        return known
    from jlkern.reading import read

    found = vars(read(text, origin.where, tunables, name, python_name)).copy()
    tree = found.pop("tree")
    source = KernelSource(text=text, origin=origin, **found)
    source.__dict__.update(tree=tree, _unkept=key)  # what `tree` and `keep` look for
    return source


def list_kernels(text: str) -> tuple[str, ...]:
    """Return the names of the kernels of a source, in order.

    Examples
    --------
    >>> list_kernels("@kernel f!(x) = x[1] = 1")
    ('f!',)
    """
    from jlkern.reading import kernels, parse

    module, _ = parse(text, Origin(None, 1, False).where)
    return tuple(kernel.function.name for kernel in kernels(module))


# --- as data: without the place in the Python file, since the same text may stand elsewhere the next time -------------


def _facts(source: KernelSource) -> dict[str, Any]:
    effects = source.effects
    return {
        "name": source.name,
        "names": source.names,
        "line": source.line,
        "vals": source.vals,
        "digest": source.digest,
        "written": sorted(effects.written),
        "read_first": sorted(effects.read_first),
        "unknown": effects.unknown,
        "unread": sorted(effects.unread),
        "mentioned": None if source.mentioned is None else sorted(source.mentioned),
        "ndrange": [source.ndrange_param, source.ndrange_dims],
    }


def _from_facts(facts: Any, text: str, origin: Origin) -> KernelSource:
    unknown = tuple((param, line, why) for param, line, why in facts["unknown"])
    return KernelSource(
        text=text,
        origin=origin,
        name=facts["name"],
        names=tuple(facts["names"]),
        line=facts["line"],
        vals=tuple(facts["vals"]),
        digest=facts["digest"],
        effects=Effects(
            frozenset(facts["written"]), frozenset(facts["read_first"]), unknown, frozenset(facts["unread"])
        ),
        mentioned=None if facts["mentioned"] is None else frozenset(facts["mentioned"]),
        ndrange_param=facts["ndrange"][0],
        ndrange_dims=facts["ndrange"][1],
    )


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
