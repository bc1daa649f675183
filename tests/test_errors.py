"""Every mistake has its class, and a message that says where it is and what to do."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import SAXPY, PyEngine, install

import jlkern
from jlkern import errors
from jlkern.engines import select

SCATTER = """
@kernel function scatter!(y, @Const(x), @Const(where))
    i = @index(Global)
    y[where[i]] = x[i]
end
"""

# a declaration, the class of its error, and what the message must hold
DECLARATIONS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no kernel": ({"source": "f(x) = x"}, errors.SourceError, "no `@kernel`"),
    "not Julia": ({"source": SAXPY.replace("end", "end end")}, errors.SourceSyntaxError, r"line \d"),
    "unclosed": ({"source": SAXPY.replace("y[i]", "y[i")}, errors.SourceSyntaxError, r"line \d"),
    "name of no kernel": ({"source": SAXPY, "name": "other!"}, errors.SourceError, "saxpy!"),
    "a file name as text": ({"source": "saxpy.jl"}, errors.OptionError, "pathlib.Path"),
    "a missing file": ({"source": Path("missing.jl")}, errors.OptionError, "missing.jl"),
    "source of another kind": ({"source": 3}, errors.OptionError, "string or a pathlib.Path"),
    "tune is no mapping": ({"tune": ["block"]}, errors.TunableError, "mapping"),
    "no values": ({"tune": {"block": []}}, errors.TunableError, "block"),
    "a value of a wrong kind": ({"tune": {"block": [None]}}, errors.TunableError, "block"),
    "a value twice": ({"tune": {"block": [1, 1]}}, errors.TunableError, "twice"),
    "a tunable that is no name": ({"tune": {"block size": [1]}}, errors.TunableError, "identifier"),
    "a tunable named like a parameter": ({"tune": {"x": [1, 2]}}, errors.TunableError, "named like a parameter"),
    "restrictions without tune": ({"restrictions": ["a > 1"]}, errors.TunableError, "tune="),
    "default without tune": ({"default": {"a": 1}}, errors.TunableError, "tune="),
    "a restriction on no tunable": ({"tune": {"b": [1]}, "restrictions": ["c > 1"]}, errors.TunableError, "c"),
    "a restriction that does not parse": ({"tune": {"b": [1]}, "restrictions": ["b >"]}, errors.TunableError, "b >"),
    "an empty space": ({"tune": {"b": [1]}, "restrictions": ["b > 1"]}, errors.EmptySpaceError, "b > 1"),
    "a default outside": ({"tune": {"b": [1]}, "default": {"b": 2}}, errors.TunableError, "b=2"),
    "a default that is restricted": (
        {"tune": {"b": [1, 2]}, "default": {"b": 2}, "restrictions": ["b < 2"]},
        errors.TunableError,
        "b < 2",
    ),
    "workgroup of no tunable": ({"workgroup": ("blocks",)}, errors.WorkgroupError, "blocks"),
    "workgroup of no size": ({"workgroup": (0,)}, errors.WorkgroupError, "positive"),
    "workgroup with any keywords": ({"workgroup": lambda **p: 1}, errors.OptionError, "name"),
    "ndrange that cannot be proved": ({"source": SCATTER}, errors.NDRangeError, "ndrange="),
    "ndrange of no parameter": ({"ndrange": "z"}, errors.NDRangeError, "'z'"),
    "ndrange with a wrong size": ({"ndrange": (4, -1)}, errors.NDRangeError, "non-negative"),
    "ndrange that is empty": ({"ndrange": ()}, errors.NDRangeError, "empty"),
    "ndrange of another kind": ({"ndrange": 1.5}, errors.NDRangeError, "1.5"),
    "ndrange with any arguments": ({"ndrange": lambda *a: 1}, errors.OptionError, "must name"),
    "ndrange of unknown names": ({"ndrange": lambda n: n}, errors.OptionError, "'n'"),
    "bucket": ({"bucket": "pow3"}, errors.OptionError, "pow2"),
    "key and bucket": ({"bucket": "pow2", "key": lambda x: 1}, errors.OptionError, "one of them"),
    "key that is no callable": ({"key": "x"}, errors.OptionError, "callable"),
    "key of unknown names": ({"key": lambda n: n}, errors.OptionError, "'n'"),
    "inout of no parameter": ({"inout": "z"}, errors.OptionError, "'z'"),
    "inout of another kind": ({"inout": 3}, errors.OptionError, "names"),
    "compare of no output": ({"compare": {"x": None}}, errors.OptionError, "outputs y"),
    "compare with no function": ({"compare": {"y": 3}}, errors.OptionError, "function"),
    "compare of another kind": ({"compare": "y"}, errors.OptionError, "mapping"),
    "reference": ({"reference": 3}, errors.OptionError, "function"),
    "tolerance": ({"tolerance": -1.0}, errors.OptionError, ">= 0"),
    "tolerance of no parameter": ({"tolerance": {"z": 1.0}}, errors.OptionError, "'z'"),
    "engine": ({"engine": "cuda"}, errors.OptionError, "auto, numba, julia"),
    "the engine that is not there": ({"engine": "julia"}, errors.EngineError, "not available"),
    "device": ({"device": "cuda:0"}, errors.EngineError, "cpu only"),
    "device of another kind": ({"device": 0}, errors.OptionError, "'cpu'"),
    "effort": ({"effort": "some"}, errors.OptionError, "'quick' or 'full'"),
    "max_evals": ({"max_evals": 0}, errors.OptionError, "positive"),
    "time_limit": ({"time_limit": -1}, errors.OptionError, "positive"),
    "seed": ({"seed": 1.5}, errors.OptionError, "int"),
    "strategy_options": ({"strategy_options": 3}, errors.OptionError, "mapping"),
    "first_call": ({"first_call": "amortise"}, errors.OptionError, "tune, nearest, default"),
    "on_busy": ({"on_busy": "fail"}, errors.OptionError, "'wait' or 'default'"),
    "an option that does not exist": ({"tun": {}}, TypeError, "tun"),
}


@pytest.mark.parametrize("case", DECLARATIONS)
def test_declarations(case: str) -> None:
    options, kind, message = DECLARATIONS[case]
    options = dict(options)
    source = options.pop("source", SAXPY)
    with pytest.raises(kind, match=message):
        jlkern.from_source(source, **options)
    count = 3

    def saxpy(y: Any, a: Any, x: Any) -> None: ...

    with pytest.raises(kind, match=message):
        jlkern.kernel(source=source, **options)(saxpy)
    assert count == 3


def test_several_kernels_need_a_name() -> None:
    with pytest.raises(errors.SourceError, match="name="):
        jlkern.from_source(SAXPY + SAXPY.replace("saxpy!", "other!"))


def test_effects_that_cannot_be_proved() -> None:
    source = SAXPY.replace("@inbounds y[i] += a * x[i]", "fill_it!(y, i)\n    x[i]")
    with pytest.raises(errors.EffectsError, match=r"line \d of the source.*inout="):
        jlkern.from_source(source, tune={"b": [1, 2]}, ndrange="x")
    jlkern.from_source(source, tune={"b": [1, 2]}, ndrange="x", inout="y")
    jlkern.from_source(source, ndrange="x")


def test_what_may_be_written_is_treated_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = install(monkeypatch, lambda *args: 0)
    source = SAXPY.replace("@inbounds y[i] += a * x[i]", "fill_it!(y, a, i)\n    x[i]")
    k = jlkern.from_source(source, ndrange="x")
    y = np.zeros(3)
    k(y, 1.0, y)  # a number cannot be written
    assert engine.compiled[-1].written >= {"y"}
    y.flags.writeable = False
    with pytest.raises(errors.ArgumentError, match="inout="):
        k(y, 1.0, np.zeros(3))


def test_python_parameters() -> None:
    def few(y: Any, x: Any) -> None: ...
    def rest(y: Any, *args: Any) -> None: ...
    def named(y: Any, **options: Any) -> None: ...
    def taken(y: Any, a: Any, ndrange: Any) -> None: ...
    def taken_too(y: Any, a: Any, config: Any) -> None: ...

    cases = [
        (few, r"\(y, x\).*\(y, a, x\)"),
        (rest, "args"),
        (named, "options"),
        (taken, "ndrange"),
        (taken_too, "config"),
    ]
    for function, message in cases:
        with pytest.raises(errors.SignatureError, match=message):
            jlkern.kernel(source=SAXPY)(function)
    with pytest.raises(errors.SignatureError, match="config"):
        jlkern.from_source(SAXPY.replace("x)", "config)").replace("x[", "config["))


def test_what_is_decorated() -> None:
    with pytest.raises(errors.MissingSourceError, match="docstring"):

        @jlkern.kernel
        def nothing(y: Any) -> None: ...

    with pytest.raises(errors.MissingSourceError):

        @jlkern.kernel(tune={"b": [1]})
        def words(y: Any) -> None:
            """Only words."""

    with pytest.raises(errors.OptionError, match=r"tune=\{"):
        jlkern.kernel({"block": [1]})  # type: ignore[call-overload]
    with pytest.raises(errors.OptionError, match="function"):
        jlkern.kernel(source=SAXPY)(len)  # type: ignore[arg-type]
    with pytest.raises(errors.SignatureError, match="already"):
        jlkern.kernel(source=SAXPY)(jlkern.from_source(SAXPY))


def test_lines_are_those_of_the_python_file() -> None:
    line = inspect.currentframe().f_lineno  # type: ignore[union-attr]
    with pytest.raises(errors.SourceError) as raised:

        @jlkern.kernel
        def broken(y: Any) -> None:
            r"""
            @kernel function broken!(@Const(y))
                i = @index(Global)
                y[i] = 1
            end
            """

    assert f"{__file__}:{line + 8}" in str(raised.value)


# --- calls ------------------------------------------------------------------------------------------------------------


class OnCuda:
    """An array of another library, on a GPU."""

    shape, dtype, strides = (3,), np.dtype("f4"), (4,)
    __cuda_array_interface__: dict[str, Any] = {"version": 3}


class OnRocm:
    def __dlpack_device__(self) -> tuple[int, int]:
        return (10, 0)


class OnCpu:
    """A tensor of another library in host memory."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array__(self, *args: Any) -> Any:
        return np.zeros(3)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> PyEngine:
    return install(monkeypatch)


def test_mixed_homes(engine: PyEngine) -> None:
    k = jlkern.from_source(SAXPY)
    y = np.zeros(3, np.float32)
    for warm in range(2):
        with pytest.raises(errors.HomeError, match=r"'y' on cpu.*'x' on cuda"):
            k(y, 1.0, OnCuda())
        with pytest.raises(errors.HomeError, match=r"'y' on cuda.*'x' on rocm"):
            k(OnCuda(), 1.0, OnRocm())
        with pytest.raises(errors.EngineError, match=r"live on cuda.*julia engine is not available"):
            k(OnCuda(), 1.0, OnCuda())
        with pytest.raises(errors.ArgumentError, match=r"np.asarray"):
            k(y, 1.0, OnCpu())
        if not warm:
            k(y, 1.0, y)


def test_unsupported_constructs(engine: PyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(source: Any) -> None:
        raise errors.UnsupportedError("line 3: try")

    k = jlkern.from_source(SAXPY)
    monkeypatch.setattr(engine, "check", check)
    k = jlkern.from_source(SAXPY)  # auto: it may be for another engine
    with pytest.raises(errors.UnsupportedError, match=r"(?s)line 3: try.*julia engine is not available"):
        k(np.zeros(3), 1.0, np.zeros(3))
    with pytest.raises(errors.UnsupportedError, match="line 3: try"):
        jlkern.from_source(SAXPY, engine="numba")


def test_unsupported_constructs_have_a_name_and_a_line() -> None:
    source = SAXPY.replace("@inbounds y[i] += a * x[i]", "try\n        y[i] = 1\n    catch\n    end")
    with pytest.raises(errors.UnsupportedError, match=r"line 4 of the source.*`try`"):
        jlkern.from_source(source, engine="numba")
    k = jlkern.from_source(source, ndrange="y")
    for _ in range(2):
        with pytest.raises(
            errors.UnsupportedError, match=r"(?s)line 4 of the source.*`try`.*julia engine is not available"
        ):
            k(np.zeros(3), 1.0, np.zeros(3))


def test_strategies_are_looked_up_when_kernel_tuner_is_there(engine: PyEngine) -> None:
    k = jlkern.from_source(SAXPY, tune={"b": [1, 2]}, strategy="no_such_strategy")
    with pytest.raises(errors.OptionError, match=r"strategy= must be one of .*genetic_algorithm"):
        k(np.zeros(3), 1.0, np.zeros(3))


def test_key_results(engine: PyEngine) -> None:
    k = jlkern.from_source(SAXPY, tune={"b": [1, 2]}, key=lambda x: {"size": x.size})
    with pytest.raises(errors.OptionError, match="key= returned"):
        k(np.zeros(3), 1.0, np.zeros(3))


def test_homes_of_other_objects() -> None:
    class Strange:
        def __dlpack_device__(self) -> Any:
            raise RuntimeError

    assert select.home_of(Strange()) is None
    assert select.home_of(np.zeros(3)) == "cpu"
    assert select.home_of(1.5) is select.home_of(None) is select.home_of([1]) is None
    assert select.home_of(OnRocm()) == "rocm"


@pytest.mark.parametrize("name", [n for n in jlkern.__all__ if n.endswith("Error")])
def test_every_error_is_one_of_ours_and_pickles(name: str) -> None:
    kind = getattr(jlkern, name)
    assert issubclass(kind, jlkern.JlkernError)
    assert kind.__doc__
    again = pickle.loads(pickle.dumps(kind("text")))
    assert type(again) is kind
    assert str(again) == "text"


def test_every_error_is_public() -> None:
    ours = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and kind.__module__ == errors.__name__
    }
    assert ours <= set(jlkern.__all__)
