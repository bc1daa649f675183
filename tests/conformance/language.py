"""The language corpus: kernels whose results a real Julia gave, from one-line expressions to whole work-groups.

Each case has a source string, arguments made without chance, an ndrange and a work-group size. What Julia with
KernelAbstractions made of it stands in `tests/data/language.json.gz`, which `tests/data/make_language.py` makes.
A third-party engine can import this module.
"""

from __future__ import annotations

import hashlib
import importlib
import textwrap
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MODULES = (
    "scalars",
    "control",
    "functions",
    "data",
    "memory",
    "groups",
    "statics",
    "corners",
    "methods",
    "structs",
    "unusual",
)

XS = np.linspace(-3, 3, 33)
XF = XS.astype(np.float32)
XI = np.arange(-16, 17)
XU = np.arange(0, 33).astype(np.uint8)


@dataclass(frozen=True)
class Case:
    """One kernel and one call of it.

    `args` are arrays, NumPy scalars, tuples, and strings that are Julia expressions (`"Float32"`, `"sin"`);
    `params` are the tunables, which Julia gets as trailing `Val`s. `ulps` is how many units in the last place of the
    largest element a float may differ by: 0 where no mathematical library takes part.
    """

    name: str
    source: str
    args: tuple[Any, ...]
    ndrange: tuple[int, ...]
    workgroup: tuple[int, ...]
    params: dict[str, Any] = field(default_factory=dict)
    ulps: int = 0

    @property
    def digest(self) -> str:
        """Return what the recorded result belongs to."""
        made = hashlib.sha256(repr((self.source, self.ndrange, self.workgroup, self.params)).encode())
        for arg in self.args:
            made.update(_content(arg))
        return made.hexdigest()[:16]

    def fresh(self) -> list[Any]:
        """Return arguments that a launch may change."""
        return [arg.copy(order="F") if isinstance(arg, np.ndarray) else arg for arg in self.args]


def _content(arg: Any) -> bytes:
    if isinstance(arg, (str, tuple)):
        return repr(arg).encode()
    array = np.asarray(arg)
    return f"{type(arg).__name__} {array.dtype.str} {array.shape}".encode() + array.tobytes("F")


_collected: list[Case] = []


def kernel(
    name: str,
    source: str,
    args: list[Any],
    ndrange: tuple[int, ...],
    workgroup: tuple[int, ...] | None = None,
    *,
    params: dict[str, Any] | None = None,
    using: str = "using KernelAbstractions",
    ulps: int = 0,
) -> None:
    """Add a case: a source with a kernel `k!`."""
    text = using + "\n" + textwrap.dedent(source).strip() + "\n"
    group = workgroup or (min(ndrange[0], 16), *(1,) * (len(ndrange) - 1))
    _collected.append(Case(name, text, tuple(args), ndrange, group, params or {}, ulps))


def elementwise(name: str, body: str, x: Any, out: Any = np.float64, *, before: str = "", ulps: int = 0) -> None:
    """Add a case that computes `r` from each element `v` of `x` by `body` and stores it into an array of type `out`."""
    lines = textwrap.indent(textwrap.dedent(body).strip(), "        ").lstrip()
    head = textwrap.dedent(before).strip()
    source = f"""\
{head}
@kernel function k!(y, @Const(x))
    i = @index(Global)
    @inbounds begin
        v = x[i]
        {lines}
        y[i] = r
    end
end
"""
    x = np.asarray(x)
    kernel(name, source.lstrip(), [np.zeros(len(x), out), x], (len(x),), ulps=ulps)


def cases() -> tuple[Case, ...]:
    """Return the whole corpus."""
    if not _collected:
        for module in MODULES:
            importlib.import_module(f"{__package__}.language_{module}")
        names = [case.name for case in _collected]
        twice = {name for name in names if names.count(name) > 1}
        assert not twice, f"names used twice: {sorted(twice)}"
    return tuple(_collected)
