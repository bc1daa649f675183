"""Warm-up: compile, and tune where asked, what later calls will launch, without the real arrays."""

from __future__ import annotations

import importlib
import sys
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from jlkern import compiled
from jlkern.choice import has_grown, lookup, the_store
from jlkern.errors import ArgumentError, BoundsError, OptionError, TuningError
from jlkern.explain import explain
from jlkern.kernel import Kernel
from jlkern.signature import Array, JuliaFunction, Signature, Val, scalar_dtype
from jlkern.space import Config
from jlkern.stored import parse, uses

if TYPE_CHECKING:
    from jlkern.ndrange import Sizes
    from jlkern.policy import Miss

Spec: TypeAlias = Sequence[Any]


@dataclass(frozen=True)
class Precompiled:
    """What was made ready: a kernel, for argument types and an ndrange, with the configuration that calls will use."""

    kernel: str
    signature: Signature
    ndrange: Sizes
    config: Config
    origin: str
    seconds: float

    def __str__(self) -> str:
        types_ = ", ".join(map(str, self.signature))
        return f"{self.kernel}({types_}): {self.config} ({self.origin}), {self.seconds:.2f} s"


def precompile(
    kernel: Kernel[...] | types.ModuleType,
    *signatures: Spec,
    tune: bool | Literal["again"] = False,
    make_args: Callable[[], Sequence[Any]] | None = None,
) -> list[Precompiled]:
    """Compile what later calls will launch, so that the first of them need not.

    Parameters
    ----------
    kernel
        A kernel, or a module: then each of its kernels is made ready for those of the signatures that fit it (as many
        items as it has parameters).
    *signatures
        Each a tuple in parameter order of `jlkern.Array(dtype, shape, order)`, scalar types such as `np.float32`, or
        scalar values, which are needed where `ndrange=` or `key=` read them. With none, the uses that the memo knows.
    tune
        Also tune what a call would tune, on synthetic arrays in a process of its own: floats around 1, and ones for
        ints, which are valid indices. The default configuration runs once with bounds checks on before anything is
        measured. `"again"` tunes what is remembered, too.
    make_args
        Returns real arguments to tune on, for a kernel that goes by its arrays' contents (indices, say): needs
        `tune=True` and a single kernel, and then this process tunes. With it, signatures may be left out.

    Returns
    -------
    list of Precompiled
        One for each kernel and signature.

    Raises
    ------
    OptionError
        No signature, or one that does not fit the kernel.
    TuningError
        The worker process failed; the message says how.
    """
    if isinstance(kernel, types.ModuleType):
        if make_args is not None:
            raise OptionError("precompile: make_args= belongs to one kernel; pass the kernel, not its module")
        return _module(kernel, signatures, tune)
    if not isinstance(kernel, Kernel):
        raise OptionError(f"precompile: pass a kernel or a module of kernels, not {kernel!r:.80}")
    if make_args is not None:
        if not tune:
            raise OptionError("precompile: make_args= gives arguments to tune on; pass tune=True with it")
        args = tuple(make_args())
        kernel.tune(*args)
        return [_compile(kernel, args)]
    if not signatures:
        known = _known(kernel)
        if known and not tune:
            return known
        raise OptionError(
            f"precompile: {'nothing is remembered of' if not tune else 'to tune'} {kernel.__name__}: pass a signature "
            "for each use, as (jlkern.Array('float32', 1 << 20), np.float32, ...)"
        )
    made = [arguments(kernel, spec) for spec in signatures]
    if tune:
        for spec, args in zip(signatures, made, strict=True):
            if tune == "again" or not _settled(kernel, args):
                tune_apart(kernel, spec)
    return [_compile(kernel, args) for args in made]


def _settled(kernel: Kernel[...], args: tuple[Any, ...]) -> bool:
    """Tell whether a call knows its configuration without tuning."""
    runtime = kernel._runtime
    engine, signature = runtime.validate(args)
    given, sizes = runtime.declaration.sizes(args, None)
    case = runtime.case(engine, signature, args, sizes, given)
    found = lookup(case)
    return found is not None and not has_grown(case, found)


def arguments(kernel: Kernel[...], spec: Spec, fill: bool = False) -> tuple[Any, ...]:
    """Return arguments of the described types; without `fill` the arrays' content is undefined and costs no memory.

    Raises
    ------
    OptionError
        The signature has another length than the kernel.
    ArgumentError
        An item is neither an `Array` nor a scalar type or value.
    """
    names = kernel._names
    if not isinstance(spec, (tuple, list)) or len(spec) != len(names):
        raise OptionError(
            f"precompile: {kernel.__name__} takes ({', '.join(names)}); give each of them a type, got {spec!r}"
        )
    return kernel._bound(tuple(_argument(n, item, fill) for n, item in zip(names, spec, strict=True)), {})


def _argument(name: str, item: Any, fill: bool) -> Any:
    if isinstance(item, Array):
        array = item.empty()
        if fill:
            _fill(array)
        return array
    if isinstance(item, (np.dtype, type)):
        dtype = scalar_dtype(item)
        if dtype is None:
            raise ArgumentError(f"argument {name!r}: {item!r} is no scalar type; pass one such as np.float32")
        return item(1) if item in (bool, int, float, complex) else np.dtype(dtype).type(1)  # type: ignore[operator]
    if isinstance(item, (bool, int, float, complex, np.generic, tuple, Val, JuliaFunction)):
        return item
    if isinstance(item, np.ndarray):
        raise ArgumentError(f"argument {name!r}: describe an array, as jlkern.Array({item.dtype.name!r}, {item.shape})")
    raise ArgumentError(f"argument {name!r}: {item!r} is neither a jlkern.Array nor a scalar type or value")


def _fill(array: np.ndarray[Any, Any]) -> None:
    if array.dtype.kind in "fc":
        values = np.random.default_rng(0).random(array.shape) + 0.5
        array[...] = values + 1j * values[..., ::-1] if array.dtype.kind == "c" and array.ndim else values
    else:
        array[...] = 1


def _known(kernel: Kernel[...]) -> list[Precompiled]:
    """Compile for every use that the memo knows and this kernel can still have."""
    made = []
    for spec, ndrange in uses(kernel._runtime.declaration):
        if 0 not in ndrange:
            made.append(_compile(kernel, arguments(kernel, spec), ndrange))
    return made


def _compile(kernel: Kernel[...], args: tuple[Any, ...], ndrange: Sizes | None = None) -> Precompiled:
    """Compile what a call with these arguments launches: the known configuration, else the default."""
    runtime = kernel._runtime
    start = time.perf_counter()
    engine, signature = runtime.validate(args)
    known = explain(runtime, args, ndrange)
    config = known.config or runtime.declaration.space.default()
    origin = known.origin if known.config is not None else "default"
    _, sizes = runtime.declaration.sizes(args, ndrange, config.as_dict())
    if 0 in sizes:
        raise OptionError(f"precompile: {kernel.__name__}: the ndrange {sizes} holds a 0, so nothing would be launched")
    runtime.launcher(engine, signature, config, len(sizes)).fire(sizes)
    return Precompiled(kernel.__name__, signature, sizes, config, origin, time.perf_counter() - start)


# --- tuning apart ---------------------------------------------------------------------------------------------------


def tune_apart(kernel: Kernel[...], spec: Spec, ndrange: Sizes | None = None) -> None:
    """Tune in a process of its own, which shares the memo; where there is no memo on disk, in this one."""
    import os
    import pickle
    import subprocess

    store = the_store()
    if store.path is None:
        _tune_here(kernel, spec, ndrange)
        return
    try:
        payload = pickle.dumps((kernel, tuple(spec), ndrange))
    except Exception as problem:
        raise OptionError(
            f"precompile: {kernel.__name__} cannot be sent to a worker process ({problem}); put it, and the functions "
            "in its options, at the top level of a module, or tune here with make_args="
        ) from problem
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    code = f"import sys; sys.path[:] = {sys.path!r}; from jlkern.precompile import _worker; _worker()"
    environment = {**os.environ, "JLKERN_CACHE_DIR": str(store.path.parent)}
    done = subprocess.run([sys.executable, "-c", code], input=payload, capture_output=True, env=environment)
    if done.returncode == 0 and done.stdout.endswith(b"jlkern: done\n"):
        return
    marker = b"jlkern: failed\n"
    if marker in done.stdout:
        raise pickle.loads(done.stdout.partition(marker)[2])
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
    raise TuningError(
        f"precompile: the worker process that tuned {kernel.__name__} ended with code {done.returncode}: {last[0]}"
        + (f" (started from {main})" if main else "")
    )


def _worker() -> None:
    """Tune what comes in on stdin: the other side of `tune_apart`."""
    import pickle

    out = sys.stdout.buffer
    try:
        kernel, spec, ndrange = pickle.loads(sys.stdin.buffer.read())
        _tune_here(kernel, spec, ndrange)
    except Exception as problem:
        out.write(b"jlkern: failed\n" + pickle.dumps(_portable(problem)))
    else:
        out.write(b"jlkern: done\n")
    out.flush()


def _portable(problem: Exception) -> Exception:
    """Return an exception that pickles: itself, or a `TuningError` with its text."""
    import pickle

    try:
        pickle.loads(pickle.dumps(problem))
    except Exception:
        return TuningError(f"{type(problem).__name__}: {problem}")
    return problem


def _tune_here(kernel: Kernel[...], spec: Spec, ndrange: Sizes | None = None) -> None:
    args = arguments(kernel, spec, fill=True)
    runtime = kernel._runtime
    engine, signature = runtime.validate(args)
    config = runtime.declaration.space.default()
    _, sizes = runtime.declaration.sizes(args, ndrange)
    if 0 in sizes:
        raise OptionError(f"precompile: {kernel.__name__}: the ndrange {sizes} holds a 0, so there is nothing to tune")
    checked = replace(runtime.declaration.request(signature, config, len(sizes)), check_bounds=True)
    launcher = compiled.launcher_for(engine, checked)
    copies = arguments(kernel, spec, fill=True)
    fire = launcher.fire(sizes)
    status = fire(*copies)
    if status:
        try:
            launcher.fail(fire, status)
        except BoundsError as problem:
            raise OptionError(
                f"precompile: {kernel.__name__} leaves its arrays on synthetic arguments ({problem}); pass make_args=, "
                "a function that returns real arguments"
            ) from problem
    kernel.tune(*args, ndrange=ndrange)


def tune_miss(miss: Miss) -> Precompiled:
    """Tune what a frozen process recorded, in a process of its own.

    Raises
    ------
    OptionError
        The kernel is not there any more, has another source, or takes arguments that a record can not describe.
    """
    module_name, _, name = miss.reference.partition(":")
    if module_name == "__main__":
        raise OptionError(f"{name} is a script's kernel; put it into a module")
    try:
        module = importlib.import_module(module_name)
    except ImportError as problem:
        raise OptionError(f"cannot import {module_name}: {problem}") from problem
    kernels = [k for k in vars(module).values() if isinstance(k, Kernel)]
    found = [k for k in kernels if k._runtime.declaration.source.digest == miss.digest]
    if not found:
        raise OptionError(f"{module_name} holds no kernel {name} with the source that was recorded")
    kernel = next((k for k in found if k.__qualname__ == name), found[0])
    values, shapes = dict(miss.values), dict(miss.shapes)
    if len(miss.types) != len(kernel._names):
        raise OptionError(f"{name} takes ({', '.join(kernel._names)}), the record is of ({miss.signature})")
    spec = []
    for parameter, text in zip(kernel._names, miss.types, strict=True):
        item = parse(text, shapes.get(parameter))
        if item is None:
            raise OptionError(f"{name}: an argument {text} can not be made from a record; tune it with make_args=")
        spec.append(item(values[parameter]) if isinstance(item, type) and parameter in values else item)
    tune_apart(kernel, tuple(spec), miss.given)
    return _compile(kernel, arguments(kernel, tuple(spec)), miss.given)


def _module(module: types.ModuleType, signatures: Sequence[Spec], tune: bool | Literal["again"]) -> list[Precompiled]:
    kernels = list({id(k): k for k in vars(module).values() if isinstance(k, Kernel)}.values())
    if not kernels:
        raise OptionError(f"precompile: the module {module.__name__} holds no kernels")
    results: list[Precompiled] = []
    if not signatures:
        if tune:
            raise OptionError(f"precompile: to tune the kernels of {module.__name__}, pass signatures")
        return [made for kernel in kernels for made in _known(kernel)]
    for spec in signatures:
        fitting = [k for k in kernels if len(k._names) == len(spec)]
        if not fitting:
            raise OptionError(f"precompile: no kernel of {module.__name__} takes {len(spec)} arguments")
        for kernel in fitting:
            results += precompile(kernel, spec, tune=tune)
    return results
