"""Copies for tuning: same layout, same overlap, the caller's arrays untouched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jlkern.errors import TuningError
from jlkern.spans import Span, groups
from jlkern.tuning.scratch import PAGE, ScratchTooLarge, make_scratch, opposite, span

BASE = np.arange(7 * 9 * 5, dtype=np.float64).reshape(7, 9, 5)
LAYOUTS = {
    "C": BASE.copy(),
    "F": np.asfortranarray(BASE),
    "permuted": BASE.copy().transpose(1, 0, 2),
    "offset": BASE.copy()[2:, 3:-1, 1:],
    "strided": BASE.copy()[::2, ::3, ::2],
    "reversed": BASE.copy()[::-1, :, ::-2],
    "scalar": np.array(3.5),
    "empty": np.empty((3, 0, 2)),
    "column": BASE.copy()[:, 0, 0],
    "packed bytes": np.arange(31, dtype=np.uint8)[3:],
}


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_copy_has_the_layout_and_the_place_in_a_page(layout):
    y = LAYOUTS[layout]
    before = y.copy()
    scratch = make_scratch(["y"], [y], ["y"], 1 << 30)
    (copy,) = scratch.args
    assert copy is scratch.outputs["y"]
    assert (copy.shape, copy.dtype) == (y.shape, y.dtype)
    assert np.array_equal(copy, y) and not np.shares_memory(copy, y)
    if y.size:
        assert copy.strides == y.strides
        assert address(copy) % PAGE == address(y) % PAGE
        assert copy.flags.f_contiguous == y.flags.f_contiguous and copy.flags.c_contiguous == y.flags.c_contiguous
    copy[...] = 99
    assert np.array_equal(y, before)
    scratch.restore()
    assert np.array_equal(copy, before)


def test_read_arrays_and_scalars_are_passed_as_they_are():
    x, y = np.ones(4), np.zeros(4)
    scratch = make_scratch(["y", "a", "x"], [y, np.float32(2), x], ["y"], 1 << 30)
    assert scratch.args[1] == np.float32(2) and scratch.args[2] is x
    assert list(scratch.outputs) == ["y"]


def test_overlapping_arguments_overlap_the_same_way():
    base = np.arange(20.0)
    y, x, other = base[:10], base[5:15], base[16:]
    x.flags.writeable = False
    scratch = make_scratch(["y", "x", "other"], [y, x, other], ["y"], 1 << 30)
    cy, cx, co = scratch.args
    assert co is other
    assert address(cx) - address(cy) == address(x) - address(y)
    assert not cx.flags.writeable and cy.flags.writeable
    cy[5:] = -1
    assert np.array_equal(cx[:5], [-1] * 5) and np.array_equal(base, np.arange(20.0))
    scratch.restore(["y"])
    assert np.array_equal(cx, x)


def test_the_same_array_twice_and_views_of_other_types():
    base = np.zeros(8)
    scratch = make_scratch(["y", "z", "bits"], [base, base, base.view(np.uint64)], ["y", "bits"], 1 << 30)
    a, b, bits = scratch.args
    a[3] = 1.0
    assert b[3] == 1.0 and bits[3] == np.float64(1).view(np.uint64) and not base.any()
    scratch.restore(["bits"])
    assert not a.any()


def test_interleaved_arrays_keep_their_places():
    base = np.arange(12.0).reshape(3, 4)
    even, odd = base[:, ::2], base[:, 1::2]
    scratch = make_scratch(["even", "odd"], [even, odd], ["even"], 1 << 30)
    ce, co = scratch.args
    assert address(co) - address(ce) == 8 and not np.shares_memory(ce, co)
    ce[...] = -1
    assert np.array_equal(co, odd)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12)), min_size=1, max_size=8), st.data())
@settings(max_examples=150)
def test_groups_hold_exactly_what_is_connected_to_a_written_one(parts, data):
    spans = [Span(low, low + size) for low, size in parts]
    written = data.draw(st.sets(st.integers(0, len(spans) - 1), min_size=1))
    found = groups(spans, written)
    flat = [i for g in found for i in g]
    assert len(flat) == len(set(flat)) and written <= set(flat)
    for g in found:
        assert set(g) & written
        bytes_of = [set(range(spans[i].low, spans[i].high)) for i in g]
        outside = [set(range(s.low, s.high)) for i, s in enumerate(spans) if i not in g]
        assert not any(a & b for a in bytes_of for b in outside)
        reached, todo = {g[0]}, [g[0]]
        while todo:
            i = todo.pop()
            new = {j for j in g if j not in reached and spans[i].low < spans[j].high and spans[j].low < spans[i].high}
            reached |= new
            todo += new
        assert reached == set(g)


@given(st.data())
@settings(max_examples=100)
def test_span_encloses_exactly_the_elements(data):
    base = np.zeros((6, 5, 4))
    slices = tuple(
        slice(*data.draw(st.tuples(st.integers(-n, n), st.integers(-n, n), st.sampled_from([-2, -1, 1, 2]))))
        for n in base.shape
    )
    view = base[slices]
    if view.size:
        flags = np.zeros_like(base)
        flags[slices] = 1
        places = np.flatnonzero(flags)
        low = address(base) + 8 * int(places[0])
        assert span(view) == Span(low, address(base) + 8 * int(places[-1]) + 8)


def test_memory_is_bounded():
    y = np.zeros(1000)
    with pytest.raises(ScratchTooLarge, match=r"copies of y, JLKERN_SCRATCH_LIMIT is 10000"):
        make_scratch(["y"], [y], ["y"], 10_000)
    assert make_scratch(["y"], [y], ["y"], 30_000).bytes >= 16_000


def test_what_can_not_be_copied_is_refused():
    sliding = np.lib.stride_tricks.sliding_window_view(np.arange(10.0), 3, writeable=True)
    with pytest.raises(TuningError, match="elements of the written array y overlap each other"):
        make_scratch(["y"], [sliding], ["y"], 1 << 30)
    make_scratch(["y", "x"], [np.zeros(3), sliding], ["y"], 1 << 30)

    class Device:
        __cuda_array_interface__ = {}

    with pytest.raises(TuningError, match=r"argument y is a .*Device"):
        make_scratch(["y"], [Device()], ["y"], 1 << 30)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64"])
def test_poison_differs_everywhere(dtype):
    reference = np.array([0, 1, 1, 0], dtype)
    if np.dtype(dtype).kind in "fc":
        reference[0], reference[1] = np.nan, np.inf
    y, z = np.zeros(4, dtype), np.zeros(4, dtype)
    scratch = make_scratch(["y", "z", "half"], [y, z, z[:2]], ["y", "z"], 1 << 30)
    scratch.poison(["y", "z"], {"y": reference, "z": reference})
    got = scratch.outputs["y"]
    same = (got == reference) | ((got != got) & (reference != reference))
    assert not same.any()
    assert np.array_equal(scratch.outputs["z"], z)  # it shares memory with another argument
    assert opposite(reference).dtype == reference.dtype


def test_restorer_touches_only_what_is_named():
    y, z = np.zeros(3), np.zeros(3)
    scratch = make_scratch(["y", "z"], [y, z], ["y", "z"], 1 << 30)
    assert scratch.restorer([]) is None
    restore = scratch.restorer(["y"])
    scratch.outputs["y"][...] = 1
    scratch.outputs["z"][...] = 1
    restore()
    assert not scratch.outputs["y"].any() and scratch.outputs["z"].all()
