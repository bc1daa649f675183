"""Random programs on the embedded engine: the results of a real Julia, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from data.kernels import read, unpacked

from jlkern.engines.base import Engine
from jlkern.engines.numba import engine
from jlkern.errors import JlkernError

from .programs import case
from .test_language import ERRORS, run

RESULTS = read("programs.json.gz")
QUICK = 16


@pytest.mark.parametrize(
    "seed", [pytest.param(int(s), marks=() if int(s) < QUICK else pytest.mark.slow) for s in sorted(RESULTS, key=int)]
)
def test_program(seed: int) -> None:
    check(engine(), seed)


def check(engine: Engine, seed: int) -> None:
    """Run a program on an engine and compare."""
    made, result = case(seed), RESULTS[str(seed)]
    assert result["digest"] == made.digest, "the generator has changed: run tests/data/make_programs.py"
    args, before = made.fresh(), made.fresh()
    if "error" in result:
        with pytest.raises(JlkernError) as caught:
            run(engine, made, args)
        assert type(caught.value).__name__ == ERRORS.get(result["error"], result["error"]), caught.value
        return
    run(engine, made, args)
    for after, unchanged, packed in zip(args, before, result["arrays"], strict=True):
        np.testing.assert_array_equal(after, unchanged if packed is None else unpacked(packed))
