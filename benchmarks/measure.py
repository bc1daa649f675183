"""Shared by the benchmarks: medians, and a table that sets every row in ratio to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def quantile(values: Sequence[float], q: float) -> float:
    """Return the q-quantile of some values, the nearest one that was measured."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(q * (len(ordered) - 1)))]


def median(values: Sequence[float]) -> float:
    """Return the median of some values, the nearest one that was measured."""
    return quantile(values, 0.5)


def print_table(
    rows: Mapping[str, Sequence[float]], base: str, unit: str, scale: float, skipped: Mapping[str, str]
) -> None:
    """Print one row per contender: median, the middle half of the samples, and the ratio to `base`."""
    width = max(len(name) for name in [*rows, *skipped])
    print(f"{'':{width}}  {'median ' + unit:>12}  {'25 % .. 75 %':>19}  {'x ' + base:>{max(8, len(base) + 2)}}")
    reference = median(rows[base])
    for name, values in rows.items():
        middle = f"{quantile(values, 0.25) * scale:.3f} .. {quantile(values, 0.75) * scale:.3f}"
        ratio = f"{median(values) / reference:.2f}"
        print(f"{name:{width}}  {median(values) * scale:12.3f}  {middle:>19}  {ratio:>{max(8, len(base) + 2)}}")
    for name, reason in skipped.items():
        print(f"{name:{width}}  skipped: {reason}")
