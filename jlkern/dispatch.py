"""The hot path: one generated function per kernel that goes from the arguments to a launch by one dictionary look-up.

The function is written at a kernel's first call, when it is known which parameters are arrays and which are numbers.
Its key holds, for each array, class, dtype, shape and strides, and for each number its class, so that a compiled
launch only ever meets the types that it was compiled for. Whatever the key does not tell (a read-only array), the
launch refuses before it runs; then, and for every unknown key, the slow path in `runtime` takes over.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from jlkern import compiled, policy
from jlkern.devices import described
from jlkern.errors import JlkernError
from jlkern.parameters import convert
from jlkern.runtime import Plan, Runtime, adapted, part, raise_failure
from jlkern.signature import ArrayArg, ScalarArg, Signature

if TYPE_CHECKING:
    from jlkern.kernel import Kernel

TABLE = 1024
"""Entries of a kernel's table. The oldest goes first; one still in use comes back from the plans at its next call."""


class Dispatcher:
    """A kernel's table and what fills it."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        runtime.reset = self.forget
        self.table: dict[Hashable, Callable[..., int]] = {}
        self.plans: dict[Callable[..., int], Plan] = {}
        self.kinds: tuple[str, ...] | None = None
        self.key: Callable[..., Hashable] | None = None

    def miss(self, kernel: Kernel[...], args: tuple[Any, ...], ndrange: Any, config: Any) -> None:
        """Make a call that the table does not know, and enter it."""
        frozen = policy.frozen_state()
        generation = self.runtime.generation
        plan, lasting = self.runtime.call(described(self.runtime.declaration.names, args), ndrange, config)
        if ndrange is None and config is None:
            if lasting:
                self.enter(kernel, args, plan)
            elif frozen is not None and generation == self.runtime.generation:
                self.enter(kernel, args, plan, frozen)

    def enter(self, kernel: Kernel[...], args: tuple[Any, ...], plan: Plan, frozen: Hashable = None) -> None:
        """Enter a plan into the table, for good or for as long as the process is frozen as it is.

        The first one decides the form of the generated function.
        """
        kinds = kinds_of(plan.signature)
        with compiled.tables:
            if self.kinds is None:
                call, self.key = self.generate(kinds)
                self.kinds = kinds
                type(kernel).__call__ = call  # type: ignore[method-assign]
            if kinds != self.kinds or self.key is None:
                return
            if any(kinds[i] == "array" for i in self.runtime.counted):
                return  # a size given as a 0-d array, whose value the key does not hold
            try:
                key = self.key(*args)
                hash(key)
            except Exception:  # an argument that the generated key cannot hold: every call takes the slow path
                return
            fire = plan.fire
            if self.runtime.declaration.ndrange.dynamic:
                fire = Asking(self.runtime, plan)
            if frozen is not None:
                fire = WhileFrozen(fire, frozen)
            self.table[key] = fire
            self.plans[fire] = plan
            while len(self.table) > TABLE:
                self.plans.pop(self.table.pop(next(iter(self.table))), None)

    def failed(self, fire: Callable[..., int], status: int, args: tuple[Any, ...]) -> None:
        """Raise the error that a launch reported by its status."""
        plan = self.plans.get(fire)
        if plan is None:  # its entry has just been pushed out
            plan, _ = self.runtime.plan(described(self.runtime.declaration.names, args), None, None)
        raise_failure(plan, fire, status)

    def forget(self) -> None:
        """Empty the table, so that the next calls ask anew."""
        self.runtime.forget()
        with compiled.tables:
            self.table.clear()
            self.plans.clear()

    def generate(self, kinds: tuple[str, ...]) -> tuple[Callable[..., None], Callable[..., Hashable]]:
        """Write the function of a call, and the one of its key, for parameters of these kinds."""
        decl = self.runtime.declaration
        parameters = decl.parameters
        names = parameters.names
        mark = "_jlkern"
        while any(name.startswith(mark) for name in names):
            mark = f"_{mark}"
        valued = {names[i] for i in self.runtime.valued}
        parts: list[str] = []
        for name, kind in zip(names, kinds, strict=True):
            if kind == "array":
                parts += [f"{name}.__class__", f"{name}.dtype", f"{name}.shape", f"{name}.strides"]
            elif kind == "scalar":
                parts += [f"{name}.__class__"] if name not in parameters.converts else []
            else:
                parts.append(f"{mark}_part({name})")
            if name in valued and kind != "array":
                parts.append(name)
        space: dict[str, Any] = {
            f"{mark}_table": self.table,
            f"{mark}_miss": self.miss,
            f"{mark}_failed": self.failed,
            f"{mark}_part": part,
            f"{mark}_convert": convert,
            f"{mark}_Error": JlkernError,
        }
        lines = []
        for i, name in enumerate(names):
            if name in parameters.converts:
                space[f"{mark}_type{i}"] = np.dtype(parameters.converts[name]).type
                lines += [
                    f"    if {name}.__class__ is not {mark}_type{i}:",
                    f"        {name} = {mark}_convert({name!r}, {name}, {parameters.converts[name]!r})",
                ]
        values = ", ".join(names)
        key = ", ".join(parts) or "()"
        packed = f"({values},)" if names else "()"
        text = "\n".join(
            [
                f"def {mark}_call({_header(parameters.signature, mark, space)}):",
                *lines,
                "    if ndrange is None and config is None:",
                "        try:",
                f"            {mark}_fire = {mark}_table[{key}]",
                f"            {mark}_status = {mark}_fire({values})",
                f"        except {mark}_Error:",
                "            raise",
                "        except Exception:",
                "            pass",  # an unknown key or a refused launch: nothing has run, the slow path finds out
                "        else:",
                f"            if {mark}_status:",
                f"                {mark}_failed({mark}_fire, {mark}_status, {packed})",
                "            return",
                f"    {mark}_miss({mark}_self, {packed}, ndrange, config)",
                "",
                f"def {mark}_key({values}):",
                f"    return {key}",
            ]
        )
        exec(compile(text, f"<the call of {decl.title}>", "exec"), space)
        call = space[f"{mark}_call"]
        call.__name__ = call.__qualname__ = decl.title
        return call, space[f"{mark}_key"]


class WhileFrozen:
    """A launch that holds while the process is frozen as it was; later it refuses, and the call is planned anew."""

    __slots__ = ("_fire", "_state", "inner")

    def __init__(self, fire: Callable[..., int], state: Hashable) -> None:
        self._fire = fire
        self._state = state
        self.inner = getattr(fire, "inner", fire)

    def __call__(self, *args: Any) -> int:
        if policy.frozen_state() != self._state:
            raise LookupError
        return self._fire(*args)


class Asking:
    """A launch whose ndrange comes from a callable: it is asked on every call, and each answer has its own plan."""

    __slots__ = ("_default", "_plans", "_runtime")

    def __init__(self, runtime: Runtime, plan: Plan) -> None:
        self._runtime = runtime
        self._default = runtime.declaration.space.default().as_dict()
        self._plans = {plan.asked: plan}

    def __call__(self, *args: Any) -> int:
        rule = self._runtime.declaration.ndrange
        asked = rule(args, self._default)
        plan = self._plans.get(asked)
        if plan is None:
            plan, lasting = self._runtime.plan(args, None, None)
            if lasting and len(self._plans) < TABLE:
                self._plans[asked] = plan
        fire = plan.fire
        if rule.tunables and plan.launcher is not None:
            sizes = rule(args, plan.config.as_dict())
            if sizes != plan.ndrange:
                # equal under the default, unequal under this configuration: the callable reads more than sizes
                if 0 in sizes:
                    return 0
                if len(sizes) == len(plan.ndrange):
                    fire = adapted(plan.launcher.fire(sizes), args)
                else:
                    plan, _ = self._runtime.plan(args, None, None)
                    fire = plan.fire
        status = fire(*args)
        if status:
            raise_failure(plan, fire, status)
        return 0


def kind_of(arg: object) -> str:
    """Return how the generated function tells an argument: as an "array", a "scalar", or anything "else"."""
    return "array" if isinstance(arg, ArrayArg) else "scalar" if isinstance(arg, ScalarArg) else "else"


def kinds_of(signature: Signature) -> tuple[str, ...]:
    """Return the kinds of all arguments."""
    return tuple(map(kind_of, signature))


def _header(signature: inspect.Signature, mark: str, space: dict[str, Any]) -> str:
    """Return the parameter list of the generated function, with the user's own kinds and defaults."""
    items = [f"{mark}_self"]
    kinds = [p.kind for p in signature.parameters.values()]
    last_positional = max((i for i, k in enumerate(kinds) if k is inspect.Parameter.POSITIONAL_ONLY), default=-1)
    star = False
    if last_positional < 0:
        items.append("/")
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            items.append("*")
            star = True
        if parameter.default is parameter.empty:
            items.append(name)
        else:
            space[f"{mark}_default{i}"] = parameter.default
            items.append(f"{name}={mark}_default{i}")
        if i == last_positional:
            items.append("/")
    if not star:
        items.append("*")
    return ", ".join([*items, "ndrange=None", "config=None"])
