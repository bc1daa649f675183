"""Which configuration a call gets: what is remembered, what a tuning finds now, or what stands in for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jlkern import compiled, opinion, policy
from jlkern.devices import is_array
from jlkern.ndrange import Sizes
from jlkern.options import Declaration, key_value, pow2
from jlkern.signature import Signature
from jlkern.space import Config, Params, Value

if TYPE_CHECKING:
    from jlkern.engines.base import Engine
    from jlkern.memo.key import MemoKey
    from jlkern.memo.lookup import Found
    from jlkern.memo.store import Store, Winner
    from jlkern.tuning.task import Advance, TuneResult, TuneSettings, TuneTask

WHOLE = 10_000
"""Configurations of a space that are looked through for new values."""

SO_FAR_GAIN = 0.1
"""What a trial has to be better by than the default for calls to use it before the final rounds."""

SHAPES_BEFORE_WARNING = 8
"""Tuned shapes of one kernel in a process after which a warning names them."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A configuration and its origin: "memo", "package", "tuned", "trials", "nearest", "default", "call", "untuned"."""

    config: Config
    origin: str
    lasting: bool = True  # False: only this call, the next one asks again
    open: bool = False  # candidates are still tried after calls


@dataclass(frozen=True)
class Case:
    """A call whose configuration is asked for.

    `sizes` is its ndrange under the default configuration, `given` the one that the call itself gave; `tuned` collects
    the shapes that its kernel was tuned for. It holds the arguments, so it does not outlive the call.
    """

    declaration: Declaration
    engine: Engine
    signature: Signature
    args: tuple[Any, ...]
    sizes: Sizes
    given: Sizes | None
    tuned: list[str]

    @cached_property
    def store(self) -> Store:
        """The process's store."""
        return the_store()

    @cached_property
    def key(self) -> MemoKey:
        """What the call's tuning is remembered under."""
        from jlkern.knobs import knobs
        from jlkern.memo.key import MemoKey

        decl = self.declaration
        return MemoKey(
            engine=self.engine.name,
            source=decl.source.digest,
            tunables=decl.reaches,
            signature=tuple(map(str, self.signature)),
            shapes=self._shapes(),
            environment=self.engine.environment(),
            options=(("check_bounds", True),) if knobs.check_bounds else (),
        )

    def _shapes(self) -> tuple[tuple[str, Value], ...]:
        """Return what stands for the shapes in the key: themselves, their buckets, or the value of `key=`."""
        decl = self.declaration
        named: Mapping[str, Any] = dict(zip(decl.names, self.args, strict=True))
        if decl.key is not None:
            return (("key", key_value(decl.key(named))),)
        found = [(name, value.shape) for name, value in named.items() if is_array(value)]
        found.append(("ndrange", self.sizes))
        if decl.options.bucket == "pow2":
            found = [(name, tuple(map(pow2, shape))) for name, shape in found]
        return tuple(found)


def the_store() -> Store:
    """Return the process's store."""
    from jlkern.memo.store import open_store

    return open_store()


def choose(case: Case) -> Choice:
    """Return the configuration for a call: known, tuned now, or what the policy says.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C ended the tuning; what was measured is kept, and the next call goes on from there.
    """
    decl = case.declaration
    if not decl.tuned:
        return Choice(decl.space.default(), "untuned")
    tuning = not policy.is_frozen() and decl.options.first_call == "tune"
    found = lookup(case)
    if found is not None and not (tuning and has_grown(case, found)):
        return Choice(found.config, origin_of(found))
    if not tuning:
        return without_tuning(case)
    with compiled.locks.hold(("tune", case.key.id)) as first:
        if not first:
            # a compare= or reference= function of this very tuning calls the kernel
            return Choice(decl.space.default(), "default", lasting=False)
        found = lookup(case)
        if found is not None and not has_grown(case, found):
            return Choice(found.config, origin_of(found))
        result = run_tuning(case, decl.settings)
    if result.interrupted:
        raise KeyboardInterrupt
    # while another process tunes, it is the default: the next call asks again
    return Choice(result.best, "default" if result.busy else "tuned", lasting=not result.busy)


def without_tuning(case: Case, record: bool = True) -> Choice:
    """Return the nearest known configuration where that is wanted, else the default; notes a miss when frozen."""
    from jlkern.memo import lookup as memo

    decl = case.declaration
    frozen = policy.is_frozen()
    if not frozen and decl.options.first_call == "amortise":
        return best_so_far(case)
    near = None
    if frozen or decl.options.first_call == "nearest":
        # what another kind of machine found for these shapes is nearer than what this one found for others
        near = memo.lookup(case.store, case.key, decl.space, shipped(case)) or nearest(case)
    choice = Choice(near.config, "nearest") if near is not None else Choice(decl.space.default(), "default")
    if not frozen:
        return choice
    if record:
        policy.record_miss(miss_of(case, choice))
    return Choice(choice.config, choice.origin, lasting=False)


def best_so_far(case: Case) -> Choice:
    """Return what calls get while candidates are tried after them: the best trial if it is far better, or the default.

    Trials were made at different times, so only a gain that is more than noise counts before the final rounds.
    """
    from jlkern.memo.lookup import usable
    from jlkern.memo.store import Winner

    space = case.declaration.space
    default = space.default()
    good = {t.config: t.seconds for t in case.store.trials(case.key) if t.status == "ok" and t.seconds is not None}
    best = min(good, key=good.__getitem__, default=default)
    if best == default or default not in good or good[best] > good[default] * (1 - SO_FAR_GAIN):
        return Choice(default, "default", open=True)
    if not usable([Winner(best)], space):
        return Choice(default, "default", open=True)
    return Choice(best, "trials", open=True)


def advance_tuning(case: Case, final: bool) -> Advance:
    """Take one step of a tuning that is made in steps: one candidate, or the final rounds."""
    from jlkern.tuning.run import advance

    with compiled.locks.hold(("tune", case.key.id)) as first:
        if not first:
            return _busy()
        found = advance(_task(case, case.declaration.settings), final)
    if final:
        _count_shape(case)
    return found


def _busy() -> Advance:
    from jlkern.tuning.task import Advance

    return Advance.BUSY


def miss_of(case: Case, choice: Choice) -> policy.Miss:
    """Return what is recorded of a call that would have been tuned: names, types, shapes and sizes, never contents."""
    decl = case.declaration
    named = dict(zip(decl.names, case.args, strict=True))
    wanted = set(decl.ndrange.names) | set(decl.key.names if decl.key else ())
    numbers = {n: v.item() if isinstance(v, np.generic) else v for n, v in named.items() if n in wanted}
    return policy.Miss(
        decl.title,
        ", ".join(map(str, case.signature)),
        case.sizes,
        choice.config,
        choice.origin,
        decl.reference,
        decl.source.digest,
        tuple(map(str, case.signature)),
        tuple((n, v.shape) for n, v in named.items() if is_array(v)),
        tuple((n, v) for n, v in numbers.items() if isinstance(v, (bool, int, float))),
        case.given,
    )


def lookup(case: Case) -> Found | None:
    """Return what is remembered for a call on this machine or one of its class."""
    from jlkern.memo import lookup as memo

    found = memo.lookup(case.store, case.key, case.declaration.space, shipped(case))
    return None if found is None or found.winner.rank == "other" else found


def nearest(case: Case) -> Found | None:
    """Return what is remembered or shipped for the nearest shapes."""
    from jlkern.memo import bundle
    from jlkern.memo import lookup as memo

    family = bundle.shipped_family(module_of(case.declaration), case.key)
    return memo.nearest(case.store, case.key, case.declaration.space, family)


def shipped(case: Case) -> list[Winner]:
    """Return what packages ship for a call."""
    from jlkern.memo import bundle

    return bundle.shipped(module_of(case.declaration), case.key)


def module_of(declaration: Declaration) -> str:
    """Return the name of the module that a kernel belongs to."""
    return declaration.reference.partition(":")[0]


def origin_of(found: Found) -> str:
    """Return the origin of a choice that was looked up."""
    return "memo" if found.origin == "user" else found.origin


def has_grown(case: Case, found: Found) -> bool:
    """Tell whether values were added to a tunable since a whole search of the space found this winner.

    A search that left combinations out may have left values out too, so it tells nothing.
    """
    space = case.declaration.space
    if found.winner.rank != "exact" or space.larger_than(WHOLE):
        return False
    tried = {repr(trial.config.params) for trial in case.store.trials(case.key)}
    untried = [config for config in space.configs() if repr(config.params) not in tried]
    if not untried or not tried:
        return False
    values = {pair for config in space.configs() if repr(config.params) in tried for pair in _pairs(config)}
    return all(not values.issuperset(_pairs(config)) for config in untried)


def run_tuning(case: Case, settings: TuneSettings) -> TuneResult:
    """Tune for a call."""
    import logging

    from jlkern import log
    from jlkern.tuning.run import tune

    result = tune(_task(case, settings))
    log.event(log.get(__name__), logging.INFO, "tuned", kernel=case.declaration.title, best=result.best)
    _count_shape(case)
    return result


def _task(case: Case, settings: TuneSettings) -> TuneTask:
    from jlkern.tuning.task import TuneTask

    decl = case.declaration

    def ndrange(params: Params) -> Sizes:
        return case.given or decl.ndrange(case.args, params)

    args = tuple(map(plain_array, case.engine.on_host(case.args)))
    if settings.reference == "engine":
        sizes = ndrange(decl.space.default().as_dict())
        second = opinion.reference(case.engine, decl, case.signature, sizes, case.args)
        settings = replace(settings, reference=second)
    return TuneTask(
        engine=case.engine,
        space=decl.space,
        request=lambda config: decl.request(case.signature, config, len(ndrange(config.as_dict()))),
        ndrange=ndrange,
        names=decl.names,
        args=args,
        effects=decl.effects(),
        key=case.key,
        store=case.store,
        settings=settings,
        device=case.engine.devices()[0],
        name=decl.title,
    )


def _count_shape(case: Case) -> None:
    shape = ", ".join(f"{name}={value}" for name, value in case.key.shapes)
    if shape in case.tuned:  # for other types or memory orders
        return
    case.tuned.append(shape)
    shapes = list(case.tuned)
    if len(shapes) == SHAPES_BEFORE_WARNING:
        import warnings

        from jlkern.errors import TuningWarning

        warnings.warn(
            f"{case.declaration.title} was tuned for {len(shapes)} shapes in this process ({'; '.join(shapes)}); "
            "let shapes share a tuning with bucket='pow2' or key=",
            TuningWarning,
            stacklevel=7,
        )


def plain_array(value: Any) -> Any:
    """Return an array of a subclass as a plain view of its memory, anything else as it is."""
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
        return value.view(np.ndarray)
    return value


def _pairs(config: Config) -> list[tuple[str, str]]:
    """Return a configuration's names with their values, told apart by type."""
    return [(name, repr(value)) for name, value in config.params]
