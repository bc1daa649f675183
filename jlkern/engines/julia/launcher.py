"""A compiled kernel of the julia engine: launches, bound launches, and their timing inside Julia."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from jlkern import errors
from jlkern.engines.base import CompileRequest, Launcher
from jlkern.engines.julia import builtin, text
from jlkern.engines.julia.bridge import Problem, Runtime
from jlkern.engines.julia.owner import owner, run, soon
from jlkern.errors import ArgumentError, CompileError, KernelError, SourceSyntaxError
from jlkern.signature import ArgType, ArrayArg, ScalarArg, TupleArg, classify

PARALLEL_FROM = 1 << 14
"""Work-items from which a launch uses several threads: Julia's tasks cost 6 to 19 microseconds."""

_problems: dict[int, Problem] = {}
"""What failed launches said, by their status, until `fail` asks."""

_KEPT = 64
_KINDS: dict[str, type[KernelError]] = {
    "BoundsError": errors.BoundsError,
    "InexactError": errors.InexactError,
    "DivideError": errors.DivideError,
    "DomainError": errors.DomainError,
    "ErrorException": errors.KernelThrownError,
    "ArgumentError": errors.KernelThrownError,
}


class JuliaLauncher(Launcher):
    """A kernel compiled for one configuration and signature."""

    def __init__(self, request: CompileRequest, runtime: Runtime, workgroup: tuple[int, ...]) -> None:
        self.request = request
        self.workgroup = workgroup
        self._runtime = runtime
        self._written = tuple(name in request.written for name in request.source.names)
        forced = dict(request.schedule).get("threads")
        self._threads = {"one": 1, "all": runtime.threads}.get(str(forced))
        self.text = f"{text.constants(request.params)}\n{request.source.text}"
        self._slot = run(self._prepare)
        free_with(self, runtime, self._slot)

    def _prepare(self) -> int:
        request, runtime = self.request, self._runtime
        origin = request.source.origin
        path = _path(request).encode()
        source = request.source.text
        if request.check_bounds:
            source = _UNCHECKED.sub(r"\1false", source)
        home = runtime.load(
            source.encode(),
            path,
            origin.line if origin.exact else 1,
            text.constants(request.params).encode(),
            int(request.check_bounds),
        )
        if not home:
            raise not_compiled(request, runtime.last_problem())
        try:
            target, specs = self._target()
            made = (
                f"prepared(home, Symbol({text.quoted(request.source.name)}), {target}, "
                f"{text.literal(self.workgroup)}, {specs}, {_vals(request)})"
            )
            slot = runtime.make(made.encode(), home, path)
        finally:
            runtime.free(home)
        if not slot:
            raise not_compiled(request, runtime.last_problem())
        return slot

    def _target(self) -> tuple[str, str]:
        """Return what the kernel runs on, and the specs of its arguments, in Julia."""
        return "CPU()", text.specs(self.request.signature, self._written)

    def _call(self, ndrange: tuple[int, ...]) -> int:
        """Return the slot of a call over an ndrange, compiled."""
        threads = self._threads
        if threads is None:
            items = 1
            for size in ndrange:
                items *= size
            threads = self._runtime.threads if items >= PARALLEL_FROM else 1
        sizes = np.array(ndrange, np.int64)
        slot = self._runtime.call(self._slot, sizes.ctypes.data, len(ndrange), threads)
        if not slot:
            raise not_compiled(self.request, self._runtime.last_problem())
        return slot

    def fire(self, ndrange: tuple[int, ...]) -> Callable[..., int]:
        runtime = self._runtime
        slot = run(self._call, ndrange)

        def packed(*args: Any) -> int:
            row = self._row(args)
            return self._status(runtime.packed(slot, row.ctypes.data))

        if runtime.fast is None:

            def fire(*args: Any) -> int:
                return run(packed, *args)

        else:
            native = builtin.make(runtime.fast, slot)
            ident, status_of, me = threading.get_ident, self._status, owner

            def fire(*args: Any) -> int:
                if ident() != me.ident:
                    return run(fire, *args)
                try:
                    status = native(*args)
                except TypeError:  # arguments that look different to Julia and may be right all the same
                    return packed(*args)
                return status and status_of(status)

        fire.launcher = self  # type: ignore[attr-defined]  # keeps the kernel alive
        free_with(fire, runtime, slot)
        return fire

    def bind(self, ndrange: tuple[int, ...], args: tuple[Any, ...]) -> Callable[[], int]:
        runtime = self._runtime
        slot = run(self._bound, ndrange, args)
        ident, status_of, me = threading.get_ident, self._status, owner
        native: Callable[[], int]
        if runtime.fast is None:

            def native() -> int:
                return int(runtime.repeat(slot, 1) < 0)

        else:
            native = builtin.make(runtime.fast, slot)

        def fire() -> int:
            if ident() != me.ident:
                return run(fire)
            status = native()
            return status and status_of(status)

        fire.kept = self, args  # type: ignore[attr-defined]
        free_with(fire, runtime, slot)
        return fire

    def _bound(self, ndrange: tuple[int, ...], args: tuple[Any, ...]) -> int:
        call = self._call(ndrange)
        try:
            row = self._row(args)  # has to live until Julia has read it
            slot = self._runtime.bind(call, row.ctypes.data)
        finally:
            self._runtime.free(call)
        if not slot:
            raise not_compiled(self.request, self._runtime.last_problem())
        return slot

    def sampler(self, ndrange: tuple[int, ...], args: tuple[Any, ...]) -> Callable[[int], float]:
        runtime = self._runtime
        slot = run(self._bound, ndrange, args)

        def on_owner(times: int) -> float:
            seconds = runtime.repeat(slot, times)
            if seconds < 0:
                raise self._error(runtime.last_problem())
            return seconds

        def sample(times: int) -> float:
            return run(on_owner, times)

        sample.kept = self, args  # type: ignore[attr-defined]
        free_with(sample, runtime, slot)
        return sample

    def fail(self, fire: Callable[..., int], status: int) -> None:
        raise self._error(_problems.pop(status))

    def _status(self, status: int) -> int:
        """Keep what a failed launch said, in the owner's thread, and return the status that stands for it."""
        if not status:
            return 0
        number = max(_problems, default=0) + 1
        _problems[number] = self._runtime.last_problem()
        while len(_problems) > _KEPT:
            del _problems[min(_problems)]
        return number

    def _error(self, problem: Problem) -> KernelError:
        source = self.request.source
        kind = _KINDS.get(problem.kind)
        message = problem.message
        if kind is None:
            kind = KernelError
            message = message if message.startswith(problem.kind) else f"{problem.kind}: {message}"
        return kind(f"{_where(self.request, problem.line)}: `{source.name}`: {message}")

    def _row(self, args: tuple[Any, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Write the arguments as the Julia side takes them. Raises `TypeError` when they are not of the signature."""
        signature = self.request.signature
        for arg, value in zip(signature, args, strict=True):
            check(arg, value)
        for writes, value in zip(self._written, args, strict=True):
            if writes and not value.flags.writeable:
                raise TypeError("a written array is read-only")
        words: list[int] = []
        for arg, value in zip(signature, args, strict=True):
            write(words, arg, value)
        return np.array(words or [0], np.int64)


_UNCHECKED = re.compile(r"(@kernel\b[^\n]*?\binbounds\s*=\s*)true\b")


def check(arg: ArgType, value: Any) -> None:
    """Raise `TypeError` when an argument is not what a launch was compiled for."""
    # what no kernel can take is no `ArgumentError` here: the call is planned anew, which has the parameter's name
    with suppress(ArgumentError):
        if classify("", value) == arg:
            return
    raise TypeError("the arguments are not those that this was compiled for")


def write(words: list[int], arg: ArgType, value: Any) -> None:
    """Write an argument into a row as the specs of `runtime.jl` take it."""
    if isinstance(arg, ArrayArg):
        words += [value.ctypes.data, *value.shape, *value.strides]
    elif isinstance(arg, ScalarArg):
        data = np.asarray(value, arg.dtype).tobytes().ljust(16, b"\0")
        words += np.frombuffer(data, np.int64).tolist()
    elif isinstance(arg, TupleArg):
        for item, part in zip(arg.items, value, strict=True):
            write(words, item, part)


def _vals(request: CompileRequest) -> str:
    """Return the trailing `Val`s that tunables fill, as a tuple; those after the last one keep their defaults."""
    names = list(request.source.vals)
    while names and names[-1] is None:
        names.pop()
    if None in names:
        raise CompileError(
            f"{request.source.place}: `{request.source.name}`: a `Val` that is no tunable stands before one that is; "
            "the julia engine fills them from the left: put it last"
        )
    return text.literal_vals([request.params[name] for name in names if name is not None])


def free_with(item: object, runtime: Runtime, slot: int) -> None:
    """Free a slot when an object is gone; not at exit, where Julia may be gone before."""
    weakref.finalize(item, soon, runtime.free, slot).atexit = False


def _path(request: CompileRequest) -> str:
    """Return what Julia takes for the file of a source; never a file of Julia's own."""
    origin = request.source.origin
    return origin.file if origin.exact and origin.file is not None else f"<{request.source.name}>"


def _where(request: CompileRequest, line: int) -> str:
    """Return the place of a line that Julia named, or the kernel's where it named none."""
    origin = request.source.origin
    first = origin.line if origin.exact else 1
    inside = line - first + 1
    if not 1 <= inside <= request.source.text.count("\n") + 1:
        return request.source.place
    return origin.where(inside)


def not_compiled(request: CompileRequest, problem: Problem) -> errors.JlkernError:
    """Return the error for what Julia said of a source that it could not compile."""
    message = problem.message
    if problem.kind not in message:
        message = f"{problem.kind}: {message}"
    kind = SourceSyntaxError if message.startswith("syntax:") or "ParseError" in problem.kind else CompileError
    return kind(f"{_where(request, problem.line)}: `{request.source.name}`: Julia says: {message}")
