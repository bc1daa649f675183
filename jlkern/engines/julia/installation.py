"""Where Julia is: found without network, and without starting it.

`jlkern setup` keeps everything in one folder, `home()`, so that it can be copied to another machine or deleted:

    installation.json   the record, written last: what is half set up has none
    project/            the packages' versions; also Julia itself, where setup had to download it
    depot/              the packages and what Julia compiles of them
    images/             system images, see `image`
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from jlkern.errors import EngineError

RECORD: Final = "installation.json"
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Installation:
    """A Julia that can be started: its executable, the project with its packages, and a depot of its own or None.

    `origin` is "environment" (the user's own, named by `PYTHON_JULIACALL_EXE` and `PYTHON_JULIACALL_PROJECT`), "setup"
    (made by `jlkern setup`) or "running" (juliacall has started one in this process; the rest is empty then).
    """

    executable: str
    project: str
    origin: Literal["environment", "setup", "running"]
    depot: str | None = None


def home() -> Path:
    """Return the folder that `jlkern setup` writes to: `JLKERN_JULIA_DIR`, else one of this user's data folder."""
    from jlkern.knobs import knobs

    return knobs.julia_dir


def find() -> Installation:
    """Return the Julia to start.

    Raises
    ------
    EngineError
        There is none, or what is named is not there.
    """
    running = sys.modules.get("juliacall")
    if running is not None and getattr(running, "CONFIG", {}).get("inited"):
        return Installation("", "", "running")
    return named() or _made_by_setup()


def available() -> bool:
    """Tell whether there is a Julia to start."""
    try:
        find()
    except EngineError:
        return False
    return True


def named() -> Installation | None:
    """Return the Julia that the environment names, or None when it names none.

    Raises
    ------
    EngineError
        It is named by half, or is not there.
    """
    executable, project = option("exe"), option("project")
    if not executable and not project:
        return None
    if not executable or not project:
        raise EngineError(
            "PYTHON_JULIACALL_EXE and PYTHON_JULIACALL_PROJECT go together, and only one of them is set; set both to "
            "use a Julia of your own, or none to use the one of `jlkern setup`"
        )
    found = shutil.which(executable)
    if found is None:
        raise EngineError(f"PYTHON_JULIACALL_EXE={executable}: there is no such program")
    if not os.path.isdir(project):
        raise EngineError(f"PYTHON_JULIACALL_PROJECT={project}: there is no such folder")
    return Installation(os.path.abspath(found), os.path.abspath(project), "environment")


def option(name: str) -> str | None:
    """Return an option of juliacall's, from `python -X` or the environment."""
    value = sys._xoptions.get(f"juliacall-{name}")
    return value if isinstance(value, str) else os.environ.get(f"PYTHON_JULIACALL_{name.upper()}")


def variables(installation: Installation) -> dict[str, str]:
    """Return the environment variables by which juliacall starts this Julia, without asking juliapkg anything."""
    if installation.origin == "running":
        return {}
    found = {"PYTHON_JULIACALL_EXE": installation.executable, "PYTHON_JULIACALL_PROJECT": installation.project}
    if installation.depot is not None:
        # first, so that it is written to; an empty entry stands for what comes with Julia
        found["JULIA_DEPOT_PATH"] = os.pathsep.join((installation.depot, os.environ.get("JULIA_DEPOT_PATH", "")))
    return found


# --- the record of `jlkern setup` -------------------------------------------------------------------------------------


def write_record(executable: str, project: str, depot: str, facts: Mapping[str, str]) -> Installation:
    """Record what `jlkern setup` has made and seen working; `facts` are versions, for people and `jlkern doctor`."""
    path = home() / RECORD
    record = {
        "version": VERSION,
        "executable": _inside(executable),
        "project": _inside(project),
        "depot": _inside(depot),
        "facts": dict(facts),
    }
    aside = path.with_suffix(f".{os.getpid()}.tmp")
    aside.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    os.replace(aside, path)
    return Installation(executable, project, "setup", depot)


def forget_record() -> None:
    """Remove the record: what it names is about to change."""
    (home() / RECORD).unlink(missing_ok=True)


def facts() -> Mapping[str, str]:
    """Return the versions in the record, or nothing."""
    try:
        found = json.loads((home() / RECORD).read_text(encoding="utf-8"))["facts"]
        return {str(name): str(value) for name, value in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _inside(path: str) -> str:
    """Return a path in the folder relative to it, so that the folder can be moved."""
    with_home = os.path.relpath(path, home())
    return path if with_home.startswith(os.pardir) else with_home


def _made_by_setup() -> Installation:
    path = home() / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["version"] != VERSION:
            raise ValueError("another version's")
        executable, project, depot = (str(home() / record[name]) for name in ("executable", "project", "depot"))
    except (FileNotFoundError, NotADirectoryError):
        half = (home() / "project").is_dir()
        state = "Julia is set up by half" if half else "Julia is not set up"
        how = "it goes on where it stopped" if half else "it downloads Julia and KernelAbstractions.jl once"
        raise EngineError(
            f"{state}: run `jlkern setup`, {how}; or name a Julia of your own by PYTHON_JULIACALL_EXE and "
            "PYTHON_JULIACALL_PROJECT"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise EngineError(f"{path} cannot be read, or is another version's: run `jlkern setup` again") from None
    if not os.access(executable, os.X_OK) or not os.path.isdir(project):
        raise EngineError(f"the Julia of `jlkern setup` is gone ({executable}, {project}): run `jlkern setup` again")
    return Installation(executable, project, "setup", depot)
