"""The data made by Julia is whole and can be read."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from data.tables import DTYPES, Parts, Raised, Table, decode, load_constants, load_precedence, load_tables, same


@pytest.fixture(scope="module")
def tables() -> dict[tuple[str, ...], Table]:
    return {(table.expr, *table.types): table for table in load_tables()}


def find(tables: dict[tuple[str, ...], Table], expr: str, *args: object) -> object:
    kinds = {dtype: kind for kind, dtype in DTYPES.items()}
    table = tables[(expr, *(kinds[type(arg)] for arg in args))]
    for at, result in enumerate(table.results):
        if all(same(column[at], arg) for column, arg in zip(table.columns, args, strict=True)):
            return result and result.value
    raise LookupError(args)


def test_tables_are_whole(tables: dict[tuple[str, ...], Table]) -> None:
    assert len(tables) > 6000
    for table in tables.values():
        assert len(table.results) == len(table.columns[0])
        assert [column.dtype.type for column in table.columns] == [DTYPES[kind] for kind in table.types]


def test_results_are_typed(tables: dict[tuple[str, ...], Table]) -> None:
    for table in tables.values():
        for result in table.results:
            if result is not None and result.type in DTYPES:
                assert type(result.value) is DTYPES[result.type]


def test_julias_rules(tables: dict[tuple[str, ...], Table]) -> None:
    i8, i64, u8, f32, f64 = np.int8, np.int64, np.uint8, np.float32, np.float64
    cases = [
        (find(tables, "x + y", i8(127), i8(1)), i8(-128)),
        (find(tables, "x * y", i64(3), f32(1.5)), f32(4.5)),
        (find(tables, "x / y", i64(1), i64(0)), f64("inf")),
        (find(tables, "x ÷ y", i64(1), i64(0)), Raised("DivideError")),
        (find(tables, "x % y", i64(-7), i64(3)), i64(-1)),
        (find(tables, "mod(x, y)", i64(-7), i64(3)), i64(2)),
        (find(tables, "x << y", i64(1), i64(64)), i64(0)),
        (find(tables, "x >> y", i64(-7), i64(64)), i64(-1)),
        (find(tables, "min(x, y)", f64(-0.0), f64(0.0)), f64(-0.0)),
        (find(tables, "UInt8(x)", i64(-1)), Raised("InexactError")),
        (find(tables, "x % UInt8", i64(-1)), u8(255)),
        (find(tables, "sqrt(x)", f64(-1)), Raised("DomainError")),
        (find(tables, "divrem(x, y)", i64(-7), i64(3)), (i64(-2), i64(-1))),
        (find(tables, "unsafe_trunc(Int8, x)", f64(128)), None),
    ]
    for got, expected in cases:
        assert same(got, expected), (got, expected)


def test_comparisons_are_exact(tables: dict[tuple[str, ...], Table]) -> None:
    """Numbers of any two types compare as the numbers that they are, which Python's comparisons do too."""
    compare = {"x == y": lambda a, b: a == b, "x < y": lambda a, b: a < b, "x <= y": lambda a, b: a <= b}
    for key, table in tables.items():
        if key[0] in compare and not any(kind.startswith("Complex") for kind in table.types):
            rows = zip(*(column.tolist() for column in table.columns), strict=True)
            expected = [compare[key[0]](a, b) for a, b in rows]
            assert expected == [bool(result.value) for result in table.results if result is not None], key


def test_constants() -> None:
    constants = {row.expr: row.result for row in load_constants()}
    assert len(constants) > 700
    assert same(constants["1f0 * π" if "1f0 * π" in constants else "π * 1f0"].value, np.float32(np.pi))
    assert constants["promote_type(UInt8, Int64)"].value == "Int64"
    assert same(constants["2im * 2im"].value, Parts(np.int64(-4), np.int64(0)))
    assert same(constants["(-8.0)^(1/3)"].value, Raised("DomainError"))


def test_decode_keeps_signs_of_zero() -> None:
    value = decode("Complex{Float64}", "8000000000000000,8000000000000000")
    assert np.signbit(value.real) and np.signbit(value.imag)


def test_precedence() -> None:
    data = load_precedence()
    rows = dict(data["rows"])
    assert len(rows) == len(data["rows"]) > 10_000
    assert not rows.keys() & set(data["errors"])
    assert rows["2x^2"] == "(call * 2 (call ^ x 2))"
    assert rows["a & b == 0"] == "(call == (call & a b) 0)"
    # Parentheses pair up, but for those inside strings.
    for text, sexpr in rows.items():
        if '"' not in text and "(" not in sexpr.replace("(", "", 1):
            assert Counter(sexpr)["("] == Counter(sexpr)[")"], text
