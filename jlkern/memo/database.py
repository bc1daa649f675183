"""A SQLite file that never raises for what is on the disk: set aside when corrupt, replaced by memory when unusable.

1. One file per schema version, so that versions of jlkern that differ in it live side by side.
2. Every operation is one transaction, done over after a recovery; a killed writer leaves the last committed state.
3. Threads share one connection under a lock. A forked child opens its own: SQLite connections do not survive a fork.
4. The first recovery warns, later ones only log.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from jlkern import log
from jlkern.errors import MemoWarning

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

SCHEMA_VERSION = 1
APPLICATION_ID = 0x6A6C6B6E  # "jlkn"
BUSY_SECONDS = 20.0

SCHEMA = """
CREATE TABLE IF NOT EXISTS winners (
    id TEXT NOT NULL, exact TEXT NOT NULL, same_class TEXT NOT NULL, family TEXT NOT NULL,
    key TEXT NOT NULL, config TEXT NOT NULL, details TEXT NOT NULL, created REAL NOT NULL,
    PRIMARY KEY (id, exact)
);
CREATE INDEX IF NOT EXISTS winners_family ON winners (family);
CREATE TABLE IF NOT EXISTS trials (
    id TEXT NOT NULL, exact TEXT NOT NULL, config TEXT NOT NULL, status TEXT NOT NULL,
    details TEXT NOT NULL, created REAL NOT NULL,
    PRIMARY KEY (id, exact, config)
);
CREATE TABLE IF NOT EXISTS leases (
    id TEXT NOT NULL, exact TEXT NOT NULL, owner TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL,
    started TEXT NOT NULL, expires REAL NOT NULL,
    PRIMARY KEY (id, exact)
);
"""

_log = log.get(__name__)
# Connections inherited through a fork: closing one in the child could disturb the parent's, so they are kept.
_inherited: list[sqlite3.Connection] = []
_warned = False


class Database:
    """One SQLite database at `path`, or in memory when the path is None or turns out to be unusable."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None  # of the file that was opened, to know it again

    def read(self, work: Callable[[sqlite3.Connection], T], default: T) -> T:
        """Return what `work` gives, or the default when even a recovered database does not allow it."""
        return self._run(work, default, "BEGIN")

    def write(self, work: Callable[[sqlite3.Connection], T], default: T) -> T:
        """As `read`, in a transaction that writes."""
        return self._run(work, default, "BEGIN IMMEDIATE")

    def close(self) -> None:
        """Close the connection; the next operation opens it again."""
        with self._exclusive():
            if self._connection is not None and self.path is not None:
                self._connection.close()
                self._connection = None

    def _run(self, work: Callable[[sqlite3.Connection], T], default: T, begin: str) -> T:
        import sqlite3

        with self._exclusive():
            for _ in range(3):
                try:
                    connection = self._connection or self._open()
                    self._connection = connection
                    connection.execute(begin)
                    try:
                        result = work(connection)
                        connection.execute("COMMIT")
                        return result
                    except BaseException:
                        if connection.in_transaction:
                            connection.execute("ROLLBACK")
                        raise
                except (sqlite3.Error, OSError) as problem:
                    self._recover(problem)
        _log.error("the memo gave up on one operation")
        return default

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        if self._pid != os.getpid():
            # The lock may have been held by a thread of the parent that does not exist here.
            self._lock = threading.RLock()
            if self._connection is not None:
                _inherited.append(self._connection)
            self._connection = None
            self._pid = os.getpid()
        with self._lock:
            yield

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        if self.path is None:
            return _prepare(sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False))
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        self._inode = _inode(self.path)
        try:
            _is_ours(connection)
            # WAL lets readers go on while one writes; where it does not work (network file systems), nothing changes.
            with suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            return _prepare(connection)
        except BaseException:
            connection.close()
            raise

    def _recover(self, problem: Exception) -> None:
        path = self.path
        broken, self._connection = self._connection, None
        if path is None:  # memory itself failed: start it anew
            _warn(f"the memo in memory failed ({problem}); it starts empty")
            return
        if broken is not None:
            with suppress(Exception):
                broken.close()
        if _is_corrupt(problem):
            aside = _set_aside(path, self._inode)
            if aside is not None:
                _warn(f"the memo {path} is corrupt ({problem}); it was set aside as {aside.name} and a new one started")
                return
        _warn(f"the memo {path} can not be used ({problem}); results are kept in memory only")
        self.path = None
        self._connection = _copy_to_memory(path)


def _is_ours(connection: sqlite3.Connection) -> bool:
    """Tell whether the schema is there (or the database empty); raise when it is another program's."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if (version, application) == (SCHEMA_VERSION, APPLICATION_ID):
        return True
    if (version, application) != (0, 0):
        raise _not_ours(f"it has schema {version} of application {application:#x}")
    return False


def _prepare(connection: sqlite3.Connection) -> sqlite3.Connection:
    if _is_ours(connection):
        return connection
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    connection.execute("COMMIT")
    return connection


def _not_ours(message: str) -> Exception:
    import sqlite3

    return sqlite3.NotSupportedError(message)


def _is_corrupt(problem: Exception) -> bool:
    import sqlite3

    text = str(problem).lower()
    if isinstance(problem, sqlite3.OperationalError):  # a table or column that should be there is not
        return "no such table" in text or "no such column" in text or "has no column" in text
    return type(problem) is sqlite3.DatabaseError or "malformed" in text or "not a database" in text


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _set_aside(path: Path, inode: int | None) -> Path | None:
    """Rename a corrupt file with its companions; None when that does not work."""
    aside = path.with_name(f"{path.name}.bad-{time.time_ns()}")
    if inode is not None and _inode(path) != inode:
        return aside  # another process has replaced it already
    try:
        path.rename(aside)
    except FileNotFoundError:
        return aside  # another process was faster
    except OSError:
        return None
    for suffix in ("-wal", "-shm"):
        with suppress(OSError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside


def _copy_to_memory(path: Path) -> sqlite3.Connection | None:
    """Return a memory database with what can still be read of a file that can not be written; None for nothing."""
    import sqlite3

    for mode in ("mode=ro", "immutable=1"):
        memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        try:
            source = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)
            try:
                source.backup(memory)
            finally:
                source.close()
            if memory.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,):
                return _prepare(memory)
        except (sqlite3.Error, OSError):
            pass
        memory.close()
    return None


def _warn(message: str) -> None:
    global _warned
    _log.warning(message)
    if not _warned:
        _warned = True
        # Under "error" filters the warning would raise, which the memo must not.
        with suppress(MemoWarning):
            warnings.warn(message, MemoWarning, stacklevel=2)


def _reset_warning() -> None:
    global _warned
    _warned = False
