"""The language corpus on the embedded engine: what Julia computed, to the bit where no library function takes part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from data.kernels import read, unpacked

from jlkern.engines.base import CompileRequest, Engine
from jlkern.engines.numba import engine
from jlkern.errors import JlkernError
from jlkern.signature import classify, julia
from jlkern.source import Origin, load_source

from .harness import launch
from .language import Case, cases

RESULTS = read("language.json.gz")
ERRORS = {
    "ErrorException": "KernelThrownError",
    "AssertionError": "KernelThrownError",
    "ArgumentError": "KernelThrownError",
    "MethodError": "UnsupportedError",
    "UndefVarError": "UnsupportedError",
    "TypeError": "UnsupportedError",
}
"""What an exception of Julia is here, where the name is not the same."""

TYPES = {"Bool", *(f"{kind}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)), "Float32", "Float64"}


def argument(arg: Any) -> Any:
    """Return what a call from Python would pass."""
    if isinstance(arg, str):
        return np.dtype(arg.lower()).type if arg in TYPES else julia(arg)
    return arg


def run(engine: Engine, case: Case, args: list[Any], **options: Any) -> None:
    """Compile and launch a case."""
    source = load_source(case.source, Origin(None, 1, False), tuple(case.params), "k!")
    signature = tuple(classify(name, arg) for name, arg in zip(source.names, args, strict=True))
    request = CompileRequest(
        source, signature, case.params, case.workgroup, len(case.ndrange), source.effects.written, **options
    )
    launch(engine.compile(request), case.ndrange, args)


def check(engine: Engine, case: Case) -> None:
    """Run a case on an engine and compare with what Julia made of it."""
    result = RESULTS[case.name]
    assert result["digest"] == case.digest, "the case has changed: run tests/data/make_language.py"
    args = [argument(arg) for arg in case.fresh()]
    if "error" in result:
        with pytest.raises(JlkernError) as caught:
            run(engine, case, args)
        name = type(caught.value).__name__
        assert name == ERRORS.get(result["error"], result["error"]), caught.value
        return
    before = case.fresh()
    run(engine, case, args)
    arrays = [(a, b) for a, b in zip(args, before, strict=True) if isinstance(a, np.ndarray)]
    for (after, unchanged), made in zip(arrays, result["arrays"], strict=True):
        expected = unchanged if made is None else unpacked(made)
        if case.ulps == 0 or expected.dtype.kind not in "fc":
            np.testing.assert_array_equal(after, expected)
        else:
            unit = np.finfo(expected.dtype).eps * case.ulps
            largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
            np.testing.assert_allclose(after, expected, rtol=unit, atol=unit * float(largest))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_case(case: Case) -> None:
    check(engine(), case)
