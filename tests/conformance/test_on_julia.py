"""The julia engine: the archetypes, the language corpus and the random programs, on a real Julia."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import needs_julia

from jlkern.engines.base import Engine
from jlkern.errors import CompileError

from .archetypes import ARCHETYPES, configs, defaults
from .harness import LAYOUTS, arguments, check, compiled, launch
from .language import Case, cases
from .test_archetypes import ATOMIC_FLOATS
from .test_language import check as check_case
from .test_programs import RESULTS
from .test_programs import check as check_program

pytestmark = [needs_julia, pytest.mark.julia]

BY_NAME = {a["name"]: a for a in ARCHETYPES}
ON_CPU = [name for name, a in BY_NAME.items() if a["cpu_ok"]]
SLOW_CASES = 24
"""Of the language corpus every so manieth case is quick."""


@pytest.fixture(scope="module")
def julia() -> Engine:
    from jlkern.engines.select import engine_named

    return engine_named("julia")


@pytest.mark.parametrize("name", ON_CPU)
def test_default_configuration_in_every_layout(julia: Engine, name: str) -> None:
    archetype = BY_NAME[name]
    runs = [check(julia, archetype, defaults(archetype), layout) for layout in LAYOUTS]
    if name not in ATOMIC_FLOATS:
        for run in runs[1:]:
            _same_bits(runs[0], run)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ON_CPU)
def test_every_configuration(julia: Engine, name: str, layout: str) -> None:
    archetype = BY_NAME[name]
    for params in configs(archetype):
        check(julia, archetype, params, layout)


@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in ON_CPU])
def test_what_kernelabstractions_refuses_on_the_cpu(julia: Engine, name: str) -> None:
    archetype = BY_NAME[name]
    with pytest.raises(CompileError, match="unavailable for backend CPU"):
        check(julia, archetype, defaults(archetype), "F")


@pytest.mark.parametrize("name", ["jacobi5", "matmul_tiled", "fft_stage", "transpose_lmem"])
def test_same_bits_on_one_thread_and_on_all(julia: Engine, name: str) -> None:
    archetype = BY_NAME[name]
    results = []
    for threads in ("one", "all"):
        args = arguments(archetype, "F")
        launcher, ndrange = compiled(julia, archetype, defaults(archetype), args, schedule=(("threads", threads),))
        launch(launcher, ndrange, args)
        results.append(args)
    _same_bits(*results)


@pytest.mark.parametrize("name", ON_CPU)
def test_both_engines_agree(julia: Engine, name: str) -> None:
    from jlkern.engines.numba import engine as numba

    archetype = BY_NAME[name]
    ours = check(numba(), archetype, defaults(archetype), "F")
    theirs = check(julia, archetype, defaults(archetype), "F")
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_allclose(one, other, rtol=archetype["rtol"], atol=archetype["atol"])


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if place % SLOW_CASES == 0 else pytest.mark.slow)
        for place, case in enumerate(cases())
    ],
)
def test_language(julia: Engine, case: Case) -> None:
    check_case(julia, case)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [int(seed) for seed in list(RESULTS)[:60]])
def test_program(julia: Engine, seed: int) -> None:
    check_program(julia, seed)


def _same_bits(one: list[Any], other: list[Any]) -> None:
    for first, second in zip(one, other, strict=True):
        if isinstance(first, np.ndarray):
            np.testing.assert_array_equal(first, second)
