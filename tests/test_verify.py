"""What counts as the same result."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jlkern.errors import OptionError
from jlkern.tuning import verify
from jlkern.tuning.verify import (
    Limits,
    check_compare,
    compare_outputs,
    default_limits,
    difference,
    given_limits,
    reduction_length,
)

F32, F64 = np.dtype("float32"), np.dtype("float64")


@given(hnp.arrays(st.sampled_from(["f4", "f8", "c8", "i4", "u8", "b1", "f2"]), hnp.array_shapes(max_dims=3)))
@settings(max_examples=80)
def test_an_array_agrees_with_itself_whatever_is_in_it(array):
    assert difference("y", array.copy(), array) is None


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "bool", "int32"])
def test_integers_and_bools_are_exact(dtype):
    want = np.array([0, 1, 1], dtype)
    got = want.copy()
    got[2] = 0
    problem = difference("y", got, want, length=10**6)
    assert problem is not None and problem.startswith(f"y[2] is {got[2]}, the reference has {want[2]}; 1 of 3 differ")


def test_neighbouring_large_integers_are_told_apart():
    want = np.array([2**63, 2**64 - 1], np.uint64)
    assert difference("y", want - np.uint64(1), want) is not None
    want = np.array([2**62], np.int64)
    assert difference("y", want + 1, want) is not None


def test_the_first_index_and_both_values_are_named():
    want = np.zeros((3, 4), np.float32)
    got = want.copy()
    got[1, 2], got[2, 0] = 5, 7
    assert difference("y", got, want) == "y[1, 2] is 5.0, the reference has 0.0; 2 of 12 differ, by up to 7"
    # The first in memory, when both are column-major.
    got, want = np.asfortranarray(got), np.asfortranarray(want)
    assert difference("y", got, want) == "y[2, 0] is 7.0, the reference has 0.0; 2 of 12 differ, by up to 7"
    assert difference("y", got, want.copy(order="C")).startswith("y[1, 2] is 5.0")
    assert difference("y", np.float32(1), np.float32(2)).startswith("y is 1.0, the reference has 2.0")
    assert "shape" in difference("y", np.zeros(3), np.zeros(4))


def test_chunks_give_the_same_message(monkeypatch):
    want = np.arange(1000.0)
    got = want.copy()
    got[[137, 800]] += [1, 2]
    whole = difference("y", got, want)
    monkeypatch.setattr(verify, "CHUNK", 100)
    assert difference("y", got, want) == whole and "y[137]" in whole and "2 of 1000" in whole


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_inf_have_their_places(bad):
    want = np.array([1.0, bad, 3.0])
    assert difference("y", want.copy(), want) is None
    assert difference("y", np.array([1.0, 2.0, 3.0]), want).startswith("y[1] is 2.0, the reference has ")
    assert difference("y", np.array([bad, bad, 3.0]), want).startswith("y[0] is ")
    assert difference("y", np.array([1.0, -bad if bad == bad else np.inf, 3.0]), want) is not None
    # A tolerance does not make infinities equal to numbers.
    assert difference("y", np.array([1.0, 2.0, 3.0]), want, Limits(1.0, 1e300)) is not None


def test_complex_numbers():
    want = np.array([1 + 2j, complex(np.nan, 1), 3], np.complex64)
    got = np.array([1 + 2j, complex(0, np.nan), 3 * (1 + 1e-7)], np.complex64)
    assert difference("y", got, want) is None
    got[0] += 0.1j
    assert difference("y", got, want).startswith("y[0] is")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_reordered_sum_passes_and_a_lost_term_does_not(dtype):
    rng = np.random.default_rng(0)
    n = 256 if dtype is np.float16 else 4096
    terms = rng.standard_normal((64, n)).astype(dtype)

    def total(order):
        acc = np.zeros(64, dtype)
        for i in order:
            acc = (acc + terms[:, i]).astype(dtype)
        return acc

    want, other = total(range(n)), total(reversed(range(n)))
    assert difference("y", other, want, length=n) is None
    assert not np.array_equal(other, want)
    short = total(range(n - 1))
    assert difference("y", short, want, length=n) is not None


def test_limits_grow_with_length_and_shrink_with_precision():
    assert default_limits(F32, 10**4).relative > default_limits(F32, 10).relative > default_limits(F64, 10**6).relative
    assert default_limits(F32, 10**12).relative <= 1e-2
    assert default_limits(np.dtype("complex128"), 10) == default_limits(F64, 10)


def test_reduction_length_sees_dimensions_and_ratios():
    assert reduction_length([np.zeros((8, 300)), np.zeros((300, 8))], np.zeros((8, 8))) == 300
    assert reduction_length([np.zeros((100, 100))], np.zeros(10)) == 1000
    assert reduction_length([], np.zeros(())) == 1


def test_tolerances_of_the_user():
    want, got = np.array([100.0, 0.0]), np.array([101.0, 0.0])
    assert difference("y", got, want, given_limits(0.02, "y")) is None
    assert difference("y", got, want, given_limits(0.001, "y")) is not None
    # (relative, absolute): the absolute part does not scale with the output.
    assert difference("y", np.array([100.0, 0.5]), want, given_limits((0.0, 0.4), "y")).startswith("y[1]")
    assert given_limits({"x": 0.1}, "y") is None
    assert given_limits({"y": (0.1, 0.2)}, "y") == Limits(0.1, 0.2)
    # Integers may differ once the user says so.
    assert difference("y", np.array([3]), np.array([4]), given_limits((0, 1), "y")) is None
    for wrong in (-1.0, "1", (1,), (1, 2, 3), True, (0.1, -1)):
        with pytest.raises(OptionError, match="tolerance="):
            given_limits(wrong, "y")


def test_compare_maps_and_ignores_outputs():
    want = {"partial": np.array([1.0, 2.0, 3.0]), "scratch": np.array([7]), "y": np.array([1])}
    got = {"partial": np.array([3.0, 3.0, 0.0]), "scratch": np.array([0]), "y": np.array([1])}
    assert compare_outputs(got, want, {}) is not None
    assert compare_outputs(got, want, {}, {"partial": np.sum, "scratch": None}) is None
    problem = compare_outputs(got, want, {}, {"partial": np.max, "scratch": None, "y": None})
    assert problem is None
    problem = compare_outputs(got, want, {}, {"partial": np.min, "scratch": None})
    assert problem is not None and problem.startswith("min(partial) is 0.0, the reference has 1.0")


def test_compare_is_checked():
    check_compare({"y": None, "z": np.sum}, ["y", "z"])
    with pytest.raises(OptionError, match="'w', which is none of the outputs y, z"):
        check_compare({"w": None}, ["z", "y"])
    with pytest.raises(OptionError, match="must be a function or None"):
        check_compare({"y": 3}, ["y"])


def test_root_mean_square_ignores_what_is_not_finite():
    want = np.array([1.0, np.inf, np.nan, 1.0])
    got = want + np.array([0, 0, 0, 0.5])
    assert difference("y", got, want, Limits(0, 0, 0.4)) is not None
    assert difference("y", got, want, Limits(0, 0, 0.6)) is None
    assert math.isfinite(verify._rms(np.array([1e300, 1e300])))


def test_a_more_precise_reference_is_compared_at_the_outputs_precision():
    want = np.array([1 / 3, 2 / 3])
    assert difference("y", want.astype(np.float32), want) is None
    assert difference("y", want, want.astype(np.float32)) is None
    assert difference("y", np.array([1, 2]), np.array([1.0, 2.0])) is None
    assert difference("y", np.array([1, 2]), np.array([1.0, 2.1])) is not None


def test_what_compare_makes_of_an_output_is_as_precise_as_the_output():
    want = np.random.default_rng(0).random(4000).astype(F32)
    got = want * np.float32(1 + 3e-7)
    wide = {"y": lambda y: y.sum(dtype=np.float64)}
    assert compare_outputs({"y": got}, {"y": want}, {"y": 1}, wide) is None
    assert compare_outputs({"y": got * np.float32(1.01)}, {"y": want}, {"y": 1}, wide) is not None
    # what is made an integer was meant to be the same
    assert compare_outputs({"y": want + 1}, {"y": want}, {"y": 1}, {"y": lambda y: y.astype(int)}) is not None
    assert compare_outputs({"y": got.astype(F64)}, {"y": want.astype(F64)}, {"y": 1}, wide) is not None
