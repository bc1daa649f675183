"""Arrays of other libraries that live on a device: where they are, and what their interfaces say of them.

CuPy, PyTorch, Numba and others describe their arrays by `__cuda_array_interface__` or DLPack. `described` reads either
into a `DeviceArray`, which has NumPy's attributes and stands for the array from there on. No memory is touched here.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from jlkern.errors import ArgumentError
from jlkern.spans import Span, span_at

KINDS: Final = ("cpu", "cuda", "amdgpu", "oneapi", "metal", "jl")
"""Kinds of devices; "jl" is JLArrays.jl's reference backend, a GPU in name only."""

DLPACK: Final = {
    1: "cpu",
    2: "cuda",
    3: "cuda-host",
    4: "opencl",
    7: "vulkan",
    8: "metal",
    10: "amdgpu",
    13: "cuda",
    14: "oneapi",
}
"""DLPack's numbers of device types. 13 is CUDA's managed memory."""

SHARED: Final = ("cuda", "amdgpu", "jl")
"""Kinds where Julia can use memory that another library has allocated."""

OWN_STREAM: Final = -1
"""The stream of an array that no other library works on."""

LEGACY: Final = {"cuda": 1, "amdgpu": 0}
"""The default stream, for arrays that name none: CUDA's number for it, and HIP's."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceArray:
    """An array on a device; `strides` are in bytes, as NumPy's.

    `pointer` is an address on the device, or, where `block` is not 0, the place in that block of Julia's memory.
    `stream` is the handle of the stream that the array is used on. `owner` keeps the memory.
    """

    kind: str
    index: int
    pointer: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writeable: bool
    stream: int
    owner: Any
    block: int = 0

    @property
    def home(self) -> str:
        """The device, as `device=` names it."""
        return f"{self.kind}:{self.index}"

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    @property
    def span(self) -> Span:
        """The bytes that the elements lie in."""
        return span_at(self.pointer, self.shape, self.strides, self.itemsize)

    def contiguous(self, order: str) -> bool:
        """Tell whether the elements lie one after the other, column-major ("F") or row-major ("C")."""
        if 0 in self.shape:
            return True
        step = self.itemsize
        for size, stride in list(zip(self.shape, self.strides, strict=True))[:: 1 if order == "F" else -1]:
            if size != 1 and stride != step:
                return False
            step *= size
        return True


def is_array(value: object) -> bool:
    """Tell whether an argument is an array as kernels take it."""
    return isinstance(value, (np.ndarray, DeviceArray))


def home_of(value: object) -> str | None:
    """Return where an argument's memory is ("cpu", "cuda:0", ...), or None for an argument without one."""
    if isinstance(value, np.ndarray):
        return "cpu"
    if isinstance(value, DeviceArray):
        return value.home
    if isinstance(value, (np.generic, np.dtype, type, int, float, complex, tuple, str)):
        return None
    ask = getattr(value, "__dlpack_device__", None)
    if ask is not None:
        try:
            kind, index = map(int, ask())
        except Exception:  # a foreign object may answer with anything; then it has no home that we know
            return None
        found = DLPACK.get(kind, f"DLPack device type {kind}")
        return f"{found}:{index}" if found in KINDS[1:] else found
    # a class has it, or an instance; what reading it raises is said when it is described
    if any("__cuda_array_interface__" in vars(c) for c in type(value).__mro__) or hasattr(
        value, "__cuda_array_interface__"
    ):
        return "cuda:0"
    return None


def described(names: Iterable[str], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a call with a `DeviceArray` in the place of every array on a device.

    Raises
    ------
    ArgumentError
        An array's interface says what no kernel can take, or Julia cannot use its memory.
    """
    if all(isinstance(value, (np.ndarray, np.generic, int, float, complex, DeviceArray)) for value in args):
        return args
    return tuple(_described(name, value) for name, value in zip(names, args, strict=True))


def _described(name: str, value: Any) -> Any:
    if is_array(value):
        return value
    home = home_of(value)
    kind, _, index = (home or "cpu").partition(":")
    if kind == "cpu" or kind not in KINDS:
        return value
    if kind not in SHARED:
        raise ArgumentError(
            f"argument {name!r}: a {type(value).__name__} on {home}, whose memory Julia cannot use; pass a NumPy "
            f"array, which is copied to the device with device={kind!r}"
        )
    try:
        if kind == "cuda":
            interface = getattr(value, "__cuda_array_interface__", None)
            if interface is not None:
                return _from_interface(name, value, interface, int(index))
        return _from_dlpack(value, kind, int(index))
    except ArgumentError:
        raise
    except Exception as problem:
        raise ArgumentError(
            f"argument {name!r}: a {type(value).__name__} on {home} that cannot be shared: {problem}"
        ) from problem


def _from_interface(name: str, value: Any, interface: dict[str, Any], index: int) -> DeviceArray:
    """Read `__cuda_array_interface__`."""
    if interface.get("mask") is not None:
        raise ArgumentError(f"argument {name!r}: a masked array; pass its data, and the mask as an array of its own")
    dtype = np.dtype(interface["typestr"])
    shape = tuple(int(n) for n in interface["shape"])
    strides = interface.get("strides")
    pointer, read_only = interface["data"]
    stream = _stream(value, "cuda", index) if interface.get("stream") is None else int(interface["stream"])
    steps = _row_major(shape, dtype.itemsize) if strides is None else tuple(int(n) for n in strides)
    return DeviceArray("cuda", index, int(pointer or 0), dtype, shape, steps, not read_only, stream, value)


def _stream(value: Any, kind: str, index: int) -> int:
    """Return the stream that an array's library uses now: PyTorch says it only when asked."""
    torch = sys.modules.get("torch") if type(value).__module__.partition(".")[0] == "torch" else None
    if torch is not None:
        return int(torch.cuda.current_stream(index).cuda_stream)  # HIP's are called so too
    return LEGACY.get(kind, OWN_STREAM)


def _row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    steps = []
    for size in reversed(shape):
        steps.append(itemsize)
        itemsize *= max(size, 1)
    return tuple(reversed(steps))


# --- DLPack -----------------------------------------------------------------------------------------------------------


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_CODES: Final = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_READ_ONLY: Final = 1


def _from_dlpack(value: Any, kind: str, index: int) -> DeviceArray:
    """Read a DLPack capsule. It is kept, not taken over: the memory is its producer's until it is gone."""
    stream = _stream(value, kind, index)
    wanted = {"stream": stream or None} if kind in LEGACY else {}  # HIP's default stream is None there
    try:
        capsule = value.__dlpack__(**wanted, max_version=(1, 0))
    except TypeError:
        capsule = value.__dlpack__(**wanted)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.restype, valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    flags = 0
    if valid(capsule, b"dltensor_versioned"):
        whole = _Versioned.from_address(pointer(capsule, b"dltensor_versioned"))
        flags, tensor = whole.flags, whole.tensor
    else:
        tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
    if tensor.lanes != 1 or tensor.code not in _CODES:
        raise TypeError(f"its element type is DLPack's ({tensor.code}, {tensor.bits}, {tensor.lanes})")
    dtype = np.dtype("?" if _CODES[tensor.code] == "b" else f"{_CODES[tensor.code]}{tensor.bits // 8}")
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    steps = _row_major(shape, dtype.itemsize)
    if tensor.strides:
        steps = tuple(n * dtype.itemsize for n in tensor.strides[: tensor.ndim])
    address = (tensor.data or 0) + tensor.byte_offset
    writeable = not flags & _READ_ONLY
    return DeviceArray(kind, index, address, dtype, shape, steps, writeable, stream, (value, capsule))
