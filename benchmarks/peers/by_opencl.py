"""The problems in OpenCL C through PyOpenCL (on a CPU: PoCL), over a few work-group sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyopencl as cl

from peers.problems import BODIES, EPS, IMAGE, LIMIT, MATMUL, STENCIL, A, Contender, F, N, values

SOURCE = r"""
__kernel void saxpy(__global float *y, float a, __global const float *x) {
    size_t i = get_global_id(0);
    y[i] += a * x[i];
}
__kernel void stencil(__global float *v, __global const float *u, int n) {
    int j = get_global_id(0), i = get_global_id(1);
    if (i >= 1 && i < n - 1 && j >= 1 && j < n - 1)
        v[i * n + j] = 0.25f * (u[(i - 1) * n + j] + u[(i + 1) * n + j] + u[i * n + j - 1] + u[i * n + j + 1]);
}
__kernel void nbody(__global float *ax, __global float *ay, __global float *az, __global const float *px,
                    __global const float *py, __global const float *pz, __global const float *pm, float eps, int n) {
    int i = get_global_id(0);
    float x = px[i], y = py[i], z = pz[i], sx = 0, sy = 0, sz = 0;
    for (int j = 0; j < n; j++) {
        float dx = px[j] - x, dy = py[j] - y, dz = pz[j] - z, r2 = dx * dx + dy * dy + dz * dz + eps;
        float w = pm[j] / (r2 * sqrt(r2));
        sx += dx * w;
        sy += dy * w;
        sz += dz * w;
    }
    ax[i] = sx;
    ay[i] = sy;
    az[i] = sz;
}
__kernel void mandelbrot(__global int *img, float d, int limit) {
    int j = get_global_id(0), i = get_global_id(1), n = 0;
    float cy = -1.5f + i * d, cx = -2.0f + j * d, x = 0, y = 0;
    while (n < limit && x * x + y * y <= 4.0f) {
        float t = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = t;
        n++;
    }
    img[i * get_global_size(0) + j] = n;
}
"""
TILED = r"""
__kernel void matmul(__global float *c, __global const float *a, __global const float *b, int n) {
    __local float as[T][T], bs[T][T];
    int j = get_local_id(0), i = get_local_id(1), col = get_global_id(0), row = get_global_id(1);
    float s = 0;
    for (int t = 0; t < n; t += T) {
        as[i][j] = a[row * n + t + j];
        bs[i][j] = b[(t + i) * n + col];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < T; k++)
            s += as[i][k] * bs[k][j];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + col] = s;
}
__kernel void sum(__global float *out, __global const float *x) {
    __local float s[T];
    int l = get_local_id(0);
    s[l] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int h = T / 2; h > 0; h /= 2) {
        if (l < h)
            s[l] += s[l + h];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        out[get_group_id(0)] = s[0];
}
"""
CONTEXT = cl.Context([d for p in cl.get_platforms() for d in p.get_devices()][:1])
QUEUE = cl.CommandQueue(CONTEXT)
PROGRAM = cl.Program(CONTEXT, SOURCE).build()
PLANES = [(256, 1), (1024, 1), (256, 4), (32, 8), (16, 16), (8, 32)]


def there(a: np.ndarray) -> cl.Buffer:
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    return cl.Buffer(CONTEXT, flags, hostbuf=np.ascontiguousarray(a))


def back(buffer: cl.Buffer, shape: Any, dtype: Any = F) -> np.ndarray:
    out = np.empty(shape, dtype)
    cl.enqueue_copy(QUEUE, out, buffer)
    return out


def launch(program: cl.Program, name: str, size: Any, group: Any, *args: Any) -> Callable[[], None]:
    kernel = cl.Kernel(program, name)
    kernel.set_args(*args)

    def run() -> None:
        cl.enqueue_nd_range_kernel(QUEUE, kernel, size, group)
        QUEUE.finish()

    return run


def contenders(problem: str) -> Mapping[str, Contender]:
    """Return the one contender."""
    return {"PyOpenCL": _made(problem)}


def _made(problem: str) -> Contender:
    if problem == "saxpy":
        y, x = there(values(N, 1)), there(values(N, 2))
        made = {str(g): launch(PROGRAM, "saxpy", (N,), (g,), y, A, x) for g in (64, 256, 1024, 2048)}
        return Contender(made, lambda: [back(y, N)], lambda: cl.enqueue_copy(QUEUE, y, values(N, 1)))
    if problem == "stencil":
        u, v = there(values((STENCIL, STENCIL), 1)), there(np.zeros((STENCIL, STENCIL), F))
        size = (STENCIL, STENCIL)
        made = {str(g): launch(PROGRAM, "stencil", size, g, v, u, np.int32(STENCIL)) for g in PLANES}
        return Contender(made, lambda: [back(v, size)])
    if problem == "matmul":
        c, a, b = (there(values((MATMUL, MATMUL), k)) for k in (3, 1, 2))
        size = (MATMUL, MATMUL)
        made = {str(t): launch(_tiled(t), "matmul", size, (t, t), c, a, b, np.int32(MATMUL)) for t in (8, 16, 32)}
        return Contender(made, lambda: [back(c, size)])
    if problem == "nbody":
        outs, p = [there(np.zeros(BODIES, F)) for _ in range(3)], [there(values(BODIES, k)) for k in (1, 2, 3, 4)]
        args = (*outs, *p, EPS, np.int32(BODIES))
        made = {str(g): launch(PROGRAM, "nbody", (BODIES,), (g,), *args) for g in (16, 64, 256)}
        return Contender(made, lambda: [back(o, BODIES) for o in outs])
    if problem == "mandelbrot":
        img, size = there(np.zeros((IMAGE, IMAGE), np.int32)), (IMAGE, IMAGE)
        made = {str(g): launch(PROGRAM, "mandelbrot", size, g, img, F(3 / IMAGE), np.int32(LIMIT)) for g in PLANES}
        return Contender(made, lambda: [back(img, size, np.int32)])
    x, part = there(values(N, 1)), there(np.zeros(N // 16, F))
    made = {str(t): launch(_tiled(t), "sum", (N,), (t,), part, x) for t in (16, 64, 256)}
    zeros = np.zeros(N // 16, F)
    reset = lambda: cl.enqueue_copy(QUEUE, part, zeros)  # noqa: E731
    return Contender(made, lambda: [np.array([back(part, N // 16).sum(dtype=float)])], reset)


def _tiled(width: int) -> cl.Program:
    return cl.Program(CONTEXT, TILED).build(options=[f"-DT={width}"])
