"""The way from a call's arguments to a launcher when the table of the hot path has no entry.

A `Plan` is the outcome: what to launch, over which ndrange, for which configuration, and why that one. Nothing here
keeps an argument; two threads that ask for the same unknown key tune once, the second waits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from jlkern import compiled, policy
from jlkern.choice import Case, Choice, choose, plain_array
from jlkern.devices import DeviceArray, is_array
from jlkern.engines.select import common_home, select
from jlkern.errors import ArgumentError, UnsupportedError
from jlkern.ndrange import Sizes, check_sizes
from jlkern.options import Declaration
from jlkern.signature import JuliaFunction, Signature, Val, check_written, classify
from jlkern.space import Config, as_params

if TYPE_CHECKING:
    from jlkern.amortise import Account
    from jlkern.engines.base import Engine, Launcher

Fixed: TypeAlias = "Mapping[str, Any] | Config | None"
Key: TypeAlias = tuple[Hashable, ...]

PLANS = 4096
"""Plans that a kernel keeps; the least recently used goes first."""


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


@dataclass
class Runtime:
    """The mutable side of one kernel: its plans and what it learned; everything else is in the declaration."""

    declaration: Declaration
    plans: OrderedDict[Key, Plan] = field(default_factory=OrderedDict)
    generation: int = 0  # how often the plans were forgotten
    tuned_shapes: list[str] = field(default_factory=list)
    checked: set[str] = field(default_factory=set)
    accounts: dict[str, Account] = field(default_factory=dict)  # by the key of a tuning that goes on after calls
    reset: Callable[[], None] = lambda: None  # makes all later calls ask anew; the dispatcher's

    # --- calls ------------------------------------------------------------------------------------------------------

    def call(self, args: tuple[Any, ...], ndrange: Any, config: Fixed) -> tuple[Plan, bool]:
        """Run one call; returns the plan it followed, and whether that holds for later calls too.

        While frozen, a plan is kept for as long as that lasts: its key holds what the process was frozen by.
        """
        key = self.key(args, ndrange, config)
        plan = self.recall(key)
        if key is not None and plan is not None:
            try:
                status = plan.fire(*args)
            except Exception:  # the types fit no longer (a read-only array, say): found out below, nothing has run
                plan = None
            else:
                if status:
                    raise_failure(plan, plan.fire, status)
                return plan, key[0] is None
        generation = self.generation
        plan, lasting = self.plan(args, ndrange, config)
        if plan.launcher is not None:
            status = plan.fire(*args)
            if status:
                raise_failure(plan, plan.fire, status)
        lasting = lasting and generation == self.generation  # a tuning that ended meanwhile knows better
        if key is not None and (lasting or (key[0] is not None and generation == self.generation)):
            self.remember(key, plan)
        return plan, lasting

    def recall(self, key: Key | None) -> Plan | None:
        """Return the plan kept under a key."""
        if key is None:
            return None
        with compiled.tables:
            plan = self.plans.get(key)
            if plan is not None:
                self.plans.move_to_end(key)
            return plan

    def remember(self, key: Key, plan: Plan) -> None:
        """Keep a plan under a key."""
        with compiled.tables:
            self.plans[key] = plan
            while len(self.plans) > PLANS:
                self.plans.popitem(last=False)

    def key(self, args: tuple[Any, ...], ndrange: Any, config: Fixed) -> Key | None:
        """Return what a plan depends on, or None for a call whose plan must be made anew."""
        rule = self.declaration.ndrange
        if rule.dynamic and ndrange is None:
            return None
        try:
            if any(is_array(args[i]) for i in self.counted):
                return None  # a 0-d array gives a size: only its type could be in the key
            parts = tuple(map(part, args))
            values = tuple((type(args[i]), args[i]) for i in self.valued if not is_array(args[i]))
            fixed = None if config is None else tuple((k, repr(v)) for k, v in dict(as_params(config)).items())
            sizes = None if ndrange is None else check_sizes(ndrange, "ndrange=")
            key = (policy.frozen_state(), parts, values, fixed, sizes)
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

    def plan(self, args: tuple[Any, ...], ndrange: Any, config: Fixed) -> tuple[Plan, bool]:
        """Validate the arguments and decide what to launch; tunes when nothing is known and the policy says so.

        Returns the plan and whether it holds for later calls too.
        """
        decl = self.declaration
        engine, signature = self.validate(args)
        if config is not None:
            choice = Choice(decl.resolve(config), "call")
            given, sizes = decl.sizes(args, ndrange, choice.config.as_dict())
            asked = sizes
        else:
            given, sizes = decl.sizes(args, ndrange)
            asked = sizes
            if 0 in sizes:
                return Plan(None, nothing, sizes, decl.space.default(), "default", signature, sizes), True
            decl.check_workgroups(args, given)
            choice = choose(self.case(engine, signature, args, sizes, given))
            if given is None and decl.ndrange.tunables:
                sizes = decl.ndrange(args, choice.config.as_dict())
        if 0 in sizes:
            return Plan(None, nothing, sizes, choice.config, choice.origin, signature, asked), choice.lasting
        launcher = self.launcher(engine, signature, choice.config, len(sizes))
        fire = adapted(launcher.fire(sizes), args)
        if choice.open:
            fire = self.amortising(fire, choice.config, self.case(engine, signature, args, asked, given))
        return Plan(launcher, fire, sizes, choice.config, choice.origin, signature, asked), choice.lasting

    def amortising(self, fire: Callable[..., int], config: Config, case: Case) -> Callable[..., int]:
        """Return a launch after which candidates are tried."""
        from jlkern.amortise import Account, Amortising

        engine, signature, sizes, given = case.engine, case.signature, case.sizes, case.given

        def case_of(args: tuple[Any, ...]) -> Case:
            return self.case(engine, signature, args, sizes, given)

        account = self.accounts.setdefault(case.key.id, Account())
        return Amortising(fire, config, account, case_of, lambda: self.reset())

    def validate(self, args: tuple[Any, ...]) -> tuple[Engine, Signature]:
        """Check every argument of a call. Raises `ArgumentError`, or what the choice of an engine raises."""
        decl = self.declaration
        home = common_home(decl.names, args)
        signature = tuple(classify(name, value) for name, value in zip(decl.names, args, strict=True))
        for name, value in zip(decl.names, args, strict=True):
            if name in decl.doubtful:
                self._check_doubtful(name, value)
            elif name in decl.written:
                check_written(name, value)
        from jlkern.knobs import knobs

        option = decl.options.engine if decl.options.engine != "auto" else knobs.engine
        return select(option, decl.source, home, self.checked, decl.options.device), signature

    def case(
        self, engine: Engine, signature: Signature, args: tuple[Any, ...], sizes: Sizes, given: Sizes | None
    ) -> Case:
        """Return what the choice of a configuration goes by."""
        return Case(self.declaration, engine, signature, args, sizes, given, self.tuned_shapes)

    def _check_doubtful(self, name: str, value: Any) -> None:
        """Check an argument that the kernel may write, where the source proves neither that nor the contrary."""
        if not is_array(value):
            return
        try:
            check_written(name, value)
        except ArgumentError as problem:
            raise ArgumentError(
                f"{problem} (nothing proves that {self.declaration.title} leaves it alone; inout= says what is written)"
            ) from None

    def launcher(self, engine: Engine, signature: Signature, config: Config, ndims: int) -> Launcher:
        """Return the compiled kernel for a configuration. Raises `CompileError`, or `ArgumentError` for its types."""
        try:
            return compiled.launcher_for(engine, self.declaration.request(signature, config, ndims))
        except UnsupportedError as problem:
            for name, arg in zip(self.declaration.names, signature, strict=True):
                if "float16" in str(arg):
                    raise ArgumentError(
                        f"argument {name!r}: the {engine.name} engine has no float16; pass np.float32 ({problem})"
                    ) from problem
            raise

    def forget(self) -> None:
        """Forget the plans: after a tuning, later calls must ask again."""
        with compiled.tables:
            self.plans.clear()
            self.generation += 1


def raise_failure(plan: Plan, fire: Callable[..., int], status: int) -> None:
    """Raise the error that a launch's nonzero status stands for."""
    assert plan.launcher is not None
    plan.launcher.fail(getattr(fire, "inner", fire), status)


def part(value: Any) -> Hashable:
    """Return what compiled code depends on in an argument, and an array's shape; `TypeError` for other objects."""
    kind: type = value.__class__
    if isinstance(value, np.ndarray):
        return kind, value.dtype, value.shape, value.strides
    if kind is DeviceArray:
        return value.home, value.dtype, value.shape, value.strides, value.writeable
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
