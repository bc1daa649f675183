"""What `import jlkern` costs, and what it leaves alone."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from typing import Any

HEAVY = (
    "numba",
    "llvmlite",
    "kernel_tuner",
    "tree_sitter",
    "tree_sitter_julia",
    "juliacall",
    "sqlite3",
    "rich",
    "click",
)


def python(code: str) -> Any:
    """Return what a fresh process prints, as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_importing_loads_no_engine_and_no_tuner() -> None:
    loaded = python("import jlkern, sys, json; print(json.dumps(sorted(sys.modules)))")
    assert [name for name in HEAVY if name in loaded] == []


def test_decorating_loads_the_parser_only() -> None:
    code = (
        "import jlkern, sys, json\n"
        "jlkern.from_source('@kernel function f!(y)\\n i = @index(Global)\\n y[i] = 1\\nend', tune={'block': [1, 2]})\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    loaded = python(code)
    assert [name for name in HEAVY if name in loaded] == ["tree_sitter", "tree_sitter_julia"]


def test_importing_costs_at_most_what_numpy_costs() -> None:
    """Twice NumPy's time, NumPy included; both are timed in one process, so that a busy moment slows both."""
    code = (
        "import time, json\n"
        "start = time.perf_counter()\n"
        "import numpy\n"
        "middle = time.perf_counter()\n"
        "import jlkern\n"
        "print(json.dumps((time.perf_counter() - start) / (middle - start)))"
    )
    python(code)  # the first may have to write bytecode
    ratios = [python(code) for _ in range(9)]
    assert statistics.median(ratios) <= 2.0, ratios


def test_decorating_is_quick() -> None:
    """Bounded generously: a benchmark measures it, this sees it grow tenfold."""
    code = (
        "import time, json, jlkern\n"
        "source = '@kernel function f!(y, a)\\n i = @index(Global)\\n y[i] += a\\nend'\n"
        "times = []\n"
        "for n in range(20):\n"
        "    start = time.perf_counter()\n"
        "    jlkern.from_source(source.replace('+= a', f'+= a + {n}'), tune={'block': [32, 64]})\n"
        "    times.append(time.perf_counter() - start)\n"
        "print(json.dumps(times[1:]))"
    )
    assert statistics.median(python(code)) <= 0.02
