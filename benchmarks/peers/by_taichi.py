"""The problems in Taichi, on its ndarrays."""

import os
from collections.abc import Mapping

os.environ.setdefault("TI_LOG_LEVEL", "error")
os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")

import numpy as np
import taichi as ti

from peers.problems import BODIES, EPS, IMAGE, LIMIT, MATMUL, STENCIL, A, Contender, F, N, values

ti.init(arch=ti.cpu, log_level=ti.ERROR, cpu_max_num_threads=len(os.sched_getaffinity(0)))
ROW, PLANE = ti.types.ndarray(dtype=ti.f32, ndim=1), ti.types.ndarray(dtype=ti.f32, ndim=2)
WHOLE = ti.types.ndarray(dtype=ti.i32, ndim=2)


@ti.kernel
def saxpy(y: ROW, a: ti.f32, x: ROW):
    for i in range(y.shape[0]):
        y[i] += a * x[i]


@ti.kernel
def stencil(v: PLANE, u: PLANE):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@ti.kernel
def stencil_flat(v: PLANE, u: PLANE):
    for i, j in ti.ndrange((1, u.shape[0] - 1), (1, u.shape[1] - 1)):
        v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@ti.kernel
def matmul(c: PLANE, a: PLANE, b: PLANE):
    for i, j in ti.ndrange(c.shape[0], c.shape[1]):
        s = 0.0
        for k in range(a.shape[1]):
            s += a[i, k] * b[k, j]
        c[i, j] = s


@ti.kernel
def matmul_rows(c: PLANE, a: PLANE, b: PLANE):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = 0.0
        for k in range(a.shape[1]):
            p = a[i, k]
            for j in range(c.shape[1]):
                c[i, j] += p * b[k, j]


@ti.kernel
def nbody(ax: ROW, ay: ROW, az: ROW, px: ROW, py: ROW, pz: ROW, pm: ROW, eps: ti.f32):
    for i in range(px.shape[0]):
        x, y, z = px[i], py[i], pz[i]
        sx, sy, sz = 0.0, 0.0, 0.0
        for j in range(px.shape[0]):
            dx, dy, dz = px[j] - x, py[j] - y, pz[j] - z
            r2 = dx * dx + dy * dy + dz * dz + eps
            w = pm[j] / (r2 * ti.sqrt(r2))
            sx += dx * w
            sy += dy * w
            sz += dz * w
        ax[i], ay[i], az[i] = sx, sy, sz


@ti.kernel
def mandelbrot(img: WHOLE, limit: ti.i32):
    d = ti.f32(3.0 / IMAGE)
    for i, j in ti.ndrange(img.shape[0], img.shape[1]):
        cy, cx = -1.5 + i * d, -2.0 + j * d
        x, y, n = 0.0, 0.0, 0
        while n < limit and x * x + y * y <= 4.0:
            x, y = x * x - y * y + cx, 2.0 * x * y + cy
            n += 1
        img[i, j] = n


@ti.kernel
def partial_sums(out: ROW, x: ROW, width: ti.i32):
    for g in range(x.shape[0] // width):
        s = 0.0
        for k in range(width):
            s += x[g * width + k]
        out[g] = s


def there(a: np.ndarray) -> ti.Ndarray:
    """Return a Taichi array with an array's content."""
    made = ti.ndarray(ti.f32 if a.dtype == F else ti.i32, a.shape)
    made.from_numpy(np.ascontiguousarray(a))
    return made


def runs(forms: dict, *args: object) -> dict:
    """Return launches that wait, by name."""

    def run(kernel: object, *more: object) -> None:
        kernel(*args, *more)  # type: ignore[operator]
        ti.sync()

    return {name: (lambda form=form: run(*form)) for name, form in forms.items()}


def contenders(problem: str) -> Mapping[str, Contender]:
    """Return the one contender."""
    return {"Taichi": _made(problem)}


def _made(problem: str) -> Contender:
    if problem == "saxpy":
        y, x = there(values(N, 1)), there(values(N, 2))
        reset = lambda: y.from_numpy(values(N, 1))  # noqa: E731
        return Contender(runs({"": (saxpy,)}, y, float(A), x), lambda: [y.to_numpy()], reset)
    if problem == "stencil":
        u, v = there(values((STENCIL, STENCIL), 1)), there(np.zeros((STENCIL, STENCIL), F))
        return Contender(runs({"rows": (stencil,), "flat": (stencil_flat,)}, v, u), lambda: [v.to_numpy()])
    if problem == "matmul":
        c, a, b = (there(values((MATMUL, MATMUL), k)) for k in (3, 1, 2))
        return Contender(runs({"dots": (matmul,), "rows": (matmul_rows,)}, c, a, b), lambda: [c.to_numpy()])
    if problem == "nbody":
        outs, p = [there(np.zeros(BODIES, F)) for _ in range(3)], [there(values(BODIES, k)) for k in (1, 2, 3, 4)]
        return Contender(runs({"": (nbody,)}, *outs, *p, float(EPS)), lambda: [o.to_numpy() for o in outs])
    if problem == "mandelbrot":
        img = there(np.zeros((IMAGE, IMAGE), np.int32))
        return Contender(runs({"": (mandelbrot,)}, img, LIMIT), lambda: [img.to_numpy()])
    x, part = there(values(N, 1)), there(np.zeros(N // 256, F))

    def sums() -> list[np.ndarray]:
        found = part.to_numpy()
        return [np.array([found[: N // width[0]].sum(dtype=float)])]

    width = [0]

    def run(w: int) -> None:
        width[0] = w
        partial_sums(part, x, w)
        ti.sync()

    return Contender({str(w): (lambda w=w: run(w)) for w in (256, 1024, 4096)}, sums)
