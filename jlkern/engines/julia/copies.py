"""NumPy arrays on a device: copied there before a launch, and what was written copied back.

Arrays that share memory, where one of them is written, are copied as one block and lie in it as they do in the host's
memory, so that a kernel sees the same overlap.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jlkern.devices import OWN_STREAM, DeviceArray
from jlkern.engines.julia import bridge
from jlkern.engines.julia.backends import Place, wait
from jlkern.engines.julia.owner import soon
from jlkern.errors import EngineError
from jlkern.spans import Span, groups, span_at

ALIGNMENT = 16
"""Arrays of several types in one block keep their addresses modulo this."""

FROM_HOST, TO_HOST, FROM_BLOCK = 0, 1, 2


class Block:
    """Bytes on a device, Julia's own or, at an address, another library's; freed with this object.

    All methods are for the owner's thread.
    """

    def __init__(self, place: Place, size: int, address: int = 0) -> None:
        self.place, self.size = place, max(size, 1)
        runtime = bridge.runtime()
        self.slot = runtime.block(place.slot, address, self.size)
        if not self.slot:
            raise _failed(place, f"no memory of {self.size} bytes")
        weakref.finalize(self, soon, runtime.free, self.slot).atexit = False

    def move(self, way: int, other: int, size: int, offset: int = 0) -> None:
        """Copy bytes from or to an address of the host, or all from another block."""
        if bridge.runtime().move(way, self.slot, offset, other, size):
            raise _failed(self.place, f"{size} bytes were not copied")


@dataclass(frozen=True)
class _Group:
    """Arrays of the host in one block: its bytes begin at `low` on the host and at `shift` in the block."""

    block: Block
    low: int
    size: int
    shift: int
    written: tuple[np.ndarray[Any, Any], ...]

    def upload(self) -> None:
        if self.size:
            self.block.move(FROM_HOST, self.low, self.size, self.shift)

    def download(self) -> None:
        if not self.size or not self.written:
            return
        first = self.written[0]
        if len(self.written) == 1 and first.nbytes == self.size:
            self.block.move(TO_HOST, self.low, self.size, self.shift)
            return
        # what lies between the elements is not this call's to write
        memory = np.empty(self.size, np.uint8)
        self.block.move(TO_HOST, memory.ctypes.data, self.size, self.shift)
        for array in self.written:
            offset = array.ctypes.data - self.low
            np.copyto(array, np.ndarray(array.shape, array.dtype, memory, offset, array.strides))


class Copies:
    """The arguments of one call with its NumPy arrays on a device: `args` are what is launched on."""

    def __init__(self, place: Place, args: Sequence[Any], written: Sequence[bool]) -> None:
        self.place = place
        places = [i for i, value in enumerate(args) if isinstance(value, np.ndarray)]
        arrays = [args[i] for i in places]
        spans = [_span(a) for a in arrays]
        wanted = [k for k, i in enumerate(places) if written[i]]
        together = groups(spans, wanted)
        alone = set(range(len(arrays))).difference(*together)
        self.groups: list[_Group] = []
        result = list(args)
        for members in [*together, *([k] for k in sorted(alone))]:
            low, high = min(spans[k].low for k in members), max(spans[k].high for k in members)
            shift = low % ALIGNMENT if len(members) > 1 else 0
            block = Block(place, high - low + shift)
            outputs = tuple(arrays[k] for k in members if written[places[k]] and arrays[k].flags.writeable)
            self.groups.append(_Group(block, low, high - low, shift, outputs))
            for k in members:
                a = arrays[k]
                result[places[k]] = DeviceArray(
                    place.device.kind,
                    place.device.index,
                    a.ctypes.data - low + shift,
                    a.dtype,
                    a.shape,
                    a.strides,
                    a.flags.writeable,
                    OWN_STREAM,
                    block,
                    block.slot,
                )
        self.args = tuple(result)
        self._before: list[tuple[_Group, Block]] = []

    def upload(self) -> None:
        """Copy the host's content to the device."""
        for group in self.groups:
            group.upload()

    def download(self) -> None:
        """Copy what was written back to the host."""
        for group in self.groups:
            group.download()

    def keep(self) -> None:
        """Keep a copy of the present content on the device, for `reset`."""
        for group in self.groups:
            if group.written:
                before = Block(self.place, group.block.size)
                before.move(FROM_BLOCK, group.block.slot, group.block.size)
                self._before.append((group, before))

    def reset(self) -> None:
        """Bring back the content of `keep`, without the host."""
        for group, before in self._before:
            group.block.move(FROM_BLOCK, before.slot, before.size)


def on_host(place: Place, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments with NumPy copies of device arrays, which overlap and are laid out as those."""
    places = [i for i, value in enumerate(args) if isinstance(value, DeviceArray)]
    arrays: list[DeviceArray] = [args[i] for i in places]
    spans = [a.span for a in arrays]
    result = list(args)
    if arrays:
        wait(place)
    for members in groups(spans, range(len(arrays))):
        low, high = min(spans[k].low for k in members), max(spans[k].high for k in members)
        memory = np.empty(high - low + ALIGNMENT, np.uint8)
        start = (low - memory.ctypes.data) % ALIGNMENT
        if high > low:
            block = Block(place, high - low, low)
            block.move(TO_HOST, memory.ctypes.data + start, high - low)
        for k in members:
            a = arrays[k]
            copy = np.ndarray(a.shape, a.dtype, memory, a.pointer - low + start if a.size else 0, a.strides)
            copy.flags.writeable = a.writeable
            result[places[k]] = copy
    return tuple(result)


def _span(array: np.ndarray[Any, Any]) -> Span:
    return span_at(array.ctypes.data, array.shape, array.strides, array.itemsize)


def _failed(place: Place, what: str) -> EngineError:
    problem = bridge.runtime().last_problem()
    device = place.device
    return EngineError(f"{device.kind}:{device.index} ({device.name}): {what}: {problem.kind}: {problem.message}")
