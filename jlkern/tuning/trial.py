"""One candidate after the other: compile, run once on scratch copies, verify, measure; journaled before and after."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jlkern import log
from jlkern.errors import CompileError, SourceError, TuningError, UnsupportedError, WorkgroupError
from jlkern.memo.store import Lease, TrialRecord
from jlkern.space import Config
from jlkern.tuning import bench, hooks
from jlkern.tuning.lock import PATIENCE, measuring
from jlkern.tuning.scratch import Scratch, ScratchTooLarge, make_scratch, opposite
from jlkern.tuning.task import Status, Trial, TuneTask
from jlkern.tuning.verify import compare_outputs, reduction_length
from jlkern.tuning.wire import WorkerError
from jlkern.tuning.worker import WorkerLost

if TYPE_CHECKING:
    from jlkern.engines.base import Device, Engine, Launcher
    from jlkern.tuning.isolate import Isolation

# A candidate's share of measuring time, and how many compiled candidates are kept for the final rounds.
SHARE: Final = 0.3
KEEP: Final = 24
# Launches on restored arrays that are timed several in a row: seconds below which, how many, and what the arrays of all
# of them may take.
SHORT: Final = 2e-5
COPIES: Final = 32
ROTATED_BYTES: Final = 1 << 18
# Noise only adds: a time from the final rounds that is so many times the search's says nothing.
FAR_WORSE: Final = 3.0
# The part of the time limit that one wait for the device's lock may take.
WAIT_PART: Final = 0.25
# What a stored trial must have ended as to be believed without a new one. A result that was wrong may be right under
# another tolerance, and a launch may have failed for want of memory, so these are tried again.
BELIEVED: Final = ("ok", "compile")
# The journal's mark of a trial that is made once more, and what is said of one that is not.
AGAIN: Final = "tried again: its trial in an earlier run never ended"
SKIPPED: Final = "it is skipped (k.tune(..., fresh=True) tries it again)"

_log = log.get(__name__)


@dataclass
class Clock:
    """The time of a run, which includes waiting for the device."""

    limit: float | None
    start: float = field(default_factory=time.monotonic)

    def elapsed(self) -> float:
        """Return the seconds that this run has used."""
        return time.monotonic() - self.start

    def left(self) -> float:
        """Return the seconds until the limit."""
        return math.inf if self.limit is None else max(0.0, self.limit - self.elapsed())

    def over(self, part: float = 1.0, ahead: float = 0.0) -> bool:
        """Tell whether this part of the limit is used up, or will be in so many seconds."""
        return self.limit is not None and self.elapsed() + ahead >= part * self.limit


@dataclass
class Lab:
    """What trials share: the task, its scratch copies, the reference, and every trial so far."""

    task: TuneTask
    scratch: Scratch
    clock: Clock
    lease: Lease | None = None
    trials: dict[Config, Trial] = field(default_factory=dict)
    known: dict[Config, TrialRecord] = field(default_factory=dict)
    crashed: list[Config] = field(default_factory=list)  # skipped
    unfinished: list[Config] = field(default_factory=list)  # to be tried again
    launchers: dict[Config, Launcher] = field(default_factory=dict)
    batches: dict[Config, int] = field(default_factory=dict)  # launches per sample
    leasts: dict[Config, float] = field(default_factory=dict)  # seconds of the fastest sample
    copies: list[Scratch] = field(default_factory=list)  # for short launches on restored arrays
    reference: dict[str, np.ndarray[Any, Any]] | None = None
    reference_name: str = ""
    reference_config: Config | None = None
    costs: list[float] = field(default_factory=list)  # seconds of each trial made in this run
    drift: float = 1.0  # this run's time of the default over the stored one
    noisy: bool = False
    unlocked: bool = False  # the device's lock was not had in time
    isolation: Isolation | None = None

    def __post_init__(self) -> None:
        effects, outputs = self.task.effects, self.scratch.outputs
        self.compared = [n for n in outputs if self.task.settings.compare.get(n, n) is not None]
        # What a kernel never reads needs no restoring for the clock's sake, so that launches may follow each other.
        unread = effects.unread & self.scratch.alone if self.isolation is None else frozenset()
        self.restored = [n for n in outputs if n in effects.read_first - unread]
        self.overwritten = [n for n in outputs if n not in effects.read_first]
        self.poisoned: list[str] | None = None  # None: not known yet
        # Outputs that are written in part, and what verification has them start from: unlike the reference everywhere,
        # which changes nothing in what a kernel writes, since it never reads them.
        partly = effects.unread & self.scratch.alone - {n for n, view in self.task.settings.compare.items() if view}
        self.partly = [n for n in self.compared if n in partly]
        self.starts: dict[str, np.ndarray[Any, Any]] = {}
        self.engine: Engine = self.task.engine if self.isolation is None else self.isolation.engine
        self.restore = (
            self.scratch.restorer(self.restored) if self.isolation is None else self.isolation.restorer(self.scratch)
        )
        arrays = [a for a in self.task.args if isinstance(a, np.ndarray)]
        self.lengths = {name: reduction_length(arrays, outputs[name]) for name in outputs}

    @property
    def device(self) -> Device:
        """The device that is measured."""
        return self.task.device if self.task.device is not None else self.task.engine.devices()[0]

    def best(self) -> float:
        """Return the least time of a candidate that this run has measured; stored times are of another day."""
        good = [t for t in self.trials.values() if t.status == "ok" and not t.known]
        return min((t.seconds for t in good if t.seconds is not None), default=np.inf)

    def cost(self) -> float:
        """Return the seconds that a trial takes; the first does not count, since it starts the engine."""
        return bench.median(self.costs[1:]) if len(self.costs) > 1 else 0.0

    def load(self) -> None:
        """Take over what earlier runs journaled.

        Whether a trial that never ended took its process down, or something else ended that (a job's limit, want of
        memory), nobody knows. So it is tried once more. The default always is, since calls need it.
        """
        store, key, default = self.task.store, self.task.key, self.task.space.default()
        for record in store.trials(key):
            config = record.config
            if record.status in BELIEVED:
                self.known[config] = record
            elif record.status not in ("begun", "crashed", "hung"):
                continue
            elif config == default or (record.status == "begun" and record.reason != AGAIN):
                self.unfinished.append(config)
            else:
                self.crashed.append(config)
                status: Status = "hung" if record.status == "hung" else "crashed"
                reason = f"its process ended during this trial, in two runs; {SKIPPED}"
                reason = record.reason if record.status != "begun" else reason
                self.trials[config] = Trial(config, status, reason=reason)
                store.end(key, TrialRecord(config, status, reason=reason))

    def free(self, config: Config) -> bool:
        """Tell whether a configuration's outcome is known without a new trial."""
        return config in self.trials or config in self.known

    def seconds(self, config: Config) -> float | None:
        """Try a configuration unless it is known; return its seconds, or None when it can not be used."""
        trial = self.trials.get(config) or self.recall(config) or self.attempt(config)
        return trial.seconds if trial.status == "ok" else None

    def works(self, config: Config) -> bool:
        """Tell that a configuration has not failed in this run."""
        trial = self.trials.get(config)
        return trial is None or trial.status == "ok"

    def recall(self, config: Config) -> Trial | None:
        """Return the trial of an earlier run, brought to this run's speed; None when there is none."""
        record = self.known.get(config)
        if record is None:
            return None
        seconds = None if record.seconds is None else record.seconds * self.drift
        status: Status = "ok" if record.status == "ok" else "compile"
        trial = Trial(config, status, seconds, record.spread, record.samples, record.reason, known=True)
        self.trials[config] = trial
        return trial

    def attempt(self, config: Config, settle: bool = False) -> Trial:
        """Try a configuration, whatever happens; only what is no `Exception` gets out, after it was journaled.

        `settle` first samples until the machine is steady, or marks the run as noisy.
        """
        store, key = self.task.store, self.task.key
        if self.lease is not None:
            self.lease.renew()
        again = config in self.unfinished
        if again:
            text = "tried again; should this trial end the process once more, isolation='process' keeps that from it"
            log.event(_log, logging.WARNING, text, kernel=self.task.name, config=config)
        start = self.clock.elapsed()
        store.begin(key, config, AGAIN if again else "")
        trial = Trial(config, "interrupted", reason="interrupted")
        try:
            trial = self._attempt(config, settle)
            if trial.status != "ok" and self.isolation is not None:
                self.scratch.refresh()
        finally:
            self.trials[config] = trial
            store.end(key, _record(trial))
            self.costs.append(self.clock.elapsed() - start)
            log.event(
                _log, logging.INFO, "trial", kernel=self.task.name, config=config, status=trial.status, text=trial
            )
        hooks.tell_trial(self.task.name, trial, len(self.trials))
        return trial

    def _attempt(self, config: Config, settle: bool) -> Trial:
        try:
            launcher = self.compile(config)
        except Exception as problem:
            return Trial(config, _status(problem, "compile"), reason=_reason(problem))
        try:
            ndrange = self.task.ndrange(config.as_dict())
            wrong = self.verify(config, launcher, ndrange)
            if wrong is not None:
                return Trial(config, "wrong", reason=wrong)
            samples = self.measure(config, launcher, ndrange, settle)
            self.leasts[config] = min(samples)
        except MemoryError as problem:
            if self.reference is None:  # nothing can be compared, so that no candidate can be tried
                raise ScratchTooLarge(f"there is no memory for a copy of the result ({problem})") from None
            return Trial(config, "launch", reason=_reason(problem))
        except Exception as problem:
            return Trial(config, _status(problem, "launch"), reason=_reason(problem))
        seconds = bench.location(samples)
        if not np.isfinite(seconds) or seconds <= 0:
            return Trial(config, "launch", reason=f"its time is {seconds!r}")
        return Trial(config, "ok", seconds, bench.spread(samples), len(samples))

    def compile(self, config: Config) -> Launcher:
        """Return a configuration's launcher; the fastest ones are kept."""
        launcher = self.launchers.get(config)
        if launcher is None:
            launcher = self.engine.compile(self.task.request(config))
            if len(self.launchers) >= KEEP:
                slowest = max(self.launchers, key=lambda c: self.trials[c].seconds or np.inf)
                del self.launchers[slowest]
            self.launchers[config] = launcher
        return launcher

    def verify(self, config: Config, launcher: Launcher, ndrange: tuple[int, ...]) -> str | None:
        """Run once, and compare; the first to get here becomes the reference when there is none."""
        fire = launcher.fire(ndrange)

        def launch(poisoned: list[str]) -> None:
            with self.measuring():
                self.scratch.restore()
                self.scratch.poison(poisoned, self.reference or {})
                for name, start in self.starts.items():
                    np.copyto(self.scratch.outputs[name], start)
                status = fire(*self.scratch.args)
                if status:
                    launcher.fail(fire, status)

        launch(self.poisoned or [])
        wrong = None
        if self.reference is None:
            outputs = self.keep_outputs()
            self.starts = {n: opposite(outputs[n]) for n in self.partly}
            if self.starts:
                launch([])
                outputs.update({n: self.scratch.outputs[n].copy(order="K") for n in self.starts})
            self.set_reference(outputs, str(config), config)
        else:
            wrong = self.compare(self.reference)
        if wrong is None and self.poisoned is None and self.reference is not None:
            # An ndrange that covers an output only in part leaves the rest as it was, for every configuration. So
            # outputs are poisoned only where a good configuration is seen to overwrite the poison.
            launch(self.overwritten)
            whole = {n: self.reference[n] for n in self.overwritten if n in self.reference}
            self.poisoned = [n for n in whole if self.compare({n: whole[n]}) is None]
        return wrong

    def keep_outputs(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return copies of the outputs that are compared."""
        return {n: self.scratch.outputs[n].copy(order="K") for n in self.compared}

    def compare(self, reference: dict[str, np.ndarray[Any, Any]]) -> str | None:
        """Compare the scratch copies of some outputs with a reference."""
        settings = self.task.settings
        return compare_outputs(self.scratch.outputs, reference, self.lengths, settings.compare, settings.tolerance)

    def set_reference(self, outputs: dict[str, np.ndarray[Any, Any]], name: str, config: Config | None = None) -> None:
        """Say what results are compared with."""
        self.reference, self.reference_name, self.reference_config = outputs, name, config

    def run_reference(self, function: Callable[..., Any]) -> None:
        """Take the reference from the user's function, which fills the outputs in place or returns them."""
        self.scratch.restore()
        try:
            result = function(*self.scratch.args)
        except Exception as problem:
            raise TuningError(f"reference= raised {_reason(problem)}") from problem
        names = list(self.scratch.outputs)
        found: dict[str, Any]
        if result is None:
            found = {name: output.copy(order="K") for name, output in self.scratch.outputs.items()}
        elif isinstance(result, dict):
            found = dict(result)
        elif isinstance(result, (tuple, list)) and len(result) == len(names) != 1:
            found = dict(zip(names, result, strict=True))
        elif len(names) == 1:
            found = {names[0]: result}
        else:
            raise TuningError(
                f"reference= must fill or return the outputs {', '.join(names)}, got {type(result).__name__}"
            )
        unknown = sorted(set(found) - set(names))
        if unknown:
            raise TuningError(
                f"reference= returned {', '.join(unknown)}, which is none of the outputs {', '.join(names)}"
            )
        self.set_reference({n: np.asarray(a) for n, a in found.items() if n in self.compared}, "reference=")

    def stopwatch(self, launcher: Launcher, ndrange: tuple[int, ...]) -> bench.Stopwatch:
        """Return what samples a launcher on the scratch copies.

        A short launch whose arrays have to be restored is timed as one of several in a row, each on copies of its own.
        """
        self.scratch.restore()
        launch = launcher.sampler(ndrange, self.scratch.args)
        if self.restore is not None and self.isolation is None and self.can_rotate():
            launch(1)
            self.restore()
            if launch(1) < SHORT:
                return self.rotating(launcher, ndrange)
            self.scratch.restore()
        return bench.Stopwatch(launch, self.restore)

    def can_rotate(self) -> bool:
        """Tell whether the restored arrays are so small that many copies of them stay in the nearest caches."""
        return self.scratch.bytes_of(self.restored) * COPIES <= ROTATED_BYTES

    def rotating(self, launcher: Launcher, ndrange: tuple[int, ...]) -> bench.Stopwatch:
        """Return a stopwatch whose samples launch once on each of several copies."""
        if not self.copies:
            task, limit = self.task, ROTATED_BYTES + COPIES * (self.scratch.bytes + ROTATED_BYTES)
            self.copies = [make_scratch(task.names, task.args, task.effects.written, limit) for _ in range(COPIES)]
        copies, restored = self.copies, self.restored
        fires = [launcher.bind(ndrange, copy.args) for copy in copies]

        def restore() -> None:
            for copy in copies:
                copy.restore(restored)

        def launch(times: int) -> float:
            start = time.perf_counter()
            for fire in fires:
                status = fire()
                if status:
                    launcher.fail(fire, status)
            return (time.perf_counter() - start) / COPIES

        return bench.Stopwatch(launch, restore)

    def measure(
        self, config: Config, launcher: Launcher, ndrange: tuple[int, ...], settle: bool = False
    ) -> list[float]:
        """Return samples of a launcher, few when it is clearly slower than the best so far."""
        with self.measuring():
            watch = self.stopwatch(launcher, ndrange)
            best = self.best()
            watch.calibrate(expected=best if math.isfinite(best) else 0.0)
            self.batches[config] = watch.batch
            start = time.monotonic()
            if settle:
                limit = 2.0 if self.clock.limit is None else min(2.0, 0.1 * self.clock.limit)
                samples, good = bench.settle(watch.sample, lambda: time.monotonic() - start > limit)
                self.noisy = self.noisy or not good
                return samples
            over = lambda: time.monotonic() - start > SHARE or self.clock.over()  # noqa: E731
            return bench.measure(watch.sample, best, over, move=watch.move)

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Hold the device's lock; a run that could not have it once goes on without, and is noisy."""
        if self.unlocked:
            yield
            return
        limit = math.inf if self.clock.limit is None else WAIT_PART * self.clock.limit
        with measuring(self.device, min(PATIENCE, limit, self.clock.left())) as held:
            if not held:
                self.unlocked = self.noisy = True
                log.event(
                    _log, logging.WARNING, "device lock not had in time; measuring without", kernel=self.task.name
                )
            yield

    def contender(self, config: Config) -> Callable[[], float] | None:
        """Return a function that samples a configuration in the final rounds, or None when it can not be used now."""
        trial = self.trials[config]
        try:
            launcher = self.compile(config)
            ndrange = self.task.ndrange(config.as_dict())
            wrong = self.verify(config, launcher, ndrange) if trial.known else None
            if wrong is not None:
                self.fail(config, "wrong", wrong)
                return None
            with self.measuring():
                watch = self.stopwatch(launcher, ndrange)
                if config in self.batches:
                    watch.batch = self.batches[config]
                    watch.sample()
                else:
                    watch.calibrate()
        except Exception as problem:
            self.fail(config, _status(problem, "launch"), _reason(problem))
            return None

        def sample() -> float:
            try:
                return watch.sample()
            except Exception as problem:
                self.fail(config, _status(problem, "launch"), _reason(problem))
                return np.inf

        return sample

    def fail(self, config: Config, status: Status, reason: str) -> None:
        """Note that a configuration that was fine is not any more."""
        self.trials[config] = Trial(config, status, reason=reason)
        if self.isolation is not None:
            self.scratch.refresh()
        self.task.store.end(self.task.key, _record(self.trials[config]))

    def settled(self, config: Config, samples: list[float]) -> None:
        """Note a configuration's time from the final rounds, unless noise made it far worse than the search's."""
        trial = Trial(config, "ok", bench.location(samples), bench.spread(samples), len(samples))
        before = self.trials[config]
        now, then = trial.seconds or 0.0, before.seconds or np.inf
        worse = before.status == "ok" and not before.known and now > FAR_WORSE * then
        self.noisy = self.noisy or worse or bench.wild(samples)
        if not worse:
            self.trials[config] = trial
            self.task.store.end(self.task.key, _record(trial))


def _record(trial: Trial) -> TrialRecord:
    return TrialRecord(trial.config, trial.status, trial.seconds, trial.spread, trial.samples, trial.reason)


def _status(problem: BaseException, otherwise: Status) -> Status:
    if isinstance(problem, WorkerLost):
        return "hung" if problem.hung else "crashed"
    return otherwise


def _reason(problem: BaseException) -> str:
    text = str(problem).strip()
    kind = type(problem).__name__
    # The kinds that say by themselves what is wrong need no name before their message.
    plain = (
        isinstance(problem, (WorkerLost, WorkerError, CompileError, UnsupportedError, SourceError, WorkgroupError))
        and text
    )
    return (text if plain else f"{kind}: {text}" if text else kind)[:2000]
