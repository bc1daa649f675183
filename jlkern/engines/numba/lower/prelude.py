"""Functions on numbers that are written in Julia: `prelude.jl`, lowered like functions of the source."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from jlkern.engines.numba.lower.context import Context, Scope
from jlkern.engines.numba.lower.methods import choose
from jlkern.engines.numba.lower.registry import builtin, no_method
from jlkern.engines.numba.lower.simt import Lit
from jlkern.engines.numba.lower.values import Nothing, Text, Value
from jlkern.syntax import nodes as n

#: The functions that `prelude.jl` defines wholly.
_WHOLE = (
    "cmp isinteger isreal issubnormal gcd lcm isqrt nextpow prevpow bitrotate bswap nextfloat prevfloat exponent "
    "significand frexp ldexp modf sec csc cot sech csch coth sinc mod2pi"
).split()


@cache
def _definitions() -> dict[str, tuple[n.FunctionDef, ...]]:
    from jlkern.syntax.parser import parse_module

    found: dict[str, tuple[n.FunctionDef, ...]] = {}
    text = Path(__file__).with_name("prelude.jl").read_text(encoding="utf-8")
    for item in parse_module(text).items:
        if isinstance(item, n.FunctionDef):
            found[item.name] = (*found.get(item.name, ()), _placeless(item))
    return found


def _placeless(node: Any) -> Any:
    """Return a tree without places, so that errors keep the place in the source that led here."""
    if isinstance(node, tuple):
        return tuple(_placeless(part) for part in node)
    if not is_dataclass(node) or isinstance(node, (type, n.Pos)):
        return node
    changed = {f.name: _placeless(getattr(node, f.name)) for f in fields(node) if f.name != "pos"}
    return replace(node, **changed, **({"pos": n.NOWHERE} if isinstance(node, n.Node) else {}))


def call_prelude(cx: Context, name: str, args: tuple[Value, ...]) -> Value:
    """Call a function of the prelude, in which the source's own names do not count."""
    from jlkern.engines.numba.lower.inlining import inline

    outer, cx.globals = cx.globals, dict(_definitions())
    try:
        bound = choose(cx, name, _definitions()[name], args)
        if bound is None:
            no_method(cx, name, args)
        return inline(cx, bound.method, bound.values, bound.types, Scope(None, function=True), {})
    finally:
        cx.globals = outer


def _register(name: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        return call_prelude(cx, name, args)


def _thrown(name: str, error: str) -> None:
    @builtin(name)
    def function(cx: Context, args: tuple[Value, ...]) -> Value:
        text = args[0].parts[0] if args and isinstance(args[0], Text) else ""
        cx.check(Lit(True, "bool"), error, str(text))
        cx.dead = True
        return Nothing()


_thrown("domain_error", "DomainError")
_thrown("overflow_error", "KernelError")

for _name in _WHOLE:
    _register(_name)
