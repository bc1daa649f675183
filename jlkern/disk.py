"""What jlkern works out once and keeps between processes, as small files: what a source says, compiled code.

1. Machine code is run as it is read, so a file counts only when it and its folder are this user's and nobody else can
   write them; links are not followed. The folder is made that way.
2. A file is written aside and moved to its place; its first line is a digest of the rest and of what it is kept under.
   One that is torn, damaged or renamed does not exist, and is written anew.
3. What it is kept under includes jlkern's own files, by size and time, so that another version's files are never read.
4. The least recently used files go when there are too many bytes. Whatever fails, the work is done without files.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from jlkern import log
from jlkern.knobs import knobs

FORMAT: Final = "jlkern-kept-1"
FOLDER: Final = "code-1"
LARGEST: Final = 64 << 20
_DAY: Final = 86400.0
_HOUR: Final = 3600.0
_SWEEP_AFTER: Final = 4 << 20
"""Bytes that this process writes between two looks at the size of the folder."""

T = TypeVar("T")

_log = log.get(__name__)
_OPEN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_unswept = _SWEEP_AFTER  # the first file that is written has the folder looked through


def read(key: str, make: Callable[[Any, bytes], T | None]) -> T | None:
    """Return what `make` makes of the facts (of JSON) and the bytes under a key; None where there is nothing to trust.

    What `make` cannot make something of counts as not there, whatever it raises.
    """
    name = _name(key)
    if name is None:
        return None
    try:
        with _opened(make=False) as opened:
            data = _read(name, opened)
    except FileNotFoundError:
        return None
    except OSError as why:
        level = logging.WARNING if isinstance(why, PermissionError) else logging.INFO
        log.event(_log, level, "a kept file is not used", file=name, problem=why)
        return None
    try:
        return make(*_unpack(name, data))
    except Exception as why:
        log.event(_log, logging.INFO, "a kept file is of no use", file=name, problem=why)
        return None


def write(key: str, facts: Any, data: bytes = b"") -> None:
    """Keep facts (for JSON) and bytes under a key, in place of what was kept under it."""
    name = _name(key)
    if name is None:
        return
    packed = _pack(name, facts, data)
    if len(packed) > min(LARGEST, knobs.code_cache):
        return
    aside = f"{name}.{os.urandom(8).hex()}.tmp"
    try:
        with _opened(make=True) as opened:
            try:
                handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, 0o600, dir_fd=opened)
                with open(handle, "wb") as file:
                    file.write(packed)
                os.replace(aside, name, src_dir_fd=opened, dst_dir_fd=opened)
            except BaseException:
                with suppress(OSError):
                    os.unlink(aside, dir_fd=opened)
                raise
            _sweep(opened, len(packed))
    except OSError as why:
        log.event(_log, logging.INFO, "a file cannot be kept", file=name, problem=why)


def clear() -> int:
    """Remove all that is kept; returns how many files that were."""
    count = 0
    with suppress(OSError), _opened(make=False) as opened:
        for name in os.listdir(opened):
            with suppress(OSError):
                os.unlink(name, dir_fd=opened)
                count += 1
    return count


def folder() -> Path:
    """Return where files are kept."""
    return knobs.cache_dir / FOLDER


def problem() -> str:
    """Return why nothing is kept in this process, or nothing where all is well."""
    if not knobs.code_cache:
        return "JLKERN_CODE_CACHE is 0"
    if own_version() is None:
        return "jlkern's files cannot be told from another version's, or changed since the process started"
    try:
        with _opened(make=True):
            return ""
    except OSError as why:
        return str(why)


# --- what a file is called, and what is in it -------------------------------------------------------------------------


def _name(key: str) -> str | None:
    """Return the name of a key's file, or None when nothing is kept."""
    version = own_version()
    if version is None or not knobs.code_cache:
        return None
    return hashlib.sha256(f"{FORMAT}\0{version}\0{key}".encode("utf-8", "surrogatepass")).hexdigest()


def _pack(name: str, facts: Any, data: bytes) -> bytes:
    body = json.dumps(facts, separators=(",", ":")).encode() + b"\n" + data
    return _digest(name, body) + b"\n" + body


def _unpack(name: str, packed: bytes) -> tuple[Any, bytes]:
    digest, _, body = packed.partition(b"\n")
    if digest != _digest(name, body):
        raise ValueError("it is damaged")
    facts, _, data = body.partition(b"\n")
    return json.loads(facts), data


def _digest(name: str, body: bytes) -> bytes:
    return hashlib.sha256(name.encode() + body).hexdigest().encode()


@cache
def own_version() -> str | None:
    """Return what tells jlkern's own files from those of every other version, or None where they cannot be told.

    That is sizes and times, since a developer's edits count as a version too. Once a file has changed while this
    process runs, nobody knows which of the two is at work here.
    """
    if os.open not in os.supports_dir_fd or not hasattr(os, "geteuid"):
        return None
    digest, newest = hashlib.sha256(sys.version.encode()), 0.0
    try:
        for path in sorted(_python_files(os.path.dirname(__file__))):
            facts = os.stat(path)
            digest.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
            newest = max(newest, facts.st_mtime)
        started = _process_start()
    except (OSError, ValueError, IndexError) as problem:  # a zip file, say
        log.event(
            _log, logging.INFO, "nothing is kept on the disk: jlkern's files cannot be looked at", problem=problem
        )
        return None
    if started < newest <= time.time():
        log.event(_log, logging.INFO, "nothing is kept: jlkern's files changed since the process started")
        return None
    return digest.hexdigest()


def _python_files(folder: str) -> Iterator[str]:
    for entry in os.scandir(folder):
        if entry.is_dir():
            yield from _python_files(entry.path)
        elif entry.name.endswith(".py"):
            yield entry.path


def _process_start() -> float:
    """Return when this process started; where no one tells, the time of the first look at jlkern's files."""
    if not sys.platform.startswith("linux"):
        return time.time()
    with open("/proc/self/stat") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.time() - since_boot + ticks / os.sysconf("SC_CLK_TCK")


# --- the folder -------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(make: bool) -> Iterator[int]:
    """Open the folder, which must be this user's alone. Raises `OSError`."""
    path = folder()
    flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _OPEN
    try:
        opened = os.open(path, flags)
    except FileNotFoundError:
        if not make:
            raise
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        opened = os.open(path, flags)
    try:
        _check_mine(os.fstat(opened), path)
        yield opened
    finally:
        os.close(opened)


def _check_mine(facts: os.stat_result, what: Path | str) -> None:
    if facts.st_uid != os.geteuid():
        raise PermissionError(f"{what} belongs to another user")
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{what} can be written by others")


def _read(name: str, opened: int) -> bytes:
    with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK | _OPEN, dir_fd=opened), "rb") as file:
        facts = os.fstat(file.fileno())
        _check_mine(facts, name)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST:
            raise OSError(f"{name} is no file of jlkern's")
        if time.time() - facts.st_mtime > _DAY:  # its time says when it was last used, to the day
            with suppress(OSError):
                os.utime(file.fileno())
        return file.read()


def _sweep(opened: int, written: int) -> None:
    """Remove the least recently used files when there are more bytes than the knob allows; a fifth less stay."""
    global _unswept
    _unswept += written
    if _unswept < _SWEEP_AFTER:
        return
    _unswept = 0
    files = []
    now = time.time()
    with os.scandir(opened) as entries:
        for entry in entries:
            with suppress(OSError):
                facts = entry.stat(follow_symlinks=False)
                if not entry.name.endswith(".tmp"):
                    files.append((facts.st_mtime, facts.st_size, entry.name))
                elif now - facts.st_mtime > _HOUR:  # of a writer that was killed
                    os.unlink(entry.name, dir_fd=opened)
    total = sum(size for _, size, _ in files)
    if total <= knobs.code_cache:
        return
    for _, size, name in sorted(files):
        if total <= knobs.code_cache * 0.8:
            break
        with suppress(OSError):
            os.unlink(name, dir_fd=opened)
            total -= size
