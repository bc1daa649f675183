"""Two image filters on a photograph: jlkern tunes them on their first call, and remembers.

A bilateral filter (smooths, keeps edges) and a Sobel filter (finds edges), written for KernelAbstractions.jl, run on
the photograph of a temple that scikit-learn ships. Both are tuned over the shape of a work-group and over how many
pixels a work-item takes. Run it twice: the second time nothing is tuned, the configurations come from the memo of the
first run.

    python examples/demo.py            the filtered pictures are in demo-output/ afterwards
    python examples/demo.py --fresh    forget what was tuned, tune anew
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).resolve().parent.parent / "demo-output"
# A memo of the demo's own. Without this, jlkern keeps what it learns in your platform's cache folder.
os.environ.setdefault("JLKERN_CACHE_DIR", str(OUTPUT / "memo"))

import numpy as np

import jlkern

# Every kernel is launched over (columns, groups of `items` rows): work-item (x, group) does `items` pixels of column x.
TUNE = {"block_size_x": [16, 64, 256], "block_size_y": [16, 1, 4], "items": [1, 4]}
SMALL_ENOUGH = ["block_size_x * block_size_y <= 1024"]


@jlkern.kernel(
    tune=TUNE, restrictions=SMALL_ENOUGH, ndrange=lambda img, items: (img.shape[0], -(-img.shape[1] // items))
)
def bilateral(out, img, sigma_space, sigma_range) -> None:
    r"""
    using KernelAbstractions

    const RADIUS = 4

    @kernel function bilateral!(out, @Const(img), sigma_space, sigma_range)
        x, group = @index(Global, NTuple)
        nx = size(img, 1)
        ny = size(img, 2)
        near = -1 / (2 * sigma_space^2)
        alike = -1 / (2 * sigma_range^2)
        for k in 1:items
            y = (group - 1) * items + k
            @inbounds if y <= ny
                r0 = img[x, y, 1]
                g0 = img[x, y, 2]
                b0 = img[x, y, 3]
                r = g = b = norm = zero(r0)
                for dy in -RADIUS:RADIUS, dx in -RADIUS:RADIUS
                    u = clamp(x + dx, 1, nx)
                    v = clamp(y + dy, 1, ny)
                    r1 = img[u, v, 1]
                    g1 = img[u, v, 2]
                    b1 = img[u, v, 3]
                    difference = (r1 - r0)^2 + (g1 - g0)^2 + (b1 - b0)^2
                    w = exp(near * (dx^2 + dy^2) + alike * difference)
                    r += w * r1
                    g += w * g1
                    b += w * b1
                    norm += w
                end
                out[x, y, 1] = r / norm
                out[x, y, 2] = g / norm
                out[x, y, 3] = b / norm
            end
        end
    end
    """


@jlkern.kernel(
    tune=TUNE, restrictions=SMALL_ENOUGH, ndrange=lambda img, items: (img.shape[0], -(-img.shape[1] // items))
)
def sobel(edges, img) -> None:
    r"""
    using KernelAbstractions

    @inline luma(img, x, y) = @inbounds 0.299f0 * img[x, y, 1] + 0.587f0 * img[x, y, 2] + 0.114f0 * img[x, y, 3]

    @kernel function sobel!(edges, @Const(img))
        x, group = @index(Global, NTuple)
        nx = size(img, 1)
        ny = size(img, 2)
        for k in 1:items
            y = (group - 1) * items + k
            if y <= ny
                w, e = max(x - 1, 1), min(x + 1, nx)
                n, s = max(y - 1, 1), min(y + 1, ny)
                nw, ne = luma(img, w, n), luma(img, e, n)
                sw, se = luma(img, w, s), luma(img, e, s)
                across = ne + 2 * luma(img, e, y) + se - nw - 2 * luma(img, w, y) - sw
                down = sw + 2 * luma(img, x, s) + se - nw - 2 * luma(img, x, n) - ne
                @inbounds edges[x, y] = sqrt(across^2 + down^2)
            end
        end
    end
    """


def clock(call: Callable[[], Any]) -> float:
    """Return the milliseconds that a call takes."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


def median_ms(call: Callable[[], Any], times: int = 15) -> float:
    """Return the median milliseconds of some calls."""
    return statistics.median(clock(call) for _ in range(times))


def show(title: str, kernel: Any, args: tuple[Any, ...]) -> None:
    """Call a kernel the way a program would, then tell what jlkern knows about it."""
    print(f"\n{title}\n{'=' * len(title)}")
    known = kernel.config_for(*args)
    first = clock(lambda: kernel(*args))
    later = median_ms(lambda: kernel(*args))
    explanation = kernel.explain(*args)
    trials = sorted((t for t in explanation.trials if t.status == "ok"), key=lambda t: t.seconds)
    failed = [t for t in explanation.trials if t.status != "ok"]

    print("nothing is tuned, these trials were remembered:" if known else "tuned just now:")
    print(f"  {'configuration':<52}{'ms':>9}  {'x best':>6}")
    for trial in trials:
        ratio = trial.seconds / trials[0].seconds
        bar = "#" * min(40, round(8 * ratio))
        print(f"  {trial.config!s:<52}{trial.seconds * 1e3:9.3f}  {ratio:6.2f}  {bar}")
    for trial in failed:
        print(f"  {trial.config!s:<52}{trial.status}: {trial.reason}")

    chosen = kernel.config_for(*args)
    default = {name: values[0] for name, values in TUNE.items()}
    worst = dict(trials[-1].config.params)
    contenders = {"tuned": dict(chosen.params), "default": default, "worst": worst}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(15):  # in turn, so that whatever else the machine does hits all of them
        for name, config in contenders.items():
            samples[name].append(clock(lambda config=config: kernel(*args, config=config)))
    print(f"chosen: {chosen}")
    tuned = statistics.median(samples["tuned"])
    for name, values in samples.items():
        print(f"  {name:8} {statistics.median(values):9.3f} ms  {statistics.median(values) / tuned:6.2f} x tuned")
    print(f"first call: {first:.1f} ms{'' if known else ' (tuning included)'}; every later call: {later:.3f} ms")


def as_array(photo: np.ndarray) -> np.ndarray:
    """Return a picture of bytes as Float32 in 0..1, indexed [x, y, channel] with x running fastest in memory."""
    return np.asfortranarray(photo.transpose(1, 0, 2).astype(np.float32) / 255)


def write(name: str, picture: np.ndarray) -> None:
    """Write a picture indexed [x, y] or [x, y, channel] to the output folder."""
    from PIL import Image

    rows = np.moveaxis(picture, 0, 1)
    Image.fromarray((np.clip(rows, 0, 1) * 255).round().astype(np.uint8)).save(OUTPUT / name)
    print(f"wrote {OUTPUT.name}/{name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fresh", action="store_true", help="forget what was tuned before")
    if parser.parse_args().fresh:
        shutil.rmtree(OUTPUT / "memo", ignore_errors=True)
    OUTPUT.mkdir(exist_ok=True)

    from sklearn.datasets import load_sample_image

    photo = as_array(load_sample_image("china.jpg"))
    print(f"china.jpg: {photo.shape[0]} x {photo.shape[1]} pixels")

    smooth = np.zeros_like(photo)
    show("Bilateral filter", bilateral, (smooth, photo, np.float32(2.5), np.float32(0.15)))
    edges = np.zeros(photo.shape[:2], np.float32, order="F")
    show("Sobel edges of the smoothed picture", sobel, (edges, smooth))

    print()
    write("photo.png", photo)
    write("smooth.png", smooth)
    write("edges.png", 1 - edges / edges.max())


if __name__ == "__main__":
    main()
