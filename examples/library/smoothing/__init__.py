"""Smooth pictures: a library as its users see it, with nothing of kernels or tuning in sight."""

from __future__ import annotations

import numpy as np

from smoothing.kernels import box

__all__ = ["smooth"]


def smooth(picture: np.ndarray) -> np.ndarray:
    """Return a picture whose pixels are the means of their 3 by 3 neighbours; the border stays as it is."""
    source = np.ascontiguousarray(picture, np.float32)
    result = source.copy()
    box(result, source)
    return result
