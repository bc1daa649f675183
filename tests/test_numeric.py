"""Numbers behave as in Julia: every row of the tables that a real Julia made, and known arguments like unknown ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from data.tables import DTYPES, Raised, Table, load_constants, load_tables, same
from numeric_rows import Case, Outcome, batches, flat, literal, make_case, raised, refusal, run

FUNCTIONS = ("sqrt cbrt exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh "
             "acosh atanh sincos cis sinpi cospi deg2rad rad2deg mod2pi sec csc cot hypot angle").split()  # fmt: skip
CLOSE = re.compile(rf"({'|'.join(FUNCTIONS)})\(")
"""Expressions whose last places Julia's versions do not agree on."""
POWERS = re.compile(r"\^")
COMPLEX_CLOSE = re.compile(r"(/|\^|inv\(|abs\(|sign\()")
REFUSED = {"MethodError", "TypeError"}


def ulps(a: Any, b: Any) -> float:
    """Return how many floats lie between two; infinite when only one is a NaN, or for zeros of different sign."""
    if same(a, b):
        return 0
    if a.dtype != b.dtype or a.dtype.kind != "f" or np.isnan(a) or np.isnan(b) or a == b:
        return float("inf")
    places = [int(v.view(f"i{v.itemsize}")) for v in (a, b)]
    low = -(1 << (8 * a.itemsize - 1))
    x, y = (low - p if p < 0 else p for p in places)
    return float(abs(x - y))


def whole_complex(outcome: Outcome) -> bool:
    return any(kind.startswith("Complex") for kind in (*outcome.case.types, outcome.kind))


def changed(outcome: Outcome) -> bool:
    """Whether today's Julia gives something else than Julia 1.5, which made the tables."""
    expr, types, args = outcome.case.expr, outcome.case.types, outcome.args
    if expr == "mod2pi(x)":
        return not np.isfinite(args[0])  # it gave some number
    if expr.startswith(("UInt32", "UInt64", "UInt(")) and types and types[0].startswith("Float"):
        return bool(args[0] in (2.0**32, 2.0**64))  # the limits were rounded up, and 2^64 passed
    if expr == "fldmod(x, y)":
        return {t[0] for t in types} == {"I", "U"}  # an overflow in `mod`
    if not types:
        return False
    if expr == "x^0.5":
        return bool(args[0] == -np.inf)
    if expr == "x ^ y" and "Complex" not in f"{types}":
        # -Inf to a fraction is an error like any negative number; -0.0 keeps its sign for a large odd exponent
        return bool(args[0] == -np.inf) or bool(args[0] == 0 and types[1][0] in "IU" and abs(int(args[1])) > 1 << 24)
    return False


def judge(outcome: Outcome) -> str:
    """Return what is wrong with a row, "" when nothing is."""
    case, error = outcome.case, raised(outcome)
    if changed(outcome):
        return ""
    finite = all(np.all(np.isfinite(a)) for a in outcome.args)
    inexact = CLOSE.search(case.expr) or POWERS.search(case.expr)
    if whole_complex(outcome) and (inexact or COMPLEX_CLOSE.search(case.expr)):
        return _judge_complex(outcome, finite)
    if error or isinstance(outcome.got, str):
        return "" if error == outcome.got else f"{error or outcome.expected} expected, and not {outcome.got}"
    if outcome.kind == "Type":
        return "" if outcome.got[0] else "another type"
    expected = flat(outcome.expected)
    if all(map(same, outcome.got, expected)):
        return ""
    if "π" in case.expr or "ℯ" in case.expr:
        return f"{outcome.got} and not {expected}"
    distance = max(map(ulps, outcome.got, expected))
    bound = 2 if inexact else 0
    return "" if distance <= bound else f"{outcome.got} is {distance} places from {expected}"


def _judge_complex(outcome: Outcome, finite: bool) -> str:
    """Corner cases changed between Julia's versions; elsewhere the modulus says what the last place is."""
    if raised(outcome) or isinstance(outcome.got, str):
        return "" if not finite or raised(outcome) == outcome.got else f"{outcome.expected}, and not {outcome.got}"
    expected, got = np.array(flat(outcome.expected)), np.array(outcome.got)
    if expected.dtype != got.dtype:
        return f"{got.dtype} and not {expected.dtype}"
    if not finite or not np.all(np.isfinite(expected)) or expected.dtype.kind != "f":
        return ""
    with np.errstate(all="ignore"):
        scale = max(float(np.max(np.abs(expected))), float(np.finfo(expected.dtype).tiny))
        distance = float(np.max(np.abs(got.astype(float) - expected.astype(float)))) / scale
    bound = 8 * float(np.finfo(expected.dtype).eps) * _condition(outcome)
    return "" if distance <= bound else f"{got} and not {expected}"


def _condition(outcome: Outcome) -> float:
    """How much larger than an argument's rounding error the result's is: powers turn by a large angle."""
    if outcome.case.expr != "x ^ y":
        return 1.0
    base, exponent = (complex(a) for a in outcome.args)
    return 1.0 + abs(exponent) * abs(np.log(base)) if base else 1.0


def cases_of(tables: Iterable[Table]) -> Iterator[Case]:
    """The tables that the engine must take."""
    for table in tables:
        case = make_case(table)
        if case is not None and any(case.kinds) and "Float16" not in f"{case.types} {case.kinds}":
            yield case


def problems(cases: Iterable[Case]) -> tuple[int, list[str]]:
    """Run cases; return the number of rows and what is wrong with them."""
    count, found = 0, []
    for batch in batches(cases):
        for outcome in run(batch):
            count += 1
            reason = judge(outcome)
            if reason:
                found.append(f"{outcome.case.expr} of {outcome.args}: {reason}")
    return count, found


def part_of(expr: object, parts: int) -> int:
    """Return a number below `parts` that depends on nothing but the text."""
    return crc32(repr(expr).encode()) % parts


PARTS = 8
SAMPLE = 60


@pytest.fixture(scope="module")
def tables() -> list[Table]:
    return list(load_tables())


def test_sample_of_rows(tables: list[Table]) -> None:
    chosen = [t for t in tables if part_of((t.expr, t.types), SAMPLE) == 1]
    count, found = problems(cases_of(chosen))
    assert count > 4000
    assert not found, "\n".join(found[:20])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all_rows(tables: list[Table], part: int) -> None:
    count, found = problems(cases_of(t for t in tables if part_of((t.expr, t.types), PARTS) == part))
    assert count > 30_000
    assert not found, f"{len(found)} of {count}:\n" + "\n".join(found[:20])


def test_refusals(tables: list[Table]) -> None:
    """What Julia has no method for, and Float16, is refused, and nothing else is."""
    wrong = []
    for table in tables:
        case = make_case(table)
        if case is None or (any(case.kinds) and part_of((table.expr, table.types), 20)):
            continue
        half = "Float16" in f"{case.types} {case.kinds}"
        if "Float16" in case.types:
            continue  # no array of them reaches the engine
        names = {value.name for value in case.expected} if not any(case.kinds) else set()
        message = refusal(case)
        if bool(message) != (half or (names <= REFUSED and bool(names))):
            wrong.append(f"{case.expr} of {case.types}: {message or 'taken'}")
    assert not wrong, "\n".join(wrong[:20])


# --- known arguments: folded code is a second implementation ---


def constants() -> Iterator[Case]:
    """The expressions without arguments; a long tuple is taken apart."""
    for row in load_constants():
        kind, value = row.result.type, row.result.value
        if kind.startswith("Tuple{") and kind.count(",") > 1:
            for n, (inner, item) in enumerate(zip(kind[6:-1].split(","), value, strict=True), 1):
                yield Case(f"({row.expr})[{n}]", (), (), (inner,), (item,))
        elif kind != "Nothing" and not kind.startswith("Float16"):
            yield Case(row.expr, (), (), (kind,), (value,))


def with_literals(tables: Iterable[Table], wanted: int) -> Iterator[tuple[Case, Outcome]]:
    """Some rows of every table with the arguments written out, each with the row that it stands for."""
    for case in cases_of(tables):
        every = max(1, len(case.kinds) // wanted)
        for at in range(part_of(case.expr, every), len(case.kinds), every):
            row = Outcome(case, tuple(c[at] for c in case.columns), case.kinds[at], case.expected[at], None)
            known = {var: f"({literal(value)})" for var, value in zip("xyz", row.args, strict=False)}
            expr = re.sub(r"(?<![A-Za-z_])[xyz]\b", lambda m: known.get(m[0], m[0]), case.expr)  # noqa: B023
            yield Case(expr, (), (), (row.kind,), (row.expected,)), row


def problems_with_literals(pairs: Iterable[tuple[Case, Outcome]]) -> tuple[int, list[str]]:
    """Like `problems`, for what `with_literals` made."""
    count, found, rest = 0, [], iter(pairs)
    while batch := list(islice(rest, 80)):
        outcomes = run([case for case, _ in batch])
        for (case, row), outcome in zip(batch, outcomes, strict=True):
            count += 1
            reason = judge(replace(row, got=outcome.got))
            if reason:
                found.append(f"{case.expr}: {reason}")
    return count, found


def constant_problems(every: int) -> tuple[int, list[str]]:
    cases = [case for case in constants() if "Float16" not in case.expr]
    names = [case for case in cases if any(v.name in REFUSED for v in case.expected if isinstance(v, Raised))]
    assert all(refusal(case) for case in names[::every])
    return problems([case for case in cases if case not in names][::every])


def test_sample_of_constants() -> None:
    """Expressions without arguments: all of them are worked out at compile time, as far as that goes."""
    count, found = constant_problems(6)
    assert count > 100
    assert not found, "\n".join(found[:20])


@pytest.mark.slow
def test_constants() -> None:
    count, found = constant_problems(1)
    assert count > 800
    assert not found, "\n".join(found[:20])


def test_sample_of_literals(tables: list[Table]) -> None:
    count, found = problems_with_literals(with_literals(tables[5::50], 2))
    assert count > 200
    assert not found, "\n".join(found[:20])


@pytest.mark.slow
def test_literals(tables: list[Table]) -> None:
    count, found = problems_with_literals(with_literals(tables, 1))
    assert count > 6000
    assert not found, f"{len(found)} of {count}:\n" + "\n".join(found[:20])


def test_literal_forms() -> None:
    whole = [np.int8(-128), np.int64(-(2**63)), np.uint64(2**64 - 1), np.True_]
    floats = [np.float32(1e-45), np.float64(1e300), np.float32("inf"), np.float64("nan"), np.float64(-0.0)]
    for value in (*whole, *floats, np.complex64(complex(-0.0, 2))):
        kind = next(k for k, dtype in DTYPES.items() if dtype is type(value))
        assert problems([Case(literal(value), (), (), (kind,), (value,))]) == (1, [])
