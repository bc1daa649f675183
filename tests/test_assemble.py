"""Emitted source compiled directly, and by Numba: the same text must mean the same."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.archetypes import ARCHETYPES, defaults
from conformance.harness import arguments, compiled, launch

from jlkern.engines.numba import engine
from jlkern.engines.numba.assemble import Unassembled, assemble
from jlkern.engines.numba.launcher import compile_by_numba
from jlkern.engines.numba.namespace import namespace

BY_NAME = {a["name"]: a for a in ARCHETYPES}
QUICK = ["game_of_life", "block_sum_tree", "fft_stage", "mc_pi_xorshift", "hist_global"]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in BY_NAME if n != "scatter_add"]
)
def test_both_ways_give_the_same_bits(name: str) -> None:
    archetype = BY_NAME[name]
    results = []
    for by_numba in (False, True):
        args = arguments(archetype, "F")
        launcher, ndrange = compiled(engine(), archetype, defaults(archetype), args, schedule=(("threads", "one"),))
        if by_numba:
            code = compile_by_numba(launcher.text, name)  # type: ignore[attr-defined]
            launcher.code = lambda ndrange, code=code: code  # type: ignore[attr-defined]
        launch(launcher, ndrange, args)
        results.append(args)
    for direct, other in zip(*results, strict=True):
        np.testing.assert_array_equal(direct, other)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_archetype_is_assembled(name: str) -> None:
    archetype = BY_NAME[name]
    launcher, _ = compiled(engine(), archetype, defaults(archetype), arguments(archetype, "C"))
    assert assemble(launcher.text, namespace())[0]


@pytest.mark.parametrize(
    "body",
    ["return len(_block)", "x, y = 1, 2\n    return x", "x = 1\n    x = 1.5\n    return 0", "return _block / 2",
     "for k in range(0, 9, _first):\n        pass\n    return 0", "return 1 + 1.5", "return [1]", "return unknown"],
)  # fmt: skip
def test_other_python_is_left_to_numba(body: str) -> None:
    with pytest.raises(Unassembled):
        assemble(f"def chunk(_block, _errors, _first, _last):\n    {body}\n", namespace())


def run(body: str, first: int = 0, last: int = 0) -> int:
    """Compile the body of a chunk and call it."""
    import ctypes

    address, library = assemble(f"def chunk(_block, _errors, _first, _last):\n{body}\n", namespace())
    result = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)(address)(0, 0, first, last)
    assert library is not None
    return result


def test_functions_call_each_other() -> None:
    import ctypes

    text = """
def whole(_block, _errors, _first, _last):
    return _first * 100 + _last

def chunk(_block, _errors, _first, _last):
    if _first > 3:
        return whole(_block, _errors, _last, _first)
    return whole(_block, _errors, _first, _last + 1)
"""
    address, library = assemble(text, namespace())
    chunk = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)(address)
    assert (chunk(0, 0, 2, 5), chunk(0, 0, 4, 5)) == (206, 504) and library is not None


def test_loops_and_branches_are_pythons() -> None:
    body = """
    total = 0
    for k in range(_first, _last, 3):
        if k == 4:
            continue
        if k > 16:
            break
        j = k
        while True:
            j = j - 2
            if not j > 0:
                break
            total = total + j
        k = 100
    for k in range(9, 4, -2):
        total = total * 2 + k
    return total
"""
    scope: dict[str, object] = {}
    exec(f"def chunk(_first, _last):{body}", scope)
    for bounds in ((0, 30), (1, 30), (5, 5), (7, 2), (-20, 8)):
        assert run(body, *bounds) == scope["chunk"](*bounds)  # type: ignore[operator]
