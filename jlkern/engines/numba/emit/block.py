"""The argument block: how a launch hands its arguments to compiled work-groups.

A block is a row of int64: the ndrange, then for every array its address, sizes and strides (in elements, complex ones
as whole), then the scalars' bits. Compiled code reads it; the launcher writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jlkern.engines.numba.lower.simt import Kernel


@dataclass(frozen=True, slots=True)
class ArraySlots:
    """Where an array's address stands; its sizes follow, then its strides."""

    first: int
    ndim: int

    @property
    def sizes(self) -> range:
        return range(self.first + 1, self.first + 1 + self.ndim)

    @property
    def strides(self) -> range:
        return range(self.first + 1 + self.ndim, self.first + 1 + 2 * self.ndim)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything stands in a block; one entry per parameter: array slots, the leaves' slots, or None."""

    entries: tuple[ArraySlots | range | None, ...]
    length: int


def layout(kernel: Kernel) -> Layout:
    """Return the block layout of a kernel."""
    from jlkern.engines.numba.lower.simt import ParamArray, ParamScalar

    at = len(kernel.workgroup)
    entries: list[ArraySlots | range | None] = []
    for param in kernel.params:
        if isinstance(param, ParamArray):
            entries.append(ArraySlots(at, param.ndim))
            at += 1 + 2 * param.ndim
        elif isinstance(param, ParamScalar):
            entries.append(range(at, at + len(param.leaves)))
            at += len(param.leaves)
        else:
            entries.append(None)
    return Layout(tuple(entries), at)
