"""The problems in NumPy, one array operation after another."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from peers.problems import BODIES, EPS, IMAGE, LIMIT, MATMUL, STENCIL, A, Contender, F, N, values


def contenders(problem: str) -> Mapping[str, Contender]:
    """Return the one contender."""
    return {"NumPy": _made(problem)}


def _made(problem: str) -> Contender:
    if problem == "saxpy":
        x, y, t = values(N, 2), values(N, 1), np.empty(N, F)

        def saxpy() -> None:
            np.multiply(x, A, out=t)
            np.add(y, t, out=y)

        return Contender({"": saxpy}, lambda: [y], lambda: np.copyto(y, values(N, 1)))
    if problem == "stencil":
        u, v = values((STENCIL, STENCIL), 1, "C"), np.zeros((STENCIL, STENCIL), F)

        def stencil() -> None:
            v[1:-1, 1:-1] = F(0.25) * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])

        return Contender({"": stencil}, lambda: [v])
    if problem == "matmul":
        a, b, c = (values((MATMUL, MATMUL), k, "C") for k in (1, 2, 3))
        return Contender({"": lambda: np.matmul(a, b, out=c)}, lambda: [c])
    if problem == "nbody":
        px, py, pz, pm = (values(BODIES, k) for k in (1, 2, 3, 4))
        outs = [np.zeros(BODIES, F) for _ in range(3)]

        def nbody() -> None:
            d = [q[None, :] - q[:, None] for q in (px, py, pz)]
            r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + EPS
            w = pm / (r2 * np.sqrt(r2))
            for out, one in zip(outs, d, strict=True):
                np.einsum("ij,ij->i", one, w, out=out)

        return Contender({"": nbody}, lambda: outs)
    if problem == "mandelbrot":
        img = np.zeros((IMAGE, IMAGE), np.int32)
        d = F(3 / IMAGE)
        c = (F(-2) + np.arange(IMAGE, dtype=F) * d)[None] + 1j * (F(-1.5) + np.arange(IMAGE, dtype=F) * d)[:, None]
        c = c.astype(np.complex64)

        def mandelbrot() -> None:
            z = np.zeros_like(c)
            img[...] = 0
            with np.errstate(all="ignore"):
                for _ in range(LIMIT):
                    img[...] += z.real * z.real + z.imag * z.imag <= 4
                    z = z * z + c

        return Contender({"": mandelbrot}, lambda: [img])
    x, result = values(N, 1), np.zeros(1, F)

    def total() -> None:
        result[0] = x.sum()

    return Contender({"": total}, lambda: [result])
