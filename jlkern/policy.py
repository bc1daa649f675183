"""What happens when no configuration is known: tune, take the nearest known one, or the default; and `frozen`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from jlkern.space import Config


@dataclass(frozen=True)
class Miss:
    """A call within `jlkern.frozen` for which nothing was remembered: the kernel, its types, and what ran instead."""

    kernel: str
    signature: str
    ndrange: tuple[int, ...]
    config: Config
    origin: str

    def __str__(self) -> str:
        ndrange = "x".join(map(str, self.ndrange))
        return f"{self.kernel}({self.signature}) over {ndrange}: ran {self.config} ({self.origin})"


# One entry for each open context, in the order of opening.
_records: dict[object, list[Miss]] = {}


@contextlib.contextmanager
def frozen(record: list[Miss] | None = None) -> Iterator[list[Miss]]:
    """Never tune, in all threads, while the context lasts: unknown calls run the nearest known or default
    configuration.

    Parameters
    ----------
    record
        A list to append the misses to; a new one by default.

    Yields
    ------
    list of Miss
        The calls that would have been tuned.

    >>> with frozen() as misses:
    ...     pass
    >>> misses
    []
    """
    misses: list[Miss] = [] if record is None else record
    mine = object()
    _records[mine] = misses
    try:
        yield misses
    finally:
        del _records[mine]


def is_frozen() -> bool:
    """Tell whether tuning is off now."""
    from jlkern.knobs import knobs

    return bool(_records) or knobs.frozen


def record_miss(miss: Miss) -> None:
    """Note a miss, once, in every open `frozen` context."""
    for misses in list(_records.values()):
        if miss not in misses:
            misses.append(miss)
