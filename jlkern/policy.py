"""What happens when no configuration is known: tune, take the nearest known one, or the default; and `frozen`."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jlkern import log
from jlkern.errors import OptionError
from jlkern.space import Config

FORMAT: Final = "jlkern-miss-1"

_log = log.get(__name__)


@dataclass(frozen=True)
class Miss:
    """A call within `jlkern.frozen` for which nothing was remembered: the kernel, its types, and what ran instead.

    What else is there lets another process tune it, without any of the arrays' content: `reference` names the kernel
    (`module:name`), `digest` its source; `types` and `shapes` are the arguments'; `values` are the numbers that
    `ndrange=` or `key=` read, and `given` is the ndrange that the call itself gave.
    """

    kernel: str
    signature: str
    ndrange: tuple[int, ...]
    config: Config
    origin: str
    reference: str = ""
    digest: str = ""
    types: tuple[str, ...] = ()
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    values: tuple[tuple[str, bool | int | float], ...] = ()
    given: tuple[int, ...] | None = None

    def __str__(self) -> str:
        ndrange = "x".join(map(str, self.ndrange))
        return f"{self.kernel}({self.signature}) over {ndrange}: ran {self.config} ({self.origin})"

    def line(self) -> str:
        """Return the miss as one line of JSON."""
        facts = {
            "format": FORMAT,
            "kernel": self.reference,
            "source": self.digest,
            "types": self.types,
            "shapes": dict(self.shapes),
            "values": dict(self.values),
            "ndrange": self.given,
        }
        return json.dumps(facts, sort_keys=True)


def read_miss(line: str) -> Miss | None:
    """Read a line of `Miss.line` back, or return None when it is anything else; what ran then is not in it."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        return None
    kernel: Any = data.get("kernel")
    source: Any = data.get("source")
    types: Any = data.get("types")
    shapes: Any = data.get("shapes")
    values: Any = data.get("values")
    given: Any = data.get("ndrange")
    good = (
        isinstance(kernel, str)
        and isinstance(source, str)
        and isinstance(types, list)
        and all(isinstance(t, str) for t in types)
        and isinstance(shapes, dict)
        and all(map(_sizes, shapes.values()))
        and isinstance(values, dict)
        and all(isinstance(v, (bool, int, float)) for v in values.values())
        and (given is None or _sizes(given))
    )
    if not good:
        return None
    return Miss(
        kernel.partition(":")[2],
        ", ".join(types),
        tuple(given or ()),
        Config(),
        "record",
        kernel,
        source,
        tuple(types),
        tuple((name, tuple(shape)) for name, shape in shapes.items()),
        tuple(values.items()),
        None if given is None else tuple(given),
    )


def _sizes(data: Any) -> bool:
    return isinstance(data, list) and all(type(n) is int and n >= 0 for n in data)


# One entry for each open context, in the order of opening: its list, and the file that it writes or None.
_records: dict[object, tuple[list[Miss], Path | None]] = {}
# How often a context was opened or closed.
_changes = 0
_lock = threading.Lock()
# Lines that this process has written, by file: each miss is written once.
_written: set[tuple[Path, str]] = set()


@contextlib.contextmanager
def frozen(record: list[Miss] | str | os.PathLike[str] | None = None) -> Iterator[list[Miss]]:
    """Never tune, in all threads, while the context lasts: unknown calls run the nearest known or default
    configuration.

    Parameters
    ----------
    record
        A list to append the misses to (a new one by default), or a file to append them to as lines of JSON, which
        `jlkern tune --from FILE` works off. The file says which kernels, types and shapes; of the arguments it holds
        only the numbers that `ndrange=` or `key=` read.

    Yields
    ------
    list of Miss
        The calls that would have been tuned, each kind of call once.

    Raises
    ------
    OptionError
        `record=` is neither.

    >>> with frozen() as misses:
    ...     pass
    >>> misses
    []
    """
    global _changes
    if record is not None and not isinstance(record, (list, str, os.PathLike)):
        raise OptionError(
            f"frozen(record=) takes a list to append the misses to, or the path of a file, got {record!r}; without it "
            "the context itself yields a list"
        )
    misses = record if isinstance(record, list) else []
    file = None if record is None or isinstance(record, list) else Path(record)
    mine = object()
    with _lock:
        _records[mine] = misses, file
        _changes += 1
    try:
        yield misses
    finally:
        with _lock:
            del _records[mine]
            _changes += 1


def frozen_state() -> Hashable:
    """Return None, or while tuning is off what tells this time from every other: the plans made in it end with it."""
    from jlkern.knobs import knobs

    return (_changes, knobs.record) if _records or knobs.frozen else None


def is_frozen() -> bool:
    """Tell whether tuning is off now."""
    from jlkern.knobs import knobs

    return bool(_records) or knobs.frozen


def record_miss(miss: Miss) -> None:
    """Note a miss, once, in every open `frozen` context, and in the file of JLKERN_RECORD."""
    from jlkern.knobs import knobs

    files = [] if knobs.record is None else [knobs.record]
    for misses, file in list(_records.values()):
        if miss not in misses:
            misses.append(miss)
        if file is not None:
            files.append(file)
    for file in files:
        _write(file, miss.line())


def _write(file: Path, line: str) -> None:
    if (file, line) in _written:
        return
    _written.add((file, line))
    try:
        # One write to a file that is opened for appending: lines of several processes do not mix.
        with open(file, "ab", buffering=0) as out:
            out.write(line.encode() + b"\n")
    except OSError as problem:
        log.event(_log, logging.WARNING, "a miss can not be recorded", file=file, problem=problem)
