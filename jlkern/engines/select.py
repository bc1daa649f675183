"""Which engine runs a call: by name, or by the arrays' home and what the source needs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from jlkern.devices import KINDS, home_of
from jlkern.errors import EngineError, HomeError, OptionError, UnsupportedError

if TYPE_CHECKING:
    from jlkern.engines.base import Device, Engine
    from jlkern.source import KernelSource

ENGINES = ("auto", "numba", "julia")
_DEVICE = re.compile(f"cpu|({'|'.join(KINDS[1:])})(:[0-9]{{1,3}})?")


def check_engine(name: object) -> None:
    """Check an engine's name. Raises `OptionError` for one that is none."""
    if name not in ENGINES:
        raise OptionError(f"engine= must be one of {', '.join(ENGINES)}, got {name!r}")


def check_device(device: object, engine: str = "auto") -> None:
    """Check a device's name. Raises `OptionError` for one that is none, `EngineError` for one the engine never has."""
    if device is None:
        return
    if not isinstance(device, str) or not _DEVICE.fullmatch(device):
        raise OptionError(
            f"device= must be one of {', '.join(KINDS)}, or one with a number as 'cuda:1', got {device!r}"
        )
    if engine == "numba" and device != "cpu":
        raise EngineError(f"device={device!r}: the numba engine runs on the cpu only; GPUs need engine='julia'")


def engine_named(name: str, device: str | None = None) -> Engine:
    """Return the engine of a name that `check_engine` has passed, on a device; "auto" is the embedded one.

    Raises
    ------
    EngineError
        It is not set up, does not start, or has no such device.
    """
    check_engine(name)
    if name == "julia":
        from jlkern.engines.julia.engine import engine as julia

        return julia(device or "cpu")
    from jlkern.engines.numba import engine

    return engine()


def select(option: str, source: KernelSource, home: str, checked: set[str], device: str | None = None) -> Engine:
    """Return the engine for a source and the home of a call's arrays.

    Device arrays go to julia. Arrays of the host go to numba where it supports the source, else to julia where that is
    set up; and to julia where `device` names a GPU, which they are copied to.

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
    device
        The device that the kernel's options name, or None.

    Raises
    ------
    EngineError
        No engine can run on that home.
    HomeError
        The arrays are on another device than the one named.
    UnsupportedError
        The source needs a construct that no engine here supports.
    """
    target = _target(home, device)
    if option == "numba" and target != "cpu":
        raise EngineError(f"the arrays live on {home}: the numba engine runs on the cpu only; GPUs need engine='julia'")
    if option == "julia" or target != "cpu":
        engine = engine_named("julia") if target == "cpu" else engine_named("julia", target)
        if (mark := f"julia on {target}") not in checked:
            engine.check(source)
            checked.add(mark)
        return engine
    engine = engine_named("numba")
    if engine.name in checked:
        return engine
    if "julia" in checked:
        return engine_named("julia")
    try:
        engine.check(source)
    except UnsupportedError as error:
        if option == "numba":
            raise
        return _instead(error, source, checked)
    checked.add(engine.name)
    return engine


def _target(home: str, device: str | None) -> str:
    """Return the device to run on."""
    if device is None or home == "cpu":
        return device or home
    if device.partition(":")[0] != home.partition(":")[0] or (":" in home and ":" in device and home != device):
        raise HomeError(f"the arrays live on {home}, and device={device!r}; move them there, or leave device= out")
    return home if ":" in home else device


def _instead(problem: UnsupportedError, source: KernelSource, checked: set[str]) -> Engine:
    """Return the julia engine in the place of numba, which does not support a source."""
    from jlkern.engines.julia.installation import find

    try:
        find()
    except EngineError as reason:
        raise UnsupportedError(
            f"{problem}\nengine='auto' found no other engine for it; Julia could run it: {reason}"
        ) from problem
    engine = engine_named("julia")
    engine.check(source)
    checked.add("julia")
    return engine


def common_home(names: Iterable[str], args: Iterable[Any]) -> str:
    """Return the home that all arrays of a call share, "cpu" when there is none.

    Raises
    ------
    HomeError
        The arrays live on different devices, or where no engine runs.
    """
    homes: dict[str, str] = {}
    for name, value in zip(names, args, strict=True):
        home = home_of(value)
        if home is not None:
            homes.setdefault(home, name)
    if len(homes) > 1:
        where = ", ".join(f"{name!r} on {home}" for home, name in homes.items())
        raise HomeError(f"the arrays of one call live on different devices: {where}; move them to one device first")
    for home, name in homes.items():
        if home.partition(":")[0] not in KINDS:
            raise HomeError(f"{name!r} lives on {home}, where no engine runs; pass a copy of it on the host or a GPU")
    return next(iter(homes), "cpu")


def engine_of(device: Device, name: str) -> Engine:
    """Return the engine of a name on a device."""
    return engine_named(name) if device.kind == "cpu" else engine_named(name, f"{device.kind}:{device.index}")


def synchronize(device: str | None = None) -> None:
    """Wait until everything that was launched on a device is done; on the CPU every call has waited already.

    Parameters
    ----------
    device
        A device's name, as "cuda" or "cuda:1"; None is every device.

    Raises
    ------
    KernelError
        A kernel failed there after its call had returned.

    >>> synchronize()
    """
    check_device(device)
    bridge = sys.modules.get("jlkern.engines.julia.bridge")
    if device != "cpu" and bridge is not None and bridge.started():
        from jlkern.engines.julia.engine import wait_for

        wait_for(device)
