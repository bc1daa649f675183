"""The README and the pages of docs/ run: every code block is executed, so that they cannot rot.

The Python blocks of one page run in order as one program, in a process and an empty folder of their own. What a page
says around a block decides how it runs:

- a `text` block right after a Python block is what that block prints (`...` stands for anything);
- `<!-- raises: jlkern.NDRangeError -->` before a Python block: the block raises that error, and a `text` block after it
  holds (part of) the message;
- `<!-- not run: reason -->` before a Python block: it isn't run (code of other projects, machines that aren't here);
- `<!-- needs: julia -->` before a Python block: where no Julia is set up it is left out, and the test says so;
- `julia` blocks must parse.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from jlkern.engines.julia import installation

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\s*$")
REMARK = re.compile(r"^<!--\s*(?P<kind>raises|not run|needs):\s*(?P<text>.*?)\s*-->$")


@dataclass(frozen=True)
class Block:
    """A fenced code block: its language, its text, the line of its first line, and the remark right before it."""

    language: str
    text: str
    line: int
    kind: str = ""
    remark: str = ""


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a Markdown page in order."""
    found: list[Block] = []
    lines = page.splitlines()
    kind = remark = ""
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if fence is None:
            note = REMARK.match(lines[at].strip())
            if note is not None:
                kind, remark = note["kind"], note["text"]
            elif lines[at].strip():
                kind = remark = ""
            at += 1
            continue
        start = at + 1
        at = start
        while at < len(lines) and lines[at].strip() != "```":
            at += 1
        if at == len(lines):
            raise ValueError(f"the block that begins in line {start} has no end")
        text = textwrap.dedent("\n".join(lines[start:at]))
        found.append(Block(fence["language"], text, start + 1, kind, remark))
        kind = remark = ""
        at += 1
    return found


PRELUDE = """\
import contextlib as _contextlib, io as _io, re as _re, sys as _sys

@_contextlib.contextmanager
def _prints(line, expected):
    out = _io.StringIO()
    with _contextlib.redirect_stdout(out):
        yield
    _match(line, expected, out.getvalue())

def _match(line, expected, got):
    pattern = _re.escape(_re.sub(r"\\s+", " ", expected.strip())).replace(_re.escape("..."), ".*?")
    if not _re.fullmatch(pattern, _re.sub(r"\\s+", " ", got.strip()), _re.DOTALL):
        raise AssertionError(f"line {line} of the page says:\\n{expected}\\nbut it is:\\n{got}")
"""


def lacking(block: Block) -> bool:
    """Tell whether this machine has not what a block needs."""
    if block.kind != "needs":
        return False
    if block.remark != "julia":
        raise ValueError(f"line {block.line}: a block can need julia, not {block.remark}")
    return not installation.available()


def program_of(blocks: list[Block]) -> str:
    """Return the Python program that runs the Python blocks of a page and compares what they print."""
    parts = [PRELUDE]
    for number, block in enumerate(blocks):
        if block.language != "python" or block.kind == "not run" or lacking(block):
            continue
        after = blocks[number + 1] if number + 1 < len(blocks) else None
        output = after.text if after is not None and after.language == "text" else None
        body = block.text
        if block.kind == "raises":
            parts.append("import jlkern\ntry:")
            parts.append(textwrap.indent(body, "    "))
            parts.append(f"except {block.remark} as _error:")
            if output is not None:
                parts.append(f"    _match({after.line}, '...' + {output.strip()!r} + '...', str(_error))")
            else:
                parts.append("    pass")
            parts.append(f"else:\n    raise AssertionError('the block in line {block.line} raises nothing')")
        elif output is not None:
            parts.append(f"with _prints({after.line}, {output!r}):")
            parts.append(textwrap.indent(body, "    "))
        else:
            parts.append(body)
        parts.append("")
    return "\n".join(parts)


def pages_with(language: str) -> list[object]:
    """Return the pages that have a block of a language that is to run."""
    return [
        pytest.param(page, id=str(page.relative_to(ROOT)))
        for page in PAGES
        if any(b.language == language and b.kind != "not run" for b in blocks_of(page.read_text(encoding="utf-8")))
    ]


@pytest.mark.parametrize("page", pages_with("python"))
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    script = tmp_path / "page.py"
    script.write_text(program_of(blocks), encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8",
        "JLKERN_CACHE_DIR": str(tmp_path / "memo"),
    }
    run = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, f"{page.name} does not run\n{run.stdout}\n{run.stderr}"
    left_out = [str(block.line) for block in blocks if block.language == "python" and lacking(block)]
    if left_out:
        pytest.skip(f"no Julia is set up, so the blocks in lines {', '.join(left_out)} were left out; the others run")


def test_julia_blocks_parse() -> None:
    from jlkern.syntax.parser import parse_module

    for page in PAGES:
        for block in blocks_of(page.read_text(encoding="utf-8")):
            if block.language == "julia":
                parse_module(block.text)


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_blocks_are_found_with_their_remarks() -> None:
    page = "\n".join(
        [
            "text",
            "",
            "<!-- raises: KeyError -->",
            "```python",
            "{}[1]",
            "```",
            "",
            "```text",
            "1",
            "```",
            "<!-- not run: no GPU -->",
            "```python",
            "x",
            "```",
        ]
    )
    python, text, other = blocks_of(page)
    assert (python.language, python.text, python.line, python.kind, python.remark) == (
        "python",
        "{}[1]",
        5,
        "raises",
        "KeyError",
    )
    assert text.text == "1"
    assert other.kind == "not run"
    needing = Block("python", "1 / 0", 1, "needs", "julia")
    assert ("1 / 0" in program_of([needing])) == installation.available()
    exec(compile(program_of([python]), "page", "exec"), {})
