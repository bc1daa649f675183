"""Why configurations failed, as text for an error's message."""

from __future__ import annotations

from jlkern.space import Config
from jlkern.tuning.task import Trial


def grouped(trials: list[Trial]) -> str:
    """Return the failed trials' reasons, the most frequent first, each with the configurations that it hit."""
    groups: dict[tuple[str, str], list[Config]] = {}
    for trial in trials:
        if trial.status != "ok":
            groups.setdefault((trial.status, trial.reason), []).append(trial.config)
    lines = []
    for (status, reason), configs in sorted(groups.items(), key=lambda item: -len(item[1]))[:8]:
        more = f" and {len(configs) - 2} more" if len(configs) > 2 else ""
        lines.append(f"  {status}: {reason}\n    {'; '.join(map(str, configs[:2]))}{more}")
    if len(groups) > 8:
        lines.append(f"  and {len(groups) - 8} other reasons")
    return "\n".join(lines)


def advice(wrong: list[Trial]) -> str:
    """Return what helps where results differ from the reference; nothing where none do."""
    if not wrong:
        return ""
    name = wrong[0].reason.partition(" ")[0].partition("[")[0].rpartition("(")[2].rstrip(")")
    forms = f"compare={{{name!r}: np.sum}}", f"compare={{{name!r}: None}}"
    return (
        f"\n  If {name} depends on the configuration, say what must agree, as {forms[0]}, or ignore it by {forms[1]}; "
        "tolerance= widens what counts as equal."
    )
