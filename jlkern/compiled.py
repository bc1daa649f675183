"""Compiled launchers, shared by all kernels of a process, and the locks that let each be compiled and tuned once."""

from __future__ import annotations

import contextlib
import copy
import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jlkern.engines.base import CompileRequest, Engine, Launcher
    from jlkern.source import KernelSource

LIMIT = 1024
"""Compiled launchers that are kept; the least recently asked for goes first."""


class Locks:
    """One lock per key, made when somebody wants it and gone when nobody does."""

    def __init__(self) -> None:
        self._guard = threading.RLock()
        self._held: dict[Hashable, tuple[threading.RLock, list[int]]] = {}

    @contextlib.contextmanager
    def hold(self, key: Hashable) -> Iterator[bool]:
        """Hold a key's lock; yields False when this thread holds it already (a call inside its own tuning)."""
        with self._guard:
            lock, threads = self._held.setdefault(key, (threading.RLock(), []))
            me = threading.get_ident()
            first = me not in threads
            threads.append(me)
        try:
            with lock:
                yield first
        finally:
            with self._guard:
                threads.remove(me)
                if not threads:
                    self._held.pop(key, None)

    def reset(self) -> None:
        """Forget all locks: in a forked child, those that other threads held stay locked for ever."""
        self._guard = threading.RLock()
        self._held = {}


locks = Locks()
tables = threading.RLock()
"""Held while a kernel's table or plans change: one for all, since only calls of unknown kinds take it."""

_launchers: OrderedDict[Hashable, Launcher] = OrderedDict()
_guard = threading.RLock()


def _after_fork() -> None:
    global _guard, tables
    _guard = threading.RLock()
    tables = threading.RLock()
    locks.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def launcher_for(engine: Engine, request: CompileRequest) -> Launcher:
    """Return the launcher of a request, compiled at most once in this process while it is remembered.

    Raises
    ------
    CompileError
        The engine could not compile it.
    """
    key = _key(engine, request)
    found = _find(key)
    if found is None:
        with locks.hold(("compile", key)):
            found = _find(key)
            if found is None:
                found = engine.compile(request)
                request.source.keep()
                with _guard:
                    _launchers[key] = found
                    while len(_launchers) > LIMIT:
                        _launchers.popitem(last=False)
    return _placed(found, request.source)


def forget_launchers() -> None:
    """Forget every compiled launcher; kernels that hold one go on using it."""
    with _guard:
        _launchers.clear()


def _find(key: Hashable) -> Launcher | None:
    with _guard:
        found = _launchers.get(key)
        if found is not None:
            _launchers.move_to_end(key)
        return found


def _placed(launcher: Launcher, source: KernelSource) -> Launcher:
    """Return a launcher whose errors speak of `source`: an equal source may stand at another place."""
    if launcher.request.source is source or launcher.request.source.origin == source.origin:
        return launcher
    mine = copy.copy(launcher)
    mine.request = replace(launcher.request, source=source)
    return mine


def _key(engine: Engine, request: CompileRequest) -> Hashable:
    # The text is in the key beside the digest, which does not see comments and blank lines: they shift lines in errors.
    # Values are told apart by repr, since True == 1 == 1.0.
    return (
        engine.name,
        engine.devices()[0],
        request.source.digest,
        request.source.name,
        request.source.text,
        request.signature,
        repr(sorted(request.params.items())),
        request.source.vals,
        request.workgroup,
        request.ndims,
        request.written,
        repr(request.schedule),
        request.check_bounds,
    )
