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
from jlkern.engines.julia.copies import ALIGNMENT, Copies
from jlkern.engines.julia.launcher import JuliaLauncher, check, free_with, not_compiled, write
from jlkern.engines.julia.owner import run
from jlkern.errors import CompileError
from jlkern.signature import ArgType, ArrayArg

_NOT_COMPILED = frozenset({"InvalidIRError", "KernelError"})
"""What GPUCompiler throws at the first launch for code that it cannot compile."""

_LAYOUTS = 256
"""Layouts of arrays that a launcher remembers, so that a call need not look at them anew."""


class DeviceLauncher(JuliaLauncher):
    """A kernel for one configuration, signature and device.

    A launch on arrays of the device returns when it is in their stream. NumPy arrays are copied there, and what the
    kernel may write is copied back before the call returns.
    """

    def __init__(self, request: CompileRequest, runtime: Runtime, workgroup: tuple[int, ...], place: Place) -> None:
        self._place = place
        self._layouts: dict[Any, tuple[int, tuple[int, ...]]] = {}
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
        for arg, writes, value in zip(self.request.signature, self._written, args, strict=True):
            check(arg, value)
            if writes and isinstance(value, np.ndarray) and not value.flags.writeable:
                raise TypeError("a written array is read-only")
        return Copies(self._place, args, self._written)

    def _row(self, args: tuple[Any, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
        words = [OWN_STREAM]
        streams: dict[int, bool] = {}
        for arg, writes, value in zip(self.request.signature, self._written, args, strict=True):
            if isinstance(value, DeviceArray):
                below, layout = self._layout(arg, writes, value)
                words += (value.block, value.pointer - below, *layout)
                streams[value.stream] = streams.get(value.stream, False) or writes
            else:
                check(arg, value)
                write(words, arg, value)
        if streams:
            # the launch has its place in the stream of what it writes; work in others has to be done before
            words[0] = max(streams, key=streams.__getitem__)
            if len(streams) > 1:
                wait(self._place)
        return np.array(words, np.int64)

    def _layout(self, arg: ArgType, writes: bool, value: DeviceArray) -> tuple[int, tuple[int, ...]]:
        """Return how far below its first element an array begins, and its elements, first one, sizes and strides.

        Raises `TypeError` for an array that this was not compiled for.
        """
        key = (arg, value.kind, value.index, value.dtype, value.shape, value.strides, value.pointer % ALIGNMENT)
        known = self._layouts.get(key)
        if known is None:
            check(arg, value)
            device = self._place.device
            if (value.kind, value.index) != (device.kind, device.index):
                raise TypeError("an array lives on another device")
            span, size = value.span, value.itemsize
            below = 0 if arg.layout == "F" else value.pointer - span.low  # type: ignore[union-attr]
            known = below, ((span.high - span.low) // size, below // size, *value.shape, *value.strides)
            if len(self._layouts) >= _LAYOUTS:
                self._layouts.clear()
            self._layouts[key] = known
        if writes and not value.writeable:
            raise TypeError("a written array is read-only")
        return known

    def _error(self, problem: Problem) -> Any:
        if problem.kind in _NOT_COMPILED:
            return not_compiled(self.request, problem)
        return super()._error(problem)
