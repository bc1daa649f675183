"""The command line says what is there, and does what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from helpers import SAXPY, install

import jlkern
from jlkern.cli import main


@pytest.fixture(autouse=True)
def memo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JLKERN_CACHE_DIR", str(tmp_path / "memo"))
    return tmp_path / "memo"


def call(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_the_cache(memo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nothing is remembered" in call("cache", "show").output
    assert call("cache", "path").output.startswith(str(memo))
    install(monkeypatch)
    k = jlkern.from_source(SAXPY, tune={"block": [32, 64]})
    args: Any = (np.zeros(5), 1.0, np.ones(5))
    best = k.tune(*args).best
    shown = call("cache", "show").output
    assert str(best) in shown
    assert "float64[:], float64, float64[:]" in shown
    assert "ndrange=(5,)" in shown
    assert call("cache", "clear").exit_code == 1  # not confirmed
    assert k.config_for(*args) == best
    assert "deleted" in call("cache", "clear", "--yes").output
    assert "nothing is remembered" in call("cache", "show").output
    assert k.config_for(*args) is None


def test_doctor() -> None:
    result = call("doctor")
    assert result.exit_code == 0, result.output
    for word in ("numba", "kernel_tuner", "memo", "JLKERN_CACHE_DIR", "engine julia"):
        assert word in result.output


def test_doctor_shows_a_broken_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    from jlkern.engines import select

    def broken(name: str) -> Any:
        raise ImportError("no llvm")

    monkeypatch.setattr(select, "engine_named", broken)
    result = call("doctor")
    assert result.exit_code == 1
    assert "no llvm" in result.output


def test_tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jlkern_cli_kernels.py").write_text(
        "import jlkern\n"
        "@jlkern.kernel(tune={'block': [32, 64]}, max_evals=2)\n"
        "def saxpy(y, a, x) -> None:\n"
        '    """\n'
        "    @kernel function saxpy!(y, a, @Const(x))\n"
        "        i = @index(Global)\n"
        "        @inbounds y[i] += a * x[i]\n"
        "    end\n"
        '    """\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    result = call("tune", "jlkern_cli_kernels:saxpy", "float32[20,30]F", "float32", "float32[20,30]")
    assert result.exit_code == 0, result.output
    assert "saxpy(float32[:, :, order='F'], float32, float32[:, :, order='C']): block=" in result.output
    for words, message in (
        (("jlkern_no_such_module",), "cannot import"),
        (("jlkern_cli_kernels:nothing",), "is no kernel"),
        (("jlkern_cli_kernels", "float32[a]"), "made of ints"),
        (("jlkern_cli_kernels", "what"), "is no array"),
        (("jlkern_cli_kernels", "float32[3]"), "takes 1 arguments"),
        (("jlkern_cli_kernels",), "pass signatures"),
    ):
        result = call("tune", *words)
        assert result.exit_code == 1
        assert message in result.output


def test_version_and_help() -> None:
    assert jlkern.__version__ in call("--version").output
    assert "tune" in call("-h").output
