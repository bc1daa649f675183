"""What a kernel does to its parameters: which it writes, which it reads first, and what cannot be told.

The analysis is in `analysis`; this module has its result only, which needs no syntax tree.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effects:
    """What a kernel does to its parameters.

    `written` are those that it may write, `read_first` those of them whose old content may matter (so that a repeated
    run needs them restored), `unknown` those of which neither can be told, each with a line and the reason. `unread`
    are those of `read_first` that it never reads: their old content stays where nothing is written, and nothing else,
    so that runs may follow each other.
    """

    written: frozenset[str]
    read_first: frozenset[str]
    unknown: tuple[tuple[str, int, str], ...] = ()
    unread: frozenset[str] = frozenset()
