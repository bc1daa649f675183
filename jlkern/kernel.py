"""`Kernel`: a KernelAbstractions source that is called like the Python function that declares it."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeAlias, overload

from jlkern import compiled
from jlkern.choice import plain_array, run_tuning
from jlkern.devices import described
from jlkern.dispatch import Dispatcher
from jlkern.errors import OptionError, SignatureError, close_to
from jlkern.ndrange import Sizes
from jlkern.options import Declaration
from jlkern.runtime import Fixed, Plan, Runtime, nothing
from jlkern.space import Config

if TYPE_CHECKING:
    from jlkern.explain import Explanation
    from jlkern.tuning.task import TuneResult

P = ParamSpec("P")
NDRange: TypeAlias = "int | tuple[int, ...] | None"

_SETTINGS = (
    "strategy",
    "strategy_options",
    "effort",
    "max_evals",
    "time_limit",
    "seed",
    "progress",
    "fresh",
    "on_busy",
    "isolation",
    "trial_limit",
)


class Kernel(Generic[P]):
    """A kernel, from `@jlkern.kernel` or `jlkern.from_source`: call it with the arguments of its parameters.

    Two keywords go with every call: `ndrange=` launches over other work-items than declared, `config=` fixes tunables,
    a mapping or a `Config` (those not named take their default), and asks neither tuning nor memo.

    >>> import numpy as np
    >>> import jlkern
    >>> scale = jlkern.from_source("@kernel function scale!(y, a) i = @index(Global); y[i] *= a end")
    >>> y = np.arange(4.0)
    >>> scale(y, 3.0)
    >>> y
    array([0., 3., 6., 9.])
    >>> twice = scale.bind(y, 2.0)
    >>> twice()
    >>> y
    array([ 0.,  6., 12., 18.])
    """

    __name__: str
    __qualname__: str
    __wrapped__: Callable[P, None]

    def __init__(self, declaration: Declaration, recipe: tuple[Callable[..., Any], tuple[Any, ...]]) -> None:
        self._runtime = Runtime(declaration)
        self._dispatcher = Dispatcher(self._runtime)
        self._recipe = recipe
        self.__signature__ = declaration.parameters.full_signature()

    # The function that `dispatch` generates takes the place of this one, in a class of its own, at the first call.
    @overload
    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> None: ...
    @overload
    def __call__(self, /, *args: Any, ndrange: NDRange, config: Fixed = ..., **kwargs: Any) -> None: ...
    @overload
    def __call__(self, /, *args: Any, config: Fixed, **kwargs: Any) -> None: ...
    def __call__(self, /, *args: Any, ndrange: Any = None, config: Any = None, **kwargs: Any) -> None:
        """Run the kernel; returns when the result is in the arrays."""
        self._dispatcher.miss(self, self._bound(args, kwargs), ndrange, config)

    @overload
    def tune(self, /, *args: P.args, **kwargs: P.kwargs) -> TuneResult: ...
    @overload
    def tune(self, /, *args: Any, ndrange: NDRange = ..., **kwargs: Any) -> TuneResult: ...
    def tune(self, /, *args: Any, ndrange: Any = None, **kwargs: Any) -> TuneResult:
        """Tune for these arguments, also when a winner is known, and remember the result; never touches the arguments.

        Parameters
        ----------
        *args, **kwargs
            The arguments of a call; and, to override the decorator's, `effort=`, `max_evals=`, `time_limit=`,
            `strategy=`, `strategy_options=`, `seed=`, `on_busy=`, `isolation=`, `trial_limit=`, `progress=`, and
            `fresh=True` to measure known trials again.
        ndrange
            As in a call.

        Returns
        -------
        TuneResult
            After Ctrl-C too: then the best so far, marked as interrupted.
        """
        settings = {name: kwargs.pop(name) for name in _SETTINGS if name in kwargs and name not in self._names}
        for name in kwargs:
            if name not in self._names:
                known = (*_SETTINGS, "ndrange", *self._names)
                raise TypeError(f"{self.__name__}.tune() has no option {name!r}{close_to(name, known)}")
        runtime = self._runtime
        values = self._bound(args, kwargs)
        engine, signature = runtime.validate(values)
        given, sizes = runtime.declaration.sizes(values, ndrange)
        if 0 in sizes:
            raise OptionError(f"{self.__name__}: the ndrange {sizes} holds a 0, so there is nothing to tune")
        runtime.declaration.check_workgroups(values, given)
        case = runtime.case(engine, signature, values, sizes, given)
        chosen = replace(runtime.declaration.settings, **settings)
        with compiled.locks.hold(("tune", case.key.id)):
            result = run_tuning(case, chosen)
        self._dispatcher.forget()
        return result

    @overload
    def config_for(self, /, *args: P.args, **kwargs: P.kwargs) -> Config | None: ...
    @overload
    def config_for(self, /, *args: Any, ndrange: NDRange, **kwargs: Any) -> Config | None: ...
    def config_for(self, /, *args: Any, ndrange: Any = None, **kwargs: Any) -> Config | None:
        """Return the configuration that a call would use, or None where it would tune first; never runs anything."""
        return self.explain(*args, ndrange=ndrange, **kwargs).config

    @overload
    def bind(self, /, *args: P.args, **kwargs: P.kwargs) -> Bound: ...
    @overload
    def bind(self, /, *args: Any, ndrange: NDRange, config: Fixed = ..., **kwargs: Any) -> Bound: ...
    @overload
    def bind(self, /, *args: Any, config: Fixed, **kwargs: Any) -> Bound: ...
    def bind(self, /, *args: Any, ndrange: Any = None, config: Any = None, **kwargs: Any) -> Bound:
        """Return a launch on exactly these arrays, called with nothing: the shortest way to launch.

        It keeps the arrays alive. Scalars and the ndrange are those of now: a callable `ndrange=` is not asked again.
        Tunes first where a call would.
        """
        values = self._bound(args, kwargs)
        runtime = self._runtime
        runtime.validate(values)  # a plan that is known says nothing of these very arrays
        plan = runtime.recall(runtime.key(values, ndrange, config)) or runtime.plan(values, ndrange, config)[0]
        return Bound(plan, tuple(map(plain_array, values)))

    @overload
    def explain(self, /, *args: P.args, **kwargs: P.kwargs) -> Explanation: ...
    @overload
    def explain(self, /, *args: Any, ndrange: NDRange, **kwargs: Any) -> Explanation: ...
    @overload
    def explain(self, /, *args: Any, verify: bool, ndrange: NDRange = ..., **kwargs: Any) -> Explanation: ...
    def explain(self, /, *args: Any, ndrange: Any = None, verify: Any = False, **kwargs: Any) -> Explanation:
        """Say which configuration a call uses, where it comes from, how much it wins and what would re-tune it.

        With `verify=True` that configuration also runs on copies of the arguments, on this engine and on the other one,
        and the explanation has the largest difference of each output.
        """
        from jlkern.explain import explain

        if verify is not False and "verify" in self._names:  # then it is the kernel's own parameter
            kwargs, verify = {**kwargs, "verify": verify}, False
        return explain(self._runtime, self._bound(args, kwargs), ndrange, verify)

    @overload
    def lower(self, /, *args: P.args, **kwargs: P.kwargs) -> str: ...
    @overload
    def lower(self, /, *args: Any, ndrange: NDRange, config: Fixed = ..., **kwargs: Any) -> str: ...
    @overload
    def lower(self, /, *args: Any, config: Fixed, **kwargs: Any) -> str: ...
    def lower(self, /, *args: Any, ndrange: Any = None, config: Any = None, **kwargs: Any) -> str:
        """Return the generated code for `config=`, else for the known configuration, else the default. Never tunes."""
        runtime = self._runtime
        values = self._bound(args, kwargs)
        engine, signature = runtime.validate(values)
        if config is not None:
            chosen = runtime.declaration.resolve(config)
        else:
            chosen = self.explain(*values, ndrange=ndrange).config or runtime.declaration.space.default()
        _, sizes = runtime.declaration.sizes(values, ndrange, chosen.as_dict())
        return str(runtime.launcher(engine, signature, chosen, len(sizes)).text)

    @property
    def source(self) -> str:
        """The Julia source."""
        return self._runtime.declaration.source.text

    @property
    def _names(self) -> tuple[str, ...]:
        return self._runtime.declaration.names

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        parameters = self._runtime.declaration.parameters
        try:
            bound = parameters.bind(args, kwargs)
        except TypeError as problem:
            raise TypeError(f"{self.__name__}({', '.join(parameters.names)}): {problem}") from None
        return described(parameters.names, parameters.convert(bound))

    def __repr__(self) -> str:
        return f"<jlkern kernel {self.__qualname__}{self._runtime.declaration.parameters}>"

    # --- what a function of a module does too -----------------------------------------------------------------------

    def __get__(self, instance: object | None, owner: type | None = None) -> Kernel[P]:
        if instance is not None:
            raise SignatureError(
                f"{self.__qualname__} is a kernel in a class, and a kernel cannot be a method; use @staticmethod above "
                "@jlkern.kernel"
            )
        return self

    def __copy__(self) -> Kernel[P]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel[P]:
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # `__main__` is another module in another process, and a local kernel has no name: these go by what made them
        if self.__module__ != "__main__" and _is_named(self, self.__module__, self.__qualname__):
            return named, (self.__module__, self.__qualname__)
        return self._recipe


class Bound(functools.partial):  # type: ignore[type-arg]
    """A launch on fixed arrays, called with nothing. `args` keeps them alive; `config` and `ndrange` say what runs."""

    config: Config
    ndrange: Sizes
    arguments: tuple[Any, ...]

    if TYPE_CHECKING:

        def __call__(self, /) -> None: ...

    # A partial is called in C without a frame of its own: this is the cheapest callable object there is.
    def __new__(cls, plan: Plan, args: tuple[Any, ...]) -> Bound:
        launcher = plan.launcher
        if launcher is None:
            self = super().__new__(cls, nothing)
        else:
            fire = launcher.bind(plan.ndrange, args)
            fail = launcher.fail

            def launch() -> None:
                status = fire()
                if status:
                    fail(fire, status)

            self = super().__new__(cls, launch)
        self.config, self.ndrange, self.arguments = plan.config, plan.ndrange, args
        return self

    def __repr__(self) -> str:
        return f"<jlkern launch over {self.ndrange} with {self.config}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a bound launch holds compiled code and cannot be pickled; pickle the kernel and bind again")


def make_kernel(
    declaration: Declaration,
    recipe: tuple[Callable[..., Any], tuple[Any, ...]],
    function: Callable[P, None] | None,
    module: str,
    qualname: str,
) -> Kernel[P]:
    """Return the kernel of a declaration, in a class of its own whose `__call__` can be written for it."""
    declaration = replace(declaration, reference=f"{module}:{qualname}")
    own: type[Kernel[P]] = type("Kernel", (Kernel,), {"__module__": Kernel.__module__, "__doc__": Kernel.__doc__})
    self = own(declaration, recipe)
    self.__name__ = qualname.rpartition(".")[2]
    self.__qualname__ = qualname
    self.__module__ = module
    self.__doc__ = declaration.source.text
    if function is not None:
        self.__wrapped__ = function
        self.__annotations__ = {
            name: p.annotation
            for name, p in declaration.parameters.signature.parameters.items()
            if p.annotation is not p.empty
        }
        self.__doc__ = function.__doc__ if function.__doc__ is not None else self.__doc__
    return self


def read_source(source: str | os.PathLike[str], base: str | None, what: str) -> tuple[str, str | None]:
    """Return a source's text, and its file when it is in one; a path is relative to the folder of the file `base`."""
    if isinstance(source, str):
        if "@kernel" not in source and source.strip().endswith(".jl") and "\n" not in source.strip():
            raise OptionError(f"{what}: source={source!r} looks like a file name; pass pathlib.Path({source!r})")
        return source, None
    if not isinstance(source, os.PathLike):
        raise OptionError(f"{what}: source= must be a string or a pathlib.Path, got {source!r}")
    path = os.path.join(os.path.dirname(base or ""), os.path.expanduser(source))
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(), path
    except (OSError, UnicodeDecodeError) as problem:
        raise OptionError(f"{what}: cannot read the source file {path}: {problem}") from None


def named(module: str, qualname: str) -> Any:
    """Return what a module calls by a qualified name: how kernels come out of a pickle."""
    found: Any = importlib.import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return found


def _is_named(kernel: object, module: str, qualname: str) -> bool:
    try:
        return named(module, qualname) is kernel
    except (ImportError, AttributeError):
        return False
