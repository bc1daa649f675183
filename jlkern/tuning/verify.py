"""Comparing a candidate's outputs with the reference's.

Bools and integers must be equal. Floats and complex numbers may differ by the rounding of a reordered sum: relative to
the element, and to the output's root mean square, since a sum's small result may come of large terms. NaN and the
infinities must be in the same places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from jlkern.errors import OptionError
from jlkern.tuning.task import Compare, Tolerance

# Beyond these a result is wrong, however long the sum was.
LARGEST: Final = {2: 0.1, 4: 1e-2, 8: 1e-6}
# Compared at a time, so that large outputs need little more memory than they have.
CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class Limits:
    """An element may differ by `relative` of it plus `absolute` plus `scaled` of the output's root mean square."""

    relative: float = 0.0
    absolute: float = 0.0
    scaled: float = 0.0


def default_limits(dtype: np.dtype[Any], length: int) -> Limits:
    """Return the limits for an output's type, when each element may come of a sum of `length` terms.

    >>> default_limits(np.dtype("int32"), 1000)
    Limits(relative=0.0, absolute=0.0, scaled=0.0)
    """
    if dtype.kind not in "fc":
        return Limits()
    size = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    # Rounding errors of a sum grow as a random walk; the factor covers fused and reordered operations.
    tolerance = float(np.finfo(dtype).eps) * (16 + 4 * math.sqrt(length))
    tolerance = min(tolerance, LARGEST.get(size, 1e-6))
    return Limits(tolerance, 0.0, tolerance)


def reduction_length(arrays: Iterable[np.ndarray[Any, Any]], output: np.ndarray[Any, Any]) -> int:
    """Estimate how many terms an element of the output may come of: the longest dimension, or the inputs per output.

    >>> reduction_length([np.zeros((8, 300)), np.zeros((300, 8))], np.zeros((8, 8)))
    300
    """
    longest = 1
    for array in arrays:
        longest = max([longest, *array.shape, array.size // max(1, output.size)])
    return longest


def given_limits(tolerance: Tolerance | Mapping[str, Tolerance] | None, name: str) -> Limits | None:
    """Return what the user's `tolerance=` says about an output, or None."""
    if isinstance(tolerance, Mapping):
        tolerance = tolerance.get(name)
    if tolerance is None:
        return None
    pair = tolerance if isinstance(tolerance, tuple) else (tolerance, None)
    numbers = [n for n in pair if n is not None]
    good = all(isinstance(n, (int, float)) and not isinstance(n, bool) and n >= 0 for n in numbers)
    if len(pair) != 2 or not numbers or not good:
        raise OptionError(f"tolerance= must be a number or (relative, absolute), both >= 0, got {tolerance!r}")
    relative, absolute = pair
    if absolute is None:
        return Limits(float(relative), 0.0, float(relative))
    return Limits(float(relative), float(absolute), 0.0)


def difference(
    name: str,
    got: Any,
    want: Any,
    limits: Limits | None = None,
    length: int = 1,
    made_of: np.dtype[Any] | None = None,
) -> str | None:
    """Return how `got` differs from `want`, with the first index and both values; or None when they agree.

    Arguments
    ---------
    name: how the message calls the output.
    got, want: arrays or numbers.
    limits: the user's, else those of `want`'s type for sums of `length` terms.
    made_of: the type of what both were computed from, where that is another: a sum in Float64 of Float32 numbers is as
        precise as these are.
    """
    a, b = np.asarray(got), np.asarray(want)
    if a.shape != b.shape:
        return f"{name} has the shape {a.shape}, the reference {b.shape}"
    if a.dtype.kind not in "biufc" or b.dtype.kind not in "biufc":
        same = bool(np.array_equal(a, b))
        return None if same else f"{name} is {got!r}, the reference has {want!r}"
    if a.dtype == b.dtype and np.array_equal(a, b):
        return None  # what most candidates do, and by far the shortest to find out
    if limits is None:
        kinds = [a.dtype, b.dtype]
        if made_of is not None and b.dtype.kind in "fc":
            kinds.append(made_of)
        limits = default_limits(_coarser(*kinds), length)
    # Column-major arrays are gone through in their own order: flattening them in the other one would copy them.
    turned = a.ndim > 1 and a.flags.f_contiguous and b.flags.f_contiguous
    if turned:
        a, b = a.T, b.T
    scale = limits.absolute + limits.scaled * (_rms(b) if limits.scaled else 0.0)
    first: int | None = None
    count, worst = 0, 0.0
    flat_a, flat_b = a.reshape(-1), b.reshape(-1)
    for start in range(0, b.size, CHUNK):
        x, y = flat_a[start : start + CHUNK], flat_b[start : start + CHUNK]
        bad, apart = _differing(x, y, limits.relative, scale)
        if bad.any():
            if first is None:
                first = start + int(bad.argmax())
            count += int(bad.sum())
            worst = max(worst, float(np.max(apart[bad])))
    if first is None:
        return None
    where = [int(i) for i in np.unravel_index(first, b.shape)]
    index = ", ".join(map(str, where[::-1] if turned else where))
    place = f"{name}[{index}]" if b.ndim else name
    values = f"{place} is {flat_a[first]}, the reference has {flat_b[first]}"
    return f"{values}; {count} of {b.size} differ, by up to {worst:.3g}"


def compare_outputs(
    got: Mapping[str, Any],
    want: Mapping[str, Any],
    lengths: Mapping[str, int],
    compare: Compare | None = None,
    tolerance: Tolerance | Mapping[str, Tolerance] | None = None,
) -> str | None:
    """Return how a candidate's outputs differ from the reference's, or None.

    `compare` maps an output's name to None (not compared) or to a function whose results are compared instead.
    """
    compare = compare or {}
    for name, reference in want.items():
        view: Callable[[Any], Any] | None = compare.get(name, _same)
        if view is None:
            continue
        shown = name if view is _same else f"{getattr(view, '__name__', 'compare')}({name})"
        limits, length = given_limits(tolerance, name), lengths.get(name, 1)
        problem = difference(shown, view(got[name]), view(reference), limits, length, getattr(reference, "dtype", None))
        if problem is not None:
            return problem
    return None


def check_compare(compare: Compare, outputs: Iterable[str]) -> None:
    """Raise `OptionError` when `compare=` names something that is no output, or maps it to no function."""
    known = sorted(outputs)
    for name, view in compare.items():
        if name not in known:
            raise OptionError(f"compare= names {name!r}, which is none of the outputs {', '.join(known) or '(none)'}")
        if view is not None and not callable(view):
            raise OptionError(f"compare= maps {name} to {view!r}; it must be a function or None")


def _coarser(*kinds: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type whose rounding decides: a reference in more precision does not make the output more precise."""
    floats = [d for d in kinds if d.kind in "fc"]
    return max(floats, key=lambda d: float(np.finfo(d).eps)) if floats else np.result_type(*kinds)


def _same(output: Any) -> Any:
    return output


def _rms(array: np.ndarray[Any, Any]) -> float:
    """Return the root mean square of the finite elements."""
    flat = array.reshape(-1)
    total, count = 0.0, 0
    for start in range(0, flat.size, CHUNK):
        part = np.abs(flat[start : start + CHUNK].astype(np.complex128 if array.dtype.kind == "c" else np.float64))
        part = part[np.isfinite(part)]
        with np.errstate(over="ignore"):
            total += float(np.sum(part * part))
        count += part.size
    return math.sqrt(total / count) if count and math.isfinite(total) else 0.0


def _differing(
    x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], relative: float, scale: float
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return which elements differ by more than allowed, and by how much all of them differ."""
    kinds = x.dtype.kind + y.dtype.kind
    if relative == 0 and scale == 0 and not set(kinds) & set("fc"):
        bad = x != y
        return bad, np.abs(x.astype(np.float64) - y.astype(np.float64))
    wide = np.complex128 if "c" in kinds else np.float64
    u, v = x.astype(wide), y.astype(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(u - v)
        bad = apart > relative * np.abs(v) + scale
    odd = ~(np.isfinite(u) & np.isfinite(v))
    if odd.any():
        # NaN agrees with NaN, an infinity only with itself.
        bad[odd] = ~_same_odd(u[odd], v[odd])
        apart = np.where(odd, np.inf, apart)
    return bad, apart


def _same_odd(u: np.ndarray[Any, Any], v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    # A complex number with a NaN in it is just not a number: which part holds it depends on the order of operations.
    same: np.ndarray[Any, Any] = (np.isnan(u) & np.isnan(v)) | (u == v)
    return same
