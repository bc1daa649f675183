"""The layers of memory that a miss asks in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jlkern.memo.key import MemoKey
from jlkern.memo.store import Store, Winner
from jlkern.space import Config, Space


@dataclass(frozen=True)
class Found:
    """A remembered configuration that this space allows, and where it came from."""

    config: Config
    origin: Literal["process", "user", "package", "nearest"]
    winner: Winner


def lookup(store: Store, key: MemoKey, space: Space) -> Found | None:
    """Return the best-ranked remembered configuration of a key; one that the space does not allow is a miss."""
    raise NotImplementedError


def nearest(store: Store, key: MemoKey, space: Space) -> Found | None:
    """Return the configuration remembered for the nearest shapes of the same kernel and types."""
    raise NotImplementedError
