"""What launching needs to know of a lowered kernel beside its code; as data, it is kept on the disk."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jlkern import disk
from jlkern.engines.numba.emit.block import ArraySlots, Layout, layout

if TYPE_CHECKING:
    from jlkern.engines.base import CompileRequest
    from jlkern.engines.numba.lower.simt import Kernel


@dataclass(frozen=True, slots=True)
class Failure:
    """What a failed check means: error class name, message template, the details' types, line in the source."""

    error: str
    message: str
    types: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Facts:
    """A kernel for one configuration and signature: `cost` is about how many simple instructions a work-item is."""

    workgroup: tuple[int, ...]
    failures: tuple[Failure, ...]
    place: Layout
    cost: float


def facts_of(kernel: Kernel, cost: float) -> Facts:
    """Return the facts of a lowered kernel."""
    from jlkern.engines.numba.emit.regions import walk
    from jlkern.engines.numba.lower.simt import Check

    types: dict[int, tuple[str, ...]] = {}
    for stmt in walk(kernel.body):
        if isinstance(stmt, Check) and not stmt.soft:
            types.setdefault(stmt.site, tuple(d.ty for d in stmt.details))
    failures = tuple(
        Failure(site.error, site.message, types.get(number, ()), site.line)
        for number, site in enumerate(kernel.sites, 1)
    )
    return Facts(kernel.workgroup, failures, layout(kernel), cost)


# --- on the disk ------------------------------------------------------------------------------------------------------


def load_facts(request: CompileRequest) -> tuple[Facts, str] | None:
    """Return the facts and the emitted text for a request that was compiled in another process, or None."""
    return disk.read(_key(request), _from_data)


def save_facts(request: CompileRequest, facts: Facts, text: str) -> None:
    """Keep the facts and the emitted text for a request."""
    data = {
        "workgroup": facts.workgroup,
        "failures": [[f.error, f.message, f.types, f.line] for f in facts.failures],
        "entries": [_described(entry) for entry in facts.place.entries],
        "length": facts.place.length,
        "cost": facts.cost,
    }
    disk.write(_key(request), data, text.encode())


def _key(request: CompileRequest) -> str:
    """Return all that lowering and emission depend on. Values are told apart by repr, since True == 1 == 1.0."""
    source = request.source
    asked = (
        source.text,
        source.name,
        source.vals,
        request.signature,
        sorted(request.params.items()),
        request.workgroup,
        request.ndims,
        sorted(request.written),
        request.schedule,
        request.check_bounds,
    )
    return json.dumps(["launcher", *map(repr, asked)])


def _from_data(data: Any, text: bytes) -> tuple[Facts, str]:
    failures = tuple(Failure(error, message, tuple(types), line) for error, message, types, line in data["failures"])
    entries = tuple(map(_entry, data["entries"]))
    return Facts(tuple(data["workgroup"]), failures, Layout(entries, data["length"]), data["cost"]), text.decode()


def _described(entry: ArraySlots | range | None) -> list[Any] | None:
    if entry is None:
        return None
    return ["array", entry.first, entry.ndim] if isinstance(entry, ArraySlots) else ["leaves", entry.start, entry.stop]


def _entry(data: Any) -> ArraySlots | range | None:
    if data is None:
        return None
    kind, first, second = data
    return ArraySlots(first, second) if kind == "array" else range(first, second)
