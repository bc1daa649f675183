"""A system image with KernelAbstractions.jl and `runtime.jl` compiled, which Julia starts from in half the time.

An image fits one Julia, one set of packages, one `runtime.jl` and one kind of CPU; Julia ends the process when it is
handed another. So its file's name is a digest of all that: what has changed is not found, and so never loaded.

It is written as Julia itself writes one (`--output-o`, then the linker), with no package for it: this works from Julia
1.5 on. PythonCall is not in it, since it must find Python's addresses when it is loaded.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from jlkern.engines.julia import installation
from jlkern.engines.julia.installation import Installation
from jlkern.errors import EngineError

PACKAGES: Final = ("KernelAbstractions", "Atomix", "StaticArrays", "Adapt")
"""What is in the image, apart from Julia's own."""

_HERE: Final = Path(__file__).parent
RUNTIME: Final = _HERE / "runtime.jl"
_SCRIPT: Final = _HERE / "image.jl"
_FORMAT: Final = "jlkern-image-1"


def runtime_digest() -> str:
    """Return the digest of `runtime.jl`, which the module in an image holds as `BUILT_FROM`."""
    return hashlib.sha256(RUNTIME.read_bytes()).hexdigest()


def find(found: Installation) -> str | None:
    """Return the image for this Julia, or None when there is none that fits it as it is now.

    Nothing that others could have written is returned.
    """
    path = place(found)
    if path is None:
        return None
    try:
        for part in (path, path.parent):
            facts = os.stat(part)
            if facts.st_uid != os.geteuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
    except OSError:
        return None
    return str(path)


def outdated(found: Installation) -> bool:
    """Tell whether there are images for this Julia that do not fit it any more."""
    path = place(found)
    return path is not None and not path.exists() and any(path.parent.glob(f"{_whose(found)}-*.so"))


def place(found: Installation) -> Path | None:
    """Return where the image for this Julia belongs; None where none can be."""
    if found.origin == "running" or not sys.platform.startswith("linux"):
        return None
    version = julia_version(found)
    if version is None:
        return None
    parts = [_FORMAT, version, _cpu(), runtime_digest(), hashlib.sha256(_SCRIPT.read_bytes()).hexdigest()]
    files = [
        Path(found.executable).resolve(),
        *(Path(found.project) / name for name in ("Project.toml", "Manifest.toml")),
    ]
    # packages that are found by their folder, with no manifest
    load_path = os.environ.get("JULIA_LOAD_PATH", "").split(os.pathsep)
    files += [Path(folder) / name / "Project.toml" for folder in load_path if folder for name in PACKAGES]
    parts += [fact for file in files for fact in _facts(file)]
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
    return installation.home() / "images" / f"{_whose(found)}-{digest[:32]}.so"


def julia_version(found: Installation) -> str | None:
    """Return what the executable says of its version, as "1.10.4"; None when it is no Julia.

    It may be a launcher that starts another Julia from one day to the next, so its file does not tell.
    """
    try:
        run = subprocess.run([found.executable, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    words = run.stdout.split()
    return words[2] if run.returncode == 0 and words[:2] == ["julia", "version"] and len(words) == 3 else None


def build(found: Installation, trace: Path, tell: Callable[[str], None]) -> Path:
    """Build the image for a Julia, with the precompile statements of a run, and return its path, not yet in its place.

    Parameters
    ----------
    found
        The Julia that it is for, and that builds it.
    trace
        A file of precompile statements, as `--trace-compile` writes it.
    tell
        Called with every line that Julia prints.

    Raises
    ------
    EngineError
        There is no C compiler, or Julia fails.
    """
    final = place(found)
    if final is None:
        raise EngineError("a system image can be built on Linux only, for a Julia that jlkern starts itself")
    compiler = os.environ.get("JULIA_CC") or next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise EngineError("a system image is linked by a C compiler, and there is none: install gcc or clang")
    final.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    environment = {
        **os.environ,
        **installation.variables(found),
        "JLKERN_IMAGE_PROJECT": found.project,
        "JLKERN_IMAGE_PACKAGES": ",".join(PACKAGES),
        "JLKERN_IMAGE_RUNTIME": str(RUNTIME),
        "JLKERN_IMAGE_DIGEST": runtime_digest(),
        "JLKERN_IMAGE_TRACE": str(trace),
    }
    base, *libraries = _output([found.executable, "--startup-file=no", "-e", _ABOUT], environment).splitlines()
    julia = [found.executable, "--startup-file=no", f"--project={found.project}", f"--sysimage={base}", "-O2"]
    if _number(julia_version(found)) >= (1, 9):
        julia.append("--pkgimages=no")  # or the packages' code would stay in files of its own
    aside = final.with_suffix(f".{os.getpid()}.tmp")
    with tempfile.TemporaryDirectory(dir=final.parent) as folder:
        # the name that Julia gives to an archive of objects, which is what it writes
        objects = os.path.join(folder, "image-o.a")
        run_told([*julia, f"--output-o={objects}", str(_SCRIPT)], {**environment, "JULIA_NUM_THREADS": "1"}, tell)
        link = [*compiler.split(), "-shared", "-fPIC", "-o", str(aside)]
        link += ["-Wl,--whole-archive", objects, "-Wl,--no-whole-archive", *libraries]
        run_told(link, environment, tell)
    aside.chmod(0o700)
    return aside


def adopt(found: Installation, built: Path) -> Path:
    """Put a built image in its place, and remove those that this Julia had before.

    Raises
    ------
    EngineError
        Julia or its packages changed since the image was begun.
    """
    final = place(found)
    if final is None or built.name.split(".")[0] != final.stem:
        raise EngineError("Julia changed while its system image was built; run `jlkern setup --image` again")
    os.replace(built, final)
    for old in final.parent.glob(f"{_whose(found)}-*"):
        if old != final:
            with suppress(OSError):
                old.unlink()
    return final


def run_told(command: list[str], environment: dict[str, str], tell: Callable[[str], None]) -> list[str]:
    """Run a program, hand on every line that it prints as it comes, and return them.

    However this ends, the program and all that it started have ended too.

    Raises
    ------
    EngineError
        It cannot be run, or fails; the message ends with what it printed last.
    """
    import signal

    said: list[str] = []
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as problem:
        raise EngineError(f"{command[0]} cannot be run: {problem}") from problem
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.strip():
                said.append(line.rstrip())
                tell(said[-1])
        process.wait()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode:
        last = "\n".join(f"  {line}" for line in said[-12:])
        raise EngineError(f"{os.path.basename(command[0])} failed ({process.returncode}):\n{last}")
    return said


_ABOUT: Final = r"""
using Libdl
println(unsafe_string(Base.JLOptions().image_file))
foreach(println, filter(library -> occursin(r"/libjulia(-internal)?\.so", library), Libdl.dllist()))
"""


def _output(command: list[str], environment: dict[str, str]) -> str:
    run = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if run.returncode:
        raise EngineError(f"{command[0]} failed ({run.returncode}): {run.stderr.strip()[-500:]}")
    return run.stdout


def _number(version: str | None) -> tuple[int, int]:
    words = (version or "0.0").split(".")
    return int(words[0]), int(words[1])


def _whose(found: Installation) -> str:
    return hashlib.sha256(
        f"{os.path.realpath(found.executable)}\0{os.path.realpath(found.project)}".encode("utf-8", "surrogateescape")
    ).hexdigest()[:12]


def _facts(file: Path) -> tuple[str, ...]:
    """Return what tells one version of a file from another; a text file is read, since it may be copied about."""
    try:
        if file.suffix == ".toml":
            return (file.name, hashlib.sha256(file.read_bytes()).hexdigest())
        facts = file.stat()
    except OSError:
        return (file.name, "none")
    return (str(facts.st_size), str(facts.st_mtime_ns))


def _cpu() -> str:
    """Return the CPU's name and abilities: the image's code is for this kind."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = [line for line in file if line.startswith(("model name", "flags", "Features", "CPU part"))]
        return " ".join(sorted(set(lines)))
    except OSError:
        return platform.processor()
