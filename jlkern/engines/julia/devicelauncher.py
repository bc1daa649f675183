"""Launches on a device other than the CPU: on arrays that live there, or on copies of NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jlkern.devices import OWN_STREAM, DeviceArray, described
from jlkern.engines.base import CompileRequest
from jlkern.engines.julia import text
from jlkern.engines.julia.backends import Place, wait
from jlkern.engines.julia.bridge import Problem, Runtime
from jlkern.engines.julia.copies import Copies
from jlkern.engines.julia.launcher import JuliaLauncher, free_with, not_compiled, write
from jlkern.engines.julia.owner import run
from jlkern.errors import CompileError
from jlkern.signature import ArrayArg, classify

_NOT_COMPILED = frozenset({"InvalidIRError", "KernelError"})
"""What GPUCompiler throws at the first launch for code that it cannot compile."""


class DeviceLauncher(JuliaLauncher):
    """A kernel for one configuration, signature and device.

    A launch on arrays of the device returns when it is in their stream. NumPy arrays are copied there, and what the
    kernel may write is copied back before the call returns.
    """

    def __init__(self, request: CompileRequest, runtime: Runtime, workgroup: tuple[int, ...], place: Place) -> None:
        self._place = place
        super().__init__(request, runtime, workgroup)

    def _target(self) -> tuple[str, str]:
        here = f"SLOTS[{self._place.slot}]"
        specs = []
        for arg in self.request.signature:
            if isinstance(arg, ArrayArg):
                if not self._place.float64 and arg.dtype in ("float64", "complex128"):
                    device = self._place.device
                    raise CompileError(
                        f"{self.request.source.place}: `{self.request.source.name}`: {device.kind} "
                        f"({device.name}) has no {arg.dtype}; pass arrays of a smaller type, as np.float32"
                    )
                specs.append(f"DeviceSpec{{{text.TYPES[arg.dtype]}, {arg.ndim}, :{arg.layout}}}({here})")
            else:
                specs.append(text.spec(arg, False))
        return here, f"({''.join(f'{spec}, ' for spec in specs)})"

    def fire(self, ndrange: tuple[int, ...]) -> Callable[..., int]:
        runtime = self._runtime
        slot = run(self._call, ndrange)

        def on_owner(args: tuple[Any, ...]) -> int:
            copies = self._copies(args)
            row = self._row(args if copies is None else copies.args)
            if copies is not None:
                copies.upload()
            status = self._status(runtime.packed(slot, row.ctypes.data))
            if copies is not None and not status:
                copies.download()
            return status

        def fire(*args: Any) -> int:
            return run(on_owner, described(self.request.source.names, args))

        fire.launcher = self  # type: ignore[attr-defined]  # keeps the kernel alive
        free_with(fire, runtime, slot)
        return fire

    def bind(self, ndrange: tuple[int, ...], args: tuple[Any, ...]) -> Callable[[], int]:
        args = described(self.request.source.names, args)
        copies = run(self._copies, args)
        if copies is None:
            return super().bind(ndrange, args)
        launch = super().bind(ndrange, copies.args)

        def on_owner() -> int:
            copies.upload()
            status = launch()
            if not status:
                copies.download()
            return status

        def fire() -> int:
            return run(on_owner)

        fire.kept = args  # type: ignore[attr-defined]
        return fire

    def sampler(self, ndrange: tuple[int, ...], args: tuple[Any, ...]) -> Callable[[int], float]:
        """Return what times launches on the device; on NumPy arrays each sample starts from their content of now.

        Copying to and from the host is not timed.
        """
        args = described(self.request.source.names, args)
        copies = run(self._copies, args)
        if copies is None:
            return super().sampler(ndrange, args)
        run(copies.upload)
        run(copies.keep)
        timed = super().sampler(ndrange, copies.args)

        def sample(times: int) -> float:
            run(copies.reset)
            return timed(times)

        return sample

    def _copies(self, args: tuple[Any, ...]) -> Copies | None:
        """Return the device's copies of NumPy arguments, without their content, or None where there are none."""
        if not any(isinstance(value, np.ndarray) for value in args):
            return None
        self._check(args)
        return Copies(self._place, args, self._written)

    def _check(self, args: tuple[Any, ...]) -> None:
        """Raise `TypeError` when the arguments are not those that this was compiled for."""
        if tuple(classify("", value) for value in args) != self.request.signature:
            raise TypeError("the arguments are not those that this was compiled for")
        device = self._place.device
        for writes, value in zip(self._written, args, strict=True):
            if isinstance(value, DeviceArray):
                if (value.kind, value.index) != (device.kind, device.index):
                    raise TypeError("an array lives on another device")
                if writes and not value.writeable:
                    raise TypeError("a written array is read-only")
            elif writes and isinstance(value, np.ndarray) and not value.flags.writeable:
                raise TypeError("a written array is read-only")

    def _row(self, args: tuple[Any, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
        self._check(args)
        arrays = [(value, writes) for value, writes in zip(args, self._written, strict=True) if _is_there(value)]
        # the stream of what is written; work on others has to be done before
        streams = dict.fromkeys(a.stream for a, _ in sorted(arrays, key=lambda pair: not pair[1]))
        if len(streams) > 1:
            wait(self._place)
        words = [next(iter(streams), OWN_STREAM)]
        for arg, value in zip(self.request.signature, args, strict=True):
            if isinstance(value, DeviceArray):
                span, size = value.span, value.itemsize
                low = value.pointer if arg.layout == "F" else span.low  # type: ignore[union-attr]
                count = (span.high - span.low) // size
                words += [value.block, low, count, (value.pointer - low) // size, *value.shape, *value.strides]
            else:
                write(words, arg, value)
        return np.array(words, np.int64)

    def _error(self, problem: Problem) -> Any:
        if problem.kind in _NOT_COMPILED:
            return not_compiled(self.request, problem)
        return super()._error(problem)


def _is_there(value: object) -> bool:
    return isinstance(value, DeviceArray)
