"""Compiled code on the disk: what LLVM made of a text, so that a process that meets the text again need not ask it.

Object code refers to what it calls by name (`malloc`, `exp`, Numba's run-time and its threads), so it fits another
process. Code with an address of this process in it is not kept.
"""

from __future__ import annotations

import hashlib
import json
import logging
import platform
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from jlkern import disk, log

_log = log.get(__name__)

_ELSEWHERE = frozenset("CACHE_DIR CACHE_LOCATOR_CLASSES COLOR_SCHEME NUMBA_DEFAULT_NUM_THREADS NUMBA_NUM_THREADS "
                       "RUNNING_UNDER_PROFILER THREADING_LAYER THREADING_LAYER_PRIORITY".split())  # fmt: skip
"""Settings of Numba that change no code."""


@cache
def target() -> str:
    """Return what compiled code depends on beside its text and jlkern: versions, the CPU and Numba's settings."""
    import llvmlite
    import numba
    from numba.core.registry import cpu_target

    settings = vars(numba.config)
    plain = {
        name: str(value)
        for name, value in settings.items()
        if name.isupper() and name not in _ELSEWHERE and isinstance(value, (str, int, float, tuple, type(None)))
    }
    codegen = cpu_target.target_context.codegen().magic_tuple()
    versions = (numba.__version__, llvmlite.__version__, np.__version__, *platform.libc_ver(), *map(str, codegen))
    return json.dumps([versions, plain], sort_keys=True)


# --- chunks -----------------------------------------------------------------------------------------------------------


def load_chunk(text: str) -> tuple[int, Any] | None:
    """Return the address of a chunk that was compiled in another process, and what keeps it alive, or None."""

    def make(facts: Any, data: bytes) -> tuple[int, Any] | None:
        library = _library(facts, data)
        return None if library is None else (int(library.get_pointer_to_function(facts["function"])), library)

    return disk.read(_chunk_key(text), make)


def may_be_kept(text: str) -> bool:
    """Tell whether emitted text means the same in every process; `@print` calls this one, and numbers its texts."""
    return "print_part(" not in text


def save_chunk(text: str, function: str, library: Any) -> None:
    """Keep a compiled chunk, if it may be."""
    if may_be_kept(text):
        _save(_chunk_key(text), library, {"function": function})


def _chunk_key(text: str) -> str:
    return json.dumps(["chunk", text, target()])


# --- functions that Python calls --------------------------------------------------------------------------------------


def function(code: str, scope: Callable[[], dict[str, Any]], **options: bool) -> Any:
    """Return Numba's dispatcher for the function that `code` defines; its compiled versions are kept.

    Parameters
    ----------
    code
        The source; its function's name is the text `NAME`, since equal names must be equal functions: linkers know
        nothing else.
    scope
        Returns the globals of the function; asked for when there is something to compile.
    **options
        `numba.njit`'s.
    """
    identity = json.dumps([code, options], sort_keys=True)
    name = _unique(identity)
    space: dict[str, Any] = {"__name__": __name__}
    exec(compile(code.replace("NAME", name), "<jlkern entry>", "exec"), space)
    return _dispatcher(space[name], identity, lambda: space.update(scope()), options)


def compiled(function: Callable[..., int], **options: bool) -> Any:
    """Compile a function of jlkern's own that takes int64s; Numba's dispatcher for it, whose code is kept."""
    import numba

    identity = json.dumps([function.__module__, function.__qualname__, options], sort_keys=True)
    function.__name__ = function.__qualname__ = _unique(identity)
    made = _dispatcher(function, identity, lambda: None, options)
    made.compile((numba.int64,) * function.__code__.co_argcount)
    return made


def _unique(identity: str) -> str:
    return f"jlkern_{hashlib.sha256(identity.encode()).hexdigest()[:32]}"


def _dispatcher(function: Any, identity: str, prepare: Callable[[], None], options: dict[str, bool]) -> Any:
    import numba

    made: Any = numba.njit(**options)(function)
    made._cache = _cache_class()(identity, prepare)
    return made


@cache
def _cache_class() -> type[Any]:
    """Return the class of what a dispatcher asks before it compiles, and tells what it compiled."""
    from numba.core.caching import NullCache

    class Kept(NullCache):
        def __init__(self, identity: str, prepare: Callable[[], None]) -> None:
            self.identity, self.prepare = identity, prepare

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            args = _arguments(sig)
            result = disk.read(self._key(args), lambda facts, data: _result(facts, data, args, target_context))
            if result is None:
                self.prepare()
            return result

        def save_overload(self, sig: Any, result: Any) -> None:
            from numba.core import types

            described = result.fndesc
            if result.signature.return_type != types.int64 or result.lifted or result.environment.consts:
                return
            facts = {name: getattr(described, name) for name in _DESCRIBED}
            facts["threads"] = bool(result.reload_init)
            _save(self._key(_arguments(sig)), result.library, facts)

        def _key(self, args: tuple[Any, ...]) -> str:
            return json.dumps(["function", self.identity, list(map(str, args)), target()])

    return Kept


_DESCRIBED = ("modname", "qualname", "unique_name", "args", "mangled_name", "env_name", "abi_tags", "uid")


def _arguments(sig: Any) -> tuple[Any, ...]:
    from numba.core import sigutils

    return tuple(sigutils.normalize_signature(sig)[0])


def _result(facts: Any, data: bytes, args: tuple[Any, ...], context: Any) -> Any:
    """Return what compiling would have given, or None."""
    from numba.core import types
    from numba.core.compiler import compile_result
    from numba.core.environment import _rebuild_env
    from numba.core.funcdesc import PythonFunctionDescriptor
    from numba.core.typing import signature

    if facts["threads"]:
        from numba.np.ufunc.parallel import _launch_threads

        _launch_threads()  # defines the functions that parallel code calls
    library = _library(facts, data)
    if library is None:
        return None
    described = PythonFunctionDescriptor(
        native=True, modname=facts["modname"], qualname=facts["qualname"], unique_name=facts["unique_name"], doc="",
        typemap=None, restype=types.int64, calltypes=None, args=tuple(facts["args"]), kws=(),
        mangler=lambda *_, **__: facts["mangled_name"], argtypes=args, env_name=facts["env_name"],
        abi_tags=tuple(facts["abi_tags"]), uid=facts["uid"],
    )  # fmt: skip
    environment = _rebuild_env(facts["modname"], [], facts["env_name"])
    entry = context.get_executable(library, described, environment)
    return compile_result(
        typing_context=context.typing_context, target_context=context, entry_point=entry, objectmode=False,
        signature=signature(types.int64, *args), fndesc=described, library=library, environment=environment,
        lifted=(), reload_init=(), referenced_envs=(),
    )  # fmt: skip


# --- libraries --------------------------------------------------------------------------------------------------------


def _save(key: str, library: Any, facts: dict[str, Any]) -> None:
    """Keep a library, if it may be."""
    if library.has_dynamic_globals:
        return
    name, _, (code, shared) = library.serialize_using_object_code()
    calls = [f.name for f in library._final_module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    disk.write(key, {**facts, "library": name, "size": len(code), "calls": calls}, code + shared)


def _library(facts: dict[str, Any], data: bytes) -> Any:
    """Return a kept library, ready to run, or None when this process lacks a function that it calls."""
    from llvmlite import binding
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target
    from numba.core.runtime import rtsys

    with global_compiler_lock:
        rtsys.initialize(cpu_target.target_context)  # defines what entries call to take arrays
        codegen = cpu_target.target_context.codegen()
        missing = [name for name in facts["calls"] if not binding.address_of_symbol(name)]
        if missing:  # LLVM would end the process
            log.event(_log, logging.INFO, "kept code is not used", missing=", ".join(missing))
            return None
        size = facts["size"]
        return codegen.unserialize_library((facts["library"], "object", (data[:size], data[size:])))
