"""The julia engine: sources run as they are, by Julia and KernelAbstractions.jl."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from jlkern.engines.base import CompileRequest, Device, Engine, Environment, Launcher
from jlkern.engines.cpus import cpu_name
from jlkern.engines.julia import backends
from jlkern.engines.julia.backends import Place
from jlkern.engines.julia.owner import run
from jlkern.errors import UnsupportedError
from jlkern.source import KernelSource
from jlkern.space import Schedule

DEFAULT_WORKGROUPS = {1: (256,), 2: (32, 8), 3: (32, 4, 2)}


class JuliaEngine(Engine):
    """See `jlkern.engines.base`; on the CPU, or on a device.

    Schedules: "threads" ("one" or "all"), on the CPU.
    """

    name = "julia"

    def __init__(self, place: Place | None = None) -> None:
        self.place = place

    def devices(self) -> tuple[Device, ...]:
        if self.place is None:
            return (Device("cpu", 0, cpu_name()),)
        own = self.place.device
        others = (n for n in range(self.place.count) if n != own.index)
        return (own, *(backends.place(own.kind, n).device for n in others))

    def environment(self) -> Environment:
        from jlkern.engines.julia.bridge import runtime

        found = runtime()
        if self.place is not None:
            return self._environment_of(self.place, found.versions)
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

    def _environment_of(self, place: Place, versions: Mapping[str, str]) -> Environment:
        capability = ("capability", place.capability)
        exact = (
            ("device", place.device.name),
            capability,
            ("jlkern", _own_version()),
            *sorted((*versions.items(), *place.versions)),
        )
        return Environment(exact, (capability, ("kind", place.device.kind)))

    def on_host(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.place is None:
            return args
        from jlkern.engines.julia.copies import on_host

        return run(on_host, self.place, args)

    def check(self, source: KernelSource) -> None:
        """Everything that Julia can read is supported, but on the CPU what would have another meaning than on GPUs."""
        from jlkern.engines.julia.barriers import unlike_simt

        if self.devices()[0].kind not in ("cpu", "jl") or not source.kernel.cpu:
            return  # KernelAbstractions itself refuses `cpu=false`
        found = unlike_simt(source.kernel)
        if found is not None:
            raise UnsupportedError(
                f"{source.origin.where(found.line)}: {found.text} (KernelAbstractions' CPU backend runs a "
                "work-group as loops over its items; engine='numba' and GPUs run this as it is)"
            )

    def default_workgroup(self, ndrange: tuple[int, ...]) -> tuple[int, ...]:
        base = DEFAULT_WORKGROUPS.get(len(ndrange), (32, 4, 2))
        return (*base, *(1,) * (len(ndrange) - len(base)))

    def compile(self, request: CompileRequest) -> Launcher:
        from jlkern.engines.julia.bridge import runtime
        from jlkern.engines.julia.launcher import JuliaLauncher

        self.check(request.source)
        asked = request.workgroup or self.default_workgroup((1,) * request.ndims)
        workgroup = (*asked, *(1,) * (request.ndims - len(asked)))
        if self.place is None:
            return JuliaLauncher(request, runtime(), workgroup)
        from jlkern.engines.julia.devicelauncher import DeviceLauncher

        return DeviceLauncher(request, runtime(), workgroup, self.place)

    def schedules(self, request: CompileRequest) -> tuple[Schedule, ...]:
        """Return the rule's choice, and one thread or all where there are several."""
        from jlkern.engines.julia.bridge import runtime

        if self.place is not None or runtime().threads == 1:
            return ((),)
        return ((), (("threads", "one"),), (("threads", "all"),))


def engine(device: str = "cpu") -> JuliaEngine:
    """Return the engine on a device, with Julia started.

    Raises
    ------
    EngineError
        Julia is not set up, or does not start, or has no such device.
    """
    kind, _, index = device.partition(":")
    return _engine(kind, int(index or 0))


@cache
def _engine(kind: str, index: int) -> JuliaEngine:
    from jlkern.engines.julia.bridge import runtime

    runtime()
    return JuliaEngine() if kind == "cpu" else JuliaEngine(backends.place(kind, index))


def wait_for(device: str | None) -> None:
    """Wait until all that was launched on a device, or on every one, is done; see `jlkern.synchronize`."""
    for place in backends.places(device):
        run(backends.wait, place)


def _own_version() -> str:
    try:
        return version("jlkern")
    except PackageNotFoundError:
        return "source"
