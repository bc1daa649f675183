"""Make `precedence.json`: how Julia's own parser reads some thousands of expressions.

    JULIA=julia python tests/data/make_precedence.py

With the package JuliaSyntax (the parser of Julia 1.10 and newer) on Julia's load path, every expression is read by it
too; only expressions on which both agree become rows, `changed` holds the others. Without it `changed` is empty, and
rows made with an old Julia may be out of date. Julia 1.5 and 1.10 were seen to differ on: `2√x`, `2a :: 3b`, `-2 :: b`,
`-2 -> b`, `.--a`, `a .&& b`, `[a;; b]`, `a<--b`, `a .. b...`, `import A as b`, and on operators added since.

`precedence.txt` holds the expressions written by hand; the others are made below, in a fixed order.

The file is an object: `julia` is the version; `rows` are `[text, sexpr]`; `errors` are texts that no parser takes;
`changed` are `[text, old, today]`, of which one may be `error`.

The s-expressions are `(head child child ...)`, one space between children, heads and children as in Julia's `Expr`,
with line numbers dropped and these simplifications:

- Calls: `f(a, b)`, `a + b`, `-a` are `(call f a b)`, `(call + a b)`, `(call - a)`; chains of `+` and of `*` are flat,
  `(call + a b c)`; `2x` is `(call * 2 x)`, `a:b:c` is `(call : a b c)`, `a => b` is `(call => a b)`.
- Keywords come last, wherever they were written: `f(a, b = 1; c = 2)` is `(call f a (kw b 1) (kw c 2))`.
- Broadcasts: `f.(a)`, `a .+ b`, `.-a` are `(dotcall f a)`, `(dotcall + a b)`, `(dotcall - a)`, nested, never flat.
- Comparisons are calls, chains of two or more are flat: `(comparison a < b <= c)`, `(comparison a .< b .< c)`.
- `a && b && c` is `(&& a (&& b c))`, and `||` likewise.
- `T <: S`, `x::T`, `::T`, `a'` are `(<: T S)`, `(:: x T)`, `(:: T)`, `(' a)`.
- `a[i, end]`, `a[:, 1]`, `a.b` are `(ref a i end)`, `(ref a : 1)`, `(. a b)`.
- `a...`, `T{N}`, `A where {T, S}` are `(... a)`, `(curly T N)`, `(where A T S)`.
- `(a, b)` and `a, b` are `(tuple a b)`, `(a = 1,)` is `(tuple (= a 1))`, `()` is `(tuple)`.
- `[a, b]`, `[a b]`, `[a; b]`, `[a b; c d]` are `(vect a b)`, `(hcat a b)`, `(vcat a b)`, `(vcat (row a b) (row c d))`.
- `a = b`, `a += b`, `a .= b`, `a .+= b` are `(= a b)`, `(+= a b)`, `(.= a b)`, `(.+= a b)`.
- `a ? b : c` is `(if a b c)`; the long form has blocks: `(if a (block b) (if c (block d) (block e)))` with `elseif`.
- `for i in r, j = s` is `(for (block (= i r) (= j s)) (block ...))`, with one binding `(for (= i r) (block ...))`.
- `while` is `(while c (block ...))`; `begin` and `(a; b)` are `(block a b)`.
- `let a = 1, b` is `(let (block (= a 1) b) (block ...))`, with a block for one binding too.
- `x -> e` is `(-> (tuple x) e)`: parameters are a tuple always, a body of one statement is bare, another is a block.
- `f(a) do x; e end` is `(call f (-> (tuple x) e) a)`.
- `f(x) = e` and `function f(x) e end` are `(function (call f x) (block e))`; the signature may be wrapped, as in
  `(where (:: (call f x) R) T)`; defaults are `(kw x 1)` in place, keywords `(parameters (kw x 1))` at its end.
- `struct S{T} <: A x::T end` is `(struct (<: (curly S T) A) (block (:: x T)))`, a mutable one `(mutable ...)`.
- `@m a b` and `@m(a, b)` are `(macrocall @m a b)`, `M.@m a` and `@M.m a` are `(macrocall M.@m a)`.
- `return a`, `return`, `break`, `continue` are `(return a)`, `(return nothing)`, `(break)`, `(continue)`;
  `const a = 1` is `(const (= a 1))`, `local a, b` is `(local a b)`.
- Int64 and Float64 are as Python writes them, Bool is `true` or `false`; other numbers name their type and are decimal:
  `UInt8(1)`, `Float32(0.5)`, the latter being the rounded value as Python writes it (`0.1f0` is
  `Float32(0.10000000149011612)`). `-1` and `-1.0` are literals, `-x`, `-0x1` and `- 1` are calls.
- Strings are in double quotes, with backslash, double quote and line break escaped; `"a$x"` is `(string "a" x)`;
  `'a'` is `Char(97)`, `:a` is `(quote a)`.
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
TERMS = "+ - | ⊻ ⊕ ± .+ .- .| * / ÷ % & ⋅ × ∘ // \\ ⊗ .* ./ .& .÷ .% << >> >>> .<< .>> ^ .^ ↑".split()
BINARY = ["=>", "->", "||", "&&", *COMPARE, "|>", "<|", ":", "..", *TERMS, "::", "→", "where"]
CLASSES = "= += => -> || && == < |> : + - | * ÷ & << ^ :: .+ →".split()
UNARY = ["-", "+", "!", "~", "√", "∛", "¬", ".-", "<:", "::", "&", ":"]


def by_hand() -> list[str]:
    """The texts of `precedence.txt`: one a line, where ⏎ stands for a line break."""
    lines = (HERE / "precedence.txt").read_text(encoding="utf-8").splitlines()
    return [line.replace("⏎", "\n") for line in lines]


def pairs() -> Iterator[str]:
    """Every two binary operators in a row, and every one in a few surroundings."""
    for first, second in product(BINARY, BINARY):
        yield f"a {first} b {second} c"
    for first, second in product(BINARY, ASSIGN):
        yield f"a {second} b {first} c"
    for first, second in product(BINARY, ["=", "+=", ".="]):
        yield f"a {first} b {second} c"
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
    """A quarter of all threes of operators, one of each precedence."""
    for first, second, third in product(CLASSES, repeat=3):
        if len({first, second, third}) == 3 and random.Random(f"{first} {second} {third}").random() < 0.25:
            yield f"a {first} b {second} c {third} d"


def unaries() -> Iterator[str]:
    """Prefix operators, numbers before names and suffixes beside every operator."""
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
    atoms = "a;b;x;y;n;i;1;2;0.5;1f0;0x01;a[i];x[i, j];f(x);g(x, y);p.q;(a, b)".split(";")
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
    """Ask Julia and write the file; `-v` lists what has no form."""
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
