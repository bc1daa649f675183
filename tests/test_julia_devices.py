"""Arrays on devices: what their interfaces say, and the julia engine's device paths on JLArrays' reference backend.

No GPU is needed: JLArrays.jl keeps its arrays in the host's memory and runs kernels on the CPU, and everything between
Python and KernelAbstractions is the same for it as for a GPU.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conformance.archetypes import ARCHETYPES, configs, defaults
from conformance.harness import LAYOUTS, arguments, check, compiled
from conformance.test_archetypes import ATOMIC_FLOATS
from helpers import SAXPY, needs_julia

import jlkern
from jlkern import devices
from jlkern.devices import DeviceArray, described, home_of
from jlkern.engines import select
from jlkern.engines.base import Engine
from jlkern.engines.julia.backends import BACKENDS, detected
from jlkern.engines.julia.engine import JuliaEngine
from jlkern.errors import ArgumentError, CompileError, EngineError, HomeError, OptionError
from jlkern.signature import check_written, classify

EXTENSION = 12
"""DLPack's device type for devices that have no number of their own."""


class Interface:
    """An array that describes itself by `__cuda_array_interface__`."""

    def __init__(self, array: np.ndarray, **changes: Any) -> None:
        self.array, self.changes = array, changes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        told = dict(self.array.__array_interface__)
        return {**{n: told[n] for n in ("shape", "typestr", "data", "strides")}, "version": 3, **self.changes}


class WithAttributes(Interface):
    """The same, with the attributes of NumPy's arrays, as CuPy's have them."""

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self.array.strides


class Capsule:
    """An array that gives itself by DLPack, from a device of the test's choice; its memory is the host's."""

    def __init__(self, array: np.ndarray, device: tuple[int, int] = (EXTENSION, 0)) -> None:
        self.array, self.device = array, device
        self.asked: dict[str, Any] = {}

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **options: Any) -> Any:
        self.asked = dict(options)
        options.pop("stream", None)
        return self.array.__dlpack__(**options)


def describe(value: Any) -> DeviceArray:
    (found,) = described(("x",), (value,))
    assert type(found) is DeviceArray
    return found


# --- what interfaces say ----------------------------------------------------------------------------------------------

SHAPES = [
    np.arange(6, dtype=np.int16),
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(24, dtype=np.complex64).reshape(4, 6)[1:, ::2],
    np.arange(24, dtype=np.float32).reshape(4, 6)[::-1, ::-2],
    np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0),
    np.array(3, np.uint8),
    np.zeros((0, 3), np.float32),
    np.array([True, False]),
    np.arange(4.0)[:1][:, None],
]


@pytest.mark.parametrize("array", SHAPES, ids=str)
@pytest.mark.parametrize("how", [Interface, Capsule])
def test_descriptions_are_numpys(array: np.ndarray, how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(devices.DLPACK, EXTENSION, "jl")
    found = describe(how(array))
    assert (found.dtype, found.shape, found.ndim, found.size) == (array.dtype, array.shape, array.ndim, array.size)
    if array.size:
        assert found.pointer == array.ctypes.data
        assert [s for s, n in zip(found.strides, found.shape, strict=True) if n > 1] == [
            s for s, n in zip(array.strides, array.shape, strict=True) if n > 1
        ]
    assert classify("x", found) == classify("x", array)
    assert found.owner is not None


def test_homes() -> None:
    x = np.zeros(3)
    assert home_of(Interface(x)) == "cuda:0"
    assert home_of(Capsule(x, (2, 1))) == "cuda:1"
    assert home_of(Capsule(x, (10, 0))) == "amdgpu:0"
    assert home_of(Capsule(x, (7, 0))) == "vulkan"
    assert describe(Capsule(x, (2, 1))).home == "cuda:1"


def test_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros(3)
    assert describe(Interface(x, stream=77)).stream == 77
    assert describe(Interface(x)).stream == 1
    on_cuda, on_amd = Capsule(x, (2, 0)), Capsule(x, (10, 0))
    assert describe(on_cuda).stream == 1
    assert on_cuda.asked["stream"] == 1
    assert describe(on_amd).stream == 0
    assert on_amd.asked["stream"] is None

    torch: Any = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(current_stream=lambda index: types.SimpleNamespace(cuda_stream=900 + index))
    monkeypatch.setitem(sys.modules, "torch", torch)
    tensor = type("Tensor", (Capsule,), {"__module__": "torch"})
    assert describe(tensor(x, (2, 1))).stream == 901


def test_what_may_not_be_written() -> None:
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        check_written("x", describe(Interface(frozen)))
    with pytest.raises(ArgumentError, match="elements share memory"):
        check_written("x", describe(Interface(np.broadcast_to(np.zeros(1), (3,)), data=(4096, False))))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Interface(np.zeros(3), mask=np.zeros(3)), "masked array"),
        (Interface(np.zeros(3), typestr="|V2"), "dtype"),
        (Interface(np.zeros(3), typestr=">f8"), "byte order"),
        (Interface(np.zeros(3), data=(4097, False)), "not aligned"),
        (Interface(np.zeros(3), shape=None), "on cuda:0 that cannot be shared"),
        (Capsule(np.zeros(3), (8, 0)), "memory Julia cannot use.*device='metal'"),
        (Capsule(np.zeros(3), (14, 0)), "memory Julia cannot use.*device='oneapi'"),
    ],
    ids=range(7),
)
def test_what_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"'x'.*{message}"):
        classify("x", describe(value))


def test_properties_that_raise_say_why() -> None:
    class Tensor(Capsule):
        @property
        def __cuda_array_interface__(self) -> Any:
            raise RuntimeError("use detach()")

    with pytest.raises(ArgumentError, match="'x': a Tensor on cuda:0 that cannot be shared: use detach"):
        describe(Tensor(np.zeros(3), (2, 0)))


def test_one_call_one_device() -> None:
    k = jlkern.from_source(SAXPY)
    x = np.zeros(3)
    with pytest.raises(HomeError, match=r"'y' on cuda:0, 'x' on cuda:1"):
        k(Capsule(x, (2, 0)), 1.0, Capsule(x, (2, 1)))
    with pytest.raises(HomeError, match=r"'y' lives on vulkan, where no engine runs"):
        k(Capsule(x, (7, 0)), 1.0, Capsule(x, (7, 0)))
    elsewhere = jlkern.from_source(SAXPY, device="cuda:1")
    with pytest.raises(HomeError, match=r"live on cuda:0, and device='cuda:1'"):
        elsewhere(Capsule(x, (2, 0)), 1.0, Capsule(x, (2, 0)))
    with pytest.raises(OptionError, match="device= must be one of"):
        jlkern.from_source(SAXPY, device="gpu")


def test_waiting_starts_nothing() -> None:
    jlkern.synchronize()
    jlkern.synchronize("cpu")
    jlkern.synchronize("cuda:3")
    with pytest.raises(OptionError, match="device= must be one of"):
        jlkern.synchronize("gpu")


# --- on the reference backend -----------------------------------------------------------------------------------------

on_jl = [needs_julia, pytest.mark.julia]
BY_NAME = {a["name"]: a for a in ARCHETYPES}
ON_CPU = [name for name, a in BY_NAME.items() if a["cpu_ok"]]


def marked(function: Any) -> Any:
    for mark in on_jl:
        function = mark(function)
    return function


@pytest.fixture(scope="module")
def jl() -> Engine:
    try:
        return select.engine_named("julia", "jl")
    except EngineError as problem:
        pytest.skip(f"JLArrays.jl: {problem}")


@pytest.fixture
def shared(jl: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Extension devices are the reference backend: so a test's arrays are used where they are."""
    monkeypatch.setitem(devices.DLPACK, EXTENSION, "jl")
    yield


@marked
@pytest.mark.parametrize("name", ON_CPU)
def test_archetypes_in_every_layout(jl: Engine, name: str) -> None:
    archetype = BY_NAME[name]
    runs = [check(jl, archetype, defaults(archetype), layout) for layout in LAYOUTS]
    if name not in ATOMIC_FLOATS:
        for run in runs[1:]:
            for first, other in zip(runs[0], run, strict=True):
                if isinstance(first, np.ndarray):
                    np.testing.assert_array_equal(first, other)


@marked
@pytest.mark.slow
@pytest.mark.parametrize("layout", ["F", "C"])
@pytest.mark.parametrize("name", ON_CPU)
def test_archetypes_in_every_configuration(jl: Engine, name: str, layout: str) -> None:
    for params in configs(BY_NAME[name]):
        check(jl, BY_NAME[name], params, layout)


@marked
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["jacobi5", "hist_global", "scatter_add", "transpose_lmem"])
def test_shared_memory_is_used_in_place(jl: Engine, shared: None, name: str, layout: str) -> None:
    archetype = BY_NAME[name]
    args = arguments(archetype, layout)
    expected = archetype["reference"]([a.copy() if isinstance(a, np.ndarray) else a for a in args], defaults(archetype))
    launcher, ndrange = compiled(jl, archetype, defaults(archetype), args)
    given = [Capsule(a) if isinstance(a, np.ndarray) else a for a in args]
    assert launcher.fire(ndrange)(*given) == 0
    for after, wanted in zip(args, expected, strict=True):
        if wanted is not None:
            np.testing.assert_allclose(after, wanted, rtol=archetype["rtol"], atol=archetype["atol"])


SHIFT = """
@kernel function shift!(y, @Const(x))
    i, j = @index(Global, NTuple)
    @inbounds y[i, j] = x[i, j] + 10
end
"""


@marked
@pytest.mark.parametrize("array", [a for a in SHAPES if a.ndim == 2 and a.size], ids=str)
def test_layouts(jl: Engine, shared: None, array: np.ndarray) -> None:
    k = jlkern.from_source(SHIFT, device="jl", engine="julia")
    x = array.real.astype(np.float64, order="K")
    copied, inside = np.zeros_like(x), np.zeros_like(x)
    k(copied, x)
    k(Capsule(inside), Capsule(x))
    np.testing.assert_array_equal(copied, x + 10)
    np.testing.assert_array_equal(inside, x + 10)


@marked
def test_only_elements_are_copied_back(jl: Engine) -> None:
    k = jlkern.from_source(SHIFT, device="jl", engine="julia")
    base = np.zeros((6, 8))
    k(base[1:-1, 1:-1:2], np.ones((4, 3)))
    expected = np.zeros((6, 8))
    expected[1:-1, 1:-1:2] = 11
    np.testing.assert_array_equal(base, expected)


@marked
def test_arrays_that_overlap_overlap_on_the_device(jl: Engine) -> None:
    source = """
    @kernel function next!(y, x)
        i = @index(Global)
        y[i] = 2
        @synchronize
        y[i] = x[i] + 5
    end
    """
    k = jlkern.from_source(source, device="jl", engine="julia", ndrange=(1,))
    base = np.zeros(4)
    k(base[2:], base[1:])  # y[0] and x[1] are one element, x[0] is none of y's
    np.testing.assert_array_equal(base, [0, 0, 5, 0])
    k(base[1:], base[1:])
    np.testing.assert_array_equal(base, [0, 7, 5, 0])


@marked
@pytest.mark.parametrize("order", ["F", "C"])
def test_atomics(jl: Engine, order: Any) -> None:
    source = """
    @kernel function tally!(bins, @Const(which))
        i = @index(Global)
        KernelAbstractions.@atomic bins[which[i], 2] += 1
        KernelAbstractions.@atomic max(bins[which[i] + size(bins, 1)], Int64(i))
    end
    """
    k = jlkern.from_source(source, device="jl", engine="julia", ndrange="which")
    which = np.random.default_rng(0).integers(1, 5, 300)
    bins = np.zeros((4, 3), np.int64, order=order)
    k(bins, which)
    counts = np.bincount(which - 1, minlength=4)
    last = np.array([np.flatnonzero(which == n + 1)[-1] + 1 for n in range(4)])
    assert ((bins[:, 1] >= counts) & (bins[:, 1] >= last)).all()
    assert (bins[:, [0, 2]] == 0).all()


@marked
def test_empty_arrays_and_0_d_ones(jl: Engine, shared: None) -> None:
    k = jlkern.from_source(
        "@kernel function f!(y, z, n) i = @index(Global); y[] = n[] + length(z) end",
        device="jl",
        engine="julia",
        ndrange=(1,),
        inout=["y"],
    )
    y, n = np.zeros(()), np.array(3.0)
    k(y, np.zeros((0, 2)), n)
    assert y == 3
    k(Capsule(y), Capsule(np.zeros((2, 0), order="C")), Capsule(np.array(4.0)))
    assert y == 4


@marked
def test_bound_launches(jl: Engine, shared: None) -> None:
    k = jlkern.from_source(SAXPY, device="jl", engine="julia")
    y, x = np.zeros(100), np.ones(100)
    for launch in (k.bind(y, 2.0, x), k.bind(Capsule(y), 2.0, Capsule(x))):
        y[:] = 0
        launch()
        x[0] = 5
        launch()
        jlkern.synchronize("jl")
        assert (y[0], y[1]) == (12, 4)
        x[0] = 1


@marked
def test_a_sample_starts_from_the_same_content(jl: Engine) -> None:
    archetype = {**BY_NAME["axpy"], "kernel": "saxpy!", "source": SAXPY, "tune": {}}
    y, x = np.zeros(50), np.ones(50)
    archetype["ndrange"], archetype["workgroup"] = lambda args, p: (50,), lambda p: (64,)
    launcher, ndrange = compiled(jl, archetype, {}, [y, 1.0, x])
    sample = launcher.sampler(ndrange, (y, 1.0, x))
    assert sample(3) > 0
    assert (y == 0).all()
    shared_y = Capsule(y)
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setitem(devices.DLPACK, EXTENSION, "jl")
        launcher.sampler(ndrange, (shared_y, 1.0, Capsule(x)))(3)
    assert (y == 3).all()


TUNED = """
@kernel function saxpy!(y, a, @Const(x))
    i = @index(Global)
    @inbounds y[i] += a * x[i]
end
"""


@marked
@pytest.mark.parametrize("how", ["copied", "shared"])
def test_tuning(jl: Engine, shared: None, how: str) -> None:
    k = jlkern.from_source(TUNED, tune={"block": [32, 64]}, engine="julia", device="jl", time_limit=5)
    y, x = np.zeros(999), np.arange(999.0)
    args: tuple[Any, ...] = (y, 2.0, x) if how == "copied" else (Capsule(y), 2.0, Capsule(x))
    result = k.tune(*args)
    assert {t.status for t in result.trials} == {"ok"}
    assert len(result.trials) == 2
    assert (y == 0).all()
    told = str(k.explain(*args))
    assert "julia on JLArrays" in told
    k(*args)
    k(*args)
    jlkern.synchronize()
    np.testing.assert_array_equal(y, 4 * x)
    assert k.config_for(*args) == result.best
    elsewhere = jlkern.from_source(TUNED, tune={"block": [32, 64]}, engine="julia")
    assert elsewhere.config_for(y, 2.0, x) is None  # what holds on a device holds there alone


@marked
def test_plans_go_by_place_and_layout(jl: Engine, shared: None) -> None:
    k = jlkern.from_source(SHIFT, engine="julia")
    x = np.arange(12.0).reshape(3, 4)
    for given in (x, np.asfortranarray(x), x[:, ::2], np.zeros((2, 2))):
        out = np.zeros_like(given)
        for _ in range(2):
            k(Capsule(out), Capsule(given))
        np.testing.assert_array_equal(out, given + 10)
    frozen = np.zeros((3, 4))
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        k(Capsule(frozen), Capsule(x))


@marked
def test_arrays_with_numpys_attributes_are_dispatched_by_the_table(jl: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    class Native(WithAttributes):
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise AttributeError

        __dlpack__ = Capsule.__dlpack__

        def __dlpack_device__(self) -> tuple[int, int]:
            return (EXTENSION, number)

    monkeypatch.setitem(devices.DLPACK, EXTENSION, "jl")
    number = 0
    k = jlkern.from_source(SHIFT, engine="julia")
    x, y = np.arange(12.0).reshape(3, 4), np.zeros((3, 4))
    for times in range(1, 4):
        k(Native(y), Native(x))
        np.testing.assert_array_equal(y, x + 10)
        assert len(k._dispatcher.table) == min(times, 2)  # the first call, by names, is entered as described
        x += 1
    number = 1  # the table says nothing of the device, so the launch refuses, and finds no such device
    with pytest.raises(EngineError, match="finds devices 0 to 0 only"):
        k(Native(y), Native(x))


@marked
def test_errors_of_kernels(jl: Engine, shared: None) -> None:
    k = jlkern.from_source(
        "@kernel function f!(y)\n    i = @index(Global)\n    y[i + 1] = 1\nend",
        device="jl",
        engine="julia",
        ndrange="y",
    )
    with pytest.raises(jlkern.BoundsError, match="`f!`: BoundsError"):
        k(np.zeros(3))
    with pytest.raises(jlkern.BoundsError, match="`f!`: BoundsError"):
        k(Capsule(np.zeros((3,))[::-1]))
    broken = jlkern.from_source("@kernel function g!(y) i = @index(Global); y[i] = nothing_such end", engine="julia")
    with pytest.raises(jlkern.KernelError, match="nothing_such"):
        broken(Capsule(np.zeros(3)))


@marked
def test_devices_that_are_not_there(jl: Engine) -> None:
    with pytest.raises(EngineError, match=r"device='jl:1': JLArrays.jl finds devices 0 to 0 only"):
        jlkern.from_source(SAXPY, engine="julia", device="jl:1")(np.zeros(3), 1.0, np.zeros(3))
    found, problems = detected()
    assert "JLArrays" in [p.device.name for p in found]
    for kind in {"oneapi", "metal"} - {p.device.kind for p in found} - set(problems):
        package = BACKENDS[kind].package
        with pytest.raises(EngineError, match=f"device='{kind}:0': {package}.jl is not among the packages"):
            select.engine_named("julia", kind)


@marked
def test_what_a_device_cannot_take_is_refused(jl: Engine) -> None:
    archetype = BY_NAME["axpy"]
    args = arguments(archetype, "F")
    poor = JuliaEngine(replace(jl.place, float64=False))  # type: ignore[attr-defined]
    launcher, ndrange = compiled(poor, archetype, defaults(archetype), args)
    with pytest.raises(CompileError, match=r"jl \(JLArrays\) has no float64; pass arrays of a smaller type"):
        compiled(poor, {**archetype, "ndrange": lambda *_: (3,)}, defaults(archetype), [np.zeros(3), 1.0, np.zeros(3)])
    elsewhere = [describe(Capsule(a, (2, 0))) if isinstance(a, np.ndarray) else a for a in args]
    with pytest.raises(TypeError, match="another device"):
        launcher.fire(ndrange)(*elsewhere)
    with pytest.raises(TypeError, match="not those"):
        launcher.fire(ndrange)(*[a.astype(np.int16) if isinstance(a, np.ndarray) else a for a in args])


@marked
def test_what_a_measurement_depends_on(jl: Engine) -> None:
    found = jl.environment()
    exact = dict(found.exact)
    assert {"device", "capability", "julia", "KernelAbstractions", "jlkern", "package"} == set(exact)
    assert exact["device"] == "JLArrays"
    assert dict(found.same_class) == {"capability": "reference", "kind": "jl"}
    assert jl.devices()[0].kind == "jl"
    assert select.engine_named("julia", "jl:0") is jl


# --- the table --------------------------------------------------------------------------------------------------------

HOOKS = {"backend", "name", "capability", "drivers", "wait", "timed", "wrap", "ordered"}


def asked(code: str) -> str:
    """Evaluate Julia in the runtime's module and return the text that it gives to `error`."""
    from jlkern.engines.julia import bridge
    from jlkern.engines.julia.owner import run

    def ask() -> str:
        runtime = bridge.runtime()
        assert runtime.make(f"(() -> error({code}))()".encode(), 0, b"") == 0
        return runtime.last_problem().message

    select.engine_named("julia")
    return run(ask)


@marked
@pytest.mark.parametrize("kind", BACKENDS)
def test_entries_are_named_tuples_of_known_names(kind: str) -> None:
    from jlkern.engines.julia.text import quoted

    told = asked(f'join(map(pair -> pair.args[1], Meta.parse({quoted(BACKENDS[kind].entry)}).args), " ")')
    assert {"backend", "name", "capability"} <= set(told.split()) <= HOOKS


CUDA = """
module CUDA
    const LOG = Any[]
    struct CuArray end
    const CUstream = Ptr{Cvoid}
    const EVENT_DISABLE_TIMING = 2
    CUDABackend() = nothing
    CuEvent(flags) = length(LOG)
    cuEventRecord(event, stream) = push!(LOG, "record on $(UInt(stream))")
    wait(event) = push!(LOG, "own stream waits")
    record(event) = push!(LOG, "record on own")
    cuStreamWaitEvent(stream, event, flags) = push!(LOG, "$(UInt(stream)) waits")
end
"""

AMDGPU = """
module AMDGPU
    const LOG = Any[]
    ROCBackend() = nothing
    module HIP
        const hipStream_t = Ptr{Cvoid}
        default_stream() = "default"
    end
    HIPStream(handle) = "stream $(UInt(handle))"
    stream() = "own"
    stream!(s) = push!(LOG, "on $s")
end
"""


@marked
@pytest.mark.parametrize(
    ("kind", "package", "stream", "order"),
    [
        ("cuda", CUDA, 77, "record on 77, own stream waits, launch, record on own, 77 waits"),
        ("amdgpu", AMDGPU, 77, "on stream 77, launch, on own"),
        ("amdgpu", AMDGPU, 0, "on default, launch, on own"),
    ],
)
def test_launches_have_their_place_in_another_librarys_stream(kind: str, package: str, stream: int, order: str) -> None:
    from jlkern.engines.julia.text import quoted

    code = f"""
    let home = Module()
        package = Core.eval(home, Meta.parse({quoted(package.strip())}))
        Core.eval(package, :(macro elapsed(code) esc(code) end))
        entry = Core.eval(home, Meta.parse({quoted(BACKENDS[kind].entry)}))
        Base.invokelatest(entry.ordered, () -> push!(package.LOG, "launch"), {stream})
        join(package.LOG, ", ")
    end
    """
    assert asked(code) == order
