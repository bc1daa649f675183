"""What `jlkern setup` does: Julia and its packages into one folder, a first start, a system image when asked for.

1. Nothing else in jlkern downloads. juliapkg does it here, in a process of its own, for a project of jlkern's own: what
   other Python packages want from juliapkg has no say in it, and it changes nothing of theirs.
2. The record that makes an installation count is written last, after a kernel has run. Whatever ends a setup before,
   the next one goes on; one that fails over a working installation leaves that as it was.
3. A Julia that the environment names is the user's: it is looked at, and what is missing is said.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from jlkern.engines.julia import image, installation
from jlkern.engines.julia.backends import BACKENDS
from jlkern.engines.julia.installation import Installation
from jlkern.errors import EngineError

Tell = Callable[[str, str], None]
"""Called with what is being done, and a line of output or "" when it begins."""

OLDEST: Final = (1, 10)
PYTHONCALL: Final = "PythonCall"

# name: UUID and versions. Direct dependencies all, so that a source may say `using` of them.
PACKAGES: Final = {
    "KernelAbstractions": ("63c18a36-062a-441e-b654-da1e3ab1ce7c", "^0.9.34"),
    "Atomix": ("a9b6321e-bd34-4604-b9c9-b65b8de01458", "1"),
    "StaticArrays": ("90137ffa-7385-5640-81b9-e52037218182", "1"),
    "Adapt": ("79e6a3ab-5dfb-504d-930d-738a2a938a0e", "4"),
}
GPUS: Final = tuple(kind for kind in BACKENDS if kind != "jl")


@dataclass(frozen=True, slots=True)
class Made:
    """What a setup ends with: the Julia, versions of what matters, its image or None, and remarks for the user."""

    installation: Installation
    facts: Mapping[str, str]
    image: str | None
    remarks: tuple[str, ...] = ()


def setup(gpus: Sequence[str] = (), with_image: bool = False, tell: Tell = lambda step, line: None) -> Made:
    """Set Julia up for jlkern, or check the one that the environment names.

    Parameters
    ----------
    gpus
        Kinds of devices whose packages are wanted too, as "cuda".
    with_image
        Also build a system image.
    tell
        Told what is being done.

    Raises
    ------
    EngineError
        Something failed; the message says what, and what to do.
    """
    own = installation.named()
    facts: Mapping[str, str]
    if own is not None:
        remarks = _check_named(own, gpus, tell)
        found, facts = own, start(own, tell)
    else:
        remarks = ()
        found, facts = _make(gpus, tell)
    built = str(_build(found, tell)) if with_image else image.find(found)
    return Made(found, facts, built, remarks)


def requirements(gpus: Sequence[str]) -> dict[str, Any]:
    """Return what jlkern needs, as juliapkg's file says it: what juliacall asks for itself, and jlkern's packages."""
    wanted = _of_juliacall()
    packages = dict(wanted.get("packages", {}))
    packages[PYTHONCALL] = {**packages.get(PYTHONCALL, {}), "version": f"={_juliacall_version()}"}
    packages.update({name: {"uuid": uuid, "version": versions} for name, (uuid, versions) in PACKAGES.items()})
    # no versions of these: KernelAbstractions' decide
    packages.update({BACKENDS[kind].package: {"uuid": BACKENDS[kind].uuid} for kind in gpus})
    return {"julia": wanted.get("julia", "^1.10"), "packages": packages}


# --- jlkern's own Julia -----------------------------------------------------------------------------------------------


def _make(gpus: Sequence[str], tell: Tell) -> tuple[Installation, Mapping[str, str]]:
    home = installation.home()
    project, depot = home / "project", home / "depot"
    wanted = project / "pyjuliapkg" / "juliapkg.json"
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        depot.mkdir(exist_ok=True)
    except OSError as problem:
        raise EngineError(f"{home} cannot be written ({problem}): name another folder by JLKERN_JULIA_DIR") from None
    again = (home / installation.RECORD).exists()
    before = (home / installation.RECORD, project / "Project.toml", project / "Manifest.toml", wanted)
    with _put_back(before if again else ()):
        gpus = tuple(dict.fromkeys((*_earlier(wanted), *gpus)))
        text = json.dumps(requirements(gpus), indent=1)
        if not wanted.exists() or wanted.read_text(encoding="utf-8") != text:
            wanted.write_text(text, encoding="utf-8")
        installation.forget_record()
        if not again:
            _remove_torn(project / "pyjuliapkg" / "install")
        executable = _resolve(project, depot, force=not again, tell=tell)
        found = Installation(executable, str(project), "setup", str(depot))
        julia = image.julia_version(found) or "of an unknown version"
        if not _supported(julia):
            raise EngineError(f"{executable} is Julia {julia}, and jlkern needs 1.10 or newer, below 2")
        missing = [name for name, its in _versions(found, _names(gpus)).items() if its == "-"]
        if missing:
            raise EngineError(
                f"{', '.join(missing)} could not be installed (is PYTHON_JULIAPKG_OFFLINE set?); run `jlkern setup` "
                "again where there is a network"
            )
        facts = start(found, tell)
        facts.pop("image")
        return installation.write_record(executable, str(project), str(depot), facts), facts


def _resolve(project: Path, depot: Path, force: bool, tell: Tell) -> str:
    """Have juliapkg find or download Julia and the packages; the path of Julia."""
    step = "setting up Julia and its packages"
    tell(step, "")
    folder = Installation("", str(project), "setup", str(depot))
    environment = {
        **os.environ,
        "JULIA_DEPOT_PATH": installation.variables(folder)["JULIA_DEPOT_PATH"],
        "PYTHON_JULIAPKG_PROJECT": str(project),
        "PYTHONUNBUFFERED": "1",
    }
    try:
        command = [sys.executable, "-c", _RESOLVE, "force" if force else ""]
        said = image.run_told(command, environment, lambda line: _tell_line(tell, step, line))
    except EngineError as problem:
        text = str(problem)
        offline = any(word in text for word in ("URLError", "resolve host", "name resolution", "RequestError"))
        cause = "the network cannot be reached" if offline else "Julia or its packages could not be set up"
        raise EngineError(
            f"{cause}: {text}\nRun `jlkern setup` again where there is a network: it goes on where it stopped. Or name "
            "a Julia of your own by PYTHON_JULIACALL_EXE and PYTHON_JULIACALL_PROJECT"
        ) from None
    return str(_answer(said)["executable"])


# Packages of Python that ask juliapkg for more are kept from its eyes; the standard library stays.
_RESOLVE: Final = r"""
import glob, json, os, sys
import juliapkg
def asks(folder):
    inside = glob.escape(folder)
    return any(glob.glob(os.path.join(inside, *path, "juliapkg.json")) for path in ([], ["*"]))

sys.path[:] = [folder for folder in sys.path if folder and not asks(folder)]
juliapkg.resolve(force=sys.argv[1] == "force")
print("\x1e" + json.dumps({"executable": juliapkg.executable()}))
"""


def _earlier(wanted: Path) -> list[str]:
    """Return the GPUs of an earlier setup, whose packages stay."""
    try:
        packages = json.loads(wanted.read_text(encoding="utf-8"))["packages"]
        return [kind for kind in GPUS if BACKENDS[kind].package in packages]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _remove_torn(julia: Path) -> None:
    """Remove a Julia that was copied by half: its version alone would not tell."""
    program = julia / "bin" / "julia"
    if not program.exists():
        return
    try:
        run = subprocess.run([program, "--startup-file=no", "-e", "using Pkg"], capture_output=True, timeout=600)
        sound = run.returncode == 0
    except (OSError, subprocess.SubprocessError):
        sound = False
    if not sound:
        shutil.rmtree(julia, ignore_errors=True)


@contextmanager
def _put_back(files: Sequence[Path]) -> Iterator[None]:
    """Put files back to what they are now when the block fails."""
    contents = {file: file.read_bytes() if file.exists() else None for file in files}
    try:
        yield
    except BaseException:
        for file, content in contents.items():
            if content is None:
                file.unlink(missing_ok=True)
            else:
                file.write_bytes(content)
        raise


def _of_juliacall() -> dict[str, Any]:
    """Return what juliacall asks of juliapkg, without importing juliacall, which would start Julia."""
    _juliacall_version()
    spec = find_spec("juliacall")
    try:
        path = Path(str(spec.origin)).with_name("juliapkg.json")  # type: ignore[union-attr]
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    except (OSError, ValueError, AttributeError) as problem:
        raise EngineError(
            f"juliacall is damaged ({problem}): python -m pip install --force-reinstall juliacall"
        ) from None


def _juliacall_version() -> str:
    try:
        return version("juliacall")
    except PackageNotFoundError:
        raise EngineError("juliacall is missing: python -m pip install juliacall") from None


# --- a Julia that the environment names -------------------------------------------------------------------------------


def _check_named(found: Installation, gpus: Sequence[str], tell: Tell) -> tuple[str, ...]:
    """Check the packages of a Julia of the user's; remarks on what works but is not what jlkern is made for."""
    tell("looking at the Julia that PYTHON_JULIACALL_EXE and PYTHON_JULIACALL_PROJECT name", "")
    julia = image.julia_version(found)
    if julia is None:
        raise EngineError(f"PYTHON_JULIACALL_EXE={found.executable} is no Julia: it says no version")
    names = _names(gpus)
    versions = _versions(found, names)
    needed = {"KernelAbstractions": "0.9", PYTHONCALL: _juliacall_version()}
    problems, specs = [], []
    for name in names:
        has = versions.get(name, "-")
        if has == "-":
            problems.append(f"{name} is missing")
        elif name == "KernelAbstractions" and not _kernels_fit(has):
            problems.append(f"{name} is {has}, and 0.9.34 or newer, below 0.10, is needed")
        elif name == PYTHONCALL and has not in ("?", needed[name]):
            problems.append(f"{name} is {has}, and juliacall is {needed[name]}: the two must be equal")
        else:
            continue
        asked = f', version="{needed[name]}"' if name in needed else ""
        specs.append(f'PackageSpec(name="{name}"{asked})')
    if problems:
        raise EngineError(
            f"the project {found.project} cannot be used as it is: {'; '.join(problems)}. It is yours, so jlkern "
            f"leaves it alone; this mends it:\n  {found.executable} --project={found.project} "
            f"-e 'using Pkg; Pkg.add([{', '.join(specs)}])'"
        )
    if _supported(julia):
        return ()
    return (f"Julia {julia} is outside of what jlkern is made for: 1.10 or newer, below 2",)


def _names(gpus: Sequence[str]) -> list[str]:
    return [PYTHONCALL, *PACKAGES, *(BACKENDS[kind].package for kind in gpus)]


def _versions(found: Installation, names: Sequence[str]) -> dict[str, str]:
    """Return the versions of packages in a project, "-" for those that are not there and "?" where it is not said."""
    command = [found.executable, f"--project={found.project}", "--startup-file=no", "-e", _VERSIONS, *names]
    said = image.run_told(command, {**os.environ, **installation.variables(found)}, lambda line: None)
    return dict(line.removeprefix("\x1e").split(" ", 1) for line in said if line.startswith("\x1e"))


_VERSIONS: Final = r"""
for name in ARGS
    path = Base.find_package(name)
    file = path === nothing ? "" : joinpath(dirname(dirname(path)), "Project.toml")
    told = isfile(file) ? match(r"(?m)^version *= *\"([^\"]*)\"", read(file, String)) : nothing
    println('\x1e', name, ' ', path === nothing ? "-" : told === nothing ? "?" : told[1])
end
"""


def _kernels_fit(found: str) -> bool:
    if found == "?":
        return True
    numbers = found.split("+")[0].split("-")[0].split(".")
    try:
        return (int(numbers[0]), int(numbers[1])) == (0, 9) and int(numbers[2]) >= 34
    except (ValueError, IndexError):
        return False


def _supported(julia: str) -> bool:
    try:
        major, minor = (int(word) for word in julia.split(".")[:2])
    except ValueError:
        return False
    return OLDEST <= (major, minor) < (2, 0)


# --- the first start, and the image -----------------------------------------------------------------------------------


FIRST_START: Final = "starting it for the first time; Julia compiles its packages once"


def start(found: Installation, tell: Tell, step: str = FIRST_START, **variables: str) -> dict[str, str]:
    """Start a Julia in a process of its own and run kernels there; the versions that it tells.

    `variables` go to its environment; it starts from no image of jlkern's unless `PYTHON_JULIACALL_SYSIMAGE` is one.

    Raises
    ------
    EngineError
        It does not start, or computes something wrong.
    """
    tell(step, "")
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            **installation.variables(found),
            "JLKERN_CACHE_DIR": folder,
            "JLKERN_JULIA_DIR": folder,  # where there is no image
            **variables,
        }
        try:
            said = image.run_told([sys.executable, "-c", _WORK], environment, lambda line: _tell_line(tell, step, line))
        except EngineError as problem:
            raise EngineError(
                f"Julia is there, but does not start as it should: {problem}\n"
                f"{found.executable} with the project {found.project}"
            ) from None
    return {str(name): str(value) for name, value in _answer(said).items()}


def _build(found: Installation, tell: Tell) -> Path:
    """Build the image for a Julia, see it work, and put it in its place."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jl"
        start(found, tell, "noting what Julia compiles in a run", PYTHON_JULIACALL_TRACE_COMPILE=str(trace))
        if not trace.exists():
            raise EngineError("this juliacall cannot note what Julia compiles: python -m pip install -U juliacall")
        step = "building the system image; this takes some minutes"
        tell(step, "")
        built = image.build(found, trace, lambda line: tell(step, line))
    try:
        facts = start(found, tell, "starting from the image", PYTHON_JULIACALL_SYSIMAGE=str(built))
        if facts["image"] != image.runtime_digest():
            raise EngineError("Julia does not start from the system image that it has built")
        return image.adopt(found, built)
    finally:
        built.unlink(missing_ok=True)


def _tell_line(tell: Tell, step: str, line: str) -> None:
    if "\x1e" not in line:
        tell(step, line)


def _answer(said: Sequence[str]) -> dict[str, Any]:
    """Return what a process has answered: the line with a mark."""
    for line in reversed(said):
        _, mark, text = line.partition("\x1e")
        if mark:
            found: dict[str, Any] = json.loads(text)
            return found
    raise EngineError("it ended without an answer:\n" + "\n".join(said[-5:]))


# Some of everything that launching needs: layouts, local memory, atomics, an error, a tuning.
_WORK: Final = '''
import json
import numpy as np
import jlkern
from jlkern.errors import BoundsError

axpy = jlkern.from_source("""
@kernel function axpy!(y, a, @Const(x))
    i = @index(Global)
    @inbounds y[i] += a * x[i]
end
""", engine="julia", tune={"block": [64, 128]})
mirror = jlkern.from_source("""
@kernel function mirror!(out, @Const(a), sums)
    i, j = @index(Global, NTuple)
    l = @index(Local, Linear)
    tile = @localmem eltype(out) (64,)
    p = @private eltype(out) (1,)
    tile[l] = a[i, j]
    @synchronize
    p[1] = tile[65-l]
    out[i, j] = p[1]
    @atomic sums[1] += out[i, j]
end
""", engine="julia", workgroup=(8, 8), ndrange="out")
beyond = jlkern.from_source("""
@kernel function beyond!(y)
    i = @index(Global)
    y[i+100] = 1
end
""", engine="julia", ndrange="y")

for dtype in (np.float32, np.float64):
    y, x = np.zeros(4096, dtype), np.ones(4096, dtype)
    axpy(y, dtype(2), x)
    axpy(y[::2], dtype(2), x[:2048])
    axpy.bind(y, dtype(2), x)()
    assert y[0] == 6 and y[1] == 4, y[:2]
    for order in "FC":
        a = np.arange(256).reshape(16, 16).astype(dtype, order=order)
        out, sums = np.zeros_like(a), np.zeros(1, dtype)
        mirror(out, a, sums)
        assert sums[0] == a.sum() and out[0, 0] == a[7, 7], out
try:
    beyond(np.zeros(8))
except BoundsError:
    pass
else:
    raise AssertionError("an index outside of its array was not refused")

from jlkern.engines.julia.bridge import runtime
import juliacall
found = runtime()
told = {"juliacall": juliacall.__version__, "image": str(getattr(juliacall.Main.JlkernRuntime, "BUILT_FROM", ""))}
print("\\x1e" + json.dumps({**found.versions, **told}))
'''
