"""Which loop over work-items is the innermost, and how local memory lies, for both orders of arrays: the same bits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import jlkern
from jlkern.engines.base import CompileRequest
from jlkern.engines.numba import engine
from jlkern.signature import classify
from jlkern.source import Origin, load_source

TILED = """@kernel inbounds = true function k!(c, @Const(a), @Const(b))
    i, j = @index(Global, NTuple)
    p, q = @index(Local, NTuple)
    s, t = @localmem(Float64, (8, 8)), @localmem(Float64, (8, 8))
    acc = zero(eltype(c))
    for m in 0:(size(a, 2) ÷ 8 - 1)
        s[p, q] = a[i, 8m + q]
        t[p, q] = b[8m + p, j]
        @synchronize
        for k in 1:8
            acc += s[p, k] * t[k, q]
        end
        @synchronize
    end
    c[i, j] = acc
end"""

CORNERS = """@kernel inbounds = true function k!(c, @Const(a), @Const(b))
    i, j = @index(Global, NTuple)
    p, q = @index(Local, NTuple)
    l = @index(Local, Linear)
    s = @localmem Float64 (8, 3)
    z = @localmem ComplexF64 (2, 8)
    if l == 1
        for k in 1:length(s)
            s[k] = k
        end
        for k in 1:2, m in 1:8
            z[k, m] = k + m * im
        end
    end
    @synchronize
    column = view(s, :, 2)
    c[i, j] = s[p, mod1(q, 3)] + 10s[mod1(l, 24)] + 100column[q] + size(s, 2)
    c[i, j] += real(z[mod1(l, 16)]) - imag(z[2, p]) + a[i, j]
end"""


def launcher_of(text: str, args: list[Any], schedule: Any = ()) -> Any:
    source = load_source(text, Origin(None, 1, False), ())
    signature = tuple(classify(name, a) for name, a in zip(source.names, args, strict=True))
    return engine().compile(CompileRequest(source, signature, {}, (8, 8), 2, source.effects.written, schedule))


def matrices(order: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [np.zeros((16, 24), order=order), *(np.array(rng.random((24, 24)), order=order) for _ in range(2))]


@pytest.mark.parametrize("text", [TILED, CORNERS])
def test_orders_of_arrays_and_loops_change_no_bit(text: str) -> None:
    results = []
    for order in "FC":
        for schedule in ((), (("order", (0, 1)),), (("order", (1, 0)),), (("loops", "outside"),)):
            args = matrices(order)
            assert launcher_of(text, args, schedule).fire((16, 24))(*args) == 0
            results.append(args[0])
    _, a, b = matrices("F")
    if text is TILED:
        np.testing.assert_allclose(results[0], a[:16] @ b, rtol=1e-12)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize(("order", "inner"), [("F", 0), ("C", 1)])
def test_the_innermost_loop_walks_memory_in_order(order: str, inner: int) -> None:
    emitted = launcher_of(TILED, matrices(order)).text
    nested = re.findall(r"for _l(\d) in .*\n.*\n *for _l(\d) in ", emitted)
    assert nested and all(pair == (str(1 - inner), str(inner)) for pair in nested)


def test_each_region_has_an_order_of_its_own() -> None:
    text = """@kernel inbounds = true function k!(c, @Const(a), @Const(b))
        i, j = @index(Global, NTuple)
        p, q = @index(Local, NTuple)
        s = @localmem Float64 (8, 8)
        s[p, q] = a[i, j]
        @synchronize
        c[i, j] = s[q, p] + b[j, i] + b[j, i + 1]
    end"""
    args = matrices("F")
    launcher = launcher_of(text, args)
    nested = re.findall(r"for _l(\d) in .*\n.*\n *for _l(\d) in ", launcher.text)
    assert nested == [("1", "0"), ("0", "1")]
    assert launcher.fire((16, 16))(*args) == 0
    swapped = np.block([[args[1][8 * i : 8 * i + 8, 8 * j : 8 * j + 8].T for j in range(2)] for i in range(2)])
    np.testing.assert_array_equal(args[0][:, :16], swapped + args[2][:16, :16].T + args[2][:16, 1:17].T)


def notes(group: tuple[int, ...], *orders: Any) -> list[str]:
    kernel = jlkern.from_source(
        "@kernel function k!(c, @Const(a))\n i, j = @index(Global, NTuple)\n c[i, j] = a[i, j]\n end",
        workgroup=group,
        ndrange="c",
    )
    arrays = [np.zeros((64, 48), order=order) for order in orders]
    return [note for note in kernel.explain(*arrays).notes if "C order" in note]


def test_explain_tells_of_work_groups_that_are_narrow_where_arrays_are_contiguous() -> None:
    (note,) = notes((64, 4), "C", "C")
    assert note.startswith("c, a are in C order") and "dimension 2" in note and "4 work-items" in note
    (note,) = notes((64,), "C", "C")
    assert "1 work-item there" in note
    assert not notes((4, 64), "C", "C") and not notes((16, 16), "C", "C") and not notes((64, 4), "F", "C")
    assert not notes((1, 1), "C", "C")
