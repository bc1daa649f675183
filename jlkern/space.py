"""Tunables, restrictions, configurations and work-group sizes: the space that a tuning run searches.

A value of a tunable is a bool, int, float, str or a tuple of these. `True`, `1` and `1.0` are three different values,
here and in everything that is stored, so values are told apart by their `repr`, which is injective over these types.
"""

from __future__ import annotations

import ast
import enum
import inspect
import itertools
import keyword
import math
import operator
import types
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, Union

from jlkern.errors import ConfigError, EmptySpaceError, OptionError, TunableError, WorkgroupError, close_to

# A recursive alias can not be written with `|` in Python 3.10: the name in quotes is not a type yet.
Value: TypeAlias = Union[bool, int, float, str, tuple["Value", ...]]  # noqa: UP007
Params: TypeAlias = Mapping[str, Value]
Schedule: TypeAlias = tuple[tuple[str, Value], ...]
Restriction: TypeAlias = str | Callable[..., Any]


class Unset(enum.Enum):
    """The type of `UNSET`, for options where `None` means something."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return self.name


UNSET: Final = Unset.UNSET

# What a restriction string may call besides the tunables.
_FUNCTIONS: Final[dict[str, Any]] = {
    f.__name__: f for f in (abs, all, any, bool, divmod, float, int, len, max, min, pow, range, round, sum, tuple)
} | {"math": math}

_BLOCK_SIZES: Final = ("block_size_x", "block_size_y", "block_size_z")
BLOCKS: Final = ("block", *_BLOCK_SIZES)
"""Tunables that are the work-group unless `workgroup=` says otherwise."""


@dataclass(frozen=True, eq=False)
class Config:
    """One configuration: the user's tunables, and the engine's own choices (`()` is the engine's rule).

    >>> print(Config((("block", 64), ("items", 2))))
    block=64 items=2
    >>> Config((("flag", True),)) == Config((("flag", 1),))
    False
    """

    params: tuple[tuple[str, Value], ...] = ()
    schedule: Schedule = ()

    def as_dict(self) -> dict[str, Value]:
        """Return the tunables as a new dict; the schedule is left out."""
        return dict(self.params)

    def with_schedule(self, schedule: Schedule) -> Config:
        """Return the same tunables under another schedule."""
        return Config(self.params, schedule)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        # `True == 1 == 1.0` in Python, so equal tuples are compared once more by what they print.
        return (
            self.params == other.params
            and self.schedule == other.schedule
            and repr((self.params, self.schedule)) == repr((other.params, other.schedule))
        )

    def __hash__(self) -> int:
        return hash((self.params, self.schedule))

    def __str__(self) -> str:
        params = " ".join(f"{name}={value}" for name, value in self.params) or "default"
        schedule = " ".join(f"{name}={value}" for name, value in self.schedule)
        return f"{params} [{schedule}]" if schedule else params


def as_params(config: Mapping[str, Any] | Config) -> Mapping[str, Any]:
    """Return the tunables of a configuration; what is none comes back as it is."""
    return config.as_dict() if isinstance(config, Config) else config


@dataclass(frozen=True)
class Tunable:
    """One tunable: its name and its values in the order in which the user wrote them."""

    name: str
    values: tuple[Value, ...]
    _index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", {repr(value): i for i, value in enumerate(self.values)})

    def index(self, value: Value) -> int | None:
        """Return the place of a value, told apart by type, or None."""
        return self._index.get(repr(value))


class NamedCall:
    """A callable together with the names that it wants; calling it with a mapping passes just these."""

    __slots__ = ("_call", "names")

    def __init__(self, names: tuple[str, ...], call: Callable[[Mapping[str, Any]], Any]) -> None:
        self.names = names
        self._call = call

    def __call__(self, mapping: Mapping[str, Any]) -> Any:
        return self._call(mapping)


def call_named(fn: Callable[..., Any], names: Iterable[str], what: str = "callable") -> NamedCall:
    """Look up once which of `names` a callable wants, and return it as a function of one mapping.

    Arguments
    ---------
    fn: a callable whose parameters are among `names`; others must have defaults, which stay.
    names: what the mapping will hold.
    what: how errors name the callable, as `"ndrange="`.

    Raises
    ------
    OptionError: for `*args`, `**kwargs`, a parameter that is not among the names, or a callable without a signature.

    >>> cells = call_named(lambda y, items: y // items, ["y", "x", "items"])
    >>> cells.names, cells({"y": 8, "x": 0, "items": 2})
    (('y', 'items'), 4)
    """
    known = tuple(names)
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        raise OptionError(
            f"{what}: cannot tell which arguments {fn!r} takes; wrap it in a lambda that names them"
        ) from None
    positional: list[str] = []
    keywords: list[str] = []
    skipped = False
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise OptionError(f"{what}: {_name(fn)} takes {parameter}; it must name what it wants of {_list(known)}")
        if parameter.name not in known:
            if parameter.default is parameter.empty:
                hint = close_to(parameter.name, known)
                raise OptionError(
                    f"{what}: {_name(fn)} wants {parameter.name!r}, which is none of {_list(known)}{hint}"
                )
            skipped = True
        elif parameter.kind is parameter.KEYWORD_ONLY or (skipped and parameter.kind is not parameter.POSITIONAL_ONLY):
            keywords.append(parameter.name)
        elif skipped:
            raise OptionError(f"{what}: {_name(fn)} wants {parameter.name!r} after an unknown name")
        else:
            positional.append(parameter.name)
    wanted = tuple(positional + keywords)
    if keywords:
        return NamedCall(wanted, lambda m: fn(*[m[n] for n in positional], **{n: m[n] for n in keywords}))
    if not positional:
        return NamedCall((), lambda m: fn())
    if len(positional) == 1:
        (only,) = positional
        return NamedCall(wanted, lambda m: fn(m[only]))
    get = operator.itemgetter(*positional)
    return NamedCall(wanted, lambda m: fn(*get(m)))


@dataclass(frozen=True)
class Space:
    """All configurations that tunables and restrictions allow. Make one with `make_space`.

    >>> space = make_space({"block": [64, 128], "items": [1, 2]}, ["block * items <= 128"])
    >>> [str(config) for config in space.configs()]
    ['block=64 items=1', 'block=64 items=2', 'block=128 items=1']
    """

    tunables: tuple[Tunable, ...]
    restrictions: tuple[Restriction, ...] = ()
    default_params: Params | None = None
    # Per tunable, the checks whose last wanted tunable it is: they prune the walk as early as can be.
    _checks: tuple[tuple[tuple[Restriction, NamedCall], ...], ...] = field(init=False, repr=False, compare=False)
    _memo: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        names = self.names
        checks: list[list[tuple[Restriction, NamedCall]]] = [[] for _ in names]
        for restriction in self.restrictions:
            call = _compile_restriction(restriction, names)
            if names:
                last = max((names.index(name) for name in call.names), default=0)
                checks[last].append((restriction, call))
        object.__setattr__(self, "_checks", tuple(tuple(c) for c in checks))

    @property
    def names(self) -> tuple[str, ...]:
        """The tunables' names, in the order of declaration."""
        return tuple(t.name for t in self.tunables)

    @property
    def size(self) -> int:
        """How many configurations the restrictions allow; counted once, so not cheap for a large restricted space."""
        if "size" not in self._memo:
            self._memo["size"] = self.full_size if not self.restrictions else sum(1 for _ in self.configs())
        return int(self._memo["size"])

    @property
    def full_size(self) -> int:
        """How many configurations there are before restrictions."""
        return math.prod(len(t.values) for t in self.tunables)

    def larger_than(self, count: int) -> bool:
        """Tell whether there are more than `count` configurations, without counting on."""
        if self.full_size <= count:
            return False
        return next(itertools.islice(self.configs(), count, None), None) is not None

    def configs(self) -> Iterator[Config]:
        """Yield every allowed configuration in product order (the last tunable varies fastest)."""
        if not self.tunables:
            yield Config()
            return
        yield from self._walk(0, {})

    def _walk(self, depth: int, params: dict[str, Value]) -> Iterator[Config]:
        tunable, checks = self.tunables[depth], self._checks[depth]
        for value in tunable.values:
            params[tunable.name] = value
            if all(_holds(restriction, call, params) for restriction, call in checks):
                if depth + 1 == len(self.tunables):
                    yield Config(tuple(params.items()))
                else:
                    yield from self._walk(depth + 1, params)
        params.pop(tunable.name, None)

    def contains(self, params: Params) -> bool:
        """Tell whether each tunable has one of its values (told apart by type); restrictions are not asked."""
        if len(params) != len(self.tunables):
            return False
        return all(t.name in params and t.index(params[t.name]) is not None for t in self.tunables)

    def allows(self, params: Params) -> bool:
        """Tell whether the params are complete, each value is in its list, and every restriction holds."""
        return self.contains(params) and self.broken(params) is None

    def broken(self, params: Params) -> Restriction | None:
        """Return the first restriction that does not hold, or None."""
        for checks in self._checks:
            for restriction, call in checks:
                if not _holds(restriction, call, params):
                    return restriction
        return None

    def rank(self, config: Config) -> tuple[int, ...]:
        """Return the config's place in product order, as a tuple to sort by. Values outside the lists sort last."""
        params = config.as_dict()
        ranks = []
        for t in self.tunables:
            index = t.index(params[t.name]) if t.name in params else None
            ranks.append(len(t.values) if index is None else index)
        return tuple(ranks)

    def default(self) -> Config:
        """Return the default: `default_params`, else the first configuration in product order that is allowed.

        Raises
        ------
        EmptySpaceError: when the restrictions leave nothing.
        """
        if "default" not in self._memo:
            if self.default_params is not None:
                config: Config | None = self._config(self.default_params)
            else:
                config = next(self.configs(), None)
            if config is None:
                texts = _list(map(_text, self.restrictions))
                raise EmptySpaceError(f"the restrictions {texts} leave none of {self.full_size} configurations")
            self._memo["default"] = config
        found = self._memo["default"]
        assert isinstance(found, Config)
        return found

    @property
    def restricted(self) -> frozenset[str]:
        """The tunables that restrictions read."""
        return frozenset(name for checks in self._checks for _, call in checks for name in call.names)

    def resolve(self, config: Mapping[str, Any] | Config) -> Config:
        """Return the configuration that fixes the named params and takes the others from the default.

        Raises
        ------
        ConfigError: for an unknown name, a value outside its list, or a restriction that does not hold.
        """
        config = as_params(config)
        if not isinstance(config, Mapping):
            raise ConfigError(f"config= must be a mapping of tunables to values, or a Config, got {config!r}")
        params = self.default().as_dict()
        for name, raw in config.items():
            tunable = next((t for t in self.tunables if t.name == name), None)
            if tunable is None:
                raise ConfigError(
                    f"config= names {name!r}, which is none of the tunables {_list(self.names)}"
                    f"{close_to(name, self.names)}"
                )
            try:
                value = _value(raw)
            except TunableError:
                value = None
            if value is None or tunable.index(value) is None:
                raise ConfigError(f"config= sets {name}={raw!r}, which is none of its values {list(tunable.values)}")
            params[name] = value
        broken = self.broken(params)
        if broken is not None:
            raise ConfigError(f"the configuration {self._config(params)} breaks the restriction {_text(broken)}")
        return self._config(params)

    def _config(self, params: Params) -> Config:
        return Config(tuple((name, params[name]) for name in self.names))


def make_space(
    tune: Mapping[str, Iterable[Any]],
    restrictions: Restriction | Sequence[Restriction] | None = None,
    default: Mapping[str, Any] | Config | None = None,
) -> Space:
    """Check a declaration and return its space.

    Arguments
    ---------
    tune: for each tunable its values, an ordered collection without duplicates.
    restrictions: Kernel Tuner's: expression strings over the tunables' names, or callables that name what they want.
    default: the default's values; tunables that it leaves out take their first value.

    Raises
    ------
    TunableError: for a bad name, value, restriction or default.

    >>> make_space({"block": [64, 128]}).default()
    Config(params=(('block', 64),), schedule=())
    """
    if not isinstance(tune, Mapping):
        raise TunableError(f"tune= must be a mapping of names to lists of values, got {tune!r}")
    tunables = tuple(_tunable(name, values) for name, values in tune.items())
    if restrictions is None:
        restrictions = ()
    elif isinstance(restrictions, str) or callable(restrictions):
        restrictions = (restrictions,)
    elif not isinstance(restrictions, (list, tuple)):
        raise TunableError(f"restrictions= must be a list of strings or callables, got {restrictions!r}")
    space = Space(tunables, tuple(restrictions))
    if default is None:
        return space
    default = as_params(default)
    if not isinstance(default, Mapping):
        raise TunableError(f"default= must be a mapping of tunables to values, got {default!r}")
    params: dict[str, Value] = {t.name: t.values[0] for t in tunables}
    for name, raw in default.items():
        if name not in params:
            hint = close_to(name, space.names)
            raise TunableError(f"default= names {name!r}, which is none of the tunables {_list(space.names)}{hint}")
        params[name] = _value(raw)
    if not space.contains(params):
        wrong = next(t for t in tunables if t.index(params[t.name]) is None)
        raise TunableError(f"default= sets {wrong.name}={params[wrong.name]!r}, which is none of {list(wrong.values)}")
    broken = space.broken(params)
    if broken is not None:
        raise TunableError(f"the default {space._config(params)} breaks the restriction {_text(broken)}")
    return Space(tunables, space.restrictions, types.MappingProxyType(params))


Workgroup: TypeAlias = Callable[[Params], tuple[int, ...] | None]


def make_workgroup(option: object, names: Iterable[str]) -> Workgroup:
    """Return the function of params that gives the work-group size, or None where the engine's default applies.

    Arguments
    ---------
    option: the decorator's `workgroup=`: a callable of tunables, or ints and tunables' names (one, or a tuple); None
        turns the names off; `UNSET` goes by them: `block` (int or tuple), else `block_size_x/_y/_z` (missing: 1).
    names: the tunables' names.

    Raises
    ------
    WorkgroupError: here for an option of a wrong kind; from the returned function for sizes that are not positive ints.

    >>> make_workgroup(UNSET, ["block_size_x", "block_size_z"])({"block_size_x": 8, "block_size_z": 4})
    (8, 1, 4)
    """
    known = tuple(names)
    if option is None:
        return lambda params: None
    if option is UNSET:
        if "block" in known:
            return lambda params: _sizes(params["block"], "the tunable block")
        used = [n for n in _BLOCK_SIZES if n in known]
        if not used:
            return lambda params: None
        wanted = _BLOCK_SIZES[: _BLOCK_SIZES.index(used[-1]) + 1]
        return lambda params: _sizes(tuple(params.get(n, 1) for n in wanted), "block_size_x/_y/_z")
    if callable(option):
        call = call_named(option, known, "workgroup=")
        return lambda params: _sizes(call(params), "workgroup=")
    items = option if isinstance(option, (tuple, list)) else (option,)
    for item in items:
        if isinstance(item, str):
            if item not in known:
                hint = close_to(item, known)
                raise WorkgroupError(f"workgroup= names {item!r}, which is none of the tunables {_list(known)}{hint}")
        else:
            _sizes(item, "workgroup=")
    if len(items) == 1:
        (only,) = items
        return lambda params: _sizes(params[only] if isinstance(only, str) else only, "workgroup=")
    return lambda params: _sizes(tuple(params[i] if isinstance(i, str) else i for i in items), "workgroup=")


def fit_workgroup(workgroup: tuple[int, ...], ndims: int) -> tuple[int, ...]:
    """Pad a work-group size with 1s to `ndims` dimensions. More dimensions than that are a `WorkgroupError`.

    >>> fit_workgroup((8,), 2)
    (8, 1)
    """
    if len(workgroup) > ndims:
        raise WorkgroupError(f"the work-group {workgroup} has {len(workgroup)} dimensions, the ndrange only {ndims}")
    return workgroup + (1,) * (ndims - len(workgroup))


# --- details ----------------------------------------------------------------------------------------------------------


def _tunable(name: object, values: object) -> Tunable:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise TunableError(f"a tunable must be named by an identifier, got {name!r}")
    if unicodedata.normalize("NFKC", name) != name:
        # Python would read the name differently in a restriction and in a callable's signature.
        normal = unicodedata.normalize("NFKC", name)
        raise TunableError(f"the tunable {name!r} is not in Unicode's NFKC form; write {normal!r}")
    if isinstance(values, (str, bytes, Mapping, set, frozenset)) or not isinstance(values, Iterable):
        raise TunableError(f"the tunable {name} needs an ordered list of values, got {values!r}")
    try:
        checked = tuple(_value(v) for v in values)
    except TunableError as problem:
        raise TunableError(f"the tunable {name} has a value of a wrong kind: {problem}") from None
    if not checked:
        raise TunableError(f"the tunable {name} has no values")
    seen: set[str] = set()
    for value in checked:
        if repr(value) in seen:
            raise TunableError(f"the tunable {name} has the value {value!r} twice")
        seen.add(repr(value))
    return Tunable(name, checked)


def _value(raw: Any) -> Value:
    """Check one value and strip subclasses (NumPy scalars, enums) down to plain Python types."""
    if isinstance(raw, (list, tuple)):
        return tuple(_value(item) for item in raw)
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str):
        return str.__str__(raw)
    if isinstance(raw, float):
        if not math.isfinite(raw):
            raise TunableError(f"{raw!r} is not finite")
        return float(raw)
    if isinstance(raw, int):
        if not -(2**63) <= raw < 2**63:
            raise TunableError(f"{raw!r} does not fit Int64")
        return int(raw)
    if type(raw).__module__ == "numpy" and getattr(raw, "ndim", 1) == 0 and hasattr(raw, "item"):
        plain = raw.item()
        if isinstance(plain, (bool, int, float, str)):
            return _value(plain)
    raise TunableError(f"{raw!r} is a {type(raw).__name__}; use bool, int, float, str or tuples of these")


def _compile_restriction(restriction: object, names: tuple[str, ...]) -> NamedCall:
    if isinstance(restriction, str):
        try:
            tree = ast.parse(restriction.strip(), "<restriction>", "eval")
        except (SyntaxError, ValueError) as problem:
            raise TunableError(f"the restriction {restriction!r} is not a Python expression: {problem}") from None
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        used = {node.id for node in found}
        bound = {node.id for node in found if isinstance(node.ctx, ast.Store)}
        unknown = sorted(used - bound - _FUNCTIONS.keys() - set(names))
        if unknown:
            hint = close_to(unknown[0], names)
            raise TunableError(
                f"the restriction {restriction!r} names {_list(unknown)}, no tunable of {_list(names)}{hint}"
            )
        wanted = tuple(n for n in names if n in used)
        code = compile(tree, "<restriction>", "eval")
        base = {"__builtins__": {}, **_FUNCTIONS}
        # The string comes from the decorator's call, never from a file. The tunables are globals of the expression, so
        # that comprehensions in it see them.
        return NamedCall(wanted, lambda params: eval(code, base | {n: params[n] for n in wanted}))
    if not callable(restriction):
        raise TunableError(f"a restriction is an expression string or a callable, got {restriction!r}")
    try:
        return call_named(restriction, names, "restrictions=")
    except OptionError as problem:
        if _wants_mapping(restriction, names):
            return NamedCall(names, lambda params: restriction(dict(params)))
        raise TunableError(str(problem)) from None


def _wants_mapping(fn: Callable[..., Any], names: tuple[str, ...]) -> bool:
    """Tell whether a callable is of Kernel Tuner's older form, whose one parameter gets the dict of all tunables."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return False
    return len(parameters) == 1 and parameters[0].name in ("p", "params", "config", "c", "conf", "x")


def _holds(restriction: Restriction, call: NamedCall, params: Params) -> bool:
    try:
        return bool(call(params))
    except Exception as problem:
        shown = " ".join(f"{name}={params[name]}" for name in call.names)
        raise TunableError(
            f"the restriction {_text(restriction)} raised {type(problem).__name__} for {shown}: {problem}"
        ) from problem


def _sizes(raw: object, what: str) -> tuple[int, ...]:
    items = tuple(raw) if isinstance(raw, (tuple, list)) else (raw,)
    sizes = []
    for item in items:
        try:
            size = -1 if isinstance(item, bool) else operator.index(item)
        except TypeError:
            size = -1
        if size < 1:
            raise WorkgroupError(f"{what} gives the work-group size {raw!r}; it must be made of positive ints")
        sizes.append(size)
    if not sizes:
        raise WorkgroupError(f"{what} gives an empty work-group size")
    return tuple(sizes)


def _name(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__qualname__", None) or repr(fn)


def _text(restriction: Restriction) -> str:
    return repr(restriction) if isinstance(restriction, str) else _name(restriction)


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "(none)"
