"""The problems as KernelAbstractions strings, tuned by jlkern: arrays in Fortran order, and in C order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import jlkern
from peers.problems import BODIES, EPS, IMAGE, LIMIT, MATMUL, STENCIL, A, Contender, F, N, values

SAXPY = r"""
@kernel inbounds = true function saxpy!(y, a, @Const(x))
    i = @index(Global)
    y[i] += a * x[i]
end
"""

STENCIL_5 = r"""
@kernel inbounds = true function stencil!(v, @Const(u))
    i, j = @index(Global, NTuple)
    if 1 < i < size(u, 1) && 1 < j < size(u, 2)
        v[i, j] = 0.25f0 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1])
    end
end
"""

TILED = r"""
@kernel inbounds = true function matmul!(C, @Const(A), @Const(B))
    gi, gj = @index(Group, NTuple)
    i, j = @index(Local, NTuple)
    As = @localmem eltype(C) (T, T)
    Bs = @localmem eltype(C) (T, T)
    acc = @private eltype(C) 1
    acc[1] = zero(eltype(C))
    for t in 0:(size(A, 2) ÷ T - 1)
        As[i, j] = A[(gi - 1) * T + i, t * T + j]
        Bs[i, j] = B[t * T + i, (gj - 1) * T + j]
        @synchronize
        s = acc[1]
        for k in 1:T
            s = STEP
        end
        acc[1] = s
        @synchronize
    end
    C[(gi - 1) * T + i, (gj - 1) * T + j] = acc[1]
end
"""
STRICT, FUSED = "s + As[i, k] * Bs[k, j]", "muladd(As[i, k], Bs[k, j], s)"

BODY = r"""
@kernel inbounds = true function nbody!(ax, ay, az, @Const(px), @Const(py), @Const(pz), @Const(pm), eps, n)
    i = @index(Global)
    x, y, z = px[i], py[i], pz[i]
    sx = sy = sz = 0f0
    for j in 1:n
        dx, dy, dz = px[j] - x, py[j] - y, pz[j] - z
        r2 = muladd(dx, dx, muladd(dy, dy, muladd(dz, dz, eps)))
        w = pm[j] / (r2 * sqrt(r2))
        sx = muladd(dx, w, sx)
        sy = muladd(dy, w, sy)
        sz = muladd(dz, w, sz)
    end
    ax[i], ay[i], az[i] = sx, sy, sz
end
"""

ESCAPE = r"""
@kernel inbounds = true function mandelbrot!(img, limit)
    i, j = @index(Global, NTuple)
    d = 3f0 / size(img, 2)
    cy, cx = -1.5f0 + (i - 1) * d, -2f0 + (j - 1) * d
    x = y = 0f0
    n = Int32(0)
    while n < limit && x * x + y * y <= 4f0
        x, y = x * x - y * y + cx, 2f0 * x * y + cy
        n += Int32(1)
    end
    img[i, j] = n
end
"""

TREE = r"""
@kernel cpu = false inbounds = true function tree_sum!(partial, @Const(x))
    i = @index(Global)
    l = @index(Local)
    s = @localmem Float32 (block,)
    s[l] = x[i]
    @synchronize
    h = block >> 1
    while h > 0
        if l <= h
            s[l] += s[l + h]
        end
        @synchronize
        h >>= 1
    end
    if l == 1
        partial[@index(Group)] = s[1]
    end
end
"""

LINE = {"tune": {"block": [1024, 64, 256, 2048]}, "ndrange": lambda y: y.size}
PLANE = {
    "tune": {"block_size_x": [256, 1, 16, 2048], "block_size_y": [4, 1, 16, 2048]},
    "workgroup": ("block_size_x", "block_size_y"),
}


def tuned(source: str, args: list[Any], engine: str, **options: Any) -> dict[str, Callable[[], Any]]:
    """Tune a kernel and return its launch, by what was chosen."""
    kernel = jlkern.from_source(source, engine=engine, **options)
    kernel.tune(*args)
    return {str(kernel.config_for(*args)): kernel.bind(*args)}


def contenders(problem: str, name: str = "jlkern", engine: str = "numba") -> Mapping[str, Contender]:
    """Return a contender for each order of arrays that makes a difference."""
    if problem == "saxpy":
        y, x = values(N, 1), values(N, 2)
        runs = tuned(SAXPY, [y, A, x], engine, **LINE)
        return {name: Contender(runs, lambda: [y], lambda: np.copyto(y, values(N, 1)))}
    if problem == "stencil":
        return {name + ending: _stencil(order, engine) for ending, order in _orders(engine)}
    if problem == "matmul":
        made = {name + ending: _matmul(order, STRICT, engine) for ending, order in _orders(engine)}
        return made if engine != "numba" else made | {name + ", muladd": _matmul("F", FUSED, engine)}
    if problem == "nbody":
        p, outs = [values(BODIES, k) for k in (1, 2, 3, 4)], [np.zeros(BODIES, F) for _ in range(3)]
        options = {"tune": {"block": [64, 32, 256, 1024]}, "ndrange": ("n",)}
        return {name: Contender(tuned(BODY, [*outs, *p, EPS, BODIES], engine, **options), lambda: outs)}
    if problem == "mandelbrot":
        return {name + ending: _mandelbrot(order, engine) for ending, order in _orders(engine)}
    return {name: _sum(engine)}


def _orders(engine: str) -> list[tuple[str, Any]]:
    return [("", "F")] if engine != "numba" else [("", "F"), (", C order", "C")]


def _stencil(order: Any, engine: str) -> Contender:
    u, v = values((STENCIL, STENCIL), 1, order), np.zeros((STENCIL, STENCIL), F, order=order)
    return Contender(tuned(STENCIL_5, [v, u], engine, ndrange="v", **PLANE), lambda: [v])


def _matmul(order: Any, step: str, engine: str) -> Contender:
    c, a, b = (values((MATMUL, MATMUL), k, order) for k in (3, 1, 2))
    options = {"tune": {"T": [16, 8, 32]}, "workgroup": ("T", "T"), "ndrange": "C"}
    return Contender(tuned(TILED.replace("STEP", step), [c, a, b], engine, **options), lambda: [c])


def _mandelbrot(order: Any, engine: str) -> Contender:
    img = np.zeros((IMAGE, IMAGE), np.int32, order=order)
    return Contender(tuned(ESCAPE, [img, np.int32(LIMIT)], engine, ndrange="img", **PLANE), lambda: [img])


def _sum(engine: str) -> Contender:
    x, partial = values(N, 1), np.zeros(N // 64, F)
    kernel = jlkern.from_source(
        TREE,
        engine=engine,
        tune={"block": [256, 64, 1024, 2048]},
        ndrange=lambda x: x.size,
        compare={"partial": np.sum},
    )
    kernel.tune(partial, x)
    block = int(kernel.config_for(partial, x).as_dict()["block"])
    return Contender(
        {f"block={block}": kernel.bind(partial, x)}, lambda: [np.array([partial[: N // block].sum(dtype=float)])]
    )
