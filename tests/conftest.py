"""Shared by all tests: the memo goes to a folder of this run, never to the user's own."""

from __future__ import annotations

import os
import shutil
import tempfile

# Set before anything imports jlkern, and inherited by the processes that tests start.
_MEMO = tempfile.mkdtemp(prefix="jlkern-tests-")
os.environ["JLKERN_CACHE_DIR"] = _MEMO
# Such processes import jlkern compiled; without this each of them would compile it again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Not tests: examples that type checkers read, and scripts that make test data.
collect_ignore = ["typing", "data"]


def pytest_unconfigure() -> None:
    shutil.rmtree(_MEMO, ignore_errors=True)
