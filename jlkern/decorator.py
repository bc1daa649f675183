"""`@jlkern.kernel` and `jlkern.from_source`: from a source and options to a kernel."""

from __future__ import annotations

import contextlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, overload

from jlkern.errors import (
    JlkernError,
    NDRangeError,
    OptionError,
    SignatureError,
    TunableError,
    WorkgroupError,
    close_to,
    placed,
)
from jlkern.kernel import Kernel, make_kernel, read_source
from jlkern.options import Options, declare, missing_source, space_of
from jlkern.parameters import Parameters, check_body, parameters_named, parameters_of
from jlkern.space import UNSET, Config

if TYPE_CHECKING:
    from pathlib import Path

    from jlkern.source import KernelSource, Origin

# jlkern.source is imported where it is needed: it brings the whole syntax tree, which `import jlkern` can do without.

P = ParamSpec("P")


@overload
def kernel(function: Callable[P, None], /) -> Kernel[P]: ...
@overload
def kernel(
    *,
    tune: Mapping[str, Iterable[Any]] | None = ...,
    source: str | Path | None = ...,
    name: str | None = ...,
    restrictions: str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | None = ...,
    default: Mapping[str, Any] | Config | None = ...,
    workgroup: Any = ...,
    ndrange: Any = ...,
    key: Callable[..., Any] | None = ...,
    bucket: Literal["pow2"] | None = ...,
    inout: str | Sequence[str] | None = ...,
    compare: Mapping[str, Callable[[Any], Any] | None] | None = ...,
    reference: Callable[..., Any] | Literal["engine"] | None = ...,
    tolerance: Any = ...,
    engine: Literal["auto", "numba", "julia"] = ...,
    device: str | None = ...,
    strategy: Any = ...,
    strategy_options: Mapping[str, Any] | None = ...,
    seed: int = ...,
    effort: Literal["quick", "full"] = ...,
    max_evals: int | None = ...,
    time_limit: float | None = ...,
    first_call: Literal["tune", "amortise", "nearest", "default"] = ...,
    on_busy: Literal["wait", "default"] = ...,
    isolation: Literal["none", "process"] | None = ...,
    trial_limit: float | None = ...,
) -> Callable[[Callable[P, None]], Kernel[P]]: ...
def kernel(
    function: Any = None,
    /,
    *,
    tune: Mapping[str, Iterable[Any]] | None = None,
    source: str | Path | None = None,
    name: str | None = None,
    restrictions: Any = None,
    default: Mapping[str, Any] | Config | None = None,
    workgroup: Any = UNSET,
    ndrange: Any = None,
    key: Callable[..., Any] | None = None,
    bucket: str | None = None,
    inout: str | Sequence[str] | None = None,
    compare: Mapping[str, Any] | None = None,
    reference: Callable[..., Any] | Literal["engine"] | None = None,
    tolerance: Any = None,
    engine: str = "auto",
    device: str | None = None,
    strategy: Any = None,
    strategy_options: Mapping[str, Any] | None = None,
    seed: int = 0,
    effort: str = "quick",
    max_evals: int | None = None,
    time_limit: float | None = None,
    first_call: str = "tune",
    on_busy: str = "wait",
    isolation: str | None = None,
    trial_limit: float | None = None,
    **unknown: NoReturn,
) -> Any:
    r'''Make a kernel of a Python function whose docstring (or `source=`) is a KernelAbstractions source.

    The function's parameters are the kernel's data parameters, in order; its body is empty.

    Parameters
    ----------
    tune
        The tunables: names and the values to try, each a bool, int, float, str (a Symbol) or tuple of these. A
        tunable reaches the source by its name, as a constant, or fills the trailing `::Val{name}` parameter of its
        name.
    source
        The source, a string or the `pathlib.Path` of a `.jl` file relative to the decorated module; default: the
        docstring.
    name
        Which kernel of the source, where it holds several.
    restrictions
        Kernel Tuner's: expression strings over the tunables, or callables that name those they want.
    default
        The configuration for calls that do not tune, and the first trial of every tuning.
    workgroup
        The work-group size: a callable of tunables, or a tuple of ints and tunables' names; default: the tunable
        `block`, or `block_size_x/_y/_z`. None turns these names off.
    ndrange
        The work-items per dimension: a parameter's name (its shape), a tuple of ints, scalar parameters' names,
        tunables and callables, or one callable; default: the first written array's shape, where the source proves
        that right.
    key, bucket
        Which shapes share a tuning: a callable of parameters that returns what tells tunings apart (of arrays it may
        read shapes and dtypes), or "pow2" to round shapes up to powers of two. Default: each shape has its own.
    inout
        The arrays that the kernel writes, where the source does not prove it.
    compare, reference, tolerance
        How candidates are verified: per output, a function whose results must agree, or None to leave it out; a Python
        function that computes the right result; the relative tolerance, or (relative, absolute).
    engine, device
        "auto", or an engine by name; and one of its devices.
    strategy, strategy_options, seed, effort, max_evals, time_limit
        How to search: Kernel Tuner's strategies by name; "quick" is at most 60 evaluations and 30 seconds, "full"
        unbounded.
    first_call
        What a call does when nothing is known: "tune"; "amortise", that is try candidates one by one after calls, for
        a share of their time; or run the "nearest" known configuration, or the "default".
    on_busy
        While another process tunes the same: "wait" for its winner, or run the "default".
    isolation, trial_limit
        Where candidates run while tuning: "none" in this process, "process" in a worker that a candidate may crash or
        hang; and the seconds that a launch may take there.

    Returns
    -------
    Kernel

    Raises
    ------
    JlkernError
        The declaration has a mistake; the class says which kind, the message what to write instead.

    Examples
    --------
    >>> import numpy as np
    >>> import jlkern
    >>> @jlkern.kernel(tune={"block": [64, 128]}, first_call="default")
    ... def saxpy(y, a, x) -> None:
    ...     """
    ...     @kernel function saxpy!(y, a, @Const(x))
    ...         i = @index(Global)
    ...         @inbounds y[i] += a * x[i]
    ...     end
    ...     """
    >>> y = np.zeros(3, np.float32)
    >>> saxpy(y, np.float32(2), np.arange(3, dtype=np.float32))
    >>> y
    array([0., 2., 4.], dtype=float32)
    '''
    if unknown:
        raise _no_option("jlkern.kernel", *unknown)
    options = Options(
        tune, name, restrictions, default, workgroup, ndrange, key, bucket, inout, compare, reference, tolerance,
        engine, device, strategy, strategy_options, seed, effort, max_evals, time_limit, first_call, on_busy,
        isolation, trial_limit,
    )  # fmt: skip
    if function is None:
        return lambda function: _decorate(function, source, options)
    return _decorate(function, source, options)


def from_source(
    source: str | Path,
    *,
    tune: Mapping[str, Iterable[Any]] | None = None,
    name: str | None = None,
    restrictions: Any = None,
    default: Mapping[str, Any] | Config | None = None,
    workgroup: Any = UNSET,
    ndrange: Any = None,
    key: Callable[..., Any] | None = None,
    bucket: str | None = None,
    inout: str | Sequence[str] | None = None,
    compare: Mapping[str, Any] | None = None,
    reference: Callable[..., Any] | Literal["engine"] | None = None,
    tolerance: Any = None,
    engine: str = "auto",
    device: str | None = None,
    strategy: Any = None,
    strategy_options: Mapping[str, Any] | None = None,
    seed: int = 0,
    effort: str = "quick",
    max_evals: int | None = None,
    time_limit: float | None = None,
    first_call: str = "tune",
    on_busy: str = "wait",
    isolation: str | None = None,
    trial_limit: float | None = None,
    **unknown: NoReturn,
) -> Kernel[...]:
    """Make a kernel of a source alone; parameters and name are Julia's (one that is no name in Python becomes `arg1`,
    ...).

    Parameters
    ----------
    source
        The source, a string or the `pathlib.Path` of a `.jl` file relative to the calling module.
    **options
        Those of `jlkern.kernel`.

    Returns
    -------
    Kernel

    Raises
    ------
    JlkernError
        As `jlkern.kernel` does.

    Examples
    --------
    >>> import jlkern
    >>> jlkern.from_source("@kernel function fill!(y, a) i = @index(Global); y[i] = a end", workgroup=64)
    <jlkern kernel fill(y, a)>
    """
    if unknown:
        raise _no_option("jlkern.from_source", *unknown)
    options = Options(
        tune, name, restrictions, default, workgroup, ndrange, key, bucket, inout, compare, reference, tolerance,
        engine, device, strategy, strategy_options, seed, effort, max_evals, time_limit, first_call, on_busy,
        isolation, trial_limit,
    )  # fmt: skip
    from jlkern.source import Origin

    caller = sys._getframe(1).f_globals
    text, path = read_source(source, caller.get("__file__"), "from_source")
    origin = Origin(path, 1, True) if path is not None else Origin(None, 1, False)
    return _from_text(text, origin, options, caller.get("__name__", "__main__"))


def _no_option(function: str, name: str, *others: str) -> TypeError:
    """Return the error for an option that there is not; a `TypeError`, as of any Python function."""
    known = ["source", *(field.name for field in fields(Options))]
    return TypeError(f"{function}() has no option {name!r}{close_to(name, known)}")


def _decorate(function: Any, source: str | Path | None, options: Options) -> Kernel[...]:
    if isinstance(function, (staticmethod, classmethod)):
        raise SignatureError("put @staticmethod above @jlkern.kernel, not below it; a kernel cannot be a class method")
    if isinstance(function, Kernel):
        raise SignatureError(f"{function.__qualname__} is a kernel already; decorate it once")
    if not isinstance(function, types.FunctionType):
        hint = "; pass options by name, as @jlkern.kernel(tune={...})" if isinstance(function, Mapping) else ""
        raise OptionError(f"@jlkern.kernel decorates a Python function, not {function!r:.80}{hint}")
    from jlkern.source import Origin, find_origin

    title = function.__qualname__
    parameters = parameters_of(function)
    check_body(function, parameters.signature)
    if source is None:
        text = function.__doc__ or ""
        if "@kernel" not in text:
            raise missing_source(title)
        origin = find_origin(function, text)
    else:
        text, path = read_source(source, function.__globals__.get("__file__"), title)
        origin = Origin(path, 1, True) if path is not None else find_origin(function, text)
    return _declared(text, origin, options, parameters, function, title, function.__module__)


@contextlib.contextmanager
def _places(title: str, text: str, origin: Origin, loaded: KernelSource | None = None) -> Iterator[None]:
    """Name the kernel and its place in the messages of mistakes in its options."""
    try:
        yield
    except (OptionError, TunableError, NDRangeError, WorkgroupError, SignatureError) as problem:
        if loaded is not None:
            place = loaded.place
        else:
            place = origin.where(text.count("\n", 0, max(text.find("@kernel"), 0)) + 1)
            title = _named(text, title)
        raise placed(problem, title, place) from problem.__cause__


def _named(text: str, title: str) -> str:
    """Return what to call a kernel of `from_source` before its options are known to be right."""
    from jlkern.source import list_kernels

    try:
        kernels = list_kernels(text)
    except JlkernError:
        return title
    return kernels[0].removesuffix("!") if title == "from_source" and len(kernels) == 1 else title


def _declared(
    text: str,
    origin: Origin,
    options: Options,
    parameters: Parameters,
    function: types.FunctionType | None,
    qualname: str,
    module: str,
) -> Kernel[...]:
    from jlkern.source import load_source

    title = qualname.rpartition(".")[2]
    with _places(title, text, origin):
        space = space_of(options)
    loaded = load_source(text, origin, space.names, name=options.name, python_name=title)
    with _places(title, text, origin, loaded):
        declaration = declare(options, loaded, parameters, space, title)
    signature = [(p.name, p.kind.value, p.default) for p in parameters.signature.parameters.values()]
    doc = None if function is None else function.__doc__
    recipe = (text, origin, options.given(), signature, dict(parameters.converts), doc, qualname, module)
    return make_kernel(declaration, (_again, recipe), function, module, qualname)


def _again(
    text: str,
    origin: Origin,
    options: Mapping[str, Any],
    signature: Sequence[tuple[str, int, Any]],
    converts: Mapping[str, str],
    doc: str | None,
    qualname: str,
    module: str,
) -> Kernel[...]:
    """Make a pickled kernel anew that has no name to be found by."""
    kinds = list(inspect._ParameterKind)
    listed = [inspect.Parameter(name, kinds[kind], default=default) for name, kind, default in signature]
    parameters = Parameters(tuple(name for name, _, _ in signature), inspect.Signature(listed), dict(converts))
    made = _declared(text, origin, Options(**options), parameters, None, qualname, module)
    if doc is not None:
        made.__doc__ = doc
    return made


def _from_text(text: str, origin: Origin, options: Options, module: str) -> Kernel[...]:
    from jlkern.source import load_source

    with _places(options.name or "from_source", text, origin):
        space = space_of(options)
    loaded = load_source(text, origin, space.names, name=options.name, python_name=None)
    parameters = parameters_named(loaded.names)
    title = loaded.name.removesuffix("!")
    with _places(title, text, origin, loaded):
        declaration = declare(options, loaded, parameters, space, title)
    return make_kernel(declaration, (_from_text, (text, origin, options, module)), None, module, title)
