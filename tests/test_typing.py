"""mypy and pyright see the types that `typing/examples.py` says, and the mistakes that it marks, and no others."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = Path(__file__).parent / "typing" / "examples.py"
LINES = EXAMPLES.read_text().splitlines()
EXPECTED = {i: line.partition("# expect: ")[2] for i, line in enumerate(LINES, 1) if "# expect: " in line}
WRONG = {i for i, line in enumerate(LINES, 1) if line.endswith("# error")}


def short(text: str) -> str:
    """Return a revealed type without module names, and without what is in a dict, which each writes in its way."""
    text = re.sub(r"builtins\.|jlkern\.[a-z.]*|typing\.", "", text)
    return "dict" if text.startswith("dict[") else text


def test_mypy() -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent", str(EXAMPLES)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    revealed, wrong = {}, {}
    for line in done.stdout.splitlines():
        found = re.match(r".*examples\.py:(\d+): (\w+): (.*)", line)
        assert found, line
        place, kind, message = int(found[1]), found[2], found[3]
        if message.startswith("Revealed type is"):
            revealed[place] = message.split('"')[1]
        elif kind == "error":
            wrong[place] = message
    check(revealed, wrong)


def test_pyright() -> None:
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(EXAMPLES)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if not done.stdout.lstrip().startswith("{"):
        if shutil.which("node") is None:
            pytest.skip("pyright needs node")
        raise AssertionError(done.stdout + done.stderr)
    revealed, wrong = {}, {}
    for item in json.loads(done.stdout)["generalDiagnostics"]:
        place, message = item["range"]["start"]["line"] + 1, item["message"]
        if item["severity"] == "information":
            revealed[place] = message.split('"')[-2]
        elif item["severity"] == "error":
            wrong[place] = message
    check(revealed, wrong)


def check(revealed: dict[int, str], wrong: dict[int, str]) -> None:
    assert set(wrong) == WRONG, {i: wrong.get(i) for i in set(wrong) ^ WRONG}
    assert set(revealed) == set(EXPECTED)
    for place, text in EXPECTED.items():
        assert short(revealed[place]) == short(text), LINES[place - 1]
