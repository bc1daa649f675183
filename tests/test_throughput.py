"""The throughput benchmark: contenders answer, their results are checked, ratios are taken round by round."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import throughput
    from peers import problems

    return throughput, problems


@pytest.mark.parametrize("problem", ["saxpy", "sum"])
def test_a_peer_answers_from_its_process(modules: tuple[Any, Any], problem: str) -> None:
    throughput, _ = modules
    peer = throughput.Peer("numpy", [sys.executable, str(BENCHMARKS / "throughput.py"), "--worker", "by_numpy"])
    (row,) = throughput.rows_of(problem, [peer])
    throughput.measure(problem, [row], 1)
    assert row.name == "NumPy" and 0 < row.least <= row.medians[0]
    assert peer.ask("burst", problem, "nobody")[0] == "failed"
    peer.close()


def test_a_wrong_result_and_a_failing_peer_are_left_out(
    modules: tuple[Any, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    throughput, _ = modules
    answers = {"start": ["ok", "mine"], "check": ["ok", "", "1.0"]}

    class Wrong(throughput.Peer):
        def ask(self, *request: str) -> list[str]:
            return answers[request[0]]

    dies = throughput.Peer("dies", [sys.executable, "-c", "raise SystemExit(3)"])
    assert not throughput.rows_of("sum", [Wrong("wrong", []), dies])
    told = capsys.readouterr().out
    assert "mine" in told and "its result is wrong" in told and "its process ended" in told


def test_references_are_what_the_formulas_say(modules: tuple[Any, Any]) -> None:
    _, problems = modules
    a, b = problems.values((4, 3), 1), problems.values((4, 3), 1, "C")
    np.testing.assert_array_equal(a, b)
    assert a.flags.f_contiguous and b.flags.c_contiguous and a.ctypes.data % 4096 == 0
    v = problems.reference("stencil")[0]
    u = problems.values((problems.STENCIL, problems.STENCIL), 1).astype(float)
    assert v[5, 7] == pytest.approx((u[4, 7] + u[6, 7] + u[5, 6] + u[5, 8]) / 4) and not v[0].any()
    wanted = problems.fingerprint([v])
    assert problems.agrees("stencil", wanted, wanted)
    assert not problems.agrees("stencil", problems.fingerprint([v.T + 0.01]), wanted)


def test_ratios_are_taken_round_by_round(modules: tuple[Any, Any]) -> None:
    throughput, _ = modules
    peer = throughput.Peer("any", [])
    slow = throughput.Row(peer, "slow", medians=[2.0, 30.0, 4.0], least=1.0)
    base = throughput.Row(peer, throughput.HAND, medians=[1.0, 10.0, 2.0], least=1.0)
    assert throughput.ratio(slow, base) == 2.0
