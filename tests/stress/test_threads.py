"""Many threads, many shapes, small tables: every call is right whatever is pushed out, tuned or forgotten meanwhile."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest

import jlkern
from jlkern import dispatch, runtime

pytestmark = pytest.mark.stress

SOURCE = """
@kernel function axpy!(y, a, @Const(x))
    i = @index(Global)
    @inbounds y[i] += a * x[i]
end
"""


@pytest.mark.parametrize("options", [{}, {"ndrange": lambda y: y.size}, {"bucket": "pow2"}], ids=str)
def test_threads(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    monkeypatch.setattr(dispatch, "TABLE", 8)
    monkeypatch.setattr(runtime, "PLANS", 16)
    tune = {"tune": {"block": [32, 64]}, "first_call": "default"}
    kernels = [jlkern.from_source(SOURCE, **options), jlkern.from_source(SOURCE, **tune, **options)]
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        try:
            for step in range(1500):
                k = rng.choice(kernels)
                n = rng.randrange(0, 40)
                dtype = rng.choice([np.float32, np.float64])
                x = np.ones(2 * n, dtype)[:: rng.choice([1, 2])][:n]
                y = np.zeros(n, dtype)
                a: Any = rng.choice([1, 1.0, dtype(1), True])
                if step % 50 == 0:
                    k.bind(y, a, x)()
                elif step % 11 == 0:
                    k(y, a, x, ndrange=n)
                else:
                    k(y, a, x)
                assert (y == 1).all(), (n, dtype, a, x.strides)
                if step % 400 == 200:
                    k._dispatcher.forget()
        except BaseException as problem:
            errors.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
