"""Where Julia is: found without network, and without starting it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from jlkern.errors import EngineError

RECORD: Final = "installation.json"


@dataclass(frozen=True, slots=True)
class Installation:
    """A Julia that can be started: its executable, the project with its packages, and a system image or None.

    `origin` is "environment" (the user's own, named by `PYTHON_JULIACALL_EXE` and `PYTHON_JULIACALL_PROJECT`), "setup"
    (made by `jlkern setup`) or "running" (juliacall has started one in this process; the rest is empty then).
    """

    executable: str
    project: str
    image: str | None
    origin: Literal["environment", "setup", "running"]


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
        return Installation("", "", None, "running")
    executable, project = (_option(name) for name in ("exe", "project"))
    if executable or project:
        return _named(executable, project)
    return _made_by_setup()


def available() -> bool:
    """Tell whether there is a Julia to start."""
    try:
        find()
    except EngineError:
        return False
    return True


def _option(name: str) -> str | None:
    value = sys._xoptions.get(f"juliacall-{name}")
    return value if isinstance(value, str) else os.environ.get(f"PYTHON_JULIACALL_{name.upper()}")


def _named(executable: str | None, project: str | None) -> Installation:
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
    image = _option("sysimage")
    return Installation(found, project, image, "environment")


def _made_by_setup() -> Installation:
    path = home() / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        executable, project, image = record["executable"], record["project"], record.get("image")
    except FileNotFoundError:
        raise EngineError(
            "Julia is not set up: run `jlkern setup`, which downloads Julia and KernelAbstractions.jl once; or name a "
            "Julia of your own by PYTHON_JULIACALL_EXE and PYTHON_JULIACALL_PROJECT"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise EngineError(f"{path} cannot be read: run `jlkern setup` again") from None
    if not os.access(str(executable), os.X_OK) or not os.path.isdir(str(project)):
        raise EngineError(f"the Julia of `jlkern setup` is gone ({executable}, {project}): run `jlkern setup` again")
    if image is not None and not os.path.exists(str(image)):
        image = None
    return Installation(str(executable), str(project), image, "setup")
