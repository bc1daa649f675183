"""One owner tunes a key; whoever else wants it waits for the winner, or uses the default."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from jlkern import log
from jlkern.memo.lookup import usable
from jlkern.memo.store import Lease, Winner
from jlkern.space import Config
from jlkern.tuning.task import Trial, TuneResult, TuneTask

_log = log.get(__name__)


def own(task: TuneTask, default: Config) -> Lease | TuneResult:
    """Return the lease of the key, or the result when another owner has it and gives or keeps the winner."""
    store, settings = task.store, task.settings
    lease = store.acquire(task.key)
    if lease is not None:
        return lease
    if settings.on_busy == "default":
        note = "another process tunes this key; the default is used until it has a winner"
        return replace(untuned(default, note), busy=True)
    began, pause = time.time(), 0.02
    limit = settings.wait_limit if settings.time_limit is None else min(settings.wait_limit, settings.time_limit)
    log.event(_log, logging.INFO, "waiting for another process", kernel=task.name)
    try:
        while time.time() - began < limit:
            time.sleep(pause)
            pause = min(1.0, pause * 1.5)
            lease = store.acquire(task.key)
            # The winner is published before the lease ends, so it is looked for after.
            winner = next((w for w in usable(store.winners(task.key), task.space) if w.rank == "exact"), None)
            if winner is not None and winner.created >= began:
                if lease is not None:
                    lease.release()
                return adopted(task, winner, default)
            if lease is not None:
                return lease
    except KeyboardInterrupt:
        return replace(untuned(default, "interrupted while another process tunes this key"), interrupted=True)
    note = f"another process tuned this key for more than {limit:g} s; the default is used until it has a winner"
    return replace(untuned(default, note), busy=True)


def untuned(default: Config, note: str) -> TuneResult:
    """Return the result of a tuning that did not happen: the default, and why."""
    trial = Trial(default, "ok", reason="not measured")
    return TuneResult(default, (), trial, complete=False, notes=(note,))


def adopted(task: TuneTask, winner: Winner, default: Config) -> TuneResult:
    """Return the result of another process's tuning."""
    trials = tuple(
        Trial(r.config, r.status, r.seconds, r.spread, r.samples, r.reason, known=True)  # type: ignore[arg-type]
        for r in task.store.trials(task.key)
        if r.status in ("ok", "compile", "launch", "wrong", "crashed", "hung", "interrupted")
    )
    own = next((t for t in trials if t.config == default), Trial(default, "ok", winner.default_seconds, known=True))
    note = "another process tuned this key; its winner is used"
    return TuneResult(
        winner.config, trials, own, winner.seconds, winner.speedup, noisy=winner.noisy, adopted=True, notes=(note,)
    )
