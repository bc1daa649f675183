"""Candidates in a worker process: an engine and scratch copies that look like any other to a tuning run.

The arrays lie in shared memory, laid out and overlapping as the caller's do. The parent fills, poisons and compares
them; the worker compiles, launches and times. What the worker breaks is restored from the caller's arrays, which it
never sees.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any, Final

import numpy as np

from jlkern.engines import select
from jlkern.engines.base import CompileRequest, Device, Engine, Environment, Launcher
from jlkern.errors import OptionError
from jlkern.source import KernelSource
from jlkern.tuning import wire
from jlkern.tuning.scratch import Scratch, ScratchTooLarge, make_scratch
from jlkern.tuning.task import TuneTask
from jlkern.tuning.worker import Worker, borrow, give_back

# Seconds that a launch, or a batch of launches, may take: times the default's, at least, and while that is not known.
TIMES: Final = 20.0
LEAST: Final = 5.0
FIRST: Final = 60.0
# Seconds that compiling may take.
COMPILE: Final = 60.0


class Segment(SharedMemory):
    """A piece of shared memory that may be closed while arrays still lie in it: they keep it."""

    def close(self) -> None:
        """Close it, now or with the last array in it."""
        with suppress(BufferError):
            super().close()


class Isolation:
    """What one tuning run needs to run its candidates elsewhere; a context manager that gives all of it back."""

    def __init__(self, task: TuneTask) -> None:
        engine = task.engine
        if select.engine_of(engine.devices()[0], engine.name) is not engine:
            raise OptionError(f"isolation='process': the engine {engine.name!r} has no worker process")
        self.task = task
        self.engine = IsolatedEngine(self)
        self.default_seconds: float | None = None
        self.worker: Worker = borrow()
        self._segments: list[Segment] = []

    def __enter__(self) -> Isolation:
        return self

    def __exit__(self, *exc: object) -> None:
        give_back(self.worker)
        for segment in self._segments:
            segment.unlink()
            segment.close()

    def scratch(self, limit: int) -> Scratch:
        """Copy all arrays to shared memory and tell the worker. Raises `ScratchTooLarge`."""
        task = self.task
        scratch = make_scratch(
            task.names, task.args, task.effects.written, limit, self._allocate, task.effects.read_first
        )
        segments = [(s.name, int(_bytes(s).__array_interface__["data"][0]), s.size) for s in self._segments]
        args = [
            {"array": wire.encode_array(a, segments)} if isinstance(a, np.ndarray) else wire.encode_value(a)
            for a in scratch.args
        ]
        request = task.request(task.space.default())
        self.worker.open(
            {
                "engine": task.engine.name,
                "device": [task.engine.devices()[0].kind, task.engine.devices()[0].index],
                "environment": task.engine.environment().exact,
                "segments": [s.name for s in self._segments],
                "source": wire.encode_source(request.source, task.space.names),
                "names": list(task.names),
                "args": args,
                "restored": [[wire.encode_array(a, segments) for a in pair] for pair in scratch.kept],
            }
        )
        return scratch

    def restorer(self, scratch: Scratch) -> Callable[[], None] | None:
        """Return a sign that outputs need restoring before a launch: the worker does it, as part of a sample."""
        return (lambda: None) if scratch.kept else None

    def ask(self, what: str, limit: float, **data: Any) -> Any:
        """Ask the worker."""
        return self.worker.ask(what, limit, **data)

    def limit(self, launches: int) -> float:
        """Return the seconds that some launches may take."""
        given = self.task.settings.trial_limit
        if given is not None:
            return float(given)
        if self.default_seconds is None:
            return FIRST
        return max(LEAST, TIMES * self.default_seconds * launches)

    def compile_limit(self) -> float:
        """Return the seconds that compiling may take."""
        return max(COMPILE, self.task.settings.trial_limit or 0.0)

    def _allocate(self, size: int) -> np.ndarray[Any, Any]:
        # A segment that does not fit is made all the same, and kills whoever touches what is missing.
        with suppress(OSError):
            free = shutil.disk_usage("/dev/shm").free if Path("/dev/shm").is_dir() else size
            if size > free:
                raise ScratchTooLarge(f"{size} bytes of shared memory are needed, {free} are free")
        try:
            segment = Segment(create=True, size=size)
        except (OSError, MemoryError) as problem:
            raise ScratchTooLarge(f"{size} bytes of shared memory can not be had ({problem})") from None
        self._segments.append(segment)
        file = getattr(segment, "_fd", -1)
        if file >= 0 and hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(file, 0, size)
            except OSError as problem:
                raise ScratchTooLarge(f"{size} bytes of shared memory can not be had ({problem})") from None
        return _bytes(segment)


def _bytes(segment: SharedMemory) -> np.ndarray[Any, Any]:
    memory: np.ndarray[Any, Any] = np.ndarray(segment.size, np.uint8, segment.buf)
    return memory


class IsolatedEngine(Engine):
    """An engine whose compiled kernels live in the worker; what needs no candidate to run is asked of the real one."""

    def __init__(self, isolation: Isolation) -> None:
        self._isolation = isolation
        self._real = isolation.task.engine
        self._ids = itertools.count()
        self.name = self._real.name

    def devices(self) -> tuple[Device, ...]:
        return self._real.devices()

    def environment(self) -> Environment:
        return self._real.environment()

    def check(self, source: KernelSource) -> None:
        self._real.check(source)

    def default_workgroup(self, ndrange: tuple[int, ...]) -> tuple[int, ...]:
        return self._real.default_workgroup(ndrange)

    def compile(self, request: CompileRequest) -> Launcher:
        launcher = IsolatedLauncher(self._isolation, request, next(self._ids))
        launcher.compile()
        return launcher


class IsolatedLauncher(Launcher):
    """A kernel compiled in the worker, and again in the next one when that is lost."""

    def __init__(self, isolation: Isolation, request: CompileRequest, id: int) -> None:
        self.request = request
        self.text = ""
        self._isolation = isolation
        self._id = id
        self._generation = 0
        self._samplers = itertools.count()

    def compile(self) -> None:
        """Compile, unless this has been done in this very worker."""
        isolation = self._isolation
        if self._generation != isolation.worker.ready():
            data = wire.encode_request(self.request)
            self.text = isolation.ask("compile", isolation.compile_limit(), id=self._id, request=data)
            self._generation = isolation.worker.generation

    def fire(self, ndrange: tuple[int, ...]) -> Callable[..., int]:
        def fire(*args: Any) -> int:
            self.compile()
            self._isolation.ask("fire", self._isolation.limit(1), id=self._id, ndrange=ndrange)
            return 0

        return fire

    def fail(self, fire: Callable[..., int], status: int) -> None:
        """Do nothing: `fire` raises by itself."""

    def bind(self, ndrange: tuple[int, ...], args: tuple[Any, ...]) -> Callable[[], int]:
        return self.fire(ndrange)

    def sampler(self, ndrange: tuple[int, ...], args: tuple[Any, ...]) -> Callable[[int], float]:
        isolation, made, number = self._isolation, 0, self._id * 100_000 + next(self._samplers)

        def sample(times: int) -> float:
            nonlocal made
            self.compile()
            if made != self._generation:
                isolation.ask("sampler", isolation.limit(1), id=self._id, sampler=number, ndrange=ndrange)
                made = self._generation
            return float(isolation.ask("sample", isolation.limit(times), sampler=number, times=times))

        return sample
