"""What a kernel's declaration says: the options as written, checked once, and what follows from them."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jlkern.engines import select
from jlkern.errors import (
    ConfigError,
    EffectsError,
    MissingSourceError,
    NDRangeError,
    OptionError,
    SignatureError,
    TunableError,
    WorkgroupError,
    close_to,
    placed,
)
from jlkern.ndrange import NDRange, Sizes, check_sizes, make_ndrange, shape_of
from jlkern.parameters import Parameters
from jlkern.space import (
    BLOCKS,
    UNSET,
    Config,
    NamedCall,
    Params,
    Space,
    Value,
    Workgroup,
    call_named,
    fit_workgroup,
    make_space,
    make_workgroup,
)

if TYPE_CHECKING:
    from jlkern.engines.base import CompileRequest
    from jlkern.signature import Signature
    from jlkern.source import Effects, KernelSource
    from jlkern.tuning.task import TuneSettings

FIRST_CALLS = ("tune", "amortise", "nearest", "default")

FITTED = 1000
"""Configurations that are looked through for a work-group that fits the ndrange."""


@dataclass(frozen=True)
class Options:
    """The decorator's options as the user wrote them; `None` is "not given" except in `workgroup`."""

    tune: Mapping[str, Iterable[Any]] | None = None
    name: str | None = None
    restrictions: Any = None
    default: Mapping[str, Any] | Config | None = None
    workgroup: Any = UNSET
    ndrange: Any = None
    key: Callable[..., Any] | None = None
    bucket: str | None = None
    inout: str | Sequence[str] | None = None
    compare: Mapping[str, Any] | None = None
    reference: Callable[..., Any] | Literal["engine"] | None = None
    tolerance: Any = None
    engine: str = "auto"
    device: str | None = None
    strategy: Any = None
    strategy_options: Mapping[str, Any] | None = None
    seed: int = 0
    effort: str = "quick"
    max_evals: int | None = None
    time_limit: float | None = None
    first_call: str = "tune"
    on_busy: str = "wait"
    isolation: str | None = None
    trial_limit: float | None = None

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, by name."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not f.default}


@dataclass(frozen=True)
class Declaration:
    """A kernel as declared: everything that its calls need and that no call changes.

    `written` and `restored` are Python names: the arrays that the kernel may write, and those of them whose old content
    matters; `doubtful` are those of them that the source does not prove to be written, `unread` those of the restored
    ones that it proves never to be read. `settings` are the tuning run's; `key` is the rule of `key=`.
    """

    title: str
    source: KernelSource
    parameters: Parameters
    options: Options
    space: Space
    ndrange: NDRange
    workgroup: Workgroup
    written: tuple[str, ...]
    restored: frozenset[str]
    settings: TuneSettings
    key: NamedCall | None
    reaches: tuple[tuple[str, str], ...]
    julia_written: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    reference: str = ""  # module:name, of the kernel

    @property
    def names(self) -> tuple[str, ...]:
        """The Python names of the parameters, in order."""
        return self.parameters.names

    @property
    def tuned(self) -> bool:
        """Whether there is anything to tune."""
        return bool(self.space.tunables)

    @property
    def place(self) -> str:
        """Where the kernel's definition stands, for messages."""
        return self.source.place

    def resolve(self, config: Mapping[str, Any] | Config) -> Config:
        """Return the configuration that a call's `config=` asks for. Raises `ConfigError`."""
        try:
            return self.space.resolve(config)
        except ConfigError as problem:
            raise placed(problem, self.title, self.place) from problem.__cause__

    def sizes(self, args: tuple[Any, ...], ndrange: Any, params: Params | None = None) -> tuple[Sizes | None, Sizes]:
        """Return the ndrange that a call gives or None, and the one that holds, for the default params or others."""
        try:
            given = None if ndrange is None else check_sizes(ndrange, "ndrange=")
            if given is not None:
                return given, given
            return None, self.ndrange(args, self.space.default().as_dict() if params is None else params)
        except NDRangeError as problem:
            raise placed(problem, self.title, self.place) from problem.__cause__

    def check_workgroups(self, args: tuple[Any, ...], given: Sizes | None) -> None:
        """Raise `WorkgroupError` when a call's ndrange has fewer dimensions than every configuration's work-group."""
        first: WorkgroupError | None = None
        for config in itertools.islice(self.space.configs(), FITTED):
            params = config.as_dict()
            workgroup = self.workgroup(params)
            if workgroup is None:
                return
            try:
                fit_workgroup(workgroup, len(given if given is not None else self.ndrange(args, params)))
            except WorkgroupError as problem:
                first = first or problem
            else:
                return
        if first is not None and not self.space.larger_than(FITTED):
            raise placed(first, self.title, self.place)

    def request(self, signature: Signature, config: Config, ndims: int) -> CompileRequest:
        """Return what to compile for a configuration."""
        from jlkern.engines.base import CompileRequest
        from jlkern.knobs import knobs

        params = config.as_dict()
        workgroup = self.workgroup(params)
        return CompileRequest(
            source=self.source,
            signature=signature,
            params=params,
            workgroup=None if workgroup is None else fit_workgroup(workgroup, ndims),
            ndims=ndims,
            written=self.julia_written,
            schedule=config.schedule,
            check_bounds=knobs.check_bounds,
        )

    def effects(self) -> Effects:
        """Return what a run writes, under the Python names."""
        from jlkern.source import Effects

        return Effects(frozenset(self.written), self.restored, (), self.unread)


def declare(options: Options, source: KernelSource, parameters: Parameters, space: Space, title: str) -> Declaration:
    """Check the options of a kernel against its source and return its declaration.

    Raises
    ------
    JlkernError
        The kind of the mistake; the message says what to write instead.
    """
    names = parameters.names
    select.check_engine(options.engine)
    select.check_device(options.device, options.engine)
    if options.engine == "numba":
        # before anything is asked of the source that a construct nobody understands would leave unproved
        select.engine_named(options.engine).check(source)
    _check_count(source, parameters, title)
    for tunable in space.names:
        if tunable in names or tunable in source.names:
            raise TunableError(f"{title}: the tunable {tunable!r} is named like a parameter; rename one of them")
    if options.ndrange is not None:
        ndrange = make_ndrange(options.ndrange, names, space.names)
    elif source.ndrange_param is not None:
        ndrange = shape_of(names[source.names.index(source.ndrange_param)], names, source.ndrange_dims)
    else:
        raise NDRangeError(
            f"{title}: the number of work-items cannot be proved from the source ({source.ndrange_problem}); pass "
            "ndrange=: a parameter's name for its shape, a tuple of sizes, or a callable, as ndrange=lambda y: y.size"
        )
    key = _key_rule(options, names)
    _check_used(options, source, space, ndrange)
    written, restored, doubtful = _effects(options, source, names, title)
    inout = _names(options.inout, names, "inout=")
    if options.first_call not in FIRST_CALLS:
        raise OptionError(f"first_call= must be one of {_listed(FIRST_CALLS)}, got {options.first_call!r}")
    space.default()  # an empty space is an error of the declaration, not of the first call
    return Declaration(
        title=title,
        source=source,
        parameters=parameters,
        options=options,
        space=space,
        ndrange=ndrange,
        workgroup=make_workgroup(options.workgroup, space.names),
        written=written,
        restored=restored,
        settings=_settings(options, names, written),
        key=key,
        reaches=tuple(
            (t, f"val {source.vals.index(t) + 1}" if t in source.vals else "const") for t in sorted(space.names)
        ),
        doubtful=doubtful,
        unread=frozenset(
            p for p, j in zip(names, source.names, strict=True) if j in source.effects.unread and p not in inout
        ),
        julia_written=frozenset(j for n, j in zip(names, source.names, strict=True) if n in written),
    )


def space_of(options: Options) -> Space:
    """Return the space that the options declare. Raises `TunableError`."""
    if options.tune is None:
        for option in ("restrictions", "default"):
            if getattr(options, option) is not None:
                raise TunableError(f"{option}= needs tune=, the tunables that it speaks of")
        return make_space({})
    return make_space(options.tune, options.restrictions, options.default)


def missing_source(title: str) -> MissingSourceError:
    """Return the error for a kernel without a source."""
    if sys.flags.optimize >= 2:
        return MissingSourceError(
            f"{title} has no source: Python runs with -OO, which removes docstrings; pass the source as source=..."
        )
    return MissingSourceError(
        f"{title} has no source: write the kernel in its docstring (with `@kernel function ...`) or pass source=, "
        "a string or the path of a .jl file"
    )


# --- details --------------------------------------------------------------------------------------------------------


def _check_count(source: KernelSource, parameters: Parameters, title: str) -> None:
    if len(source.names) == len(parameters.names):
        return
    first = parameters.names[0] if parameters.names else ""
    hint = "; a kernel cannot be a method, use @staticmethod" if first in ("self", "cls") else ""
    raise SignatureError(
        f"{title} takes ({', '.join(parameters.names)}), and the kernel {source.name} takes "
        f"({', '.join(map(str, source.names))}): name its data parameters in the same order{hint}"
    )


def _check_used(options: Options, source: KernelSource, space: Space, ndrange: NDRange) -> None:
    """Check that each tunable reaches the source or the launch: one that does not changes nothing but the time."""
    mentioned = source.mentions()
    if not space.names or mentioned is None:
        return
    used = mentioned | set(filter(None, source.vals)) | ndrange.tunables | space.restricted | set(BLOCKS)
    workgroup = options.workgroup
    if callable(workgroup):
        used |= set(call_named(workgroup, space.names, "workgroup=").names)
    elif workgroup is not UNSET:
        items = workgroup if isinstance(workgroup, (tuple, list)) else (workgroup,)
        used |= {item for item in items if isinstance(item, str)}
    for tunable in space.names:
        if tunable not in used:
            hint = close_to(tunable, {*mentioned, *BLOCKS} - set(space.names))
            raise TunableError(
                f"the tunable {tunable!r} is used nowhere: neither the source names it nor workgroup=, ndrange= or "
                f"restrictions={hint}"
            )


def _effects(
    options: Options, source: KernelSource, names: tuple[str, ...], title: str
) -> tuple[tuple[str, ...], frozenset[str], frozenset[str]]:
    """Return which parameters are written, which of them must be restored before a run, and which are in doubt."""
    python = dict(zip(source.names, names, strict=True))
    inout = _names(options.inout, names, "inout=")
    unknown = [u for u in source.effects.unknown if python.get(u[0], u[0]) not in inout]
    if unknown and options.tune and options.inout is None:
        param, line, reason = unknown[0]
        raise EffectsError(
            f"{title}: {source.origin.where(line)}: it cannot be proved whether the kernel writes {param!r} "
            f"({reason}); tuning must know: pass inout=, the names of the arrays that the kernel writes"
        )
    # without inout= every parameter in doubt counts as written, which only ever asks more of the arguments
    doubtful = {python[u[0]] for u in unknown if u[0] in python} if options.inout is None else set()
    known = {python[w] for w in source.effects.written}
    written = tuple(n for n in names if n in known or n in inout or n in doubtful)
    restored = {python[r] for r in source.effects.read_first} | set(inout) | doubtful
    return written, frozenset(restored & set(written)), frozenset(doubtful - known)


def _settings(options: Options, names: tuple[str, ...], written: tuple[str, ...]) -> TuneSettings:
    compare = options.compare if options.compare is not None else {}
    if not isinstance(compare, Mapping):
        raise OptionError(f"compare= must be a mapping of outputs to functions or None, got {compare!r}")
    for name, function in compare.items():
        if name not in written:
            hint = close_to(name, written)
            raise OptionError(f"compare= names {name!r}, which is none of the outputs {_listed(written)}{hint}")
        if function is not None and not callable(function):
            raise OptionError(f"compare={{{name!r}: ...}} must be a function or None, got {function!r}")
    if options.reference not in (None, "engine") and not callable(options.reference):
        raise OptionError(
            f"reference= must be a function of the kernel's arguments or 'engine', got {options.reference!r}"
        )
    _check_tolerance(options.tolerance, names)
    if type(options.seed) is not int:
        raise OptionError(f"seed= must be an int, got {options.seed!r}")
    strategy_options = options.strategy_options if options.strategy_options is not None else {}
    if not isinstance(strategy_options, Mapping):
        raise OptionError(f"strategy_options= must be a mapping, got {strategy_options!r}")
    from jlkern.tuning.task import ISOLATION, TuneSettings

    return TuneSettings(
        strategy=options.strategy,
        strategy_options=dict(strategy_options),
        effort=options.effort,  # type: ignore[arg-type]  # checked by TuneSettings itself
        max_evals=options.max_evals,
        time_limit=options.time_limit,
        seed=options.seed,
        compare=dict(compare),
        reference=options.reference,
        tolerance=options.tolerance,
        on_busy=options.on_busy,  # type: ignore[arg-type]
        isolation=options.isolation or ISOLATION,  # type: ignore[arg-type]
        trial_limit=options.trial_limit,
    )


def _check_tolerance(tolerance: Any, names: tuple[str, ...]) -> None:
    if tolerance is None:
        return
    if isinstance(tolerance, Mapping):
        for name, value in tolerance.items():
            if name not in names:
                raise OptionError(f"tolerance= names {name!r}, which is none of the parameters {_listed(names)}")
            _check_tolerance(value, ())
        return
    items = tolerance if isinstance(tolerance, tuple) and len(tolerance) == 2 else (tolerance,)
    for item in items:
        if isinstance(item, bool) or not isinstance(item, (int, float)) or not item >= 0:
            raise OptionError(
                f"tolerance= must be a number >= 0, (relative, absolute), or these by output name, got {tolerance!r}"
            )


def _key_rule(options: Options, names: tuple[str, ...]) -> NamedCall | None:
    if options.bucket not in (None, "pow2"):
        raise OptionError(f"bucket= must be 'pow2' or None, got {options.bucket!r}")
    if options.key is None:
        return None
    if options.bucket is not None:
        raise OptionError("key= and bucket= both say which shapes share a tuning; pass one of them")
    if not callable(options.key):
        raise OptionError(
            f"key= must be a callable of parameters, as key=lambda x: x.shape[0] // 1024, got {options.key!r}"
        )
    return call_named(options.key, names, "key=")


def key_value(raw: object) -> Value:
    """Check what `key=` returned and strip it down to plain Python values."""
    if isinstance(raw, (tuple, list)):
        return tuple(map(key_value, raw))
    if isinstance(raw, np.generic):
        raw = raw.item()
    if isinstance(raw, (bool, int, str)) or (isinstance(raw, float) and np.isfinite(raw)):
        return raw
    raise OptionError(f"key= returned {raw!r}; it must return a bool, int, finite float, str or a tuple of these")


def pow2(size: int) -> int:
    """Return the least power of two that is not below a size.

    >>> [pow2(n) for n in (0, 1, 3, 1024, 1025)]
    [0, 1, 4, 1024, 2048]
    """
    return 1 << (size - 1).bit_length() if size > 0 else 0


def _names(option: Any, names: tuple[str, ...], what: str) -> tuple[str, ...]:
    if option is None:
        return ()
    items = (option,) if isinstance(option, str) else option
    if not isinstance(items, (tuple, list)) or not all(isinstance(item, str) for item in items):
        raise OptionError(f"{what} must be a parameter's name or a tuple of names, got {option!r}")
    for item in items:
        if item not in names:
            raise OptionError(
                f"{what} names {item!r}, which is none of the parameters {_listed(names)}{close_to(item, names)}"
            )
    return tuple(items)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "(none)"
