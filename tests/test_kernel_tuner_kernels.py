"""Kernels written for Kernel Tuner's Julia backend and KernelTuner.jl run unchanged, on each engine that is here."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import needs_julia

import jlkern
from jlkern import errors

# Kernel Tuner passes a Val for every tunable after the arguments, whatever the kernel's last parameters are called.
VECTOR_ADD = """
using KernelAbstractions

@kernel function vector_add!(C, A, B, n, block_size_x,
                        ::Val{WORK_PER_THREAD} = Val(1)) where {WORK_PER_THREAD}
    tid = @index(Global)
    first_i = (tid - 1) * WORK_PER_THREAD + 1

    for offset in 0:(WORK_PER_THREAD - 1)
        i = first_i + offset
        if i <= n
            @inbounds C[i] = A[i] + B[i]
        end
    end
end
"""
ONLY_BLOCK = """
@kernel function vector_add!(C, A, B, n, block_size_x)
    i = @index(Global)
    if i <= n
        @inbounds C[i] = A[i] + B[i]
    end
end
"""

ENGINES = ["numba", pytest.param("julia", marks=[needs_julia, pytest.mark.julia])]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_examples_of_kerneltuner_jl(engine: str) -> None:
    def items(C: np.ndarray, work_per_thread: int) -> int:
        return -(-C.size // work_per_thread)

    n = 10_000
    a, b, c = (np.resize(np.float32([1, 2, 3, 4]), n) * k for k in (1, 10, 0))
    kernel = jlkern.from_source(
        VECTOR_ADD,
        engine=engine,
        tune={"block_size_x": [32, 64], "work_per_thread": [1, 4]},
        ndrange=items,
    )
    for params in ({"block_size_x": 64, "work_per_thread": 4}, {"block_size_x": 32}):
        c[...] = 0
        kernel(c, a, b, np.int32(n), config=params)
        np.testing.assert_array_equal(c, a + b)
    kernel = jlkern.from_source(ONLY_BLOCK, engine=engine, tune={"block_size_x": [32, 64]}, ndrange="C")
    c[...] = 0
    kernel(c, a, b, np.int32(n), config={"block_size_x": 64})
    np.testing.assert_array_equal(c, a + b)


def test_a_parameter_named_like_a_tunable_is_refused_elsewhere() -> None:
    for parameters in ("y, n", "y, n, m", "n, y, ::Val{m}"):
        source = f"@kernel function k!({parameters})\n i = @index(Global)\n y[i] = 1\nend"
        with pytest.raises(errors.TunableError, match="named like a parameter"):
            jlkern.from_source(source, tune={"n": [1, 2]}, ndrange="y")
