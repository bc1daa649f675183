"""`first_call="amortise"`: calls are right, tries keep to their share, processes go on from each other."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jlkern
from jlkern import amortise
from jlkern.amortise import Account
from jlkern.choice import the_store
from jlkern.errors import OptionError, TuningWarning
from jlkern.knobs import knobs

ROOT = Path(__file__).resolve().parent.parent
SOURCE = """
@kernel function add!(y, @Const(x))
    i = @index(Global)
    @inbounds y[i] += x[i]
end
"""


@pytest.fixture(autouse=True)
def memo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JLKERN_LOCK_DIR", str(tmp_path))
    monkeypatch.setenv("JLKERN_CACHE_DIR", str(tmp_path / "memo"))
    monkeypatch.setenv("JLKERN_AMORTISE", "1e9")  # every call pays for a try


def adder(**options: Any) -> Any:
    options = {"tune": {"block": [16, 64, 256]}, **options}
    return jlkern.from_source(SOURCE, first_call="amortise", **options)


def status(add: Any, *args: Any) -> tuple[str, list[str]]:
    found = add.explain(*args)
    return found.origin, [trial.status for trial in found.trials]


def test_calls_are_right_and_each_tries_one_candidate_till_there_is_a_winner() -> None:
    add, y, x = adder(), np.zeros(1000), np.arange(1000.0)
    seen = []
    for count in range(1, 9):
        add(y, x)
        assert np.array_equal(y, count * x)
        seen.append(status(add, y, x))
    counts = [len(trials) for _, trials in seen]
    assert counts[:4] == [1, 2, 3, 3]  # the fourth finds that there is no more, the fifth decides
    assert [origin for origin, _ in seen][4:] == ["memo"] * 4
    assert all(origin in ("default", "trials") for origin, _ in seen[:4])
    assert seen[3][1] == ["ok"] * 3
    assert add.explain(y, x).seconds is not None
    # With a winner, nothing is left between a call and its launch.
    assert not any(isinstance(fire, amortise.Amortising) for fire in add._dispatcher.table.values())


def test_no_candidate_is_tried_beyond_the_share_of_live_time() -> None:
    account = Account(live=10.0, next=0.5)
    with knobs.scope(amortise=0.1):
        assert account.due()
        account.spent = 0.6
        assert not account.due()
        account.live = 12.0
        assert account.due()
        account.over = True
        assert not account.due()
    add, y, x = adder(), np.zeros(100), np.ones(100)
    with knobs.scope(amortise=0.0):
        for _ in range(20):
            add(y, x)
    assert status(add, y, x) == ("default", [])


def test_the_share_is_a_number_that_is_not_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("-0.1", "much", "inf"):
        monkeypatch.setenv("JLKERN_AMORTISE", value)
        with pytest.raises(OptionError, match=r"JLKERN_AMORTISE.*not negative"):
            _ = knobs.amortise


def test_a_far_better_trial_is_used_before_the_final_rounds() -> None:
    from jlkern.memo.store import TrialRecord
    from jlkern.space import Config

    add, y, x = adder(), np.zeros(1000), np.ones(1000)
    add(y, x)
    case = add._runtime.case(*add._runtime.validate((y, x)), (y, x), (1000,), None)
    better = Config((("block", 256),))
    the_store().end(case.key, TrialRecord(better, "ok", 1e-12, 0.0, 5))
    assert status(add, y, x)[0] == "trials" and add.config_for(y, x) == better
    add(y, x)
    assert np.array_equal(y, np.full(1000, 2.0))


def test_frozen_tries_nothing() -> None:
    add, y, x = adder(), np.zeros(100), np.ones(100)
    add(y, x)
    with jlkern.frozen():
        for _ in range(5):
            add(y, x)
        assert len(add.explain(y, x).trials) == 1
    assert y[0] == 6


def test_failures_cost_one_candidate_and_nothing_usable_is_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    add, y, x = adder(tune={"block": [64, 16, 2**62]}, workgroup=lambda block: block), np.zeros(100), np.ones(100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(8):
            add(y, x)
    assert y[0] == 8 and status(add, y, x)[0] == "memo"
    contrary = adder(reference=lambda y, x: np.full_like(y, -1.0), compare=None)
    with pytest.warns(TuningWarning, match="nothing more is tried"):
        for _ in range(8):
            contrary(y[:50], x[:50])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        contrary(y[:50], x[:50])
    assert y[0] == 17


def test_ctrl_c_in_a_try_leaves_the_call_done_and_the_trials_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from jlkern.tuning.trial import Lab

    add, y, x = adder(), np.zeros(100), np.ones(100)
    add(y, x)
    verify = Lab.verify

    def interrupted(self: Lab, *args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Lab, "verify", interrupted)
    with pytest.raises(KeyboardInterrupt):
        add(y, x)
    assert y[0] == 2
    monkeypatch.setattr(Lab, "verify", verify)
    for _ in range(6):
        add(y, x)
    assert y[0] == 8 and status(add, y, x)[0] == "memo"


def test_threads_try_one_at_a_time_and_none_waits() -> None:
    add, x = adder(), np.ones(200)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            y = np.zeros(200)
            for count in range(1, 21):
                add(y, x)
                assert y[0] == count
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and status(add, np.zeros(200), x)[0] == "memo"


def test_another_process_goes_on_and_both_come_to_one_winner(tmp_path: Path) -> None:
    (tmp_path / "live.py").write_text(
        f"""
import sys
import time
import numpy as np
import jlkern
add = jlkern.from_source({SOURCE!r}, first_call="amortise", tune={{"block": [16, 32, 64, 128, 256, 512]}})
y, x = np.zeros(1000), np.arange(1000.0)
for count in range(1, int(sys.argv[1]) + 1):
    add(y, x)
    assert np.array_equal(y, count * x)
    if count > 10:  # while the other one holds its final rounds
        time.sleep(0.01)
found = add.explain(y, x)
print(found.origin, len(found.trials), found.config)
"""
    )

    def start(calls: int) -> subprocess.Popen[str]:
        command = [sys.executable, str(tmp_path / "live.py"), str(calls)]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def outcome(process: subprocess.Popen[str]) -> list[str]:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        return out.split(maxsplit=2)

    assert outcome(start(3))[1] == "3"
    both = [outcome(process) for process in [start(500), start(500)]]
    assert [found[0] for found in both] == ["memo", "memo"] and both[0][2] == both[1][2]
    assert outcome(start(1)) == both[0]
