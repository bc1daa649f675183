"""Tune for the sizes that users are expected to have; `jlkern export smoothing.kernels` writes the file to ship."""

from __future__ import annotations

import jlkern
from smoothing.kernels import box

SIZES = (256, 1024)

if __name__ == "__main__":
    for size in SIZES:
        picture = jlkern.Array("float32", (size, size))
        for made in jlkern.precompile(box, (picture, picture), tune=True):
            print(made)
