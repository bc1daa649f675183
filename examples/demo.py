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

TUNE = {"block_size_x": [8, 32, 128], "block_size_y": [8, 1], "items": [1, 4, 16]}
BORDER = 4


# Launched over (groups of `items` pixels of a row, rows): a work-item sums up the neighbours of all its pixels at once.
@jlkern.kernel(tune=TUNE, ndrange=lambda out, items: (-(-out.shape[0] // items), out.shape[1]))
def bilateral(out, img, reach: np.float32, contrast: np.float32) -> None:
    r"""
    using KernelAbstractions

    const BORDER = 4    # how far a pixel looks

    # `img` has a border of that width around the picture, and room for `items` more pixels at the end of a row
    @kernel function bilateral!(out, @Const(img), reach, contrast)
        group, y = @index(Global, NTuple)
        first = (group - 1) * items
        r = @private Float32 (items,)
        g = @private Float32 (items,)
        b = @private Float32 (items,)
        norm = @private Float32 (items,)
        for k in 1:items
            r[k] = g[k] = b[k] = norm[k] = 0
        end
        @inbounds for dy in -BORDER:BORDER, dx in -BORDER:BORDER
            near = exp(-(dx^2 + dy^2) / (2 * reach^2))
            for k in 1:items
                u = first + k + BORDER
                v = y + BORDER
                r1 = img[u + dx, v + dy, 1]
                g1 = img[u + dx, v + dy, 2]
                b1 = img[u + dx, v + dy, 3]
                difference = (r1 - img[u, v, 1])^2 + (g1 - img[u, v, 2])^2 + (b1 - img[u, v, 3])^2
                alike = max(1 - difference / contrast^2, 0f0)^2
                w = near * alike
                r[k] += w * r1
                g[k] += w * g1
                b[k] += w * b1
                norm[k] += w
            end
        end
        @inbounds for k in 1:items
            x = first + k
            if x <= size(out, 1)
                out[x, y, 1] = r[k] / norm[k]
                out[x, y, 2] = g[k] / norm[k]
                out[x, y, 3] = b[k] / norm[k]
            end
        end
    end
    """


# Launched over (columns, groups of `items` rows): a work-item walks down a column and keeps the two rows above at hand.
@jlkern.kernel(tune=TUNE, ndrange=lambda edges, items: (edges.shape[0], -(-edges.shape[1] // items)))
def sobel(edges, img) -> None:
    r"""
    using KernelAbstractions

    @inline luma(img, x, y) = @inbounds 0.299f0 * img[x, y, 1] + 0.587f0 * img[x, y, 2] + 0.114f0 * img[x, y, 3]
    @inline three(img, x, y) = (luma(img, x, y), luma(img, x + 1, y), luma(img, x + 2, y))

    @kernel function sobel!(edges, @Const(img))
        x, group = @index(Global, NTuple)
        above = (group - 1) * items
        a = three(img, x, above + 1)
        b = three(img, x, above + 2)
        for k in 1:items
            y = above + k
            if y <= size(edges, 2)
                c = three(img, x, y + 2)
                across = a[3] + 2 * b[3] + c[3] - a[1] - 2 * b[1] - c[1]
                down = c[1] + 2 * c[2] + c[3] - a[1] - 2 * a[2] - a[3]
                @inbounds edges[x, y] = sqrt(across^2 + down^2)
                a, b = b, c
            end
        end
    end
    """


def with_border(photo: np.ndarray) -> np.ndarray:
    """Return a picture with its edge pixels repeated around it, as the bilateral filter wants it."""
    room = ((BORDER, BORDER + max(TUNE["items"])), (BORDER, BORDER), (0, 0))
    return np.asfortranarray(np.pad(photo, room, mode="edge"))


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
    width = max(len(str(t.config)) for t in explanation.trials)
    print(f"  {'configuration':<{width}}{'ms':>9}  {'x best':>6}")
    for trial in trials:
        ratio = trial.seconds / trials[0].seconds
        bar = "#" * min(40, round(8 * ratio))
        print(f"  {trial.config!s:<{width}}{trial.seconds * 1e3:9.3f}  {ratio:6.2f}  {bar}")
    for trial in failed:
        print(f"  {trial.config!s:<{width}}  {trial.status}: {trial.reason}")

    chosen = kernel.config_for(*args)
    default = {name: values[0] for name, values in TUNE.items()}
    worst = [t for t in trials if not t.config.schedule][-1].config.as_dict()  # the engine's own choices aside
    contenders = {"tuned": chosen.as_dict(), "default": default, "worst": worst}
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
    show("Bilateral filter", bilateral, (smooth, with_border(photo), 2.5, 0.3))
    edges = np.zeros((photo.shape[0] - 2, photo.shape[1] - 2), np.float32, order="F")
    show("Sobel edges of the smoothed picture", sobel, (edges, smooth))

    print()
    write("photo.png", photo)
    write("smooth.png", smooth)
    write("edges.png", 1 - edges / edges.max())


if __name__ == "__main__":
    main()
