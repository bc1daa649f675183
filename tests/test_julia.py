"""The julia engine behind the decorator: calls, errors, tuning; and what Julia does to a process."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import needs_julia

import jlkern
from jlkern import errors
from jlkern.engines.julia import bridge

pytestmark = [needs_julia, pytest.mark.julia]


@jlkern.kernel(engine="julia")
def axpy(y, a, x) -> None:
    r"""
    @kernel function axpy!(y, a, @Const(x))
        i = @index(Global)
        @inbounds y[i] += a * x[i]
    end
    """


def run_apart(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, with Julia there and `axpy` at hand."""
    start = """
        import os, signal, sys, threading, time
        import numpy as np
        import jlkern
        from jlkern import errors
        axpy = jlkern.from_source('''@kernel function axpy!(y, a, @Const(x))
            i = @index(Global)
            @inbounds y[i] += a * x[i]
        end''', engine="julia")
        spin = jlkern.from_source('''@kernel function spin!(y, n)
            i = @index(Global)
            for k in 1:n
                @inbounds y[i] = muladd(y[i], 0.5, 1.0)
            end
        end''', engine="julia")
        y, x = np.zeros(8), np.ones(8)
    """
    text = textwrap.dedent(start) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        timeout=180,
        env={**os.environ, **environment},
    )


def ended_well(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return done.stdout.split()


# --- calls ------------------------------------------------------------------------------------------------------------


def test_calls_bound_calls_and_other_shapes() -> None:
    for n in (64, 100, 3, 1 << 15):
        y, x = np.zeros(n, np.float32), np.arange(n, dtype=np.float32)
        for count in range(1, 4):
            axpy(y, np.float32(2), x)
            np.testing.assert_array_equal(y, 2 * count * x)
        bound = axpy.bind(y, np.float32(1), x)
        bound()
        np.testing.assert_array_equal(y, 7 * x)


def test_an_empty_ndrange_launches_nothing() -> None:
    y = np.zeros(0)
    axpy(y, 1.0, y.copy())


def scalars() -> list[Any]:
    names = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    made: list[Any] = [np.dtype(name).type(3) for name in (*names, "float32", "float64", "complex64", "complex128")]
    return [*made, True, np.bool_(True), 7, -(1 << 62), 2.5, 1 - 2j, np.longlong(9), np.float16(1.5)]


@pytest.mark.parametrize("value", scalars(), ids=lambda value: f"{type(value).__name__} {value}")
def test_scalars_of_every_type_arrive(value: Any) -> None:
    kernel = jlkern.from_source("@kernel function fill!(y, v)\n i = @index(Global)\n y[i] = v\nend", engine="julia")
    y = np.zeros(5, np.asarray(value).dtype)
    for _ in range(2):
        y[...] = 0
        kernel(y, value)
        assert (y == value).all()
    kernel.bind(y, value)()
    assert (y == value).all()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("order", ["F", "C", "strided", "reversed", "transposed"])
def test_arrays_of_every_layout_in_place(dtype: str, order: str) -> None:
    kernel = jlkern.from_source(
        "@kernel function copy!(y, @Const(x))\n I = @index(Global, Cartesian)\n y[I] = x[I]\nend", engine="julia"
    )
    values = np.arange(35).reshape(5, 7).astype(dtype)
    base = np.zeros((12, 16), dtype)
    views = {
        "F": lambda: np.zeros((5, 7), dtype, order="F"),
        "C": lambda: np.zeros((5, 7), dtype),
        "strided": lambda: base[1:11:2, 2:16:2],
        "reversed": lambda: base[4::-1, 6::-1],
        "transposed": lambda: base[:7, :5].T,
    }
    x, y = views[order](), np.zeros((5, 7), dtype)
    x[...] = values
    kernel(y, x)
    np.testing.assert_array_equal(y, values)
    x[...] = 0
    kernel(x, y)
    np.testing.assert_array_equal(x, values)
    if order in ("strided", "reversed"):
        assert np.count_nonzero(base) == np.count_nonzero(values)


def test_zero_dimensional_arrays_tuples_functions_types_and_vals() -> None:
    kernel = jlkern.from_source(
        """
        @kernel function many!(y, s, t, f, ::Type{T}, ::Val{N}) where {T, N}
            i = @index(Global)
            y[i] = f(T(s[]) + t[1] + t[2][1]) + N
        end
        """,
        engine="julia",
    )
    y = np.zeros(4)
    kernel(y, np.array(2.7), (1, (2.0,)), jlkern.julia("abs2"), np.float32, jlkern.Val(3))
    np.testing.assert_array_equal(y, (np.float64(np.float32(2.7) + np.float32(1)) + 2.0) ** 2 + 3)


def test_a_bound_call_of_many_words() -> None:
    """A row of more than a KiB is freed memory as soon as Python lets go of it."""
    kernel = jlkern.from_source("@kernel function f!(y, t)\n i = @index(Global)\n y[i] = sum(t)\nend", engine="julia")
    values, y = tuple(range(100)), np.zeros(64)
    bound = kernel.bind(y, values)
    before = [np.zeros(1000) for _ in range(20)]
    bound()
    assert (y == sum(values)).all()
    assert not any(array.any() for array in before)


@pytest.mark.parametrize("expression", ["dot(a, b)", "norm(a)", "dot(view(a, :, 2), view(b, 2, :))", "sum(a * b)"])
def test_linear_algebra_reads_arrays_of_every_layout_rightly(expression: str) -> None:
    """Julia hands what it takes for dense arrays to BLAS, which sees one stretch of memory."""
    kernel = jlkern.from_source(
        f"using LinearAlgebra\n@kernel function f!(y, a, b)\n i = @index(Global)\n y[i] = {expression}\nend",
        engine="julia",
        ndrange=(1,),
        inout=["y"],
    )
    base = np.random.default_rng(0).random((80, 80))
    layouts = [np.asfortranarray(base[:40, :40]), base[:40, :40].copy(), base[::2, ::2], base[39::-1, 79:39:-1]]
    for a in layouts:
        for b in layouts:
            expected = {"d": np.vdot(a, b), "n": np.linalg.norm(a), "s": (a @ b).sum()}[expression[0]]
            y = np.zeros(1)
            kernel(y, a, b)
            np.testing.assert_allclose(y[0], a[:, 1] @ b[1] if "view" in expression else expected)


def test_atomics_on_every_layout() -> None:
    kernel = jlkern.from_source(
        """
        using Atomix: @atomic
        @kernel function count!(h, @Const(x))
            i = @index(Global)
            @inbounds @atomic h[1, x[i]] += 1
        end
        """,
        engine="julia",
        ndrange="x",
    )
    x = np.random.default_rng(0).integers(1, 4, 50_000)
    expected = np.bincount(x, minlength=4)[1:]
    for h in (np.zeros((1, 3), int, order="F"), np.zeros((2, 3), int)[:1], np.zeros((3, 6), int)[::2, ::2]):
        kernel(h, x)
        np.testing.assert_array_equal(h[0], expected)


def test_read_only_and_wrong_arrays_are_refused_when_the_types_are_known() -> None:
    y, x = np.zeros(8), np.ones(8)
    axpy(y, 1.0, x)
    y.flags.writeable = False
    with pytest.raises(errors.ArgumentError, match="read-only"):
        axpy(y, 1.0, x)
    with pytest.raises(errors.ArgumentError, match=r"y.*list"):
        axpy([1.0], 1.0, x)
    with pytest.raises(errors.ArgumentError, match="Int64"):
        axpy(np.zeros(8, int), 1 << 70, x)


def test_large_python_ints_are_refused_and_not_wrapped() -> None:
    kernel = jlkern.from_source("@kernel function fill!(y, v)\n i = @index(Global)\n y[i] = v\nend", engine="julia")
    y = np.zeros(3, np.int64)
    kernel(y, 5)
    with pytest.raises(errors.ArgumentError, match=r"'v'.*Int64"):
        kernel(y, 1 << 63)
    assert (y == 5).all()


# --- errors -----------------------------------------------------------------------------------------------------------


def test_errors_of_kernels_have_classes_and_lines() -> None:
    @jlkern.kernel(engine="julia", ndrange="y")
    def broken(y, x, what) -> None:
        r"""
        half(v) = v % 2 == 0 ? v ÷ 2 : error("odd: $v")
        @kernel function broken!(y, x, what)
            i = @index(Global)
            if what == 1
                y[i] = x[i + 1]
            elseif what == 2
                y[i] = half(3)
            elseif what == 3
                y[i] = sqrt(-1.0)
            elseif what == 4
                y[i] = 1 ÷ (what - 4)
            elseif what == 5
                y[i] = Int8(1000)
            else
                y[i] = nothing_like_this(3)
            end
        end
        """

    first = broken.__wrapped__.__code__.co_firstlineno
    y, x = np.zeros(4), np.zeros(4)
    for what, kind, line, text in (
        (1, errors.BoundsError, 7, r"4-element.* index \[5\]"),
        (2, errors.KernelThrownError, 3, "odd: 3"),
        (3, errors.DomainError, 11, "-1.0"),
        (4, errors.DivideError, 13, "integer division"),
        (5, errors.InexactError, 15, "Int8"),
        (6, errors.KernelError, 17, "nothing_like_this"),
    ):
        for _ in range(2):
            with pytest.raises(kind, match=rf"{Path(__file__).name}:{first + line}: .*{text}"):
                broken(y, x, what)
        bound = broken.bind(y, x, what)
        with pytest.raises(kind, match=text):
            bound()


def test_messages_of_any_bytes_arrive() -> None:
    said = r'"a\0b\x1fc\xffd € ", "e"^5000'
    kernel = jlkern.from_source(
        f"@kernel function f!(y)\n i = @index(Global)\n y[i] = error({said})\nend", engine="julia"
    )
    with pytest.raises(errors.KernelThrownError, match=r"a\\0b\x1fc.d € eee"):
        kernel(np.zeros(3))


def test_an_error_in_a_launch_of_several_threads() -> None:
    kernel = jlkern.from_source(
        "@kernel function far!(y, x)\n i = @index(Global)\n y[i] = x[i]\n y[i] += 1\nend", engine="julia", ndrange="y"
    )
    y, x = np.zeros(1 << 16), np.zeros(10)
    with pytest.raises(errors.BoundsError, match=r"line 3 of the source.*10-element"):
        kernel(y, x)
    kernel(y, np.zeros(1 << 16))
    assert (y == 1).all()


def test_bounds_are_checked_where_asked() -> None:
    source = "@kernel function far!(y, x)\n i = @index(Global)\n @inbounds y[i] = x[i + 1]\nend"
    y, x = np.zeros(8), np.zeros(16)[:8]
    jlkern.from_source(source, engine="julia", ndrange="y")(y, x)
    for options in ("", "inbounds=true", "cpu=true inbounds=true"):
        kernel = jlkern.from_source(source.replace("@kernel", f"@kernel {options}"), engine="julia", ndrange="y")
        with jlkern.knobs.knobs.scope(check_bounds=True), pytest.raises(errors.BoundsError, match="8-element"):
            kernel(y, x)


@pytest.mark.parametrize(
    ("source", "kind", "text"),
    [
        (
            "@kernel function f!(y)\n i = @index(Global)\n y[i] = undefined_macro_call\n @nope y\nend",
            "CompileError",
            "nope",
        ),
        ("using NoSuchPackage\n@kernel function f!(y)\n i = @index(Global)\n y[i] = 1\nend", "CompileError", "NoSuch"),
        (
            "const A = missing_name\n@kernel function f!(y)\n i = @index(Global)\n y[i] = A\nend",
            "CompileError",
            "missing",
        ),
        ("@kernel cpu=false function f!(y)\n i = @index(Global)\n y[i] = 1\nend", "CompileError", "backend CPU"),
    ],
)
def test_sources_that_julia_refuses(source: str, kind: str, text: str) -> None:
    kernel = jlkern.from_source(source, engine="julia", ndrange="y", inout=["y"])
    y = np.zeros(3)
    for _ in range(2):
        with pytest.raises(getattr(errors, kind), match=rf"(?s)of the source.*Julia says.*{text}"):
            kernel(y)


# --- tuning -----------------------------------------------------------------------------------------------------------


def test_tuning_finds_a_configuration_and_the_memo_keeps_it(tmp_path: Path) -> None:
    source = """
    @kernel function rows!(y, @Const(x), ::Val{block_size_x} = Val(64))  where {block_size_x}
        i = @index(Global)
        @inbounds y[i] = sin(x[i]) * work + how_much(block_size_x)
    end
    how_much(n) = n > 0 ? 1 : 0
    """
    kernel = jlkern.from_source(source, engine="julia", tune={"block_size_x": [32, 256], "work": [1.0]})
    y, x = np.zeros(4096), np.random.default_rng(0).random(4096)
    result = kernel.tune(y, x, effort="quick")
    assert {trial.status for trial in result.trials} == {"ok"}
    assert not y.any()
    kernel(y, x)
    np.testing.assert_allclose(y, np.sin(x) + 1)
    explained = kernel.explain(y, x)
    assert explained.origin == "memo" and explained.engine == "julia"
    assert "sin(x[i])" in kernel.lower(y, x)


def test_auto_goes_to_julia_for_what_numba_does_not_support() -> None:
    source = """
    @kernel function careful!(y, @Const(x))
        i = @index(Global)
        y[i] = try
            sqrt(x[i])
        catch
            -1.0
        end
    end
    """
    kernel = jlkern.from_source(source, ndrange="y")
    y, x = np.zeros(3), np.array([4.0, -4.0, 9.0])
    for _ in range(2):
        kernel(y, x)
        np.testing.assert_array_equal(y, [2, -1, 3])
    assert kernel.explain(y, x).engine == "julia"


def test_places_of_what_is_gone_are_used_again() -> None:
    kernel = jlkern.from_source("@kernel function g!(y)\n i = @index(Global)\n y[i] = 1\nend", engine="julia")
    y = np.zeros(4)
    places = set()
    for _ in range(60):
        bound = kernel.bind(y)
        bound()
        place = bridge.runtime().make(b"nothing", 0, b"")
        bridge.runtime().free(place)
        places.add(place)
        del bound
        gc.collect()
    assert len(places) < 20


# --- processes --------------------------------------------------------------------------------------------------------


def test_other_threads_are_told_who_owns_julia() -> None:
    y, x = np.zeros(8), np.ones(8)
    axpy(y, 1.0, x)
    caught: list[Exception] = []

    def call() -> None:
        for ask in (
            lambda: axpy(y, 1.0, x),
            lambda: axpy.bind(y, 1.0, x)(),
            lambda: axpy(y.astype(np.float32), 1.0, x),
        ):
            try:
                ask()
            except Exception as problem:
                caught.append(problem)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert [type(problem) for problem in caught] == [errors.WrongThreadError] * 3
    assert "JLKERN_JULIA_THREAD=dedicated" in str(caught[0])
    assert (y == 1).all()


CALL_FROM_THREADS = """
    def work(k):
        mine = np.zeros(64)
        for _ in range(50):
            axpy(mine, float(k), np.ones(64))
        assert (mine == 50 * k).all()
        done.append(k)
        try:
            axpy(mine, 1.0, np.ones(3))
        except errors.BoundsError:
            done.append("refused")
    done = []
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    axpy(y, 2.0, x)
    assert (y == 2).all()
    print(len(done))
"""


def test_a_dedicated_thread_serves_all() -> None:
    done = run_apart(CALL_FROM_THREADS, JLKERN_JULIA_THREAD="dedicated")
    assert ended_well(done) in (["4"], ["8"])


def test_julia_started_by_another_thread_gets_a_thread_of_its_own() -> None:
    done = run_apart(
        """
        def first():
            axpy(y, 1.0, x)
        thread = threading.Thread(target=first)
        thread.start()
        thread.join()
        axpy(y, 1.0, x)
        print(int(y[0]))
        """
    )
    assert ended_well(done) == ["2"]


@pytest.mark.parametrize("owner", ["caller", "dedicated"])
def test_ctrl_c_in_a_call_comes_when_the_call_returns(owner: str) -> None:
    done = run_apart(
        """
        big = np.ones(4)
        spin(big, 10)
        print("warm", flush=True)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        start = time.monotonic()
        try:
            spin(big, 400_000_000)
            print("missed")
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - start > 0.3)
        assert abs(big[0] - 2) < 1e-9
        axpy(y, 1.0, x)
        print(int(y[0]))
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            print("again")
        """,
        JLKERN_JULIA_THREAD=owner,
    )
    assert ended_well(done) == ["warm", "interrupted", "True", "1", "again"]


def test_signal_mask_and_handlers_are_as_before() -> None:
    done = run_apart(
        """
        def usr1(number, frame): came.append(number)
        came = []
        signal.signal(signal.SIGUSR1, usr1)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        handlers = {n: signal.getsignal(n) for n in signal.valid_signals()}
        axpy(y, 1.0, x)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
        assert {n: signal.getsignal(n) for n in signal.valid_signals()} == handlers
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.1)
        print(len(came), os.get_blocking(0))
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
        print("alive")
        """
    )
    assert done.returncode == -signal.SIGTERM, (done.returncode, done.stdout, done.stderr)
    assert done.stdout.split() == ["1", "True"]


def test_a_forked_child_is_told_and_the_parent_goes_on() -> None:
    done = run_apart(
        """
        axpy(y, 1.0, x)
        bound = axpy.bind(y, 1.0, x)
        pid = os.fork()
        if pid == 0:
            told = 0
            for call in (bound, lambda: axpy(y, 1.0, x), lambda: axpy(y.astype("f4"), 1.0, x)):
                try:
                    call()
                except errors.EngineError as problem:
                    told += "spawn" in str(problem)
            sys.exit(told)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        axpy(y, 1.0, x)
        print(int(y[0]))
        """
    )
    assert ended_well(done) == ["3", "2"]


def test_a_child_of_a_process_that_never_started_julia_may_start_it() -> None:
    done = run_apart(
        """
        pid = os.fork()
        if pid == 0:
            axpy(y, 1.0, x)
            sys.exit(int(y[0]))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
    )
    assert ended_well(done) == ["1"]


def test_the_user_may_have_started_juliacall() -> None:
    done = run_apart(
        """
        import juliacall
        axpy(y, 1.0, x)
        juliacall.Main.seval("1 + 1")
        print(int(y[0]))
        """
    )
    assert ended_well(done) == ["1"]


def test_a_julia_that_is_not_there(tmp_path: Path) -> None:
    done = run_apart(
        """
        for _ in range(2):
            try:
                axpy(y, 1.0, x)
            except errors.EngineError as problem:
                print("named" if "PYTHON_JULIACALL_EXE" in str(problem) else problem)
        """,
        PYTHON_JULIACALL_EXE=str(tmp_path / "julia"),
    )
    assert ended_well(done) == ["named", "named"]


def test_a_project_without_kernelabstractions(tmp_path: Path) -> None:
    done = run_apart(
        """
        for _ in range(2):
            try:
                axpy(y, 1.0, x)
            except errors.EngineError as problem:
                print("told" if "jlkern setup" in str(problem) else problem)
        """,
        JULIA_LOAD_PATH="@stdlib",
    )
    assert ended_well(done) == ["told", "told"]


def test_arguments_go_as_words_where_objects_lie_differently() -> None:
    done = run_apart(
        """
        from jlkern.engines.julia import bridge, builtin
        builtin.possible = lambda: False
        for order in "FC":
            big, other = np.zeros((3, 5), order=order), np.arange(15.0).reshape(3, 5)
            move = jlkern.from_source('''@kernel function move!(y, @Const(x), s)
                I = @index(Global, Cartesian)
                y[I] = x[I] + s[1] + s[2][1]
            end''', engine="julia")
            move(big, other, (1, (2.5,)))
            move.bind(big, other, (1, (2.5,)))()
            assert (big == other + 3.5).all()
        assert bridge.runtime().fast is None
        axpy(y, 1.0, x)
        try:
            far = "@kernel function far!(y, x)\\n i = @index(Global)\\n y[i] = x[9]\\nend"
            jlkern.from_source(far, engine="julia")(y, x)
        except errors.BoundsError as problem:
            print("told", int(y[0]))
        """
    )
    assert ended_well(done) == ["told", "1"]


def test_other_threads_go_on_while_a_long_kernel_runs() -> None:
    done = run_apart(
        """
        spin(y, 1000)
        for _ in range(3):
            spin(y, 20_000_000)  # it is seen to be long
        counts, stop = [0], threading.Event()
        def count():
            while not stop.is_set():
                counts[0] += 1
                time.sleep(0.001)
        thread = threading.Thread(target=count)
        thread.start()
        before = counts[0]
        spin(y, 20_000_000)
        during = counts[0] - before
        stop.set()
        thread.join()
        print(during > 20)
        """
    )
    assert ended_well(done) == ["True"]
