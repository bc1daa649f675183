"""Guards that become bounds of the loops over work-items, against the SIMT form run item by item."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import simt

from jlkern.engines.base import CompileRequest
from jlkern.engines.numba import engine
from jlkern.engines.numba.lower.kernel import lower_kernel
from jlkern.signature import classify
from jlkern.source import Origin, load_source

SIZES = (13, 7)
GROUP = (4, 3)


def text_and_result(text: str, n: int) -> str:
    """Run a 2-dimensional kernel of `y` and `n` both ways; return what was emitted."""
    source = load_source(text, Origin(None, 1, False), ())
    wanted, got = (np.zeros(SIZES, np.int64, order="F") for _ in range(2))
    args: list[Any] = [got, np.int64(n)]
    signature = tuple(classify(name, a) for name, a in zip(source.names, args, strict=True))
    kernel = lower_kernel(source, signature, {}, GROUP, source.effects.written, False)
    y, limit = kernel.params
    flat: dict[Any, Any] = {y.memory.name: wanted.reshape(-1, order="F"), (limit.name, "arg", 0): n}  # type: ignore[union-attr]
    for d, size in enumerate(SIZES):
        flat[y.memory.name, "size", d] = size  # type: ignore[union-attr]
        flat[y.memory.name, "stride", d] = (1, SIZES[0])[d]  # type: ignore[union-attr]
    simt.run(kernel, flat, SIZES)
    launcher = engine().compile(CompileRequest(source, signature, {}, GROUP, 2, source.effects.written))
    assert launcher.fire(SIZES)(*args) == 0
    np.testing.assert_array_equal(got, flat[y.memory.name].reshape(SIZES, order="F"), err_msg=f"n = {n}\n{text}")
    return launcher.text  # type: ignore[attr-defined,no-any-return]


def kernel(cond: str, inside: str = "y[i, j] = 10i + j", before: str = "") -> str:
    return f"""@kernel inbounds = true function k!(y, n)
        i, j = @index(Global, NTuple)
        a, b = @index(Local, NTuple)
        {before}
        if {cond}
            {inside}
        end
    end"""


CONDITIONS = [
    f"{index} {op} {limit}"
    for index, op, limit in itertools.product(
        ("i", "j - 2", "a + 1", "1 + b"), ("<", "<=", ">", ">=", "=="), ("n", "size(y, 1) - 4")
    )
]


@pytest.mark.parametrize("cond", CONDITIONS)
def test_each_comparison_becomes_a_bound(cond: str) -> None:
    left, op, right = cond.partition(next(o for o in ("<=", ">=", "==", "<", ">") if o in cond))
    swapped = f"{right} {op.translate(str.maketrans('<>', '><'))} {left}"
    for n in (-1, 0, 1, 3, 6, 20):
        emitted = text_and_result(kernel(cond), n)
        assert "if " not in emitted and ("_low" in emitted or "_high" in emitted)
        assert text_and_result(kernel(swapped), n).count("sub_sat") == emitted.count("sub_sat")


@pytest.mark.parametrize("n", [2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1])
@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "=="])
def test_bounds_at_the_ends_of_int64(op: str, n: int) -> None:
    for index in ("i - 9", "a + 9", "j + 3"):
        text_and_result(kernel(f"{index} {op} n"), n)


@pytest.mark.parametrize("cond", [
    "1 < i < size(y, 1) && 1 < j < size(y, 2)", "i > 1 && (i + j) % 3 == n && j <= n", "i < n || j < n", "!(i < n)",
    "i * 2 < n", "i != n", "i < j", "i < n && n < j && a != b", "i + n < 5", "i < n % 5 + 2",
])  # fmt: skip
def test_conditions_that_are_bounds_in_part_or_not(cond: str) -> None:
    for n in (-3, 0, 2, 5):
        text_and_result(kernel(cond), n)


@pytest.mark.parametrize("inside", [
    "if j < n\n y[i, j] = 1\n end", "m = n + 1\n if j < m\n y[i, j] = m\n end",
    "k = 0\n while k < i\n k += 2\n end\n y[i, j] = k",
    "for k in 1:3\n y[i, j] += k\n end", "i > 3 ? (y[i, j] = 1) : (y[i, j] = 2)",
])  # fmt: skip
def test_what_is_guarded(inside: str) -> None:
    for n in (0, 3, 5):
        text_and_result(kernel("i < n", inside), n)
        text_and_result(kernel("i < m", inside, "m = n - 1\n q = m * i"), n)


@pytest.mark.parametrize("body", [
    "if i > n\n y[i, j] = 1\n else\n y[i, j] = 2\n end",
    "y[i, j] = 5\n if i > n\n y[i, j] = 1\n end",
    "s = 0\n if i > n\n s = i\n end\n y[i, j] = s",
    "m = n\n if i == 2\n m = 5\n end\n if j < m\n y[i, j] = m\n end",
])  # fmt: skip
def test_other_branches_stay(body: str) -> None:
    text = f"@kernel inbounds = true function k!(y, n)\n i, j = @index(Global, NTuple)\n {body}\n end"
    for n in (-1, 2, 6):
        assert "sub_sat" not in text_and_result(text, n)


@pytest.mark.parametrize("body", [
    "h = 2\n while h > 0\n if a <= h\n t[a, b] += t[a + h, b]\n end\n @synchronize\n h >>= 1\n end\n"
    "y[i, j] = t[1, b] + a",
    "s = 0\n if a <= n\n s = t[5 - a, b]\n end\n @synchronize\n if a == 1\n y[i, j] = s + t[2, b]\n end",
    "s = 0\n for k in 1:3\n if a > k\n s += t[k, b]\n end\n @synchronize\n"
    "if a == k\n t[a, b] += 1\n end\n @synchronize\n end\n y[i, j] = s",
    "c = n > 2 ? a : b\n @synchronize\n if c > 2\n y[i, j] = c\n end",
])  # fmt: skip
def test_regions_between_barriers(body: str) -> None:
    text = f"""@kernel inbounds = true function k!(y, n)
        i, j = @index(Global, NTuple)
        a, b = @index(Local, NTuple)
        t = @localmem Int64 (8, 3)
        if a == 1 && b == 1
            for q in 1:8, r in 1:3
                t[q, r] = 7
            end
        end
        @synchronize
        t[a, b] = 10i + j
        @synchronize
        {body}
    end"""
    for n in (0, 1, 3):
        text_and_result(text, n)
