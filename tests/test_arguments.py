"""Every kind of NumPy input, through real kernels: the right result, or an `ArgumentError` and nothing is touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jlkern

Array = np.ndarray[Any, Any]


@jlkern.kernel
def scale(y: Any, x: Any, a: Any) -> None:
    """
    @kernel function scale!(y, @Const(x), a)
        i = @index(Global)
        y[i] = a * x[i]
    end
    """


@jlkern.kernel
def add_columns(y: Any, x: Any) -> None:
    """
    @kernel function add_columns!(y, @Const(x))
        i, j = @index(Global, NTuple)
        y[i, j] = x[i, j] + 10 * i + 100 * j
    end
    """


@jlkern.kernel(ndrange="y")
def shift(y: Any, x: Any) -> None:
    """
    @kernel function shift!(y, @Const(x))
        i = @index(Global)
        if i < length(x)
            y[i] = x[i + 1]
        end
    end
    """


def columns(x: Array) -> Array:
    """What `add_columns` computes: Julia's `x[i, j]` is NumPy's `x[i - 1, j - 1]`."""
    rows, cols = np.indices(x.shape) + 1
    return np.asarray(x) + 10 * rows + 100 * cols


BASE = np.arange(48, dtype=np.float64).reshape(6, 8)

VIEWS: dict[str, Callable[[Array], Array]] = {
    "C": lambda b: b,
    "F": np.asfortranarray,
    "transposed": lambda b: b.T,
    "offset": lambda b: b[2:5],
    "offset both ways": lambda b: b[1:4, 2:6],
    "strided": lambda b: b[::2, ::3],
    "reversed": lambda b: b[::-1],
    "reversed columns": lambda b: b[:, ::-1],
    "reversed all": lambda b: b[::-2, ::-1],
    "one row": lambda b: b[1:2],
    "one column": lambda b: b[:, 3:4],
    "empty": lambda b: b[:0],
    "empty columns": lambda b: b[:, 4:4],
    "diagonal blocks": lambda b: np.lib.stride_tricks.as_strided(b, (3, 4), (9 * 8 * 2 // 2, 8)),
    "swapped axes of 3 dimensions": lambda b: b.reshape(2, 3, 8).transpose(2, 0, 1)[:, 0],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("out", ["C", "F", "strided"])
def test_layouts(view: str, out: str) -> None:
    base = BASE.copy()
    x = VIEWS[view](base)
    big = np.zeros((2 * x.shape[0], 2 * x.shape[1]))
    y = big[1::2, ::2] if out == "strided" else np.zeros(x.shape, order=out)  # type: ignore[call-overload]
    for _ in range(2):
        add_columns(y, x)
        assert (y == columns(x)).all()
    assert (base == BASE).all()
    if out == "strided":
        assert big.sum() == y.sum()


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_ints(dtype: str) -> None:
    x = np.arange(10, dtype=dtype)
    y = np.zeros(10, dtype)
    scale(y, x, np.dtype(dtype).type(3))
    assert (y == 3 * x).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_floats(dtype: str) -> None:
    x = np.arange(10).astype(dtype) / 2
    y = np.zeros(10, dtype)
    scale(y, x, np.dtype(dtype).type(3))
    assert (y == 3 * x).all()


def test_half_precision_works_or_is_refused_as_an_argument() -> None:
    x = np.arange(4).astype(np.float16)
    y = np.zeros(4, np.float16)
    for _ in range(2):
        try:
            scale(y, x, np.float16(2))
        except jlkern.ArgumentError as problem:
            assert "float16" in str(problem) and "np.float32" in str(problem)
            assert (y == 0).all()
        else:
            assert (y == 2 * x).all()


def test_bools() -> None:
    x = np.array([True, False, True])
    y = np.zeros(3, np.int64)
    scale(y, x, 3)
    assert (y == [3, 0, 3]).all()
    scale(y, np.arange(3), True)
    assert (y == [0, 1, 2]).all()
    scale(y, np.arange(3), np.False_)
    assert (y == 0).all()


def test_python_numbers() -> None:
    x, y = np.arange(4.0), np.zeros(4)
    for a in (2, 2.0, True, np.float32(2), np.int8(2), np.uint64(2)):
        scale(y, x, a)
        assert (y == float(a) * x).all()
    z = np.zeros(4, complex)
    scale(z, x, 2j)
    assert (z == 2j * x).all()


def test_the_ends_of_int64() -> None:
    x, y = np.ones(2, np.int64), np.zeros(2, np.int64)
    for a in (-(2**63), 2**63 - 1):
        scale(y, x, a)
        assert (y == a).all()
    for a in (2**63, -(2**63) - 1, 10**30):
        for _ in range(2):
            with pytest.raises(jlkern.ArgumentError, match="Int64"):
                scale(y, x, a)
    unsigned = np.zeros(2, np.uint64)
    scale(unsigned, np.ones(2, np.uint64), np.uint64(2**64 - 1))
    assert (unsigned == 2**64 - 1).all()


def test_0d_arrays() -> None:
    x, y = np.array(3.0), np.array(0.0)
    for _ in range(2):
        scale(y, x, 2.0)
        assert y == 6


def test_empty_arrays() -> None:
    for shape in ((0,), (0, 3), (3, 0)):
        scale(np.zeros(shape), np.zeros(shape), 2.0)


def test_read_only_inputs() -> None:
    x = np.arange(4.0)
    y = np.zeros(4)
    scale(y, x, 2.0)
    x.flags.writeable = False
    for _ in range(2):
        y[:] = 0
        scale(y, x, 3.0)
        assert (y == 3 * x).all()
    constant = np.broadcast_to(np.float64(5), (4,))
    for _ in range(2):
        scale(y, constant, 2.0)
        assert (y == 10).all()
    rows = np.broadcast_to(np.arange(3.0), (4, 3))
    out = np.zeros((4, 3))
    add_columns(out, rows)
    assert (out == columns(rows)).all()


def test_memmap(tmp_path: Any) -> None:
    y = np.memmap(tmp_path / "y", np.float64, "w+", shape=(4,))
    for _ in range(2):
        scale(y, np.arange(4.0), 2.0)
    y.flush()
    assert (np.fromfile(tmp_path / "y") == 2 * np.arange(4.0)).all()
    x = np.memmap(tmp_path / "y", np.float64, "r", shape=(4,))
    out = np.zeros(4)
    scale(out, x, 2.0)
    assert (out == 4 * np.arange(4.0)).all()
    with pytest.raises(jlkern.ArgumentError, match="read-only"):
        scale(x, out, 2.0)


def test_matrices() -> None:
    x = np.arange(6.0).reshape(2, 3).view(np.matrix)
    y = np.zeros((2, 3)).view(np.matrix)
    add_columns(y, x)
    assert (np.asarray(y) == columns(np.asarray(x))).all()


def test_fields_of_structures() -> None:
    pairs = np.zeros(5, [("a", np.float32), ("b", np.float32)])
    pairs["a"] = np.arange(5)
    scale(pairs["b"], pairs["a"], np.float32(2))
    assert (pairs["b"] == 2 * np.arange(5)).all()
    assert (pairs["a"] == np.arange(5)).all()
    parts = np.arange(4) + 1j * np.arange(4, 8)
    scale(parts.real, parts.imag, 2.0)
    assert (parts.real == 2 * np.arange(4, 8)).all()


def test_overlapping_arguments() -> None:
    """Each item reads and writes its own place: views of one memory give what separate arrays would."""
    memory = np.arange(10.0)
    scale(memory, memory, 2.0)
    assert (memory == 2 * np.arange(10.0)).all()
    memory = np.arange(10.0)
    expected = memory.copy()
    scale(memory[:5], memory[5:], 3.0)
    expected[:5] = 3 * expected[5:]
    assert (memory == expected).all()
    memory = np.arange(16.0).reshape(4, 4)
    scale(memory[::2], memory[1::2], 1.0)
    assert (memory[0] == memory[1]).all()
    # in the order of the items within a work-group, as one thread would run them
    memory = np.arange(32.0)
    shift(memory[:31], memory[:31])
    assert (np.diff(memory) >= 0).all()


REFUSED: dict[str, Callable[[], Any]] = {
    "list": lambda: [1.0, 2.0],
    "None": lambda: None,
    "str": lambda: "text",
    "object": object,
    "big-endian": lambda: np.zeros(4, ">f8"),
    "structured": lambda: np.zeros(4, "f8,f8"),
    "packed field": lambda: np.zeros(4, np.dtype([("a", "i1"), ("b", "f8")]))["b"],
    "datetime": lambda: np.zeros(4, "M8[s]"),
    "timedelta": lambda: np.zeros(4, "m8[s]"),
    "objects": lambda: np.array([None] * 4),
    "text": lambda: np.array(["a"] * 4),
    "longdouble": lambda: np.zeros(4, np.longdouble),
    "masked": lambda: np.ma.masked_array(np.zeros(4), [True] * 4),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    fine, y = np.ones(4), np.zeros(4)
    scale(y, fine, 1.0)
    for _ in range(2):
        y[:] = 7
        for wrong in ((y, REFUSED[case](), 1.0), (y, fine, REFUSED[case]())):
            with pytest.raises(jlkern.ArgumentError):
                scale(*wrong)
        with pytest.raises(jlkern.ArgumentError):
            scale(REFUSED[case](), fine, 1.0)
        assert (y == 7).all()


def test_unaligned_arrays() -> None:
    """Refused when a call is looked at closely; when its kind is known already, refused or right."""
    crooked = np.zeros(64, np.uint8)[1:33].view(np.float64)
    crooked[:] = 1, 2, 3, 4
    with pytest.raises(jlkern.ArgumentError, match=r"'x'.*aligned"):
        scale(np.zeros(4, np.int32), crooked, 2.0)
    y = np.zeros(4)
    scale(y, np.ones(4), 2.0)
    y[:] = 0
    try:
        scale(y, crooked, 2.0)
    except jlkern.ArgumentError:
        assert (y == 0).all()
    else:
        assert (y == [2, 4, 6, 8]).all()


def test_refused_outputs() -> None:
    x = np.ones(4)
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    cell = np.zeros(1)
    spread = np.lib.stride_tricks.as_strided(cell, (4,), (0,))
    scale(np.zeros(4), x, 1.0)
    for _ in range(2):
        for wrong, message in (
            (frozen, "read-only"),
            (spread, "share memory"),
            (np.broadcast_to(cell, 4), "read-only"),
        ):
            with pytest.raises(jlkern.ArgumentError, match=message):
                scale(wrong, x, 1.0)
    assert cell == 0
    assert (frozen == 0).all()
    with pytest.raises(jlkern.ArgumentError, match="must be an array"):
        scale(1.0, x, 1.0)


def test_a_number_for_an_array_is_refused_and_named() -> None:
    with pytest.raises(jlkern.JlkernError):
        add_columns(np.zeros((2, 2)), 1.0)


def test_arrays_of_other_dimensions_ask_for_an_ndrange() -> None:
    with pytest.raises(jlkern.NDRangeError, match="2 indices"):
        add_columns(np.zeros(3), np.zeros(3))
