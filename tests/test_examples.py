"""The examples are right: their kernels against NumPy, and the demo as a user runs it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["demo"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def picture() -> np.ndarray:
    return np.asfortranarray(np.random.default_rng(7).random((45, 38, 3), np.float32))


def shifted(picture: np.ndarray, dx: int, dy: int) -> np.ndarray:
    """Return the picture whose pixel [x, y] is that picture's [x + dx, y + dy], the border repeated."""
    x = np.clip(np.arange(picture.shape[0]) + dx, 0, picture.shape[0] - 1)
    y = np.clip(np.arange(picture.shape[1]) + dy, 0, picture.shape[1] - 1)
    return picture[x][:, y]


def bilateral(picture: np.ndarray, reach: float, contrast: float) -> np.ndarray:
    picture = picture.astype(np.float64)
    total, norm = np.zeros_like(picture), np.zeros(picture.shape[:2])
    for dx in range(-4, 5):
        for dy in range(-4, 5):
            other = shifted(picture, dx, dy)
            alike = np.maximum(1 - ((other - picture) ** 2).sum(2) / contrast**2, 0) ** 2
            weight = np.exp(-(dx**2 + dy**2) / (2 * reach**2)) * alike
            total += weight[:, :, None] * other
            norm += weight
    return total / norm[:, :, None]


def sobel(picture: np.ndarray) -> np.ndarray:
    luma = picture.astype(np.float64) @ [0.299, 0.587, 0.114]
    p = {(dx, dy): shifted(luma, dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)}
    across = p[1, -1] + 2 * p[1, 0] + p[1, 1] - p[-1, -1] - 2 * p[-1, 0] - p[-1, 1]
    down = p[-1, 1] + 2 * p[0, 1] + p[1, 1] - p[-1, -1] - 2 * p[0, -1] - p[1, -1]
    return np.hypot(across, down)[1:-1, 1:-1]


CONFIGS = [{}, {"block_size_x": 32, "block_size_y": 1, "items": 16}]


@pytest.mark.parametrize("config", CONFIGS)
def test_bilateral_filter_is_numpys(demo: ModuleType, picture: np.ndarray, config: dict[str, int]) -> None:
    out, padded = np.zeros_like(picture), demo.with_border(picture)
    before = padded.copy()
    demo.bilateral(out, padded, 2.5, 0.8, config=config)
    np.testing.assert_allclose(out, bilateral(picture, 2.5, 0.8), rtol=1e-4)
    np.testing.assert_array_equal(padded, before)


@pytest.mark.parametrize("config", CONFIGS)
def test_sobel_filter_is_numpys(demo: ModuleType, picture: np.ndarray, config: dict[str, int]) -> None:
    edges = np.zeros((picture.shape[0] - 2, picture.shape[1] - 2), np.float32, order="F")
    demo.sobel(edges, picture, config=config)
    np.testing.assert_allclose(edges, sobel(picture), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_demo_tunes_once(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JLKERN_CACHE_DIR": str(tmp_path)}
    run = [sys.executable, str(ROOT / "examples" / "demo.py")]
    first = subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
    again = subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
    assert first.count("tuned just now") == 2
    assert again.count("nothing is tuned, these trials were remembered") == 2
    for name in ("photo.png", "smooth.png", "edges.png"):
        assert (ROOT / "demo-output" / name).stat().st_size > 10_000
