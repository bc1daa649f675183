"""Compiled code between processes: used again when nothing that it depends on has changed, and never else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance.archetypes import ARCHETYPES, defaults
from conformance.harness import arguments, compiled

from jlkern import disk
from jlkern.engines.numba import engine, kept
from jlkern.engines.numba.assemble import assemble, chunk_name
from jlkern.engines.numba.namespace import namespace

PRELUDE = """
import hashlib, json, sys
import numpy as np
import jlkern
from jlkern import disk

said = []
def digest(*arrays):
    said.append([hashlib.sha256(a.tobytes()).hexdigest() for a in arrays])
"""

SAXPY = '''
@jlkern.kernel(tune={"block": [64, 128]}, first_call="default")
def saxpy(y, a, x) -> None:
    """
    @kernel function saxpy!(y, a, @Const(x))
        i = @index(Global)
        @inbounds y[i] = sin(a * x[i]) + y[i]
    end
    """

def run(n):
    rng = np.random.default_rng(1)
    y, x = rng.random(n).astype(np.float32), rng.random(n).astype(np.float32)
    saxpy(y, np.float32(2), x)
    x.flags.writeable = False
    saxpy(y, np.float32(2), x)
    launch = saxpy.bind(y, np.float32(3), x)
    launch()
    digest(y)

run(100)
run(1_000_000)
'''

FAILING = '''
@jlkern.kernel(ndrange=(3,))
def outside(y, n) -> None:
    """
    @kernel function outside!(y, n)
        i = @index(Global)
        y[i + n] = 1
    end
    """

try:
    outside(np.zeros(3), 7)
except jlkern.BoundsError as problem:
    said.append(str(problem))
'''

PRINTING = '''
@jlkern.kernel(ndrange=(1,))
def shout(y) -> None:
    """
    @kernel function shout!(y)
        i = @index(Global)
        @print("element ", i, " is ", y[i], "\\\\n")
    end
    """

shout(np.ones(1))
'''

PARSER = ("tree_sitter", "tree_sitter_julia", "jlkern.syntax", "jlkern.reading")
COMPILER = ("jlkern.engines.numba.assemble", "jlkern.engines.numba.lower.kernel", "jlkern.engines.numba.emit.cpu")
ENTRIES = ("numba.np.arraymath",)  # which Numba imports when it compiles for the first time
EVERYTHING = ("kernel_tuner", *PARSER, *COMPILER, *ENTRIES)


class Told:
    """What a process said, and which of some modules it imported."""

    def __init__(self, output: str) -> None:
        text, _, last = output.rstrip().rpartition("\n")
        self.printed = text
        self.said, modules = json.loads(last)
        self.imported = [name for name in EVERYTHING if name in modules]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that all processes of a test keep their code in; it is empty."""
    monkeypatch.setenv("JLKERN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(disk, "own_version", lambda: "1")  # others may be editing jlkern meanwhile
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Told]:
    """Return a folder that one process has left its code in, and what that process told; not to be changed."""
    folder = tmp_path_factory.mktemp("cold")
    process = start(folder / "script.py", SAXPY, JLKERN_CACHE_DIR=str(folder / "cache"))
    return folder / "cache", finish(process)


@pytest.fixture
def first(cold: tuple[Path, Told], cache: Path) -> Told:
    """Return what the first of a test's processes told, which has left its code in `cache`."""
    shutil.copytree(cold[0], cache)
    return cold[1]


def start(file: Path, body: str, version: str = "1", **environment: str) -> subprocess.Popen[str]:
    """Start a process that runs a script."""
    pinned = f"disk.own_version = lambda: {version!r}\n"
    file.write_text(f"{PRELUDE}{pinned}{body}\nprint(json.dumps([said, sorted(sys.modules)]))\n")
    return subprocess.Popen(
        [sys.executable, str(file)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> Told:
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert not err, err
    return Told(out)


@pytest.fixture
def run(cache: Path, tmp_path: Path) -> Any:
    """Return a function that runs a script in a process of its own."""

    def runs(body: str, version: str = "1", **environment: str) -> Told:
        return finish(start(tmp_path / "script.py", body, version, **environment))

    return runs


def files(cache: Path) -> list[Path]:
    return sorted((cache / disk.FOLDER).iterdir())


def test_a_known_configuration_is_neither_parsed_nor_compiled(first: Told, run: Any) -> None:
    second = run(SAXPY)
    assert set(first.imported) == {*PARSER, *COMPILER, *ENTRIES}
    assert second.imported == []
    assert second.said == first.said


PREPARED = (
    SAXPY.replace("run(100)\nrun(1_000_000)\n", "")
    + """
array = jlkern.Array(np.float32, 1_000_000)
jlkern.precompile(saxpy, (array, np.float32, array))
"""
)


def test_precompiled_code_is_found(run: Any) -> None:
    run(PREPARED)
    second = run(
        SAXPY.replace("run(100)\nrun(1_000_000)\n", "y = np.ones(1_000_000, np.float32)\nsaxpy(y, np.float32(2), y)\n")
    )
    assert second.imported == []


@pytest.mark.slow
def test_every_part_can_be_missing(first: Told, run: Any, cache: Path) -> None:
    """One file is gone at a time: what it held is made anew, from what is there."""
    for path in files(cache):
        path.unlink()
        assert run(SAXPY).said == first.said
        assert path.exists()
    assert run(SAXPY).imported == []


def test_torn_files_are_replaced(first: Told, run: Any, cache: Path) -> None:
    for path in files(cache):
        path.write_bytes(path.read_bytes()[:-20])
    assert run(SAXPY).said == first.said
    third = run(SAXPY)
    assert (third.said, third.imported) == (first.said, [])


@pytest.mark.slow
def test_another_version_of_jlkern_compiles_anew(first: Told, run: Any) -> None:
    assert set(COMPILER) <= set(run(SAXPY, version="2").imported)
    assert run(SAXPY, version="1").imported == []


def test_another_text_compiles_anew(first: Told, run: Any) -> None:
    second = run(SAXPY.replace("sin(", "cos("))
    assert set(PARSER + COMPILER) <= set(second.imported)
    assert second.said != first.said


@pytest.mark.parametrize(
    "environment",
    [{"NUMBA_OPT": "1"}, {"JLKERN_CHECK_BOUNDS": "1"},
     pytest.param({"NUMBA_CPU_NAME": "generic"}, marks=pytest.mark.slow),
     pytest.param({"NUMBA_LOOP_VECTORIZE": "0"}, marks=pytest.mark.slow)],
    ids=str,
)  # fmt: skip
def test_other_settings_compile_anew(first: Told, run: Any, environment: dict[str, str]) -> None:
    assert COMPILER[0] in run(SAXPY, **environment).imported
    assert run(SAXPY, **environment).imported == []
    assert run(SAXPY).imported == []


@pytest.mark.parametrize(
    "environment",
    [{"NUMBA_NUM_THREADS": "1"}, {"NUMBA_NUM_THREADS": "2"}, {"NUMBA_THREADING_LAYER": "workqueue"}],
    ids=str,
)
def test_other_threads_run_the_same_code(first: Told, run: Any, environment: dict[str, str]) -> None:
    second = run(SAXPY, **environment)
    assert second.said == first.said
    assert not set(second.imported) & {*PARSER, *COMPILER}
    assert run(SAXPY, **environment).imported == []


@pytest.mark.slow
def test_nothing_is_used_that_others_can_write(first: Told, run: Any, cache: Path) -> None:
    (cache / disk.FOLDER).chmod(0o777)
    second = run(SAXPY)
    assert second.said == first.said
    assert set(COMPILER) <= set(second.imported)


@pytest.mark.slow
def test_nothing_is_used_when_the_knob_is_0(first: Told, run: Any, cache: Path) -> None:
    assert set(COMPILER) <= set(run(SAXPY, JLKERN_CODE_CACHE="0").imported)


@pytest.mark.slow
def test_without_a_folder_calls_work(first: Told, run: Any, cache: Path) -> None:
    shutil.rmtree(cache / disk.FOLDER)
    (cache / disk.FOLDER).touch()
    assert run(SAXPY).said == first.said


@pytest.mark.slow
def test_cold_processes_at_the_same_time(cache: Path, tmp_path: Path) -> None:
    told = [finish(process) for process in [start(tmp_path / f"{k}.py", SAXPY) for k in range(3)]]
    assert told[0].said == told[1].said == told[2].said
    assert finish(start(tmp_path / "last.py", SAXPY)).imported == []


def test_errors_speak_of_the_place_where_the_text_stands_now(run: Any, tmp_path: Path) -> None:
    (first,) = run(FAILING).said
    second = run("\n\n\n\n" + FAILING)
    line = int(re.search(r"script\.py:(\d+)", first)[1])  # type: ignore[index]
    assert second.said == [first.replace(f"script.py:{line}", f"script.py:{line + 4}")]
    assert "`y[8]`" in first  # the details are there too
    assert second.imported == []


def test_prints_come_from_every_process(run: Any) -> None:
    texts = [run(PRINTING).printed for _ in range(2)]
    assert texts == ["element 1 is 1.0"] * 2


def test_a_chunk_that_prints_is_not_kept(cache: Path) -> None:
    engine()
    for part, is_kept in (("print_part(0, 0)", False), ("_block", True)):
        text = f"def chunk(_block, _errors, _first, _last):\n    {part}\n    return 0\n"
        _, library = assemble(text, namespace())
        kept.save_chunk(text, chunk_name(text), library)
        assert (kept.load_chunk(text) is not None) == is_kept


def has_address(text: str) -> bool:
    """Tell whether a number is used as an address in what LLVM made of a chunk."""
    _, library = assemble(text, namespace())
    return re.search(r"inttoptr \(?i64 -?\d", str(library._final_module)) is not None


@pytest.mark.parametrize("archetype", ARCHETYPES, ids=lambda a: a["name"])
def test_no_address_of_this_process_is_in_code(archetype: Any) -> None:
    launcher, _ = compiled(engine(), archetype, defaults(archetype), arguments(archetype, "C"))  # type: ignore[no-untyped-call]
    assert not has_address(launcher.text)


def test_addresses_are_seen() -> None:
    engine()
    assert has_address("def chunk(_block, _errors, _first, _last):\n    print_part(0, 0)\n    return 0\n")


def test_code_that_calls_what_this_process_lacks_is_not_loaded(cache: Path) -> None:
    engine()
    text = "def chunk(_block, _errors, _first, _last):\n    return _first\n"
    _, library = assemble(text, namespace())
    kept.save_chunk(text, chunk_name(text), library)
    assert kept.load_chunk(text) is not None
    key = kept._chunk_key(text)
    facts, data = disk.read(key, lambda *found: found)  # type: ignore[misc]
    disk.write(key, {**facts, "calls": ["malloc", "no_such_function"]}, data)
    assert kept.load_chunk(text) is None


def test_another_cpu_compiles_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine()
    text = "def chunk(_block, _errors, _first, _last):\n    return _last\n"
    _, library = assemble(text, namespace())
    kept.save_chunk(text, chunk_name(text), library)
    here = kept.target()
    features = json.loads(here)[0][-1]
    assert "+" in features  # the features that LLVM compiles for
    monkeypatch.setattr(kept, "target", lambda: here.replace(features, features + ",+more"))
    assert kept.load_chunk(text) is None


def test_dtypes_and_layouts_have_code_of_their_own(run: Any) -> None:
    body = SAXPY.replace("def run(n):", "def run32(n):") + (
        "y, x = np.arange(9.0), np.ones(9)\nsaxpy(y, 2.0, x)\nsaxpy(y[::2], 2.0, x[::2])\ndigest(y)\n"
    )
    body = body.replace("run(100)\nrun(1_000_000)\n", "")
    assert run(body).said == run(body).said
    y, x = np.arange(9.0), np.ones(9)
    y = np.sin(2.0 * x) + y
    y[::2] = np.sin(2.0 * x[::2]) + y[::2]
    assert run(body + "said.append(y.tolist())\n").said[-1] == pytest.approx(y.tolist(), rel=1e-14)
