"""What a remembered result belongs to, as stable text: everything that a new result would depend on, and nothing else.

Value lists, restrictions and other callables are not in the key: what is remembered is checked against them when read.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from jlkern.space import Config, Value

if TYPE_CHECKING:
    from jlkern.engines.base import Environment

Rank: TypeAlias = Literal["exact", "class", "other"]
RANKS: Final[tuple[Rank, ...]] = ("exact", "class", "other")


@dataclass(frozen=True)
class MemoKey:
    """The identity of one tuning: a source, the way its tunables reach it, types, shapes, and where it was measured.

    Arguments
    ---------
    engine: the engine's name.
    source: the source's digest.
    tunables: for each tunable its name and how it reaches the source, as `("block", "const")` or `("N", "val 1")`.
    signature: per argument its type as text, with dtype, dimensions and layout class.
    shapes: named parts that stand for the shapes: each array's and the ndrange, or their bucket, or what `key=` gave.
    environment: the engine's, at the time of the measurement.
    options: whatever else changes the compiled code, as `("check_bounds", True)`.
    """

    engine: str
    source: str
    tunables: tuple[tuple[str, str], ...]
    signature: tuple[str, ...]
    shapes: tuple[tuple[str, Value], ...]
    environment: Environment
    options: tuple[tuple[str, Value], ...] = ()

    @cached_property
    def family_text(self) -> str:
        """Stable JSON of everything but shapes and environment: what kernels of different shapes have in common."""
        return dumps(
            {
                "engine": self.engine,
                "source": self.source,
                "tunables": self.tunables,
                "signature": self.signature,
                "options": self.options,
            }
        )

    @cached_property
    def shapes_text(self) -> str:
        """Stable JSON of the shapes."""
        return dumps(self.shapes)

    @cached_property
    def family(self) -> str:
        """A digest of `family_text`."""
        return digest(self.family_text)

    @cached_property
    def text(self) -> str:
        """Stable text of everything but the environment, which is ranked and not compared."""
        return f"{self.family_text}\n{self.shapes_text}"

    @cached_property
    def id(self) -> str:
        """A digest of `text`."""
        return digest(self.text)

    @cached_property
    def exact(self) -> str:
        """A digest of the whole environment."""
        return digest(dumps(sorted(self.environment.exact)))

    @cached_property
    def same_class(self) -> str:
        """A digest of the environment's class."""
        return digest(dumps(sorted(self.environment.same_class)))

    def with_shapes(self, shapes: tuple[tuple[str, Value], ...]) -> MemoKey:
        """Return the same key for other shapes."""
        return replace(self, shapes=shapes)


def dumps(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no blanks, tuples as lists, finite numbers only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(text: str) -> str:
    """Return a short hex digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def config_text(config: Config) -> str:
    """Return stable JSON of a configuration; bool, int and float stay apart in it.

    >>> config_text(Config((("a", True), ("b", 1.0), ("c", (1, "x")))))
    '{"params":[["a",true],["b",1.0],["c",[1,"x"]]],"schedule":[]}'
    """
    return dumps({"params": config.params, "schedule": config.schedule})


def parse_config(text: object) -> Config | None:
    """Read `config_text` back, or return None when the text is anything else.

    >>> parse_config('{"params":[["a",true]],"schedule":[]}')
    Config(params=(('a', True),), schedule=())
    >>> parse_config('{"params":[["a",null]],"schedule":[]}') is None
    True
    """
    data = parse_json(text)
    if not isinstance(data, dict) or set(data) != {"params", "schedule"}:
        return None
    params, schedule = parse_pairs(data["params"]), parse_pairs(data["schedule"])
    return None if params is None or schedule is None else Config(params, schedule)


def parse_json(text: object, limit: int = 1 << 20) -> Any:
    """Parse JSON text of bounded length; anything wrong gives None."""
    if not isinstance(text, str) or len(text) > limit:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def parse_pairs(data: object) -> tuple[tuple[str, Value], ...] | None:
    """Check a list of `[name, value]` pairs and return it as tuples, or None."""
    if not isinstance(data, list):
        return None
    pairs: list[tuple[str, Value]] = []
    for item in data:
        if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
            return None
        value = parse_value(item[1])
        if value is None:
            return None
        pairs.append((item[0], value))
    return tuple(pairs)


def parse_value(data: object, depth: int = 8) -> Value | None:
    """Check one JSON value and return it as a tunable's value (lists as tuples), or None."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, (bool, int, str)):
        return data
    if isinstance(data, list) and depth:
        items = [parse_value(item, depth - 1) for item in data]
        return None if any(item is None for item in items) else tuple(i for i in items if i is not None)
    return None


def distance(a: Sequence[tuple[str, Value]], b: Sequence[tuple[str, Value]]) -> float:
    """Return how far two keys' shapes are apart, as the sum of |log2| of the ratios of their numbers; inf if not alike.

    >>> distance([("y", (1024, 8))], [("y", (4096, 8))])
    2.0
    >>> distance([("y", (1024,))], [("y", (1024, 1))])
    inf
    """
    if [name for name, _ in a] != [name for name, _ in b]:
        return math.inf
    return sum(_apart(x, y) for (_, x), (_, y) in zip(a, b, strict=True))


def _apart(a: Value, b: Value) -> float:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return sum(map(_apart, a, b)) if len(a) == len(b) else math.inf
    if type(a) is type(b) and isinstance(a, (int, float)) and isinstance(b, (int, float)) and not isinstance(a, bool):
        if a > 0 and b > 0:
            return abs(math.log2(a / b))
    return 0.0 if repr(a) == repr(b) else math.inf
