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

# One trial holds the lock for a second or so; more means that its holder hangs.
PATIENCE: Final = 60.0

_log = log.get(__name__)
# Threads of this process: file locks do not tell them apart on every system.
_threads: dict[Path, threading.Lock] = {}
_guard = threading.Lock()


def lock_path(device: Device) -> Path:
    """Return the lock file of a device; engines that share a device share it."""
    return knobs.lock_dir / f"jlkern-{re.sub(r'[^A-Za-z0-9]', '_', device.kind)}-{device.index}.lock"


@contextmanager
def measuring(device: Device, patience: float = PATIENCE) -> Iterator[float]:
    """Hold a device's lock; yields the seconds that were spent waiting for it."""
    start = time.monotonic()
    path = lock_path(device)
    with _guard:
        threads = _threads.setdefault(path, threading.Lock())
    held = threads.acquire(timeout=patience)
    file = None
    try:
        file = _open(path)
        if file is not None and not _flock(file, start + patience):
            log.event(_log, logging.WARNING, "device lock not had in time", path=path)
        yield time.monotonic() - start
    finally:
        if file is not None:
            os.close(file)  # gives the lock up
        if held:
            threads.release()


def _open(path: Path) -> int | None:
    """Open the lock file, which may belong to another user; None where that can not be done."""
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with suppress(OSError):
        return os.open(path, flags)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, flags | os.O_CREAT, 0o644)
        # Reading is all that a lock needs, so that other users can share the file.
        return file
    except OSError as problem:
        log.event(_log, logging.DEBUG, "no device lock", path=path, problem=problem)
        return None


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
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        except OSError:  # a file system without locks
            return True


def _after_fork() -> None:
    global _guard
    _guard = threading.Lock()
    _threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
