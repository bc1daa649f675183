"""How fast tuned kernels are: six KernelAbstractions strings against Numba written by hand and NumPy.

    python benchmarks/throughput.py [--rounds 30] [--only matmul,sum] [--order C]

Every contender is checked first. Then all contenders of a problem are measured in turn, round by round, and the
medians are printed with their ratio to hand-written Numba (`parallel=True, fastmath=True`; lower is better).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import njit, prange

import jlkern

F = np.float32


# --- the kernels, as KernelAbstractions strings ---


@jlkern.kernel(tune={"block": [1024, 256, 4096]}, max_evals=20)
def saxpy(y, a, x) -> None:
    r"""
    @kernel inbounds = true function saxpy!(y, a, @Const(x))
        i = @index(Global)
        y[i] += a * x[i]
    end
    """


@jlkern.kernel(
    tune={"block_size_x": [256, 64, 1024], "block_size_y": [4, 1, 16]},
    workgroup=("block_size_x", "block_size_y"),
    ndrange="v",
    max_evals=20,
)
def stencil(v, u) -> None:
    r"""
    @kernel inbounds = true function stencil!(v, @Const(u))
        i, j = @index(Global, NTuple)
        if 1 < i < size(u, 1) && 1 < j < size(u, 2)
            v[i, j] = 0.25f0 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1])
        end
    end
    """


MATMUL = r"""
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
_TILES: dict[str, Any] = {"tune": {"T": [16, 8, 32]}, "workgroup": ("T", "T"), "ndrange": "C"}
matmul = jlkern.from_source(MATMUL.replace("STEP", "s + As[i, k] * Bs[k, j]"), **_TILES)
matmul_fused = jlkern.from_source(MATMUL.replace("STEP", "muladd(As[i, k], Bs[k, j], s)"), **_TILES)


@jlkern.kernel(tune={"block": [64, 256, 1024]}, ndrange=("n",))
def nbody(ax, ay, az, px, py, pz, pm, eps, n) -> None:
    r"""
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


@jlkern.kernel(
    tune={"block_size_x": [64, 16, 256], "block_size_y": [4, 1]},
    workgroup=("block_size_x", "block_size_y"),
    ndrange="img",
)
def mandelbrot(img, limit) -> None:
    r"""
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


@jlkern.kernel(
    tune={"block": [256, 64, 1024, 4096]},
    ndrange=lambda x: x.size,
    compare={"partial": np.sum},
)
def tree_sum(partial, x) -> None:
    r"""
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


# --- the same by hand ---


@njit(parallel=True, fastmath=True)
def hand_saxpy(y, a, x):
    for i in prange(y.size):
        y[i] += a * x[i]


@njit(parallel=True, fastmath=True)
def hand_stencil(v, u):
    q = F(0.25)
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            v[i, j] = q * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@njit(parallel=True, fastmath=True)
def hand_matmul(c, a, b):
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
def hand_nbody(ax, ay, az, px, py, pz, pm, eps, n):
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
def hand_mandelbrot(img, limit):
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
def hand_sum(x):
    s = F(0)
    for i in prange(x.size):
        s += x[i]
    return s


# --- problems: contenders by name, each a function of nothing that returns what is checked ---

Contenders = dict[str, Callable[[], Any]]


def tuned(kernel: Any, *args: Any) -> Callable[[], Any]:
    """Tune a kernel and return its launch."""
    kernel.tune(*args)
    return kernel.bind(*args)


def returning(run: Callable[[], Any], *outputs: np.ndarray) -> Callable[[], Any]:
    """Return a launch that also gives its outputs."""

    def launch() -> Any:
        run()
        return outputs

    return launch


def saxpy_problem(order: str) -> Contenders:
    n, a = 1 << 22, F(1e-6)
    x = np.random.default_rng(1).random(n, F)
    ys = {name: np.zeros(n, F) for name in ("jlkern", "Numba by hand", "NumPy")}

    def numpy_saxpy() -> None:
        ys["NumPy"][:] += a * x

    return {
        "jlkern": returning(tuned(saxpy, ys["jlkern"], a, x), ys["jlkern"]),
        "Numba by hand": returning(lambda: hand_saxpy(ys["Numba by hand"], a, x), ys["Numba by hand"]),
        "NumPy": returning(numpy_saxpy, ys["NumPy"]),
    }


def stencil_problem(order: str) -> Contenders:
    u = np.random.default_rng(1).random((2048, 2048), F)
    mine, v, w = np.array(u, order=order), np.zeros_like(u, order=order), np.zeros_like(u)
    z = np.zeros_like(u)

    def numpy_stencil() -> None:
        z[1:-1, 1:-1] = F(0.25) * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])

    return {
        "jlkern": returning(tuned(stencil, v, mine), v),
        "Numba by hand": returning(lambda: hand_stencil(w, u), w),
        "NumPy": returning(numpy_stencil, z),
    }


def matmul_problem(order: str) -> Contenders:
    rng = np.random.default_rng(1)
    a, b, c, d = rng.random((512, 512), F), rng.random((512, 512), F), np.zeros((512, 512), F), np.zeros((512, 512), F)
    mine = [np.array(m, order=order) for m in (c, a, b)]
    fused = [np.array(m, order=order) for m in (c, a, b)]
    return {
        "jlkern": returning(tuned(matmul, *mine), mine[0]),
        "jlkern, muladd": returning(tuned(matmul_fused, *fused), fused[0]),
        "Numba by hand": returning(lambda: hand_matmul(c, a, b), c),
        "NumPy": returning(lambda: np.matmul(a, b, out=d), d),
    }


def nbody_problem(order: str) -> Contenders:
    n, eps = 2048, F(0.01)
    rng = np.random.default_rng(1)
    p = [rng.random(n, F) for _ in range(4)]
    mine, hand = ([np.zeros(n, F) for _ in range(3)] for _ in range(2))
    return {
        "jlkern": returning(tuned(nbody, *mine, *p, eps, n), *mine),
        "Numba by hand": returning(lambda: hand_nbody(*hand, *p, eps, n), *hand),
    }


def mandelbrot_problem(order: str) -> Contenders:
    mine, hand = np.zeros((1024, 1024), np.int32, order=order), np.zeros((1024, 1024), np.int32)
    limit = np.int32(100)
    return {
        "jlkern": returning(tuned(mandelbrot, mine, limit), mine),
        "Numba by hand": returning(lambda: hand_mandelbrot(hand, limit), hand),
    }


def sum_problem(order: str) -> Contenders:
    x = np.random.default_rng(1).random(1 << 22, F)
    partial = np.zeros((1 << 22) // 64, F)
    run = tuned(tree_sum, partial, x)
    groups = -(-x.size // int(tree_sum.config_for(partial, x).as_dict()["block"]))

    def mine() -> Any:
        run()
        return (partial[:groups].sum(dtype=np.float64),)

    return {"jlkern": mine, "Numba by hand": lambda: (hand_sum(x),), "NumPy": lambda: (x.sum(),)}


PROBLEMS: dict[str, Callable[[str], Contenders]] = {
    "saxpy": saxpy_problem,
    "stencil": stencil_problem,
    "matmul": matmul_problem,
    "nbody": nbody_problem,
    "mandelbrot": mandelbrot_problem,
    "sum": sum_problem,
}


def check(name: str, contenders: Contenders) -> None:
    """Compare every contender's result with hand-written Numba's."""
    if name == "saxpy":  # it accumulates: each call adds
        return
    wanted = contenders["Numba by hand"]()
    for label, run in contenders.items():
        for got, want in zip(run(), wanted, strict=True):
            wrong = ~np.isclose(got, want, rtol=1e-3, atol=1e-3)
            assert wrong.mean() <= (0.02 if name == "mandelbrot" else 0), f"{label} of {name} is wrong"


def measure(contenders: Contenders, rounds: int) -> dict[str, float]:
    """Return each contender's median time in ms, measured in turn."""
    times: dict[str, list[float]] = {label: [] for label in contenders}
    for _ in range(rounds):
        for label, run in contenders.items():
            if label == "NumPy":
                time.sleep(0.05)  # BLAS threads of the round before still spin
            start = time.perf_counter()
            run()
            times[label].append(time.perf_counter() - start)
            if label == "NumPy":
                time.sleep(0.25)
    return {label: statistics.median(t) * 1e3 for label, t in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", default="")
    parser.add_argument("--order", default="F", choices=["F", "C"], help="memory order of jlkern's arrays")
    options = parser.parse_args()
    names = [n for n in options.only.split(",") if n] or list(PROBLEMS)
    ratios = []
    print(f"{numba.get_num_threads()} threads, {options.order} order; medians of {options.rounds} rounds in turn")
    print(f"{'':12}{'contender':18}{'ms':>10}{'x Numba by hand':>18}")
    for name in names:
        contenders = PROBLEMS[name](options.order)
        check(name, contenders)
        medians = measure(contenders, options.rounds)
        base = medians["Numba by hand"]
        for label, ms in medians.items():
            print(f"{name:12}{label:18}{ms:10.3f}{ms / base:18.2f}")
        ratios.append(min(ms for label, ms in medians.items() if label.startswith("jlkern")) / base)
    print(f"geometric mean of jlkern's best form over Numba by hand: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JLKERN_CACHE_DIR"] = folder
        main()
