"""The parent's side of a worker process: starting, asking within a time limit, and what its end means.

1. A worker is reused: from candidate to candidate, and from one tuning to the next while it is not idle for too long.
2. Whoever asked when a worker ended, or did not answer in time, gets `WorkerLost`; the next question starts another.
3. What interrupts the wait for an answer (Ctrl-C) ends the worker, since its answer would be taken for another's.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from jlkern import log
from jlkern.errors import TuningError
from jlkern.knobs import knobs
from jlkern.tuning import wire

START_SECONDS: Final = 120.0
ALL_IDLE: Final = 1

_log = log.get(__name__)


class WorkerLost(Exception):
    """The worker ended, or was ended since it did not answer in time, while it worked on a candidate."""

    def __init__(self, reason: str, hung: bool) -> None:
        super().__init__(reason)
        self.hung = hung


class Worker:
    """One worker process, started when it is first asked; `generation` counts the starts."""

    def __init__(self) -> None:
        self.generation = 0
        self.opening: dict[str, Any] | None = None  # what every process of this worker is told first
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._selector: selectors.BaseSelector | None = None
        self._left = b""

    @property
    def pid(self) -> int | None:
        """The process's id, or None when there is none."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def open(self, opening: dict[str, Any]) -> None:
        """Begin a tuning: `opening` is sent to each process that works for it."""
        self.opening = opening
        if self.pid is not None:
            try:
                self._send("open", START_SECONDS, opening)
                return
            except WorkerLost:
                pass  # it ended of being idle, just now
        self.ready()

    def close(self) -> None:
        """End a tuning: let the process forget its arrays."""
        self.opening = None
        if self.pid is not None:
            with suppress(WorkerLost):
                self._send("close", START_SECONDS, {})

    def ready(self) -> int:
        """Start a process where there is none; return the generation."""
        if self.pid is None:
            self.kill()
            self._start()
            try:
                self._send("memory", START_SECONDS, {"size": knobs.worker_memory})
                if self.opening is not None:
                    self._send("open", START_SECONDS, self.opening)
            except WorkerLost as problem:
                raise TuningError(
                    f"no worker process can be started ({problem}); isolation='none' does without"
                ) from None
        return self.generation

    def ask(self, what: str, limit: float, **data: Any) -> Any:
        """Send a request and return its result.

        Raises
        ------
        WorkerLost: the process ended, or was ended at the limit.
        Exception: what the request raised there.
        """
        self.ready()
        return self._send(what, limit, data)

    def kill(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
        if self._selector is not None:
            self._selector.close()
            self._selector = None
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None

    def _start(self) -> None:
        if not sys.executable:
            raise TuningError("isolation='process' needs sys.executable, to start Python with")
        start = time.monotonic()
        root = str(Path(__file__).resolve().parents[2])
        # What this process imports from, without the folder that it was started in.
        paths = dict.fromkeys([root, *(os.path.abspath(p) for p in sys.path if p)])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
        self._stderr = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jlkern._worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
            env=environment,
            start_new_session=True,  # Ctrl-C in the terminal is not for it
        )
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self._left = b""
        self.generation += 1
        log.event(_log, 20, "worker", pid=self._process.pid, seconds=f"{time.monotonic() - start:.2f}")

    def _send(self, what: str, limit: float, data: dict[str, Any]) -> Any:
        process = self._process
        assert process is not None and process.stdin is not None
        line = json.dumps({"do": what, "limit": limit, **data}).encode() + b"\n"
        try:
            try:
                process.stdin.write(line)
                answer = self._answer(limit)
            except BrokenPipeError:
                answer = None
        except BaseException:
            self.kill()
            raise
        if answer is None:
            raise self._lost()
        found = json.loads(answer)
        if "error" in found:
            raise wire.decode_error(found["error"])
        return found["result"]

    def _answer(self, limit: float) -> bytes | None:
        """Return the next line, or None when the process ends first; raise when the limit does."""
        assert self._process is not None and self._process.stdout is not None and self._selector is not None
        deadline = time.monotonic() + limit
        while b"\n" not in self._left:
            wait = deadline - time.monotonic()
            if wait <= 0 or not self._selector.select(wait):
                if time.monotonic() < deadline:
                    continue
                raise WorkerLost(f"it did not end within {limit:.3g} s", hung=True)
            part = os.read(self._process.stdout.fileno(), 1 << 16)
            if not part:
                return None
            self._left += part
        line, _, self._left = self._left.partition(b"\n")
        return line

    def _lost(self) -> WorkerLost:
        process, stderr = self._process, self._stderr
        assert process is not None
        try:
            code = process.wait(5)
        except subprocess.TimeoutExpired:
            code = 0
        last = ""
        if stderr is not None:
            size = stderr.seek(0, os.SEEK_END)
            stderr.seek(max(0, size - 4000))
            lines = stderr.read().decode(errors="replace").strip().splitlines()
            last = f": {lines[-1][:200]}" if lines else ""
        self.kill()
        if code < 0:
            with suppress(ValueError):
                name = signal.Signals(-code).name
                hung = name == "SIGALRM"
                return WorkerLost(f"it took its worker process down by {name}{last}", hung)
        return WorkerLost(f"its worker process ended with code {code}{last}", hung=False)


_idle: list[Worker] = []
_lock = threading.Lock()


def borrow() -> Worker:
    """Return a worker for one tuning: an idle one, or a new one."""
    with _lock:
        return _idle.pop() if _idle else Worker()


def give_back(worker: Worker) -> None:
    """Keep a worker for the next tuning, or end it when there are others."""
    worker.close()
    with _lock:
        if len(_idle) < ALL_IDLE:
            _idle.append(worker)
            return
    worker.kill()


def end_idle() -> None:
    """End the workers that wait for the next tuning."""
    with _lock:
        idle = list(_idle)
        _idle.clear()
    for worker in idle:
        worker.kill()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    for worker in _idle:  # the parent's: neither ended nor waited for here
        worker._process = None
    _idle.clear()


atexit.register(end_idle)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
