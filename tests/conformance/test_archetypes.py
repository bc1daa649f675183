"""The archetypes on the embedded engine: every allowed configuration, every layout, the same bits in all of them."""

from __future__ import annotations

import numpy as np
import pytest

from jlkern.engines.numba import engine

from .archetypes import ARCHETYPES, configs, defaults
from .harness import LAYOUTS, arguments, check, compiled, launch

BY_NAME = {a["name"]: a for a in ARCHETYPES}
ATOMIC_FLOATS = {"scatter_add", "dot_atomic"}  # the order of float additions is not fixed


@pytest.mark.parametrize("name", BY_NAME)
def test_default_configuration_in_every_layout(name: str) -> None:
    archetype = BY_NAME[name]
    runs = [check(engine(), archetype, defaults(archetype), layout) for layout in LAYOUTS]
    if name not in ATOMIC_FLOATS:
        for run in runs[1:]:
            for first, other in zip(runs[0], run, strict=True):
                if isinstance(first, np.ndarray):
                    np.testing.assert_array_equal(first, other)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", BY_NAME)
def test_every_configuration(name: str, layout: str) -> None:
    archetype = BY_NAME[name]
    for params in configs(archetype):
        check(engine(), archetype, params, layout)


@pytest.mark.parametrize("name", ["jacobi5", "block_sum_tree", "softmax_group", "matmul_tiled", "fft_stage"])
def test_same_bits_on_one_thread_and_on_all(name: str) -> None:
    archetype = BY_NAME[name]
    results = []
    for threads in ("one", "all"):
        args = arguments(archetype, "F")
        launcher, ndrange = compiled(engine(), archetype, defaults(archetype), args, schedule=(("threads", threads),))
        launch(launcher, ndrange, args)
        results.append(args)
    for one, several in zip(*results, strict=True):
        np.testing.assert_array_equal(one, several)


@pytest.mark.parametrize("name", ["jacobi5", "transpose_lmem", "conv2d"])
def test_same_bits_in_every_loop_order(name: str) -> None:
    archetype = BY_NAME[name]
    dims = archetype["dims"]
    results = []
    for order in (tuple(range(dims)), tuple(reversed(range(dims)))):
        args = arguments(archetype, "C")
        launcher, ndrange = compiled(engine(), archetype, defaults(archetype), args, schedule=(("order", order),))
        launch(launcher, ndrange, args)
        results.append(args)
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


WITH_LOOPS = ["matmul_naive", "conv2d", "nbody_tiled", "kmeans_assign", "cumsum_cols", "game_of_life", "hamming"]


QUICK = [pytest.param(n, marks=() if n in WITH_LOOPS[:3] else pytest.mark.slow) for n in BY_NAME]


@pytest.mark.parametrize("name", QUICK)
def test_same_bits_with_loops_around_the_items(name: str) -> None:
    archetype = BY_NAME[name]
    results = []
    for schedule in ((("loops", "inside"),), (("loops", "outside"),)):
        results.append(check(engine(), archetype, defaults(archetype), "F", schedule=schedule))
    if name not in ATOMIC_FLOATS:
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", WITH_LOOPS)
def test_kernels_with_uniform_loops_offer_to_run_them_outside(name: str) -> None:
    archetype = BY_NAME[name]
    args = arguments(archetype, "F")
    launcher, _ = compiled(engine(), archetype, defaults(archetype), args)
    offered = engine().schedules(launcher.request)
    assert offered[0] == () and offered[1] in ((("loops", "outside"),), (("loops", "inside"),))


def test_loops_run_outside_where_neighbouring_items_then_read_neighbouring_elements() -> None:
    def other(name: str, layout: str) -> str:
        archetype = BY_NAME[name]
        launcher, _ = compiled(engine(), archetype, defaults(archetype), arguments(archetype, layout))
        return str(dict(engine().schedules(launcher.request)[1])["loops"])

    assert other("matmul_naive", "F") == other("matmul_naive", "C") == "inside"
    assert other("conv2d", "F") == "inside"
    assert other("cumsum_cols", "F") == "outside"
    assert other("nbody_tiled", "F") == "outside"
