"""The way from a call's arguments to a launcher when the table of the hot path has no entry.

A `Plan` is the outcome: what to launch, over which ndrange, for which configuration, and why that one. Nothing here
keeps an argument; two threads that ask for the same unknown key tune once, the second waits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jlkern import compiled, policy
from jlkern.engines.select import common_home, select
from jlkern.errors import ArgumentError, UnsupportedError
from jlkern.ndrange import Sizes, check_sizes
from jlkern.options import Declaration, key_value, pow2
from jlkern.signature import JuliaFunction, Signature, Val, check_written, classify
from jlkern.space import Config, Params, Value, fit_workgroup

if TYPE_CHECKING:
    from jlkern.engines.base import CompileRequest, Engine, Launcher
    from jlkern.memo.key import MemoKey
    from jlkern.memo.lookup import Found
    from jlkern.memo.store import Store
    from jlkern.tuning.task import TuneResult, TuneSettings, TuneTask

PLANS = 4096
"""Plans that a kernel keeps; the least recently used goes first."""

WHOLE = 10_000
"""Configurations of a space that are looked through for new values."""

SHAPES_BEFORE_WARNING = 8
"""Tuned shapes of one kernel in a process after which a warning names them."""


def nothing(*args: Any) -> int:
    """Launch nothing: what an ndrange with a 0 does."""
    return 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What one kind of call does. `launcher` is None when there is nothing to launch (`fire` is `nothing` then).

    `asked` is the ndrange under the default configuration, which a call's tuning goes by.
    """

    launcher: Launcher | None
    fire: Callable[..., int]
    ndrange: Sizes
    config: Config
    origin: str
    signature: Signature
    asked: Sizes


@dataclass(frozen=True, slots=True)
class Choice:
    """A configuration and where it comes from: "memo", "tuned", "nearest", "default", "call" or "untuned"."""

    config: Config
    origin: str
    lasting: bool = True  # False: only this call, the next one asks again


@dataclass
class Runtime:
    """The mutable side of one kernel: its plans and what it learned; everything else is in the declaration."""

    declaration: Declaration
    plans: OrderedDict[Hashable, Plan] = field(default_factory=OrderedDict)
    generation: int = 0  # how often the plans were forgotten
    tuned_shapes: list[str] = field(default_factory=list)
    checked: set[str] = field(default_factory=set)

    # --- calls ------------------------------------------------------------------------------------------------------

    def call(self, args: tuple[Any, ...], ndrange: Any, config: Mapping[str, Any] | None) -> tuple[Plan, bool]:
        """Run one call; returns the plan it followed, and whether that holds for later calls too."""
        key = self.key(args, ndrange, config)
        plan = self.recall(key)
        if plan is not None:
            try:
                status = plan.fire(*args)
            except Exception:  # the types fit no longer (a read-only array, say): found out below, nothing has run
                plan = None
            else:
                if status:
                    raise_failure(plan, plan.fire, status)
                return plan, True
        generation = self.generation
        plan, lasting = self.plan(args, ndrange, config)
        if plan.launcher is not None:
            status = plan.fire(*args)
            if status:
                raise_failure(plan, plan.fire, status)
        lasting = lasting and generation == self.generation  # a tuning that ended meanwhile knows better
        if lasting:
            self.remember(key, plan)
        return plan, lasting

    def recall(self, key: Hashable) -> Plan | None:
        """Return the plan kept under a key."""
        if key is None:
            return None
        with compiled.tables:
            plan = self.plans.get(key)
            if plan is not None:
                self.plans.move_to_end(key)
            return plan

    def remember(self, key: Hashable, plan: Plan) -> None:
        """Keep a plan under a key."""
        if key is None:
            return
        with compiled.tables:
            self.plans[key] = plan
            while len(self.plans) > PLANS:
                self.plans.popitem(last=False)

    def key(self, args: tuple[Any, ...], ndrange: Any, config: Mapping[str, Any] | None) -> Hashable:
        """Return what a plan depends on, or None for a call whose plan must be made anew."""
        rule = self.declaration.ndrange
        if (rule.dynamic and ndrange is None) or policy.is_frozen():
            return None
        try:
            if any(isinstance(args[i], np.ndarray) for i in self.counted):
                return None  # a 0-d array gives a size: only its type could be in the key
            parts = tuple(map(part, args))
            values = tuple((type(args[i]), args[i]) for i in self.valued if not isinstance(args[i], np.ndarray))
            fixed = None if config is None else tuple((k, repr(v)) for k, v in config.items())
            sizes = None if ndrange is None else check_sizes(ndrange, "ndrange=")
            key = (parts, values, fixed, sizes)
            hash(key)
        except Exception:  # whatever is wrong with the arguments is said with care when the plan is made
            return None
        return key

    @cached_property
    def counted(self) -> tuple[int, ...]:
        """The places of the parameters whose values the ndrange is made of."""
        decl = self.declaration
        return tuple(i for i, name in enumerate(decl.names) if name in decl.ndrange.scalars)

    @cached_property
    def valued(self) -> tuple[int, ...]:
        """The places of parameters whose values a plan depends on; of arrays `key=` may read types and shapes only."""
        decl = self.declaration
        wanted = set(decl.ndrange.scalars) | set(decl.key.names if decl.key else ())
        return tuple(i for i, name in enumerate(decl.names) if name in wanted)

    # --- plans ------------------------------------------------------------------------------------------------------

    def plan(self, args: tuple[Any, ...], ndrange: Any, config: Mapping[str, Any] | None) -> tuple[Plan, bool]:
        """Validate the arguments and decide what to launch; tunes when nothing is known and the policy says so.

        Returns the plan and whether it holds for later calls too.
        """
        decl = self.declaration
        engine, signature = self.validate(args)
        if config is not None:
            choice = Choice(decl.space.resolve(config), "call")
            given, sizes = self.sizes(args, ndrange, choice.config.as_dict())
            asked = sizes
        else:
            given, sizes = self.sizes(args, ndrange)
            asked = sizes
            if 0 in sizes:
                return Plan(None, nothing, sizes, decl.space.default(), "default", signature, sizes), True
            choice = self.choose(engine, signature, args, sizes, given)
            if given is None and decl.ndrange.tunables:
                sizes = decl.ndrange(args, choice.config.as_dict())
        if 0 in sizes:
            return Plan(None, nothing, sizes, choice.config, choice.origin, signature, asked), choice.lasting
        launcher = self.launcher(engine, signature, choice.config, len(sizes))
        fire = adapted(launcher.fire(sizes), args)
        return Plan(launcher, fire, sizes, choice.config, choice.origin, signature, asked), choice.lasting

    def validate(self, args: tuple[Any, ...]) -> tuple[Engine, Signature]:
        """Check every argument of a call. Raises `ArgumentError`, or what the choice of an engine raises."""
        decl = self.declaration
        home = common_home(decl.names, args)
        if home == "cpu":
            signature = tuple(classify(name, value) for name, value in zip(decl.names, args, strict=True))
            for name, value in zip(decl.names, args, strict=True):
                if name in decl.doubtful:
                    self._check_doubtful(name, value)
                elif name in decl.written:
                    check_written(name, value)
        else:
            signature = ()
        from jlkern.knobs import knobs

        option = decl.options.engine if decl.options.engine != "auto" else knobs.engine
        return select(option, decl.source, home, self.checked), signature

    def _check_doubtful(self, name: str, value: Any) -> None:
        """Check an argument that the kernel may write, where the source proves neither that nor the contrary."""
        if not isinstance(value, np.ndarray):
            return
        try:
            check_written(name, value)
        except ArgumentError as problem:
            raise ArgumentError(
                f"{problem} (nothing proves that {self.declaration.title} leaves it alone; inout= says what is written)"
            ) from None

    def sizes(self, args: tuple[Any, ...], ndrange: Any, params: Params | None = None) -> tuple[Sizes | None, Sizes]:
        """Return the ndrange that a call gives or None, and the one that holds, for the default params or others."""
        decl = self.declaration
        given = None if ndrange is None else check_sizes(ndrange, "ndrange=")
        if given is not None:
            return given, given
        return None, decl.ndrange(args, decl.space.default().as_dict() if params is None else params)

    def launcher(self, engine: Engine, signature: Signature, config: Config, ndims: int) -> Launcher:
        """Return the compiled kernel for a configuration. Raises `CompileError`, or `ArgumentError` for its types."""
        try:
            return compiled.launcher_for(engine, self.request(signature, config, ndims))
        except UnsupportedError as problem:
            for name, arg in zip(self.declaration.names, signature, strict=True):
                if "float16" in str(arg):
                    raise ArgumentError(
                        f"argument {name!r}: the {engine.name} engine has no float16; pass np.float32 ({problem})"
                    ) from problem
            raise

    def request(self, signature: Signature, config: Config, ndims: int) -> CompileRequest:
        """Return what to compile for a configuration."""
        from jlkern.engines.base import CompileRequest
        from jlkern.knobs import knobs

        decl = self.declaration
        params = config.as_dict()
        workgroup = decl.workgroup(params)
        return CompileRequest(
            source=decl.source,
            signature=signature,
            params=params,
            workgroup=None if workgroup is None else fit_workgroup(workgroup, ndims),
            ndims=ndims,
            written=decl.julia_written,
            schedule=config.schedule,
            check_bounds=knobs.check_bounds,
        )

    # --- the choice of a configuration ------------------------------------------------------------------------------

    def choose(
        self, engine: Engine, signature: Signature, args: tuple[Any, ...], sizes: Sizes, given: Sizes | None
    ) -> Choice:
        """Return the configuration for a call: known, tuned now, or what the policy says."""
        decl = self.declaration
        if not decl.tuned:
            return Choice(decl.space.default(), "untuned")
        store, key = self.store(), self.memo_key(engine, signature, args, sizes)
        tuning = not policy.is_frozen() and decl.options.first_call == "tune"
        found = self.lookup(store, key)
        if found is not None and not (tuning and self.has_grown(store, key, found)):
            return Choice(found.config, "memo")
        if not tuning:
            return self.without_tuning(store, key, signature, sizes)
        with compiled.locks.hold(("tune", key.id)) as first:
            if not first:
                # a compare= or reference= function of this very tuning calls the kernel
                return Choice(decl.space.default(), "default", lasting=False)
            found = self.lookup(store, key)
            if found is not None and not self.has_grown(store, key, found):
                return Choice(found.config, "memo")
            result = self.tune(engine, signature, args, given, store, key, decl.settings)
        if result.interrupted:
            raise KeyboardInterrupt
        # without trials of its own, it is the default until another process has found the winner: ask again
        busy = not result.trials and decl.settings.on_busy == "default"
        return Choice(result.best, "default" if busy else "tuned", lasting=not busy)

    def without_tuning(
        self, store: Store, key: MemoKey, signature: Signature, sizes: Sizes, record: bool = True
    ) -> Choice:
        """Return the nearest known configuration where that is wanted, else the default."""
        from jlkern.memo.lookup import lookup, nearest

        decl = self.declaration
        frozen = policy.is_frozen()
        near = None
        if frozen or decl.options.first_call == "nearest":
            # what another kind of machine found for these shapes is nearer than what this one found for others
            near = lookup(store, key, decl.space) or nearest(store, key, decl.space)
        choice = Choice(near.config, "nearest") if near is not None else Choice(decl.space.default(), "default")
        if frozen:
            if record:
                text = ", ".join(map(str, signature))
                policy.record_miss(policy.Miss(decl.title, text, sizes, choice.config, choice.origin))
            return Choice(choice.config, choice.origin, lasting=False)
        return choice

    def tune(
        self,
        engine: Engine,
        signature: Signature,
        args: tuple[Any, ...],
        given: Sizes | None,
        store: Store,
        key: MemoKey,
        settings: TuneSettings,
    ) -> TuneResult:
        """Run one tuning."""
        import logging

        from jlkern import log
        from jlkern.tuning.run import tune

        result = tune(self.task(engine, signature, args, given, store, key, settings))
        log.event(log.get(__name__), logging.INFO, "tuned", kernel=self.declaration.title, best=result.best)
        self._count_shape(key)
        return result

    def task(
        self,
        engine: Engine,
        signature: Signature,
        args: tuple[Any, ...],
        given: Sizes | None,
        store: Store,
        key: MemoKey,
        settings: TuneSettings,
    ) -> TuneTask:
        """Return the description of a tuning run."""
        from jlkern.tuning.task import TuneTask

        decl = self.declaration
        plain = tuple(map(plain_array, args))

        def ndrange(params: Params) -> Sizes:
            return given or decl.ndrange(args, params)

        return TuneTask(
            engine=engine,
            space=decl.space,
            request=lambda config: self.request(signature, config, len(ndrange(config.as_dict()))),
            ndrange=ndrange,
            names=decl.names,
            args=plain,
            effects=decl.effects(),
            key=key,
            store=store,
            settings=settings,
            device=engine.devices()[0],
            name=decl.title,
        )

    def lookup(self, store: Store, key: MemoKey) -> Found | None:
        """Return what is remembered for a key on this machine or one of its class."""
        from jlkern.memo.lookup import lookup

        found = lookup(store, key, self.declaration.space)
        return None if found is None or found.winner.rank == "other" else found

    def has_grown(self, store: Store, key: MemoKey, found: Found) -> bool:
        """Tell whether values were added to a tunable since a whole search of the space found this winner.

        A search that left combinations out may have left values out too, so it tells nothing.
        """
        space = self.declaration.space
        if found.winner.rank != "exact" or space.larger_than(WHOLE):
            return False
        tried = {repr(trial.config.params) for trial in store.trials(key)}
        untried = [config for config in space.configs() if repr(config.params) not in tried]
        if not untried or not tried:
            return False
        values = {pair for config in space.configs() if repr(config.params) in tried for pair in _pairs(config)}
        return all(not values.issuperset(_pairs(config)) for config in untried)

    def store(self) -> Store:
        """Return the process's store."""
        from jlkern.memo.store import open_store

        return open_store()

    def memo_key(self, engine: Engine, signature: Signature, args: tuple[Any, ...], sizes: Sizes) -> MemoKey:
        """Return what a call's tuning is remembered under."""
        from jlkern.knobs import knobs
        from jlkern.memo.key import MemoKey

        decl = self.declaration
        return MemoKey(
            engine=engine.name,
            source=decl.source.digest,
            tunables=decl.reaches,
            signature=tuple(map(str, signature)),
            shapes=self.shapes(args, sizes),
            environment=engine.environment(),
            options=(("check_bounds", True),) if knobs.check_bounds else (),
        )

    def shapes(self, args: tuple[Any, ...], sizes: Sizes) -> tuple[tuple[str, Value], ...]:
        """Return what stands for the shapes in a memo key: themselves, their buckets, or the value of `key=`."""
        decl = self.declaration
        if decl.key is not None:
            return (("key", key_value(decl.key(dict(zip(decl.names, args, strict=True))))),)
        found = [(name, v.shape) for name, v in zip(decl.names, args, strict=True) if isinstance(v, np.ndarray)]
        found.append(("ndrange", sizes))
        if decl.options.bucket == "pow2":
            found = [(name, tuple(map(pow2, shape))) for name, shape in found]
        return tuple(found)

    def forget(self) -> None:
        """Forget the plans: after a tuning, later calls must ask again."""
        with compiled.tables:
            self.plans.clear()
            self.generation += 1

    def _count_shape(self, key: MemoKey) -> None:
        with compiled.tables:
            self.tuned_shapes.append(", ".join(f"{name}={value}" for name, value in key.shapes))
            shapes = list(self.tuned_shapes)
        if len(shapes) == SHAPES_BEFORE_WARNING:
            import warnings

            from jlkern.errors import TuningWarning

            warnings.warn(
                f"{self.declaration.title} was tuned for {len(shapes)} shapes in this process ({'; '.join(shapes)}); "
                "let shapes share a tuning with bucket='pow2' or key=",
                TuningWarning,
                stacklevel=5,
            )


def raise_failure(plan: Plan, fire: Callable[..., int], status: int) -> None:
    """Raise the error that a launch's nonzero status stands for."""
    assert plan.launcher is not None
    plan.launcher.fail(getattr(fire, "inner", fire), status)


def part(value: Any) -> Hashable:
    """Return what compiled code depends on in an argument, and an array's shape; `TypeError` for other objects."""
    kind: type = value.__class__
    if isinstance(value, np.ndarray):
        return kind, value.dtype, value.shape, value.strides
    if kind is tuple:
        return tuple, tuple(map(part, value))
    if kind in (bool, int, float, complex) or isinstance(value, np.generic):
        return kind
    if isinstance(value, (type, np.dtype)):
        return type, value
    if kind is Val:
        return Val, repr(value.value)
    if kind is JuliaFunction:
        return JuliaFunction, value.name
    raise TypeError


def plain_array(value: Any) -> Any:
    """Return an array of a subclass as a plain view of its memory, anything else as it is."""
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
        return value.view(np.ndarray)
    return value


def _pairs(config: Config) -> list[tuple[str, str]]:
    """Return a configuration's names with their values, told apart by type."""
    return [(name, repr(value)) for name, value in config.params]


class Adapted:
    """A launch that first takes plain views of arrays of subclasses (`np.matrix`, `np.memmap`)."""

    __slots__ = ("inner",)

    def __init__(self, inner: Callable[..., int]) -> None:
        self.inner = inner

    def __call__(self, *args: Any) -> int:
        return self.inner(*map(plain_array, args))


def adapted(fire: Callable[..., int], args: tuple[Any, ...]) -> Callable[..., int]:
    """Return `fire` in the form that takes arguments of these classes."""
    if any(isinstance(v, np.ndarray) and type(v) is not np.ndarray for v in args):
        return Adapted(fire)
    return fire
