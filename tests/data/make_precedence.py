"""Make `precedence.json`: how Julia's own parser reads some thousands of expressions.

    JULIA=julia python tests/data/make_precedence.py

With the package JuliaSyntax (the parser of Julia 1.10 and newer) on Julia's load path, every expression is read by it
too; only expressions on which both agree become rows, and `changed` holds the others. Without it `changed` is empty, and
rows made with an old Julia may be out of date. Julia 1.5 and 1.10 were seen to differ on: `2√x`, `2a :: 3b`, `-2 :: b`,
`-2 -> b`, `.--a`, `a .&& b`, `[a;; b]`, `a<--b`, `a .. b...`, `import A as b`, and on operators added since.

`precedence.txt` holds the expressions written by hand; the others are made below, in a fixed order.

The file: ``{"julia": version, "rows": [[text, sexpr], ...], "errors": [text, ...], "changed": [[text, old, today], ...]}``.
`errors` are texts that no parser takes; in `changed`, `old` or `today` may be ``error``.

The s-expressions
-----------------
``(head child child ...)``, one space between children, heads and children as in Julia's `Expr`, with line numbers dropped:

======================================  ==============================================================================
``f(a, b)``, ``a + b``, ``-a``          ``(call f a b)`` ``(call + a b)`` ``(call - a)``; flat: ``(call + a b c)``;
                                        ``2x`` is ``(call * 2 x)``, ``a:b:c`` ``(call : a b c)``, ``a => b`` ``(call => a b)``
``f(a, b = 1; c = 2)``                  ``(call f a (kw b 1) (kw c 2))``: keywords last, wherever they were written
``f.(a)``, ``a .+ b``, ``.-a``          ``(dotcall f a)`` ``(dotcall + a b)`` ``(dotcall - a)``, nested, never flat
``a < b <= c``, ``a .< b .< c``         ``(comparison a < b <= c)`` ``(comparison a .< b .< c)``; only with two or more
``a && b``, ``a || b``                  ``(&& a b)`` ``(|| a b)``, to the right: ``(&& a (&& b c))``
``T <: S``, ``x::T``, ``::T``, ``a'``   ``(<: T S)`` ``(:: x T)`` ``(:: T)`` ``(' a)``
``a[i, end]``, ``a[:, 1]``, ``a.b``     ``(ref a i end)`` ``(ref a : 1)`` ``(. a b)``
``a...``, ``T{N}``, ``A where {T, S}``  ``(... a)`` ``(curly T N)`` ``(where A T S)``
``a, b`` / ``(a, b)``, ``(a = 1,)``     ``(tuple a b)`` ``(tuple (= a 1))``; ``()`` is ``(tuple)``
``[a, b]``, ``[a b; c d]``              ``(vect a b)`` ``(vcat (row a b) (row c d))``; ``[a b]`` ``(hcat a b)``, ``[a; b]`` ``(vcat a b)``
``a = b``, ``a += b``, ``a .= b``       ``(= a b)`` ``(+= a b)`` ``(.= a b)``
``a ? b : c``, ``if``/``elseif``        ``(if a b c)``; long form with blocks: ``(if a (block b) (if c (block d) (block e)))``
``for i in r, j = s``                   ``(for (block (= i r) (= j s)) (block ...))``; one binding: ``(for (= i r) (block ...))``
``while``, ``begin``, ``(a; b)``        ``(while c (block ...))`` ``(block ...)`` ``(block a b)``
``let a = 1, b``                        ``(let (block (= a 1) b) (block ...))``, a block for one binding too
``x -> e``, ``f(a) do x; e end``        ``(-> (tuple x) e)`` ``(call f (-> (tuple x) e) a)``: parameters always a tuple, the function
                                        first, a body of one statement bare, another one ``(block ...)``
``f(x) = e``, ``function f(x) e end``   both ``(function (call f x) (block e))``; the signature may be ``(where (:: (call f ...) R) T)``;
                                        defaults are ``(kw x 1)`` in place, keywords ``(parameters (kw x 1))`` at the end
``struct S{T} <: A x::T end``           ``(struct (<: (curly S T) A) (block (:: x T)))``, ``(mutable ...)`` for a mutable one
``@m a b``, ``@m(a, b)``, ``M.@m a``    ``(macrocall @m a b)`` ``(macrocall M.@m a)``
``return``, ``break``, ``const a = 1``  ``(return nothing)`` ``(break)`` ``(continue)`` ``(const (= a 1))`` ``(local a b)``
numbers                                 Int64 and Float64 as Python writes them (``1`` ``1e-05``), ``true`` ``false``, others
                                        ``UInt8(1)`` ``Int128(5)`` ``Float32(0.5)`` in decimal; ``Float32`` holds the rounded value,
                                        written as Python writes that float; ``-1`` and ``-1.0`` are literals, ``-x`` is a call
text                                    ``"a"`` with ``\\"``, ``\\\\`` and ``\\n`` escaped, ``Char(97)``, ``(string "a" x)``, ``(quote a)`` for ``:a``
======================================  ==============================================================================
"""

from __future__ import annotations

import json
import os
import random
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

HERE = Path(__file__).parent

ASSIGN = "= += -= *= /= ÷= ^= %= &= |= ⊻= <<= >>= >>>= .= .+= .*=".split()
COMPARE = "< <= > >= == != === !== ≤ ≥ ≠ ≈ ∈ ∉ in isa <: .< .== .<= .≤".split()
BINARY = (
    ["=>", "->", "||", "&&", *COMPARE, "|>", "<|", ":", ".."]
    + "+ - | ⊻ ⊕ ± .+ .- .|".split()
    + "* / ÷ % & ⋅ × ∘ // \\ ⊗ .* ./ .& .÷ .%".split()
    + "<< >> >>> .<< .>>".split()
    + "^ .^ ↑".split()
    + ["::", "→", "where"]
)
CLASSES = [
    "=",
    "+=",
    "=>",
    "->",
    "||",
    "&&",
    "==",
    "<",
    "|>",
    ":",
    "+",
    "-",
    "|",
    "*",
    "÷",
    "&",
    "<<",
    "^",
    "::",
    ".+",
    "→",
]
UNARY = ["-", "+", "!", "~", "√", "∛", "¬", ".-", "<:", "::", "&", ":"]


def by_hand() -> list[str]:
    """The texts of `precedence.txt`: one a line, where ⏎ stands for a line break."""
    lines = (HERE / "precedence.txt").read_text(encoding="utf-8").splitlines()
    return [line.replace("⏎", "\n") for line in lines]


def spaced(op: str) -> str:
    return f" {op} "


def pairs() -> Iterator[str]:
    for first, second in product(BINARY, BINARY):
        yield f"a{spaced(first)}b{spaced(second)}c"
    for first, second in product(BINARY, ASSIGN):
        yield f"a{spaced(second)}b{spaced(first)}c"
    for first, second in product(BINARY, ["=", "+=", ".="]):
        yield f"a{spaced(first)}b{spaced(second)}c"
    for op in BINARY:
        yield f"a{op}b" if op.strip(".").isascii() is False or not op.isalpha() else f"a {op} b"
        yield f"(a {op} b) {op} c"
        yield f"a {op} (b {op} c)"
        yield f"a {op} b {op} c {op} d"
        yield f"a ? b {op} c : d {op} e"
        yield f"a {op} b ? c : d"
        yield f"f(a {op} b, c)"
        yield f"a[i {op} j]"
        yield f"@m a {op} b"
        yield f"a {op} f(b)[c].d"
        yield f"a, b {op} c"


def triples() -> Iterator[str]:
    for first, second, third in product(CLASSES, repeat=3):
        if len({first, second, third}) == 3 and random.Random(f"{first} {second} {third}").random() < 0.25:
            yield f"a {first} b {second} c {third} d"


def unaries() -> Iterator[str]:
    for unary, op in product(UNARY, [*BINARY, "=", "+="]):
        yield f"{unary}a {op} b"
        yield f"a {op} {unary}b"
    for outer, inner in product(UNARY, UNARY):
        yield f"{outer}{inner}a"
        yield f"{outer}({inner}a)"
    for op in [*BINARY, "=", "+="]:
        yield f"-2 {op} b"
        yield f"a {op} -2"
        yield f"2a {op} 3b"
        yield f"2a {op} b {op} 3c"
        yield f"2(a) {op} b"
        yield f"a {op} 2(b + c)"
        yield f"-2a {op} b"
        yield f"(a)b {op} c"
        yield f"a' {op} b"
        yield f"a {op} b'"
        yield f"a... {op} b"
        yield f"a {op} b..."
        yield f"a {op} x -> y {op} z"


def anything() -> Iterator[str]:
    """Random expressions: seeded by text, so the same on every run."""
    dice = random.Random("precedence")
    atoms = [
        "a",
        "b",
        "x",
        "y",
        "n",
        "i",
        "1",
        "2",
        "0.5",
        "1f0",
        "0x01",
        "a[i]",
        "x[i, j]",
        "f(x)",
        "g(x, y)",
        "p.q",
        "(a, b)",
    ]
    common = "+ - * / ÷ % ^ & | ⊻ << >> >>> == != < <= ≤ ≠ && || : + - * / .+ .* =>".split()

    def grow(depth: int) -> str:
        kind = dice.randrange(14)
        if depth == 0 or kind < 2:
            return dice.choice(atoms)
        if kind < 8:
            return f"{grow(depth - 1)} {dice.choice(common)} {grow(depth - 1)}"
        if kind == 8:
            return f"{dice.choice(['-', '!', '~', '√', '+'])}{grow(depth - 1)}"
        if kind == 9:
            return f"({grow(depth - 1)})"
        if kind == 10:
            return f"{dice.choice(['2', '3.0', '2f0'])}{dice.choice(['x', 'y[i]', '(x + y)', 'f(x)'])}"
        if kind == 11:
            return f"{dice.choice(['f', 'max', 'T'])}({grow(depth - 1)}, {grow(depth - 1)})"
        if kind == 12:
            return f"{grow(depth - 1)} ? {grow(depth - 1)} : {grow(depth - 1)}"
        return f"a[{grow(depth - 1)}]"

    for _ in range(1200):
        text = grow(4)
        yield text if dice.random() < 0.8 else f"x[i] {dice.choice(['=', '+=', '-=', '*='])} {text}"


def texts() -> list[str]:
    """All texts, in order, each once."""
    every = [*by_hand(), *pairs(), *triples(), *unaries(), *anything()]
    return list(dict.fromkeys(every))


def python_floats(sexpr: str) -> str:
    """Write the floats that came as bits."""
    return re.sub(r"\x01f64:([0-9a-f]{16})\x01", lambda m: repr(struct.unpack(">d", bytes.fromhex(m[1]))[0]), sexpr)


def main() -> None:
    julia = os.environ.get("JULIA", "julia")
    call = [julia, "--startup-file=no"]
    flag = [*call, "-e", 'print(VERSION, " ", Base.find_package("JuliaSyntax") !== nothing)']
    version, both = subprocess.run(flag, capture_output=True, text=True, check=True).stdout.split()
    every = texts()
    printer = [*call, str(HERE / "precedence.jl")]
    done = subprocess.run(printer, input="\0".join(every).encode(), stdout=subprocess.PIPE, check=True)
    answers = [python_floats(part) for part in done.stdout.decode().split("\0")[:-1]]
    step = 2 if both == "true" else 1
    assert len(answers) == step * len(every)
    rows, errors, changed, none = [], [], [], []
    for at, text in enumerate(every):
        old, new = answers[step * at], answers[step * at + step - 1]
        if old.startswith("none ") or new.startswith("none "):
            none.append([text, old, new])
        elif old != new:
            changed.append([text, old, new])
        elif old == "error":
            errors.append(text)
        else:
            rows.append([text, old])
    parts = {"julia": version, "rows": rows, "errors": errors, "changed": changed}
    lines = []
    for name, part in parts.items():
        if isinstance(part, str):
            lines.append(f"{json.dumps(name)}: {json.dumps(part)}")
        else:
            items = ",\n".join(json.dumps(item, ensure_ascii=False) for item in part)
            lines.append(f"{json.dumps(name)}: [\n{items}\n]")
    (HERE / "precedence.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(rows)} rows, {len(errors)} errors, {len(changed)} changed, {len(none)} left out", file=sys.stderr)
    if "-v" in sys.argv:
        for text, old, new in none:
            print(repr(text), old, new, sep="  |  ", file=sys.stderr)


if __name__ == "__main__":
    main()
