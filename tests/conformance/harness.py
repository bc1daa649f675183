"""Running a kernel on an engine and comparing with its NumPy reference; a third-party engine can use this."""

from __future__ import annotations

from typing import Any

import numpy as np

from jlkern.engines.base import CompileRequest, Engine, Launcher
from jlkern.signature import classify
from jlkern.source import KernelSource, Origin, load_source

LAYOUTS = ("F", "C", "strided")


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """Return a copy in column-major order, in row-major order, or as a strided view with an offset."""
    if layout in "FC":
        return array.copy(order=layout)
    base = np.zeros(tuple(2 * size + 3 for size in array.shape), array.dtype)
    view = base[tuple(slice(2, 2 + 2 * size, 2) for size in array.shape)]
    view[...] = array
    return view


def arguments(archetype: dict[str, Any], layout: str, seed: int = 1) -> list[Any]:
    """Return fresh arguments of an archetype in a layout."""
    args = archetype["make_args"](np.random.default_rng(seed))
    return [laid_out(a, layout) if isinstance(a, np.ndarray) else a for a in args]


def source_of(archetype: dict[str, Any]) -> KernelSource:
    """Return the analysed source of an archetype."""
    return load_source(archetype["source"], Origin(None, 1, False), tuple(archetype["tune"]), archetype["kernel"])


def compiled(
    engine: Engine, archetype: dict[str, Any], params: dict[str, Any], args: list[Any], **options: Any
) -> tuple[Launcher, tuple[int, ...]]:
    """Compile an archetype for a configuration; return the launcher and the ndrange."""
    source = source_of(archetype)
    ndrange = archetype["ndrange"](args, params)
    signature = tuple(classify(name, arg) for name, arg in zip(source.names, args, strict=True))
    workgroup = archetype["workgroup"](params)
    request = CompileRequest(source, signature, params, workgroup, len(ndrange), source.effects.written, **options)
    return engine.compile(request), ndrange


def launch(launcher: Launcher, ndrange: tuple[int, ...], args: list[Any]) -> None:
    """Launch and raise what the kernel throws."""
    fire = launcher.fire(ndrange)
    status = fire(*args)
    if status:
        launcher.fail(fire, status)


def check(engine: Engine, archetype: dict[str, Any], params: dict[str, Any], layout: str, **options: Any) -> list[Any]:
    """Run one configuration in one layout and compare with the reference; return the arguments afterwards."""
    args = arguments(archetype, layout)
    before = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    launcher, ndrange = compiled(engine, archetype, params, args, **options)
    launch(launcher, ndrange, args)
    for place, (after, expected) in enumerate(zip(args, archetype["reference"](before, params), strict=True)):
        where = f"{archetype['name']} {params} {layout}: argument {place}"
        if expected is None:
            if isinstance(after, np.ndarray):
                np.testing.assert_array_equal(after, before[place], err_msg=f"{where} was changed")
            continue
        close = np.isclose(after, expected, rtol=archetype["rtol"], atol=archetype["atol"])
        assert (~close).mean() <= archetype["mismatch"], f"{where}: {(~close).sum()} of {close.size} are wrong"
    return args
