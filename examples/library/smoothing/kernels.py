"""The library's kernels."""

from __future__ import annotations

import jlkern


@jlkern.kernel(
    tune={"block": [(8, 8), (16, 16), (32, 8), (64, 4)], "rows": [1, 4]},
    ndrange=lambda y, rows: (y.shape[0], -(-y.shape[1] // rows)),
    bucket="pow2",
)
def box(y, x) -> None:
    r"""
    @kernel function box!(y, @Const(x))
        i, group = @index(Global, NTuple)
        for k in 1:rows
            j = (group - 1) * rows + k
            if 1 < i < size(x, 1) && 1 < j < size(x, 2)
                total = zero(eltype(x))
                for dj in -1:1, di in -1:1
                    @inbounds total += x[i + di, j + dj]
                end
                @inbounds y[i, j] = total / 9
            end
        end
    end
    """
