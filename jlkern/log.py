"""Logging: silent unless asked. Every module logs under `jlkern`, and each record carries its facts as a dict.

`logging.getLogger("jlkern")` takes handlers as any logger does; `JLKERN_LOG=info` (or `debug`) writes to stderr.
"""

from __future__ import annotations

import logging
from typing import Any

from jlkern.knobs import knobs

_ready = False


def get(name: str) -> logging.Logger:
    """Return the logger of a module, as `get(__name__)`; nothing is printed unless the user asks for it."""
    global _ready
    if not _ready:
        _ready = True
        root = logging.getLogger("jlkern")
        # Without a handler, logging would print warnings to stderr by itself.
        root.addHandler(logging.NullHandler())
        level = knobs.log
        if level != "off":
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
            root.addHandler(handler)
            root.setLevel(level.upper())
    return logging.getLogger(name)


def event(logger: logging.Logger, level: int, what: str, **facts: Any) -> None:
    """Log `what` with its facts: readable in the message, and as the dict `record.facts`."""
    if logger.isEnabledFor(level):
        shown = " ".join(f"{name}={value}" for name, value in facts.items())
        logger.log(level, "%s %s", what, shown, extra={"facts": facts, "event": what})
