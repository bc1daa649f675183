"""What the embedded engine refuses, with construct, line and remedy; bounds: nothing outside an array is touched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jlkern
from jlkern.engines.base import CompileRequest
from jlkern.engines.numba import engine
from jlkern.errors import BoundsError, JlkernError, KernelError, KernelThrownError, SourceError
from jlkern.signature import classify
from jlkern.source import Origin, load_source


def run(
    source: str, args: list[Any], ndrange: tuple[int, ...], workgroup: tuple[int, ...] = (4,), **options: Any
) -> None:
    """Compile and launch the kernel `k!` of a source."""
    loaded = load_source(source, Origin(None, 1, False), (), "k!")
    signature = tuple(classify(name, arg) for name, arg in zip(loaded.names, args, strict=True))
    group = (*workgroup, *(1,) * (len(ndrange) - len(workgroup)))
    request = CompileRequest(loaded, signature, {}, group, len(ndrange), loaded.effects.written, **options)
    launcher = engine().compile(request)
    fire = launcher.fire(ndrange)
    status = fire(*args)
    if status:
        launcher.fail(fire, status)


def body(lines: str, before: str = "") -> str:
    return f"{before}\n@kernel function k!(y, @Const(x))\n    i = @index(Global)\n{lines}\nend\n"


# --- refusals: the construct, the line, a remedy ---

REFUSED = {
    "try": ("try\n y[i] = 1\ncatch\n y[i] = 2\nend", 4, "try", ""),
    "comprehension": ("t = [k * x[i] for k in 1:3]\ny[i] = t[1]", 4, "comprehension", ""),
    "generator": ("y[i] = sum(x[k] for k in 1:i)", 4, "generator", "loop"),
    "sum of an array": ("y[i] = sum(x)", 4, "`sum` over a", "loop"),
    "vector": ("t = [x[i], 1.0]\ny[i] = t[1]", 4, "an array literal", "tuple"),
    "typed vector": ("t = Float64[x[i], 1.0]\ny[i] = t[1]", 4, "array literal", "tuple"),
    "zeros": ("t = zeros(3)\ny[i] = t[1]", 4, "zeros", "@private"),
    "similar": ("t = similar(x)\ny[i] = t[1]", 4, "similar", "@private"),
    "copy": ("t = copy(x)\ny[i] = t[1]", 4, "copy", ""),
    "collect": ("t = collect(1:3)\ny[i] = t[1]", 4, "collect", ""),
    "push": ("push!(y, 1.0)", 4, "push!", ""),
    "broadcast assignment": ("y .= 1", 4, ".=", "loop"),
    "broadcast over arrays": ("t = x .+ 1\ny[i] = t[1]", 4, "allocate", "loop"),
    "slice": ("t = x[1:2]\ny[i] = t[1]", 4, "slice", "@view"),
    "slice assignment": ("y[1:2] = x[i]", 4, "slice", "loop"),
    "println": ("println(x[i])\ny[i] = 1", 4, "println", ""),
    "string": ('y[i] = length("abc")', 4, "String", ""),
    "string interpolation": ('t = "a$(x[i])"\ny[i] = 1\ny[i] = t', 6, "String", ""),
    "rand": ("y[i] = rand()", 4, "rand", ""),
    "context": ("c = @context()\ny[i] = 1", 4, "@context", ""),
    "dict": ("d = Dict(1 => 2.0)\ny[i] = d[1]", 4, "Dict", ""),
    "ref": ("t = Ref(1.0)\ny[i] = t[]", 4, "Ref", "variable"),
    "int128": ("y[i] = Int128(i)", 4, "Int128", ""),
    "big": ("y[i] = big(i)", 4, "big", ""),
    "rational": ("y[i] = i // 2", 4, "//", "floats"),
    "char": ("t = 'a'\ny[i] = Int(t)", 4, "Char", ""),
    "return": ("i > 3 && return\ny[i] = 1", 4, "return", "cpu=false"),
    "return in a closure": ("f = a -> begin\n return a\nend\ny[i] = f(1)", 5, "return", "cpu=false"),
    "unknown function": ("y[i] = frobnicate(x[i])", 4, "`frobnicate` is not defined", "define it"),
    "misspelt function": ("y[i] = sqtr(x[i])", 4, "`sqtr` is not defined", "did you mean `sqrt`"),
    "unknown macro": ("@show x[i]\ny[i] = 1", 4, "@show", ""),
    "write to const": ("x[i] = 1\ny[i] = 1", 4, "@Const", ""),
    "float range": ("for t in 0.0:0.5:2.0\n y[i] += t\nend", 4, "range of floats", "integers"),
    "float index": ("y[1.0] = 1", 4, "an index of type Float64", "integers"),
    "number as condition": ("if i\n y[i] = 1\nend", 4, "a condition must be Bool", "x != 0"),
    "undefined variable": ("y[i] = q", 4, "`q` is not defined", ""),
    "used before": ("y[i] = q\nq = 1", 4, "before it is assigned", ""),
    "no method": ("y[i] = i + nothing", 4, "no method of `+`", ""),
    "endless loop": ("while true\n y[i] += 1\nend", 4, "never ends", "break"),
    "goto": ("@goto done\n@label done\ny[i] = 1", 4, "@goto", ""),
    "global": ("global q = 1\ny[i] = q", 4, "global", ""),
    "bad index kind": ("j = @index(Global, CartesianIndex)\ny[i] = 1", 4, "CartesianIndex)", "Cartesian"),
    "localmem size": ("y[i] = 1\ns = @localmem Float64 (length(y),)\ns[1] = 1", 5, "size of `@localmem`", "tunable"),
    "localmem type": ("s = @localmem Any (3,)\ny[i] = 1", 4, "element type", ""),
    "hoisted uniform": ("n = 2\n@uniform m = n + 1\ny[i] = m", 5, "@uniform reads `n`", "@uniform"),
    "hoisted localmem": ("n = 2\ns = @localmem Float64 (n,)\ny[i] = 1", 5, "@localmem reads `n`", "constant"),
    "uniform moved": ("@uniform d = 2\n@synchronize\ny[i] = d\n@uniform d = d ÷ 2", 7, "moves before", "@synchronize"),
    "index assigned again": ("i += 1\n@synchronize\ny[i] = 1", 4, "assigned again", "another variable"),
    "field assignment": ("t = (a = 1, b = 2)\nt.a = 3\ny[i] = 1", 5, "assignment to a field", "immutable"),
    "tuple element assignment": ("t = (1, 2)\nt[1] = 3\ny[i] = 1", 5, "assignment to an element", "MVector"),
    "five types": ("q = i > 9 ? 0x01 : i > 8 ? Int8(1) : i > 7 ? 1f0 : i > 6 ? 1.0 : 2\ny[i] = q", 4, "", ""),
    "dynamic tuple of types": ("t = (1, 2.0)\ny[i] = t[i]", 5, "not known at compile time", ""),
    "eval": ("y[i] = eval(:(1 + 1))", 4, "", ""),
    "quote": ("q = quote\n 1\nend\ny[i] = 1", 4, "", ""),
    "async": ("@async y[i] = 1", 4, "@async", ""),
    "matrix inverse": ("y[i] = inv(x)", 4, "no method of `inv`", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    lines, line, construct, remedy = REFUSED[name]
    with pytest.raises(JlkernError) as caught:
        run(body(lines), [np.zeros(8), np.ones(8)], (8,))
    message = str(caught.value)
    assert message.startswith(f"line {line} of the source: "), message
    assert construct in message
    assert remedy in message
    assert isinstance(caught.value, SourceError), message


REFUSED_BEFORE = {
    "mutable struct": ("mutable struct M\n a::Int\nend", "m = M(1)\ny[i] = m.a", "mutable struct", "immutable"),
    "endless recursion": ("f(n) = n < 0 ? 0 : f(n - 1) + 1", "y[i] = f(i)", "calls itself", "loop"),
    "index in a helper": ("f(y) = (y[@index(Global)] = 1)", "f(y)", "@index", "pass"),
    "synchronize in a helper": ("f() = @synchronize", "f()\ny[i] = 1", "@synchronize", ""),
    "callable object": ("struct P\n a::Int\nend\n(p::P)(x) = p.a * x", "p = P(1)\ny[i] = p(2)", "", ""),
    "constant of itself": ("const A = B + 1\nconst B = A", "y[i] = A", "defined by itself", ""),
    "ambiguous": ("f(a::Int, b) = 1\nf(a, b::Int) = 2", "y[i] = f(1, 2)", "ambiguous", ""),
    "unknown keyword": ("f(a; b = 1) = a", "y[i] = f(1; c = 2)", "keyword", ""),
    "generated": ("f(a) = error(\"a\", a, \"b\")", "y[i] = f(1, 2)", "no method of `f`", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED_BEFORE)
def test_refused_beside_the_kernel(name: str) -> None:
    before, lines, construct, remedy = REFUSED_BEFORE[name]
    with pytest.raises(JlkernError) as caught:
        run(body(lines, before), [np.zeros(8), np.ones(8)], (8,))
    message = str(caught.value)
    assert "of the source: " in message
    assert construct in message
    assert remedy in message


def test_keyword_arguments_cannot_be_passed_at_a_launch() -> None:
    source = "@kernel function k!(y; a = 2)\n    i = @index(Global)\n    y[i] = a\nend\n"
    y = np.zeros(4)
    run(source, [y], (4,))
    np.testing.assert_array_equal(y, 2.0)


def test_what_is_never_called_is_not_refused() -> None:
    y = np.zeros(4)
    run(body("y[i] = f(i)", "f(a) = 2a\ng(a) = [a, a]\nh(a) = try\n a\ncatch\nend"), [y, np.ones(4)], (4,))
    np.testing.assert_array_equal(y, [2, 4, 6, 8])


def test_a_branch_never_taken_may_hold_what_is_not_supported() -> None:
    y = np.zeros(4)
    source = (
        "@kernel function k!(y, @Const(x))\n    i = @index(Global)\n    y[i] = x isa Integer ? string(x) : 2\nend\n"
    )
    run(source, [y, np.ones(4)], (4,))
    np.testing.assert_array_equal(y, 2.0)


def test_early_return_with_cpu_false() -> None:
    source = "@kernel cpu=false function k!(y)\n    i = @index(Global)\n    i > 3 && return\n    y[i] = 1\nend\n"
    y = np.zeros(6)
    run(source, [y], (6,))
    np.testing.assert_array_equal(y, [1, 1, 1, 0, 0, 0])


def test_what_a_kernel_throws() -> None:
    with pytest.raises(KernelThrownError, match=r"line 4 of the source: too large: 5"):
        run(body('x[i] > 3 && error("too large: $i")\ny[i] = 1'), [np.zeros(8), np.arange(8.0)], (8,), (1,))
    with pytest.raises(KernelThrownError, match="bad"):
        run(body('@assert x[i] < 3 "bad"\ny[i] = 1'), [np.zeros(8), np.arange(8.0)], (8,))


def test_barrier_that_not_all_reach() -> None:
    with pytest.raises(KernelError, match="@synchronize"):
        run(body("if i > 2\n    @synchronize\nend\ny[i] = 1"), [np.zeros(8), np.ones(8)], (8,))


# --- bounds ---


def canaries(shape: tuple[int, ...], layout: str, value: float = 7.0) -> tuple[np.ndarray, np.ndarray]:
    """Return memory full of a value, and an array of zeros in its middle."""
    size = int(np.prod(shape))
    if layout == "strided":
        memory = np.full(tuple(3 * n + 4 for n in shape), value)
        inner = memory[tuple(slice(2, 2 + 2 * n, 2) for n in shape)]
    else:
        memory = np.full(size + 64, value)
        inner = memory[32 : 32 + size].reshape(shape, order=layout)
    inner[...] = 0.0
    return memory, inner


OUTSIDE = {
    "store": ("A[i, 1] = 1.0", "A[5, 1]", (4, 3), 5),
    "store below": ("A[i - 1, 1] = 1.0", "A[0, 1]", (4, 3), 4),
    "second dimension": ("A[1, i] = 1.0", "A[1, 4]", (4, 3), 4),
    "linear": ("A[i] = 1.0", "A[13]", (4, 3), 13),
    "negative": ("A[-i] = 1.0", "A[-1]", (4, 3), 1),
    "cartesian": ("A[CartesianIndex(i, 2)] = 1.0", "A[5, 2]", (4, 3), 5),
    "trailing": ("A[i, 1, 2] = 1.0", "A[1, 1, 2]", (4, 3), 1),
    "load": ("s = A[i, 1]\nA[1, 1] = s", "A[5, 1]", (4, 3), 5),
    "huge": ("A[i + typemax(Int) - 4, 1] = 1.0", "A[9223372036854775804, 1]", (4, 3), 5),
    "view": ("v = @view A[:, 1]\nv[i] = 1.0", "A[5]", (4, 3), 5),
    "inner view": ("v = @view A[2:3, 1]\nv[i] = 1.0", "A[3]", (4, 3), 3),
    "making a view": ("v = @view A[1:i, 1]\nv[1] = 1.0", "from 1 to 5", (4, 3), 5),
    "update": ("A[i, 1] += 1.0", "A[5, 1]", (4, 3), 5),
    "atomic": ("KernelAbstractions.@atomic A[i, 1] += 1.0", "A[5, 1]", (4, 3), 5),
    "vector": ("A[i] = 1.0", "A[7]", (6,), 7),
    "unsigned": ("A[i % UInt8 + 0xff] = 1.0", "A[0]", (6,), 1),
}


@pytest.mark.parametrize("layout", ["F", "C", "strided"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_out_of_bounds_is_an_error_and_touches_nothing_outside(name: str, layout: str) -> None:
    lines, index, shape, count = OUTSIDE[name]
    memory, array = canaries(shape, layout)
    outside = memory.copy()
    source = f"@kernel function k!(A)\n    i = @index(Global)\n{lines}\nend\n"
    with pytest.raises(BoundsError) as caught:
        run(source, [array], (count,), (1,))
    message = str(caught.value)
    assert message.startswith(
        f"line {3 + lines.count(chr(10)) - (name in ('load', 'making a view'))} of the source: "
    ), message
    assert index in message
    assert "`A" in message
    array[...] = 0.0
    np.testing.assert_array_equal(memory, outside)


@pytest.mark.parametrize("layout", ["F", "C", "strided"])
def test_inbounds_is_checked_when_asked_for(layout: str) -> None:
    source = "@kernel inbounds=true function k!(A)\n    i = @index(Global)\n    @inbounds A[i, 2] = 1.0\nend\n"
    memory, array = canaries((4, 3), layout)
    outside = memory.copy()
    with pytest.raises(BoundsError, match=r"line 3 of the source: `A\[5, 2\]` is out of bounds: the size is \(4, 3\)"):
        run(source, [array], (6,), (1,), check_bounds=True)
    array[...] = 0.0
    np.testing.assert_array_equal(memory, outside)


def test_local_and_private_memory_and_tuples_are_checked() -> None:
    for lines, index in (
        ("s = @localmem Float64 (3,)\ns[i] = 1.0\ny[1] = s[1]", r"s\[4\]"),
        ("p = @private Float64 (3,)\np[i] = 1.0\ny[1] = p[1]", r"p\[4\]"),
        ("t = (1.0, 2.0, 3.0)\ny[1] = t[i]", "index 4 of 3 items"),
    ):
        with pytest.raises(BoundsError, match=index):
            run(body(lines), [np.zeros(8), np.ones(8)], (8,), (8,))


def test_checks_by_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JLKERN_CHECK_BOUNDS", "1")

    @jlkern.kernel(ndrange=lambda y: y.size + 1)
    def beyond(y: Any) -> None:
        """
        @kernel inbounds=true function beyond!(y)
            i = @index(Global)
            y[i] = i
        end
        """

    with pytest.raises(BoundsError, match="y"):
        beyond(np.zeros(4))
