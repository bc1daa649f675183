"""Where arrays lie in memory, and which of them share it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """The bytes that an array's elements lie in, from `low` to before `high`."""

    low: int
    high: int


def span_at(start: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Span:
    """Return where an array lies whose first element is at an address; negative strides count.

    >>> span_at(100, (3, 2), (-8, 4), 4)
    Span(low=84, high=108)
    """
    if 0 in shape:
        return Span(start, start)
    reach = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    low = start + sum(r for r in reach if r < 0)
    return Span(low, start + sum(r for r in reach if r > 0) + itemsize)


def groups(spans: Sequence[Span], written: Iterable[int]) -> list[list[int]]:
    """Group what has to be copied together: each written array, and whatever overlaps it, directly or through others.

    Overlap is judged by the spans, so that interleaved arrays (every other column) are copied together too.

    >>> groups([Span(0, 8), Span(4, 12), Span(20, 24)], [0])
    [[0, 1]]
    """
    left = set(range(len(spans)))
    found: list[list[int]] = []
    for first in sorted(written):
        if first not in left:
            continue
        left.discard(first)
        group, todo = [first], [first]
        while todo:
            a = spans[todo.pop()]
            touching = [i for i in left if a.low < spans[i].high and spans[i].low < a.high]
            left.difference_update(touching)
            group += touching
            todo += touching
        found.append(sorted(group))
    return found
