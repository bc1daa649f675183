"""A machine-wide lock per device, held while something is measured on it.

It is advisory: whoever can not have it in time measures anyway, and says so in its log.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jlkern import log
from jlkern.knobs import knobs

if TYPE_CHECKING:
    from jlkern.engines.base import Device

# One trial holds the lock for a second or so, final rounds some seconds; more means that its holder hangs.
PATIENCE: Final = 60.0

_log = log.get(__name__)
# Threads of this process: file locks do not tell them apart on every system.
_threads: dict[Path, threading.Lock] = {}
# Descriptors of lock files that this process has open.
_files: set[int] = set()
_guard = threading.RLock()


def lock_path(device: Device) -> Path:
    """Return the lock file of a device; engines that share a device share it."""
    return knobs.lock_dir / f"jlkern-{re.sub(r'[^A-Za-z0-9]', '_', device.kind)}-{device.index}.lock"


@contextmanager
def measuring(device: Device, patience: float = PATIENCE) -> Iterator[bool]:
    """Hold a device's lock; yields whether it was had within so many seconds. Where there can be none, it was."""
    deadline = time.monotonic() + patience
    path = lock_path(device)
    with _guard:
        threads = _threads.setdefault(path, threading.Lock())
    held = threads.acquire(timeout=max(0.0, patience))
    file = None
    try:
        if held:
            file = _open(path)
        yield held and (file is None or _flock(file, deadline))
    finally:
        if file is not None:
            _close(file)  # gives the lock up
        if held:
            threads.release()


def _open(path: Path) -> int | None:
    """Open the lock file, which may belong to another user; None where that can not be done."""
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with _guard:  # no fork comes between the opening and the note of it
        with suppress(OSError):
            file = os.open(path, flags)
            _files.add(file)
            return file
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Reading is all that a lock needs, so that other users can share the file.
            file = os.open(path, flags | os.O_CREAT, 0o644)
            _files.add(file)
            return file
        except OSError as problem:
            log.event(_log, logging.DEBUG, "no device lock", path=path, problem=problem)
            return None


def _close(file: int) -> None:
    with _guard:
        if file in _files:  # not so in a child that was forked meanwhile
            _files.remove(file)
            os.close(file)


def _flock(file: int, deadline: float) -> bool:
    try:
        import fcntl
    except ImportError:
        return True
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.005)
        except OSError:  # a file system without locks
            return True


def _after_fork() -> None:
    """Drop what the parent holds: a lock lasts until every copy of its descriptor is closed, in children as well."""
    global _guard
    for file in _files:
        with suppress(OSError):
            os.close(file)
    _files.clear()
    _guard = threading.RLock()
    _threads.clear()


# The functions look `_guard` up when they are called, since a child makes a new one.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _guard.acquire(), after_in_parent=lambda: _guard.release(), after_in_child=_after_fork
    )
