"""The problems in Numba, written by hand as its users do: `prange` over rows, fastmath, nothing tuned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit, prange

from peers.problems import BODIES, EPS, IMAGE, LIMIT, MATMUL, STENCIL, A, Contender, F, N, values


@njit(parallel=True, fastmath=True)
def saxpy(y, a, x):
    for i in prange(y.size):
        y[i] += a * x[i]


@njit(parallel=True, fastmath=True)
def stencil(v, u):
    q = F(0.25)
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            v[i, j] = q * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@njit(parallel=True, fastmath=True)
def matmul(c, a, b):
    for block in prange(c.shape[0] // 4):
        i = block * 4
        c[i : i + 4, :] = 0
        for k in range(a.shape[1]):
            p, q, r, s = a[i, k], a[i + 1, k], a[i + 2, k], a[i + 3, k]
            for j in range(c.shape[1]):
                x = b[k, j]
                c[i, j] += p * x
                c[i + 1, j] += q * x
                c[i + 2, j] += r * x
                c[i + 3, j] += s * x


@njit(parallel=True, fastmath=True)
def nbody(ax, ay, az, px, py, pz, pm, eps, n):
    for i in prange(n):
        x, y, z = px[i], py[i], pz[i]
        sx = sy = sz = F(0)
        for j in range(n):
            dx, dy, dz = px[j] - x, py[j] - y, pz[j] - z
            r2 = dx * dx + dy * dy + dz * dz + eps
            w = pm[j] / (r2 * np.sqrt(r2))
            sx += dx * w
            sy += dy * w
            sz += dz * w
        ax[i], ay[i], az[i] = sx, sy, sz


@njit(parallel=True, fastmath=True)
def mandelbrot(img, limit):
    d = F(3 / img.shape[1])
    for i in prange(img.shape[0]):
        cy = F(-1.5) + F(i) * d
        for j in range(img.shape[1]):
            cx, x, y, n = F(-2) + F(j) * d, F(0), F(0), np.int32(0)
            while n < limit:
                x2, y2 = x * x, y * y
                if x2 + y2 > F(4):
                    break
                y = F(2) * x * y + cy
                x = x2 - y2 + cx
                n += np.int32(1)
            img[i, j] = n


@njit(parallel=True, fastmath=True)
def total(x):
    s = F(0)
    for i in prange(x.size):
        s += x[i]
    return s


def contenders(problem: str) -> Mapping[str, Contender]:
    """Return the one contender; arrays are C-ordered."""
    made: Any
    if problem == "saxpy":
        x, y = values(N, 2), values(N, 1)
        made = Contender({"": lambda: saxpy(y, A, x)}, lambda: [y], lambda: np.copyto(y, values(N, 1)))
    elif problem == "stencil":
        u, v = values((STENCIL, STENCIL), 1, "C"), np.zeros((STENCIL, STENCIL), F)
        made = Contender({"": lambda: stencil(v, u)}, lambda: [v])
    elif problem == "matmul":
        a, b, c = (values((MATMUL, MATMUL), k, "C") for k in (1, 2, 3))
        made = Contender({"": lambda: matmul(c, a, b)}, lambda: [c])
    elif problem == "nbody":
        p, outs = [values(BODIES, k) for k in (1, 2, 3, 4)], [np.zeros(BODIES, F) for _ in range(3)]
        made = Contender({"": lambda: nbody(*outs, *p, EPS, BODIES)}, lambda: outs)
    elif problem == "mandelbrot":
        img = np.zeros((IMAGE, IMAGE), np.int32)
        made = Contender({"": lambda: mandelbrot(img, np.int32(LIMIT))}, lambda: [img])
    else:
        x, result = values(N, 1), np.zeros(1, F)

        def run() -> None:
            result[0] = total(x)

        made = Contender({"": run}, lambda: [result])
    return {"Numba by hand": made}
