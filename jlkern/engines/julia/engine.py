"""The julia engine: sources run as they are, by Julia and KernelAbstractions.jl."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from jlkern.engines.base import CompileRequest, Device, Engine, Environment, Launcher
from jlkern.engines.cpus import cpu_name
from jlkern.errors import EngineError
from jlkern.source import KernelSource
from jlkern.space import Schedule

DEFAULT_WORKGROUPS = {1: (256,), 2: (32, 8), 3: (32, 4, 2)}


class JuliaEngine(Engine):
    """See `jlkern.engines.base`.

    Schedules: "threads" ("one" or "all").
    """

    name = "julia"

    def devices(self) -> tuple[Device, ...]:
        return (Device("cpu", 0, cpu_name()),)

    def environment(self) -> Environment:
        from jlkern.engines.julia.bridge import runtime

        found = runtime()
        exact = (
            ("device", cpu_name()),
            ("jlkern", _own_version()),
            *sorted(found.versions.items()),
            ("threads", str(found.threads)),
        )
        same_class = (
            ("cores", str(1 << (found.threads - 1).bit_length())),
            ("isa", platform.machine()),
            ("kind", "cpu"),
        )
        return Environment(exact, same_class)

    def check(self, source: KernelSource) -> None:
        """Everything that Julia can read is supported."""

    def default_workgroup(self, ndrange: tuple[int, ...]) -> tuple[int, ...]:
        base = DEFAULT_WORKGROUPS.get(len(ndrange), (32, 4, 2))
        return (*base, *(1,) * (len(ndrange) - len(base)))

    def compile(self, request: CompileRequest) -> Launcher:
        from jlkern.engines.julia.bridge import runtime
        from jlkern.engines.julia.launcher import JuliaLauncher

        asked = request.workgroup or self.default_workgroup((1,) * request.ndims)
        return JuliaLauncher(request, runtime(), (*asked, *(1,) * (request.ndims - len(asked))))

    def schedules(self, request: CompileRequest) -> tuple[Schedule, ...]:
        """Return the rule's choice, and one thread or all where there are several."""
        from jlkern.engines.julia.bridge import runtime

        if runtime().threads == 1:
            return ((),)
        return ((), (("threads", "one"),), (("threads", "all"),))


@cache
def engine(device: str = "cpu") -> JuliaEngine:
    """Return the engine on a device, with Julia started.

    Raises
    ------
    EngineError
        Julia is not set up, or does not start, or has no such device.
    """
    from jlkern.engines.julia.bridge import runtime

    runtime()
    if device != "cpu":
        raise EngineError(f"device={device!r}: the julia engine has no such device here")
    return JuliaEngine()


def _own_version() -> str:
    try:
        return version("jlkern")
    except PackageNotFoundError:
        return "source"
