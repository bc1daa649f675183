"""Every error that jlkern raises on purpose: one class per kind of mistake; messages say what, where and what to do."""

from __future__ import annotations

from collections.abc import Iterable


class JlkernError(Exception):
    """Base of all errors of jlkern."""


# --- the source and its declaration ---


class SourceError(JlkernError):
    """The source string has no usable kernel: none, several without `name=`, or an unknown option of `@kernel`."""


class MissingSourceError(SourceError):
    """There is no source: no docstring with `@kernel` and no `source=` (or `-OO` removed the docstring)."""


class SourceSyntaxError(SourceError):
    """The source string does not parse as Julia."""


class UnsupportedError(SourceError):
    """The source uses a construct that this engine does not support."""


class SignatureError(JlkernError):
    """The Python function's parameters do not fit the kernel's."""


class TunableError(JlkernError):
    """A tunable is declared wrongly: name, values, restrictions, default, or the way it reaches the source."""


class NDRangeError(JlkernError):
    """The ndrange is missing and cannot be proved, or is not a tuple of non-negative ints of the right length."""


class WorkgroupError(JlkernError):
    """The work-group size is not made of positive ints, or has more dimensions than the ndrange."""


class EffectsError(JlkernError):
    """It cannot be proved which arrays the kernel writes; `inout=` must say."""


class OptionError(JlkernError):
    """An option of the decorator or of a handle has a wrong value."""


# --- calls ---


class ArgumentError(JlkernError, TypeError):
    """An argument of a call is of a kind that no kernel can take."""


class HomeError(ArgumentError):
    """The arrays of one call live on different devices."""


class ConfigError(JlkernError, ValueError):
    """`config=` names an unknown tunable, a value outside its list, or breaks a restriction."""


class KernelError(JlkernError):
    """Base of what a kernel throws while it runs."""


class BoundsError(KernelError, IndexError):
    """An index was outside its array; nothing outside was touched."""


class InexactError(KernelError, ValueError):
    """A value does not fit the type that it is converted to."""


class DivideError(KernelError, ZeroDivisionError):
    """Integer division by zero, or of the least integer by -1."""


class DomainError(KernelError, ValueError):
    """A function was called outside its domain, as `sqrt(-1.0)`."""


class KernelThrownError(KernelError):
    """The kernel's own `error(...)` or `throw(...)`."""


# --- engines and tuning ---


class EngineError(JlkernError):
    """No engine can run this call: not installed, not set up, or not for these arrays."""


class CompileError(JlkernError):
    """An engine could not compile a kernel for a configuration and signature."""


class EmptySpaceError(TunableError):
    """The restrictions leave no configuration."""


class TuningError(JlkernError):
    """No candidate could be used; the message groups the reasons."""


class WrongThreadError(JlkernError):
    """Julia was called from a thread that does not own it."""


class MemoWarning(UserWarning):
    """The memo can not be kept on disk; work goes on in memory."""


class TuningWarning(UserWarning):
    """Something about a tuning run that its user should know."""


def close_to(name: object, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" when one of the known names is close to a misspelt one, else "".

    >>> close_to("itmes", ["block", "items"])
    "; did you mean 'items'?"
    """
    from difflib import get_close_matches

    found = get_close_matches(str(name), [k for k in known if k != name], 1)
    return f"; did you mean {found[0]!r}?" if found else ""


def placed(problem: JlkernError, title: str, place: str) -> JlkernError:
    """Return an error of the same class whose message says which kernel it is about, and where that stands."""
    text = str(problem)
    if not text.startswith((f"{title}:", f"{title} ")):
        text = f"{title}: {text}"
    if f"{place}:" not in text:
        text = f"{place}: {text}"
    return type(problem)(text)
