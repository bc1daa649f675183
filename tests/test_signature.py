"""What arguments are: `classify` tells types and layouts apart and refuses everything that a kernel cannot read."""

from __future__ import annotations

import enum
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlkern.errors import ArgumentError
from jlkern.signature import (
    DTYPES,
    Array,
    ArrayArg,
    FunctionArg,
    ScalarArg,
    TupleArg,
    TypeArg,
    Val,
    ValArg,
    check_written,
    classify,
    julia,
    scalar_dtype,
)

A = np.arange(24, dtype=np.float32).reshape(4, 6)
F = np.asfortranarray(A)


@pytest.mark.parametrize(
    ("array", "ndim", "layout"),
    [
        (A, 2, "C"),
        (F, 2, "F"),
        (A[:, ::2], 2, "S"),
        (A[::-1], 2, "S"),
        (A[1:3], 2, "C"),
        (A.T, 2, "F"),
        (A[:, 1:3], 2, "S"),
        (A[:, 2], 1, "S"),
        (A[1], 1, "F"),
        (A[0, 0:1], 1, "F"),
        (np.zeros(()), 0, "F"),
        (np.zeros((3, 0)), 2, "F"),
        (np.zeros((1, 5)), 2, "F"),
        (np.zeros((2, 3, 4)).transpose(1, 0, 2), 3, "S"),
        (np.broadcast_to(np.float32(1), (3, 3)), 2, "S"),
    ],
    ids=str,
)
def test_layouts(array: np.ndarray[Any, Any], ndim: int, layout: str) -> None:
    assert classify("x", array) == ArrayArg(array.dtype.name, ndim, layout)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_as_array_scalar_and_type(name: str) -> None:
    dtype = np.dtype(name)
    assert classify("x", np.zeros(3, dtype)) == ArrayArg(name, 1, "F")
    assert classify("x", dtype.type(1)) == ScalarArg(name)
    assert classify("x", dtype) == classify("x", dtype.type) == TypeArg(name)


def test_the_two_64_bit_ints_of_c_are_one() -> None:
    assert classify("x", np.zeros(3, np.longlong)) == classify("x", np.zeros(3, np.int_)) == ArrayArg("int64", 1, "F")


def test_python_numbers() -> None:
    kinds = [classify("x", value) for value in (True, 1, 1.0, 1j)]
    assert kinds == [ScalarArg("bool"), ScalarArg("int64"), ScalarArg("float64"), ScalarArg("complex128")]
    assert classify("x", -(2**63)) == classify("x", 2**63 - 1) == ScalarArg("int64")


def test_tuples_types_functions_constants() -> None:
    assert classify("x", (1, np.float32(2), (True,))) == TupleArg(
        (ScalarArg("int64"), ScalarArg("float32"), TupleArg((ScalarArg("bool"),)))
    )
    assert classify("x", ()) == TupleArg(())
    assert classify("x", float) == TypeArg("float64")
    assert classify("x", julia("abs2")) == FunctionArg("abs2")
    assert classify("x", Val(3)) == ValArg(3)


def test_constants_of_different_types_are_different() -> None:
    assert len({ValArg(1), ValArg(1.0), ValArg(True), ValArg((1,)), ValArg((1.0,))}) == 5


Point = namedtuple("Point", "x y")


class Colour(enum.IntEnum):
    RED = 1


class Unit(np.ndarray):  # as astropy's and pint's quantities
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return NotImplemented


class Plain(np.ndarray):
    pass


raw = np.zeros(64, np.uint8)
HOSTILE = {
    "list": ([1.0, 2.0], "np.array"),
    "range": (range(3), "np.array"),
    "None": (None, "array or a number"),
    "str": ("text", "jlkern.julia"),
    "bytes": (b"text", "jlkern.julia"),
    "object": (object(), "is no argument"),
    "dict": ({}, "is no argument"),
    "function": (abs, "jlkern.julia"),
    "class": (dict, "number type"),
    "abstract class": (np.floating, "number type"),
    "too large": (2**63, "Int64"),
    "too small": (-(2**63) - 1, "Int64"),
    "longdouble": (np.longdouble(1), "longdouble|float128"),
    "datetime scalar": (np.datetime64("2020-01-01"), "not a number"),
    "str scalar": (np.str_("x"), "not a number"),
    "void scalar": (np.zeros(1, "i4,f4")[0], "not a number"),
    "int enum": (Colour.RED, r"int\(\.\.\.\)"),
    "named tuple": (Point(1, 2), "tuple"),
    "tuple of arrays": ((A,), "numbers"),
    "tuple of text": (("a",), "text"),
    "array of longdouble": (np.zeros(3, np.longdouble), "longdouble|float128"),
    "array of objects": (np.array([None]), "objects"),
    "array of text": (np.array(["a"]), "text"),
    "array of bytes": (np.array([b"a"]), "text"),
    "array of dates": (np.zeros(3, "M8[s]"), "int64"),
    "array of durations": (np.zeros(3, "m8[s]"), "int64"),
    "structured": (np.zeros(3, "i4,f4"), "fields"),
    "big-endian": (np.zeros(3, ">f4"), "byte order"),
    "unaligned": (raw[1:33].view(np.float32), "aligned"),
    "packed field": (np.zeros(4, np.dtype([("a", "i1"), ("b", "f4")]))["b"], "aligned"),
    "field with odd stride": (np.zeros(4, np.dtype([("a", "c8"), ("b", "f4")]))["a"], "item size"),
    "masked": (np.ma.masked_array([1.0], [True]), "mask"),
    "masked scalar": (np.ma.masked, "mask"),
    "quantity": (np.zeros(3).view(Unit), "view"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_no_kernel_can_take(case: str) -> None:
    value, advice = HOSTILE[case]
    with pytest.raises(ArgumentError, match=advice) as raised:
        classify("weights", value)
    assert "'weights'" in str(raised.value)
    assert isinstance(raised.value, TypeError)


def test_fields_with_whole_strides_are_views() -> None:
    pairs = np.zeros(4, np.dtype([("a", "f4"), ("b", "f4")]))
    assert classify("x", pairs["b"]) == ArrayArg("float32", 1, "S")


@pytest.mark.parametrize("make", [np.matrix, lambda a: a.view(Plain)], ids=["matrix", "subclass"])
def test_plain_subclasses_are_arrays(make: Any) -> None:
    assert classify("x", make(A)) == ArrayArg("float32", 2, "C")


def test_memmap_is_an_array(tmp_path: Any) -> None:
    array = np.memmap(tmp_path / "x", np.float32, "w+", shape=(3,))
    assert classify("x", array) == ArrayArg("float32", 1, "F")


def test_outputs_must_be_writable_and_their_own() -> None:
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    spread = np.lib.stride_tricks.as_strided(np.zeros(1), (3,), (0,))
    for value, advice in [(frozen, "read-only"), (spread, "share memory"), (1.0, "must be an array")]:
        with pytest.raises(ArgumentError, match=advice):
            check_written("y", value)
    for fine in (
        np.zeros(3),
        np.zeros((0, 3)),
        np.zeros((1, 3))[:, ::-1],
        np.lib.stride_tricks.as_strided(A, (1,), (0,)),
    ):
        check_written("y", fine)


def test_scalar_dtypes() -> None:
    assert scalar_dtype(np.float32) == scalar_dtype(np.dtype("f4")) == "float32"
    assert scalar_dtype(bool) == "bool"
    for other in (np.floating, np.str_, np.longdouble, np.dtype(">f4"), str, 3, None):
        assert scalar_dtype(other) is None


def test_arrays_by_description() -> None:
    made = Array(np.float32, 5)
    assert (made.dtype, made.shape, made.order) == ("float32", (5,), "C")
    for order, layout in (("C", "C"), ("F", "F"), ("S", "S")):
        array = Array("int16", (3, 4), order).empty()  # type: ignore[arg-type]
        assert array.shape == (3, 4)
        assert classify("x", array) == ArrayArg("int16", 2, layout)  # type: ignore[arg-type]
    for wrong in (("nothing", 3), ("f4", -1), ("f4", (1.5,)), ("M8[s]", 3), ("f4", 3, "A")):
        with pytest.raises(ArgumentError):
            Array(*wrong)  # type: ignore[arg-type]


def test_functions_and_constants_are_checked() -> None:
    for name in ("abs2", "Base.abs2", "+", "÷", "f!"):
        assert julia(name).name == name
    for name in ("", "a b", "f(x)", "1x", 3):
        with pytest.raises(ArgumentError):
            julia(name)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        Val([1])  # type: ignore[arg-type]


@given(st.integers())
def test_any_int_is_int64_or_refused(value: int) -> None:
    if -(2**63) <= value < 2**63:
        assert classify("n", value) == ScalarArg("int64")
    else:
        with pytest.raises(ArgumentError):
            classify("n", value)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, 2, -1])), min_size=1, max_size=4), st.randoms())
def test_a_contiguous_layout_needs_no_copy(dims: list[tuple[int, int]], random: Any) -> None:
    axes = list(range(len(dims)))
    random.shuffle(axes)
    array = np.zeros([6] * len(dims)).transpose(axes)[tuple(slice(1, 1 + n, step) for n, step in dims)]
    kind = classify("x", array)
    assert isinstance(kind, ArrayArg)
    if kind.layout == "S":
        assert not array.flags.forc
    else:
        order = kind.layout
        assert array.size == 0 or np.shares_memory(array, array.ravel(order))
