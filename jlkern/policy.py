"""What happens when no configuration is known: tune, take the nearest known one, or the default; and `frozen`."""

from __future__ import annotations

import contextlib
import threading
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


_guard = threading.Lock()
_records: list[list[Miss]] = []


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
    with _guard:
        _records.append(misses)
    try:
        yield misses
    finally:
        with _guard:
            for place in range(len(_records) - 1, -1, -1):
                if _records[place] is misses:
                    del _records[place]
                    break


def is_frozen() -> bool:
    """Tell whether tuning is off now."""
    from jlkern.knobs import knobs

    return bool(_records) or knobs.frozen


def record_miss(miss: Miss) -> None:
    """Note a miss in every open `frozen` context."""
    with _guard:
        for misses in _records:
            if miss not in misses:
                misses.append(miss)
