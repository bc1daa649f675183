"""Kernels that KernelAbstractions' CPU backend would run with another meaning than GPUs are found in the source."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.archetypes import ARCHETYPES
from conformance.harness import source_of
from helpers import needs_julia

import jlkern
from jlkern import errors
from jlkern.engines.julia.barriers import unlike_simt
from jlkern.source import Origin, load_source

HEAD = """@kernel function k!(y, @Const(x), n)
    i = @index(Global)
    l = @index(Local)
    t = @localmem Float64 (64,)
"""

WRONG = {
    "a plain variable": ("v = x[i]\n t[l] = v\n @synchronize\n y[i] = v + t[1]", 8, "`v`"),
    "a sum over a loop": ("v = 0\n for k in 1:2\n t[l] = k\n @synchronize\n v += t[1]\n end\n y[i] = v", 9, "`v`"),
    "what decides over a barrier": ("m = 3\n while m > 0\n @synchronize\n end\n y[i] = 1", 6, "`m`"),
    "one of a tuple": ("a, b = x[i], 2.0\n @synchronize\n y[i] = b", 7, "`b`"),
    "an uniform one, assigned": ("@uniform s = 8\n while s > 0\n @synchronize\n s = s ÷ 2\n end\n y[i] = 1", 8, "`s`"),
    "a parameter": ("n = n + 1\n y[i] = n", 5, "the parameter `n`"),
    "inside of @inbounds": ("@inbounds begin\n v = x[i]\n @synchronize\n y[i] = v\n end", 8, "`v`"),
    "in an anonymous function": ("v = x[i]\n @synchronize\n y[i] = sum(ntuple(k -> v * k, 2))", 7, "`v`"),
}  # fmt: skip

RIGHT = {
    "kept": "@private v = x[i]\n u = @uniform 3\n @synchronize\n y[i] = v + u",
    "set again": "v = x[i]\n t[l] = v\n @synchronize\n v = t[1]\n y[i] = v",
    "loop variables": "for k in 1:2\n t[l] = k\n @synchronize\n y[i] = t[1] + k\n @synchronize\n end",
    "no barrier": "v = 0.0\n for k in 1:3\n v += x[i]\n end\n y[i] = v",
    "of the last round": "for k in 1:3\n if k > 1\n y[i] = old\n end\n old = x[i]\n end\n @synchronize\n y[i] += 1",
    "uniform, assigned as such": "@uniform s = 8\n while s > 0\n @synchronize\n @uniform s = s ÷ 2\n end\n y[i] = 1",
    "the same name in two stretches": "for k in 1:2\n y[i] = k\n end\n @synchronize\n for k in 1:2\n y[i] += k\n end",
}


def found(body: str) -> object:
    source = load_source(f"{HEAD}    {body}\nend", Origin(None, 1, False), ())
    return unlike_simt(source.kernel)


@pytest.mark.parametrize("name", WRONG)
def test_another_meaning(name: str) -> None:
    body, line, text = WRONG[name]
    finding = found(body)
    assert finding is not None and finding.line == line and text in finding.text


@pytest.mark.parametrize("name", RIGHT)
def test_the_same_meaning(name: str) -> None:
    assert found(RIGHT[name]) is None


@pytest.mark.parametrize("archetype", [a for a in ARCHETYPES if a["cpu_ok"]], ids=lambda a: a["name"])
def test_what_the_cpu_backend_runs_rightly_is_let_through(archetype: dict) -> None:
    assert unlike_simt(source_of(archetype).kernel) is None


@needs_julia
@pytest.mark.julia
def test_it_is_refused_before_it_runs() -> None:
    source = f"{HEAD}    v = x[i]\n    @synchronize\n    y[i] = v\nend"
    y, x = np.zeros(64), np.ones(64)
    with pytest.raises(errors.UnsupportedError, match=r"line 7 of the source: `v` is set before.*engine='numba'"):
        jlkern.from_source(source, engine="julia")(y, x, 1)
    jlkern.from_source(source)(y, x, 1)
    assert (y == 1).all()
