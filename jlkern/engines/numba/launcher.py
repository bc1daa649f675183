"""Compiled kernels and how they are launched."""

from __future__ import annotations

import math
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from jlkern import errors
from jlkern.engines.base import CompileRequest, Launcher
from jlkern.engines.numba import kept, team, threads
from jlkern.engines.numba.emit.whole import text_for
from jlkern.engines.numba.entry import UNALIGNED, Plan, entry, make_plan, runtime_arguments
from jlkern.engines.numba.facts import Facts, Failure, load_facts, save_facts
from jlkern.engines.numba.namespace import namespace
from jlkern.errors import CompileError, KernelError

PARALLEL_FROM = 400_000.0
"""Simple instructions (see `cost`) from which a launch is worth several threads.

That is 10 microseconds of vectorised work, which threads hardly speed up, or 100 of other work, which they do.
"""

_MOST_ITEMS = 1 << 62

CODES = 1024
"""Compiled chunks that are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """One compiled chunk; `owner` keeps the machine code alive."""

    address: int
    owner: Any


_codes: OrderedDict[str, Code] = OrderedDict()
_launched: dict[int, tuple[int, ...]] = {}
"""The last ndrange of each number of dimensions."""

_lock = threading.Lock()
threads.hold_over_fork(_lock)


def compile_by_numba(text: str, name: str) -> Code:
    """Compile emitted source by Numba's own pipeline, which takes longer. Raises `CompileError`."""
    from numba import cfunc, int64
    from numba.core.errors import NumbaError

    scope = dict(namespace())
    try:
        exec(compile(text, f"<jlkern {name}>", "exec"), scope)
        function = cfunc(int64(int64, int64, int64, int64), error_model="numpy")(scope["chunk"])
    except (NumbaError, SyntaxError, RecursionError, ValueError, TypeError, RuntimeError) as error:
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise CompileError(
            f"`{name}`: the generated code does not compile ({first}); please report this kernel"
        ) from error
    return Code(function.address, function)


def compile_chunk(text: str, name: str) -> Code:
    """Compile emitted source; equal text is compiled once, and in other processes not again."""
    with _lock:
        if text in _codes:
            _codes.move_to_end(text)
            return _codes[text]
    found = kept.load_chunk(text)
    if found is not None:
        return _remember(text, Code(*found))
    from jlkern.engines.numba.assemble import Unassembled, assemble, chunk_name

    try:
        code = Code(*assemble(text, namespace()))
        kept.save_chunk(text, chunk_name(text), code.owner)
    except Unassembled:
        code = compile_by_numba(text, name)
    except (RecursionError, MemoryError, SyntaxError) as error:  # Python's parser has limits of its own
        raise CompileError(
            f"`{name}`: expressions or blocks are nested too deeply to be compiled; split them"
        ) from error
    return _remember(text, code)


def _remember(text: str, code: Code) -> Code:
    with _lock:
        _codes[text] = code
        while len(_codes) > CODES:
            _codes.popitem(last=False)
    return code


class NumbaLauncher(Launcher):
    """A kernel compiled for one configuration and signature."""

    def __init__(self, request: CompileRequest, facts: Facts, text: str) -> None:
        self.request = request
        self.text = text
        self._facts = facts
        self._place = facts.place
        self._written = tuple(name in request.written for name in request.source.names)
        self._runtime = runtime_arguments(request.signature)
        forced = dict(request.schedule).get("threads")
        self._threads = {"one": False, "all": True}.get(str(forced))

    @property
    def workgroup(self) -> tuple[int, ...]:
        """The work-group size, one entry per dimension."""
        return self._facts.workgroup

    def _several(self, ndrange: tuple[int, ...]) -> bool:
        """Tell whether a launch is large enough for several threads."""
        items = 1.0
        for n in ndrange:
            items *= n
        return items * max(self._facts.cost, 1.0) >= PARALLEL_FROM

    def _plan(self, ndrange: tuple[int, ...]) -> tuple[Plan, Code, str]:
        if any(n >= _MOST_ITEMS for n in ndrange) or math.prod(ndrange) >= _MOST_ITEMS:
            raise errors.NDRangeError(f"`{self.request.source.name}`: {ndrange} is 2^62 work-items or more")
        large = self._several(ndrange)
        wanted = large if self._threads is None else self._threads
        count = threads.count() if wanted else 1
        code = self.code(ndrange)
        plan = make_plan(code.address, ndrange, self.workgroup, count)
        if count == 1 or plan.groups == 1:
            return plan, code, "nogil" if large else "serial"
        if team.usable():
            return make_plan(code.address, ndrange, self.workgroup, team.seats(count)), code, "team"
        return plan, code, "parallel" if threads.numba_threads_usable() else "pooled"

    def code(self, ndrange: tuple[int, ...]) -> Code:
        """Return the machine code for launches over an ndrange. Raises `CompileError`."""
        _launched[len(ndrange)] = ndrange
        return compile_chunk(text_for(self.text, self.workgroup, ndrange), self.request.source.name)

    def compile_ahead(self) -> None:
        """Compile for the ndrange that was launched last: while tuning, that is what comes next."""
        groups = self.workgroup
        self.code(_launched.get(len(groups), groups))

    def _entry(self, kind: str) -> Callable[..., int]:
        return entry(kind, self.request.signature, self._written, self._place, len(self.workgroup))

    def fire(self, ndrange: tuple[int, ...]) -> Callable[..., int]:
        plan, code, kind = self._plan(ndrange)
        if kind == "pooled":
            made: Any = partial(_pack_and_run, plan, self._entry("pack"), self._place.length)
        else:
            made = partial(self._entry(kind), plan.address)
        if len(self._runtime) != len(self.request.signature):
            made = partial(_without, made, self._runtime)
        made.plan = plan  # keeps the plan alive, and `fail` reads it
        made.code = code
        return made  # type: ignore[no-any-return]

    def bind(self, ndrange: tuple[int, ...], args: tuple[Any, ...]) -> Callable[[], int]:
        plan, code, kind = self._plan(ndrange)
        block = self._block(plan, args)
        if kind in ("team", "parallel", "pooled"):
            run: Any = {"team": team.run, "parallel": threads.parallel}.get(kind, lambda: threads.pooled)()
            made: Any = partial(run, plan.code, int(block.ctypes.data), plan.groups, plan.threads)
        else:
            made = partial(threads.serial(kind == "nogil"), plan.code, int(block.ctypes.data), 0, plan.groups)
        made.plan, made.block, made.args_kept, made.code = plan, block, args, code
        return made  # type: ignore[no-any-return]

    def _block(self, plan: Plan, args: tuple[Any, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
        block = np.zeros(max(1, self._place.length), np.int64)
        status = self._entry("pack")(plan.address, int(block.ctypes.data), *(args[k] for k in self._runtime))
        if status:
            raise errors.ArgumentError(
                f"`{self.request.source.name}`: an array is not aligned to its elements; pass a copy of it"
            )
        return block

    def sampler(self, ndrange: tuple[int, ...], args: tuple[Any, ...]) -> Callable[[int], float]:
        bound: Any = self.bind(ndrange, args)
        plan: Plan = bound.plan
        if bound.func is threads.serial(True) or bound.func is threads.serial(False):
            repeated: Any = threads.repeated()
            many = partial(repeated, *bound.args[:2], plan.groups)

            def sample(times: int) -> float:
                start = time.perf_counter()
                status = many(times)
                seconds = time.perf_counter() - start
                if status:
                    self.fail(bound, status)
                return seconds
        else:

            def sample(times: int) -> float:
                start = time.perf_counter()
                for _ in range(times):
                    status = bound()
                    if status:
                        self.fail(bound, status)
                return time.perf_counter() - start

        return sample

    def fail(self, fire: Callable[..., int], status: int) -> None:
        source = self.request.source
        if status == UNALIGNED:
            raise errors.ArgumentError(f"`{source.name}`: an array is not aligned to its elements; pass a copy of it")
        number, bits = threads.read_report(status)
        if number > len(self._facts.failures):
            from jlkern.engines.numba.emit.cpu import DIVERGED

            raise KernelError(f"{source.place}: {DIVERGED}")
        failure = self._facts.failures[number - 1]
        details = [_detail(value, ty) for value, ty in zip(bits, failure.types, strict=False)]
        raise _error(failure, details, source.origin.where(failure.line))


def kept_launcher(request: CompileRequest) -> NumbaLauncher | None:
    """Return the launcher of a request that another process compiled, or None."""
    found = load_facts(request)
    if found is None:
        return None
    facts, text = found
    return NumbaLauncher(request, facts, text)


def new_launcher(request: CompileRequest, facts: Facts, text: str) -> NumbaLauncher:
    """Compile emitted source to the launcher of a request. Raises `CompileError`."""
    launcher = NumbaLauncher(request, facts, text)
    launcher.compile_ahead()
    if kept.may_be_kept(text):
        save_facts(request, facts, text)
    return launcher


def _error(failure: Failure, details: list[str], where: str) -> KernelError:
    kind = getattr(errors, failure.error, KernelError)
    error: KernelError = kind(f"{where}: {failure.message.format(*details)}")
    return error


def _detail(bits: int, ty: str) -> str:
    if ty == "float32":
        return str(struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0])
    if ty == "float64":
        return str(struct.unpack("<d", struct.pack("<q", bits))[0])
    return str(bits & 0xFFFFFFFFFFFFFFFF if ty == "uint64" else bits)


def _without(function: Callable[..., int], kept: tuple[int, ...], *args: Any) -> int:
    """Call without the arguments that exist at compile time only."""
    return function(*(args[k] for k in kept))


def _pack_and_run(plan: Plan, pack: Callable[..., int], length: int, *args: Any) -> int:
    block = np.zeros(max(1, length), np.int64)
    address = int(block.ctypes.data)
    status = pack(plan.address, address, *args)
    return status or threads.pooled(plan.code, address, plan.groups, plan.threads)
