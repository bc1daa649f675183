"""Results as text for people: tables of trials, of a tuning's outcome, of an explanation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from jlkern.space import Config
from jlkern.tuning.task import format_seconds

if TYPE_CHECKING:
    from jlkern.explain import Explanation
    from jlkern.tuning.task import TuneResult


# Rows whose samples scatter by more are marked: their time is the least sample instead of the lower quartile.
NOISY: Final = 1.0


class TrialLike(Protocol):
    """A trial as a tuning returns it or the memo keeps it."""

    @property
    def config(self) -> Config: ...
    @property
    def status(self) -> str: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def spread(self) -> float | None: ...
    @property
    def reason(self) -> str: ...


def table(rows: Iterable[Sequence[str]], head: Sequence[str]) -> str:
    """Return rows as aligned text under a head; columns of numbers are aligned right.

    >>> print(table([["64", "1.5 us"], ["128", "0.9 us"]], ["block", "time"]))
    block    time
       64  1.5 us
      128  0.9 us
    """
    cells = [list(map(str, row)) for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [all(cell[:1].isdigit() or cell in ("", "-") for cell in column[1:]) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def trials_table(trials: Sequence[TrialLike], best: Config | None = None, base: float | None = None) -> str:
    """Return trials as a table, the fastest first and the failed last, with their times as multiples of `base`.

    Parameters
    ----------
    trials
        What a tuning returned, or the memo's journal.
    best
        The chosen configuration, which gets a mark.
    base
        Seconds to compare with; default: the fastest trial's.
    """
    measured = [t.seconds for t in trials if t.seconds is not None and t.status == "ok"]
    base = base if base is not None else min(measured, default=None)
    ordered = sorted(trials, key=lambda t: (t.status != "ok", t.seconds is None, t.seconds or 0.0))
    names = list(dict.fromkeys(name for t in trials for name, _ in t.config.params))
    scheduled = any(t.config.schedule for t in trials)
    rows = []
    for trial in ordered:
        params = trial.config.as_dict()
        row = [str(params.get(name, "")) for name in names]
        if scheduled:
            row.append(" ".join(f"{name}={value}" for name, value in trial.config.schedule))
        seconds = trial.seconds
        row.append(format_seconds(seconds) if seconds is not None else "-")
        row.append(f"{seconds / base:.2f}" if seconds is not None and base else "-")
        row.append(f"{100 * trial.spread:.0f} %" if trial.spread is not None else "-")
        row.append(trial.status if trial.config != best else "best")
        noisy = "noisy" if trial.status == "ok" and (trial.spread or 0.0) > NOISY else ""
        row.append(trial.reason.splitlines()[0][:80] if trial.reason else noisy)
        rows.append(row)
    return table(rows, [*names, *(["schedule"] if scheduled else []), "time", "ratio", "spread", "", ""])


def result_text(result: TuneResult) -> str:
    """Return a tuning's outcome: the choice, what it wins, and every trial."""
    return f"{result}\n{trials_table(result.trials, result.best)}"


_ORIGINS = {
    "memo": "remembered from a tuning",
    "package": "shipped with a package",
    "nearest": "the one remembered for the nearest shapes",
    "default": "the default, not tuned",
    "untuned": "the kernel declares no tunables",
    "unknown": "nothing is known: the next call tunes first",
}


def explanation_text(e: Explanation) -> str:
    """Return an explanation as text."""
    workgroup = "" if e.workgroup is None else f" in groups of {'x'.join(map(str, e.workgroup))}"
    lines = [
        f"{e.kernel}({', '.join(map(str, e.signature))})",
        f"  launches       {'x'.join(map(str, e.ndrange))} work-items{workgroup}",
        f"  configuration  {e.config if e.config is not None else 'none yet'}",
        f"  origin         {_ORIGINS.get(e.origin, e.origin)}",
        f"  engine         {e.engine} on {e.device}",
    ]
    if e.seconds is not None:
        gain = f", {e.margin:.2f} times the default's speed" if e.margin is not None else ""
        lines.append(f"  measured       {format_seconds(e.seconds)}{gain}")
    if e.verified is not None:
        told = "; ".join(map(str, e.verified.differences)) or "nothing is launched"
        lines.append(f"  verified       largest differences from the {e.verified.engine} engine: {told}")
    lines += [f"  note           {note}" for note in e.notes]
    lines += [f"  {'tunes anew for' if i == 0 else '':14} {what}" for i, what in enumerate(e.retune)]
    if e.trials:
        text = trials_table(e.trials, e.config)
        lines += ["", *(f"  {line}" for line in text.splitlines())]
    return "\n".join(lines)
