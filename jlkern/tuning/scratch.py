"""Scratch copies of what a kernel writes, so that a tuning run never touches its caller's arrays.

A copy has the original's strides, its place within a page of memory (what vector units and caches see), and its
overlap with other arguments: arrays that share memory are rebuilt as views of one new block, in the same places. Arrays
that are only read, and share no memory with a written one, are passed as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from jlkern import log
from jlkern.errors import TuningError
from jlkern.spans import Span, groups, span_at

PAGE: Final = 4096

_log = log.get(__name__)


class ScratchTooLarge(Exception):
    """The copies would need more memory than the limit allows."""


def span(array: np.ndarray[Any, Any]) -> Span:
    """Return where an array lies in memory; negative strides count."""
    return span_at(int(array.__array_interface__["data"][0]), array.shape, array.strides, array.itemsize)


@dataclass
class Scratch:
    """The arguments to run candidates on, and what brings the copied ones back to the caller's content.

    `args` are all arguments in order; `outputs` maps each written array's name to its copy; `kept` are copies of
    outputs, each with one of the caller's content beside it (for `make_scratch` with `allocate` only); `alone` are the
    outputs that share memory with no other argument.
    """

    args: tuple[Any, ...]
    outputs: dict[str, np.ndarray[Any, Any]]
    bytes: int
    kept: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]
    _pairs: dict[str, list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]]
    alone: frozenset[str]
    _all: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]

    def refresh(self) -> None:
        """Bring everything back, also what is only read: a candidate may have written where it should not."""
        for copy, original in self._all:
            np.copyto(copy, original)

    def restore(self, names: Iterable[str] | None = None) -> None:
        """Copy the caller's content into the copies of these outputs, with all that overlaps them; None is all."""
        for name in self._pairs if names is None else names:
            for copy, original in self._pairs[name]:
                np.copyto(copy, original)

    def bytes_of(self, names: Iterable[str]) -> int:
        """Return the bytes of these outputs and what overlaps them."""
        return sum(copy.nbytes for name in names for copy, _ in self._pairs[name])

    def restorer(self, names: Iterable[str]) -> Callable[[], None] | None:
        """Return a function that restores just these outputs, or None when there are none."""
        pairs = [pair for name in names for pair in self._pairs.get(name, ())]
        distinct = list({id(copy): (copy, original) for copy, original in pairs}.values())
        if not distinct:
            return None

        def restore() -> None:
            for copy, original in distinct:
                np.copyto(copy, original)

        return restore

    def poison(self, names: Iterable[str], reference: dict[str, np.ndarray[Any, Any]]) -> None:
        """Fill outputs with what differs from the reference everywhere, so that what is not written shows.

        Only outputs that share memory with no other argument can be filled so; others keep their content.
        """
        for name in names:
            if name in self.alone and name in reference:
                np.copyto(self.outputs[name], opposite(reference[name]))


def make_scratch(
    names: Sequence[str],
    args: Sequence[Any],
    written: Iterable[str],
    limit: int,
    allocate: Callable[[int], np.ndarray[Any, Any]] | None = None,
    kept: Iterable[str] = (),
) -> Scratch:
    """Copy the written arrays and everything that overlaps them.

    With `allocate`, which returns that many bytes of memory, all arrays are copied to what it gives, and those named in
    `kept` twice.

    Raises
    ------
    ScratchTooLarge: when copies and reference results together need more than `limit` bytes.
    TuningError: for an array that can not be copied with its layout.
    """
    written = set(written)
    places = [i for i, (name, arg) in enumerate(zip(names, args, strict=True)) if name in written or _is_array(arg)]
    for i in places:
        if not isinstance(args[i], np.ndarray):
            raise TuningError(
                f"the argument {names[i]} is a {type(args[i]).__module__}.{type(args[i]).__qualname__}; "
                "only NumPy arrays can be copied for tuning here"
            )
    arrays = [np.asarray(args[i]) for i in places]
    wanted = [k for k, i in enumerate(places) if names[i] in written]
    for k in wanted:
        _check(names[places[k]], arrays[k])
    spans = [span(a) for a in arrays]
    copied = groups(spans, wanted if allocate is None else range(len(arrays)))
    twice = set(kept) if allocate is not None else set()
    blocks = [Span(min(spans[k].low for k in g), max(spans[k].high for k in g)) for g in copied]
    size = sum(block.high - block.low + PAGE for block in blocks)
    for group, block in zip(copied, blocks, strict=True):
        size += block.high - block.low + PAGE if twice & {names[places[k]] for k in group} else 0
    total = size + sum(arrays[k].nbytes for k in wanted)
    if total > limit:
        raise ScratchTooLarge(
            f"tuning needs {total} bytes for copies of {', '.join(sorted(written))}, JLKERN_SCRATCH_LIMIT is {limit}"
        )

    result = list(args)
    outputs: dict[str, np.ndarray[Any, Any]] = {}
    pairs: dict[str, list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]] = {}
    alone = set()
    beside, everything = [], []
    for group, block in zip(copied, blocks, strict=True):
        try:
            views = _rebuild([arrays[k] for k in group], [spans[k] for k in group], block, allocate)
            if twice & {names[places[k]] for k in group}:
                others = _rebuild([arrays[k] for k in group], [spans[k] for k in group], block, allocate)
                beside += list(zip(views, others, strict=True))
                everything += [(other, arrays[k]) for other, k in zip(others, group, strict=True)]
        except MemoryError:
            raise ScratchTooLarge(f"there is no memory for copies of {', '.join(sorted(written))}") from None
        both = [(view, arrays[k]) for view, k in zip(views, group, strict=True)]
        everything += both
        for view, k in zip(views, group, strict=True):
            name = names[places[k]]
            if name in written:
                outputs[name] = view
                pairs[name] = both
                if len(group) == 1:
                    alone.add(name)
        for view, k in zip(views, group, strict=True):
            argument = view
            if names[places[k]] not in written and not arrays[k].flags.writeable:
                argument = view.view()
                argument.flags.writeable = False
            result[places[k]] = argument
    log.event(_log, logging.INFO, "scratch", bytes=total, arrays=" ".join(sorted(outputs)))
    scratch = Scratch(tuple(result), outputs, total, beside, pairs, frozenset(alone), everything)
    scratch.refresh()
    return scratch


def opposite(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array of the same type that differs from `array` in every element, also where that is not a number."""
    result: np.ndarray[Any, Any] = array.copy()
    if array.dtype.kind == "b":
        np.logical_not(array, out=result)
    elif array.dtype.kind in "iu":
        np.bitwise_xor(array, array.dtype.type(1), out=result)
    else:
        result[...] = np.where(np.isfinite(array), np.nan, 0)
    return result


def _is_array(arg: Any) -> bool:
    return isinstance(arg, np.ndarray) or hasattr(arg, "__cuda_array_interface__") or hasattr(arg, "__dlpack__")


def _check(name: str, array: np.ndarray[Any, Any]) -> None:
    """Refuse a written array that overlaps itself: its copy could not be brought back element by element."""
    steps = sorted((abs(s), n) for n, s in zip(array.shape, array.strides, strict=True) if n > 1)
    reach = array.itemsize
    for step, n in steps:
        if array.size and step < reach:
            raise TuningError(
                f"the elements of the written array {name} overlap each other; it can not be copied for tuning"
            )
        reach += step * (n - 1)


def _rebuild(
    arrays: Sequence[np.ndarray[Any, Any]],
    spans: Sequence[Span],
    block: Span,
    allocate: Callable[[int], np.ndarray[Any, Any]] | None = None,
) -> list[np.ndarray[Any, Any]]:
    """Return views of one new block that lie in it as the arrays lie in theirs."""
    size = block.high - block.low
    memory = np.empty(size + PAGE, np.uint8) if allocate is None else allocate(size + PAGE)
    start = int(memory.__array_interface__["data"][0])
    shift = (block.low - start) % PAGE
    views = []
    for array in arrays:
        if array.size == 0:
            views.append(np.empty_like(array))
            continue
        offset = int(array.__array_interface__["data"][0]) - block.low + shift
        views.append(np.ndarray(array.shape, array.dtype, memory, offset, array.strides))
    return views
