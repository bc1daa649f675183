"""The default strategy: a model of the time over the space says which configuration to try next.

A few evaluations spread over the space come first. From then on, a Gaussian process over the tunables' values is fitted
to the logarithms of the times, and the configuration from which most improvement is to be expected is next. How far a
value's influence reaches is a length for each tunable, chosen by the likelihood of what was measured.

It is a strategy in Kernel Tuner's sense, and asks its runner as the others do. It sees each value as its index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]

# Evaluations before the first model.
SPREAD: Final = 4
# Random configurations of which each of them is the one farthest from those before.
AMONG: Final = 30
# Configurations that a model looks at, besides the neighbours of the best; larger spaces are sampled.
LOOKED_AT: Final = 4000
# Lengths to choose from; coordinates go from 0 to 1.
LENGTHS: Final = (0.15, 0.3, 0.6, 1.2, 2.5, 6.0)
# Variances of what the model does not explain, relative to the whole.
NOISES: Final = (1e-4, 1e-3, 1e-2)
# Evaluations that a model is made of: the best ones and the latest ones, half of each.
MODELLED: Final = 200
# Times beyond this many times the best are all the same: far from it, nobody needs to know.
FAR: Final = 6.0


class Surrogate:
    """A strategy; `coordinates` has, for each tunable, a row for each of its values."""

    coded: Final = True  # it wants indices

    def __init__(self, coordinates: Sequence[Array]) -> None:
        self.coordinates = coordinates

    def tune(self, searchspace: Any, runner: Any, tuning_options: Any) -> list[Any]:
        """Evaluate until the runner's budget is spent or everything was evaluated."""
        indices = np.array([tuple(map(int, element)) for element in searchspace.list], dtype=np.int64)
        points, model = _points(self.coordinates, indices)
        done: list[int] = []
        times: list[float] = []
        while len(done) < len(indices):
            tuning_options.budget.raise_exception_if_done()
            place = _next(points, indices, model, done, times)
            (result,) = runner.run([searchspace.list[place]], tuning_options)
            done.append(place)
            times.append(float(result["time"]) if result is not None and "time" in result else math.inf)
        return []


def propose_next(
    coordinates: Sequence[Array],
    indices: np.ndarray[Any, np.dtype[np.int64]],
    known: Sequence[tuple[int, float | None]],
) -> int:
    """Return the row of `indices` to evaluate next; `known` has the rows that were, with their times or None."""
    points, model = _points(coordinates, indices)
    times = [math.inf if seconds is None else seconds for _, seconds in known]
    return _next(points, indices, model, [place for place, _ in known], times)


def _points(coordinates: Sequence[Array], indices: np.ndarray[Any, np.dtype[np.int64]]) -> tuple[Array, Model]:
    points = np.hstack([rows[indices[:, d]] for d, rows in enumerate(coordinates)])
    groups = np.repeat(np.arange(len(coordinates)), [rows.shape[1] for rows in coordinates])
    return points, Model(groups)


def _next(
    points: Array, indices: np.ndarray[Any, np.dtype[np.int64]], model: Model, done: list[int], times: list[float]
) -> int:
    if len(done) < SPREAD:
        return _far(points, done)
    return model.next(points, indices, done, np.array(times))


def coordinates(values: Sequence[Any]) -> Array:
    """Return where a tunable's values lie: numbers by their rank, so that powers of two are equally far apart.

    Other values are all equally far from each other.

    >>> coordinates([32, 8, 16]).tolist()
    [[1.0], [0.0], [0.5]]
    """
    if all(isinstance(value, (bool, int, float)) for value in values):
        rank = np.argsort(np.argsort(np.array(values, dtype=np.float64), kind="stable"), kind="stable")
        return rank[:, None] / max(1, len(values) - 1)
    return np.eye(len(values)) * math.sqrt(0.5)


def _far(points: Array, done: list[int]) -> int:
    """Return a random point that is far from those that were evaluated."""
    left = np.setdiff1d(np.arange(len(points)), done)
    some = np.random.choice(left, min(AMONG if done else 1, len(left)), replace=False)
    if not done:
        return int(some[0])
    apart = ((points[some][:, None, :] - points[done][None, :, :]) ** 2).sum(axis=2).min(axis=1)
    return int(some[int(apart.argmax())])


class Model:
    """A Gaussian process; `groups` has, for each coordinate, the number of its tunable."""

    def __init__(self, groups: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        self.groups = groups
        self.lengths = np.full(int(groups.max()) + 1, 0.6)
        self.noise = NOISES[1]

    def next(self, points: Array, indices: np.ndarray[Any, np.dtype[np.int64]], done: list[int], times: Array) -> int:
        """Return the place of the point, not evaluated yet, from which most improvement is to be expected."""
        good = np.isfinite(times)
        if not good.any():
            return _far(points, done)
        # What can not be used is taken for a bad time of those that there are: the worst would spoil its neighbours.
        times = np.where(good, times, np.quantile(times[good], 0.75))
        least = times.min()
        used = np.arange(len(done))
        if len(done) > MODELLED:
            used = np.union1d(np.argsort(times)[: MODELLED // 2], used[-MODELLED // 2 :])
        y = np.log(np.minimum(times[used], FAR * least))
        scale = float(y.std())
        if scale == 0:
            return _far(points, done)
        y = (y - y.mean()) / scale
        x = points[np.array(done)[used]]
        self.fit(x, y)
        left = np.setdiff1d(np.arange(len(points)), done)
        if len(left) > LOOKED_AT:
            best = indices[done[int(times.argmin())]]
            near = left[(indices[left] != best).sum(axis=1) <= 1]
            left = np.union1d(np.random.choice(left, LOOKED_AT, replace=False), near)
        mean, deviation = self.predict(x, y, points[left])
        gain = y.min() - mean
        z = gain / deviation
        expected = gain * _below(z) + deviation * np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        return int(left[int(expected.argmax())])

    def fit(self, x: Array, y: Array) -> None:
        """Choose lengths and noise, one after the other, by the likelihood of what was measured."""
        squares = [
            ((x[:, None, self.groups == d] - x[None, :, self.groups == d]) ** 2).sum(axis=2)
            for d in range(len(self.lengths))
        ]
        best = self._likelihood(squares, y)
        for d in np.random.permutation(len(self.lengths)):
            old = self.lengths[d]
            for length in LENGTHS:
                self.lengths[d] = length
                found = self._likelihood(squares, y)
                if found > best:
                    best, old = found, length
            self.lengths[d] = old
        kept = self.noise
        for self.noise in NOISES:
            found = self._likelihood(squares, y)
            if found > best:
                best, kept = found, self.noise
        self.noise = kept

    def _likelihood(self, squares: list[Array], y: Array) -> float:
        k = _kernel(sum(s / length**2 for s, length in zip(squares, self.lengths, strict=True)))
        k[np.diag_indices_from(k)] += self.noise
        try:
            factor = np.linalg.cholesky(k)
        except np.linalg.LinAlgError:
            return -math.inf
        half = np.linalg.solve(factor, y)
        n = len(y)
        variance = float(half @ half) / n
        # Lengths near 1 are likelier than extreme ones before anything is known.
        prior = float((np.log(self.lengths) ** 2).sum()) / 8
        return -0.5 * n * math.log(max(variance, 1e-12)) - float(np.log(np.diag(factor)).sum()) - prior

    def predict(self, x: Array, y: Array, others: Array) -> tuple[Array, Array]:
        """Return what is expected at other points, and the deviation from it."""
        scaled = 1 / self.lengths[self.groups]
        k = _kernel(_squares(x * scaled, x * scaled))
        k[np.diag_indices_from(k)] += self.noise
        factor = np.linalg.cholesky(k)
        cross = np.linalg.solve(factor, _kernel(_squares(x * scaled, others * scaled)))
        half = np.linalg.solve(factor, y)
        variance = float(half @ half) / len(y)
        spread = np.sqrt(np.maximum(1 - (cross**2).sum(axis=0), 1e-9) * max(variance, 1e-9))
        return half @ cross, spread


def _squares(a: Array, b: Array) -> Array:
    squares: Array = np.maximum((a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :] - 2 * a @ b.T, 0.0)
    return squares


def _kernel(squares: Any) -> Array:
    """Matern's of order 5/2."""
    r = np.sqrt(5 * squares)
    kernel: Array = (1 + r + r * r / 3) * np.exp(-r)
    return kernel


def _below(z: Array) -> Array:
    """Return the chance that a normal number is below z, to some digits (numpy has no error function)."""
    t = 1 / (1 + 0.2316419 * np.abs(z))
    poly = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail: Array = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) * poly
    below: Array = np.where(z >= 0, 1 - tail, tail)
    return below
