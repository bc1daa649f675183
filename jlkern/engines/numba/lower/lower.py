"""The parts of lowering together: importing this module registers the handler of every kind of node."""

from __future__ import annotations

from jlkern.engines.numba.lower import expressions as _expressions
from jlkern.engines.numba.lower import statements as _statements
from jlkern.engines.numba.lower.arrays import spread
from jlkern.engines.numba.lower.branches import branch, by_option
from jlkern.engines.numba.lower.calls import call, lower_args
from jlkern.engines.numba.lower.core import condition, lower, lower_block, scalar
from jlkern.engines.numba.lower.inlining import inline

assert _expressions and _statements

__all__ = [
    "branch",
    "by_option",
    "call",
    "condition",
    "inline",
    "lower",
    "lower_args",
    "lower_block",
    "scalar",
    "spread",
]
