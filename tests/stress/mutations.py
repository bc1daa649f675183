"""Mutated sources for the embedded engine: whatever stands in a source string, only jlkern's own errors may come of it.

    python tests/stress/mutations.py 10000 [--compile 0.05]

reports every other exception and everything that takes longer than `SECONDS`. Kernels are compiled and never run: a
mutated one may loop for ever, as its source says.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import sys
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from conformance.archetypes import ARCHETYPES, defaults
from conformance.language import Case, cases
from conformance.programs import case as random_case

from jlkern.engines.base import CompileRequest
from jlkern.engines.numba import engine
from jlkern.engines.numba.emit.cpu import emit
from jlkern.engines.numba.lower.kernel import lower_kernel
from jlkern.errors import JlkernError
from jlkern.signature import classify, julia
from jlkern.source import Origin, load_source

SECONDS = 20
TOKEN = re.compile(r"[A-Za-z_]\w*!?|\d+\.?\d*|[^\sA-Za-z_\d]|\s+")
EXTRA = [
    *"""
    if else end for while begin let function return break continue struct do where true nothing im π 1 0 -1 1.5
    2f0 0x0f typemax(Int) Float32 Int8 UInt64 i x y v + - * / ÷ % ^ < == === && || ! = += .= :: : ... , ; . -> =>
    ( ) [ ] { } @index(Global) @synchronize @inbounds @view @atomic @uniform x[i] y[i] Val(3) 'a' # $ try catch
    quote const global local using export macro in isa
    """.split(),
    "@localmem Float64 (4,)",
    "@private Int 2",
    "(1, 2)",
    "[1, 2]",
    "k -> k",
    "SVector(1, 2)",
    "ntuple(k -> k, 3)",
    '"text"',
    "\n",
]
"""What a mutation may put in."""


def originals() -> list[Case]:
    """Return the sources that mutations start from."""
    made = [*cases(), *(random_case(seed) for seed in range(40))]
    for archetype in ARCHETYPES:
        args = archetype["make_args"](np.random.default_rng(1))
        params = defaults(archetype)
        ndrange, group = archetype["ndrange"](args, params), archetype["workgroup"](params)
        name = archetype["kernel"]
        made.append(Case(name, archetype["source"], tuple(args), ndrange, group, params))
    return made


def _class(token: str) -> str:
    return "name" if token[0].isalpha() else "number" if token[0].isdigit() else "space" if token.isspace() else "sign"


def mutated(rng: random.Random, text: str) -> str:
    """Return a source with a few tokens or lines deleted, doubled, swapped or replaced."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if rng.random() < 0.2:
            lines = text.split("\n")
            a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
            action = rng.randrange(4)
            if action == 0:
                del lines[a]
            elif action == 1:
                lines.insert(a, lines[b])
            elif action == 2:
                lines[a], lines[b] = lines[b], lines[a]
            else:
                lines[a] = ""
            text = "\n".join(lines)
            continue
        if not text.strip():
            return text
        tokens = TOKEN.findall(text) or [" "]
        at = rng.randrange(len(tokens))
        action = rng.choice((0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 5))
        if action == 0:
            del tokens[at]
        elif action == 1:
            tokens.insert(at, tokens[at])
        elif action == 2:
            tokens.insert(at, rng.choice(EXTRA))
        elif action == 3:
            tokens[at] = rng.choice(EXTRA)
        elif action == 4:
            tokens[at] = rng.choice([token for token in tokens if _class(token) == _class(tokens[at])])
        else:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        text = "".join(tokens)
    return text


def attempt(case: Case, text: str, compiled: bool) -> str:
    """Take a source as far as compiled code; return what became of it. Raises what is no error of jlkern's own."""
    try:
        name = case.name if f"{case.name}(" in text and "k!(" not in text else "k!"
        source = load_source(text, Origin(None, 1, False), tuple(case.params), name)
        if len(source.names) != len(case.args):
            return "other arguments"
        args = [_argument(arg) for arg in case.args]
        signature = tuple(classify(n, arg) for n, arg in zip(source.names, args, strict=True))
        written = source.effects.written
        request = CompileRequest(source, signature, case.params, case.workgroup, len(case.ndrange), written)
        if compiled:
            engine().compile(request)
        else:
            emit(lower_kernel(source, signature, case.params, case.workgroup, written, False), {})
    except JlkernError as error:
        assert "please report" not in str(error), str(error)
        return type(error).__name__
    return "compiled" if compiled else "lowered"


def _argument(arg: Any) -> Any:
    if isinstance(arg, str):
        return np.dtype(arg.lower()).type if arg[0].isupper() else julia(arg)
    return arg


class TooLong(Exception):
    """A source took longer than `SECONDS`."""


def _alarm(signum: int, frame: FrameType | None) -> None:
    raise TooLong


def campaign(first: int, count: int, share: float) -> tuple[Counter[str], list[tuple[int, str, str]]]:
    """Try mutations number `first` and on; return the outcomes, and number, text and error of what went wrong."""
    start = originals()
    outcomes: Counter[str] = Counter()
    wrong: list[tuple[int, str, str]] = []
    before = signal.signal(signal.SIGALRM, _alarm)
    try:
        for number in range(first, first + count):
            rng = random.Random(number)
            case = rng.choice(start)
            text = mutated(rng, case.source)
            signal.alarm(SECONDS)
            try:
                outcomes[attempt(case, text, rng.random() < share)] += 1
            except Exception:
                outcomes["WRONG"] += 1
                wrong.append((number, text, traceback.format_exc()))
            finally:
                signal.alarm(0)
    finally:
        signal.signal(signal.SIGALRM, before)
    return outcomes, wrong


def main() -> None:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--compile", type=float, default=0.05, help="the share that Numba compiles, too")
    options = parser.parse_args()
    outcomes, wrong = campaign(options.first, options.count, options.compile)
    for number, text, error in wrong:
        print(f"--- {number}\n{text}\n{error}")
    print(dict(outcomes))


if __name__ == "__main__":
    main()
