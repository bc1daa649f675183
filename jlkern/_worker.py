"""The worker of `isolation="process"`: compiles and runs candidates, so that what they break is not the user's process.

Started as `python -m jlkern._worker` by `jlkern.tuning.worker`; never imports the user's script. Each line on stdin is
a JSON request with a time limit, each line on stdout the answer. Its own alarm ends it when a request takes too long or
when nobody asks for a while, also when the process that started it is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np

from jlkern.errors import EngineError
from jlkern.tuning import wire

IDLE: Final = 120.0
"""Seconds without a request after which the worker ends."""

WARM: Final = 5e-3
"""Seconds below which a launch is done once before it is timed."""

GRACE: Final = 2.0
"""Seconds beyond a request's limit after which the alarm ends the worker, if its parent has not done so."""


class Session:
    """One tuning: its engine, source and arguments, and what was compiled for it."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        from jlkern.engines.base import Device
        from jlkern.engines.select import engine_of
        from jlkern.signature import classify

        self.segments = {name: attach(name) for name in data["segments"]}
        memory = {name: segment.buf for name, segment in self.segments.items()}
        self.engine = engine_of(Device(data["device"][0], data["device"][1], ""), data["engine"])
        self.engine.use_threads(int(dict(data["environment"]).get("threads", 0)))
        here = [list(fact) for fact in self.engine.environment().exact]
        if here != data["environment"]:
            differing = ", ".join(f"{n} is {v}" for n, v in here if [n, v] not in data["environment"])
            raise EngineError(
                f"isolation='process' would measure under other conditions than calls have: there {differing}"
            )
        self.source = wire.decode_source(data["source"])
        self.args = tuple(
            wire.decode_array(item["array"], memory) if "array" in item else wire.decode_value(item)
            for item in data["args"]
        )
        self.restored = [tuple(wire.decode_array(place, memory) for place in pair) for pair in data["restored"]]
        self.signature = tuple(classify(name, arg) for name, arg in zip(data["names"], self.args, strict=True))
        self.launchers: dict[int, Any] = {}
        self.samplers: dict[int, Callable[[int], float]] = {}
        self.last: dict[int, float] = {}  # seconds of a sampler's last sample

    def compile(self, id: int, request: Mapping[str, Any]) -> str:
        """Compile a request under a number; return the code's text."""
        self.launchers[id] = self.engine.compile(wire.decode_request(request, self.source, self.signature))
        return str(self.launchers[id].text)

    def fire(self, id: int, ndrange: list[int]) -> None:
        """Launch once."""
        launcher = self.launchers[id]
        launch = launcher.fire(tuple(ndrange))
        status = launch(*self.args)
        if status:
            launcher.fail(launch, status)

    def sampler(self, id: int, sampler: int, ndrange: list[int]) -> None:
        """Make what samples a launcher."""
        self.samplers[sampler] = self.launchers[id].sampler(tuple(ndrange), self.args)

    def sample(self, sampler: int, times: int) -> float:
        """Launch some times back to back; return the seconds.

        While this process waited for the request, its threads went to sleep and its caches were others': a short launch
        is done once before, so that what is timed is what a caller's loop would see.
        """
        launch = self.samplers[sampler]
        self.restore()
        if self.last.get(sampler, 0.0) < WARM:
            launch(1)
            self.restore()
        seconds = self.last[sampler] = launch(times)
        return seconds

    def restore(self) -> None:
        """Bring the arrays that are read and written back to the caller's content."""
        for copy, original in self.restored:
            np.copyto(copy, original)

    def close(self) -> None:
        """Let go of the arrays, then of their memory."""
        self.args, self.restored = (), []
        self.launchers.clear()
        self.samplers.clear()
        for segment in self.segments.values():
            with suppress(BufferError):
                segment.close()


def attach(name: str) -> Any:
    """Open a segment that the parent made, and leave its end to the parent."""
    from multiprocessing import resource_tracker
    from multiprocessing.shared_memory import SharedMemory

    if sys.version_info >= (3, 13):
        return SharedMemory(name, track=False)
    # Before 3.13 whoever opens a segment also registers it to be removed at its own end.
    resource_tracker.register = lambda *args: None
    return SharedMemory(name)


def limit_memory(size: int | None) -> None:
    """Let memory end here before it ends elsewhere: a limit where one is set, and the first choice of a killer."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if size is not None:
            hard = resource.getrlimit(resource.RLIMIT_AS)[1]
            resource.setrlimit(resource.RLIMIT_AS, (size if hard < 0 else min(size, hard), hard))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def alarm(seconds: float) -> None:
    """End this process in some seconds; its default action needs no Python, so that it ends endless loops too."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def serve(answers: int) -> None:
    """Answer requests until there are no more."""
    session: Session | None = None
    alarm(IDLE)
    for line in sys.stdin.buffer:
        data = json.loads(line)
        what, seconds = data.pop("do"), data.pop("limit")
        alarm(seconds + GRACE)
        try:
            result: Any = None
            if what in ("open", "close"):
                if session is not None:
                    session.close()
                session = Session(data) if what == "open" else None
            elif what == "memory":
                limit_memory(data["size"])
            else:
                result = getattr(session, what)(**data)
            answer = {"result": result}
        except Exception as problem:
            answer = {"error": wire.encode_error(problem)}
        alarm(IDLE)
        os.write(answers, json.dumps(answer).encode() + b"\n")


def main() -> None:
    """Keep stdout for answers: whatever prints goes to stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    answers = os.dup(1)
    os.dup2(2, 1)
    serve(answers)


if __name__ == "__main__":
    main()
