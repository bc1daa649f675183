"""Timing rules on synthetic times: no test looks at a real clock."""

from __future__ import annotations

import itertools
import math
import os
import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlkern.tuning.bench import (
    Stopwatch,
    choose,
    faster,
    location,
    measure,
    median,
    median_interval,
    quantile,
    race,
    settle,
    spread,
    steady,
    wild,
)
from jlkern.tuning.cores import change_core


class Machine:
    """Times with noise that only adds, rare spikes, and a speed that drifts with every sample taken."""

    def __init__(self, seed: int, noise: float = 0.02, spikes: float = 0.05, drift: float = 0.0) -> None:
        self.rng = random.Random(seed)
        self.noise, self.spikes, self.drift = noise, spikes, drift
        self.taken = 0

    def sampler(self, seconds: float):
        def sample() -> float:
            self.taken += 1
            value = seconds * (1 + abs(self.rng.gauss(0, self.noise))) * (1 + self.drift * self.taken)
            return value * (3 if self.rng.random() < self.spikes else 1)

        return sample


samples = st.lists(st.floats(1e-9, 10.0), min_size=1, max_size=40)


@given(samples, st.floats(0, 1))
def test_quantiles_lie_among_the_samples_and_grow(values, q):
    assert min(values) <= quantile(values, q) <= max(values)
    assert quantile(values, 0) == min(values) and quantile(values, 1) == max(values)
    assert quantile(values, q / 2) <= quantile(values, q) * (1 + 1e-12)
    assert spread(values) >= 0


@given(samples)
def test_interval_encloses_the_median(values):
    low, high = median_interval(values)
    assert low <= median(values) <= high


def test_interval_covers_as_often_as_it_says():
    rng = random.Random(0)
    missed = 0
    for _ in range(2000):
        low, high = median_interval([rng.lognormvariate(0, 1) for _ in range(25)], alpha=0.05)
        missed += not low <= 1.0 <= high
    assert missed / 2000 < 0.06
    assert median_interval([1.0] * 5, alpha=0.01) == (-math.inf, math.inf)


def test_steady_sees_scatter_and_drift():
    assert steady([9.0, 7.0] + [1.0, 1.01, 0.99, 1.0] * 2)
    assert not steady([1.0] * 7)
    assert not steady([1.0, 2.0] * 4)
    assert not steady([1.0 + 0.03 * i for i in range(8)])


def test_settle_ends_with_the_budget_or_when_steady():
    times = iter([5.0, 3.0, 2.0] + [1.0] * 100)
    last, good = settle(lambda: next(times), lambda: False)
    assert good and len(last) == 8 and median(last) == 1.0 and 5.0 not in last
    restless = itertools.cycle([1.0, 3.0])
    _, good = settle(lambda: next(restless), lambda: False, most=30)
    assert not good
    calls = []
    _, good = settle(lambda: calls.append(1) or 1.0, lambda: len(calls) >= 3)
    assert good and len(calls) == 3
    for first, steady_enough in ((1.04, True), (1.3, False)):
        slow = iter([first, 1.0])
        assert settle(lambda slow=slow: next(slow), lambda: True) == ([first, 1.0], steady_enough)


def test_faster_needs_more_than_noise_and_more_than_the_least_gain():
    assert faster([1.0] * 12, [1.1] * 12)
    assert not faster([1.0] * 12, [1.005] * 12)
    assert not faster([1.1] * 12, [1.0] * 12)
    assert not faster([], [1.0])
    # The fewer the samples, the larger the gap has to be.
    assert not faster([1.0], [9.0])
    assert faster([1.0] * 2, [1.4] * 2) and not faster([1.0] * 2, [1.3] * 2)
    assert faster([1.0] * 3, [1.2] * 3) and not faster([1.0] * 3, [1.1] * 3)
    # One spike in either does not hide a clear difference.
    assert faster([1.0] * 14 + [5.0], [1.2] * 15)


def test_faster_uses_pairs_so_that_drift_cancels():
    drift = [1 + 0.1 * i for i in range(14)]
    assert faster([0.95 * d for d in drift], drift)
    assert not faster(drift, drift)


@pytest.mark.parametrize("drift", [0.0, 0.002])
def test_equal_contenders_leave_the_default(drift):
    wrong = 0
    for seed in range(150):
        machine = Machine(seed, noise=0.03, drift=drift)
        rounds = race([machine.sampler(1.0) for _ in range(4)])
        wrong += choose(rounds) != 0
    assert wrong <= 6  # 4 %


@pytest.mark.parametrize("drift", [0.0, 0.002])
def test_a_better_contender_is_found_in_noise_and_drift(drift):
    right = 0
    for seed in range(100):
        machine = Machine(seed, noise=0.03, drift=drift)
        rounds = race([machine.sampler(t) for t in (1.0, 1.15, 0.9, 1.02)])
        right += choose(rounds) == 2
    assert right >= 95


def test_many_contenders_get_no_more_luck_than_one():
    rng = random.Random(0)
    wrong = 0
    for _ in range(300):
        rounds = [[rng.lognormvariate(0, 0.1) for _ in range(15)] for _ in range(9)]
        wrong += choose(rounds) != 0
    assert wrong <= 12  # 4 %


def test_a_race_drops_losers_early_and_stops_when_decided():
    machine = Machine(1, spikes=0)
    rounds = race([machine.sampler(t) for t in (1.0, 2.0, 0.5)])
    assert len(rounds[1]) <= 3  # not even at half its speed would it be as fast
    assert len(rounds[0]) == len(rounds[2]) == 6
    assert choose(rounds) == 2


def test_a_race_that_can_not_be_decided_ends_and_ties_go_by_order():
    machine = Machine(2, spikes=0, noise=0.02)
    rounds = race([machine.sampler(t) for t in (1.0, 0.8, 0.8)], most=12)
    assert len(rounds[1]) == 12
    assert choose(rounds) == 1
    # The same with the contenders' places exchanged: still the first of the tie.
    assert choose([rounds[0], rounds[2], rounds[1]]) == 1


def test_a_race_respects_the_budget_and_drops_failures():
    calls = []

    def sampler(i, value):
        return lambda: calls.append(i) or value

    rounds = race([sampler(0, 1.0), sampler(1, 1.0)], over=lambda: len(calls) >= 4)
    assert [len(r) for r in rounds] == [2, 2]
    rounds = race([sampler(0, 1.0), sampler(1, math.inf), sampler(2, 0.0), sampler(3, 0.5)])
    assert rounds[1] == rounds[2] == [] and choose(rounds) == 3
    assert choose([[], [2.0] * 5, [1.0] * 5]) == 2  # the default failed
    with pytest.raises(ValueError, match="no contender"):
        choose([[], []])


def test_a_race_alternates_the_order():
    order = []
    race([lambda i=i: order.append(i) or 1.0 for i in range(3)], most=2)
    assert order == [0, 1, 2, 2, 1, 0]


def test_without_a_default_the_leader_or_the_first_of_a_tie_wins():
    assert choose([[1.0] * 9, [0.5] * 9], default=None) == 1
    assert choose([[1.0, 1.01, 0.99] * 3, [1.0, 0.99, 1.005] * 3], default=None) == 0


def test_a_near_leader_within_the_tie_that_is_told_apart_loses():
    slow = [1.0] * 15
    assert choose([slow, [0.805] * 15, [0.8] * 15]) == 2


def test_measure_is_cheap_for_losers():
    calls = []
    assert len(measure(lambda: calls.append(1) or 9.0, best=1.0)) == 1
    assert len(measure(lambda: 2.0, best=1.0)) == 3
    values = iter([2.9, 1.0, 1.05, 0.95] + [1.0, 1.1] * 5)
    assert len(measure(lambda: next(values), best=1.0)) == 5  # a cold first sample costs nothing
    assert len(measure(lambda: 1.0, best=1.0)) == 3  # no scatter, no need for more
    assert len(measure(lambda: 1.0, over=lambda: True)) == 1


# --- a machine on which any launch may take a hundred times longer ----------------------------------------------------


@given(samples)
def test_the_location_is_the_lower_quartile_unless_the_spread_is_more_than_one(values):
    assert location(values) == (min(values) if spread(values) > 1 else quantile(values, 0.25))
    assert wild(values) == (spread(values) > 1) and min(values) <= location(values) <= median(values)


@pytest.mark.parametrize("slow", [0.3, 0.5, 0.6])
def test_wild_samples_stand_for_their_fast_ones(slow):
    rng = random.Random(0)
    right = 0
    for _ in range(300):
        values = measure(lambda: (100 if rng.random() < slow else 1) * (1 + abs(rng.gauss(0, 0.02))), 1.0)
        right += location(values) < 1.1
    assert right >= 290
    assert spread([1.0, 1.0, 100.0]) > 1 and spread([1.0, 100.0, 100.0, 100.0]) > 1


def test_wild_samples_are_followed_by_more():
    values = itertools.cycle([1.0, 100.0, 100.0])
    assert len(measure(lambda: next(values), best=1.0)) == 25
    # A candidate that is slower by far may have been in the machine's way: it is not judged by one sample.
    values = iter([100.0, 100.0, 1.0] + [1.0] * 20)
    assert location(measure(lambda: next(values), best=1.0)) == 1.0
    assert len(measure(lambda: 100.0, best=1.0)) == 9
    assert len(measure(lambda: 100.0, best=1.0, over=lambda: True)) == 1


class Busy(Machine):
    """Every second sample, at random, takes a hundred times longer."""

    def sampler(self, seconds: float):
        quiet = super().sampler(seconds)
        return lambda: quiet() * (100 if self.rng.random() < 0.5 else 1)


def test_equal_contenders_leave_the_default_on_a_busy_machine():
    wrong = 0
    for seed in range(150):
        rounds = race([Busy(seed).sampler(1.0) for seed in range(4 * seed, 4 * seed + 4)])
        wrong += choose(rounds) != 0
    assert wrong <= 6  # 4 %


def test_a_better_contender_is_found_on_a_busy_machine_and_its_time_is_right():
    right = found = 0
    for seed in range(100):
        machine = Busy(seed, spikes=0)
        rounds = race([machine.sampler(t) for t in (1.0, 1.15, 0.8, 1.02)])
        best = choose(rounds)
        found += best == 2
        right += abs(location(rounds[best]) / (1.0, 1.15, 0.8, 1.02)[best] - 1) < 0.1
    assert found >= 90 and right >= 98


def test_fast_samples_have_to_be_apart():
    mixed = [1.0, 100.0] * 8
    assert faster([0.9 * s for s in mixed], mixed[::-1]) and not faster([0.98 * s for s in mixed], mixed[::-1])
    assert not faster([0.5, 50.0] * 2, [1.0, 100.0] * 2)  # too few
    # What is steady does not beat what is faster whenever the machine lets it.
    steady_one = [2.0] * 16
    assert not faster(steady_one, mixed) and faster(mixed, steady_one)
    assert choose([mixed, steady_one]) == 0


def test_batches_grow_to_the_target_and_restored_launches_are_single():
    launches = []

    def launch(n: int) -> float:
        launches.append(n)
        return 1e-6 * n

    watch = Stopwatch(launch, move=lambda: False)
    assert watch.calibrate(target=1e-3) == pytest.approx(1e-6)
    assert 500 <= watch.batch <= 2000
    assert watch.sample() == pytest.approx(1e-6) and launches[-1] == watch.batch

    events = []
    watch = Stopwatch(lambda n: events.append(n) or 1e-6, restore=lambda: events.append("restore"), move=lambda: False)
    watch.calibrate(target=1e-3)
    watch.sample()
    assert watch.batch == 1 and events == ["restore", 1] * 4

    watch = Stopwatch(lambda n: 1e-2 * n)
    watch.calibrate(target=1e-3)
    assert watch.batch == 1
    watch = Stopwatch(lambda n: 0.0)  # a clock too coarse to see one launch
    watch.calibrate(target=1e-3, most=100)
    assert watch.batch == 100


class Stuck:
    """Threads that share a core, where each launch takes 1.5 ms more, till the caller moves away."""

    def __init__(self, seconds: float, stuck: bool = True) -> None:
        self.seconds, self.stuck, self.moves = seconds, stuck, 0

    def launch(self, n: int) -> float:
        return n * (self.seconds + (1.5e-3 if self.stuck else 0.0))

    def move(self) -> bool:
        self.stuck, self.moves = False, self.moves + 1
        return True


@pytest.mark.parametrize("seconds", [2e-5, 4e-4])
def test_threads_that_share_a_core_from_the_start_are_parted(seconds):
    machine = Stuck(seconds)
    watch = Stopwatch(machine.launch, move=machine.move)
    watch.calibrate(target=1e-3)
    assert 0.5e-3 <= watch.batch * seconds <= 2e-3
    assert watch.sample() == pytest.approx(seconds) and machine.moves == 1


def test_a_sample_that_was_held_up_is_taken_once_more_on_another_core():
    machine = Stuck(1e-4, stuck=False)
    watch = Stopwatch(machine.launch, move=machine.move)
    watch.calibrate()
    machine.stuck, before = True, machine.moves
    assert watch.sample() == pytest.approx(1e-4) and machine.moves == before + 1
    assert watch.sample() == pytest.approx(1e-4) and machine.moves == before + 1
    # A launch that is long beside what holds it up is left alone, and where there is one core only nothing is repeated.
    slow = Stuck(0.1)
    watch = Stopwatch(slow.launch, move=slow.move)
    watch.calibrate()
    assert slow.moves == 0
    alone = Stopwatch(Stuck(1e-4).launch, move=lambda: False)
    alone.calibrate()
    taken = alone.taken
    assert alone.sample() == pytest.approx(1.6e-3) and alone.taken == taken + 1


def test_changing_the_core_keeps_the_affinity():
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    moved = change_core()
    assert not moved or len(allowed) > 1
    assert not allowed or os.sched_getaffinity(0) == allowed


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinities")
def test_a_thread_with_one_core_stays_there():
    found = []

    def work():
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        found.append((change_core(), len(os.sched_getaffinity(0))))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, 1)]


def test_noise_that_only_slows_hides_no_difference_of_the_fast_samples():
    rng = random.Random(3)

    def noisy(seconds):
        return [seconds * (1 + abs(rng.gauss(0, 0.01))) * (1.8 if rng.random() < 0.4 else 1) for _ in range(31)]

    found = sum(faster(noisy(0.95), noisy(1.0)) for _ in range(200))
    wrong = sum(faster(noisy(1.0), noisy(1.0)) for _ in range(1000))
    assert found >= 190 and wrong <= 10


def test_one_of_two_equals_leads_as_rarely_as_it_says():
    rng = random.Random(0)
    wrong = 0
    for _ in range(4000):
        a, b = ([rng.lognormvariate(0, 1) for _ in range(15)] for _ in range(2))
        wrong += faster(a, b, alpha=0.05, gain=0.0)
    assert wrong / 4000 < 0.05


def test_a_wild_leader_does_not_bring_the_default_back():
    # the leader's first rounds were held up, so that it can not be told from the default, which left after nine rounds
    leader = [100.0, 1.0, 100.0, 100.0, 1.0, 100.0, 100.0, 1.0, 100.0] + [1.0] * 16
    assert choose([[2.0] * 9, leader, [1.05] * 25]) == 2


def test_a_candidate_at_half_its_speed_is_sampled_on_another_core():
    machine = Stuck(1e-3)

    def sample() -> float:
        return 1.6e-3 if machine.stuck else 0.8e-3

    assert min(measure(sample, 1e-3, move=machine.move)) == 0.8e-3 and machine.moves == 1
    slow = Stuck(1e-3)
    assert len(measure(lambda: 1.6e-3, 1e-3, move=slow.move)) == 5 and slow.moves == 1
    assert len(measure(lambda: 1.0e-3, 1e-3, move=slow.move)) == 3 and slow.moves == 1
