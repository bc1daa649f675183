"""Read `numeric.json.gz` and `precedence.json`, which Julia made; README.md beside this file says what is in them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent

DTYPES: dict[str, Any] = {
    "Bool": np.bool_,
    **{f"Int{bits}": np.dtype(f"int{bits}").type for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": np.dtype(f"uint{bits}").type for bits in (8, 16, 32, 64)},
    **{f"Float{bits}": np.dtype(f"float{bits}").type for bits in (16, 32, 64)},
    "Complex{Float32}": np.complex64,
    "Complex{Float64}": np.complex128,
}
"""The NumPy type of every Julia type that an array may hold."""


@dataclass(frozen=True)
class Raised:
    """An exception, by the name of its Julia type."""

    name: str


@dataclass(frozen=True)
class Parts:
    """A complex number that NumPy has no type for, such as `Complex{Int64}`."""

    re: Any
    im: Any


@dataclass(frozen=True)
class Result:
    """What Julia gave: the type's name and the value; an exception has no type."""

    type: str
    value: Any


@dataclass(frozen=True)
class Table:
    """One expression over one combination of types: the arguments as columns, and a result for each row.

    A result is None where Julia leaves the value undefined or where its versions differ.
    """

    expr: str
    types: tuple[str, ...]
    columns: tuple[Any, ...]
    results: tuple[Result | None, ...]


@dataclass(frozen=True)
class Row:
    """One expression with one set of arguments."""

    expr: str
    types: tuple[str, ...]
    args: tuple[Any, ...]
    result: Result


def decode(kind: str, token: str) -> Any:
    """The value that a token stands for.

    >>> decode("Int8", "-3"), decode("Float32", "3fc00000"), decode("Tuple{Int8,Bool}", "1;0")
    (np.int8(-3), np.float32(1.5), (np.int8(1), np.False_))
    """
    if kind == "Type":
        return token
    if kind == "Nothing":
        return None
    if kind.startswith("Tuple{"):
        return tuple(decode(k, t) for k, t in zip(kind[6:-1].split(","), token.split(";"), strict=True))
    if kind.startswith("Complex{"):
        re, im = (decode(kind[8:-1], part) for part in token.split(","))
        if kind not in DTYPES:
            return Parts(re, im)
        # complex(re, im) keeps signed zeros, re + 1j * im does not.
        return DTYPES[kind](complex(re, im))
    dtype = DTYPES[kind]
    if kind == "Bool":
        return dtype(token == "1")
    if kind.startswith("Float"):
        bits = int(kind[5:])
        return dtype("nan") if token == "nan" else np.dtype(f"uint{bits}").type(int(token, 16)).view(dtype)
    return dtype(int(token))


def _result(kind: str, token: str) -> Result | None:
    if token == "?":
        return None
    if token.startswith("!"):
        return Result("", Raised(token[1:]))
    kind, token = token.split(":") if ":" in token else (kind, token)
    return Result(kind, decode(kind, token))


def _read() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(gzip.decompress((HERE / "numeric.json.gz").read_bytes()))
    return data


def load_tables() -> Iterator[Table]:
    """Every table, its arguments as NumPy arrays of one length."""
    data = _read()
    values = {
        (kind, name): [decode(kind, token) for token in tokens.split(" ")]
        for kind, sets in data["values"].items()
        for name, tokens in sets.items()
    }
    for table in data["tables"]:
        types = tuple(table["types"])
        rows = list(product(*(values[kind, name] for kind, name in zip(types, table["sets"], strict=True))))
        columns = tuple(np.array(column, DTYPES[k]) for k, column in zip(types, zip(*rows, strict=True), strict=True))
        results = tuple(_result(table["result"], token) for token in table["values"].split(" "))
        yield Table(table["expr"], types, columns, results)


def load_constants() -> Iterator[Row]:
    """The expressions without arguments."""
    for expr, kind, token in _read()["constants"]:
        result = _result(kind, token)
        if result is not None:
            yield Row(expr, (), (), result)


def load_numeric() -> Iterator[Row]:
    """All rows with a defined result, the constants last."""
    for table in load_tables():
        for at, result in enumerate(table.results):
            if result is not None:
                yield Row(table.expr, table.types, tuple(column[at] for column in table.columns), result)
    yield from load_constants()


def same(a: Any, b: Any) -> bool:
    """Whether two values are the same type and bits; all NaNs are the same, zeros of different sign are not."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.generic) and isinstance(b, np.generic):
        if a.dtype != b.dtype:
            return False
        if a.dtype.kind == "c":
            return same(a.real, b.real) and same(a.imag, b.imag)
        return bool(np.isnan(a) and np.isnan(b)) if a.dtype.kind == "f" and a != a else a.tobytes() == b.tobytes()
    return type(a) is type(b) and bool(a == b)


def load_precedence() -> dict[str, Any]:
    """The corpus of expressions with Julia's parse: `rows`, `errors`, `changed`."""
    data: dict[str, Any] = json.loads((HERE / "precedence.json").read_text(encoding="utf-8"))
    return data
