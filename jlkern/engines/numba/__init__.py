"""The embedded engine: `lower` (typed SIMT form), `emit` (Python source), `semantics` (Julia's rules), Numba."""

from __future__ import annotations

from jlkern.engines.numba.embedded import NumbaEngine, engine

__all__ = ["NumbaEngine", "engine"]
