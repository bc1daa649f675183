"""`jlkern setup`: what is set up counts once it has worked, what fails says what to do, what is the user's stays."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from helpers import needs_julia

import jlkern
from jlkern.cli import main
from jlkern.engines.julia import image, installation, setup
from jlkern.errors import EngineError

REAL = installation.variables(installation.find()) if installation.available() else {}

# What setup needs of juliapkg, in a process that imports this in its place.
JULIAPKG = """
import json, os, sys, time
from pathlib import Path
project = Path(os.environ["PYTHON_JULIAPKG_PROJECT"])

def resolve(force=False):
    names = ("PYTHON_JULIAPKG_PROJECT", "JULIA_DEPOT_PATH")
    told = {"path": sys.path, "force": force, "pid": os.getpid(), **{name: os.environ[name] for name in names}}
    Path(os.environ["FAKE_TOLD"]).write_text(json.dumps(told))
    print("[juliapkg] at work")
    mode = os.environ.get("FAKE_MODE", "")
    (project / "Project.toml").write_text(mode + open(project / "pyjuliapkg" / "juliapkg.json").read())
    if mode == "offline":
        raise OSError("<urlopen error [Errno -3] Temporary failure in name resolution>")
    if mode == "hang":
        time.sleep(600)

def executable():
    return os.environ["FAKE_JULIA"]
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for setup, and no Julia that the environment names."""
    for name in (*REAL, "PYTHON_JULIACALL_EXE", "PYTHON_JULIACALL_PROJECT", "PYTHON_JULIACALL_SYSIMAGE"):
        if name.startswith("PYTHON_JULIACALL"):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JLKERN_JULIA_DIR", str(tmp_path / "julia"))
    monkeypatch.delitem(sys.modules, "juliacall", raising=False)
    return tmp_path / "julia"


def julia_of(tmp_path: Path, number: str = "1.10.4", **versions: str) -> Path:
    """Return a program that says what Julia would say of its version and of its packages'."""
    path = tmp_path / f"julia-{number}"
    lines = "".join(f"\x1e{name} {value}\\n" for name, value in versions.items())
    path.write_text(
        f"#!/bin/sh\nif [ \"$1\" = --version ]; then echo julia version {number}; else printf '{lines}'; fi\n"
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A juliapkg and a Julia that download and start nothing; the file has what juliapkg was told."""
    (tmp_path / "python" / "juliapkg").mkdir(parents=True)
    (tmp_path / "python" / "juliapkg" / "__init__.py").write_text(JULIAPKG)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "python"))
    monkeypatch.setenv("FAKE_TOLD", str(tmp_path / "told.json"))
    monkeypatch.setenv("FAKE_JULIA", str(julia_of(tmp_path)))
    facts = {"julia": "1.10.4", "KernelAbstractions": "0.9.41", "juliacall": "0.9.34", "image": ""}
    monkeypatch.setattr(setup, "start", lambda *_, **__: dict(facts))
    return tmp_path / "told.json"


def call(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


# --- jlkern's own Julia -----------------------------------------------------------------------------------------------


def test_what_is_asked_of_juliapkg() -> None:
    wanted = setup.requirements(["cuda"])
    packages = wanted["packages"]
    assert packages["PythonCall"]["version"] == f"={version('juliacall')}"
    assert packages["KernelAbstractions"]["version"] == "^0.9.34"
    assert {"Atomix", "StaticArrays", "Adapt", "CUDA"} <= set(packages)
    assert "Metal" not in packages
    assert all(len(package["uuid"]) == 36 for package in packages.values())
    assert wanted["julia"].startswith("^1.10")


def test_the_package_has_no_file_that_juliapkg_finds() -> None:
    # every `import juliacall` of anybody would then download what it asks for
    assert not list(Path(jlkern.__file__).parent.rglob("juliapkg.json"))


def test_setting_up(told: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "python" / "other").mkdir()
    (tmp_path / "python" / "other" / "juliapkg.json").write_text('{"packages": {}}')
    result = call("setup", "--gpu", "metal")
    assert result.exit_code == 0, result.output
    assert "ready: julia 1.10.4, KernelAbstractions 0.9.41" in result.output
    assert "[juliapkg] at work" in result.output
    said = json.loads(told.read_text())
    assert said["PYTHON_JULIAPKG_PROJECT"] == str(home / "project")
    assert said["JULIA_DEPOT_PATH"].split(os.pathsep)[0] == str(home / "depot")
    assert said["force"]
    assert str(tmp_path / "python") not in said["path"]  # what others ask of juliapkg has no say
    assert any("python3" in part for part in said["path"])  # the standard library is there
    found = installation.find()
    assert (found.origin, found.project, found.depot) == ("setup", str(home / "project"), str(home / "depot"))
    assert installation.facts()["julia"] == "1.10.4"
    given = installation.variables(found)
    assert given["PYTHON_JULIACALL_EXE"] == found.executable and given["PYTHON_JULIACALL_PROJECT"] == found.project

    # again: what is there stays, a GPU's package too, and juliapkg may find that nothing is to do
    assert call("setup").exit_code == 0
    assert not json.loads(told.read_text())["force"]
    assert "Metal" in (home / "project" / "Project.toml").read_text()


def test_the_folder_can_be_moved(told: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = home / "project" / "pyjuliapkg" / "install" / "bin"
    inside.mkdir(parents=True)
    monkeypatch.setenv("FAKE_JULIA", str(shutil.copy(julia_of(tmp_path), inside / "julia")))
    setup.setup()
    home.rename(tmp_path / "moved")
    assert not installation.available()
    monkeypatch.setenv("JLKERN_JULIA_DIR", str(tmp_path / "moved"))
    found = installation.find()
    assert found.executable == str(tmp_path / "moved" / inside.relative_to(home) / "julia")
    assert found.depot == str(tmp_path / "moved" / "depot")


def test_without_a_network(told: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MODE", "offline")
    result = call("setup")
    assert result.exit_code == 1
    assert "the network cannot be reached" in result.output and "again where there is a network" in result.output
    with pytest.raises(EngineError, match="set up by half: run `jlkern setup`"):
        installation.find()
    monkeypatch.delenv("FAKE_MODE")
    assert call("setup").exit_code == 0
    assert installation.available()


def test_what_fails_leaves_what_worked(told: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup.setup()
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    monkeypatch.setenv("FAKE_MODE", "offline")
    with pytest.raises(EngineError):
        setup.setup(["cuda"])
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    assert installation.available()


def test_what_does_not_start_does_not_count(told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> dict[str, str]:
        raise EngineError("it computes nonsense")

    monkeypatch.setattr(setup, "start", fails)
    with pytest.raises(EngineError, match="nonsense"):
        setup.setup()
    assert not installation.available()


def test_a_package_that_did_not_come(told: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_JULIA", str(julia_of(tmp_path, KernelAbstractions="0.9.41", CUDA="-")))
    with pytest.raises(EngineError, match="CUDA could not be installed"):
        setup.setup(["cuda"])
    assert not installation.available()


@pytest.mark.parametrize("number", ["1.9.4", "2.0.0"])
def test_a_julia_of_another_age(number: str, told: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_JULIA", str(julia_of(tmp_path, number)))
    with pytest.raises(EngineError, match=rf"is Julia {number}, and jlkern needs 1\.10 or newer, below 2"):
        setup.setup()
    assert not installation.available()


def test_a_torn_julia_is_removed(told: Path, home: Path) -> None:
    torn = home / "project" / "pyjuliapkg" / "install"
    (torn / "bin").mkdir(parents=True)
    (torn / "bin" / "julia").write_text('#!/bin/sh\n[ "$1" = --version ] && echo julia version 1.10.4\n')
    (torn / "bin" / "julia").chmod(0o755)
    setup.setup()
    assert not torn.exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("JLKERN_JULIA_DIR", str(tmp_path / "file" / "julia"))
    with pytest.raises(EngineError, match="JLKERN_JULIA_DIR"):
        setup.setup()
    with pytest.raises(EngineError, match="not set up"):
        installation.find()


def test_ctrl_c_ends_all_and_the_next_run_goes_on(told: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MODE", "hang")
    process = subprocess.Popen(
        [sys.executable, "-m", "jlkern.cli", "setup"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    while not told.exists() or not told.read_text():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 1
    assert "interrupted; run `jlkern setup` again" in output and "Traceback" not in output
    assert gone(json.loads(told.read_text())["pid"])
    assert not installation.available()
    monkeypatch.delenv("FAKE_MODE")
    setup.setup()
    assert installation.available()


def gone(pid: int) -> bool:
    """Tell whether a process has ended, soon."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("record", ["", "{", "[]", '{"version": 1}', '{"version": 99, "executable": "x"}', "null"])
def test_a_broken_record(record: str, home: Path) -> None:
    home.mkdir()
    (home / installation.RECORD).write_text(record)
    with pytest.raises(EngineError, match="run `jlkern setup` again"):
        installation.find()
    assert installation.facts() == {}
    result = call("doctor")
    assert result.exit_code == 1
    assert "fails" in result.output


def test_a_julia_that_is_gone(told: Path, tmp_path: Path) -> None:
    setup.setup()
    julia_of(tmp_path).unlink()
    with pytest.raises(EngineError, match="is gone"):
        installation.find()


def test_doctor(told: Path) -> None:
    result = call("doctor")
    assert result.exit_code == 0, result.output
    assert "not set up" in result.output and "jlkern setup" in result.output
    setup.setup()
    result = call("doctor")
    assert result.exit_code == 0, result.output
    assert "KernelAbstractions 0.9.41" in result.output and "none: jlkern setup --image" in result.output


# --- a Julia that the environment names -------------------------------------------------------------------------------


def name(monkeypatch: pytest.MonkeyPatch, executable: object, project: object) -> None:
    monkeypatch.setenv("PYTHON_JULIACALL_EXE", str(executable))
    monkeypatch.setenv("PYTHON_JULIACALL_PROJECT", str(project))


def test_half_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHON_JULIACALL_EXE", str(julia_of(tmp_path)))
    with pytest.raises(EngineError, match="go together"):
        setup.setup()
    name(monkeypatch, tmp_path / "nothing", tmp_path)
    with pytest.raises(EngineError, match="no such program"):
        setup.setup()
    name(monkeypatch, julia_of(tmp_path), tmp_path / "nothing")
    with pytest.raises(EngineError, match="no such folder"):
        setup.setup()
    name(monkeypatch, "/bin/true", tmp_path)
    with pytest.raises(EngineError, match="is no Julia"):
        setup.setup()


MINE = {"KernelAbstractions": "0.9.41", "Atomix": "1.1.1", "StaticArrays": "1.9.15", "Adapt": "4.4.0"}


@pytest.mark.parametrize(
    ("changed", "problem", "remedy"),
    [
        ({"Atomix": "-"}, "Atomix is missing", 'Pkg.add([PackageSpec(name="Atomix")])'),
        ({"KernelAbstractions": "0.10.0"}, "is 0.10.0", 'PackageSpec(name="KernelAbstractions", version="0.9")'),
        ({"KernelAbstractions": "0.9.33"}, "is 0.9.33", 'PackageSpec(name="KernelAbstractions", version="0.9")'),
        ({"PythonCall": "0.9.1"}, "must be equal", f'PackageSpec(name="PythonCall", version="{version("juliacall")}")'),
        ({"CUDA": "-"}, "CUDA is missing", 'Pkg.add([PackageSpec(name="CUDA")])'),
    ],
)
def test_what_a_project_lacks(
    changed: dict[str, str], problem: str, remedy: str, told: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {**MINE, "PythonCall": version("juliacall"), "CUDA": "5.0.0", **changed}
    julia = julia_of(tmp_path, **versions)
    name(monkeypatch, julia, tmp_path)
    with pytest.raises(EngineError) as caught:
        setup.setup(["cuda"])
    assert problem in str(caught.value)
    assert remedy in str(caught.value) and f"{julia} --project={tmp_path}" in str(caught.value)
    assert not told.exists()  # nothing was asked of juliapkg


def test_a_project_that_has_all(told: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {**MINE, "PythonCall": version("juliacall")}
    name(monkeypatch, julia_of(tmp_path, **versions), tmp_path)
    assert setup.setup().remarks == ()
    name(monkeypatch, julia_of(tmp_path, "1.9.2", **versions), tmp_path)
    assert "1.9.2" in setup.setup().remarks[0]
    assert not told.exists() and not home.exists()


# --- processes and images ---------------------------------------------------------------------------------------------


def test_a_program_is_followed_line_by_line_and_fails_with_its_last_words() -> None:
    lines: list[str] = []
    assert image.run_told(["/bin/sh", "-c", "echo a; echo; echo b >&2"], {}, lines.append) == ["a", "b"] == lines
    with pytest.raises(EngineError, match=r"failed \(3\):\n  last words"):
        image.run_told(["/bin/sh", "-c", "echo last words; exit 3"], {}, lines.append)
    with pytest.raises(EngineError, match="cannot be run"):
        image.run_told(["/nothing/here"], {}, lines.append)


def test_an_image_of_another_state_is_not_found(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    julia = julia_of(tmp_path)
    found = installation.Installation(str(julia), str(tmp_path), "environment")
    assert image.find(found) is None and not image.outdated(found)
    path = image.place(found)
    assert path is not None
    path.parent.mkdir(parents=True, mode=0o700)
    path.touch(0o700)
    assert image.find(found) == str(path)

    path.chmod(0o722)  # others could have written it
    assert image.find(found) is None
    path.chmod(0o700)

    (tmp_path / "Manifest.toml").write_text("another package")
    assert image.find(found) is None and image.outdated(found)
    (tmp_path / "Manifest.toml").unlink()
    assert image.find(found) == str(path)

    monkeypatch.setattr(image, "RUNTIME", julia)
    assert image.find(found) is None
    monkeypatch.undo()
    monkeypatch.setenv("JLKERN_JULIA_DIR", str(home))
    assert image.find(found) == str(path)

    # a launcher that starts another Julia from today on, though its file is the same
    facts = julia.stat()
    julia.write_text(julia.read_text().replace("1.10.4", "1.10.5"))
    os.utime(julia, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert image.find(found) is None


def test_an_image_of_what_has_changed_meanwhile_is_not_adopted(home: Path, tmp_path: Path) -> None:
    found = installation.Installation(str(julia_of(tmp_path)), str(tmp_path), "environment")
    path = image.place(found)
    assert path is not None
    path.parent.mkdir(parents=True)
    built = path.with_suffix(".1.tmp")
    built.touch()
    (tmp_path / "Project.toml").write_text("[deps]")
    with pytest.raises(EngineError, match="changed while"):
        image.adopt(found, built)
    (tmp_path / "Project.toml").unlink()
    old = path.with_name(path.name.split("-")[0] + "-0123.so")
    other = path.with_name("0123-0123.so")
    old.touch(), other.touch()
    assert image.adopt(found, built) == path
    assert path.exists() and other.exists() and not old.exists() and not built.exists()


# --- with Julia -------------------------------------------------------------------------------------------------------


@pytest.fixture
def julia(monkeypatch: pytest.MonkeyPatch) -> installation.Installation:
    """The Julia of this machine, named by the environment."""
    for variable, value in REAL.items():
        monkeypatch.setenv(variable, value)
    found = installation.named()
    assert found is not None
    return found


@needs_julia
@pytest.mark.julia
def test_checking_a_real_julia(julia: installation.Installation, home: Path) -> None:
    lines: list[str] = []
    made = setup.setup(tell=lambda step, line: lines.append(step))
    assert made.facts["julia"] == image.julia_version(julia)
    assert made.facts["juliacall"] == version("juliacall")
    assert lines and made.image is None and not home.exists()
    with pytest.raises(EngineError, match=r"Metal is missing(.|\n)*PackageSpec\(name=\"Metal\"\)"):
        setup.setup(["metal"])


@needs_julia
@pytest.mark.julia
@pytest.mark.slow
def test_starting_from_an_image(julia: installation.Installation) -> None:
    made = setup.setup(with_image=True)
    assert made.image is not None and made.image == image.find(julia)
    program = textwrap.dedent("""
        import numpy as np, jlkern
        k = jlkern.from_source('''@kernel function k!(y)
            i = @index(Global)
            y[i] = i
        end''', engine="julia")
        y = np.zeros(5)
        k(y)
        from juliacall import Main
        print(y, hasattr(Main.JlkernRuntime, "BUILT_FROM"))
    """)

    def run() -> str:
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert run() == "[1. 2. 3. 4. 5.] True\n"
    path = Path(made.image)
    path.rename(path.with_name(path.name.replace("-", "-0")))  # one of another state
    assert image.outdated(julia)
    assert run() == "[1. 2. 3. 4. 5.] False\n"
