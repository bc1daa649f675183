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
from jlkern.engines.julia import installation

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
    "a device that the engine never has": ({"device": "cuda:0", "engine": "numba"}, errors.EngineError, "cpu only"),
    "device": ({"device": "tpu"}, errors.OptionError, "cuda"),
    "device of another kind": ({"device": 0}, errors.OptionError, "cpu, cuda"),
    "effort": ({"effort": "some"}, errors.OptionError, "'quick' or 'full'"),
    "max_evals": ({"max_evals": 0}, errors.OptionError, "positive"),
    "time_limit": ({"time_limit": -1}, errors.OptionError, "positive"),
    "seed": ({"seed": 1.5}, errors.OptionError, "int"),
    "strategy_options": ({"strategy_options": 3}, errors.OptionError, "mapping"),
    "first_call": ({"first_call": "later"}, errors.OptionError, "tune, amortise, nearest, default"),
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
        jlkern.from_source(source, tune={"block": [1, 2]}, ndrange="x")
    jlkern.from_source(source, tune={"block": [1, 2]}, ndrange="x", inout="y")
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
    __cuda_array_interface__: dict[str, Any] = {
        "version": 3,
        "shape": (3,),
        "typestr": "<f4",
        "strides": None,
        "data": (4096, False),
        "stream": 1,
    }


class OnRocm:
    def __dlpack_device__(self) -> tuple[int, int]:
        return (10, 0)

    def __dlpack__(self, stream: Any = None) -> Any:
        return np.zeros(3, np.float32).__dlpack__()


class OnCpu:
    """A tensor of another library in host memory."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array__(self, *args: Any) -> Any:
        return np.zeros(3)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> PyEngine:
    return install(monkeypatch)


@pytest.fixture
def no_julia(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine where Julia is not set up."""

    def find() -> None:
        raise errors.EngineError("Julia is not set up: run `jlkern setup`")

    monkeypatch.setattr(installation, "find", find)


def test_mixed_homes(engine: PyEngine) -> None:
    k, numba = jlkern.from_source(SAXPY), jlkern.from_source(SAXPY, engine="numba")
    y = np.zeros(3, np.float32)
    for warm in range(2):
        with pytest.raises(errors.HomeError, match=r"'y' on cpu.*'x' on cuda"):
            k(y, 1.0, OnCuda())
        with pytest.raises(errors.HomeError, match=r"'y' on cuda.*'x' on amdgpu"):
            k(OnCuda(), 1.0, OnRocm())
        with pytest.raises(errors.EngineError, match=r"live on cuda.*GPUs need engine='julia'"):
            numba(OnCuda(), 1.0, OnCuda())
        with pytest.raises(errors.ArgumentError, match=r"np.asarray"):
            k(y, 1.0, OnCpu())
        if not warm:
            k(y, 1.0, y)


def test_unsupported_constructs(engine: PyEngine, no_julia: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(source: Any) -> None:
        raise errors.UnsupportedError("line 3: try")

    k = jlkern.from_source(SAXPY)
    monkeypatch.setattr(engine, "check", check)
    k = jlkern.from_source(SAXPY)  # auto: it may be for another engine
    with pytest.raises(errors.UnsupportedError, match=r"(?s)line 3: try.*jlkern setup"):
        k(np.zeros(3), 1.0, np.zeros(3))
    with pytest.raises(errors.UnsupportedError, match="line 3: try"):
        jlkern.from_source(SAXPY, engine="numba")


def test_unsupported_constructs_have_a_name_and_a_line(no_julia: None) -> None:
    source = SAXPY.replace("@inbounds y[i] += a * x[i]", "try\n        y[i] = 1\n    catch\n    end")
    with pytest.raises(errors.UnsupportedError, match=r"line 4 of the source.*`try`"):
        jlkern.from_source(source, engine="numba")
    k = jlkern.from_source(source, ndrange="y")
    for _ in range(2):
        with pytest.raises(errors.UnsupportedError, match=r"(?s)line 4 of the source.*`try`.*jlkern setup"):
            k(np.zeros(3), 1.0, np.zeros(3))


def test_strategies_are_known_when_a_kernel_is_declared() -> None:
    with pytest.raises(errors.OptionError, match=r"saxpy: strategy= must be one of .*genetic_algorithm.*'bayes_opt'"):
        jlkern.from_source(SAXPY, tune={"block": [1, 2]}, strategy="bayes")


def test_key_results(engine: PyEngine) -> None:
    k = jlkern.from_source(SAXPY, tune={"block": [1, 2]}, key=lambda x: {"size": x.size})
    with pytest.raises(errors.OptionError, match="key= returned"):
        k(np.zeros(3), 1.0, np.zeros(3))


def test_homes_of_other_objects() -> None:
    class Strange:
        def __dlpack_device__(self) -> Any:
            raise RuntimeError

    assert select.home_of(Strange()) is None
    assert select.home_of(np.zeros(3)) == "cpu"
    assert select.home_of(1.5) is select.home_of(None) is select.home_of([1]) is None
    assert select.home_of(OnRocm()) == "amdgpu:0"


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


def test_a_tunable_that_reaches_nothing_is_refused() -> None:
    source = (
        "const SIZE = 2 * items\nhelper(i) = i + SIZE\n@kernel function z!(y)\n i = @index(Global)\n y[i] = {}\nend"
    )
    for body in ("helper(i)", "items"):
        jlkern.from_source(source.replace("{}", body), tune={"items": [1, 2]})
    named = source.replace("{}", "1")
    with pytest.raises(errors.TunableError, match=r"z: the tunable 'items' is used nowhere"):
        jlkern.from_source(named, tune={"items": [1, 2]})
    jlkern.from_source(named, tune={"items": [1, 2]}, ndrange=lambda y, items: y.size)
    jlkern.from_source(named, tune={"items": [1, 2]}, ndrange=("items",))
    jlkern.from_source(named, tune={"items": [1, 2]}, workgroup=("items",))
    jlkern.from_source(named, tune={"items": [1, 2]}, workgroup=lambda items: items)
    jlkern.from_source(named, tune={"items": [1, 2]}, restrictions=["items < 3"])
    jlkern.from_source(named.replace("z!(y)", "z!(y, ::Val{items})"), tune={"items": [1, 2]})
    jlkern.from_source(named.replace("z!(y)", "z!(y, ::Val{N})"), tune={"items": [1, 2]})
    with pytest.raises(errors.TunableError, match=r"'itmes' is used nowhere.*did you mean 'items'"):
        jlkern.from_source(source.replace("{}", "items"), tune={"itmes": [1, 2]})
    with pytest.raises(errors.TunableError, match=r"did you mean 'block'"):
        jlkern.from_source(named, tune={"blok": [1, 2]})


def test_mistakes_name_the_kernel_and_its_place() -> None:
    def declare(**options: Any) -> Any:
        def doubled(y: Any) -> None:
            """
            @kernel function doubled!(y)
                i = @index(Global)
                y[i] *= 2
            end
            """

        return jlkern.kernel(**options)(doubled)

    first = inspect.getsourcelines(declare)[1]
    place = rf"test_errors.py:{first + 3}: doubled: "
    for kind, options in (
        (errors.TunableError, {"tune": {"block": []}}),
        (errors.TunableError, {"tune": {"items": [1]}}),
        (errors.EmptySpaceError, {"tune": {"block": [1]}, "restrictions": ["block > 1"]}),
        (errors.NDRangeError, {"ndrange": "z"}),
        (errors.OptionError, {"compare": {"z": None}}),
        (errors.WorkgroupError, {"workgroup": (0,)}),
    ):
        with pytest.raises(kind, match=place):
            declare(**options)
    k = declare(tune={"block": [1, 2]}, first_call="default")
    with pytest.raises(errors.ConfigError, match=place + ".*'blok'.*did you mean 'block'"):
        k(np.zeros(3), config={"blok": 1})
    with pytest.raises(errors.NDRangeError, match=place + ".*a call takes sizes.*decorator"):
        k(np.zeros(3), ndrange="y")


def test_an_ndrange_that_is_not_proved_names_the_line_in_the_file() -> None:
    def shifted(y: Any) -> None:
        """
        @kernel function shifted!(y)
            i = @index(Global)
            y[i + 1] = 2
        end
        """

    first = inspect.getsourcelines(shifted)[1]
    with pytest.raises(errors.NDRangeError, match=rf"test_errors.py:{first + 2}: .*test_errors.py:{first + 4} writes"):
        jlkern.kernel(shifted)


def test_wrong_arguments_and_options_name_the_function(engine: PyEngine) -> None:
    k = jlkern.from_source(SAXPY, tune={"block": [1, 2]})
    with pytest.raises(TypeError, match=r"saxpy\(y, a, x\): missing a required argument: 'x'"):
        k(np.zeros(3), 1.0)
    with pytest.raises(TypeError, match=r"saxpy.tune\(\) has no option 'efort'; did you mean 'effort'"):
        k.tune(np.zeros(3), 1.0, np.zeros(3), efort="full")
    with pytest.raises(TypeError, match=r"jlkern.kernel\(\) has no option 'restriction'; did you mean 'restrictions'"):
        jlkern.kernel(restriction=[])  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"jlkern.from_source\(\) has no option 'tun'; did you mean 'tune'"):
        jlkern.from_source(SAXPY, tun={})  # type: ignore[arg-type]


@pytest.mark.parametrize("record", [False, True, 3, b"misses"])
def test_what_frozen_records_to(record: Any) -> None:
    with pytest.raises(errors.OptionError, match=r"frozen\(record=\) takes a list .* or the path"):
        with jlkern.frozen(record=record):
            pass


def test_a_work_group_of_more_dimensions_than_the_ndrange_is_one_error(engine: PyEngine) -> None:
    blocks = {"block_size_x": [8, 16], "block_size_y": [1, 2]}
    source = SAXPY.replace("saxpy!", "wide!")
    k = jlkern.from_source(source, tune=blocks)
    arrays = np.zeros((3, 3)), 1.0, np.zeros((3, 3))
    for call in (k, k.tune):
        with pytest.raises(errors.WorkgroupError, match=r"wide: the work-group \(8, 1\) has 2 dimensions"):
            call(*arrays, ndrange=9)
    assert not engine.compiled
    mixed = jlkern.from_source(source, tune={"block": [(8, 1), 8]})
    mixed.tune(*arrays, ndrange=9)


def test_a_number_that_is_the_ndrange_stands_in_a_tuple(engine: PyEngine) -> None:
    k = jlkern.from_source(SAXPY, ndrange="a")
    with pytest.raises(errors.NDRangeError, match=r"saxpy: .*write ndrange=\('a',\)"):
        k(np.zeros(3), 3, np.zeros(3))


def test_a_body_with_code_is_refused() -> None:
    def five(y: Any, a: Any, x: Any) -> Any:
        return 5

    def documented(y: Any, a: Any, x: Any) -> Any:
        """Text."""
        return "text"

    def assigning(y: Any, a: Any, x: Any) -> None:
        y = x  # noqa: F841

    for function in (five, documented, assigning):
        with pytest.raises(errors.SignatureError, match="has code in its body"):
            jlkern.kernel(source=SAXPY)(function)

    def passing(y: Any, a: Any, x: Any) -> None:
        pass

    def returning(y: Any, a: Any, x: Any) -> None:
        """Text."""
        return None

    def dotted(y: Any, a: Any, x: Any) -> None:
        """Text."""
        ...  # noqa: PIE790

    for function in (passing, returning, dotted):
        jlkern.kernel(source=SAXPY)(function)
