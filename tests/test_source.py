"""Sources: which kernel, its parameters, how tunables reach it, places in messages, the digest."""

from __future__ import annotations

import linecache
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jlkern.errors import SourceError, SourceSyntaxError, TunableError
from jlkern.source import KernelSource, Origin, find_origin, list_kernels, load_source

HERE = Origin("file.py", 11, True)


def load(text: str, tunables: tuple[str, ...] = (), **options: Any) -> KernelSource:
    return load_source(text, HERE, tunables, **options)


def kernel(head: str, body: str = "") -> str:
    return f"@kernel function {head}\n{body}\nend\n"


# --- which kernel -----------------------------------------------------------------------------------------------------

TWO = kernel("a!(x)") + kernel("b(x)")


def test_the_kernel_is_picked_by_name() -> None:
    assert load(kernel("a!(x)"), python_name="other").name == "a!"
    assert load(TWO, python_name="a").name == "a!"
    assert load(TWO, python_name="b").name == "b"
    assert load(TWO, name="b", python_name="a").name == "b"
    assert list_kernels(TWO) == ("a!", "b")


def test_no_kernel_or_no_choice_is_an_error() -> None:
    with pytest.raises(SourceError, match="no `@kernel`"):
        load("f(x) = 1")
    with pytest.raises(SourceError, match=r"file.py:14: .*`a!`, `b`.*name="):
        load(TWO)
    with pytest.raises(SourceError, match="name="):
        load(TWO, python_name="c")
    with pytest.raises(SourceError, match="no kernel `c`"):
        load(TWO, name="c")
    with pytest.raises(SourceError, match="defined twice"):
        load(kernel("a(x)") + kernel("a(y)"))


def test_what_is_around_a_kernel_is_kept() -> None:
    source = load('using KernelAbstractions\nconst N = 3\nf(x) = x\n"""doc"""\n' + kernel("k!(y)"))
    assert len(source.module.items) == 4
    assert source.kernel is source.module.items[3]


# --- errors have places -----------------------------------------------------------------------------------------------


def test_syntax_errors_show_their_line() -> None:
    with pytest.raises(SourceSyntaxError) as caught:
        load("x = 1\n  y = )\n")
    message = str(caught.value)
    assert message.startswith("file.py:12: unexpected")
    assert "\n      y = )\n" in message and message.endswith("^")
    with pytest.raises(SourceSyntaxError, match=r"^line 2 of the source: "):
        load_source("x = 1\ny = )", Origin("file.py", 11, False), ())


def test_wrong_options_of_a_kernel_are_no_syntax_errors() -> None:
    with pytest.raises(SourceError, match=r"file.py:11: `@kernel` knows the options cpu, inbounds") as caught:
        load("@kernel workgroup = true function f(x)\nend")
    assert not isinstance(caught.value, SourceSyntaxError)


# --- parameters and tunables ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "tunables", "names", "vals"),
    [
        ("k(y, x)", (), "y x", ()),
        ("k(y, x)", ("block",), "y x", ()),
        ("k(y, ::Val{A} = Val(1), ::Val{B} = Val(2)) where {A, B}", ("A", "B"), "y", ("A", "B")),
        ("k(y, ::Val{B}, ::Val{A}) where {A, B}", ("A", "B"), "y", ("B", "A")),
        ("k(y, ::Val{B}, ::Val{A}) where {A, B}", ("A", "B", "C"), "y", ("B", "A")),
        ("k(y, ::Val{M}, ::Val{N}) where {M, N}", ("A", "B"), "y", ("A", "B")),
        ("k(y, ::Val{A}, ::Val{N}) where {A, N}", ("A", "B"), "y", ("A", "B")),
        ("k(y, ::Val{A} = Val(1), ::Val{P} = Val(2)) where {A, P}", ("A",), "y", ("A", None)),
        ("k(y, ::Val{P} = Val(1), ::Val{A} = Val(2)) where {A, P}", ("A",), "y", (None, "A")),
        ("k(y, ::Val{P} = Val(1)) where {P}", (), "y", (None,)),
        ("k(y, ::Val{P}) where {P}", (), "y #2", ()),
        ("k(y, ::Val{D}, ::Val{A}) where {A, D}", ("A",), "y #2", ("A",)),
        ("k(y, ::Val{D}, ::Val{P} = Val(1)) where {D, P}", (), "y #2", (None,)),
        ("k(y, n::Val{N} = Val(3)) where {N}", ("N",), "y", ("N",)),
        ("k(y, ::Val{N}, x) where {N}", (), "y #2 x", ()),
        ("k(y, ::Type{T}, @Const(x), n = 3) where {T}", (), "y #2 x n", ()),
    ],
)
def test_how_tunables_reach_the_source(head: str, tunables: tuple[str, ...], names: str, vals: tuple[Any, ...]) -> None:
    source = load(kernel(head), tunables)
    assert (" ".join(source.names), source.vals) == (names, vals)
    assert len(source.parameters) + len(source.vals) == len(source.kernel.function.params)


@pytest.mark.parametrize(
    ("head", "tunables", "message"),
    [
        ("k(y, n)", ("n",), "tunable 'n' is named like a parameter"),
        ("k(y, ::Val{M}, ::Val{N}) where {M, N}", ("A",), "neither by name nor by number"),
        ("k(y, ::Val{B}, ::Val{N}) where {B, N}", ("A", "B"), "stands where the tunable 'A' belongs"),
        ("k(y, ::Val{A}, ::Val{D}) where {A, D}", ("A", "X", "Y"), "no tunable and has no default"),
        ("k(y::AbstractArray{T}) where {T}", ("T",), "named like a type parameter"),
    ],
)
def test_tunables_that_cannot_reach_the_source(head: str, tunables: tuple[str, ...], message: str) -> None:
    with pytest.raises(TunableError, match=message) as caught:
        load(kernel(head), tunables)
    assert str(caught.value).startswith("file.py:11: ")


# --- the digest -------------------------------------------------------------------------------------------------------

BASE = "const N = 3\n@kernel function k(y)\n    i = @index(Global)\n    y[i] = -1\nend\n"


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("    ", "\t\t"),
        lambda t: textwrap.indent(t, "  "),
        lambda t: t.replace("\n", "  # a comment\n"),
        lambda t: t.replace("i = ", "i = #= here =# "),
        lambda t: t.replace("end\n", "\n\n  end\n\n"),
        lambda t: t.replace("\n    y", "; y"),
        lambda t: t.replace("\n", "\r\n"),
    ],
)
def test_form_does_not_change_the_digest(change: Callable[[str], str]) -> None:
    assert change(BASE) != BASE
    assert load(change(BASE)).digest == load(BASE).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("N = 3", "N = 4"),
        ("-1", "1"),
        ("y[i] = -1", "y[i] = - 1"),
        ("i = @index(Global)", "j = @index(Global)"),
        ("i = @index(Global)\n    y[i] = -1", "i = @index(Global) - y[i]\n   -1"),
        ("-1", '"a b"'),
        ("-1", '"a  b"'),
        ("-1", "[a -1]"),
        ("-1", "[a - 1]"),
        ("-1", "[a\n-1]"),
        ("-1", "(a\n-1)"),
        ("-1", "@m a b"),
    ],
)
def test_meaning_changes_the_digest(old: str, new: str) -> None:
    assert load(BASE.replace(old, new)).digest != load(BASE).digest


def test_digests_of_like_texts_differ() -> None:
    texts = ["[a -1]", "[a - 1]", "[a\n-1]", "[a-1]", "@m a -1", "@m a (-1)", "@m(a, -1)", "a\n-1", "a.-1", "a[-1]"]
    digests = {load(BASE.replace("-1", text)).digest for text in texts}
    assert len(digests) == len(texts) - 1  # `[a - 1]` and `[a-1]` are one vector
    assert load(TWO, name="a!").digest != load(TWO, name="b").digest
    assert len(load(BASE).digest) == 64


# --- the place of a string in its file --------------------------------------------------------------------------------

FILE = '''
import functools

SOURCE = """
@kernel function s(y)
end"""

def decorator(**options):
    return lambda function: function

@decorator(
    note="""@kernel of another kind""",
    block=[1, 2],
)
def inside(
    y,
) -> None:
    r"""
    @kernel function k(y)
        y[1] = "\\n"
    end
    """

def first_line(y) -> None:
    """@kernel function k(y)
    end"""

def escaped(y) -> None:
    """
    @kernel function k(y)\\n
    end
    """

def one(y) -> None: "@kernel k(y) = 1"

@decorator(source=SOURCE)
def far(y) -> None: ...
'''


def module_of(text: str, name: str, path: Path) -> dict[str, Any]:
    path.write_text(text, encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": name, "__file__": str(path)}
    exec(compile(text, str(path), "exec"), namespace)
    return namespace


def test_places_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    module = module_of(FILE, "kernels", path)
    lines = FILE.split("\n")
    for name, first in [("inside", '    r"""'), ("first_line", '    """@kernel function k(y)')]:
        origin = find_origin(module[name], module[name].__doc__)
        assert origin == Origin(str(path), lines.index(first) + 1, True), name
    assert find_origin(module["one"], module["one"].__doc__).where(1) == f"{path}:{lines.index(lines[-5]) + 1}"
    assert find_origin(module["far"], module["SOURCE"]).line == lines.index('SOURCE = """') + 1
    escaped = find_origin(module["escaped"], module["escaped"].__doc__)
    assert not escaped.exact and escaped.where(3) == "line 3 of the source"


def test_places_follow_a_changed_file(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    module_of(FILE, "kernels", path)
    moved = module_of("\n\n\n" + FILE, "kernels", path)["inside"]
    assert find_origin(moved, moved.__doc__).line == FILE.split("\n").index('    r"""') + 4


def test_places_in_a_zip_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "bundle.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped_kernels.py", FILE)
    monkeypatch.syspath_prepend(str(archive))
    import zipped_kernels  # type: ignore[import-not-found]

    try:
        origin = find_origin(zipped_kernels.inside, zipped_kernels.inside.__doc__)
    finally:
        del sys.modules["zipped_kernels"]
    assert origin.exact and origin.line == FILE.split("\n").index('    r"""') + 1


def test_places_in_a_notebook_cell() -> None:
    name = "<ipython-input-3-abc>"
    linecache.cache[name] = (len(FILE), None, [line + "\n" for line in FILE.split("\n")], name)
    namespace: dict[str, Any] = {}
    exec(compile(FILE, name, "exec"), namespace)
    origin = find_origin(namespace["inside"], namespace["inside"].__doc__)
    assert origin.exact and origin.where(1).startswith(name)


def test_no_file_at_all() -> None:
    namespace: dict[str, Any] = {}
    exec(compile(FILE, "<string>", "exec"), namespace)
    origin = find_origin(namespace["inside"], namespace["inside"].__doc__)
    assert origin.where(3) == "line 3 of the source"
    assert find_origin(len, "@kernel f(x) = 1") == Origin(None, 1, False)


def test_errors_point_into_the_python_file(tmp_path: Path) -> None:
    text = 'def k(y) -> None:\n    r"""\n    @kernel function k(y)\n        y[1] = )\n    end\n    """\n'
    path = tmp_path / "broken.py"
    function = module_of(text, "broken", path)["k"]
    with pytest.raises(SourceSyntaxError, match=r"broken\.py:4: unexpected"):
        load_source(function.__doc__, find_origin(function, function.__doc__), ())
