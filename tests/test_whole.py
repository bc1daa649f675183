"""Launches over whole work-groups, and over work-groups of which some are cut: the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jlkern.engines.base import CompileRequest
from jlkern.engines.numba import engine
from jlkern.engines.numba.emit.whole import text_for
from jlkern.errors import BoundsError
from jlkern.signature import classify
from jlkern.source import Origin, load_source

REVERSE = """@kernel inbounds = true function reverse!(y, @Const(x))
    i, j = @index(Global, NTuple)
    a, b = @index(Local, NTuple)
    t = @localmem Int64 (4, 3)
    m, n = min(4, size(x, 1) - i + a), min(3, size(x, 2) - j + b)
    t[m + 1 - a, n + 1 - b] = x[i, j]
    @synchronize
    y[i, j] = t[a, b]
end"""


def launcher_of(text: str, args: list[Any], group: tuple[int, ...], threads: str = "one") -> Any:
    source = load_source(text, Origin(None, 1, False), ())
    signature = tuple(classify(name, a) for name, a in zip(source.names, args, strict=True))
    request = CompileRequest(source, signature, {}, group, len(group), source.effects.written, (("threads", threads),))
    return engine().compile(request)


@pytest.mark.parametrize("threads", ["one", "all"])
@pytest.mark.parametrize("size", [(8, 9), (4, 3), (9, 9), (8, 10), (11, 8), (3, 2), (1, 1), (5, 2), (40, 31)])
def test_whole_and_cut_groups(size: tuple[int, int], threads: str) -> None:
    x = np.arange(size[0] * size[1]).reshape(size, order="F")
    y, wanted = np.zeros_like(x), np.zeros_like(x)
    for i in range(0, size[0], 4):
        for j in range(0, size[1], 3):
            wanted[i : i + 4, j : j + 3] = x[i : i + 4, j : j + 3][::-1, ::-1]
    launcher = launcher_of(REVERSE, [y, x], (4, 3), threads)
    assert launcher.fire(size)(y, x) == 0
    np.testing.assert_array_equal(y, wanted)


def test_one_launcher_for_all_ndranges() -> None:
    x = np.arange(24 * 21).reshape((24, 21), order="F")
    y = np.zeros_like(x)
    launcher = launcher_of(REVERSE, [y, x], (4, 3))
    whole, mixed, small = (text_for(launcher.text, (4, 3), size) for size in ((24, 21), (23, 21), (3, 21)))
    assert "_h0 = 4\n" in whole and "_h0 = least(" not in whole and "def whole(" not in whole
    assert "def whole(" in mixed and "def cut(" in mixed and small == launcher.text
    fires = {size: launcher.fire(size) for size in ((24, 21), (23, 21), (24, 20), (2, 2))}
    for size, fire in fires.items():
        got, of = np.zeros(size, np.int64, order="F"), np.asfortranarray(x[: size[0], : size[1]])
        assert fire(got, of) == 0
        np.testing.assert_array_equal(got[:4, :3], of[:4, :3][::-1, ::-1])


def test_kernels_without_memory_of_their_own_have_one_text() -> None:
    text = "@kernel function k!(y)\n i = @index(Global)\n y[i] = i\n end"
    launcher = launcher_of(text, [np.zeros(8)], (4,))
    assert text_for(launcher.text, (4,), (8,)) == launcher.text


def test_errors_of_whole_and_of_cut_groups() -> None:
    text = """@kernel function k!(y, @Const(x))
        i = @index(Global)
        t = @localmem Float64 (4,)
        t[@index(Local)] = x[i]
        @synchronize
        y[i] = t[1]
    end"""
    y = np.zeros(10)
    for short in (2, 9):  # the first group is whole, the last is cut
        launcher = launcher_of(text, [y, y], (4,))
        fire = launcher.fire((10,))
        with pytest.raises(BoundsError, match=rf"`x\[{short + 1}\]`"):
            launcher.fail(fire, fire(y, np.zeros(short)))
