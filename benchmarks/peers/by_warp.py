"""The problems in Warp, on its CPU device; tiles where a work-group would have memory of its own."""

# ruff: noqa: RUF046, UP018 (`float(0.0)` is a variable to Warp, and 0.0 a constant)

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import warp as wp

from peers.problems import BODIES, EPS, IMAGE, LIMIT, MATMUL, STENCIL, A, Contender, F, N, values

wp.config.quiet = True
wp.init()
Row, Plane, Whole = wp.array(dtype=wp.float32), wp.array2d(dtype=wp.float32), wp.array2d(dtype=wp.int32)


@wp.kernel
def saxpy(y: Row, a: wp.float32, x: Row):
    i = wp.tid()
    y[i] = y[i] + a * x[i]


@wp.kernel
def stencil(v: Plane, u: Plane):
    i, j = wp.tid()
    if i >= 1 and i < u.shape[0] - 1 and j >= 1 and j < u.shape[1] - 1:
        v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


def tiled(width: int) -> Any:
    size = wp.constant(width)
    steps = wp.constant(MATMUL // width)

    @wp.kernel(module="unique")
    def matmul(c: Plane, a: Plane, b: Plane):
        i, j = wp.tid()
        s = wp.tile_zeros(shape=(size, size), dtype=wp.float32)
        for k in range(steps):
            x = wp.tile_load(a, shape=(size, size), offset=(i * size, k * size))
            y = wp.tile_load(b, shape=(size, size), offset=(k * size, j * size))
            wp.tile_matmul(x, y, s)
        wp.tile_store(c, s, offset=(i * size, j * size))

    return matmul


@wp.kernel
def nbody(ax: Row, ay: Row, az: Row, px: Row, py: Row, pz: Row, pm: Row, eps: wp.float32):
    i = wp.tid()
    x = px[i]
    y = py[i]
    z = pz[i]
    sx = float(0.0)
    sy = float(0.0)
    sz = float(0.0)
    for j in range(px.shape[0]):
        dx = px[j] - x
        dy = py[j] - y
        dz = pz[j] - z
        r2 = dx * dx + dy * dy + dz * dz + eps
        w = pm[j] / (r2 * wp.sqrt(r2))
        sx += dx * w
        sy += dy * w
        sz += dz * w
    ax[i] = sx
    ay[i] = sy
    az[i] = sz


@wp.kernel
def mandelbrot(img: Whole, d: wp.float32, limit: wp.int32):
    i, j = wp.tid()
    cy = -1.5 + float(i) * d
    cx = -2.0 + float(j) * d
    x = float(0.0)
    y = float(0.0)
    n = int(0)
    while n < limit and x * x + y * y <= 4.0:
        t = x * x - y * y + cx
        y = 2.0 * x * y + cy
        x = t
        n += 1
    img[i, j] = n


def tile_sums(width: int) -> Any:
    size = wp.constant(width)

    @wp.kernel(module="unique")
    def sums(out: Row, x: Row):
        g = wp.tid()
        wp.tile_store(out, wp.tile_sum(wp.tile_load(x, shape=size, offset=g * size)), offset=g)

    return sums


def there(a: np.ndarray) -> wp.array:
    """Return a Warp array with an array's content."""
    return wp.array(np.ascontiguousarray(a), device="cpu")


def launch(kernel: Any, dim: Any, *args: Any) -> Callable[[], Any]:
    command = wp.launch(kernel, dim=dim, inputs=list(args), device="cpu", record_cmd=True)
    return command.launch  # type: ignore[no-any-return]


def launch_tiles(kernel: Any, dim: Any, *args: Any) -> Callable[[], Any]:
    return lambda: wp.launch_tiled(kernel, dim=dim, inputs=list(args), block_dim=1, device="cpu")


def contenders(problem: str) -> Mapping[str, Contender]:
    """Return the one contender."""
    return {"Warp": _made(problem)}


def _made(problem: str) -> Contender:
    if problem == "saxpy":
        y, x = there(values(N, 1)), there(values(N, 2))
        return Contender({"": launch(saxpy, N, y, float(A), x)}, lambda: [y.numpy()], lambda: y.assign(values(N, 1)))
    if problem == "stencil":
        u, v = there(values((STENCIL, STENCIL), 1)), there(np.zeros((STENCIL, STENCIL), F))
        return Contender({"": launch(stencil, (STENCIL, STENCIL), v, u)}, lambda: [v.numpy()])
    if problem == "matmul":
        c, a, b = (there(values((MATMUL, MATMUL), k)) for k in (3, 1, 2))
        made = {str(t): launch_tiles(tiled(t), (MATMUL // t, MATMUL // t), c, a, b) for t in (8, 16, 32)}
        return Contender(made, lambda: [c.numpy()])
    if problem == "nbody":
        outs, p = [there(np.zeros(BODIES, F)) for _ in range(3)], [there(values(BODIES, k)) for k in (1, 2, 3, 4)]
        return Contender({"": launch(nbody, BODIES, *outs, *p, float(EPS))}, lambda: [o.numpy() for o in outs])
    if problem == "mandelbrot":
        img = there(np.zeros((IMAGE, IMAGE), np.int32))
        return Contender({"": launch(mandelbrot, (IMAGE, IMAGE), img, 3.0 / IMAGE, LIMIT)}, lambda: [img.numpy()])
    x, part = there(values(N, 1)), there(np.zeros(N // 64, F))
    made = {str(t): launch_tiles(tile_sums(t), (N // t,), part, x) for t in (64, 256, 1024)}
    return Contender(made, lambda: [np.array([part.numpy().sum(dtype=float)])], lambda: part.zero_())
