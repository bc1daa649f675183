"""Self-tuning KernelAbstractions.jl kernels, called from Python with NumPy arrays.

Decorate an empty function whose docstring is a kernel, say which values to try, and call it: the first call tunes and
remembers, every later one goes straight to the best configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jlkern.decorator import from_source, kernel
from jlkern.engines.select import synchronize
from jlkern.errors import (
    ArgumentError,
    BoundsError,
    CompileError,
    ConfigError,
    DivideError,
    DomainError,
    EffectsError,
    EmptySpaceError,
    EngineError,
    HomeError,
    InexactError,
    JlkernError,
    KernelError,
    KernelThrownError,
    MemoWarning,
    MissingSourceError,
    NDRangeError,
    OptionError,
    SignatureError,
    SourceError,
    SourceSyntaxError,
    TunableError,
    TuningError,
    TuningWarning,
    UnsupportedError,
    WorkgroupError,
    WrongThreadError,
)
from jlkern.kernel import Bound, Kernel
from jlkern.policy import Miss, frozen
from jlkern.precompile import Precompiled, precompile
from jlkern.signature import Array, Val, julia
from jlkern.space import Config
from jlkern.tuning.hooks import Hook, TrialHook, VerdictHook, on_trial, on_verdict

if TYPE_CHECKING:
    from jlkern.explain import Explanation
    from jlkern.tuning.task import Trial, TuneResult

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "Array",
    "Bound",
    "BoundsError",
    "CompileError",
    "Config",
    "ConfigError",
    "DivideError",
    "DomainError",
    "EffectsError",
    "EmptySpaceError",
    "EngineError",
    "Explanation",
    "HomeError",
    "Hook",
    "InexactError",
    "JlkernError",
    "Kernel",
    "KernelError",
    "KernelThrownError",
    "MemoWarning",
    "Miss",
    "MissingSourceError",
    "NDRangeError",
    "OptionError",
    "Precompiled",
    "SignatureError",
    "SourceError",
    "SourceSyntaxError",
    "Trial",
    "TrialHook",
    "TunableError",
    "TuneResult",
    "TuningError",
    "TuningWarning",
    "UnsupportedError",
    "Val",
    "VerdictHook",
    "WorkgroupError",
    "WrongThreadError",
    "__version__",
    "from_source",
    "frozen",
    "julia",
    "kernel",
    "on_trial",
    "on_verdict",
    "precompile",
    "synchronize",
]

# What only results are made of: loaded when somebody names it.
_LAZY = {"Explanation": "jlkern.explain", "Trial": "jlkern.tuning.task", "TuneResult": "jlkern.tuning.task"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'jlkern' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
