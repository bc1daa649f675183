"""Random programs of the supported language: typed kernels that a real Julia and an engine must agree on.

`program(seed)` is the same text for the same seed. Most of what throws is kept out by construction: divisors are
positive, floats become integers only after `clamp`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from .language import Case

ITEMS = 24
INTEGERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
FLOATS = ("Float32", "Float64")
INT, REAL, BOOL = "int", "real", "bool"


PRELUDE = """\
using KernelAbstractions, StaticArrays
struct Both{T}
    a::T
    b::Int64
end
nan_to_zero(x) = isnan(x) ? zero(x) : x
maybe(x) = x > 3 ? x : nothing
count_rest(x, rest...) = x + length(rest)
keyed(x, y = x; k = y) = x - k * 2
"""


@dataclass
class _Writer:
    """The program written so far, and what may be used in the place reached."""

    rng: random.Random
    helpers: list[tuple[str, int, str]] = field(default_factory=list)
    scopes: list[dict[str, str]] = field(default_factory=lambda: [{}])
    tuples: dict[str, list[str]] = field(default_factory=dict)
    closures: dict[str, tuple[int, str]] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)
    in_kernel: bool = False
    loops: int = 0
    budget: int = 60
    counter: int = 0
    fields: dict[str, dict[str, str]] = field(default_factory=dict)
    memories: set[str] = field(default_factory=set)

    def fresh(self, start: str = "v") -> str:
        self.counter += 1
        return f"{start}{self.counter}"

    def variables(self, kind: str) -> list[str]:
        kinds = {INT: (INT,), BOOL: (BOOL,), REAL: (INT, REAL)}[kind]
        return [name for scope in self.scopes for name, k in scope.items() if k in kinds]

    def assignable(self, kind: str) -> list[str]:
        return [name for scope in self.scopes for name, k in scope.items() if k == kind and name not in self.fixed]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p


# --- expressions ---


def _literal(w: _Writer, kind: str) -> str:
    rng = w.rng
    if kind == BOOL:
        return rng.choice(("true", "false"))
    if kind == INT:
        ty = rng.choice(INTEGERS)
        value = rng.choice((0, 1, 2, 3, 5, 7, 100, 127))
        return rng.choice(
            (
                str(value),
                str(-value) if value else "0",
                f"{ty}({value})",
                f"0x{value:02x}",
                f"typemax({ty})",
                str(value),
            )
        )
    value = rng.choice((0.0, 0.5, 1.0, -1.5, 3.25, 1e3, 0.1))
    return rng.choice((repr(value), f"{value}f0", f"Float32({value})", _literal(w, INT)))


def expression(w: _Writer, kind: str, depth: int = 3) -> str:
    """Return an expression of a kind."""
    w.budget -= 1
    if depth <= 0 or w.budget < 0 or w.chance(0.15):
        names = w.variables(kind)
        return w.rng.choice(names) if names and w.chance(0.8) else _literal(w, kind)
    if w.chance(0.12):
        return _ternary(w, kind, depth)
    if w.chance(0.08) and kind != BOOL:
        return _call(w, kind, depth)
    if w.chance(0.05):
        return _let(w, kind, depth)
    return {BOOL: _bool, INT: _int, REAL: _real}[kind](w, depth - 1)


def _ternary(w: _Writer, kind: str, depth: int) -> str:
    cond, a, b = expression(w, BOOL, depth - 1), expression(w, kind, depth - 1), expression(w, kind, depth - 1)
    return f"({cond} ? {a} : {b})" if w.chance(0.7) else f"ifelse({cond}, {a}, {b})"


def _let(w: _Writer, kind: str, depth: int) -> str:
    name = w.fresh("q")
    value = expression(w, kind, depth - 1)
    w.scopes.append({name: kind})
    body = expression(w, kind, depth - 1)
    w.scopes.pop()
    return f"(let {name} = {value}; {body}; end)"


def _call(w: _Writer, kind: str, depth: int) -> str:
    """Return a call of a helper or closure with results of this kind, an item of a tuple, or an element of an array."""
    found = [(name, count) for name, count, gives in w.helpers if gives == kind or kind == REAL]
    found += [(name, count) for name, (count, gives) in w.closures.items() if gives == kind or kind == REAL]
    tuples = [(name, at + 1) for name, kinds in w.tuples.items() for at, k in enumerate(kinds) if k == kind]
    if tuples and w.chance(0.4):
        name, at = w.rng.choice(tuples)
        return f"{name}[{at}]"
    fields = [f"{name}.{part}" for name, parts in w.fields.items() for part, k in parts.items() if k == kind]
    if fields and w.chance(0.5):
        return w.rng.choice(fields)
    if w.memories and kind == REAL and w.chance(0.6):
        return f"{w.rng.choice(sorted(w.memories))}[mod1({expression(w, INT, depth - 1)} % Int, 3)]"
    if w.in_kernel and w.chance(0.3):
        if kind == INT:
            return f"u[mod1({expression(w, INT, depth - 1)} % Int64, {ITEMS})]"
        return f"x[mod1({expression(w, INT, depth - 1)} % Int, {ITEMS})]"
    if found:
        name, count = w.rng.choice(found)
        return f"{name}({', '.join(expression(w, INT, depth - 1) for _ in range(count))})"
    return _literal(w, kind)


def _bool(w: _Writer, depth: int) -> str:
    rng = w.rng
    pick = rng.randrange(7)
    if pick < 3:
        kind = rng.choice((INT, REAL))
        op = rng.choice(("<", "<=", ">", ">=", "==", "!=", "≤", "≠"))
        return f"({expression(w, kind, depth)} {op} {expression(w, kind, depth)})"
    if pick == 3:
        return f"({expression(w, BOOL, depth)} {rng.choice(('&&', '||', '&', '|'))} {expression(w, BOOL, depth)})"
    if pick == 4:
        return f"!{expression(w, BOOL, depth)}"
    if pick == 5:
        a, b, c = (expression(w, INT, depth) for _ in range(3))
        return f"({a} {rng.choice(('<', '<='))} {b} {rng.choice(('<', '!=', '>='))} {c})"
    return rng.choice(
        (
            f"isodd({expression(w, INT, depth)})",
            f"iszero({expression(w, REAL, depth)})",
            f"xor({expression(w, BOOL, depth)}, {expression(w, BOOL, depth)})",
        )
    )


def _int(w: _Writer, depth: int) -> str:
    rng = w.rng
    a = expression(w, INT, depth)
    pick = rng.randrange(14)
    if pick == 12:
        return f"something(maybe({a}), {expression(w, INT, depth)})"
    if pick == 13:
        parts = ", ".join(expression(w, INT, depth) for _ in range(rng.randrange(0, 3)))
        options = rng.choice(("", "; k = 2", f", 3; k = {_literal(w, INT)}"))
        return f"(count_rest({a}{', ' if parts else ''}{parts}) + keyed({a}{options}))"
    if pick < 4:
        return f"({a} {rng.choice(('+', '-', '*', '&', '|', '⊻'))} {expression(w, INT, depth)})"
    if pick == 4:
        return f"({a} {rng.choice(('<<', '>>', '>>>'))} ({expression(w, INT, depth)} & 15))"
    if pick == 5:
        return f"{rng.choice(('div', 'rem', 'mod', 'fld', '÷', '%'))}({a}, ({expression(w, INT, depth)} & 7) + 1)"
    if pick == 6:
        return f"{rng.choice(('min', 'max'))}({a}, {expression(w, INT, depth)})"
    if pick == 7:
        return f"({a} % {rng.choice(INTEGERS)})"
    if pick == 8:
        return f"{rng.choice(('abs', '-', '~', 'sign', 'count_ones', 'trailing_zeros', 'zero', 'one'))}({a})"
    if pick == 9:
        return f"trunc(Int, clamp({_finite(w, depth)}, -1000, 1000))"
    if pick == 10:
        return f"({a} + {expression(w, BOOL, depth)})"
    if pick == 11:
        return (
            f"sum(ntuple(k -> k {rng.choice('+*-')} {a}, Val({rng.randrange(1, 4)})))"
            if w.chance(0.5)
            else f"oftype({a}, 3)"
        )
    return a


def _finite(w: _Writer, depth: int) -> str:
    value = expression(w, REAL, depth)
    return f"float({value} |> nan_to_zero)"


def _real(w: _Writer, depth: int) -> str:
    rng = w.rng
    a = expression(w, REAL, depth)
    pick = rng.randrange(12)
    if pick == 10:
        part = rng.choice(("real", "imag", "abs2"))
        return f"{part}(complex({a}, {expression(w, REAL, depth)}) * {expression(w, REAL, depth)})"
    if pick == 11:
        return f"foldl(+, ({a}, {expression(w, REAL, depth)}) .{rng.choice('+-*')} {expression(w, REAL, depth)})"
    if pick < 4:
        return f"({a} {rng.choice('+-*/')} {expression(w, REAL, depth)})"
    if pick == 4:
        return f"{rng.choice(('min', 'max', 'copysign'))}({a}, {expression(w, REAL, depth)})"
    if pick == 5:
        return f"{rng.choice(('abs', '-', 'sign', 'floor', 'ceil', 'trunc', 'round', 'float', 'abs2'))}({a})"
    if pick == 6:
        return f"sqrt(abs({a}))"
    if pick == 7:
        return f"{rng.choice(FLOATS)}({a})"
    if pick == 8:
        return f"({a})^{rng.choice((1, 2, 3))}"
    return expression(w, INT, depth)


# --- statements ---


def statements(w: _Writer, count: int, depth: int) -> list[str]:
    """Return some statements; the variables of this block are forgotten at its end by the caller."""
    lines: list[str] = []
    for _ in range(count):
        lines += _statement(w, depth)
    return lines


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def _statement(w: _Writer, depth: int) -> list[str]:
    rng = w.rng
    pick = rng.random()
    kind = rng.choice((INT, REAL, REAL, BOOL))
    own = w.assignable(kind)
    if depth > 0 and pick < 0.16:
        return _if(w, depth)
    if depth > 0 and pick < 0.28:
        return _for(w, depth)
    if depth > 0 and pick < 0.33:
        return _while(w, depth)
    if pick < 0.38 and own:
        return [f"{expression(w, BOOL, 2)} {rng.choice(('&&', '||'))} ({rng.choice(own)} = {expression(w, kind)})"]
    if pick < 0.43 and len(own) > 1:
        a, b = rng.sample(own, 2)
        return [f"{a}, {b} = {b}, {expression(w, kind, 2)}"]
    if pick < 0.48:
        return _tuple(w)
    if pick < 0.53:
        return _closure(w)
    if pick < 0.56:
        return _pair(w)
    if pick < 0.58 and w.memories:
        target = f"{rng.choice(sorted(w.memories))}[mod1({expression(w, INT, 2)} % Int, 3)]"
        return [f"{target} {rng.choice(('=', '+=', '-='))} {expression(w, REAL, 2)}"]
    if pick < 0.60 and own and kind != BOOL:
        op = rng.choice(("+", "-", "*")) if kind == REAL else rng.choice(("+", "-", "*", "⊻", "&", "|"))
        return [f"{rng.choice(own)} {op}= {expression(w, kind)}"]
    if w.loops and pick < 0.66:
        return [f"{expression(w, BOOL, 2)} && {rng.choice(('break', 'continue'))}"]
    if pick < 0.78 and own:
        return [f"{rng.choice(own)} = {expression(w, kind)}"]
    name = w.fresh()
    line = f"{name} = {expression(w, kind)}"
    w.scopes[-1][name] = kind
    return [line]


def _block(w: _Writer, count: int, depth: int, extra: dict[str, str] | None = None) -> list[str]:
    tuples, closures, fields, memories = dict(w.tuples), dict(w.closures), dict(w.fields), set(w.memories)
    w.scopes.append(dict(extra or {}))
    lines = statements(w, count, depth)
    w.scopes.pop()
    w.tuples, w.closures, w.fields, w.memories = tuples, closures, fields, memories
    return _indented(lines)


def _if(w: _Writer, depth: int) -> list[str]:
    lines = [f"if {expression(w, BOOL)}", *_block(w, w.rng.randrange(1, 3), depth - 1)]
    if w.chance(0.3):
        lines += [f"elseif {expression(w, BOOL)}", *_block(w, 1, depth - 1)]
    if w.chance(0.6):
        lines += ["else", *_block(w, w.rng.randrange(1, 3), depth - 1)]
    return [*lines, "end"]


def _for(w: _Writer, depth: int) -> list[str]:
    rng = w.rng
    name = w.fresh("k")
    over, kind = rng.choice(
        (
            ("1:4", INT),
            ("5:-2:1", INT),
            ("0x01:0x03", INT),
            ("Int32(1):Int32(3)", INT),
            (f"1:({expression(w, INT, 1)} & 3)", INT),
            (f"({expression(w, REAL, 1)}, {expression(w, REAL, 1)})", REAL),
            ("(0.5, 1.5f0, 2)", REAL),
        )
    )
    head = f"for {name} in {over}"
    extra = {name: kind}
    if w.chance(0.2):
        second = w.fresh("k")
        head += f", {second} in 1:2"
        extra[second] = INT
    w.fixed |= set(extra)
    w.loops += 1
    lines = [head, *_block(w, rng.randrange(1, 4), depth - 1, extra), "end"]
    w.loops -= 1
    return lines


def _while(w: _Writer, depth: int) -> list[str]:
    name = w.fresh("n")
    w.fixed.add(name)
    w.scopes[-1][name] = INT
    w.loops += 1
    body = _block(w, w.rng.randrange(1, 3), depth - 1)
    w.loops -= 1
    return [
        f"{name} = 0",
        f"while {name} < {w.rng.randrange(1, 5)} && {expression(w, BOOL, 2)}",
        f"    {name} += 1",
        *body,
        "end",
    ]


def _tuple(w: _Writer) -> list[str]:
    kinds = [w.rng.choice((INT, REAL)) for _ in range(w.rng.randrange(2, 4))]
    items = [expression(w, kind, 2) for kind in kinds]
    if w.chance(0.4):
        names = [w.fresh() for _ in kinds]
        w.scopes[-1].update(zip(names, kinds, strict=True))
        return [f"{', '.join(names)} = {', '.join(items)}"]
    name = w.fresh("t")
    w.tuples[name] = kinds
    if w.chance(0.2):
        return [f"{name} = ({', '.join(f'f{k} = {item}' for k, item in enumerate(items))})"]
    return [f"{name} = ({', '.join(items)})"]


def _pair(w: _Writer) -> list[str]:
    """Return a struct, a named tuple, or private memory."""
    name, pick = w.fresh("s"), w.rng.randrange(3)
    a, b = expression(w, REAL, 2), expression(w, INT, 2)
    if pick == 0 and w.in_kernel:
        w.memories.add(name)
        return [f"{name} = MVector{{3, {w.rng.choice(FLOATS)}}}(1, {a}, 2)"]
    w.fields[name] = {"a": REAL, "b": INT}
    return [f"{name} = Both({a}, {b} % Int64)" if pick == 1 else f"{name} = (a = {a}, b = {b})"]


def _closure(w: _Writer) -> list[str]:
    """Return a closure; what it captures is not assigned afterwards."""
    kind = w.rng.choice((INT, REAL))
    params = [w.fresh("a") for _ in range(w.rng.randrange(1, 3))]
    captured = [name for scope in w.scopes for name in scope]
    w.fixed |= set(captured)
    arrays, w.in_kernel = w.in_kernel, False
    w.scopes.append(dict.fromkeys(params, INT))
    body = expression(w, kind, 2)
    w.scopes.pop()
    w.in_kernel = arrays
    name = w.fresh("g")
    w.closures[name] = (len(params), kind)
    return [f"{name} = ({', '.join(params)}{',' if len(params) == 1 else ''}) -> {body}"]


def _helper(w: _Writer) -> list[str]:
    """Return a helper function, sometimes with methods by type, defaults, or early returns."""
    rng = w.rng
    name, kind = w.fresh("f"), rng.choice((INT, REAL))
    count = rng.randrange(1, 4)
    params = [w.fresh("p") for _ in range(count)]
    inner = _Writer(rng, list(w.helpers), [dict.fromkeys(params, INT)], budget=25, counter=w.counter)
    types = rng.choice(
        ([""], [""], ["::Signed", "::Unsigned", ""], ["::Integer"], ["::Int64", "::Integer"], ["::T", ""])
    )
    lines: list[str] = []
    for ty in types:
        inner.budget, inner.scopes = 25, [dict.fromkeys(params, INT)]
        inner.tuples, inner.closures, inner.fields, inner.fixed = {}, {}, {}, set()
        head = ", ".join([f"{params[0]}{ty}", *params[1:]])
        where = " where {T<:Unsigned}" if ty == "::T" else ""
        body = statements(inner, rng.randrange(0, 3), 1)
        if w.chance(0.4):
            body += [f"{expression(inner, BOOL, 2)} && return {expression(inner, kind, 2)}"]
        body += [f"return {expression(inner, kind)}"]
        lines += [f"function {name}({head}){where}", *_indented(body), "end"]
    w.counter = inner.counter
    w.helpers.append((name, count, kind))
    return lines


def program(seed: int) -> str:
    """Return the source of the random program with this number: a kernel `k!(y, z, x, u)`."""
    rng = random.Random(seed)
    w = _Writer(rng)
    lines = PRELUDE.splitlines()
    for _ in range(rng.randrange(0, 3)):
        lines += _helper(w)
    w.scopes, w.in_kernel, w.budget = [{"i": INT, "a": REAL, "b": INT}], True, 70
    w.fixed = {"i"}
    body = ["i = @index(Global)", "a = x[i]", "b = u[i]"]
    if rng.random() < 0.2:
        body += statements(w, 2, 1)
        value = expression(w, REAL)
        body = ["l = @index(Local)", *body, "s = @localmem Float64 (8,)", f"s[l] = {value}", "@synchronize"]
        w.scopes, w.tuples, w.closures, w.fixed = [{"i": INT, "l": INT, "c": REAL}], {}, {}, {"i", "l"}
        w.fields, w.memories = {}, set()
        body += [f"c = s[mod1(l + {rng.randrange(1, 4)}, min(8, {ITEMS} - i + l))]"]
        w.budget = 40
    body += statements(w, rng.randrange(2, 6), 2)
    w.budget = 25
    body += [f"y[i] = {expression(w, REAL)}", f"z[i] = {expression(w, INT)} % Int64"]
    lines += ["@kernel inbounds=true function k!(y, z, @Const(x), @Const(u))", *_indented(body), "end"]
    return "\n".join(lines) + "\n"


def case(seed: int) -> Case:
    """Return a random program with its arguments."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(0, 4, ITEMS), 2).astype(rng.choice(["float32", "float64"]))
    x[:4] = (0.0, -1.5, 1e3, 0.5)
    kind = str(rng.choice(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]))
    info = np.iinfo(kind)
    u = rng.integers(max(info.min, -20), 20, ITEMS, endpoint=True).astype(kind)
    u[:4] = (info.max, info.min, 0, 1)
    y = np.zeros(ITEMS, rng.choice(["float32", "float64"]))
    return Case(f"program-{seed}", program(seed), (y, np.zeros(ITEMS, np.int64), x, u), (ITEMS,), (8,))
