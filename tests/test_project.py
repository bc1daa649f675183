"""The project itself: what is committed, what the package ships, and what importing it loads."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAZY = (
    "click",
    "juliacall",
    "kernel_tuner",
    "llvmlite",
    "numba",
    "rich",
    "sqlite3",
    "tree_sitter",
    "tree_sitter_julia",
)


def committed_files() -> list[Path]:
    """Return what git tracks; where there is no git (a source archive), everything but caches."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode == 0:
        return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]
    skip = {".venv", "__pycache__", "demo-output", "dist"}
    return [p for p in ROOT.rglob("*") if p.is_file() and not skip & set(p.relative_to(ROOT).parts)]


def test_nothing_committed_names_a_machine_or_a_registry() -> None:
    # Spelt in pieces, so that this file passes its own test.
    places = [r"/(?:root|home|work|Users)" + r"/\w", r"/tmp" + r"/\w", r"[A-Z]:\\" + r"Users"]
    hosts = [
        "pypi" + r"\.org",
        "python" + r"hosted\.org",
        "registry" + r"\.npmjs",
        "deb" + r"\.debian\.org",
        "conda" + r"\.anaconda",
    ]
    pattern = re.compile("|".join(places + hosts))
    found = []
    for path in committed_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not found, "\n".join(found)


def test_committed_files_are_small() -> None:
    large = [str(p.relative_to(ROOT)) for p in committed_files() if p.stat().st_size > 2 * 1024 * 1024]
    assert not large


def test_import_loads_nothing_heavy() -> None:
    code = f"import sys, json, jlkern; print(json.dumps([m for m in {LAZY!r} if m in sys.modules]))"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(out.stdout) == []


def test_version_is_in_the_changelog() -> None:
    version = re.search(r'^__version__ = "([^"]+)"$', (ROOT / "jlkern" / "__init__.py").read_text(), re.MULTILINE)
    assert version is not None, 'jlkern/__init__.py holds the version: __version__ = "..."'
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()


def test_py_typed_is_there() -> None:
    assert (ROOT / "jlkern" / "py.typed").is_file()


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(
        re.findall(
            r"`make ([a-z-]+)", "".join(p.read_text() for p in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
        )
    )
    assert named <= targets


@pytest.mark.slow
def test_wheel_holds_what_it_must(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    sources = {
        str(p.relative_to(ROOT)) for p in (ROOT / "jlkern").rglob("*") if p.is_file() and "__pycache__" not in p.parts
    }
    assert sources <= set(names)
    assert any(n.endswith("licenses/LICENSE") for n in names)
    # juliacall downloads for every juliapkg.json that it finds at a package's root; jlkern must not have one there.
    assert not any(n.endswith("juliapkg.json") for n in names)
    assert not any(n.startswith(("tests", "docs", "examples", "benchmarks")) for n in names)
