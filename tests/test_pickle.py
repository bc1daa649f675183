"""Kernels go where functions go: pickles, copies, threads, other processes."""

from __future__ import annotations

import asyncio
import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from helpers import SAXPY, install

import jlkern

f32 = np.float32


@jlkern.kernel(tune={"block": [32, 64]}, first_call="default")
def saxpy(y: Any, a: np.float32 | float, x: Any) -> None:
    r"""
    @kernel function saxpy!(y, a, @Const(x))
        i = @index(Global)
        @inbounds y[i] += a * x[i]
    end
    """


class Holder:
    @staticmethod
    @jlkern.kernel(source=SAXPY)
    def k(y: Any, a: Any, x: Any) -> None: ...


def run(kernel: Any) -> np.ndarray[Any, Any]:
    y = np.zeros(100, f32)
    kernel(y, f32(2), np.ones(100, f32))
    return y


def test_kernels_of_modules_pickle_by_name() -> None:
    for kernel in (saxpy, Holder.k):
        assert pickle.loads(pickle.dumps(kernel)) is kernel
    assert len(pickle.dumps(saxpy)) < 200


def test_kernels_of_sources_pickle_by_source_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = install(monkeypatch)
    k = jlkern.from_source(SAXPY, tune={"block": [1, 2]}, first_call="default", default={"block": 2}, workgroup=None)
    again = pickle.loads(pickle.dumps(k))
    assert again is not k
    for kernel in (k, again):
        assert (run(kernel) == 2).all()
    assert engine.launches == [({"block": 2}, (100,))] * 2
    assert len(engine.compiled) == 1
    assert again.source == k.source
    assert repr(again) == repr(k)


def test_local_kernels_pickle_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)

    @jlkern.kernel(source=SAXPY)
    def local(y: Any, a: np.float32 = f32(2), *, x: Any) -> None:  # noqa: B008
        """Words."""

    again = pickle.loads(pickle.dumps(local))
    y = np.zeros(3, f32)
    again(y, x=np.ones(3, f32))
    again(y, 1, x=np.ones(3, f32))  # a Python int, converted
    assert (y == 3).all()
    assert (again.__doc__, again.__name__, again.__qualname__) == ("Words.", "local", local.__qualname__)


def test_what_cannot_be_pickled_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(jlkern.from_source(SAXPY, ndrange=lambda y: y.size))
    with pytest.raises(TypeError, match="bound launch"):
        pickle.dumps(saxpy.bind(np.zeros(3, f32), 2.0, np.zeros(3, f32)))


def test_copies_are_the_kernel() -> None:
    assert copy.copy(saxpy) is saxpy
    assert copy.deepcopy(saxpy) is saxpy
    assert copy.deepcopy({"k": [saxpy]})["k"][0] is saxpy


def test_names_stay_hashable_and_comparable() -> None:
    assert saxpy in {saxpy}
    assert saxpy == saxpy
    assert saxpy != Holder.k


def test_asyncio() -> None:
    async def main() -> list[np.ndarray[Any, Any]]:
        return await asyncio.gather(*(asyncio.to_thread(run, saxpy) for _ in range(8)))

    for y in asyncio.run(main()):
        assert (y == 2).all()


def test_many_threads_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        for y in pool.map(run, [saxpy, Holder.k] * 50):
            assert (y == 2).all()


def test_loky() -> None:
    local = jlkern.from_source(SAXPY)
    for kernel in (saxpy, Holder.k, local):
        for y in joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(run)(kernel) for _ in range(2)):
            assert (y == 2).all()


@pytest.mark.slow
def test_a_script_hands_its_kernels_to_loky(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import joblib, numpy as np, jlkern\n"
        "@jlkern.kernel(ndrange=lambda y: y.size)\n"
        "def saxpy(y, a: np.float32, x) -> None:\n"
        '    """\n'
        "    @kernel function saxpy!(y, a, @Const(x))\n"
        "        i = @index(Global)\n"
        "        y[i] += a * x[i]\n"
        "    end\n"
        '    """\n'
        "def run(n):\n"
        "    y = np.zeros(n)\n"
        "    saxpy(y, 2, np.ones(n))\n"
        "    return y.sum()\n"
        "print(joblib.Parallel(n_jobs=2, backend='loky')(joblib.delayed(run)(n) for n in (3, 4)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "6.0" in done.stdout
    assert "8.0" in done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_works() -> None:
    run(saxpy)
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        """Hold every lock of a kernel while the process forks."""
        from jlkern import compiled

        with compiled._guard, compiled.tables, compiled.locks.hold("x"):
            holding.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(10)
    try:
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=lambda: queue.put([float(run(k).sum()) for k in (saxpy, Holder.k)]))
        child.start()
        assert queue.get(timeout=30) == [200.0, 200.0]
        child.join(10)
    finally:
        done.set()
        thread.join()
