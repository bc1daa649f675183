"""Everything that Julia defines on numbers: importing this registers it."""

from jlkern.engines.numba.lower import (
    arithmetic,
    bits,
    comparison,
    complexes,
    conversion,
    division,
    mathematics,
    powers,
    properties,
    rounding,
)

__all__ = [
    "arithmetic",
    "bits",
    "comparison",
    "complexes",
    "conversion",
    "division",
    "mathematics",
    "powers",
    "properties",
    "rounding",
]
