"""The devices that Julia can run on besides the CPU: one entry per backend, and opening one of its devices.

An entry names a Julia package and says in Julia what KernelAbstractions has no name for. It is a named tuple, evaluated
with the package in scope; functions are called with the device as the current one:

- `backend`: the KernelAbstractions backend.
- `name()`, `capability()`: what the maker calls the device, and the name of what it can do.
- `drivers()`: pairs of a name and a version, of what measurements depend on besides the package.
- `wait()`: waits until everything on the device is done. Default: KernelAbstractions' `synchronize`.
- `timed(f)`: calls `f`, which launches, and returns the seconds on the device. Default: by the clock, with a `wait`.
- `wrap(T, address, dims)`: an array over memory of another library. Where it is missing, NumPy arrays only.
- `ordered(f, stream)`: calls `f`, which launches, so that its work has its place in another library's stream.

Everything else (allocating, copying, choosing a device, launching) goes by KernelAbstractions, GPUArrays and Base.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from jlkern.engines.base import Device
from jlkern.engines.julia import bridge
from jlkern.engines.julia.owner import run
from jlkern.engines.julia.text import quoted
from jlkern.errors import EngineError, KernelError


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend: its kind as `device=` names it, its package with UUID, and its entry in Julia."""

    kind: str
    package: str
    uuid: str
    entry: str


BACKENDS: Final = {
    backend.kind: backend
    for backend in (
        Backend(
            "cuda",
            "CUDA",
            "052768ef-5323-5732-b1bb-66c8b64840ba",
            # Only default streams can be made a CuStream, so the launch waits for an event of the other stream, and
            # that stream for one of the launch. The C functions are in the module of CuArray: CUDA, or CUDACore.
            """(
    backend = CUDA.CUDABackend(),
    name = () -> CUDA.name(CUDA.device()),
    capability = () -> string(CUDA.capability(CUDA.device())),
    drivers = () -> ("driver" => CUDA.driver_version(), "runtime" => CUDA.runtime_version()),
    wait = () -> CUDA.device_synchronize(),
    timed = f -> CUDA.@elapsed(f()),
    wrap = (T, address, dims) -> unsafe_wrap(CUDA.CuArray, CUDA.CuPtr{T}(address), dims),
    ordered = function (f, stream)
        driver = parentmodule(CUDA.CuArray)
        other = driver.CUstream(stream)
        ready = CUDA.CuEvent(CUDA.EVENT_DISABLE_TIMING)
        driver.cuEventRecord(ready, other)
        CUDA.wait(ready)
        f()
        done = CUDA.CuEvent(CUDA.EVENT_DISABLE_TIMING)
        CUDA.record(done)
        driver.cuStreamWaitEvent(other, done, 0)
    end,
)""",
        ),
        Backend(
            "amdgpu",
            "AMDGPU",
            "21141c5a-9bdb-4563-92ae-f87d6854732e",
            """(
    backend = AMDGPU.ROCBackend(),
    name = () -> AMDGPU.HIP.name(AMDGPU.device()),
    capability = () -> String(first(split(AMDGPU.HIP.gcn_arch(AMDGPU.device()), ':'))),
    drivers = () -> ("hip" => AMDGPU.HIP.runtime_version(),),
    wait = () -> AMDGPU.HIP.device_synchronize(),
    timed = f -> AMDGPU.@elapsed(f()),
    wrap = (T, address, dims) -> unsafe_wrap(AMDGPU.ROCArray, Ptr{T}(address), dims),
    ordered = function (f, stream)
        own = AMDGPU.stream()
        AMDGPU.stream!(stream == 0 ? AMDGPU.HIP.default_stream() : AMDGPU.HIPStream(AMDGPU.HIP.hipStream_t(stream)))
        try
            f()
        finally
            AMDGPU.stream!(own)
        end
    end,
)""",
        ),
        Backend(
            "oneapi",
            "oneAPI",
            "8f75cd03-7ff8-4ecb-9b8f-daf728133b1b",
            """(
    backend = oneAPI.oneAPIBackend(),
    name = () -> oneAPI.oneL0.properties(oneAPI.device()).name,
    capability = () -> (p = oneAPI.oneL0.properties(oneAPI.device()); string(p.vendorId, '-', p.deviceId; base = 16)),
    drivers = () -> ("driver" => oneAPI.oneL0.properties(oneAPI.driver()).driverVersion,),
)""",
        ),
        Backend(
            "metal",
            "Metal",
            "dde4c033-4e86-420c-a63e-0dd931031962",
            """(
    backend = Metal.MetalBackend(),
    name = () -> String(Metal.device().name),
    capability = () -> String(Metal.device().name),
    drivers = () -> ("macos" => Metal.macos_version(),),
    wait = () -> Metal.device_synchronize(),
)""",
        ),
        Backend(
            "jl",
            "JLArrays",
            "27aeb0d3-9eb9-45fb-866b-73c2ecf80fcb",
            """(
    backend = JLArrays.JLBackend(),
    name = () -> "JLArrays",
    capability = () -> "reference",
    wait = () -> nothing,
    wrap = function (T, address, dims)
        bytes = unsafe_wrap(Vector{UInt8}, Ptr{UInt8}(address), prod(dims) * sizeof(T))
        JLArrays.JLArray{T,length(dims)}(JLArrays.DataRef(_ -> nothing, bytes), dims)
    end,
    ordered = (f, stream) -> f(),
)""",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Place:
    """An open device: `slot` is Julia's number for it. `versions` are the package's and the drivers'."""

    slot: int
    device: Device
    capability: str
    count: int
    float64: bool
    versions: tuple[tuple[str, str], ...]


_open: dict[tuple[str, int], Place] = {}


def place(kind: str, index: int) -> Place:
    """Return a device, opened at the first call.

    Raises
    ------
    EngineError
        Its package is not installed or does not work, or there is no such device.
    """
    found = _open.get((kind, index))
    if found is None:
        found = _open[kind, index] = run(_opened, BACKENDS[kind], index)
    return found


def places(device: str | None = None) -> list[Place]:
    """Return the open devices that a name means: all, those of a kind, or one."""
    kind, _, index = (device or "").partition(":")
    return [p for (k, i), p in list(_open.items()) if kind in ("", k) and index in ("", str(i))]


def detected() -> tuple[list[Place], dict[str, str]]:
    """Return the devices of all packages that are installed, and what is wrong with packages that do not work.

    Loading a package takes seconds, so this is for reports.
    """
    found: list[Place] = []
    problems: dict[str, str] = {}
    for kind, backend in BACKENDS.items():
        if not run(_located, backend):
            continue
        try:
            first = place(kind, 0)
            found += [first, *(place(kind, index) for index in range(1, first.count))]
        except EngineError as problem:
            problems[kind] = str(problem)
    return found, problems


def wait(found: Place) -> None:
    """Wait until everything that was launched on a device is done. Raises `KernelError` for a kernel that failed."""
    runtime = bridge.runtime()
    if runtime.wait(found.slot):
        problem = runtime.last_problem()
        raise KernelError(f"a kernel on {found.device.kind}:{found.device.index}: {problem.kind}: {problem.message}")


def _located(backend: Backend) -> bool:
    runtime = bridge.runtime()
    text = f"located({quoted(backend.package)}, {quoted(backend.uuid)}) || error()"
    slot = runtime.make(text.encode(), 0, b"")
    if slot:
        runtime.free(slot)
    return bool(slot)


def _opened(backend: Backend, index: int) -> Place:
    runtime = bridge.runtime()
    name = f"{backend.kind}:{index}"
    entry = quoted(backend.entry)
    text = f"opened({quoted(backend.package)}, {quoted(backend.uuid)}, {index + 1}, {entry})"
    slot = runtime.make(text.encode(), 0, b"")
    if not slot:
        problem = runtime.last_problem()
        raise EngineError(f"device={name!r}: {_first_line(problem.message)}")
    told = runtime.about(slot)
    if told is None:
        problem = runtime.last_problem()
        raise EngineError(f"device={name!r}: {backend.package}.jl: {_first_line(problem.message)}")
    label, capability, count, float64, *versions = told.decode(errors="replace").split("\x1f")
    pairs = tuple((n, v) for n, _, v in (version.partition("=") for version in versions))
    return Place(slot, Device(backend.kind, index, label), capability, int(count), float64 == "1", pairs)


def _first_line(message: str) -> str:
    return message.strip().partition("\n")[0]
