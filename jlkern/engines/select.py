"""Which engine runs a call: by name, or by the arrays' home and what the source needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from jlkern.errors import EngineError, HomeError, OptionError, UnsupportedError
from jlkern.signature import PYTHON_SCALARS, JuliaFunction, Val

if TYPE_CHECKING:
    from jlkern.engines.base import Engine
    from jlkern.source import KernelSource

ENGINES = ("auto", "numba", "julia")

_NO_JULIA = "the julia engine is not available in this version of jlkern"
_DLPACK = {
    1: "cpu",
    2: "cuda",
    3: "cuda-host",
    4: "opencl",
    7: "vulkan",
    8: "metal",
    10: "rocm",
    13: "cuda",
    14: "oneapi",
}


def check_engine(name: object) -> None:
    """Check an engine's name. Raises `OptionError` for one that is none, `EngineError` for one that is not there."""
    if name not in ENGINES:
        raise OptionError(f"engine= must be one of {', '.join(ENGINES)}, got {name!r}")
    if name == "julia":
        raise EngineError(f"engine='julia': {_NO_JULIA}; use engine='auto' or 'numba'")


def check_device(device: object) -> None:
    """Check a device's name. Raises `OptionError` for no text, `EngineError` for a device that no engine here has."""
    if device is not None and not isinstance(device, str):
        raise OptionError(f"device= must be text such as 'cpu', got {device!r}")
    if device not in (None, "cpu"):
        raise EngineError(f"device={device!r}: the numba engine runs on the cpu only, and {_NO_JULIA}")


def engine_named(name: str) -> Engine:
    """Return the engine of a name that `check_engine` has passed; "auto" is the embedded one."""
    check_engine(name)
    from jlkern.engines.numba import engine

    return engine()


def select(option: str, source: KernelSource, home: str, checked: set[str]) -> Engine:
    """Return the engine for a source and the home of a call's arrays.

    Parameters
    ----------
    option
        The engine's name, or "auto".
    source
        The kernel's source.
    home
        Where the arrays live, from `common_home`.
    checked
        The names of the engines that are known to support the source; this call may add one.

    Raises
    ------
    EngineError
        No engine can run on that home.
    UnsupportedError
        The source needs a construct that no engine here supports.
    """
    if home != "cpu":
        raise EngineError(f"the arrays live on {home}: the numba engine runs on the cpu only, and {_NO_JULIA}")
    engine = engine_named(option)
    if engine.name in checked:
        return engine
    try:
        engine.check(source)
    except UnsupportedError as error:
        if option != "auto":
            raise
        raise UnsupportedError(f"{error}\nengine='auto' found no other engine for it: {_NO_JULIA}") from error
    checked.add(engine.name)
    return engine


def home_of(value: object) -> str | None:
    """Return where an argument's memory is ("cpu", "cuda", ...), or None for an argument without one."""
    if isinstance(value, np.ndarray):
        return "cpu"
    if isinstance(value, (np.generic, np.dtype, type, *PYTHON_SCALARS, tuple, str, JuliaFunction, Val)):
        return None
    if hasattr(value, "__cuda_array_interface__"):
        return "cuda"
    ask = getattr(value, "__dlpack_device__", None)
    if ask is None:
        return None
    try:
        kind = int(ask()[0])
    except Exception:  # a foreign object may answer with anything; then it has no home that we know
        return None
    return _DLPACK.get(kind, f"DLPack device type {kind}")


def common_home(names: Iterable[str], args: Iterable[Any]) -> str:
    """Return the home that all arrays of a call share, "cpu" when there is none.

    Raises
    ------
    HomeError
        The arrays live on different devices.
    """
    homes: dict[str, str] = {}
    for name, value in zip(names, args, strict=True):
        home = home_of(value)
        if home is not None:
            homes.setdefault(home, name)
    if len(homes) > 1:
        where = ", ".join(f"{name!r} on {home}" for home, name in homes.items())
        raise HomeError(f"the arrays of one call live on different devices: {where}; move them to one device first")
    return next(iter(homes), "cpu")


def synchronize(device: str | None = None) -> None:
    """Wait until everything launched on a device is done; on the CPU every call has waited already.

    Parameters
    ----------
    device
        "cpu", or None for every device.

    Raises
    ------
    EngineError
        There is no such device.

    >>> synchronize()
    """
    check_device(device)
