"""Starting Julia and calling what `runtime.jl` offers; the only module that knows juliacall.

After the start everything goes by C function pointers: no object of juliacall's leaves this module, so none can be
used, or die, in a thread that Julia does not know.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from jlkern.engines.julia import builtin, image, owner
from jlkern.engines.julia.installation import Installation, find, variables
from jlkern.errors import EngineError
from jlkern.interrupt import uninterrupted

_WORD, _TEXT, _REAL = ctypes.c_int64, ctypes.c_char_p, ctypes.c_double
_FUNCTIONS: Final[tuple[tuple[str, Any, tuple[Any, ...]], ...]] = (
    # in the order of `addresses()` in runtime.jl; long ones give up the GIL, see `_LONG`
    ("connect", None, (_TEXT, ctypes.c_void_p)),
    ("fast", None, ()),
    ("packed", _WORD, (_WORD, ctypes.c_void_p)),
    ("load", _WORD, (_TEXT, _TEXT, _WORD, _TEXT, _WORD)),
    ("make", _WORD, (_TEXT, _WORD, _TEXT)),
    ("call", _WORD, (_WORD, ctypes.c_void_p, _WORD, _WORD)),
    ("bind", _WORD, (_WORD, ctypes.c_void_p)),
    ("repeat", _REAL, (_WORD, _WORD)),
    ("problem", _TEXT, ()),
    ("free", None, (_WORD,)),
    ("echo", _TEXT, (_WORD,)),
    ("about", _TEXT, (_WORD,)),
    ("block", _WORD, (_WORD, _WORD, _WORD)),
    ("move", _WORD, (_WORD, _WORD, _WORD, _WORD, _WORD)),
    ("wait", _WORD, (_WORD,)),
)
_LONG: Final = frozenset({"packed", "load", "make", "call", "repeat", "block", "move", "wait"})


@dataclass(frozen=True)
class Problem:
    """An exception inside Julia: its type's name, the line of the source or 0, and its message."""

    kind: str
    line: int
    message: str


@dataclass(frozen=True)
class Runtime:
    """A started Julia: the functions of `runtime.jl`, to be called by the owner thread only.

    Those that return a slot (`load`, `make`, `call`, `bind`, `block`) return 0 for an exception, `packed`, `move` and
    `wait` 1, `repeat` -1, `about` None; `last_problem` has it then. `fast` is None where Python's objects are not as
    the Julia side reads them.
    """

    packed: Callable[[int, int], int]
    load: Callable[[bytes, bytes, int, bytes, int], int]
    make: Callable[[bytes, int, bytes], int]
    call: Callable[[int, Any, int, int], int]
    bind: Callable[[int, int], int]
    repeat: Callable[[int, int], float]
    problem: Callable[[], bytes]
    free: Callable[[int], None]
    about: Callable[[int], bytes | None]
    block: Callable[[int, int, int], int]
    move: Callable[[int, int, int, int, int], int]
    wait: Callable[[int], int]
    fast: int | None
    versions: Mapping[str, str]
    threads: int

    def last_problem(self) -> Problem:
        """Return the last exception."""
        kind, line, message = self.problem().decode(errors="replace").split("\x1f", 2)
        return Problem(kind, int(line), message)


_state: dict[str, Runtime] = {}
_broken: list[str] = []
"""Why the Julia that this process started cannot be used: there can be no second one."""
_starting = threading.Lock()


def _after_fork() -> None:
    # another thread of the parent may have been starting Julia
    global _starting
    _starting = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def runtime() -> Runtime:
    """Return the running Julia, started at the first call.

    Raises
    ------
    EngineError
        It is not set up, does not start, lacks KernelAbstractions, or ran in the process that this one was forked from.
    """
    found = _state.get("runtime")
    if found is None:
        with _starting:
            found = _state.get("runtime")
            if found is None:
                if _broken:
                    raise EngineError(f"{_broken[0]} (restart Python when that is mended)")
                _start()
                found = _state["runtime"]
    return found


def started() -> bool:
    """Tell whether Julia runs in this process."""
    return "runtime" in _state


def _start() -> None:
    from jlkern.knobs import knobs

    installation = find()
    if installation.origin == "running":
        owner.claim_main()
    else:
        owner.claim(knobs.julia_thread == "dedicated")
    with _ctrl_c_later():
        owner.run(_started, installation)


def _started(installation: Installation) -> None:
    """Start Julia in this thread."""
    try:
        with uninterrupted():
            with _as_before(), _variables(installation):
                module = _module(_import(installation))
            # a Ctrl-C comes at the end of the block: Julia runs then, and must not be started again
            _state["runtime"] = _connected(module)
    except Exception as problem:
        text = str(problem).strip().splitlines()
        told = next((line for line in text if line.strip()), type(problem).__name__)
        message = f"Julia does not start: {told}; `jlkern doctor` shows what is set up, `jlkern setup` mends its own"
        if "juliacall" in sys.modules or _loaded:
            _broken.append(message)
        raise EngineError(message) from problem


def _connected(module: Any) -> Runtime:
    """Return the functions of `runtime.jl`, once they know Python's."""
    addresses = [int(a) for a in module.addresses()]
    versions = dict(zip(("julia", "KernelAbstractions"), map(str, module.versions()), strict=True))
    threads = int(module.thread_count())
    functions = {
        name: (ctypes.CFUNCTYPE if name in _LONG else ctypes.PYFUNCTYPE)(result, *kinds)(address)
        for (name, result, kinds), address in zip(_FUNCTIONS, addresses, strict=True)
    }
    echo, connect = functions.pop("echo"), functions.pop("connect")
    functions.pop("fast")
    for name, address in _python().items():
        connect(name.encode(), address)
    made = Runtime(**functions, fast=addresses[1], versions=versions, threads=threads)
    return made if _self_test(made, echo) else Runtime(**functions, fast=None, versions=versions, threads=threads)


# --- the start --------------------------------------------------------------------------------------------------------


_loaded: list[Callable[[], Any]] = []
"""What juliacall wants done at exit: it says so once Julia is there."""


def _import(installation: Installation) -> Any:
    import atexit

    register = atexit.register

    def take(function: Callable[[], Any], *args: Any, **kwargs: Any) -> Callable[[], Any]:
        _loaded.append(function)
        return function

    if installation.origin != "running":
        # Julia's own end must come in the thread that owns it
        atexit.register = take  # type: ignore[assignment]
    try:
        import juliacall
    finally:
        atexit.register = register
        owner.at_exit(_loaded)
    # The interpreter's last act is to let go of modules, in the main thread: Julia's objects must not die there.
    for value in vars(juliacall).values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
    return juliacall.Main


@contextmanager
def _variables(installation: Installation) -> Iterator[None]:
    """Set what juliacall reads, where the user has not, for as long as it starts."""
    from jlkern.engines.cpus import usable_cpus

    wanted = {"PYTHON_JULIACALL_HANDLE_SIGNALS": "yes"}
    if "JULIA_NUM_THREADS" not in os.environ:
        wanted["PYTHON_JULIACALL_THREADS"] = str(usable_cpus())
    found = image.find(installation)
    if found is not None:
        wanted["PYTHON_JULIACALL_SYSIMAGE"] = found
    new = {name: value for name, value in wanted.items() if name not in os.environ}
    new.update(variables(installation))
    before = {name: os.environ.get(name) for name in new}
    os.environ.update(new)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _module(main: Any) -> Any:
    """Return the module of `runtime.jl`: the one in the system image, where it was built from this very file."""
    built = getattr(main, "JlkernRuntime", None)
    if built is None or str(getattr(built, "BUILT_FROM", "")) != image.runtime_digest():
        main.include(str(image.RUNTIME))
    return main.JlkernRuntime


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Keep a Ctrl-C in the main thread until the block, in which Julia starts, has ended.

    While it starts, Julia leaves SIGINT to a thread of its own, and that breaks the start off or ends the process. The
    system gives a signal to the oldest thread that waits for it: one that was made before.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "sigtimedwait"):
        yield
        return
    came, over = threading.Event(), threading.Event()

    def take() -> None:
        while not over.is_set():
            if signal.sigtimedwait({signal.SIGINT}, 0.02) is not None:
                came.set()

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    taker = threading.Thread(target=take, name="jlkern-ctrl-c", daemon=True)
    taker.start()
    try:
        yield
    finally:
        over.set()
        taker.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if came.is_set():
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _as_before() -> Iterator[None]:
    """Put back what Julia takes from the process: Python's signal handlers, the signal mask, stdin's blocking mode."""
    handled = [number for number in signal.valid_signals() if _python_handles(number)]
    libc = ctypes.CDLL(None, use_errno=True)
    actions = {number: ctypes.create_string_buffer(256) for number in handled}
    for number, action in actions.items():
        libc.sigaction(int(number), None, action)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    blocking = None
    with suppress(OSError, ValueError):
        blocking = os.get_blocking(0)
    try:
        yield
    finally:
        for number, action in actions.items():
            libc.sigaction(int(number), action, None)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if blocking is not None:
            with suppress(OSError):
                os.set_blocking(0, blocking)


def _python_handles(number: int) -> bool:
    handler = signal.getsignal(number)
    return callable(handler)


# --- Python's objects, as Julia reads them ----------------------------------------------------------------------------


def _python() -> dict[str, int]:
    """Return the addresses that `runtime.jl` keeps, by their names there."""
    import numpy as np

    def function(name: str) -> int:
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0

    # builtins and small ints live as long as the process
    objects = {
        "NONE": None,
        "ZERO": 0,
        "ONE": 1,
        "TRUE": True,
        "NDARRAY": np.ndarray,
        "FLOAT": float,
        "INT": int,
        "BOOL": bool,
        "COMPLEX": complex,
        "TUPLE": tuple,
        "MISMATCH": TypeError,
    }
    functions = {
        "AS_LONG": "PyLong_AsLongLongAndOverflow",
        "SAVE_THREAD": "PyEval_SaveThread",
        "RESTORE_THREAD": "PyEval_RestoreThread",
        "INCREF": "Py_IncRef",
        "SET_ERROR": "PyErr_SetString",
    }
    return {**{n: id(o) for n, o in objects.items()}, **{n: function(f) for n, f in functions.items()}}


def _self_test(found: Runtime, echo: Callable[[int], bytes]) -> bool:
    """Tell whether the Julia side reads Python's objects rightly: what it says of some must be what they are."""
    import numpy as np

    from jlkern.engines.julia.text import specs
    from jlkern.signature import classify

    if not builtin.possible() or found.fast is None:
        return False
    base = np.arange(24.0, dtype=np.float32)
    samples: list[Any] = [base.reshape(4, 6), base.reshape(4, 6, order="F"), base.reshape(4, 6)[1:, ::2], base[::3]]
    samples += [np.array(3, np.int16), True, False, 7, -(1 << 60), 2.5, 1 - 2j, (1, (2.0, np.float32(3)))]
    samples += [np.dtype(t).type(3) for t in ("bool", "int8", "uint64", "float16", "float32", "float64")]
    samples += [np.complex64(1 + 2j), np.complex128(3 - 4j), np.int64(-5)]
    signature = tuple(classify("x", value) for value in samples)
    slot = found.make(f"Echo({specs(signature, (False,) * len(samples))})".encode(), 0, b"")
    if not slot:
        return False
    try:
        if builtin.make(found.fast, slot)(*samples) != 0:
            return False
        told = echo(slot).decode().split("\n")
    except TypeError:
        return False
    finally:
        found.free(slot)
    return told == [_as_told(value) for value in samples]


def _as_told(value: Any) -> str:
    """Return what `told` in runtime.jl says of a value: an array's place, or a number's bits."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return f"{value.ctypes.data} {list(value.shape)} {list(value.strides)}".replace(",", "")
    if isinstance(value, tuple):
        return f"({' '.join(map(_as_told, value))})"
    return np.asarray(value).tobytes().hex()
