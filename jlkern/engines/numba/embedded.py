"""The embedded engine: kernels compiled for this machine's CPU by Numba, with no Julia."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from jlkern.engines.base import CompileRequest, Device, Engine, Environment, Launcher
from jlkern.engines.cpus import cpu_name
from jlkern.errors import CompileError, EngineError, UnsupportedError
from jlkern.interrupt import uninterrupted
from jlkern.source import KernelSource
from jlkern.space import Schedule

if TYPE_CHECKING:
    from jlkern.engines.numba.lower.simt import Kernel

DEFAULT_WORKGROUPS = {1: (256,), 2: (32, 8), 3: (32, 4, 2)}


class NumbaEngine(Engine):
    """See `jlkern.engines.base`.

    Schedules: "order" (the dimensions, the outermost loop's first), "threads" ("one" or "all"), "loops" ("inside" or
    "outside" the loops over work-items), "lanes" (how many work-items go through loops of unequal length in step).
    """

    name = "numba"

    def devices(self) -> tuple[Device, ...]:
        return (Device("cpu", 0, cpu_name()),)

    def environment(self) -> Environment:
        from jlkern.engines.numba import threads

        count = threads.count()
        exact = (
            ("device", cpu_name()),
            ("jlkern", version("jlkern") if _installed() else "source"),
            ("llvmlite", version("llvmlite")),
            ("numba", version("numba")),
            ("threads", str(count)),
        )
        same_class = (("cores", str(1 << (count - 1).bit_length())), ("isa", _isa()), ("kind", "cpu"))
        return Environment(exact, same_class)

    def check(self, source: KernelSource) -> None:
        from jlkern import disk

        key = f"checked {source.digest}"
        if not disk.read(key, lambda known, _: known):
            from jlkern.engines.numba.lower.check import check

            check(source)
            disk.write(key, True)

    def default_workgroup(self, ndrange: tuple[int, ...]) -> tuple[int, ...]:
        base = DEFAULT_WORKGROUPS.get(len(ndrange), (32, 4, 2))
        return (*base, *(1,) * (len(ndrange) - len(base)))

    def compile(self, request: CompileRequest) -> Launcher:
        from jlkern.engines.numba.launcher import kept_launcher, new_launcher

        known = kept_launcher(request)
        if known is not None:
            return known
        from jlkern.engines.numba.cost import per_item
        from jlkern.engines.numba.emit.cpu import emit
        from jlkern.engines.numba.facts import facts_of

        if "float16" in str(request.signature):
            where = request.source.place
            raise UnsupportedError(f"{where}: an argument of type Float16; the numba engine has Float32 and Float64")
        try:
            kernel = self._lowered(request)
            text = emit(kernel, self._known(request.schedule, request.ndims))
        except RecursionError as error:
            where = request.source.place
            raise CompileError(
                f"{where}: an expression of `{request.source.name}` is nested too deeply, or too long, to be compiled; "
                "split it, or use a loop"
            ) from error
        return new_launcher(request, facts_of(kernel, per_item(kernel.body)), text)

    def use_threads(self, count: int) -> None:
        import numba

        if 0 < count <= numba.config.NUMBA_NUM_THREADS:
            numba.set_num_threads(count)

    def schedules(self, request: CompileRequest) -> tuple[Schedule, ...]:
        """Return the rule's choice and what else may be faster: loops elsewhere, or another number of lanes."""
        from jlkern.engines.numba.emit import cpu
        from jlkern.engines.numba.emit.hoist import can_hoist
        from jlkern.engines.numba.emit.lanes import lanes, widths

        kernel = self._lowered(request)
        order = cpu.default_order(kernel)
        found: list[Schedule] = [()]
        cut = lanes(kernel)
        width = cpu.default_lanes(kernel, cut, order)
        if cut is not None:
            found += [(("lanes", w),) for w in (1, *widths(kernel.workgroup[order[-1]])) if w != width]
        if can_hoist(kernel.body):
            loops = cpu.default_loops(kernel, order) if width == 1 else ""
            found += [(("loops", way),) for way in ("inside", "outside") if way != loops]
        return tuple(found)

    def _lowered(self, request: CompileRequest) -> Kernel:
        from jlkern.engines.numba.lower.kernel import lower_kernel

        asked = request.workgroup or self.default_workgroup((1,) * request.ndims)
        workgroup = (*asked, *(1,) * (request.ndims - len(asked)))
        return lower_kernel(
            request.source, request.signature, request.params, workgroup, request.written, request.check_bounds
        )

    def _known(self, schedule: Schedule, ndims: int) -> dict[str, object]:
        """Return the entries of a schedule that this engine knows; others count as its rule's default."""
        wanted: dict[str, object] = dict(schedule)
        order = wanted.get("order")
        if not (isinstance(order, tuple) and sorted(order) == list(range(ndims))):
            wanted.pop("order", None)
        lanes = wanted.get("lanes", 1)
        if not (type(lanes) is int and 1 <= lanes <= 256 and lanes & (lanes - 1) == 0):
            wanted.pop("lanes", None)
        return wanted


@cache
def engine() -> NumbaEngine:
    """Return the embedded engine; the first call imports Numba.

    Raises
    ------
    EngineError
        Numba is told not to compile (`NUMBA_DISABLE_JIT`).
    """
    with uninterrupted():
        import numba
        from llvmlite.binding import ffi
        from numba.core.compiler_lock import global_compiler_lock
    if numba.config.DISABLE_JIT:
        raise EngineError("NUMBA_DISABLE_JIT is set, so Numba compiles nothing; unset it to use the numba engine")
    from jlkern.engines.numba import threads

    threads.hold_over_fork(global_compiler_lock)
    # LLVM's own lock is also taken without the compiler's, when what was compiled is let go of
    llvm = getattr(getattr(ffi.lib, "_lock", None), "_lock", None)
    if llvm is not None:
        threads.hold_over_fork(llvm, innermost=True)
    return NumbaEngine()


def _installed() -> bool:
    from importlib.metadata import PackageNotFoundError

    try:
        version("jlkern")
    except PackageNotFoundError:
        return False
    return True


@cache
def _isa() -> str:
    """Return the widest vector instructions that compiled code can use."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    for name, label in (("avx512f", "avx512"), ("avx2", "avx2"), ("avx", "avx"), ("sve", "sve"), ("neon", "neon")):
        if features.get(name):
            return f"{platform.machine()}-{label}"
    return f"{platform.machine()}-{os.name}"
