"""What users of other tuned-kernel tools complained about, each as a test of ours; a test is named after its complaint.

The complaints were collected from the issue trackers of Triton, Helion, vLLM, FlashInfer, Numba, Warp, xFormers,
Megatron-LM, CubeCL, KernelAbstractions.jl and PythonCall.jl. Where a complaint is about something that does not exist
here (GPU graph capture, say), there is no test.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jlkern
from jlkern.engines.base import Environment
from jlkern.errors import MemoWarning, TuningWarning
from jlkern.knobs import knobs
from jlkern.memo.store import FILE_NAME, Store
from jlkern.runtime import Runtime
from jlkern.tuning.run import tune
from tests.helpers import PyEngine
from tests.helpers import install as install_engine
from tests.test_tuning import FakeEngine, add_one, cost_by_block, make_task, statuses

ROOT = Path(__file__).resolve().parent.parent

ACCUMULATE = """
@kernel function accumulate!(y, @Const(x))
    i = @index(Global)
    @inbounds y[i] += x[i]
end
"""

TOTAL = """
@kernel function total!(out, @Const(x))
    i = @index(Global)
    @atomic out[1] += x[i]
end
"""


@pytest.fixture(autouse=True)
def memo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("JLKERN_LOCK_DIR", str(tmp_path))
    monkeypatch.setenv("JLKERN_CACHE_DIR", str(tmp_path / "memo"))
    yield tmp_path / "memo"


def plus_body(ndrange: Any, params: Any, y: Any, x: Any) -> int:
    y += x
    return 0


def install(monkeypatch: pytest.MonkeyPatch, body: Any = plus_body) -> PyEngine:
    return install_engine(monkeypatch, body)


def python(code: str, cwd: Path | None = None, **environment: str | None) -> str:
    """Run code in a new process and return what it printed; a variable that is None is taken away."""
    merged = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]), **environment}
    kept = {name: value for name, value in merged.items() if value is not None}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=kept, cwd=cwd, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def kernel(source: str, **options: Any) -> jlkern.Kernel[...]:
    return jlkern.from_source(source, **{"tune": {"block": [64, 256]}, **options})


# --- wrong results while tuning ---------------------------------------------------------------------------------------


def test_an_in_place_kernel_that_tunes_in_its_first_call_gives_the_wrong_output() -> None:
    add = kernel(ACCUMULATE)
    x = np.arange(3000.0)
    y = np.full(3000, 7.0)
    add(y, x)  # tunes
    assert np.array_equal(y, 7 + x)


def test_atomics_are_wrong_at_every_new_shape() -> None:
    total = kernel(TOTAL, ndrange="x", effort="quick", max_evals=2)
    for size in (100, 1000, 1001):
        out = np.zeros(1)
        total(out, np.ones(size))
        assert out[0] == size
        total(out, np.ones(size))
        assert out[0] == 2 * size


def test_candidates_share_an_output_so_that_one_that_leaves_it_as_it_is_passes() -> None:
    source = """
    @kernel function copy!(y, @Const(x))
        i = @index(Global)
        @inbounds y[i] = x[i]
    end
    """
    copy = kernel(source, tune={"part": [1, 2, 4]}, ndrange=lambda y, part: y.size // part)
    x = np.arange(1000.0)
    # the right result lies in the array already: a candidate that leaves it there has still computed nothing
    with pytest.raises(jlkern.TuningError, match="the results of all other configurations differ"):
        copy.tune(x.copy(), x)


def test_a_reset_is_honoured_while_tuning_but_not_in_the_real_call_after_it() -> None:
    add = kernel(ACCUMULATE)
    y, x = np.zeros(500), np.ones(500)
    add(y, x)
    add(y, x)
    assert (y == 2).all()


def test_an_argument_that_is_none_crashes_the_tuner(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = install(monkeypatch)
    with pytest.raises(jlkern.ArgumentError, match="'x'"):
        kernel(ACCUMULATE)(np.zeros(5), None)
    assert not engine.compiled


# --- cost, lost work, silence -----------------------------------------------------------------------------------------

SECOND_PROCESS = f"""
import numpy as np, jlkern
add = jlkern.from_source({ACCUMULATE!r}, tune={{"block": [64, 256]}})
y, x = np.zeros(2000), np.ones(2000)
with jlkern.frozen() as misses:
    add(y, x)
print(len(misses), int(y.sum()), add.config_for(y, x))
"""


def test_a_tuning_is_not_saved_for_the_next_process() -> None:
    add = kernel(ACCUMULATE)
    result = add.tune(np.zeros(2000), np.ones(2000))
    assert python(SECOND_PROCESS) == f"0 2000 {result.best}"


def test_a_killed_tuning_discards_everything(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    code = """
import os, sys
from pathlib import Path
from jlkern.memo.store import Store
from jlkern.tuning.run import tune
from tests.test_tuning import FakeEngine, add_one, cost_by_block, make_task
calls = []
def body(params, y, x):
    add_one(params, y, x)
    calls.append(params["block"])
    if len(set(calls)) == 3:
        sys.stdout.write(str(params["block"]))
        sys.stdout.flush()
        os._exit(0)  # no handler and no finally runs, as with kill -9
tune(make_task(FakeEngine(body, cost_by_block), store=Store(Path(sys.argv[1]))))
"""
    # the file comes as an argument in the code, so that its name needs no quoting
    killer = int(python(f"import sys; sys.argv = ['', {str(path)!r}]\n{code}", cwd=ROOT))
    engine = FakeEngine(add_one, cost_by_block)
    result = tune(make_task(engine, store=Store(path)))
    known = [t for t in result.trials if t.status == "ok" and engine.compiled[t.config] == 0]
    # It may have been anything that ended the process, so its trial is made once more.
    assert statuses(result)[killer] == "ok"
    assert any(f"block={killer} was tried again" in note for note in result.notes)
    assert len(known) + sum(engine.compiled.values()) <= 4


def test_ctrl_c_loses_the_best_so_far() -> None:
    calls: list[int] = []

    def body(params: dict[str, Any], y: Any, x: Any) -> None:
        add_one(params, y, x)
        if params["block"] not in calls:
            calls.append(params["block"])
            if len(calls) == 4:
                raise KeyboardInterrupt

    engine = FakeEngine(body, cost_by_block)
    result = tune(make_task(engine))
    assert result.interrupted
    tried = set(calls[:3])
    assert result.best.as_dict()["block"] == min(tried, key=lambda b: {64: 1.0, 128: 0.5, 256: 0.8, 512: 2.0}[b])


def test_adding_one_value_tunes_all_of_them_again() -> None:
    engine = FakeEngine(add_one, cost_by_block)
    store = Store(None)
    tune(make_task(engine, {"block": [64, 256, 512]}, store=store))
    before = Counter(engine.sampled)
    tune(make_task(engine, {"block": [64, 128, 256, 512]}, store=store))
    tried = {config.as_dict()["block"] for config in engine.sampled if engine.sampled[config] > before[config]}
    assert 128 in tried and 512 not in tried


def test_the_first_real_request_tunes_when_memory_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    from jlkern.tuning import scratch

    def full(*args: Any) -> Any:
        raise MemoryError("Unable to allocate")

    monkeypatch.setattr(scratch, "_rebuild", full)
    add = kernel(ACCUMULATE)
    y, x = np.zeros(100), np.ones(100)
    with pytest.warns(TuningWarning, match="the default is used"):
        add(y, x)
    assert (y == 1).all()


def test_memory_that_ends_while_the_reference_is_kept_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    from jlkern.tuning.trial import Lab

    def full(self: Lab) -> Any:
        raise MemoryError("Unable to allocate")

    monkeypatch.setattr(Lab, "keep_outputs", full)
    add = kernel(ACCUMULATE)
    y, x = np.zeros(100), np.ones(100)
    with pytest.warns(TuningWarning, match="the default is used"):
        add(y, x)
    assert (y == 1).all()


# --- what is remembered -----------------------------------------------------------------------------------------------


def on_machine(engine: PyEngine, monkeypatch: pytest.MonkeyPatch, device: str, kind: str) -> None:
    here = Environment((("device", device), ("version", "1")), (("isa", kind),))
    monkeypatch.setattr(engine, "environment", lambda: here)


def test_a_table_tuned_on_another_device_is_reused_through_a_shared_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = install(monkeypatch)
    add = kernel(ACCUMULATE)
    y, x = np.zeros(100), np.ones(100)
    on_machine(engine, monkeypatch, "big", "avx512")
    add.tune(y, x)
    assert add.config_for(y, x) is not None
    on_machine(engine, monkeypatch, "small", "neon")
    assert add.config_for(y, x) is None


def test_the_key_leaves_out_a_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, lambda ndrange, params, y, x: 0)
    add = kernel("@kernel function f!(y, @Const(x)) I = @index(Global, Cartesian); @inbounds y[I] = x[I] end")
    big = np.zeros((40, 60))
    layouts = [np.zeros((20, 30)), np.zeros((20, 30), order="F"), big[::2, ::2]]
    for n, (y, x) in enumerate(itertools.product(layouts, layouts)):
        assert add.config_for(y, x) is None, n
        add.tune(y, x)
    with knobs.scope(check_bounds=True):
        assert add.config_for(layouts[0], layouts[0]) is None


def test_two_writers_tear_a_file_and_results_turn_to_garbage(memo: Path) -> None:
    add = kernel(ACCUMULATE, max_evals=2)
    y, x = np.zeros(100), np.ones(100)
    add(y, x)
    path = memo / FILE_NAME
    jlkern.memo.store.open_store().close()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] + bytes(4096))
    again = kernel(ACCUMULATE, max_evals=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MemoWarning)
        again(y, x)
    assert (y == 2).all()


def test_stale_code_runs_when_a_called_function_changes() -> None:
    source = """
    weight(v) = {factor} * v
    @kernel function apply!(y, @Const(x))
        i = @index(Global)
        @inbounds y[i] = weight(x[i])
    end
    """
    y, x = np.zeros(100), np.ones(100)
    twice = kernel(source.replace("{factor}", "2"), max_evals=2)
    twice(y, x)
    thrice = kernel(source.replace("{factor}", "3"), max_evals=2)
    assert twice.config_for(y, x) is not None and thrice.config_for(y, x) is None
    thrice(y, x)
    assert (y == 3).all()


def test_a_custom_folder_drops_the_version_so_that_an_upgrade_finds_stale_records(
    memo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = install(monkeypatch)
    add = kernel(ACCUMULATE)
    y, x = np.zeros(100), np.ones(100)
    add.tune(y, x)
    assert any(char.isdigit() for char in FILE_NAME) and (memo / FILE_NAME).exists()
    # the version of the engine is in the record: another one lowers its rank, which `explain` tells
    upgraded = Environment((("engine", "python 2"),), engine.environment().same_class)
    monkeypatch.setattr(engine, "environment", lambda: upgraded)
    assert "measured on another machine or versions" in str(add.explain(y, x))


@pytest.mark.parametrize("where", ["no home", "a folder that cannot be made"])
def test_no_place_for_the_cache_raises_instead_of_going_on(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked: dict[str, str | None] = {"JLKERN_CACHE_DIR": str(tmp_path / "file" / "below")}
    homeless: dict[str, str | None] = {
        "HOME": None, "XDG_CACHE_HOME": None, "JLKERN_CACHE_DIR": None, "XDG_CACHE_DIR": None,
    }  # fmt: skip
    code = f"""
import warnings, os
warnings.simplefilter("ignore")
{"import pwd; pwd.getpwuid = lambda uid: (_ for _ in ()).throw(KeyError(uid))" if where == "no home" else ""}
import numpy as np, jlkern
add = jlkern.from_source({ACCUMULATE!r}, tune={{"block": [64, 256]}}, first_call="default")
y = np.zeros(10)
add(y, np.ones(10))
print(int(y.sum()))
"""
    assert python(code, cwd=tmp_path, **(homeless if where == "no home" else blocked)) == "10"


def test_the_cache_folder_silently_differs_between_two_runs(tmp_path: Path) -> None:
    code = "from jlkern.memo.store import open_store; print(open_store().path)"
    (tmp_path / "elsewhere").mkdir()
    plain = {"JLKERN_CACHE_DIR": None, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    first = python(code, cwd=tmp_path, **plain)
    assert first == python(code, cwd=tmp_path / "elsewhere", **plain)


# --- the same everywhere ----------------------------------------------------------------------------------------------


def test_processes_disagree_on_the_winner() -> None:
    add = kernel(ACCUMULATE)
    best = add.tune(np.zeros(2000), np.ones(2000)).best
    assert {python(SECOND_PROCESS) for _ in range(2)} == {f"0 2000 {best}"}


def test_nothing_forces_a_fixed_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = install(monkeypatch)
    monkeypatch.setenv("JLKERN_FROZEN", "1")
    kernel(ACCUMULATE)(np.zeros(10), np.ones(10))
    assert [params for params, _ in engine.launches] == [{"block": 64}]


# --- failures ---------------------------------------------------------------------------------------------------------


def test_one_bad_configuration_ends_the_tuning() -> None:
    source = """
    @kernel function odd!(y, @Const(x))
        i = @index(Global)
        if mode == 1
            y[i + 100000] = x[i]
        elseif mode == 2
            error("not this one")
        elseif mode == 3
            y[i] = no_such_function(x[i])
        else
            y[i] = x[i]
        end
    end
    """
    odd = kernel(source, tune={"mode": [0, 1, 2, 3, 4]}, ndrange="y", inout="y")
    result = odd.tune(np.zeros(1000), np.ones(1000))
    found = {t.config.as_dict()["mode"]: t.status for t in result.trials if not t.config.schedule}
    assert found == {0: "ok", 1: "launch", 2: "launch", 3: "compile", 4: "ok"}


def test_configurations_that_were_only_skipped_look_like_a_users_bug(capfd: pytest.CaptureFixture[str]) -> None:
    add = kernel(ACCUMULATE, tune={"block": [64, 128, 256]}, restrictions=["block != 128"])
    result = add.tune(np.zeros(1000), np.ones(1000))
    assert {t.config.as_dict()["block"] for t in result.trials} == {64, 256}
    assert {t.status for t in result.trials} == {"ok"}
    assert capfd.readouterr() == ("", "")


# --- shapes and devices -----------------------------------------------------------------------------------------------


def test_every_unseen_length_is_tuned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    tuned: list[Any] = []
    real = jlkern.choice.run_tuning
    monkeypatch.setattr(jlkern.choice, "run_tuning", lambda *args: tuned.append(args) or real(*args))
    add = kernel(ACCUMULATE, bucket="pow2", max_evals=2)
    for size in range(520, 1024, 60):
        add(np.zeros(size), np.ones(size))
    assert len(tuned) == 1


def test_an_unknown_device_name_means_a_warning_and_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = install(monkeypatch)
    add = kernel(ACCUMULATE)
    y, x = np.zeros(100), np.ones(100)
    on_machine(engine, monkeypatch, "Model 1", "avx2")
    best = add.tune(y, x).best
    on_machine(engine, monkeypatch, "Model 1 (another stepping)", "avx2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert add.config_for(y, x) == best
        kernel(ACCUMULATE, first_call="default")(np.zeros(7), np.ones(7))


def test_the_nearest_key_is_used_however_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    add = kernel(ACCUMULATE, first_call="nearest", default={"block": 64})
    add.tune(np.zeros(8), np.ones(8))
    assert add.explain(np.zeros(16), np.ones(16)).origin == "nearest"
    assert add.explain(np.zeros(1 << 20), np.ones(1 << 20)).origin == "default"


# --- threads and overhead ---------------------------------------------------------------------------------------------


def test_threads_that_call_while_one_tunes_see_each_others_arguments() -> None:
    add = kernel(ACCUMULATE, max_evals=2)
    sizes = [300, 300, 400, 400, 500, 500]
    arrays = [np.full(n, float(k)) for k, n in enumerate(sizes)]
    barrier = threading.Barrier(len(sizes))
    problems: list[BaseException] = []

    def work(y: Any) -> None:
        try:
            barrier.wait()
            for _ in range(5):
                add(y, np.ones(len(y)))
        except BaseException as problem:
            problems.append(problem)

    workers = [threading.Thread(target=work, args=(y,)) for y in arrays]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not problems
    assert all((y == k + 5).all() for k, y in enumerate(arrays))


def test_every_call_pays_for_the_tuner(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    add = kernel(ACCUMULATE, max_evals=2)
    y, x = np.zeros(10), np.ones(10)
    add(y, x)
    add(y, x)

    def never(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a warm call came here")

    for name in ("call", "plan", "key", "validate", "recall"):
        monkeypatch.setattr(Runtime, name, never)
    monkeypatch.setattr(Store, "winners", never)
    add(y, x)
    assert (y == 3).all()


# --- what wrapper packages do to their host ---------------------------------------------------------------------------


def test_importing_or_calling_takes_signal_handlers_or_the_network() -> None:
    code = f"""
import signal, socket
before = {{s: signal.getsignal(s) for s in signal.valid_signals()}}
def offline(*args, **kwargs):
    raise OSError("offline")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = offline
import numpy as np, jlkern
add = jlkern.from_source({ACCUMULATE!r}, tune={{"block": [64, 256]}}, max_evals=2)
y = np.zeros(1000)
add(y, np.ones(1000))
print(int(y.sum()), before == {{s: signal.getsignal(s) for s in signal.valid_signals()}})
"""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert python(code) == "1000 True"


def test_the_workgroup_size_cannot_be_tuned_before_the_launch_where_local_memory_depends_on_it() -> None:
    source = """
    @kernel function reverse!(y, @Const(x))
        i = @index(Global)
        l = @index(Local)
        tile = @localmem eltype(y) (block,)
        @inbounds tile[l] = x[i]
        @synchronize
        @inbounds y[i] = tile[block - l + 1]
    end
    """
    # groups of different sizes reverse different parts: what must agree is what is in the array, in any order
    reverse = kernel(source, tune={"block": [16, 64]}, ndrange="y", compare={"y": np.sort})
    x = np.arange(1024.0)
    y = np.zeros(1024)
    result = reverse.tune(y, x)
    assert not y.any()
    assert {t.status for t in result.trials} == {"ok"}
    reverse(y, x)
    block = result.best.as_dict()["block"]
    assert np.array_equal(y, x.reshape(-1, block)[:, ::-1].ravel())
