"""The hot path: one look-up from arguments to launch, right for every argument that could be mistaken for another."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import SAXPY, PyEngine, install

import jlkern
from jlkern import dispatch, runtime
from jlkern.memo.store import TrialRecord, Winner
from jlkern.space import Config
from jlkern.tuning import run
from jlkern.tuning.task import Trial, TuneResult, TuneTask

f32 = np.float32


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> PyEngine:
    return install(monkeypatch)


def make(**options: Any) -> jlkern.Kernel[Any]:
    return jlkern.from_source(SAXPY, **options)


def misses(kernel: jlkern.Kernel[Any], monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Record the calls that leave the hot path from here on."""
    seen: list[tuple[Any, ...]] = []
    slow = runtime.Runtime.call

    def call(self: Any, args: tuple[Any, ...], ndrange: Any, config: Any) -> Any:
        if self is kernel._runtime:
            seen.append(args)
        return slow(self, args, ndrange, config)

    monkeypatch.setattr(runtime.Runtime, "call", call)
    return seen


def test_a_warm_call_is_one_look_up(engine: PyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    k = make()
    seen = misses(k, monkeypatch)
    for _ in range(3):
        y, x = np.zeros(8, f32), np.ones(8, f32)
        k(y, f32(2), x)
        assert (y == 2).all()
    assert len(seen) == 1
    assert len(engine.compiled) == 1


def test_what_differs_for_the_compiler_differs_in_the_key(engine: PyEngine) -> None:
    k = make()
    wide = np.ones(16, f32)
    variants: list[tuple[Any, Any, Any]] = [
        (np.zeros(8, f32), f32(1), np.ones(8, f32)),
        (np.zeros(8, f32), 1, np.ones(8, f32)),
        (np.zeros(8, f32), 1.0, np.ones(8, f32)),
        (np.zeros(8, f32), True, np.ones(8, f32)),
        (np.zeros(8), f32(1), np.ones(8, f32)),
        (np.zeros(8, f32), f32(1), wide[::2]),
        (np.zeros(8, f32), f32(1), np.ones(8, np.int32)),
        (np.zeros((8, 2), f32), f32(1), np.ones((8, 2), f32)),
        (np.zeros((8, 2), f32, order="F"), f32(1), np.ones((8, 2), f32)),
    ]
    for _ in range(2):
        for y, a, x in variants:
            y[...] = 0
            k(y, a, x)
            assert (y == 1).all()
    assert len(engine.compiled) == len(variants)
    assert len({r.signature for r in engine.compiled}) == len(variants)


def test_shapes_share_a_launcher(engine: PyEngine) -> None:
    k = make()
    for n in (1, 5, 8):
        k(np.zeros(n, f32), f32(1), np.ones(n, f32))
    assert len(engine.compiled) == 1
    assert [ndrange for _, ndrange in engine.launches] == [(1,), (5,), (8,)]


def test_equal_source_and_options_share_launchers(engine: PyEngine) -> None:
    for k in (make(), make()):
        k(np.zeros(3, f32), f32(1), np.ones(3, f32))
    assert len(engine.compiled) == 1
    jlkern.from_source(SAXPY.replace("a * x", "2a * x"))(np.zeros(3, f32), f32(1), np.ones(3, f32))
    assert len(engine.compiled) == 2


def test_a_read_only_output_is_found_out_also_when_warm(engine: PyEngine) -> None:
    k, y, x = make(), np.zeros(3, f32), np.ones(3, f32)
    k(y, f32(1), x)
    y.flags.writeable = False
    with pytest.raises(jlkern.ArgumentError, match=r"'y'.*read-only"):
        k(y, f32(1), x)
    assert (y == 1).all()
    x.flags.writeable = False
    k(np.zeros(3, f32), f32(1), x)


def test_an_unaligned_array_is_found_out_also_when_warm(engine: PyEngine) -> None:
    k, x = make(), np.ones(3, f32)
    k(np.zeros(3, f32), f32(1), x)
    crooked = np.zeros(13, np.uint8)[1:].view(f32)
    with pytest.raises(jlkern.ArgumentError, match="aligned"):
        k(crooked, f32(1), x)


def test_a_failing_kernel_raises_and_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(ndrange: Any, params: Any, y: Any, a: Any, x: Any) -> int:
        y += 1
        return int(a)

    install(monkeypatch, body)
    k, y, x = make(), np.zeros(3), np.zeros(3)
    with pytest.raises(jlkern.BoundsError, match="status 7"):
        k(y, 7.0, x)
    assert (y == 1).all()
    k(y, 0.0, x)
    with pytest.raises(jlkern.BoundsError, match="status 5"):
        k(y, 5.0, x)
    assert (y == 3).all()
    bound = k.bind(y, 4.0, x)
    with pytest.raises(jlkern.BoundsError, match="status 4"):
        bound()
    assert (y == 4).all()


def test_the_table_is_bounded_and_what_is_in_use_stays_cheap(engine: PyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "TABLE", 4)
    monkeypatch.setattr(runtime, "PLANS", 6)
    k = make()
    for _ in range(2):
        for n in range(1, 20):
            y = np.zeros(n, f32)
            k(y, f32(1), np.ones(n, f32))
            assert (y == 1).all()
    assert len(k._dispatcher.table) == len(k._dispatcher.plans) == 4
    assert len(k._runtime.plans) == 6
    assert len(engine.compiled) == 1


def test_no_call_keeps_its_arrays(engine: PyEngine) -> None:
    for k in (make(), make(ndrange=lambda y: y.size)):
        y = np.zeros(3, f32)
        alive = weakref.ref(y)
        k(y, f32(1), y.copy())
        k(y, f32(1), y.copy())
        k.explain(y, f32(1), y)
        bound = k.bind(y, f32(1), y)
        del y
        gc.collect()
        assert alive() is not None
        bound()
        del bound
        gc.collect()
        assert alive() is None


def test_an_empty_ndrange_launches_nothing(engine: PyEngine) -> None:
    k = make(tune={"block": [1, 2]})
    for shape in ((0,), (3, 0)):
        for _ in range(2):
            k(np.zeros(shape), 1.0, np.zeros(shape))
    k(np.zeros(3), 1.0, np.zeros(3), ndrange=0)
    k.bind(np.zeros(0), 1.0, np.zeros(0))()
    assert not engine.compiled
    assert not engine.launches
    assert k.explain(np.zeros(0), 1.0, np.zeros(0)).notes[0].startswith("the ndrange holds a 0")


def test_python_calling_conventions(engine: PyEngine) -> None:
    three = f32(3)

    @jlkern.kernel(source=SAXPY)
    def scale(y: Any, a: Any = three, *, x: Any) -> None: ...

    for _ in range(2):
        y = np.zeros(2, f32)
        scale(y, x=np.ones(2, f32))
        scale(x=np.ones(2, f32), y=y, a=f32(1))
        assert (y == 4).all()
        with pytest.raises(TypeError, match="x"):
            scale(y)
        with pytest.raises(TypeError):
            scale(y, 1, 2, 3)
        with pytest.raises(TypeError, match="z"):
            scale(y, x=y, z=1)


def test_parameters_may_have_any_names(engine: PyEngine) -> None:
    text = SAXPY.replace("(y, a, @Const(x))", "(self, _jlkern_fire, @Const(status))").replace("y[i]", "self[i]")
    text = text.replace("a * x[i]", "_jlkern_fire * status[i]")
    k = jlkern.from_source(text)
    for _ in range(3):
        y = np.zeros(2, f32)
        k(y, f32(1), np.ones(2, f32))
        k(self=y, _jlkern_fire=f32(1), status=np.ones(2, f32))
        assert (y == 2).all()


def test_names_that_python_lacks(engine: PyEngine) -> None:
    k = jlkern.from_source(SAXPY.replace("(x)", "(lambda)").replace("x[i]", "lambda[i]"))
    for _ in range(2):
        y = np.zeros(2, f32)
        k(y, f32(1), arg3=np.ones(2, f32))
        assert (y == 1).all()


def test_annotations_convert(engine: PyEngine) -> None:
    @jlkern.kernel(source=SAXPY)
    def k(y: Any, a: np.float32 | float, x: Any) -> None: ...

    y, x = np.zeros(2, f32), np.ones(2, f32)
    for a in (1.5, f32(1.5), 1, np.int8(1), np.array(1.0), True):
        y[:] = 0
        k(y, a, x)
        assert (y == f32(a)).all()
    assert [str(r.signature[1]) for r in engine.compiled] == ["float32"]
    for wrong in ("1", None, 1j, y):
        for _ in range(2):
            with pytest.raises(jlkern.ArgumentError, match="'a'"):
                k(y, wrong, x)  # type: ignore[arg-type]


def test_annotated_ints_are_checked(engine: PyEngine) -> None:
    @jlkern.kernel(source=SAXPY)
    def k(y: Any, a: np.int8, x: Any) -> None: ...

    y = np.zeros(2, np.int64)
    k(y, 127, y + 1)  # type: ignore[arg-type]
    assert (y == 127).all()
    for wrong in (128, 1.5, np.uint8(200)):
        with pytest.raises(jlkern.ArgumentError, match="does not fit int8"):
            k(y, wrong, y)  # type: ignore[arg-type]


def test_plain_annotations_change_nothing(engine: PyEngine) -> None:
    @jlkern.kernel(source=SAXPY)
    def k(y: np.ndarray, a: float, x: UnknownName) -> None: ...  # type: ignore[name-defined,type-arg]  # noqa: F821

    k(np.zeros(2, f32), f32(1), np.zeros(2, f32))
    assert str(engine.compiled[0].signature[1]) == "float32"


def test_arrays_of_subclasses(engine: PyEngine, tmp_path: Any) -> None:
    k = make()
    for y in (np.zeros((2, 2)).view(np.matrix), np.memmap(tmp_path / "y", np.float64, "w+", shape=(4,))):
        x = np.ones(y.shape)
        for _ in range(2):
            k(y, 1.0, x)
        k.bind(y, 1.0, x)()
        assert (np.asarray(y) == 3).all()
    masked = np.ma.masked_array(np.zeros(3), [True, False, False])
    k(np.zeros(3), 1.0, np.ones(3))
    with pytest.raises(jlkern.ArgumentError, match="masked"):
        k(masked, 1.0, np.ones(3))


def test_an_argument_of_another_kind_than_at_first(engine: PyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    k = make()
    y, x = np.zeros(2), np.ones(2)
    k(y, 1.0, x)
    for _ in range(3):
        k(y, np.array([1.0, 2.0]), x)
        k(y, np.array(1.0), x)
    assert (y == (7, 10)).all()
    seen = misses(k, monkeypatch)
    k(y, 1.0, x)
    assert not seen


def test_types_tuples_and_constants_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = install(monkeypatch, lambda *args: 0)
    k, y = make(), np.zeros(2)
    values: list[Any] = [np.float32, np.float64, np.dtype("f4"), (1, 2), (1, 2.0), (1,), jlkern.Val(1), jlkern.Val(1.0)]
    values += [jlkern.Val(True), jlkern.julia("abs"), jlkern.julia("abs2"), 1, np.float32(1)]
    for _ in range(2):
        for value in values:
            k(y, value, y)
    assert len({r.signature for r in engine.compiled}) == len(values) - 1  # np.float32 and its dtype are one type
    # also when it is these that the generated function was made for
    k = make()
    count = len(engine.compiled)
    for _ in range(2):
        for value in values:
            k(y, value, y)
    assert len(engine.compiled) == count


# --- ndrange ---------------------------------------------------------------------------------------------------------


def ndranges(engine: PyEngine) -> list[tuple[int, ...]]:
    return [ndrange for _, ndrange in engine.launches]


def test_the_proved_default_is_the_written_arrays_shape(engine: PyEngine) -> None:
    k = make()
    k(np.zeros((2, 3)), 1.0, np.zeros((2, 3)))
    k(np.zeros(()), 1.0, np.zeros(()))
    assert ndranges(engine) == [(2, 3), (1,)]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("x", (6,)),
        (4, (4,)),
        ((2, 3), (2, 3)),
        (("a", 2), (5, 2)),
        (lambda y, items: -(-y.size // items), (3,)),
        (lambda: (7, 1), (7, 1)),
        (("items", lambda a: a + 1), (2, 6)),
        (np.int32(3), (3,)),
    ],
    ids=str,
)
def test_forms_of_ndrange(engine: PyEngine, option: Any, expected: tuple[int, ...]) -> None:
    k = make(ndrange=option, tune={"items": [2]}, restrictions=["items > 1"], first_call="default")
    for _ in range(3):
        k(np.zeros(6), 5, np.zeros(6))
    assert ndranges(engine) == [expected] * 3


def test_named_scalars_belong_to_the_key(engine: PyEngine) -> None:
    k = make(ndrange=("a",))
    for n in (1, 3, 2, 3, 1):
        k(np.zeros(6), n, np.zeros(6))
    assert ndranges(engine) == [(1,), (3,), (2,), (3,), (1,)]
    for n in (np.array(4), np.array(5), np.array(4)):
        k(np.zeros(6), n, np.zeros(6))
    assert ndranges(engine)[5:] == [(4,), (5,), (4,)]


def test_a_callable_is_asked_on_every_call(engine: PyEngine) -> None:
    asked: list[int] = []
    k = make(ndrange=lambda a: asked.append(a) or len(asked))
    y = np.zeros(6)
    for a in range(5):
        k(y, a, y)
    assert len(set(ndranges(engine))) == 5
    assert set(asked) == set(range(5))


def test_a_callable_may_read_array_values(engine: PyEngine) -> None:
    k = make(ndrange=lambda y: int(y[0]))
    y = np.zeros(6)
    for n in (3, 1, 0, 2, 3):
        y[:] = n
        k(y, 0.0, y)
    assert ndranges(engine) == [(3,), (1,), (2,), (3,)]
    # also when the kernel changes what the callable reads
    for n in (3, 1, 4, 2, 5):
        y[:] = n
        k(y, 1.0, np.ones(6))
        assert ndranges(engine)[-1] == (n,)
    y[:] = -1
    with pytest.raises(jlkern.NDRangeError, match="non-negative"):
        k(y, 0.0, y)


def test_a_callable_follows_the_configuration(engine: PyEngine) -> None:
    k = make(
        ndrange=lambda y, items: y.size // items, tune={"items": [1, 2, 4]}, first_call="default", default={"items": 2}
    )
    y = np.zeros(8)
    for _ in range(2):
        k(y, 1.0, y)
        k(y, 1.0, y, config={"items": 4})
    assert engine.launches == [({"items": 2}, (4,)), ({"items": 4}, (2,))] * 2


def test_a_call_may_give_the_ndrange(engine: PyEngine) -> None:
    k = make()
    y = np.zeros(6)
    for ndrange in (3, (2, 2), np.int64(4), 3):
        k(y, 1.0, y, ndrange=ndrange)
    assert ndranges(engine) == [(3,), (2, 2), (4,), (3,)]
    for wrong in (-1, 2.0, "y", (), (1, -1), True):
        with pytest.raises(jlkern.NDRangeError):
            k(y, 1.0, y, ndrange=wrong)


@pytest.mark.parametrize("bad", [lambda y: -1, lambda y: 1.5, lambda y: None, lambda y: (2, "3"), lambda y: ()])
def test_wrong_answers_of_callables(engine: PyEngine, bad: Callable[..., Any]) -> None:
    k = make(ndrange=bad)
    with pytest.raises(jlkern.NDRangeError, match="ndrange="):
        k(np.zeros(6), 1.0, np.zeros(6))


# --- choosing a configuration -------------------------------------------------------------------------------------


@pytest.fixture
def tunings(monkeypatch: pytest.MonkeyPatch) -> list[TuneTask]:
    """Tunings are recorded, and find that the last configuration is best."""
    seen: list[TuneTask] = []

    def tune(task: TuneTask) -> TuneResult:
        seen.append(task)
        time.sleep(0.02)
        best = list(task.space.configs())[-1]
        task.request(best)
        task.store.publish(task.key, Winner(best, 1.0, task.space.default(), 2.0))
        return TuneResult(best, (Trial(best, "ok", 1.0),), Trial(task.space.default(), "ok", 2.0))

    monkeypatch.setattr(run, "tune", tune)
    return seen


def fresh(**options: Any) -> jlkern.Kernel[Any]:
    """Return a kernel that no earlier test has tuned."""
    fresh.count += 1  # type: ignore[attr-defined]
    return jlkern.from_source(SAXPY.replace("a * x[i]", f"a * x[i] + {fresh.count}"), **options)  # type: ignore[attr-defined]


fresh.count = 0  # type: ignore[attr-defined]


def test_the_first_call_tunes_and_the_next_do_not(engine: PyEngine, tunings: list[TuneTask]) -> None:
    k = fresh(tune={"block": [1, 2, 3]})
    y, x = np.zeros(5), np.ones(5)
    for _ in range(3):
        k(y, 1.0, x)
    assert len(tunings) == 1
    assert engine.launches == [({"block": 3}, (5,))] * 3
    assert engine.compiled[-1].workgroup == (3,)
    assert k.config_for(y, 1.0, x) == Config((("block", 3),))
    assert k.config_for(y, 1, x) is None
    again = jlkern.from_source(k.source, tune={"block": [1, 2, 3]})
    again(y, 1.0, x)
    assert len(tunings) == 1


def test_a_new_value_costs_its_own_tuning_once(engine: PyEngine, tunings: list[TuneTask]) -> None:
    y, x = np.zeros(5), np.ones(5)

    def run_with(source: str, tune: dict[str, list[int]]) -> int:
        before = len(tunings)
        k = jlkern.from_source(source, tune=tune, restrictions="items < 3")
        for _ in range(2):
            k(y, 1.0, x)
        for task in tunings[before:]:  # what a real tuning journals
            for config in task.space.configs():
                task.store.end(task.key, TrialRecord(config, "ok", 1.0))
        return len(tunings) - before

    source = fresh().source
    assert run_with(source, {"block": [1, 2], "items": [1, 2]}) == 1
    assert run_with(source, {"block": [1, 2], "items": [1, 2]}) == 0
    assert run_with(source, {"block": [2], "items": [2, 1]}) == 0
    assert run_with(source, {"block": [1, 2, 3], "items": [1, 2]}) == 1
    assert run_with(source, {"block": [1, 2, 3], "items": [1, 2]}) == 0


def test_combinations_that_were_left_out_are_no_new_values(engine: PyEngine, tunings: list[TuneTask]) -> None:
    restrictions = "items < 3"
    k = fresh(tune={"block": [1, 2], "items": [1, 2]}, restrictions=restrictions)
    y, x = np.zeros(5), np.ones(5)
    k(y, 1.0, x)
    for config in list(tunings[0].space.configs())[1:3]:
        tunings[0].store.end(tunings[0].key, TrialRecord(config, "ok", 1.0))
    for blocks in ([1, 2], [1, 2, 4]):
        again = jlkern.from_source(k.source, tune={"block": blocks, "items": [1, 2]}, restrictions=restrictions)
        again(y, 1.0, x)
    assert len(tunings) == 1


def test_each_shape_or_bucket_or_key_has_its_own_tuning(engine: PyEngine, tunings: list[TuneTask]) -> None:
    def count(**options: Any) -> int:
        del tunings[:]
        k = fresh(tune={"block": [1, 2]}, **options)
        for n in (5, 6, 8, 9, 5):
            k(np.zeros(n), n, np.ones(n))
        return len(tunings)

    assert count() == 4
    assert count(bucket="pow2") == 2
    assert count(key=lambda x: x.size > 5) == 2
    assert count(key=lambda: 1) == 1
    assert count(key=lambda a: int(a) % 2) == 2


def test_key_reads_scalars_on_every_call(engine: PyEngine, tunings: list[TuneTask]) -> None:
    k = fresh(tune={"block": [1, 2]}, key=lambda a: a)
    y = np.zeros(5)
    for a in (1, 2, 1, 2):
        k(y, a, y)
    assert len(tunings) == 2


def test_threads_tune_once(engine: PyEngine, tunings: list[TuneTask]) -> None:
    k = fresh(tune={"block": [1, 2, 3]})
    start = threading.Barrier(8)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            start.wait()
            y = np.zeros(5)
            for _ in range(20):
                k(y, 1.0, np.ones(5))
            assert (y == 20).all()
        except BaseException as problem:
            errors.append(problem)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(tunings) == 1
    assert len(engine.compiled) == 1


def test_config_asks_neither_tuning_nor_memo(engine: PyEngine, tunings: list[TuneTask]) -> None:
    k = fresh(tune={"block": [1, 2, 3], "flag": [False, True]}, restrictions=["block != 2 or flag"])
    y, x = np.zeros(5), np.ones(5)
    for _ in range(2):
        k(y, 1.0, x, config={"block": 3})
        k(y, 1.0, x, config={})
    assert [p for p, _ in engine.launches] == [{"block": 3, "flag": False}, {"block": 1, "flag": False}] * 2
    assert not tunings
    for wrong in ({"blocks": 1}, {"block": 4}, {"block": 2}, {"flag": 1}):
        with pytest.raises(jlkern.ConfigError):
            k(y, 1.0, x, config=wrong)


def test_without_tune_nothing_is_tuned(engine: PyEngine, tunings: list[TuneTask]) -> None:
    k = fresh()
    k(np.zeros(5), 1.0, np.ones(5))
    assert not tunings
    assert k.config_for(np.zeros(5), 1.0, np.ones(5)) == Config()


def test_first_call_may_run_the_default_or_the_nearest(engine: PyEngine, tunings: list[TuneTask]) -> None:
    k = fresh(tune={"block": [1, 2]}, first_call="default")
    k(np.zeros(5), 1.0, np.ones(5))
    assert engine.launches[-1][0] == {"block": 1}
    k.tune(np.zeros(5), 1.0, np.ones(5))
    k(np.zeros(5), 1.0, np.ones(5))
    assert engine.launches[-1][0] == {"block": 2}
    near = jlkern.from_source(k.source, tune={"block": [1, 2]}, first_call="nearest")
    near(np.zeros(6), 1.0, np.ones(6))
    assert engine.launches[-1][0] == {"block": 2}
    assert len(tunings) == 1


def test_tune_always_tunes_and_touches_nothing(engine: PyEngine, tunings: list[TuneTask]) -> None:
    k = fresh(tune={"block": [1, 2]})
    y, x = np.zeros(5), np.ones(5)
    for effort in ("quick", "full"):
        result = k.tune(y, 1.0, x, effort=effort)
        assert tunings[-1].settings.effort == effort
    assert result.best == Config((("block", 2),))
    assert not engine.launches
    assert len(tunings) == 2
    with pytest.raises(jlkern.OptionError):
        k.tune(np.zeros(0), 1.0, np.zeros(0))


def test_an_interrupted_tuning_interrupts_the_call(
    engine: PyEngine, monkeypatch: pytest.MonkeyPatch, tunings: list[TuneTask]
) -> None:
    k = fresh(tune={"block": [1, 2]})
    y = np.zeros(5)
    whole = run.tune

    def tune(task: TuneTask) -> TuneResult:
        trial = Trial(task.space.default(), "ok", 1.0)
        return TuneResult(task.space.default(), (trial,), trial, interrupted=True)

    monkeypatch.setattr(run, "tune", tune)
    with pytest.raises(KeyboardInterrupt):
        k(y, 1.0, np.ones(5))
    assert not engine.launches
    assert k.tune(y, 1.0, np.ones(5)).interrupted
    monkeypatch.setattr(run, "tune", whole)
    k(y, 1.0, np.ones(5))
    assert len(tunings) == 1
    assert (y == 1).all()


def test_frozen_never_tunes_and_records(engine: PyEngine, tunings: list[TuneTask]) -> None:
    k = fresh(tune={"block": [1, 2]})
    mine: list[jlkern.Miss] = []
    with jlkern.frozen(record=mine) as found:
        for _ in range(2):
            k(np.zeros(5), 1.0, np.ones(5))
    assert found is mine
    assert [m.ndrange for m in mine] == [(5,)]
    assert "ran block=1" in str(mine[0])
    assert not tunings
    k(np.zeros(5), 1.0, np.ones(5))
    assert len(tunings) == 1
    with jlkern.frozen() as misses:
        k(np.zeros(5), 1.0, np.ones(5))
        k(np.zeros(6), 1.0, np.ones(6))
    assert [(m.ndrange, m.origin) for m in misses] == [((6,), "nearest")]
    assert engine.launches[-1][0] == {"block": 2}


def test_a_call_from_its_own_tuning_runs_the_default(engine: PyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    k = fresh(tune={"block": [1, 2]})
    y = np.zeros(5)

    def tune(task: TuneTask) -> TuneResult:
        k(np.zeros(5), 1.0, np.ones(5))
        trial = Trial(task.space.default(), "ok", 1.0)
        return TuneResult(task.space.default(), (trial,), trial)

    monkeypatch.setattr(run, "tune", tune)
    k(y, 1.0, np.ones(5))
    assert (y == 1).all()


def test_many_tuned_shapes_are_warned_of_once(engine: PyEngine, tunings: list[TuneTask]) -> None:
    k = fresh(tune={"block": [1, 2]})
    with pytest.warns(jlkern.TuningWarning, match=r"8 shapes.*pow2") as caught:
        for n in range(1, 12):
            k(np.zeros(n), 1.0, np.ones(n))
    assert len(caught) == 1


def test_the_workgroup_may_not_have_more_dimensions_than_the_ndrange(engine: PyEngine) -> None:
    k = make(workgroup=(8, 4))
    with pytest.raises(jlkern.WorkgroupError):
        k(np.zeros(6), 1.0, np.zeros(6))
    k(np.zeros((6, 6)), 1.0, np.zeros((6, 6)))
    assert engine.compiled[-1].workgroup == (8, 4)


def test_unknown_shapes_are_as_fast_while_frozen_and_tuned_afterwards(
    engine: PyEngine, tunings: list[TuneTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    k = fresh(tune={"block": [1, 2]})
    y, x = np.zeros(5), np.ones(5)
    with jlkern.frozen() as first:
        k(y, 1.0, x)
        seen = misses(k, monkeypatch)
        for _ in range(3):
            k(y, 1.0, x)
        assert (len(seen), len(first)) == (0, 1)
        with jlkern.frozen() as second:
            for _ in range(3):
                k(y, 1.0, x)
        assert (len(seen), len(first), len(second)) == (1, 1, 1)
    k(y, 1.0, x)
    assert len(tunings) == 1
    with jlkern.frozen() as third:
        k(y, 1.0, x)
    assert third == []


def test_what_is_kept_while_frozen_ends_with_the_knob(
    engine: PyEngine, tunings: list[TuneTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    k = fresh(tune={"block": [1, 2]}, ndrange=lambda y: y.size)
    y, x = np.zeros(5), np.ones(5)
    with jlkern.knobs.knobs.scope(frozen=True):
        k(y, 1.0, x)
        seen = misses(k, monkeypatch)
        k(y, 1.0, x)
        assert seen == []
        for _ in range(2):
            k(y, 1.0, x, ndrange=2)
        assert len(k._runtime.plans) == 1
    k(y, 1.0, x, ndrange=2)
    k(y, 1.0, x)
    assert len(tunings) == 2
