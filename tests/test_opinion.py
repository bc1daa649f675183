"""The other engine as a second opinion: as the reference of a tuning, and on a configuration that is in use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import PyEngine, needs_julia

import jlkern
from jlkern import compiled, errors, opinion
from jlkern.engines.base import Engine
from jlkern.engines.julia import bridge
from jlkern.opinion import Difference

SOURCE = """
@kernel function waves!(y, @Const(x))
    i = @index(Global)
    @inbounds y[i] = y[i] / 2 + sin(x[i]) * scale
end
"""


def arguments() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.random(2000), rng.random(2000)


def other(monkeypatch: pytest.MonkeyPatch, body: Any) -> None:
    """Let another engine be one that runs a NumPy function."""
    fake = PyEngine(body)
    fake.name = "julia"

    def named(engine: Engine, declaration: Any, args: Any) -> Engine:
        return fake

    monkeypatch.setattr(opinion, "other_engine", named)
    compiled.forget_launchers()


def right(ndrange: Any, params: Any, y: Any, x: Any) -> int:
    y[...] = y / 2 + np.sin(x) * params["scale"]
    return 0


def wrong_once(ndrange: Any, params: Any, y: Any, x: Any) -> int:
    right(ndrange, params, y, x)
    y[7] += 0.5
    return 0


def test_candidates_are_checked_against_the_other_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = jlkern.from_source(SOURCE, tune={"block": [32, 64], "scale": [2.0]}, reference="engine")
    y, x = arguments()
    other(monkeypatch, right)
    result = kernel.tune(y, x)
    assert result.reference == "reference=" and {t.status for t in result.trials} == {"ok"}
    other(monkeypatch, wrong_once)
    with pytest.raises(errors.TuningError, match=r"\[7\]"):
        kernel.tune(y, x, fresh=True)


def test_the_largest_difference_of_what_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = jlkern.from_source(SOURCE, tune={"block": [32, 64], "scale": [2.0]})
    y, x = arguments()
    before = y.copy()
    other(monkeypatch, wrong_once)
    explained = kernel.explain(y, x, verify=True)
    assert explained.verified is not None and explained.verified.engine == "julia"
    (difference,) = explained.verified.differences
    assert difference.name == "y" and difference.absolute == pytest.approx(0.5)
    assert "largest differences from the julia engine: y: 0.5" in str(explained)
    np.testing.assert_array_equal(y, before)
    assert kernel.explain(y, x).verified is None


def test_a_parameter_named_verify_is_a_parameter() -> None:
    kernel = jlkern.from_source("@kernel function k!(y, verify)\n i = @index(Global)\n y[i] = verify\nend")
    assert kernel.explain(np.zeros(3), verify=2.0).verified is None


@pytest.mark.parametrize("told", ["y: none", "y: 0.5 (relative to its largest value 0.25)"])
def test_differences_as_text(told: str) -> None:
    assert str(Difference("y", *((0.0, 0.0) if "none" in told else (0.5, 0.25)))) == told


def test_nans_that_agree_are_no_difference_and_others_are() -> None:
    a, b = np.array([1.0, np.nan, np.inf]), np.array([1.0, np.nan, np.inf])
    assert opinion._difference("y", a, b).absolute == 0
    b[1] = 3
    assert opinion._difference("y", a, b).absolute == np.inf


def test_without_another_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    def find() -> None:
        raise errors.EngineError("Julia is not set up: run `jlkern setup`")

    monkeypatch.setattr(bridge, "find", find)
    if bridge.started():
        pytest.skip("Julia runs in this process already")
    kernel = jlkern.from_source(SOURCE, tune={"block": [32, 64], "scale": [2.0]}, reference="engine")
    y, x = arguments()
    with pytest.raises(errors.EngineError, match="jlkern setup"):
        kernel.tune(y, x)
    with pytest.raises(errors.EngineError, match="jlkern setup"):
        kernel.explain(y, x, verify=True)
    with pytest.raises(errors.OptionError, match="'engine'"):
        jlkern.from_source(SOURCE, tune={"scale": [2.0]}, reference="other")


@needs_julia
@pytest.mark.julia
@pytest.mark.parametrize("engine", ["numba", "julia"])
def test_both_engines_speak_for_each_other(engine: str) -> None:
    kernel = jlkern.from_source(
        SOURCE, engine=engine, tune={"block": [32, 64], "scale": [2.0]}, reference="engine", max_evals=2
    )
    y, x = arguments()
    assert {trial.status for trial in kernel.tune(y, x).trials} == {"ok"}
    verified = kernel.explain(y, x, verify=True).verified
    assert verified is not None and verified.engine == ("julia" if engine == "numba" else "numba")
    assert verified.differences[0].relative < 1e-14
