"""What a tuning run is given and what it gives back."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from jlkern.errors import OptionError, close_to
from jlkern.space import Config, Params, Space

if TYPE_CHECKING:
    from jlkern.engines.base import CompileRequest, Device, Engine
    from jlkern.memo.key import MemoKey
    from jlkern.memo.store import Store
    from jlkern.source import Effects

# ok       measured, result agreed
# compile  the engine could not compile it
# launch   it raised while it ran
# wrong    its result differs from the reference
# crashed  it took its process down, a worker or twice the whole of an earlier run; it is not tried again
# hung     it did not end in time, and was ended with its worker
# interrupted  Ctrl-C came while it ran
Status: TypeAlias = Literal["ok", "compile", "launch", "wrong", "crashed", "hung", "interrupted"]
STATUSES: tuple[Status, ...] = ("ok", "compile", "launch", "wrong", "crashed", "hung", "interrupted")

Tolerance: TypeAlias = float | tuple[float, float]
Compare: TypeAlias = Mapping[str, Callable[[Any], Any] | None]

# `effort="quick"`: what a first call may cost at most.
QUICK_EVALS = 60
QUICK_SECONDS = 30.0

# Kernel Tuner's strategies: a name among these is accepted without importing Kernel Tuner, which takes a second.
STRATEGIES = (
    "adaptive_tabu_greywolf",
    "basinhopping",
    "bayes_opt",
    "brute_force",
    "diff_evo",
    "dual_annealing",
    "firefly_algorithm",
    "genetic_algorithm",
    "greedy_ils",
    "greedy_mls",
    "hybrid_vndx",
    "minimize",
    "mls",
    "nsga2",
    "nsga3",
    "ordered_greedy_mls",
    "pso",
    "pyatf_strategies",
    "random_sample",
    "simulated_annealing",
    "skopt",
)

# Where candidates run when the user does not say: measured, see docs/tuning.md.
ISOLATION: Literal["none", "process"] = "none"


@dataclass(frozen=True)
class TuneSettings:
    """How to tune; every option of the decorator that reaches a tuning run.

    Arguments
    ---------
    strategy: a Kernel Tuner strategy's name, or an object with `tune(searchspace, runner, tuning_options)`; None picks.
    strategy_options: the strategy's options.
    effort: `"quick"` is at most 60 evaluations and 30 s, `"full"` has no limit; the next two override it.
    max_evals, time_limit: evaluations that are made anew, and seconds of the whole run, at most.
    seed: makes the search's choices repeatable.
    compare: per output, a function whose results must agree instead, or None to ignore the output.
    reference: a function of the kernel's arguments that fills the outputs, or returns them (an array, or a dict);
        `"engine"` in a declaration becomes one that runs the default configuration on the other engine.
    tolerance: relative, or (relative, absolute); or a mapping of outputs to these.
    on_busy: when another process tunes this key: `"wait"` for its winner, or use the `"default"` at once.
    wait_limit: seconds to wait at most; `time_limit` where that is less.
    scratch_limit: bytes of scratch memory at most; None is the knob's.
    progress: show a progress bar; None shows it on a terminal.
    fresh: forget the trials known for this key first.
    isolation: `"none"` runs candidates in this process, `"process"` in a worker that may crash or hang.
    trial_limit: seconds that one launch (or batch of launches) of an isolated candidate may take; None is a multiple of
        the default configuration's time, some seconds at least.
    """

    strategy: Any = None
    strategy_options: Mapping[str, Any] = field(default_factory=dict)
    effort: Literal["quick", "full"] = "quick"
    max_evals: int | None = None
    time_limit: float | None = None
    seed: int = 0
    compare: Compare = field(default_factory=dict)
    reference: Callable[..., Any] | Literal["engine"] | None = None
    tolerance: Tolerance | Mapping[str, Tolerance] | None = None
    on_busy: Literal["wait", "default"] = "wait"
    wait_limit: float = 600.0
    scratch_limit: int | None = None
    progress: bool | None = None
    fresh: bool = False
    isolation: Literal["none", "process"] = ISOLATION
    trial_limit: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.strategy, str) and self.strategy not in STRATEGIES:
            from jlkern.tuning.search import strategies  # Kernel Tuner of another version may have more

            if self.strategy not in (names := strategies()):
                hint = close_to(self.strategy, names)
                raise OptionError(f"strategy= must be one of {', '.join(names)}, got {self.strategy!r}{hint}")
        if self.effort not in ("quick", "full"):
            raise OptionError(f"effort= must be 'quick' or 'full', got {self.effort!r}")
        if self.on_busy not in ("wait", "default"):
            raise OptionError(f"on_busy= must be 'wait' or 'default', got {self.on_busy!r}")
        if self.isolation not in ("none", "process"):
            raise OptionError(f"isolation= must be 'none' or 'process', got {self.isolation!r}")
        limit = self.trial_limit
        if limit is not None and (isinstance(limit, bool) or not (isinstance(limit, (int, float)) and limit > 0)):
            raise OptionError(f"trial_limit= must be a positive number of seconds, got {limit!r}")
        if self.max_evals is not None and not (type(self.max_evals) is int and self.max_evals > 0):
            raise OptionError(f"max_evals= must be a positive int, got {self.max_evals!r}")
        if self.time_limit is not None and not (isinstance(self.time_limit, (int, float)) and self.time_limit > 0):
            raise OptionError(f"time_limit= must be a positive number of seconds, got {self.time_limit!r}")

    @property
    def evals(self) -> int | None:
        """Evaluations at most, or None for no limit."""
        if self.max_evals is not None or self.effort == "full":
            return self.max_evals
        return QUICK_EVALS

    @property
    def seconds(self) -> float | None:
        """Seconds at most, or None for no limit."""
        if self.time_limit is not None or self.effort == "full":
            return self.time_limit
        return QUICK_SECONDS


@dataclass(frozen=True)
class TuneTask:
    """One tuning: an engine, a space, and the arguments of the call that asked; these are never written to.

    `request` and `ndrange` give, for a configuration and for params, what to compile and what to launch over.
    `names` are the kernel's data parameters in order, one per argument; `effects` says which of them it writes.
    """

    engine: Engine
    space: Space
    request: Callable[[Config], CompileRequest]
    ndrange: Callable[[Params], tuple[int, ...]]
    names: tuple[str, ...]
    args: tuple[Any, ...]
    effects: Effects
    key: MemoKey
    store: Store
    settings: TuneSettings = field(default_factory=TuneSettings)
    device: Device | None = None
    name: str = "kernel"


@dataclass(frozen=True)
class Trial:
    """One configuration's fate: `seconds` per launch and their relative `spread`; None where not measured.

    The seconds are the samples' lower quartile, or the least one where the spread is more than 1 (100 %).
    """

    config: Config
    status: Status
    seconds: float | None = None
    spread: float | None = None
    samples: int = 0
    reason: str = ""
    known: bool = False  # from the store, not measured in this run

    def __str__(self) -> str:
        if self.seconds is None:
            return f"{self.config}: {self.status}, {self.reason}"
        return f"{self.config}: {format_seconds(self.seconds)} ±{100 * (self.spread or 0):.0f} %"


@dataclass(frozen=True)
class TuneResult:
    """What a tuning run found.

    `trials` holds every configuration that was tried or known, trial 1 (the default) first. `speedup` is the default's
    time over the best's, both from the final interleaved rounds, or None where the default could not be measured.
    """

    best: Config
    trials: tuple[Trial, ...]
    default: Trial
    seconds: float | None = None
    speedup: float | None = None
    reference: str = "default"
    interrupted: bool = False
    noisy: bool = False
    adopted: bool = False
    busy: bool = False  # nothing was tuned, since another process does it
    complete: bool = True  # the whole space was tried
    elapsed: float = 0.0
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"best: {self.best}"]
        if self.seconds is not None:
            gain = f", {self.speedup:.2f}x the default's speed" if self.speedup is not None else ""
            lines[0] += f" ({format_seconds(self.seconds)}{gain})"
        counts: dict[str, int] = {}
        for trial in self.trials:
            counts[trial.status] = counts.get(trial.status, 0) + 1
        lines.append("trials: " + (", ".join(f"{n} {status}" for status, n in counts.items()) or "none"))
        return "\n".join([*lines, *self.notes])


class Advance(enum.Enum):
    """What one step of a tuning that is made in steps has done."""

    TRIED = "one more candidate was tried"
    ENOUGH = "no further candidate is to be tried; the final rounds are next"
    DONE = "there is a winner"
    BUSY = "another process is at it"


def format_seconds(seconds: float) -> str:
    """Write a time with three digits and a unit that suits it.

    >>> format_seconds(0.000123456)
    '123 us'
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
