"""An engine in Python for tests of what stands before the engine: it counts, and launches NumPy functions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jlkern import compiled
from jlkern.engines import select
from jlkern.engines.base import CompileRequest, Device, Engine, Environment, Launcher
from jlkern.engines.julia import installation
from jlkern.errors import BoundsError
from jlkern.signature import ArrayArg

SAXPY = """
@kernel function saxpy!(y, a, @Const(x))
    i = @index(Global)
    @inbounds y[i] += a * x[i]
end
"""

Body = Callable[..., Any]

needs_julia = pytest.mark.skipif(
    not installation.available(),
    reason="no Julia is set up: `jlkern setup`, or PYTHON_JULIACALL_EXE and PYTHON_JULIACALL_PROJECT",
)
"""For tests that start Julia; mark them `julia` too, so that `-m julia` picks them."""


class PyLauncher(Launcher):
    def __init__(self, engine: PyEngine, request: CompileRequest) -> None:
        self.engine, self.request = engine, request
        self.text = f"# {request.source.name} with {dict(request.params)}"

    def fire(self, ndrange: tuple[int, ...]) -> Callable[..., int]:
        body, request = self.engine.body, self.request

        def fire(*args: Any) -> int:
            self._check(args)
            self.engine.launches.append((dict(request.params), ndrange))
            return int(body(ndrange, dict(request.params), *args) or 0)

        return fire

    def _check(self, args: tuple[Any, ...]) -> None:
        """Refuse, as a compiled launch does, arguments of other types, before anything runs."""
        for name, kind, value in zip(self.request.source.names, self.request.signature, args, strict=True):
            if isinstance(kind, ArrayArg):
                if type(value) is not np.ndarray or value.dtype.name != kind.dtype:
                    raise TypeError(name)
                if not value.flags.aligned or (name in self.request.written and not value.flags.writeable):
                    raise TypeError(name)

    def fail(self, fire: Callable[..., int], status: int) -> None:
        raise BoundsError(f"{self.request.source.origin.where(1)}: status {status}")

    def bind(self, ndrange: tuple[int, ...], args: tuple[Any, ...]) -> Callable[[], int]:
        fire = self.fire(ndrange)
        return lambda: fire(*args)

    def sampler(self, ndrange: tuple[int, ...], args: tuple[Any, ...]) -> Callable[[int], float]:
        fire = self.fire(ndrange)

        def sample(n: int) -> float:
            start = time.perf_counter()
            for _ in range(n):
                status = fire(*args)
                if status:
                    self.fail(fire, status)
            return time.perf_counter() - start

        return sample


class PyEngine(Engine):
    """`body(ndrange, params, *args)` is what every launch runs; a nonzero result is its status."""

    name = "numba"

    def __init__(self, body: Body) -> None:
        self.body = body
        self.compiled: list[CompileRequest] = []
        self.launches: list[tuple[dict[str, Any], tuple[int, ...]]] = []

    def devices(self) -> tuple[Device, ...]:
        return (Device("cpu", 0, "python"),)

    def environment(self) -> Environment:
        return Environment((("engine", "python"),), (("kind", "python"),))

    def check(self, source: Any) -> None: ...

    def default_workgroup(self, ndrange: tuple[int, ...]) -> tuple[int, ...]:
        return (64,)

    def compile(self, request: CompileRequest) -> Launcher:
        self.compiled.append(request)
        return PyLauncher(self, request)


def saxpy_body(ndrange: Any, params: Any, y: Any, a: Any, x: Any) -> int:
    """What `SAXPY` does."""
    y += a * x
    return 0


def install(monkeypatch: pytest.MonkeyPatch, body: Body = saxpy_body) -> PyEngine:
    """Make every kernel of a test run on a `PyEngine`."""
    engine = PyEngine(body)
    monkeypatch.setattr(select, "engine_named", lambda name: engine)
    compiled.forget_launchers()
    return engine
