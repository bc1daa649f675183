"""A progress bar on stderr, for tuning runs that take more than a second on a terminal."""

from __future__ import annotations

import sys
import time
from typing import Any, Final

from jlkern.knobs import knobs

DELAY: Final = 1.0


class Progress:
    """Shows how many configurations were tried, and the best time; nothing appears before `DELAY` seconds.

    Arguments
    ---------
    title: what is tuned.
    total: configurations at most, or None.
    show: True or False, or None to go by the knob, and then by whether stderr is a terminal.
    """

    def __init__(self, title: str, total: int | None, show: bool | None = None) -> None:
        self.title, self.total = title, total
        wanted = show if show is not None else knobs.progress
        self.wanted = wanted if wanted is not None else _on_terminal()
        self.start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def update(self, done: int, best: str, total: int | None = None) -> None:
        """Show where the run is."""
        if not self.wanted:
            return
        self.total = total if total is not None else self.total
        if self._bar is None:
            if time.monotonic() - self.start < DELAY:
                return
            self._open()
        # No refresh thread: it would run while something is measured.
        self._bar.update(self._task, completed=done, total=self.total, best=best, refresh=True)

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("tuning {task.description}"), BarColumn(), MofNCompleteColumn())
        tail = (TextColumn("best {task.fields[best]}"), TimeElapsedColumn())
        console = Console(stderr=True)
        # Other output of the process stays where it goes: redirection would take it over.
        self._bar = Bar(
            *columns,
            *tail,
            console=console,
            # Where nothing can be taken back, one line at the end has to do.
            transient=console.is_terminal,
            redirect_stdout=False,
            redirect_stderr=False,
            auto_refresh=False,
        )
        self._task = self._bar.add_task(self.title, total=self.total, best="?")
        self._bar.start()
        self._bar.refresh()


def _on_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False
