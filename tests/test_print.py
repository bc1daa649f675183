"""`@print` in kernels."""

from __future__ import annotations

import numpy as np
import pytest

import jlkern
from jlkern.errors import UnsupportedError


def test_print_shows_texts_and_numbers_as_julia_does(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = jlkern.from_source(
        r"""
        @kernel function show!(y, @Const(x), n)
            i = @index(Global)
            y[i] = 2x[i]
            if i == 2
                @print("x[", i, "] = ", x[i], " ", y[i] > 3, " ", n, " ", (i, 1.0), " ", UInt8(200), "\n")
            end
        end
        """
    )
    x = np.array([0.5, 2.5, 1e20], np.float32)
    y = np.zeros(3, np.float32)
    kernel(y, x, np.int8(-3))
    assert capsys.readouterr().out == "x[2] = 2.5 true -3 (2, 1.0) 200\n"
    np.testing.assert_array_equal(y, 2 * x)


def test_lines_of_many_threads_stay_whole(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = jlkern.from_source(
        r"""
        @kernel function lines!(y)
            i = @index(Global)
            s = 0.0
            for k in 1:i
                s += sqrt(k)
            end
            y[i] = s
            @print("item ", i, " has $(i + 1)\n")
        end
        """
    )
    kernel(np.zeros(3000))
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines, key=lambda line: int(line.split()[1])) == [f"item {i} has {i + 1}" for i in range(1, 3001)]


def test_what_is_no_number_is_refused() -> None:
    kernel = jlkern.from_source("@kernel function f!(y)\n i = @index(Global)\n y[i] = 1\n @print(y)\nend")
    with pytest.raises(UnsupportedError, match="@print of a"):
        kernel(np.zeros(3))
