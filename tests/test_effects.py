"""What kernels write, read first, and what cannot be told; and when an array's shape is proved to be the ndrange."""

from __future__ import annotations

import textwrap

import pytest

from jlkern.source import KernelSource, Origin, load_source

HERE = Origin(None, 1, False)


def load(body: str, params: str = "y, x", before: str = "", options: str = "") -> KernelSource:
    indented = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return load_source(f"{before}\n@kernel {options} function k!({params})\n{indented}\nend\n", HERE, ())


def written(source: KernelSource) -> str:
    return " ".join(sorted(source.effects.written))


def read_first(source: KernelSource) -> str:
    return " ".join(sorted(source.effects.read_first))


def unknown(source: KernelSource) -> str:
    return " ".join(sorted(param for param, _, _ in source.effects.unknown))


INDEX = "i = @index(Global)\n"


@pytest.mark.parametrize(
    ("body", "writes", "reads"),
    [
        ("y[i] = x[i]", "y", ""),
        ("@inbounds y[i] = 2x[i]", "y", ""),
        ("begin\n y[i] = 1\nend", "y", ""),
        ("y[i] += x[i]", "y", "y"),
        ("y[i] = y[i] + 1", "y", "y"),
        ("y[i + 1] = x[i]", "y", "y"),
        ("if x[i] > 0\n y[i] = 1\nend", "y", "y"),
        ("x[i] > 0 && (y[i] = 1)", "y", "y"),
        ("for j in 1:3\n y[i] = j\nend", "y", "y"),
        ("while x[i] > 0\n y[i] = 1\nend", "y", "y"),
        ("x[i] > 0 ? (y[i] = 1) : 2", "y", "y"),
        ("y[i], a = x[i], 1", "y", ""),
        ("a, (y[i], b) = f", "y", ""),
        ("y[i] = x[i] = 3", "x y", ""),
        ("y[i] .+= 1", "y", "y"),
        ("y .= x", "y", "y"),
        ("y[i].re = 1", "", ""),
        ("@atomic y[i] += 1", "y", "y"),
        ("Atomix.@atomic :monotonic y[x[i]] += 1", "y", "y"),
        ("@atomic y[i] = 1", "y", "y"),
        ("@atomic max(y[i], x[i])", "y", "y"),
        ("@atomic y[i] + x[i]", "y", "y"),
        ("@atomic y[i] max x[i]", "y", "y"),
        ("v = @atomic y[i]", "", ""),
        ("old = @atomicswap y[i] = 1", "y", "y"),
        ("@atomicreplace y[i] 0 => 1", "y", "y"),
        ("old, new = @inbounds @atomic y[i] += 1", "y", "y"),
        ("v = @view y[:, i]\nv[1] = 2", "y", "y"),
        ("v = view(y, :, i)\nv[1] = 2", "y", "y"),
        ("v = y[:, i]\nv[1] = 2", "", ""),
        ("@views v = y[:, i]\nv[1] = 2", "y", "y"),
        ("a = y\nb = a\nb[i] = 1", "y", "y"),
        ("a = x[1] > 0 ? y : x\na[i] = 1", "x y", "x y"),
        ("t = (y, x)\nt[2][i] = 1", "x y", "x y"),
        ("a, b = y, x\nb[i] = 1", "x", "x"),
        ("for a in (y, x)\n a[i] = 1\nend", "x y", "x y"),
        ("foreach(a -> a[i] = 1, (y,))", "y", "y"),
        ("map((y,)) do a\n a[i] = 1\nend", "y", "y"),
        ("g = a -> (a[i] = 1)\ng(y)", "y", "y"),
        ("(a -> a[i] = 1)(y)", "y", "y"),
        ("setindex!(y, x[i], i)", "y", "y"),
        ("reshape(y, 2, 3)[i] = 1", "y", "y"),
        ("let z = y\n z[i] = 1\nend", "y", "y"),
        ("@. y = x + 1", "y", "y"),
        ("return\ny[i] = 1", "y", "y"),
        ("a = similar(y)\na[i] = size(y, 1) + length(x)", "", ""),
        ("t = @localmem eltype(y) (4,)\nt[i] = 1\ny[i] = t[i]", "y", ""),
    ],
)
def test_writes_and_reads(body: str, writes: str, reads: str) -> None:
    source = load(INDEX + body)
    assert (written(source), read_first(source), unknown(source)) == (writes, reads, "")


@pytest.mark.parametrize(
    ("helpers", "call", "writes"),
    [
        ("put!(a, v, i) = a[i] = v", "put!(y, 1, i)", "y"),
        ("@inline function put!(v, a, i)\n a[i] += v\nend", "put!(1, y, i)", "y"),
        ("get(a, i) = a[i]", "y[i] = get(x, i)", "y"),
        ("f(a, b) = g(b, a)\ng(a, b) = a[1] = b[1]", "f(x, y)", "y"),
        ("f(a) = a[1] = 1\nf(a, b) = b[1] = 1", "f(x)", "x"),
        ("f(a) = a[1] = 1\nf(a, b) = b[1] = 1", "f(x, y)", "y"),
        ("f(a, ::Val{1}) = a[1] = 1\nf(a, ::Val{2}) = a[1]", "f(y, Val(2))", "y"),
        ("f(a, b = 2) = a[b] = 1", "f(y)", "y"),
        ("f(as...) = as[1][1] = 1", "f(y, x)", "x y"),
        ("f(as...) = g(as...)\ng(a, b) = b[1] = 1", "f(x, y)", "x y"),
        ("same(a) = a", "same(y)[i] = 1", "y"),
        ("pick(a, b) = (a, b)", "p = pick(y, x)\np[1][i] = 1", "x y"),
        ("f(a, n) = n == 0 ? a[1] : f(a, n - 1)", "f(x, 3)", ""),
        ("f(a, n) = n == 0 ? (a[1] = 1) : g(a, n)\ng(a, n) = f(a, n - 1)", "g(y, 3)", "y"),
        ("struct P\n a\nend", "p = P(y)\np.a[i] = 1", "y"),
        ("const put! = (a, i) -> a[i] = 1", "put!(y, i)", "y"),
        ("scale(v) = 2v", "y[i] = scale(x[i])", "y"),
        ("f(a, b) = foreach(g, (a, b))\ng(a) = a[1] = 1", "f(x, y)", "x y"),
    ],
)
def test_writes_through_helpers(helpers: str, call: str, writes: str) -> None:
    source = load(INDEX + call, before=helpers)
    assert (written(source), unknown(source)) == (writes, "")


@pytest.mark.parametrize(
    ("body", "param", "reason"),
    [
        ("mystery(x, i)", "x", "mystery"),
        ("Foo.mystery(x, i)", "x", "mystery"),
        ("op(x)", "op", ""),
        ("@mystery x", "x", "@mystery"),
        ("@mystery x[i]", "x", "@mystery"),
        ("a = [x[j] for j in 1:3]", "x", "comprehension"),
        ("try\n x[1] = 1\ncatch\nend", "x", "try"),
        ("view(x, :, 1) .= 0", "x", "to a call"),
        ("@all(x) = 1", "x", "macro call"),
        ("global g = x", "x", "global"),
        ("f(1, 2, 3, x)", "x", "no method"),
        ("f(a = x)", "x", ""),
        ("a = (x, 1)\nmystery(a)", "x", "mystery"),
    ],
)
def test_what_cannot_be_told(body: str, param: str, reason: str) -> None:
    source = load(INDEX + "y[i] = 1\n" + body, "y, x, op", before="f(a) = 1")
    found = {name: (line, why) for name, line, why in source.effects.unknown}
    if param == "op":
        assert set(found) == {"x"}
        assert "function value `op`" in found["x"][1]
        return
    assert param in found
    line, why = found[param]
    assert line == 5 + body.startswith("a = (x") and reason in why


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = op(x[i], 1)",
        "y[i] = mystery(x[i], length(x), n)\nm = n + 1",
        "y[i] = dot(x, x)",
        "y[i] = sum(x)",
        "y[i] = mapreduce(abs, +, x)",
        "y[i] = T(x[i])",
        "@print x[i]",
        "y[i] = SVector(x[1], x[2])[1]",
        "y[i] = op.(x[i])",
        "@show x[i]",
    ],
)
def test_what_can_be_told(body: str) -> None:
    source = load(INDEX + body, "y, x, op, n")
    assert unknown(source) == ""
    assert "x" not in source.effects.written


def test_an_unknown_use_of_a_written_array_makes_it_read_first() -> None:
    source = load(INDEX + "y[i] = 1\nmystery(y)")
    assert read_first(source) == "y"


def test_const_arguments_cannot_be_written() -> None:
    from jlkern.errors import SourceError

    with pytest.raises(SourceError, match="line 4 of the source: `x` is declared `@Const`"):
        load(INDEX + "x[i] = 1", "y, @Const(x)")


def test_helpers_in_circles_end() -> None:
    names = [f"h{n}" for n in range(7)]
    helpers = "\n".join(f"{n}(a, i) = " + " + ".join(f"{m}(a, i + {k})" for k, m in enumerate(names)) for n in names)
    source = load(INDEX + "h0(x, i)\ny[i] = 1", before=helpers)
    assert "y" in source.effects.written


# --- ndrange ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "dims"),
    [
        ("i = @index(Global)\ny[i] = 1", None),
        ("i = @index(Global, Linear)\ny[i] = 1", None),
        ("i = KernelAbstractions.@index(Global, Linear)\n@inbounds y[i] += 1", None),
        ("i = @index Global Linear\ny[i] = 1", None),
        ("I = @index(Global, Cartesian)\ny[I] = 1", None),
        ("I = @index(Global, NTuple)\ny[I...] = 1", None),
        ("y[@index(Global)] = 1", None),
        ("i, j = @index(Global, NTuple)\ny[i, j] = 1", 2),
        ("i, = @index(Global, NTuple)\ny[i] = 1", 1),
        ("I = @index(Global, Cartesian)\ni, j, k = Tuple(I)\ny[i, j, k] = 1", 3),
        ("I = @index(Global, Cartesian)\ny[I[1], I[2]] = 1", 2),
        ("i, j = @index(Global, NTuple)\nI = @index(Global)\ny[I] = 1\ny[i, j] += 1", 2),
        ("i = @index(Global)\nif i > 3\n y[i] = 1\nend", None),
        ("i = @index(Global)\nx[i + 1] = 2\ny[i] = 1", None),
        ("i = @index(Global)\n@atomic y[i] += 1", None),
    ],
)
def test_ndrange_is_proved(body: str, dims: int | None) -> None:
    source = load(body)
    assert (source.ndrange_param, source.ndrange_problem, source.ndrange_dims) == ("y", "", dims)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("i = @index(Global)\ny[i + 1] = 1", "line 4 of the source writes `y` elsewhere than at exactly"),
        ("i = @index(Local)\ny[i] = 1", "elsewhere"),
        ("i = @index(Group, Linear)\ny[i] = 1", "elsewhere"),
        ("i, j = @index(Global, NTuple)\ny[j, i] = 1", "elsewhere"),
        ("i, j = @index(Global, NTuple)\ny[i, j, 1] = 1", "elsewhere"),
        ("i, j = @index(Global, NTuple)\ny[i] = 1", "elsewhere"),
        ("i, j, k = @index(Global, NTuple)\ny[i, j] = 1", "elsewhere"),
        ("i, j = @index(Global, NTuple)\ni, k = @index(Global, NTuple)\ny[i, j] = 1", "assigned more than once"),
        ("i = @index(Global)\ni += 1\ny[i] = 1", "line 5 of the source writes `y` at `i`, which is assigned"),
        ("i = @index(Global)\nfor i in 1:3\n y[i] = 1\nend", "more than once"),
        ("i = @index(Global)\nmap(i -> y[i] = 1, x)", "more than once"),
        ("I = @index(Global, Cartesian)\ny[I[2], I[1]] = 1", "elsewhere"),
        ("i = @index(Global)\ny[i] = 1\ny[i + 1] = 1", "line 5"),
        ("i = @index(Global)\nv = y\nv[i] = 1", "through a view, an alias or a helper"),
        ("i = @index(Global, CartesianIndex)\ny[i] = 1", "elsewhere"),
        ("i = @index(Global)\nz = 1", "writes to none of its parameters"),
        ("i = @index(Global)\nmystery(y)\nx[i] = 1", "whether `y` is written cannot be told: line 4"),
        ("i = @index(Global)\ny .= 1", "through"),
        ("y[1] = 1", "elsewhere"),
        ("i = @index(Global) + 1\ny[i] = 1", "elsewhere"),
    ],
)
def test_ndrange_is_not_proved(body: str, problem: str) -> None:
    source = load(body)
    assert source.ndrange_param is None
    assert problem in source.ndrange_problem


def test_ndrange_is_of_the_first_written_parameter() -> None:
    assert load("i = @index(Global)\nx[i] = 1\nz[i] = 2", "y, x, z").ndrange_param == "x"


@pytest.mark.parametrize(
    ("body", "unread"),
    [
        ("y[i] = x[i]", ""),
        ("if x[i] > 0\n y[i] = 1\nend", "y"),
        ("y[2i] = x[i]", "y"),
        ("y[i], y[i + 1] = x[i], x[i]", "y"),
        ("y[i] += x[i]", ""),
        ("@atomic y[1] += x[i]", ""),
        ("y[2i] = x[i]\ny[1] = sum(y)", ""),
        ("if y[i] > 0\n y[i] = 1\nend", ""),
        ("z = y\nz[2i] = 1", ""),
        ("put!(y, 2i)", ""),
    ],
)
def test_what_is_written_in_part_but_never_read(body: str, unread: str) -> None:
    source = load(INDEX + body, before="put!(a, i) = (a[i] = 1)")
    assert " ".join(sorted(source.effects.unread)) == unread
    assert source.effects.unread <= source.effects.read_first
