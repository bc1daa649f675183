"""Warm-up: what is compiled and tuned ahead is what calls then use."""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import SAXPY, PyEngine, install

import jlkern
from jlkern import stored
from jlkern.signature import ArgType, ArrayArg, FunctionArg, ScalarArg, TypeArg, ValArg, classify

f32 = np.float32
VECTOR = jlkern.Array(f32, 1000)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> PyEngine:
    return install(monkeypatch)


def test_what_is_precompiled_is_what_calls_launch(engine: PyEngine) -> None:
    k = jlkern.from_source(SAXPY, tune={"block": [32, 64]}, first_call="default")
    specs: list[Any] = [
        (VECTOR, f32, VECTOR),
        (VECTOR, 2, VECTOR),
        [jlkern.Array("f4", (3, 4), "F"), float, jlkern.Array("f4", (3, 4), "S")],
    ]
    made = jlkern.precompile(k, *specs)
    assert [p.ndrange for p in made] == [(1000,), (1000,), (3, 4)]
    assert str(made[0]).startswith("saxpy(float32[:], float32, float32[:]): block=32 (default)")
    assert len(engine.compiled) == 3
    assert not engine.launches
    y = np.zeros(7, f32)
    k(y, f32(1), y)
    k(y, 2, y)
    k(np.zeros((5, 6), f32, order="F"), 1.0, np.zeros((12, 10), f32)[::2, :6][:5])
    assert len(engine.compiled) == 3


def test_values_where_ndrange_reads_them(engine: PyEngine) -> None:
    k = jlkern.from_source(SAXPY, ndrange=lambda a: a * 2)
    assert jlkern.precompile(k, (VECTOR, 5, VECTOR))[0].ndrange == (10,)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ([(VECTOR, f32)], "give each of them a type"),
        ([(VECTOR, "f4", VECTOR)], "neither"),
        ([(VECTOR, dict, VECTOR)], "no scalar type"),
        ([(np.zeros(3), 1.0, VECTOR)], "describe an array"),
        ([(jlkern.Array("f4", 0), 1.0, VECTOR)], "holds a 0"),
        ([], "nothing is remembered"),
    ],
)
def test_wrong_signatures(engine: PyEngine, specs: list[Any], message: str) -> None:
    k = jlkern.from_source(SAXPY + "# wrong\n")
    with pytest.raises(jlkern.JlkernError, match=message):
        jlkern.precompile(k, *specs)
    with pytest.raises(jlkern.OptionError, match="not 3"):
        jlkern.precompile(3)  # type: ignore[arg-type]
    with pytest.raises(jlkern.OptionError, match="tune=True"):
        jlkern.precompile(k, make_args=lambda: ())


def test_modules(engine: PyEngine) -> None:
    module = types.ModuleType("kernels")
    module.a = jlkern.from_source(SAXPY)  # type: ignore[attr-defined]
    module.b = jlkern.from_source("@kernel function b!(y)\n i = @index(Global)\n y[i] = 1\nend")  # type: ignore[attr-defined]
    module.again = module.a  # type: ignore[attr-defined]
    made = jlkern.precompile(module, (VECTOR, f32, VECTOR), (VECTOR,))
    assert [p.kernel for p in made] == ["saxpy", "b"]
    with pytest.raises(jlkern.OptionError, match="takes 2 arguments"):
        jlkern.precompile(module, (VECTOR, f32))
    with pytest.raises(jlkern.OptionError, match="holds no kernels"):
        jlkern.precompile(types.ModuleType("empty"), (VECTOR,))


def test_what_the_memo_knows_is_precompiled_without_signatures(engine: PyEngine) -> None:
    k = jlkern.from_source(SAXPY.replace("a * x", "7a * x"), tune={"block": [32, 64]})
    x = np.ones((4, 3), f32)
    k.tune(np.zeros((4, 3), f32), 2.0, x)
    k.tune(np.zeros(5, f32), 2.0, np.ones(5, f32))
    engine.compiled.clear()
    jlkern.compiled.forget_launchers()
    module = types.ModuleType("kernels")
    module.k = k  # type: ignore[attr-defined]
    for made in (jlkern.precompile(k), jlkern.precompile(module)):
        assert [(p.ndrange, p.origin) for p in made] == [((4, 3), "memo"), ((5,), "memo")]
    count = len(engine.compiled)
    k(np.zeros((4, 3), f32), 2.0, x)
    assert len(engine.compiled) == count


KINDS: list[ArgType] = [
    ScalarArg("float32"),
    TypeArg("int8"),
    FunctionArg("abs2"),
    ValArg(3),
    ValArg(1.0),
    ValArg(("a", True)),
    *(ArrayArg("int16", n, layout) for n in (1, 2, 3) for layout in ("F", "C", "S") if n > 1 or layout != "C"),  # type: ignore[arg-type]
    ArrayArg("complex64", 0, "F"),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_argument_types_read_back(kind: ArgType) -> None:
    shape = (2, 3, 4)[: kind.ndim] if isinstance(kind, ArrayArg) else None
    item = stored.parse(str(kind), shape)
    made = item.empty() if isinstance(item, jlkern.Array) else item
    if isinstance(kind, ScalarArg):
        made = made(1)
    assert classify("x", made) == kind


def test_nonsense_does_not_read_back() -> None:
    for text in ("", "float99", "float32[:]", "Val(__import__('os'))", "julia(3)", "Type[x]", "(int64, int64)"):
        assert stored.parse(text) is None
    assert stored.parse("float32[:]", (1, 2)) is None
    assert stored.parse("float32[:]", ("a",)) is None


# --- tuning in a process of its own ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("kernels")
    Path(folder / "jlkern_precompile_kernels.py").write_text(
        "import jlkern\n"
        "@jlkern.kernel(tune={'block': [32, 64]}, max_evals=2)\n"
        "def saxpy(y, a, x) -> None:\n"
        '    """\n'
        "    @kernel function saxpy!(y, a, @Const(x))\n"
        "        i = @index(Global)\n"
        "        @inbounds y[i] += a * x[i]\n"
        "    end\n"
        '    """\n'
        "@jlkern.kernel(tune={'block': [32, 64]}, max_evals=2, ndrange='x', inout='y')\n"
        "def scatter(y, x, at) -> None:\n"
        '    """\n'
        "    @kernel function scatter!(y, @Const(x), @Const(at))\n"
        "        i = @index(Global)\n"
        "        @inbounds y[at[i] + 1000] = x[i]\n"
        "    end\n"
        '    """\n'
    )
    sys.path.insert(0, str(folder))
    try:
        import jlkern_precompile_kernels  # type: ignore[import-not-found]

        yield jlkern_precompile_kernels
    finally:
        sys.path.remove(str(folder))


def test_tuning_ahead(kernels: Any) -> None:
    (made,) = jlkern.precompile(kernels.saxpy, (VECTOR, f32, VECTOR), tune=True)
    assert made.origin == "memo"
    y, x = np.zeros(1000, f32), np.ones(1000, f32)
    assert kernels.saxpy.config_for(y, f32(2), x) == made.config
    assert len(kernels.saxpy.explain(y, f32(2), x).trials) == 2
    kernels.saxpy(y, f32(2), x)
    assert (y == 2).all()


def test_a_kernel_that_goes_by_contents_needs_arguments(kernels: Any) -> None:
    spec = (VECTOR, VECTOR, jlkern.Array("int64", 1000))
    with pytest.raises(jlkern.OptionError, match="make_args="):
        jlkern.precompile(kernels.scatter, spec, tune=True)

    def make_args() -> Any:
        return np.zeros(2000, f32), np.ones(1000, f32), np.arange(1000)

    (made,) = jlkern.precompile(kernels.scatter, tune=True, make_args=make_args)
    assert made.origin == "memo"


def test_a_kernel_that_cannot_leave_the_process_says_so() -> None:
    k = jlkern.from_source(SAXPY, tune={"block": [32, 64]}, ndrange=lambda y: y.size)
    with pytest.raises(jlkern.OptionError, match="cannot be sent to a worker"):
        jlkern.precompile(k, (VECTOR, f32, VECTOR), tune="again")


def test_what_is_remembered_is_tuned_again_on_demand_only(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("jlkern.precompile")
    k = jlkern.from_source(SAXPY, tune={"block": [32, 64]})
    spec = (jlkern.Array(f32, 3210), f32, jlkern.Array(f32, 3210))
    apart: list[object] = []

    def tune_here(kernel: Any, spec: Any) -> None:
        apart.append(spec)
        kernel.tune(*module.arguments(kernel, spec, fill=True))

    monkeypatch.setattr(module, "tune_apart", tune_here)
    assert jlkern.precompile(k, spec, tune=True)[0].origin == "memo" and len(apart) == 1
    assert jlkern.precompile(k, spec, tune=True)[0].origin == "memo" and len(apart) == 1
    jlkern.precompile(k, spec, tune="again")
    assert len(apart) == 2
