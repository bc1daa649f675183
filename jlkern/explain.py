"""What `explain` answers: which configuration a call uses, where it comes from, and what would change that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jlkern import policy
from jlkern.choice import has_grown, lookup, origin_of, without_tuning
from jlkern.ndrange import Sizes
from jlkern.signature import ArrayArg, ScalarArg, Signature
from jlkern.space import Config

if TYPE_CHECKING:
    from jlkern.engines.base import Engine
    from jlkern.memo.store import TrialRecord, Winner
    from jlkern.opinion import Difference
    from jlkern.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Verified:
    """What the other engine says: its name, and the largest difference in each written array."""

    engine: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Explanation:
    """Why a call does what it does; `str()` of it is for people.

    `config` is what the next call would run, None when it would tune first; `origin` is "memo", "package", "nearest",
    "default", "untuned" (the kernel declares no tunables) or "unknown" (the next call tunes). `margin` is the default's
    time over the configuration's, None where not measured. `trials` are those journaled for exactly this call on
    exactly this machine. `verified` is the largest difference from the other engine's results, where asked for.
    """

    kernel: str
    engine: str
    device: str
    signature: Signature
    ndrange: Sizes
    workgroup: tuple[int, ...] | None
    config: Config | None
    origin: str
    margin: float | None = None
    seconds: float | None = None
    trials: tuple[TrialRecord, ...] = ()
    notes: tuple[str, ...] = ()
    retune: tuple[str, ...] = ()
    verified: Verified | None = None

    def __str__(self) -> str:
        from jlkern.report import explanation_text

        return explanation_text(self)


def explain(runtime: Runtime, args: tuple[Any, ...], given: Any, verify: bool = False) -> Explanation:
    """Return the explanation of a call; runs nothing, but for `verify` the configuration on copies, on both engines.

    Raises
    ------
    EngineError, UnsupportedError
        `verify` asks for another engine, and there is none for this call.
    """
    decl = runtime.declaration
    engine, signature = runtime.validate(args)
    override, sizes = decl.sizes(args, given)
    config: Config | None = decl.space.default()
    origin, winner, grown = "untuned", None, False
    trials: tuple[TrialRecord, ...] = ()
    if 0 in sizes:
        origin = "default"
    elif decl.tuned:
        case = runtime.case(engine, signature, args, sizes, override)
        trials = tuple(case.store.trials(case.key))
        found = lookup(case)
        if found is not None:
            config, origin, winner = found.config, origin_of(found), found.winner
            grown = has_grown(case, found)
        elif policy.is_frozen() or decl.options.first_call != "tune":
            choice = without_tuning(case, record=False)
            config, origin = choice.config, choice.origin
        else:
            config, origin = None, "unknown"
    if config is not None and override is None and decl.ndrange.tunables:
        sizes = decl.ndrange(args, config.as_dict())
    checked = _checked(runtime, engine, signature, config or decl.space.default(), sizes, args) if verify else None
    workgroup = None if config is None else decl.workgroup(config.as_dict()) or engine.default_workgroup(sizes)
    notes = _notes(runtime, signature, sizes, winner, grown)
    if engine.name == "numba" and workgroup is not None:
        notes += _order_notes(decl.names, signature, sizes, workgroup)
    return Explanation(
        kernel=decl.title,
        engine=engine.name,
        device=engine.devices()[0].name,
        signature=signature,
        ndrange=sizes,
        workgroup=workgroup,
        config=config,
        origin=origin,
        margin=winner.speedup if winner is not None else None,
        seconds=winner.seconds if winner is not None else None,
        trials=trials,
        notes=tuple(notes),
        retune=tuple(_retune(runtime)) if decl.tuned else (),
        verified=checked,
    )


def _checked(
    runtime: Runtime, engine: Engine, signature: Signature, config: Config, sizes: Sizes, args: tuple[Any, ...]
) -> Verified:
    from jlkern.opinion import differences

    if 0 in sizes:
        return Verified("", ())
    return Verified(*differences(engine, runtime.declaration, signature, config, sizes, args))


def _notes(runtime: Runtime, signature: Signature, sizes: Sizes, winner: Winner | None, grown: bool) -> list[str]:
    decl = runtime.declaration
    notes: list[str] = []
    if 0 in sizes:
        notes.append("the ndrange holds a 0: nothing is launched, tuned or stored")
    narrow = [n for n, a in zip(decl.names, signature, strict=True) if isinstance(a, ArrayArg) and a.dtype == "float32"]
    arrays = [a for a in signature if isinstance(a, ArrayArg) and np.dtype(a.dtype).kind in "fc"]
    for name, arg in zip(decl.names, signature, strict=True):
        wide = isinstance(arg, ScalarArg) and arg.dtype in ("float64", "complex128")
        if wide and narrow and all(a.dtype in ("float32", "complex64") for a in arrays):
            notes.append(
                f"{name} is Float64 among Float32 arrays, so the arithmetic with it is Float64; "
                f"pass np.float32(...), or annotate the parameter ({name}: np.float32)"
            )
    if grown:
        notes.append("a tunable has new values: the next call tries them first")
    if winner is not None:
        if winner.bundle:
            notes.append(f"shipped in {winner.bundle}; k.tune(...) measures here")
        if winner.rank != "exact":
            where = (
                "another machine or versions of the same class" if winner.rank == "class" else "another kind of machine"
            )
            notes.append(f"measured on {where}")
        if winner.noisy:
            notes.append("the machine was noisy when this was measured")
    return notes


NARROW = 16
"""Work-items next to each other in memory from which a loop over them is vectors."""


def _order_notes(names: tuple[str, ...], signature: Signature, sizes: Sizes, workgroup: tuple[int, ...]) -> list[str]:
    """Say it when work-groups have few work-items along the dimension in which C-ordered arrays are contiguous."""
    layouts = {n: a.layout for n, a in zip(names, signature, strict=True) if isinstance(a, ArrayArg) and a.ndim > 1}
    rows = [name for name, layout in layouts.items() if layout == "C"]
    last = len(sizes) - 1
    if last == 0 or len(rows) * 2 <= len(layouts):
        return []
    along = workgroup[last] if last < len(workgroup) else 1
    if along >= min(NARROW, sizes[last]) or along >= max(workgroup[:last]):
        return []
    verb = "is" if len(rows) == 1 else "are"
    return [
        f"{', '.join(rows)} {verb} in C order, so neighbouring elements lie along dimension {last + 1}, and a "
        f"work-group of {workgroup} has {along} work-item{'s' * (along > 1)} there: let tunables make it wider "
        "there, or pass np.asfortranarray(...)"
    ]


def _retune(runtime: Runtime) -> list[str]:
    decl = runtime.declaration
    if decl.key is not None:
        shapes = f"another value of key= (it reads {', '.join(decl.key.names) or 'nothing'})"
    elif decl.options.bucket is not None:
        shapes = "shapes in another power-of-two bucket"
    else:
        shapes = "other shapes"
    return [
        f"{shapes}, dtypes or memory orders",
        "another source (comments and layout aside), or tunables added or renamed; a new value costs its own trials",
        "another device, engine or compiler version, or number of threads",
    ]
