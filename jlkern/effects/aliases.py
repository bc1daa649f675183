"""What a value may alias, and what the reading of a function finds.

An alias is a parameter with a flag, `(name, inside)`: the value is that array (or a view of it), or holds it inside (a
tuple, a struct).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from jlkern.syntax import nodes as n

Alias = tuple[str, bool]
Aliases = frozenset[Alias]
NONE: Aliases = frozenset()


@dataclass(frozen=True)
class Write:
    """One write to an array parameter: `target` is the index expression where it is written by the parameter's name."""

    param: str
    line: int
    target: n.Index | None
    plain: bool
    conditional: bool


@dataclass
class Findings:
    """What the analysis of one function found."""

    writes: list[Write] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    unknown: dict[str, tuple[int, str]] = field(default_factory=dict)
    returned: Aliases = NONE
    returns: bool = False


def union(several: Iterable[Aliases]) -> Aliases:
    """Return all aliases of several values."""
    return NONE.union(*several)


def direct(aliases: Aliases) -> Aliases:
    """Return what is the value itself, not inside it."""
    return frozenset(alias for alias in aliases if not alias[1])


def inside(aliases: Aliases) -> Aliases:
    """Return the aliases of a value that holds another."""
    return frozenset((param, True) for param, _ in aliases)


def element(aliases: Aliases) -> Aliases:
    """Return the aliases of an element: what was inside may be it, or still be inside of it."""
    return frozenset((param, flag) for param, held in aliases if held for flag in (False, True))
