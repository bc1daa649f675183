"""The decorator and what hangs on a kernel: names, signature, help, classes, and the handles."""

from __future__ import annotations

import inspect
import linecache
import os
import pydoc
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import SAXPY, PyEngine, install

import jlkern

f32 = np.float32


@jlkern.kernel
def saxpy(y: Any, a: Any, x: Any) -> None:
    r"""
    @kernel function saxpy!(y, a, @Const(x))
        i = @index(Global)
        @inbounds y[i] += a * x[i]
    end
    """


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> PyEngine:
    return install(monkeypatch)


def args(n: int = 4) -> tuple[Any, Any, Any]:
    return np.zeros(n, f32), f32(2), np.ones(n, f32)


def test_a_kernel_looks_like_its_function() -> None:
    assert isinstance(saxpy, jlkern.Kernel)
    assert saxpy.__name__ == saxpy.__qualname__ == "saxpy"
    assert saxpy.__module__ == __name__
    assert "@kernel function saxpy!" in (saxpy.__doc__ or "")
    assert inspect.isfunction(saxpy.__wrapped__)
    assert str(inspect.signature(saxpy)) == "(y: 'Any', a: 'Any', x: 'Any', *, ndrange=None, config=None) -> 'None'"
    assert list(inspect.signature(saxpy.__wrapped__).parameters) == ["y", "a", "x"]
    assert inspect.getsource(saxpy).startswith("@jlkern.kernel")  # type: ignore[arg-type]
    assert callable(saxpy)
    assert typing.get_type_hints(saxpy) == {"y": Any, "a": Any, "x": Any}
    assert repr(saxpy).startswith("<jlkern kernel saxpy(")


def test_help_shows_the_call_and_the_source() -> None:
    text = pydoc.render_doc(saxpy, renderer=pydoc.plaintext)
    assert "saxpy(y: 'Any', a: 'Any', x: 'Any', *, ndrange=None, config=None)" in text
    assert "@inbounds y[i] += a * x[i]" in text


def test_the_signature_stays_after_a_call(engine: PyEngine) -> None:
    before = inspect.signature(saxpy)
    saxpy(*args())
    assert inspect.signature(saxpy) == before
    with pytest.raises(TypeError, match=r"saxpy\(\)"):
        saxpy(1)  # type: ignore[call-overload]


def test_sources(engine: PyEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @jlkern.kernel(source=SAXPY)
    def by_text(y: Any, a: Any, x: Any) -> None:
        """Its own docstring."""

    assert by_text.__doc__ == "Its own docstring."
    assert by_text.source == SAXPY
    path = tmp_path / "saxpy.jl"
    path.write_text(SAXPY)
    by_path = jlkern.kernel(source=path)(by_text.__wrapped__)
    named = jlkern.from_source(path)
    plain = jlkern.from_source(SAXPY)
    for k in (by_text, by_path, named, plain):
        y, a, x = args()
        k(y, a, x)
        assert (y == 2).all()
    assert plain.__name__ == "saxpy"
    assert str(inspect.signature(plain)) == "(y, a, x, *, ndrange=None, config=None)"
    # relative paths go by the module that holds the kernel
    (tmp_path / "mod.py").write_text(
        "import jlkern, pathlib\n"
        "@jlkern.kernel(source=pathlib.Path('saxpy.jl'))\n"
        "def a(y, a, x) -> None: ...\n"
        "b = jlkern.from_source(pathlib.Path('saxpy.jl'))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import mod  # type: ignore[import-not-found]

    assert mod.a.source == mod.b.source == SAXPY


def test_several_kernels_in_a_source(engine: PyEngine) -> None:
    both = SAXPY + SAXPY.replace("saxpy!", "other!")
    assert jlkern.from_source(both, name="other!").__name__ == "other"

    @jlkern.kernel(source=both)
    def other(y: Any, a: Any, x: Any) -> None: ...

    other(*args())
    assert engine.compiled[-1].source.name == "other!"
    with pytest.raises(jlkern.SourceError, match=r"name="):
        jlkern.from_source(both)


def test_python_names_may_differ(engine: PyEngine) -> None:
    @jlkern.kernel(source=SAXPY, ndrange=lambda out: out.size)
    def k(out: Any, factor: Any, inp: Any) -> None: ...

    y, a, x = args()
    k(out=y, factor=a, inp=x)
    assert (y == 2).all()
    with pytest.raises(jlkern.ArgumentError, match="'out'"):
        k(None, a, x)


def test_bodies_are_empty() -> None:
    def code(y: Any, a: Any, x: Any) -> None:
        y += a * x

    def returns(y: Any, a: Any, x: Any) -> int: ...

    async def waits(y: Any, a: Any, x: Any) -> None: ...

    def passes(y: Any, a: Any, x: Any) -> None:
        pass

    def documented(y: Any, a: Any, x: Any) -> None:
        """Words."""

    def unsaid(y, a, x): ...  # type: ignore[no-untyped-def]

    for wrong in (code, returns, waits):
        with pytest.raises(jlkern.SignatureError):
            jlkern.kernel(source=SAXPY)(wrong)  # type: ignore[arg-type]
    for right in (passes, documented, unsaid):
        jlkern.kernel(source=SAXPY)(right)


def test_kernels_in_classes(engine: PyEngine) -> None:
    class Fine:
        @staticmethod
        @jlkern.kernel(source=SAXPY)
        def k(y: Any, a: Any, x: Any) -> None: ...

    y, a, x = args()
    Fine.k(y, a, x)
    Fine().k(y, a, x)
    assert (y == 4).all()

    class Wrong:
        @jlkern.kernel(source=SAXPY)
        def k(y: Any, a: Any, x: Any) -> None: ...

    with pytest.raises(jlkern.SignatureError, match="use @staticmethod"):
        Wrong().k(a, x)
    with pytest.raises(jlkern.SignatureError, match="use @staticmethod"):

        class Method:
            @jlkern.kernel(source=SAXPY)
            def k(self, y: Any, a: Any, x: Any) -> None: ...

    with pytest.raises(jlkern.SignatureError, match="@staticmethod above"):

        class Below:
            @jlkern.kernel(source=SAXPY)  # type: ignore[arg-type]
            @staticmethod
            def k(y: Any, a: Any, x: Any) -> None: ...


def test_bind(engine: PyEngine) -> None:
    y, a, x = args()
    bound = saxpy.bind(y, a, x=x)
    assert isinstance(bound, jlkern.Bound)
    assert bound() is None
    bound()
    assert (y == 4).all()
    assert bound.arguments[0] is y
    assert bound.ndrange == (4,)
    assert bound.config == jlkern.Config()
    assert "(4,)" in repr(bound)
    with pytest.raises(TypeError):
        bound(y)
    saxpy.bind(y, a, x, ndrange=(2,), config={})()
    assert engine.launches[-1] == ({}, (2,))
    with pytest.raises(jlkern.ArgumentError):
        saxpy.bind([1.0], a, x)


def test_lower_gives_the_code_of_a_configuration(engine: PyEngine) -> None:
    k = jlkern.from_source(SAXPY, tune={"block": [1, 2]})
    assert k.lower(*args()) == "# saxpy! with {'block': 1}"
    assert k.lower(*args(), config={"block": 2}) == "# saxpy! with {'block': 2}"
    assert not engine.launches


def test_explain(engine: PyEngine) -> None:
    k = jlkern.from_source(SAXPY + "# explained\n", tune={"block": [1, 2]}, engine="auto")
    y, _, x = args()
    e = k.explain(y, 2.0, x)
    assert (e.origin, e.config, e.ndrange) == ("unknown", None, (4,))
    assert any("Float64 among Float32" in note for note in e.notes)
    text = str(e)
    assert "saxpy(float32[:], float64, float32[:])" in text
    assert "the next call tunes first" in text
    assert not any("Float64" in note for note in k.explain(y, f32(2), x).notes)
    assert not any("Float64" in note for note in k.explain(np.zeros(3), 2.0, np.zeros(3)).notes)
    assert saxpy.explain(*args()).origin == "untuned"
    assert not engine.launches


def test_kernels_in_a_notebook(engine: PyEngine) -> None:
    text = (
        "import jlkern\n"
        "@jlkern.kernel\n"
        "def k(y, a, x) -> None:\n"
        '    """\n'
        "    @kernel function k!(y, a, @Const(x))\n"
        "        i = @index(Global)\n"
        "        y[i] += a * x[i]\n"
        "    end\n"
        '    """\n'
    )
    name = "<ipython-input-7-jlkern>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), space)
    y, a, x = args()
    space["k"](y, a, x)
    assert (y == 2).all()
    assert engine.compiled[-1].source.origin.where(1).startswith(name)


def test_kernels_without_docstrings(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import jlkern\n"
        "try:\n"
        "    @jlkern.kernel\n"
        "    def k(y) -> None:\n"
        '        """@kernel function k!(y)\n        end"""\n'
        "except jlkern.MissingSourceError as problem:\n"
        "    print(problem)\n"
        "@jlkern.kernel(source='@kernel function k!(y)\\n i = @index(Global)\\n y[i] = 1\\nend')\n"
        "def k(y) -> None: ...\n"
        "print(k)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-OO", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "-OO" in done.stdout
    assert "source=" in done.stdout
    assert "<jlkern kernel k(y) -> None>" in done.stdout


def test_the_public_surface() -> None:
    assert dir(jlkern) == jlkern.__all__
    for name in jlkern.__all__:
        assert getattr(jlkern, name) is not None
    with pytest.raises(AttributeError):
        jlkern.nothing
    assert jlkern.synchronize() is jlkern.synchronize("cpu") is None  # type: ignore[func-returns-value]


def test_repr_shows_annotations_as_they_are_written() -> None:
    assert repr(saxpy) == "<jlkern kernel saxpy(y: Any, a: Any, x: Any) -> None>"


def test_a_config_goes_wherever_a_mapping_does(engine: PyEngine) -> None:
    k = jlkern.from_source(SAXPY, tune={"block": [8, 16]}, first_call="default")
    config = k.config_for(*args())
    assert config is not None
    k(*args(), config=config)
    k(*args(), config=jlkern.Config((("block", 16),)))
    assert [params["block"] for params, _ in engine.launches] == [8, 16]
    assert k.bind(*args(), config=config).config == config
    assert "8" in k.lower(*args(), config=config)
    again = jlkern.from_source(SAXPY, tune={"block": [8, 16]}, first_call="default", default=k.bind(*args()).config)
    assert again.config_for(*args()) == config
