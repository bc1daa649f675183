"""The layers of memory that a miss asks in turn, each checked against the space before it is believed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from jlkern.memo.key import RANKS, MemoKey, distance
from jlkern.memo.store import Store, Winner
from jlkern.space import Config, Space

Origin: TypeAlias = Literal["user", "package", "nearest"]

# Records of shapes that differ by more than this (|log2| summed over all sizes) say nothing about each other.
FAR: Final = 16.0


@dataclass(frozen=True)
class Found:
    """A remembered configuration that the space allows, and the layer that it came from."""

    config: Config
    origin: Origin
    winner: Winner


def lookup(store: Store, key: MemoKey, space: Space, shipped: Iterable[Winner] = ()) -> Found | None:
    """Return the remembered configuration of a key, or None.

    The user's memo comes before what packages ship; within a layer the environment's rank decides. A configuration that
    is outside the space or breaks a restriction is a miss.
    """
    mine = usable(store.winners(key), space)
    theirs = usable(shipped, space)
    # A record of another class of machine is worth less than a package's for this one.
    for rank in RANKS:
        for winner in mine:
            if winner.rank == rank:
                return Found(winner.config, "user", winner)
        for winner in theirs:
            if winner.rank == rank:
                return Found(winner.config, "package", winner)
    return None


def nearest(store: Store, key: MemoKey, space: Space, shipped: Iterable[Winner] = ()) -> Found | None:
    """Return the configuration remembered for the nearest shapes of the same kernel and types, or None.

    Of equally near ones the user's own comes before one that a package ships.
    """
    best: tuple[float, int, bool, float] | None = None
    found: Found | None = None
    for winner in [*usable(store.family(key), space), *usable(shipped, space)]:
        apart = distance(key.shapes, winner.shapes)
        order = (apart, RANKS.index(winner.rank), bool(winner.bundle), -winner.created)
        if apart <= FAR and not math.isinf(apart) and (best is None or order < best):
            best, found = order, Found(winner.config, "nearest", winner)
    return found


def usable(winners: Iterable[Winner], space: Space) -> list[Winner]:
    """Return the winners whose configurations the space allows now."""
    return [w for w in winners if len(w.config.params) == len(w.config.as_dict()) and space.allows(w.config.as_dict())]
