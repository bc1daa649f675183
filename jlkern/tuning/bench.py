"""Honest timing: how samples are taken, and what may be concluded from them.

The first half works on plain lists of numbers; only the second takes samples. Times are never averaged: noise adds to a
time and never takes away, so a list's lower quartile stands for it, which stays what it was when every second sample
was held up by something else. Contenders are compared by samples that were taken in turn, round by round, so that a
drift of the machine's speed meets all of them.

On a busy machine a parallel launch may take a hundred times longer at random. So a sample that took much longer than
others of its launcher is taken once more, on another core, and a list that scatters by more than `WILD` even so is
judged by its fast samples alone.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from jlkern.tuning.cores import change_core

# A gain below this is not worth leaving the default for, nor is it told apart from where the arrays happen to lie.
LEAST_GAIN: Final = 0.01
# The chance of calling a contender faster than the default though it is not.
ALPHA: Final = 0.01
# With few samples, all of one must lie below all of the other by this much. (samples, margin), the first that applies.
SEPARATION: Final = ((5, LEAST_GAIN), (4, 0.05), (3, 0.10), (2, 0.25))
# Contenders whose times differ by less than this are a tie when the samples do not tell them apart either.
TIE: Final = 0.02
# The quantile that stands for a list.
LOW: Final = 0.25
# A spread from which on no quantile means anything.
WILD: Final = 1.0
# The part of a wild list that counts: up to this many times the least sample, and how many there have to be.
FAST: Final = 2.0
FAST_SAMPLES: Final = 5
# How many of the fastest samples of a pair are looked at, at least; of many samples it is their fastest quarter.
FASTEST: Final = 10
# And by how much the fast samples have to be apart.
FAST_GAIN: Final = 0.05
# A factor between two contenders that may be the machine's doing: a few more samples have to agree on it.
SUSPECT: Final = 10.0
SUSPECT_SAMPLES: Final = 9
# A sample that took this many times the least of its launcher was held up, as by half when two threads share a core: it
# is taken once more.
HELD_UP: Final = 1.5
# Times so many times the best's are no mistake, not even of samples that ran at half their speed.
HOPELESS: Final = 2.2
SLOWER: Final = 1.2
# Seconds of a launch that are long beside whatever holds it up.
LONG: Final = 0.02
# Seconds without a launch after which threads may sleep: a short kernel is launched once before it is timed, since what
# counts is what a caller's loop sees, not how long it takes to wake them where others have their cores.
PAUSE: Final = 5e-5
# Seconds that a sample of short launches takes.
TARGET: Final = 1e-3
# Rounds of a race: after which contenders that are behind are left out, one that is left alone wins, the default is
# left out for being beaten, contenders that are as good as tied end it; the most; and how the margin shrinks.
RACE_CUT: Final = 6
RACE_END: Final = 6
RACE_BEATEN: Final = 9
RACE_TIED: Final = 15
RACE_ROUNDS: Final = 61
RACE_MARGIN: Final = 0.5

# --- conclusions from samples -----------------------------------------------------------------------------------------


def quantile(samples: Sequence[float], q: float) -> float:
    """Return the q-quantile by linear interpolation.

    >>> quantile([4.0, 1.0, 2.0], 0.5)
    2.0
    """
    ordered = sorted(samples)
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low) if low != high else ordered[low]


def median(samples: Sequence[float]) -> float:
    """Return the median."""
    return quantile(samples, 0.5)


def spread(samples: Sequence[float]) -> float:
    """Return half the distance between the quartiles, relative to the median.

    Where the upper quartile is more than three times the least sample, half their distance relative to the least, which
    is more than 1 then.

    >>> spread([1.0, 1.0, 1.0, 9.0])
    1.0
    >>> spread([1.0, 1.0, 99.0, 99.0])
    49.0
    """
    least, upper, middle = min(samples), quantile(samples, 0.75), median(samples)
    if 0 < least < upper / (1 + 2 * WILD):
        return (upper - least) / (2 * least)
    return (upper - quantile(samples, 0.25)) / (2 * middle) if middle > 0 else 0.0


def wild(samples: Sequence[float]) -> bool:
    """Tell whether samples scatter so much that no quantile means anything."""
    return spread(samples) > WILD


def location(samples: Sequence[float]) -> float:
    """Return the time that samples stand for: their lower quartile, or the least one where they are wild.

    >>> location([1.0, 3.0, 2.0]), location([1.0, 99.0, 99.0])
    (1.5, 1.0)
    """
    return min(samples) if wild(samples) else quantile(samples, LOW)


def steady(samples: Sequence[float], window: int = 8, limit: float = 0.05) -> bool:
    """Tell whether the last samples neither scatter nor drift by more than `limit`."""
    last = list(samples[-window:])
    if len(last) < window:
        return False
    half = window // 2
    drift = abs(median(last[:half]) / median(last[half:]) - 1) if median(last[half:]) > 0 else 0.0
    return spread(last) <= limit and drift <= limit


@functools.lru_cache(maxsize=1024)
def _order(count: int, alpha: float) -> int:
    """Return the largest k such that the k-th smallest and largest enclose the median surely enough; 0 for none."""
    tail, k = 0.0, 0
    while k < count // 2:
        tail += math.comb(count, k) / 2**count
        if 2 * tail > alpha:
            break
        k += 1
    return k


def median_interval(samples: Sequence[float], alpha: float = ALPHA) -> tuple[float, float]:
    """Return an interval that holds the true median with confidence 1 - alpha, whatever the noise's distribution.

    Too few samples give (-inf, inf).

    >>> median_interval([float(i) for i in range(20)])
    (3.0, 16.0)
    """
    ordered = sorted(samples)
    k = _order(len(ordered), alpha)
    return (ordered[k - 1], ordered[-k]) if k else (-math.inf, math.inf)


def faster(a: Sequence[float], b: Sequence[float], alpha: float = ALPHA, gain: float = LEAST_GAIN) -> bool:
    """Tell whether `a` is faster than `b` by more than the noise and more than `gain`.

    `a[i]` and `b[i]` were sampled in the same round. One of these has to hold: the interval of the median of their
    ratios lies below 1 - gain; the fastest of all samples are `a`'s; every sample
    of `a` is below every one of `b`, by a margin that is larger for few samples. Where either is wild, pairs tell
    nothing, and the fast samples of `a` have to be below those of `b`.
    """
    n = min(len(a), len(b))
    if n == 0:
        return False
    if wild(a[:n]) or wild(b[:n]):
        fast, other = _fast(a[:n]), _fast(b[:n])
        few = min(len(fast), len(other)) < FAST_SAMPLES
        return not few and max(fast) < min(other) * (1 - max(FAST_GAIN, gain))
    ratios = [x / y if y > 0 else math.inf for x, y in zip(a[:n], b[:n], strict=True)]
    # Either of two tests may claim it, so each gets half of the chance to be wrong.
    if median_interval(ratios, alpha / 2)[1] < 1 - gain or _leads(a[:n], [y * (1 - gain) for y in b[:n]], alpha / 2):
        return True
    for least, margin in SEPARATION:
        if n >= least:
            # Outliers of a long list would hide what the bulk shows; there the tests above decide.
            return max(a[:n]) < min(b[:n]) * (1 - max(margin, gain))
    return False


def _leads(a: Sequence[float], b: Sequence[float], alpha: float) -> bool:
    """Tell whether the fastest of all samples are `a`'s more often than chance would have it.

    What holds samples up only makes slow ones slower, so it changes nothing here.
    """
    n = len(a)
    both = sorted([(x, 1) for x in b] + [(x, 2) for x in a])  # of equal ones, those of b count first
    first = max(min(n, FASTEST), n // 2)
    return sum(owner == 2 for _, owner in both[:first]) >= _majority(n, first, alpha)


@functools.lru_cache(maxsize=1024)
def _majority(n: int, first: int, alpha: float) -> int:
    """Return how many of the fastest of 2 n samples one of two equal contenders has with a chance of alpha at most."""
    tail, whole = 0.0, math.comb(2 * n, first)
    for ours in range(first, -1, -1):
        tail += math.comb(n, ours) * math.comb(n, first - ours) / whole
        if tail > alpha:
            return ours + 1
    return 0


def _fast(samples: Sequence[float]) -> list[float]:
    limit = FAST * min(samples)
    return [s for s in samples if s <= limit]


def choose(rounds: Sequence[Sequence[float]], default: int | None = 0, alpha: float = ALPHA) -> int:
    """Return which contender wins, given each one's samples by round; contenders are in the order that breaks ties.

    The leader is the one with the least location of those that beat the default beyond the noise; where there are none,
    or the default's own is less, the default wins. Else the first contender that beats the default and is no worse than
    the leader, within the noise and within `TIE`. An empty list is a contender that failed.
    """
    alive = [i for i, samples in enumerate(rounds) if samples]
    if not alive:
        raise ValueError("no contender has samples")
    # Each contender gets its own chance to beat the default by luck.
    alpha = alpha / max(1, len(alive) - 1)
    leader = min(alive, key=lambda i: location(rounds[i]))
    beats = [i for i in alive if default not in alive or faster(rounds[i], rounds[default or 0], alpha)]
    if default in alive and (leader == default or not beats):
        assert default is not None
        return default
    # One that was ahead in a few wild rounds only hides none that was proved to be better.
    leader = min(beats, key=lambda i: location(rounds[i]))
    best = location(rounds[leader])
    for i in alive:
        near = location(rounds[i]) <= best * (1 + TIE) and not faster(rounds[leader], rounds[i], alpha, gain=0.0)
        if i in beats and near:
            return i
    return leader


# --- taking samples ---------------------------------------------------------------------------------------------------


_awake = -math.inf  # when the last sample ended, by any stopwatch


@dataclass
class Stopwatch:
    """Samples one launcher.

    Arguments
    ---------
    launch: launches n times back to back and returns the seconds of all of it.
    restore: brings the written arrays back, outside the timed region; None where launches may follow each other, and
        then short kernels are timed in batches.
    batch: launches per sample.
    move: takes the calling thread to another core.
    """

    launch: Callable[[int], float]
    restore: Callable[[], None] | None = None
    batch: int = 1
    move: Callable[[], bool] = change_core
    taken: int = field(default=0, repr=False)
    least: float = field(default=math.inf, repr=False)

    def sample(self) -> float:
        """Return the seconds of one launch.

        When they are far more than the least so far, something else had the core of one of the threads, or two threads
        the same core, which can last for many launches: the calling thread moves, and the sample is taken once more.
        """
        seconds = self._once()
        if HELD_UP * self.least < seconds < LONG and self.move():
            self._once()  # caches are cold on the other core
            seconds = min(seconds, self._once())
        self.least = min(self.least, seconds)
        return seconds

    def _once(self) -> float:
        global _awake
        self.taken += 1
        if self.restore is not None:
            self.restore()
            seconds = self.launch(1)
        else:
            if self.least < LONG and time.perf_counter() - _awake > PAUSE:
                self.launch(1)
            seconds = self.launch(self.batch) / self.batch
        _awake = time.perf_counter()
        return seconds

    def calibrate(self, target: float = TARGET, most: int = 10_000, expected: float = 0.0) -> float:
        """Warm up and choose the batch so that a sample takes about `target` seconds; return a first estimate.

        `expected` is what others took just now: a first launch that takes much longer is made on another core as well.
        """
        once = self._once()
        if HELD_UP * expected < once < LONG and self.move():
            once = min(once, self._once())
        if once < LONG:  # the first ones were cold, and what holds a launch up may do so twice
            once = min(once, self._once(), self._once())
        self.least = once
        if self.restore is not None or once >= target:
            return once
        while True:
            seconds = self.sample()
            if self.batch >= most:
                return seconds
            if seconds * self.batch >= target / 2:
                self.batch = min(most, max(self.batch, round(target / seconds)))
                return seconds
            grown = math.ceil(target / seconds) if seconds > 0 else most
            self.batch = max(self.batch * 2, min(grown, self.batch * 16))
            self.batch = min(self.batch, most)


def settle(sample: Callable[[], float], over: Callable[[], bool], most: int = 32) -> tuple[list[float], bool]:
    """Sample until steady; return the last samples and whether they are steady.

    A kernel so slow that the budget ends first is judged by what there is, by two samples at least.
    """
    samples: list[float] = []
    for _ in range(most):
        samples.append(sample())
        if steady(samples):
            return samples[-8:], True
        if len(samples) >= 2 and over():
            return samples[-8:], steady(samples, min(8, len(samples)))
    return samples[-8:], False


def measure(
    sample: Callable[[], float],
    best: float = math.inf,
    over: Callable[[], bool] = lambda: False,
    few: int = 3,
    enough: int = 5,
    loser: float = HOPELESS,
    move: Callable[[], bool] = lambda: False,
) -> list[float]:
    """Sample one candidate of a search: `few` times cheaply, and on to `enough` only when it may rank near the best.

    A candidate is dropped once even its fastest sample is `loser` times slower than the best so far. One that is
    slower, but by less, may run at half its speed for a while: its last samples are taken on another core.
    `over` tells that the candidate has had its share of time; one sample is taken at least. Wild samples get five times
    as many.
    """
    samples: list[float] = []
    suspect = moved = False
    while len(samples) < enough or (suspect and len(samples) < SUSPECT_SAMPLES) or _unsure(samples, 5 * enough):
        samples.append(sample())
        # The first sample may still be a cold one, so only a hopeless one ends it there.
        limit = best * (loser if len(samples) >= few else 2 * loser)
        # What is slower by far may just have been in the machine's way, so it gets every chance.
        suspect = min(samples) > SUSPECT * best
        if over() or (min(samples) > limit and not suspect):
            break
        if not moved and len(samples) >= few and not suspect:
            if min(samples) > SLOWER * best:
                moved = move()
            if not moved and spread(samples) < LEAST_GAIN:
                break
    return samples


def _unsure(samples: Sequence[float], most: int) -> bool:
    return len(samples) < most and wild(samples)


def race(
    samplers: Sequence[Callable[[], float]],
    default: int | None = 0,
    over: Callable[[], bool] = lambda: False,
    most: int = RACE_ROUNDS,
    alpha: float = ALPHA,
    least: int = 2,
) -> list[list[float]]:
    """Sample contenders in turn until they are told apart, or the rounds or the budget end; return their samples.

    At most `most` rounds, and `least` whatever `over` says: one round alone decides nothing.

    Each round samples every contender that is left, in alternating order. One drops out when it is slower than the
    leader beyond the noise, or behind it by a margin that shrinks with the rounds; by how much any of them may be off
    then is little. Those that are slower by far get some more rounds. The default stays until it is beaten beyond the
    noise, whatever its distance. The race ends when nobody but the leader and what ties with it is left. A sample that
    is not finite or not positive drops its contender altogether.
    """
    rounds: list[list[float]] = [[] for _ in samplers]
    left = list(range(len(samplers)))
    if not left:
        return rounds
    each = alpha / max(1, len(left) - 1)
    for number in range(most):
        for i in left if number % 2 == 0 else left[::-1]:
            seconds = samplers[i]()
            if math.isfinite(seconds) and seconds > 0:
                rounds[i].append(seconds)
            else:
                rounds[i] = []
        left = [i for i in left if rounds[i]]
        done = number + 1
        if len(left) < 2 or (done >= least and over()):
            break
        places = {i: location(rounds[i]) for i in left}
        leader = min(left, key=lambda i: places[i])
        suspect = [i for i in left if places[i] > SUSPECT * places[leader]]
        slower = [i for i in left if i != leader and faster(rounds[leader], rounds[i], each)]
        # What others do may halve the speed of a few samples in a row; the least of them is what may yet be right.
        behind = {i: min(rounds[i]) / places[leader] for i in left}
        if done < RACE_CUT:
            out = {i for i in slower if i != default and behind[i] > HOPELESS}
        else:
            margin = TIE + RACE_MARGIN / done
            out = {i for i in left if i != default and (i in slower or behind[i] > 1 + margin)}
        out -= {leader, *(suspect if done < FAST_SAMPLES else ())}
        if default in slower and done >= RACE_BEATEN:
            out.add(default)
        open_ones = [i for i in left if i != leader and i not in out and i not in slower]
        tied = done >= RACE_TIED and all(places[i] <= places[leader] * (1 + TIE) for i in open_ones)
        if done >= RACE_END * (2 if suspect else 1) and (tied or not open_ones):
            break
        left = [i for i in left if i not in out]
    return rounds
