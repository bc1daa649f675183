"""The user's memo: winners, trials and leases in one SQLite file.

1. Nothing that is read is trusted: text is JSON of a checked shape, and a row that fails the check does not exist.
2. A trial is written when it begins and again when it ends; of one that only began, the process ended meanwhile.
3. A key has one winner per environment. A version change makes it rank lower, it is never deleted.
4. A lease names its owner's process, so that the death of the owner frees it at once on the same machine.
"""

from __future__ import annotations

import math
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jlkern.knobs import knobs
from jlkern.memo.database import SCHEMA_VERSION, Database
from jlkern.memo.key import (
    RANKS,
    MemoKey,
    Rank,
    config_text,
    dumps,
    parse_config,
    parse_json,
    parse_pairs,
)
from jlkern.space import Config, Value

if TYPE_CHECKING:
    import sqlite3

LEASE_SECONDS = 600.0
FILE_NAME = f"memo-{SCHEMA_VERSION}.sqlite"


@dataclass(frozen=True)
class Winner:
    """The remembered best configuration of a key; `rank` and `shapes` tell how near it is to what was asked for."""

    config: Config
    seconds: float | None = None
    default: Config | None = None
    default_seconds: float | None = None
    trials: int = 0
    noisy: bool = False
    created: float = 0.0
    rank: Rank = "exact"
    shapes: tuple[tuple[str, Value], ...] = ()
    bundle: str = ""  # the file of a package that ships it; "" for the user's own

    @property
    def speedup(self) -> float | None:
        """The default's time over the winner's, where both are known."""
        return self.default_seconds / self.seconds if self.seconds and self.default_seconds else None


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
    """The right to tune a key; it ends with `release`, with its process, or when it is not renewed in time."""

    def __init__(self, database: Database, key: MemoKey, owner: str) -> None:
        self._database = database
        self._where = (key.id, key.exact, owner)

    def renew(self) -> None:
        """Say that the owner is still at work."""
        expires = time.time() + LEASE_SECONDS
        sql = "UPDATE leases SET expires = ? WHERE id = ? AND exact = ? AND owner = ?"
        self._database.write(lambda c: c.execute(sql, (expires, *self._where)), None)

    def release(self) -> None:
        """Let others tune the key."""
        sql = "DELETE FROM leases WHERE id = ? AND exact = ? AND owner = ?"
        self._database.write(lambda c: c.execute(sql, self._where), None)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


class Store:
    """Winners, trials and leases. Every method works, in memory at worst; none raises for what is on the disk."""

    def __init__(self, path: Path | None) -> None:
        self._database = Database(path)

    @property
    def path(self) -> Path | None:
        """The file, or None when the store is in memory."""
        return self._database.path

    def winners(self, key: MemoKey) -> list[Winner]:
        """Return what is remembered for a key in any environment: the best rank first, the newest first within one."""
        sql = "SELECT exact, same_class, key, config, details, created FROM winners WHERE id = ?"
        rows = self._rows(sql, key.id)
        return _ranked(key, rows)

    def winner(self, key: MemoKey) -> Winner | None:
        """Return the first of `winners`."""
        return next(iter(self.winners(key)), None)

    def family(self, key: MemoKey) -> list[Winner]:
        """Return the winners of all shapes of a key, ranked by environment."""
        sql = "SELECT exact, same_class, key, config, details, created FROM winners WHERE family = ?"
        rows = self._rows(sql, key.family)
        return _ranked(key, rows)

    def publish(self, key: MemoKey, winner: Winner) -> None:
        """Make this the key's winner in its environment."""
        details = {
            "seconds": winner.seconds,
            "default": None if winner.default is None else config_text(winner.default),
            "default_seconds": winner.default_seconds,
            "trials": winner.trials,
            "noisy": winner.noisy,
        }
        row = (key.id, key.exact, key.same_class, key.family, _key_text(key), config_text(winner.config))
        values = (*row, dumps(details), winner.created or time.time())
        sql = "INSERT OR REPLACE INTO winners VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        self._database.write(lambda c: c.execute(sql, values), None)

    def trials(self, key: MemoKey) -> list[TrialRecord]:
        """Return the trials of a key in exactly its environment, in the order in which they were made."""
        sql = "SELECT config, status, details, created FROM trials WHERE id = ? AND exact = ? ORDER BY created, rowid"
        rows = self._rows(sql, key.id, key.exact)
        return [record for row in rows if (record := _record(row)) is not None]

    def begin(self, key: MemoKey, config: Config, reason: str = "") -> None:
        """Journal that a trial begins; `reason` may say why it does once more."""
        self.end(key, TrialRecord(config, "begun", reason=reason))

    def end(self, key: MemoKey, trial: TrialRecord) -> None:
        """Journal how a trial ended."""
        details = {
            "seconds": trial.seconds,
            "spread": trial.spread,
            "samples": trial.samples,
            "reason": trial.reason[:4000],
        }
        values = (key.id, key.exact, config_text(trial.config), trial.status, dumps(details), time.time())
        sql = "INSERT OR REPLACE INTO trials VALUES (?, ?, ?, ?, ?, ?)"
        self._database.write(lambda c: c.execute(sql, values), None)

    def drop(self, key: MemoKey, config: Config) -> None:
        """Forget one trial."""
        values = (key.id, key.exact, config_text(config))
        sql = "DELETE FROM trials WHERE id = ? AND exact = ? AND config = ?"
        self._database.write(lambda c: c.execute(sql, values), None)

    def forget(self, key: MemoKey, trials_only: bool = False) -> None:
        """Forget a key's trials, and its winner in this environment unless only the trials are meant."""

        def work(connection: sqlite3.Connection) -> None:
            for table in ("trials",) if trials_only else ("trials", "winners"):
                connection.execute(f"DELETE FROM {table} WHERE id = ? AND exact = ?", (key.id, key.exact))

        self._database.write(work, None)

    def clear(self) -> int:
        """Forget everything; return how many winners there were."""

        def work(connection: sqlite3.Connection) -> int:
            (count,) = connection.execute("SELECT count(*) FROM winners").fetchone()
            connection.execute("DELETE FROM winners")
            connection.execute("DELETE FROM trials")
            return int(count)

        return self._database.write(work, 0)

    def acquire(self, key: MemoKey) -> Lease | None:
        """Return the lease of a key, or None while another owner that is alive has it."""
        owner = uuid.uuid4().hex
        me = (owner, _host(), os.getpid(), _state(os.getpid())[1], time.time() + LEASE_SECONDS)

        def work(connection: sqlite3.Connection) -> bool:
            sql = "SELECT host, pid, started, expires FROM leases WHERE id = ? AND exact = ?"
            held = connection.execute(sql, (key.id, key.exact)).fetchone()
            if held is not None and _alive(*held):
                return False
            connection.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?, ?, ?)", (key.id, key.exact, *me))
            return True

        # When even memory fails, tuning goes on without a lease.
        return Lease(self._database, key, owner) if self._database.write(work, True) else None

    def entries(self) -> Iterator[tuple[MemoKey, Winner]]:
        """Yield every winner with its key, for listings and exports."""
        sql = "SELECT exact, same_class, key, config, details, created FROM winners ORDER BY created, id"
        for row in self._rows(sql):
            key = parse_key(row[2])
            if key is not None:
                yield from ((key, winner) for winner in _ranked(key, [row]))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()

    def _rows(self, sql: str, *values: object) -> list[Any]:
        none: list[Any] = []
        return self._database.read(lambda c: c.execute(sql, values).fetchall(), none)


_stores: dict[Path, Store] = {}
_stores_lock = threading.Lock()


def open_store(path: Path | None = None) -> Store:
    """Return this process's store at a path; the default is a file in `knobs.cache_dir`."""
    path = knobs.cache_dir / FILE_NAME if path is None else Path(path)
    with _stores_lock:
        store = _stores.get(path)
        if store is None:
            store = _stores[path] = Store(path)
        return store


# A fork while another thread holds this lock would leave the child's locked for ever.
if hasattr(os, "register_at_fork"):

    def _new_lock() -> None:
        global _stores_lock
        _stores_lock = threading.Lock()

    os.register_at_fork(after_in_child=_new_lock)


# --- rows: nothing in them is trusted ---------------------------------------------------------------------------------


def _key_text(key: MemoKey) -> str:
    parts = {"exact": key.environment.exact, "same_class": key.environment.same_class, "shapes": key.shapes}
    return dumps({"family": key.family_text, **parts})


def parse_key(text: object) -> MemoKey | None:
    """Read a key's text, or return None when it is anything else."""
    from jlkern.engines.base import Environment

    data = parse_json(text)
    family = parse_json(data.get("family")) if isinstance(data, dict) else None
    if not isinstance(family, dict) or not all(isinstance(family.get(name), str) for name in ("engine", "source")):
        return None
    signature = family.get("signature")
    shapes, options = parse_pairs(data.get("shapes")), parse_pairs(family.get("options"))
    if not isinstance(signature, list) or not all(isinstance(s, str) for s in signature):
        return None
    tunables, exact = _text_pairs(family.get("tunables")), _text_pairs(data.get("exact"))
    same_class = _text_pairs(data.get("same_class"))
    if tunables is None or exact is None or same_class is None or shapes is None or options is None:
        return None
    environment = Environment(exact, same_class)
    return MemoKey(family["engine"], family["source"], tunables, tuple(signature), shapes, environment, options)


def _text_pairs(data: object) -> tuple[tuple[str, str], ...] | None:
    pairs = parse_pairs(data)
    if pairs is None:
        return None
    texts = tuple((name, value) for name, value in pairs if isinstance(value, str))
    return texts if len(texts) == len(pairs) else None


def _ranked(key: MemoKey, rows: list[Any]) -> list[Winner]:
    found = []
    for exact, same_class, key_text, config, details, created in rows:
        rank: Rank = "exact" if exact == key.exact else "class" if same_class == key.same_class else "other"
        winner = parse_winner(rank, key_text, config, details, created)
        if winner is not None:
            found.append(winner)
    return sorted(found, key=lambda w: (RANKS.index(w.rank), -w.created))


def parse_winner(
    rank: Rank, key_text: object, config_json: object, details_json: object, created: object
) -> Winner | None:
    """Check the parts of a remembered winner and return it, or None."""
    config, details, key = parse_config(config_json), parse_json(details_json), parse_json(key_text)
    if config is None or not isinstance(details, dict) or not isinstance(key, dict):
        return None
    shapes = parse_pairs(key.get("shapes"))
    if shapes is None:
        return None
    trials = details.get("trials")
    return Winner(
        config,
        _positive(details.get("seconds")),
        parse_config(details.get("default")),
        _positive(details.get("default_seconds")),
        trials if type(trials) is int and trials >= 0 else 0,
        details.get("noisy") is True,
        _positive(created) or 0.0,
        rank,
        shapes,
    )


def _record(row: Any) -> TrialRecord | None:
    config, details = parse_config(row[0]), parse_json(row[2])
    if config is None or not isinstance(row[1], str) or not isinstance(details, dict):
        return None
    seconds, reason, samples = _positive(details.get("seconds")), details.get("reason"), details.get("samples")
    if row[1] == "ok" and seconds is None:
        return None
    return TrialRecord(
        config,
        row[1],
        seconds,
        _positive(details.get("spread")),
        samples if type(samples) is int and samples >= 0 else 0,
        reason if isinstance(reason, str) else "",
        _positive(row[3]) or 0.0,
    )


def _positive(value: object) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
        return float(value)
    return None


# --- who holds a lease ------------------------------------------------------------------------------------------------


def _host() -> str:
    """Name the machine; process ids mean something only within one process namespace, so it belongs to the name."""
    namespace = ""
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")
    return f"{platform.node()} {namespace}"


def _state(pid: int) -> tuple[str, str]:
    """Return a process's state letter and when it started, since ids are used again; ("", "") where no one tells."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "", ""
    fields = stat.rpartition(")")[2].split()
    return fields[0], fields[19]


def _alive(host: object, pid: object, started: object, expires: object) -> bool:
    if not isinstance(expires, float) or expires < time.time() or not isinstance(pid, int):
        return False
    if host != _host():
        return True
    state, since = _state(pid)
    # A process that was killed keeps its id until its parent asks how it ended, which may be never.
    if (started and since != started) or state in ("Z", "X", "x"):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
