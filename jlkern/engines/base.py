"""The contract between jlkern and an engine: what an engine must, should and may do.

An engine **must** list its devices, compile a request to a launcher or raise `CompileError`, launch, and time a
launcher on the device. It **should** check array bounds where the source does not say `@inbounds`. It **may** offer
schedules.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jlkern.signature import Signature
from jlkern.source import KernelSource
from jlkern.space import Schedule, Value


@dataclass(frozen=True, slots=True)
class Device:
    """One device of an engine: `kind` is `"cpu"`, `"cuda"`, ...; `name` is what its maker calls it."""

    kind: str
    index: int
    name: str


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a measurement holds: all of `exact` for a full match, all of `same_class` for a near one."""

    exact: tuple[tuple[str, str], ...]
    same_class: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """One kernel, for one configuration and one signature.

    `workgroup` None asks for the engine's default for `ndims` dimensions; a shorter one is padded with 1s. `written`
    names the parameters that the kernel may write. A schedule that the engine does not know becomes its default.
    """

    source: KernelSource
    signature: Signature
    params: Mapping[str, Value]
    workgroup: tuple[int, ...] | None
    ndims: int
    written: frozenset[str]
    schedule: Schedule = ()
    check_bounds: bool = False


class Launcher(ABC):
    """A compiled kernel. It depends on no shape and no ndrange value; arguments must match the request's signature."""

    request: CompileRequest
    text: str = field(default="")

    @abstractmethod
    def fire(self, ndrange: tuple[int, ...]) -> Callable[..., int]:
        """Return a function of the kernel's arguments that launches over `ndrange` and waits for the result.

        This is what a warm call runs, so it is as short as the engine can make it. It returns 0, or a status for
        `fail`.
        """

    @abstractmethod
    def fail(self, fire: Callable[..., int], status: int) -> None:
        """Raise the `KernelError` that a nonzero status of `fire` stands for."""

    @abstractmethod
    def bind(self, ndrange: tuple[int, ...], args: tuple[Any, ...]) -> Callable[[], int]:
        """Return a function of nothing that launches on `args`, with `fire`'s result."""

    @abstractmethod
    def sampler(self, ndrange: tuple[int, ...], args: tuple[Any, ...]) -> Callable[[int], float]:
        """Return a function of n that launches n times back to back on `args` and returns the seconds it took.

        The first call may warm up. Raises the `KernelError` when the kernel throws.
        """


class Engine(ABC):
    """An engine: what compiles and runs kernels on some devices."""

    name: str

    @abstractmethod
    def devices(self) -> tuple[Device, ...]:
        """Return the devices, the default first."""

    @abstractmethod
    def environment(self) -> Environment:
        """Return what a measurement made now depends on: device, versions, threads."""

    @abstractmethod
    def check(self, source: KernelSource) -> None:
        """Raise `UnsupportedError` when the source holds a construct that this engine never supports."""

    @abstractmethod
    def default_workgroup(self, ndrange: tuple[int, ...]) -> tuple[int, ...]:
        """Return the work-group size for a kernel that declares none."""

    @abstractmethod
    def compile(self, request: CompileRequest) -> Launcher:
        """Compile a request. Raises `CompileError` (or a `SourceError` kind) and nothing else."""

    def on_host(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a call's arguments with NumPy copies of the arrays that live on the device: what tuning works on."""
        return args

    def use_threads(self, count: int) -> None:  # noqa: B027  # not every engine can
        """Use so many threads from now on, where that is the process's to say; 0 is no wish."""

    def schedules(self, request: CompileRequest) -> tuple[Schedule, ...]:
        """Return the schedules worth trying for a request, the rule's default first; here it is the only one."""
        return ((),)
