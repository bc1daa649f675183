"""Run expressions of the numeric tables on the embedded engine, many of them in one kernel.

A kernel here takes a number that picks the expression, arrays for the results of every type, and arrays for the
arguments of every type, so that all kernels share one signature. Every result is asserted to have the type that it has
in Julia.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from data.tables import DTYPES, Raised, Table

from jlkern.engines.base import CompileRequest, Launcher
from jlkern.engines.numba import engine
from jlkern.errors import KernelError, UnsupportedError
from jlkern.signature import classify
from jlkern.source import KernelSource, Origin, load_source

PRIMS = ("Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
KINDS = (*PRIMS, "Complex{Float32}", "Complex{Float64}")
OUTPUTS = {f"out{n}_{prim}": np.dtype(DTYPES[prim]) for n in (1, 2) for prim in PRIMS}
BATCH = 40

#: What an exception of Julia is here.
ERRORS = {"InexactError": "InexactError", "DivideError": "DivideError", "DomainError": "DomainError",
          "OverflowError": "KernelError", "ArgumentError": "KernelThrownError"}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """An expression over `x`, `y`, `z`: arguments as columns, and for each row the type and the value or `Raised`."""

    expr: str
    types: tuple[str, ...]
    columns: tuple[Any, ...]
    kinds: tuple[str, ...]
    expected: tuple[Any, ...]


@dataclass(frozen=True)
class Outcome:
    """One row: its arguments, what Julia gave, and what came out (the parts of a value, or the name of an error)."""

    case: Case
    args: tuple[Any, ...]
    kind: str
    expected: Any
    got: Any


def make_case(table: Table) -> Case | None:
    """Return the case of a table; None when no row of it has a defined result."""
    rows = [at for at, result in enumerate(table.results) if result is not None]
    results = [table.results[at] for at in rows]
    return Case(
        table.expr,
        table.types,
        tuple(column[rows] for column in table.columns),
        tuple(result.type for result in results if result is not None),
        tuple(result.value for result in results if result is not None),
    ) if rows else None  # fmt: skip


def column(var: str, kind: str) -> str:
    """Return the name of the array that holds an argument of a type."""
    return f"{var}_{kind.replace('{', '').replace('}', '')}"


INPUTS = {column(var, kind): np.dtype(DTYPES[kind]) for var in "xyz" for kind in KINDS}


def parts(kind: str) -> list[tuple[str, str]]:
    """Return how to get each primitive part of a result from `v`, and its type."""
    if kind.startswith("Tuple{"):
        return [(f"v[{n}]", inner) for n, inner in enumerate(kind[6:-1].split(","), 1)]
    if kind.startswith("Complex{"):
        return [("real(v)", kind[8:-1]), ("imag(v)", kind[8:-1])]
    return [("v", kind)]


def flat(value: Any) -> list[Any]:
    """Return the primitive parts of a value, in the order of `parts`."""
    if isinstance(value, tuple):
        return list(value)
    if hasattr(value, "re"):
        return [value.re, value.im]
    return [value.real, value.imag] if isinstance(value, np.complexfloating) else [value]


def branch(case: Case) -> list[str]:
    """Return what the kernel does for one expression."""
    lines = [f"{var} = {column(var, kind)}[j]" for var, kind in zip("xyz", case.types, strict=False)]
    kinds = sorted(set(case.kinds) - {""})
    if "Type" in kinds:  # all rows give the same one
        (name,) = {value for value in case.expected if isinstance(value, str)}
        return [*lines, f"out1_Bool[j] = ({case.expr}) === {name}"]
    if len(kinds) == 1:
        return [*lines, f"v = ({case.expr})::{kinds[0]}", *stores(kinds[0])]
    lines.append(f"v = {case.expr}")
    for at, kind in enumerate(kinds):
        lines += [f"{'elseif' if at else 'if'} v isa {kind}", *stores(kind)]
    return [*lines, "end"] if kinds else lines


def stores(kind: str) -> list[str]:
    """Return the statements that store a result."""
    return [f"out{n}_{prim}[j] = {part}" for n, (part, prim) in enumerate(parts(kind), 1)]


def source_of(cases: list[Case]) -> KernelSource:
    """Return the source of a kernel with all the cases."""
    lines = [f"@kernel function rows!(mode, start, {', '.join([*OUTPUTS, *INPUTS])})", "j = start + @index(Global)"]
    for mode, case in enumerate(cases):
        lines += [f"{'elseif' if mode else 'if'} mode == {mode}", "@inbounds begin", *branch(case), "end"]
    return load_source("\n".join([*lines, "end", "end"]), Origin(None, 1, False), (), None)


def dummies() -> dict[str, Any]:
    """Return arrays for all parameters."""
    return {name: np.zeros(1, dtype) for name, dtype in (OUTPUTS | INPUTS).items()}


def refusal(case: Case) -> str:
    """Return what the engine says when it refuses a case, "" when it takes it."""
    from jlkern.engines.numba.lower.kernel import lower_kernel

    source = source_of([case])
    signature = tuple(classify(n, a) for n, a in zip(source.names, [0, 0, *dummies().values()], strict=True))
    try:
        lower_kernel(source, signature, {}, (64,), frozenset(OUTPUTS), False)
    except UnsupportedError as problem:
        return str(problem)
    return ""


def compiled(cases: list[Case]) -> Launcher:
    """Compile one kernel for the cases."""
    source = source_of(cases)
    signature = tuple(classify(n, a) for n, a in zip(source.names, [0, 0, *dummies().values()], strict=True))
    # What the kernel may write is the same for all, so that they share an entry.
    request = CompileRequest(source, signature, {}, (64,), 1, frozenset(OUTPUTS), (("threads", "one"),))
    launcher = engine().compile(request)
    # Numba itself takes overflow of signed integers for undefined: its own compiler must not be needed.
    assert not hasattr(launcher.code((1,)).owner, "inspect_llvm"), launcher.text  # type: ignore[attr-defined]
    return launcher


def launch(launcher: Launcher, mode: int, first: int, count: int, args: list[Any]) -> str:
    """Run some rows; return the name of the error, "" when there is none."""
    fire = launcher.fire((count,))
    status = fire(mode, first, *args)
    if status:
        try:
            launcher.fail(fire, status)
        except KernelError as problem:
            return type(problem).__name__
    return ""


def run(cases: list[Case]) -> Iterator[Outcome]:
    """Run all rows of some cases."""
    launcher = compiled(cases)
    for mode, case in enumerate(cases):
        yield from _run(launcher, mode, case)


def _run(launcher: Launcher, mode: int, case: Case) -> Iterator[Outcome]:
    good = [at for at, kind in enumerate(case.kinds) if kind]
    rows = [*good, *(at for at, kind in enumerate(case.kinds) if not kind)]
    arrays = dummies()
    for var, kind, values in zip("xyz", case.types, case.columns, strict=False):
        arrays[column(var, kind)] = values[rows]
    arrays |= {name: np.zeros(len(rows), dtype) for name, dtype in OUTPUTS.items()}
    args = list(arrays.values())
    # Rows with a value run together; where one of them fails after all, and where Julia throws, each runs alone.
    together = bool(good) and not launch(launcher, mode, 0, len(good), args)
    for at, row in enumerate(rows):
        kind = case.kinds[row]
        got: Any = "" if kind and together else launch(launcher, mode, at, 1, args)
        if not got and kind:
            names = [("v", "Bool")] if kind == "Type" else parts(kind)
            got = [arrays[f"out{n}_{prim}"][at] for n, (_, prim) in enumerate(names, 1)]
        yield Outcome(case, tuple(values[row] for values in case.columns), kind, case.expected[row], got)


def batches(cases: Iterable[Case], size: int = BATCH) -> Iterator[list[Case]]:
    """Cut into lists."""
    rest = iter(cases)
    while part := list(islice(rest, size)):
        yield part


def literal(value: Any) -> str:
    """Return a Julia expression for a value, known at compile time.

    >>> literal(np.int8(-3)), literal(np.float32(0.1)), literal(np.uint16(7)), literal(np.complex64(1 - 2j))
    ('Int8(-3)', '1.0f-1', '0x0007', 'Complex(1.0f0, -2.0f0)')
    """
    if isinstance(value, np.complexfloating):
        return f"Complex({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.unsignedinteger):
        return f"0x{int(value):0{2 * value.itemsize}x}"
    if isinstance(value, np.integer):
        name = f"Int{8 * value.itemsize}"
        return f"typemin({name})" if value == np.iinfo(value.dtype).min else f"{name}({int(value)})"
    single = value.itemsize == 4
    if not np.isfinite(value):
        name = "NaN" if np.isnan(value) else "Inf"
        return ("-" if value < 0 else "") + name + ("32" if single else "")
    text = np.format_float_scientific(value, unique=True, trim="0")
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}{'f' if single else 'e'}{int(exponent)}"


def raised(outcome: Outcome) -> str:
    """Return the name of the error that is expected, "" when a value is."""
    return ERRORS[outcome.expected.name] if isinstance(outcome.expected, Raised) else ""
