"""Entries: compiled functions that take a call's arguments, write the argument block and run the work-groups.

An entry depends on the types of the arguments only, so kernels with the same signature share it; which code to run
over which ndrange comes in a plan (see `Plan`), whose address is the entry's first argument.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from jlkern.engines.numba import kept, team, threads
from jlkern.engines.numba.emit.block import ArraySlots, Layout
from jlkern.engines.numba.namespace import namespace
from jlkern.signature import ArgType, ArrayArg, ScalarArg, Signature, TupleArg

HEADER = 3
UNALIGNED = -1
"""The status of an entry that was given an array whose address is no multiple of its element's alignment."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What an entry reads: code address, number of groups, threads; then the ndrange."""

    row: np.ndarray[Any, np.dtype[np.int64]]

    @property
    def address(self) -> int:
        return int(self.row.ctypes.data)

    @property
    def code(self) -> int:
        return int(self.row[0])

    @property
    def groups(self) -> int:
        return int(self.row[1])

    @property
    def threads(self) -> int:
        return int(self.row[2])


def make_plan(code: int, ndrange: tuple[int, ...], workgroup: tuple[int, ...], count: int) -> Plan:
    """Return the plan for code over an ndrange on `count` threads."""
    groups = 1
    for n, w in zip(ndrange, workgroup, strict=True):
        groups *= -(-n // w)
    return Plan(np.array([code, groups, count, *ndrange], np.int64))


def runtime_arguments(signature: Signature) -> tuple[int, ...]:
    """Return the positions of the arguments that exist at run time."""
    return tuple(k for k, arg in enumerate(signature) if isinstance(arg, (ArrayArg, ScalarArg, TupleArg)))


def _scalar_leaves(arg: ArgType, value: str) -> list[str]:
    if isinstance(arg, TupleArg):
        return [leaf for k, item in enumerate(arg.items) for leaf in _scalar_leaves(item, f"{value}[{k}]")]
    assert isinstance(arg, ScalarArg)
    return [f"{value}.real", f"{value}.imag"] if arg.dtype.startswith("complex") else [value]


def _packing(signature: Signature, written: tuple[bool, ...], place: Layout, dims: int) -> list[str]:
    lines = [f"store(block, {d}, load(plan_, {HEADER + d}))" for d in range(dims)]
    tests: list[str] = []  # Numba takes unaligned arrays for aligned ones
    for k, (arg, entry) in enumerate(zip(signature, place.entries, strict=True)):
        if isinstance(entry, ArraySlots):
            assert isinstance(arg, ArrayArg)
            address = "output_address" if written[k] else "input_address"
            lines.append(f"p{k} = {address}(a{k})")
            lines.append(f"store(block, {entry.first}, p{k})")
            unit = np.dtype(arg.dtype).alignment
            if unit > 1:
                tests.append(f"(p{k} & {unit - 1})")
            lines += [f"store(block, {at}, a{k}.shape[{d}])" for d, at in enumerate(entry.sizes)]
            if arg.layout == "S":
                lines += [
                    f"store(block, {at}, a{k}.strides[{d}] // a{k}.itemsize)" for d, at in enumerate(entry.strides)
                ]
        elif entry is not None:
            leaves = _scalar_leaves(arg, f"a{k}")
            lines += [f"store(block, {at}, bits_of({leaf}))" for at, leaf in zip(entry, leaves, strict=True)]
    if tests:
        lines += [f"if {' | '.join(tests)} != 0:", f"    return {UNALIGNED}"]
    return lines


_RUN = (
    "details = stack_int64(16)",
    "status = call_chunk(load(plan_, 0), address_of(block), address_of(details), 0, load(plan_, 1))",
    "if status != 0:",
    "    return keep_report(status, details)",
    "return 0",
)
_BODIES = {
    "serial": _RUN,
    "nogil": _RUN,
    "team": ("return run_team(load(plan_, 0), address_of(block), load(plan_, 1), load(plan_, 2))",),
    "parallel": ("return run_parallel(load(plan_, 0), address_of(block), load(plan_, 1), load(plan_, 2))",),
    "pack": ("return 0",),
}

_compiling = threading.Lock()
threads.hold_over_fork(_compiling)


@lru_cache(maxsize=512)
def _ready(kind: str, signature: Signature, written: tuple[bool, ...], place: Layout, dims: int) -> Callable[..., int]:
    names = [f"a{k}" for k in runtime_arguments(signature)]
    extra = ["block_address"] if kind == "pack" else []
    block = "pointer_int64(block_address)" if kind == "pack" else f"stack_int64({place.length})"
    body = [
        "plan_ = pointer_int64(plan)",
        f"block = {block}",
        *_packing(signature, written, place, dims),
        *_BODIES[kind],
    ]
    source = f"def NAME({', '.join(['plan', *extra, *names])}):\n" + "".join(f"    {line}\n" for line in body)
    made = kept.function(source, partial(_scope, kind), nogil=kind in ("nogil", "team", "parallel"))
    address = _dtype("int64")
    types = [_numba_type(signature[k]) for k in runtime_arguments(signature)]
    made.compile((*[address] * (2 if kind == "pack" else 1), *types))
    return made  # type: ignore[no-any-return]


def _scope(kind: str) -> dict[str, Any]:
    runs = {"team": team.run, "parallel": threads.parallel}
    return {**namespace(), f"run_{kind}": runs[kind]()} if kind in runs else namespace()


def entry(kind: str, signature: Signature, written: tuple[bool, ...], place: Layout, dims: int) -> Callable[..., int]:
    """Return the entry of a kind for a signature, compiled for writable arrays.

    Kinds: "serial" runs in the calling thread and keeps the GIL, "nogil" gives it up, "team" uses jlkern's own threads,
    "parallel" Numba's, "pack" only writes the block to the address that follows the plan's.
    """
    with _compiling:
        return _ready(kind, signature, written, place, dims)


def _numba_type(arg: ArgType) -> Any:
    import numba.core.types

    types: Any = numba.core.types
    if isinstance(arg, ArrayArg):
        layout = "C" if arg.ndim <= 1 and arg.layout == "F" else {"F": "F", "C": "C", "S": "A"}[arg.layout]
        return types.Array(_dtype(arg.dtype), arg.ndim, layout)
    if isinstance(arg, TupleArg):
        items = [_numba_type(item) for item in arg.items]
        if items and all(item == items[0] for item in items):
            return types.UniTuple(items[0], len(items))
        return types.Tuple(items)
    assert isinstance(arg, ScalarArg)
    return _dtype(arg.dtype)


def _dtype(name: str) -> Any:
    from numba.np.numpy_support import from_dtype

    return from_dtype(np.dtype(name))
