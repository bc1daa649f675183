"""A second opinion: the same kernel on the other engine, to check results against.

The engines share the source and nothing else that computes, so what both say is hardly wrong by a fault of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jlkern import compiled
from jlkern.engines.select import engine_named
from jlkern.errors import EngineError

if TYPE_CHECKING:
    from jlkern.engines.base import Engine
    from jlkern.ndrange import Sizes
    from jlkern.options import Declaration
    from jlkern.signature import Signature
    from jlkern.space import Config


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest difference of two engines in an output: absolute, and relative to the output's largest value."""

    name: str
    absolute: float
    relative: float

    def __str__(self) -> str:
        if self.absolute == 0:
            return f"{self.name}: none"
        return f"{self.name}: {self.absolute:.3g} (relative to its largest value {self.relative:.2g})"


def other_engine(engine: Engine, declaration: Declaration, args: tuple[Any, ...]) -> Engine:
    """Return the engine that an engine's results can be checked with.

    Raises
    ------
    EngineError
        There is none for these arguments: it is not set up, or they are on a device that it does not have.
    UnsupportedError
        The source holds a construct that it does not support.
    """
    if any(hasattr(value, "dtype") and not isinstance(value, (np.ndarray, np.generic, np.dtype)) for value in args):
        raise EngineError("reference='engine': only arrays of the host can be checked by another engine")
    other = engine_named("numba" if engine.name == "julia" else "julia")
    other.check(declaration.source)
    return other


def run_on(
    engine: Engine, declaration: Declaration, signature: Signature, config: Config, sizes: Sizes, args: tuple[Any, ...]
) -> None:
    """Launch a configuration on an engine, on the arguments themselves."""
    launcher = compiled.launcher_for(engine, declaration.request(signature, config, len(sizes)))
    fire = launcher.fire(sizes)
    status = fire(*args)
    if status:
        launcher.fail(fire, status)


def reference(
    engine: Engine, declaration: Declaration, signature: Signature, sizes: Sizes, args: tuple[Any, ...]
) -> Callable[..., None]:
    """Return the function for `reference=` that runs the default configuration on the other engine.

    Raises
    ------
    EngineError, UnsupportedError
        As `other_engine`.
    """
    other = other_engine(engine, declaration, args)
    config = declaration.space.default()

    def second(*copies: Any) -> None:
        run_on(other, declaration, signature, config, sizes, copies)

    return second


def differences(
    engine: Engine, declaration: Declaration, signature: Signature, config: Config, sizes: Sizes, args: tuple[Any, ...]
) -> tuple[str, tuple[Difference, ...]]:
    """Run a configuration on copies of the arguments, on both engines.

    Returns the other engine's name, and the largest difference in each written array.

    Raises
    ------
    EngineError, UnsupportedError
        As `other_engine`.
    """
    other = other_engine(engine, declaration, args)
    results = []
    for one in (engine, other):
        copies = tuple(value.copy(order="K") if isinstance(value, np.ndarray) else value for value in args)
        again = tuple(map(_same_kind, copies, signature))
        run_on(one, declaration, again, config, sizes, copies)
        results.append(copies)
    found = []
    for name, here, there in zip(declaration.names, *results, strict=True):
        if name in declaration.written and isinstance(here, np.ndarray):
            found.append(_difference(name, here, there))
    return other.name, tuple(found)


def _same_kind(value: Any, arg: Any) -> Any:
    """Return what a copy is to the kernel: a copy of a strided view may be contiguous."""
    from jlkern.signature import classify

    return classify("", value) if isinstance(value, np.ndarray) else arg


def _difference(name: str, here: np.ndarray[Any, Any], there: np.ndarray[Any, Any]) -> Difference:
    if not here.size:
        return Difference(name, 0.0, 0.0)
    wide: Any = np.complex128 if here.dtype.kind == "c" else np.float64
    a, b = here.astype(wide), there.astype(wide)
    unequal = ~((here == there) | (np.isnan(a) & np.isnan(b)))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(a - b)[unequal]
    absolute = float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))
    size = np.abs(b[np.isfinite(b)])
    largest = float(size.max(initial=0.0))
    return Difference(name, absolute, absolute / largest if largest else (np.inf if absolute else 0.0))
