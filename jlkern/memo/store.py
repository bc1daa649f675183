"""The user's memo: one SQLite file of winners, trials and leases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jlkern.memo.key import MemoKey, Rank
from jlkern.space import Config, Value


@dataclass(frozen=True)
class Winner:
    """The remembered best configuration of a key; `rank` and `shapes` tell how near the record is to what was asked for."""

    config: Config
    seconds: float | None = None
    default: Config | None = None
    default_seconds: float | None = None
    trials: int = 0
    noisy: bool = False
    created: float = 0.0
    rank: Rank = "exact"
    shapes: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True)
class TrialRecord:
    """One journaled trial; status `"begun"` means that it never ended."""

    config: Config
    status: str
    seconds: float | None = None
    spread: float | None = None
    samples: int = 0
    reason: str = ""
    created: float = 0.0


class Lease:
    """The right to tune a key; it ends with `release` or with its process."""

    def renew(self) -> None: ...
    def release(self) -> None: ...


class Store:
    """Winners, trials and leases; every method works, in memory at worst, and none raises for what is on the disk."""

    @property
    def path(self) -> Path | None: ...  # None: in memory

    def winners(self, key: MemoKey) -> list[Winner]: ...  # best rank first, newest first within one
    def winner(self, key: MemoKey) -> Winner | None: ...  # the first of these
    def family(self, key: MemoKey) -> list[Winner]: ...  # all shapes
    def publish(self, key: MemoKey, winner: Winner) -> None: ...
    def trials(self, key: MemoKey) -> list[TrialRecord]: ...  # of exactly this environment
    def begin(self, key: MemoKey, config: Config) -> None: ...
    def end(self, key: MemoKey, trial: TrialRecord) -> None: ...
    def forget(self, key: MemoKey) -> None: ...
    def acquire(self, key: MemoKey) -> Lease | None: ...  # None: another one tunes it
    def entries(self) -> Iterator[dict[str, object]]: ...
    def close(self) -> None: ...


def open_store(path: Path | None = None) -> Store:
    """Return this process's store at a path (default: in the cache directory)."""
    raise NotImplementedError
