"""One tuning run, from the arguments of a call to a remembered winner."""

from __future__ import annotations

from jlkern.tuning.task import Trial, TuneResult, TuneSettings, TuneTask

__all__ = ["Trial", "TuneResult", "TuneSettings", "TuneTask", "tune"]


def tune(task: TuneTask) -> TuneResult:
    """Tune and remember; never touches the arguments. Ctrl-C returns the best so far, marked as interrupted.

    Raises
    ------
    TuningError: when no configuration could be used; the message groups the reasons, and nothing is remembered.
    """
    raise NotImplementedError
