"""One tuning run, from the arguments of a call to a remembered winner.

1. Candidates run on scratch copies; the caller's arrays are only read.
2. The default is trial 1, and what results are compared with unless `reference=` is given.
3. Whatever happens to a candidate costs that candidate; all failing is an error, and nothing is remembered.
4. The search ranks by cheap samples; final rounds, taken in turn, decide among the best and the default.
5. Every trial is journaled before and after; Ctrl-C keeps them, and the next run goes on from there.
6. One owner tunes a key; others wait for its winner, or use the default.
"""

from __future__ import annotations

import logging
import time
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from jlkern import log
from jlkern.errors import TuningError, TuningWarning
from jlkern.knobs import knobs
from jlkern.memo.lookup import usable
from jlkern.memo.store import Lease, Winner
from jlkern.space import Config
from jlkern.tuning import bench, hooks
from jlkern.tuning.owner import own, untuned
from jlkern.tuning.progress import Progress
from jlkern.tuning.reasons import advice, grouped
from jlkern.tuning.scratch import ScratchTooLarge, make_scratch
from jlkern.tuning.search import Search, check_strategy, propose
from jlkern.tuning.task import Advance, Trial, TuneResult, TuneSettings, TuneTask, format_seconds
from jlkern.tuning.trial import SKIPPED, Clock, Lab
from jlkern.tuning.verify import check_compare

if TYPE_CHECKING:
    from collections.abc import Callable

    from jlkern.tuning.isolate import Isolation

__all__ = ["Trial", "TuneResult", "TuneSettings", "TuneTask", "tune"]

# Parts of the time limit: where the search ends, and where the search for schedules does. Final rounds get the rest.
SEARCH_PART: Final = 0.7
SCHEDULE_PART: Final = 0.85
# Where no further finalist is compiled, and the part that the final rounds may take.
FINALIST_PART: Final = 0.9
FINAL_PART: Final = 0.15
# What the default has to be beaten by where there is no time for final rounds, or for so few that they are none.
BLIND_GAIN: Final = 0.1
TOO_FEW: Final = 3
# The final rounds: seconds at most without a limit, contenders besides the default, and how near the best they are.
FINAL_SECONDS: Final = 10.0
FINALISTS: Final = 12
FINAL_NEAR: Final = bench.HOPELESS
# Of how many params the engine's other schedules are tried.
SCHEDULED: Final = 3
# How many winners of other environments and shapes are tried early.
HINTS: Final = 3

_log = log.get(__name__)


def tune(task: TuneTask) -> TuneResult:
    """Tune and remember; never touches the arguments. Ctrl-C returns the best so far, marked as interrupted.

    Raises
    ------
    OptionError: for a strategy, its options or `compare=` that do not fit.
    TuningError: when no configuration could be used; the message groups the reasons, and nothing is remembered.
    """
    default = task.space.default()
    check_strategy(task.settings.strategy, task.settings.strategy_options)
    check_compare(task.settings.compare, task.effects.written)
    if 0 in task.ndrange(default.as_dict()):
        return untuned(default, "there are no work-items, so nothing was tuned")
    lease_or_result = own(task, default)
    if isinstance(lease_or_result, TuneResult):
        return lease_or_result
    with lease_or_result as lease:
        result = _Run(task, default, lease).run()
    log.event(_log, logging.INFO, "tuned", kernel=task.name, best=result.best, trials=len(result.trials))
    if result.trials:
        hooks.tell_verdict(task.name, result)
    return result


def advance(task: TuneTask, final: bool) -> Advance:
    """Try one more candidate, or hold the final rounds among all that were tried; never waits for another process.

    Raises
    ------
    KeyboardInterrupt: Ctrl-C came; what was measured is kept.
    OptionError, TuningError: as in `tune`.
    """
    default = task.space.default()
    check_strategy(task.settings.strategy, task.settings.strategy_options)
    check_compare(task.settings.compare, task.effects.written)
    lease = task.store.acquire(task.key)
    if lease is None:
        return Advance.BUSY
    with lease:
        if any(w.rank == "exact" for w in usable(task.store.winners(task.key), task.space)):
            return Advance.DONE
        run = _Run(task, default, lease)
        run.step = "final" if final else "try"
        result = run.run()
    if result.interrupted:
        raise KeyboardInterrupt
    if run.advance is Advance.DONE and result.trials:
        hooks.tell_verdict(task.name, result)
    return run.advance


class _Run:
    """The state of one run; every step is a method, in the order in which they are called."""

    def __init__(self, task: TuneTask, default: Config, lease: Lease) -> None:
        self.task, self.default, self.lease = task, default, lease
        self.settings = task.settings
        self.clock = Clock(self.settings.seconds)
        self.notes: list[str] = []
        self.complete = False
        self.interrupted = False
        self.best = default
        self.old: Winner | None = None  # of an earlier run
        self.kept: Winner | None = None  # the same, where it stays
        self.seconds: float | None = None
        self.speedup: float | None = None
        self.step = ""  # "try" or "final" in a tuning that is made in steps
        self.advance = Advance.DONE  # what a step has done

    def run(self) -> TuneResult:
        task = self.task
        if self.settings.isolation == "process":
            from jlkern.tuning.isolate import Isolation

            with Isolation(task) as isolation:
                return self.run_on(isolation)
        return self.run_on(None)

    def run_on(self, isolation: Isolation | None) -> TuneResult:
        """Run in this process, or in a worker."""
        task = self.task
        limit = self.settings.scratch_limit if self.settings.scratch_limit is not None else knobs.scratch_limit
        try:
            if isolation is not None:
                scratch = isolation.scratch(limit)
            else:
                scratch = make_scratch(task.names, task.args, task.effects.written, limit)
        except ScratchTooLarge as problem:
            return self.without_memory(problem)
        self.lab = lab = Lab(task, scratch, self.clock, self.lease, isolation=isolation)
        if self.settings.fresh:
            task.store.forget(task.key, trials_only=True)
        total = self.settings.evals
        if total is None or not task.space.larger_than(total):
            total = min(task.space.full_size, 10**6)
        with Progress(task.name, total, self.settings.progress) as self.progress:
            try:
                if self.step == "try":
                    self.advance = self.one_more()
                    return self.result()
                self.first()
                self.search()
                self.check()
                self.schedules()
                self.finals()
            except ScratchTooLarge as problem:
                return self.without_memory(problem)
            except KeyboardInterrupt:
                self.interrupted = True
                self.best_so_far()
        if lab.unlocked:
            self.notes.append("others held the device's lock, so it was measured without, and the times are noisy")
        elif lab.noisy:
            self.notes.append("the machine was not steady, so the times are noisy")
        self.keep_cleaner()
        for config in lab.crashed:
            what = "did not end" if lab.trials[config].status == "hung" else "took the process down"
            self.notes.append(f"{config} {what} in an earlier run; {SKIPPED}")
        for config in lab.unfinished:
            if config in lab.trials:
                self.notes.append(f"{config} was tried again: an earlier run ended during its trial")
        result = self.result()
        if not self.interrupted:
            self.publish(result)
        return result

    def without_memory(self, problem: ScratchTooLarge) -> TuneResult:
        """Say that the default is used, since candidates can not be tried."""
        note = f"{problem}; the default is used"
        warnings.warn(f"{self.task.name}: {note}", TuningWarning, stacklevel=2)
        return untuned(self.default, note)

    def first(self) -> None:
        """Take the reference, and try the default."""
        lab, default = self.lab, self.default
        lab.load()
        if callable(self.settings.reference):
            lab.run_reference(self.settings.reference)
        known = lab.known.get(default)
        trial = lab.attempt(default, settle=True)
        if lab.isolation is not None:
            lab.isolation.default_seconds = trial.seconds
        self.show()
        if known is not None and known.seconds and trial.seconds:
            lab.drift = min(2.0, max(0.5, trial.seconds / known.seconds))
        if trial.status != "ok":
            log.event(_log, logging.WARNING, "the default can not be used", config=default, reason=trial.reason)
            self.notes.append(f"the default {default} can not be used ({trial.status}): {trial.reason}")

    def one_more(self) -> Advance:
        """Try one candidate that no run has tried; the default is the first."""
        lab, task, settings = self.lab, self.task, self.settings
        lab.load()
        ended = {r.config: r.seconds for r in task.store.trials(task.key) if r.status not in ("begun", "interrupted")}
        if self.default not in ended:
            if callable(settings.reference):
                lab.run_reference(settings.reference)
            lab.attempt(self.default, settle=True)
            return Advance.TRIED
        params = {config: seconds for config, seconds in ended.items() if not config.schedule}
        enough = settings.evals is not None and len(params) >= settings.evals
        config = None if enough else propose(task.space, params, settings.seed)
        if config is None:
            return Advance.ENOUGH
        if callable(settings.reference):
            lab.run_reference(settings.reference)
        else:  # the default's result, or that of the first that worked
            good = [known for known, record in lab.known.items() if record.status == "ok"]
            for known in sorted(good, key=lambda c: c != self.default)[:1]:
                lab.verify(known, lab.compile(known), task.ndrange(known.as_dict()))
        lab.attempt(config)
        return Advance.TRIED

    def search(self) -> None:
        """Try candidates: the hints of earlier winners, then what the strategy asks for."""
        lab, settings, space = self.lab, self.settings, self.task.space
        if self.step:
            for config in list(lab.known):
                self.ask(config)
            self.complete = not space.larger_than(len({config.params for config in lab.trials}))
            return
        evals = None if settings.evals is None else settings.evals - 1
        spent = 0
        if evals is not None and space.larger_than(evals):
            for config in self.hints():
                if spent < evals and not lab.free(config) and not self.searched():
                    self.ask(config)
                    spent += 1
            evals -= spent
        if evals == 0 or self.searched() or not space.larger_than(1):
            self.complete = not space.larger_than(1)
            return
        search = Search(
            space,
            self.ask,
            free=lab.free,
            stop=self.searched,
            max_evals=evals,
            strategy=settings.strategy,
            options=settings.strategy_options,
            seed=settings.seed,
        )
        self.complete = search.run()

    def searched(self) -> bool:
        """Tell that the search has had its time, or that one more trial would take that of the rest."""
        return self.clock.over(SEARCH_PART) or self.clock.over(SCHEDULE_PART, self.lab.cost())

    def hints(self) -> list[Config]:
        """Return winners of other environments and nearby shapes: good places to look at first."""
        store, key = self.task.store, self.task.key
        found = [w.config for w in usable([*store.winners(key), *store.family(key)], self.task.space)]
        return list(dict.fromkeys(config.with_schedule(()) for config in found))[:HINTS]

    def ask(self, config: Config) -> float | None:
        """Return a configuration's seconds."""
        seconds = self.lab.seconds(config)
        self.show()
        return seconds

    def show(self) -> None:
        """Show how far the run is."""
        best = self.lab.best()
        self.progress.update(len(self.lab.trials), format_seconds(best) if best < float("inf") else "?")

    def check(self) -> None:
        """Raise when nothing can be used, or when every other result contradicts the one it is compared with."""
        trials = list(self.lab.trials.values())
        good = [t for t in trials if t.status == "ok"]
        wrong = [t for t in trials if t.status == "wrong"]
        if not good:
            raise TuningError(f"{self.task.name}: no configuration can be used\n{grouped(trials)}{advice(wrong)}")
        if wrong and [t.config for t in good] == [self.lab.reference_config]:
            told = f"the results of all other configurations differ from those of {self.lab.reference_name}"
            raise TuningError(f"{self.task.name}: {told}\n{grouped(wrong)}{advice(wrong)}")

    def schedules(self) -> None:
        """Try the engine's other schedules for the best few params, with at most as many trials as the search had."""
        lab, engine = self.lab, self.task.engine
        evals = self.settings.evals
        for trial in self.ranked()[:SCHEDULED]:
            try:
                others = engine.schedules(self.task.request(trial.config))[1:]
            except Exception as problem:
                log.event(_log, logging.WARNING, "no schedules", config=trial.config, problem=repr(problem))
                continue
            for schedule in others:
                config = trial.config.with_schedule(schedule)
                if not lab.free(config):
                    if evals == 0 or self.clock.over(SCHEDULE_PART, lab.cost()):
                        return
                    evals = None if evals is None else evals - 1
                self.ask(config)

    def ranked(self) -> list[Trial]:
        """Return the usable trials, the fastest first; equal ones in product order."""
        good = [t for t in self.lab.trials.values() if t.status == "ok" and t.seconds is not None]
        return sorted(good, key=lambda t: (t.seconds, self.order(t.config)))

    def order(self, config: Config) -> tuple[tuple[int, ...], bool, str]:
        """Return the fixed order that ties go by: product order, then the rule's schedule before others."""
        return self.task.space.rank(config), bool(config.schedule), repr(config.schedule)

    def finals(self) -> None:
        """Measure the best, the old winner and the default in turn, and decide."""
        lab = self.lab
        old = self.old = self.old_winner()
        if old is not None and old.config not in lab.trials and not self.clock.over(FINALIST_PART, lab.cost()):
            self.ask(old.config)  # its schedule may not have been among those that were tried
        ranked = self.ranked()
        contenders = self.finalists(ranked)
        if len(contenders) == 1:
            self.best = contenders[0]
            self.seconds = lab.trials[self.best].seconds
            self.speedup = 1.0 if self.best == self.default else None
            if not lab.trials[self.best].known:
                return
        if self.clock.over() and any(not t.known for t in ranked):
            self.blind()
            return
        samplers: dict[Config, Callable[[], float]] = {}
        budget = min(FINAL_SECONDS, FINAL_PART * self.clock.limit) if self.clock.limit is not None else FINAL_SECONDS
        rounds_cost = 0.0
        for config in contenders:
            # Two rounds are the least that decides anything; whom they have no time for is left out.
            rounds_cost += 2 * (lab.trials[config].seconds or 0.0)
            if len(samplers) > 1 and (rounds_cost > budget or self.clock.over(FINALIST_PART)):
                break
            sampler = lab.contender(config)
            if sampler is not None:
                samplers[config] = sampler
        alive = sorted(samplers, key=self.order)
        if not alive:
            raise TuningError(f"{self.task.name}: no configuration can be used\n{grouped(list(lab.trials.values()))}")
        default = alive.index(self.default) if self.default in alive else None
        with lab.measuring():
            start = self.clock.elapsed()
            rounds = bench.race(
                [samplers[c] for c in alive],
                default,
                lambda: self.clock.over() or self.clock.elapsed() - start > budget,
            )
        if not any(rounds):
            raise TuningError(f"{self.task.name}: no configuration can be used\n{grouped(list(lab.trials.values()))}")
        if self.clock.over() and default is not None and 0 < len(rounds[default]) < TOO_FEW:
            self.blind()  # the search has seen more than these rounds
            return
        for config, samples in zip(alive, rounds, strict=True):
            if samples:
                lab.settled(config, samples)
        winner = bench.choose(rounds, default)
        self.best, self.seconds = alive[winner], lab.trials[alive[winner]].seconds
        if default is not None and rounds[default]:
            n = min(len(rounds[default]), len(rounds[winner]))
            self.speedup = bench.location(rounds[default][:n]) / bench.location(rounds[winner][:n])

    def old_winner(self) -> Winner | None:
        """Return the key's winner so far in exactly this environment."""
        old = self.task.store.winner(self.task.key)
        return old if old is not None and old.rank == "exact" and usable([old], self.task.space) else None

    def finalists(self, ranked: list[Trial]) -> list[Config]:
        """Return who takes part in the final rounds: the default, the best and the old winner first, then by rank."""
        # Times of earlier runs are only a hint: they choose finalists, but do not keep this run's best from being one.
        # Noise only adds, so that a candidate's least sample says how good it may be.
        fresh, known = [t for t in ranked if not t.known], [t for t in ranked if t.known]
        least = FINAL_NEAR * ((fresh or known)[0].seconds or 0.0)
        leasts = self.lab.leasts
        fresh.sort(key=lambda t: leasts.get(t.config, t.seconds or 0.0))
        most = FINALISTS if self.settings.evals is None else min(FINALISTS, self.settings.evals)
        near = [t.config for t in fresh if leasts.get(t.config, t.seconds or 0.0) <= least][:FINALISTS]
        near += [t.config for t in known if (t.seconds or 0.0) <= least][:most]
        first = [self.default, *near[:1], *([] if self.old is None else [self.old.config])]
        usable_now = {t.config for t in ranked}
        return [c for c in dict.fromkeys([*first, *near]) if c in usable_now]

    def blind(self) -> None:
        """Decide without final rounds: the old winner stays, else the default unless the best is far better."""
        lab, old = self.lab, self.old
        self.notes.append("the time limit left no time for final rounds")
        if old is not None and lab.works(old.config):
            self.keep(old)
        else:
            self.best_so_far(BLIND_GAIN)

    def keep_cleaner(self) -> None:
        """Keep the old winner when this run was noisier and found nothing faster."""
        old, seconds = self.old, self.seconds
        if self.interrupted or old is None or old.noisy or not self.lab.noisy or not self.lab.works(old.config):
            return
        if old.seconds is not None and seconds is not None and old.seconds < seconds:
            self.notes.append("an earlier winner stays: it was measured faster, with less noise")
            self.keep(old)

    def keep(self, old: Winner) -> None:
        """Make the old winner this run's."""
        self.kept, self.best, self.seconds, self.speedup = old, old.config, old.seconds, old.speedup

    def best_so_far(self, gain: float = bench.LEAST_GAIN) -> None:
        """Choose without final rounds: the best measured configuration, where it is clearly better than the default."""
        ranked = self.ranked()
        ranked = [t for t in ranked if not t.known] or ranked
        if not ranked:
            return
        own = self.lab.trials.get(self.default)
        best = ranked[0]
        if own is not None and own.status == "ok" and own.seconds is not None and best.seconds is not None:
            if best.seconds > own.seconds * (1 - max(gain, own.spread or 0.0)):
                best = own
            self.speedup = own.seconds / (best.seconds or own.seconds)
        self.best, self.seconds = best.config, best.seconds

    def result(self) -> TuneResult:
        """Put the result together."""
        lab = self.lab
        own = lab.trials.get(self.default, Trial(self.default, "interrupted", reason="interrupted"))
        reference = "default" if lab.reference_config == self.default else lab.reference_name
        if lab.reference_config is not None and lab.reference_config != self.default:
            self.notes.append(f"results were compared with those of {lab.reference_name}, not of the default")
        trials = [own, *(t for c, t in lab.trials.items() if c != self.default)]
        return TuneResult(
            self.best,
            tuple(trials),
            own,
            self.seconds,
            self.speedup,
            reference,
            self.interrupted,
            lab.noisy,
            complete=self.complete,
            elapsed=self.clock.elapsed(),
            notes=tuple(self.notes),
        )

    def publish(self, result: TuneResult) -> None:
        """Remember the winner."""
        winner = Winner(
            result.best,
            result.seconds,
            self.default,
            result.default.seconds if result.default.status == "ok" else None,
            len(result.trials),
            result.noisy,
            time.time(),
        )
        if self.kept is not None:
            winner = replace(self.kept, created=winner.created)
        self.task.store.publish(self.task.key, winner)
