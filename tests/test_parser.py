"""The parser against Julia's own: precedence, literals, every construct of kernels, and what is no Julia."""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path

import pytest

from jlkern.syntax import nodes as n
from jlkern.syntax.parser import KernelOptionProblem, SyntaxProblem, parse_expression, parse_module, to_sexpr
from jlkern.syntax.walk import walk

CORPUS = json.loads((Path(__file__).parent / "data" / "precedence.json").read_text(encoding="utf-8"))


def sexpr(text: str) -> str:
    return to_sexpr(parse_expression(text))


# --- precedence -------------------------------------------------------------------------------------------------------

# Texts that the grammar under the parser does not know, so that they are syntax errors here.
UNKNOWN_TO_THE_GRAMMAR = re.compile(
    r"""
    (^|[^&\w) ] ?|\(|\b(in|isa|where) )&[a:(.] | \ &b$        # the address operator, `&a`
    | ^[-+!~√∛¬&<.]+:+[ ]?[a<] | ^::::a | a\ ::\ (::b|b\ .=)    # colons in a row
    | ^(:+|-?2)?\(?a'?\)?[ ]->[ ] | ^\(a\ ->\ b\)              # odd parameters of a lambda
    | ^\d[.\d]*' | \$ | ^a\ :b$ | ;\ c[])] | y\ y\ end         # `1'`, `a$b`, `a :b`, `(a, b; c)`
    """,
    re.VERBOSE,
)
# Rows where Julia's expression assigns to what can be no target (`a && b = c`, or `a + b = c`, which defines `+`).
IMPOSSIBLE_TARGET = re.compile(
    r"\((\.?[^ ()\w]?=|[^ ()\w]+=) \(|\((function) \((call|dotcall) (\.?[^\w\s]|in |isa )|\(\S*= -?\d"
)


def test_julias_own_reading_of_expressions() -> None:
    wrong, refused, unknown = [], [], 0
    for text, wanted in CORPUS["rows"]:
        try:
            got = sexpr(text)
        except SyntaxProblem as problem:
            if "invalid target" in problem.message and IMPOSSIBLE_TARGET.search(wanted):
                continue
            unknown += 1
            if not UNKNOWN_TO_THE_GRAMMAR.search(text):
                refused.append((text, wanted, str(problem)))
            continue
        if got != wanted and "unsupported" not in got and text not in SHOWN_DIFFERENTLY:
            wrong.append((text, wanted, got))
    assert not wrong
    assert not refused
    assert len(CORPUS["rows"]) > 10_000
    assert unknown < 220


# The tree says the same in another way: kernels and lambdas are nodes of their own, tuple parameters are taken apart.
SHOWN_DIFFERENTLY = {
    "(2)(x)",
    "(x::T, y = 1) -> x",
    "((x, y),) -> x",
    "f((x = 1))",
    "a[i = 1]",
    "(;)",
    "(; a = 1)",
    "(; a, b)",
    "(; a, b) = c",
    "@. a + b",
    "@. a = b + c",
    "@kernel inbounds=true function f!(x)\n    x[1] = 1\nend",
    "@kernel inbounds = true unsafe_indices = true cpu = false function f!(x)\n    x[1] = 1\nend",
    "f(x::T)::T where T = x",
    "f((a, b)) = a",
    "f((x, y)) = x",
    "Base.f(x) = x",
    "A.f(x) = x",
    "function Base.f(x)\n    x\nend",
    "function (x)\n    x\nend",
    "function (x, y)\n    x\nend",
    "f(x) do (y, z)\n    y\nend",
    "a-->b",
    "a --> b",
}
# What Julia refuses and the parser takes: none of it can be meant as anything else.
ACCEPTED_ANYWAY = {"a : b .. c", "a .. b : c", "a .. b .. c", "a .. b .. c .. d", "2a .. b .. 3c"}


def test_what_julia_refuses_is_refused() -> None:
    accepted = set()
    for text in CORPUS["errors"]:
        try:
            parse_expression(text)
        except SyntaxProblem:
            continue
        accepted.add(text)
    assert accepted <= ACCEPTED_ANYWAY


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2x^2", "(call * 2 (call ^ x 2))"),
        ("2^3^2", "(call ^ 2 (call ^ 3 2))"),
        ("2^3x", "(call ^ 2 (call * 3 x))"),
        ("-2^2", "(call - (call ^ 2 2))"),
        ("2^-3", "(call ^ 2 -3)"),
        ("1/2x", "(call / 1 (call * 2 x))"),
        ("a << 2 * 3", "(call * (call << a 2) 3)"),
        ("i & k == 0", "(call == (call & i k) 0)"),
        ("a < b <= c", "(comparison a < b <= c)"),
        ("x += y = 3", "(+= x (= y 3))"),
        ("a:b+1", "(call : a (call + b 1))"),
        ("1:n .+ 1", "(call : 1 (dotcall + n 1))"),
        ("a ? b : c ? d : e", "(if a b (if c d e))"),
        ("x |> y -> y + 1", "(call |> x (-> (tuple y) (call + y 1)))"),
        ("a[2i - 1]", "(ref a (call - (call * 2 i) 1))"),
        ("a[2(i - 1) + 1]", "(ref a (call + (call * 2 (call - i 1)) 1))"),
        ("a[1 : n]", "(ref a (call : 1 n))"),
        ("c ? 1 : n", "(if c 1 n)"),
        ("c ? (1 : n) : 2", "(if c (call : 1 n) 2)"),
        ("x!=y", "(call != x y)"),
        ("f(x!=y && z)", "(call f (&& (call != x y) z))"),
        ("x!==y", "(call !== x y)"),
        ("-(a)^2", "(call - (call ^ a 2))"),
        ("-(a)[1]", "(call - (ref a 1))"),
        ("-(a, b)^2", "(call ^ (call - a b) 2)"),
        ("[a -b]", "(hcat a (call - b))"),
        ("[a - b]", "(vect (call - a b))"),
        ("[2x 3y; 1 -2]", "(vcat (row (call * 2 x) (call * 3 y)) (row 1 -2))"),
        ("@m a -b", "(macrocall @m a (call - b))"),
        ("@m a - b", "(macrocall @m (call - a b))"),
        ("i, = t", "(= (tuple i) t)"),
        ("i, = t # with a comment", "(= (tuple i) t)"),
        ("a, b... = t", "(= (tuple a (... b)) t)"),
        ("a[begin + 1, end]", "(ref a (call + begin 1) end)"),
        ("x::Float32 += 1", "(+= (:: x Float32) 1)"),
        ("y[1], x = x, y[2]", "(= (tuple (ref y 1) x) (tuple x (ref y 2)))"),
        ("x = a, b", "(= x (tuple a b))"),
        ("a + b .+ c", "(dotcall + (call + a b) c)"),
        ("@atomic :monotonic A[i] += x", "(macrocall @atomic (quote monotonic) (+= (ref A i) x))"),
        ("(1 - t)a + t*b[i]c", "(call + (call * (call - 1 t) a) (call * t (call * (ref b i) c)))"),
        ('2(x)y + f("(x)y")', '(call + (call * 2 x y) (call f "(x)y"))'),
        # What the grammar gets wrong without an error node.
        ("if a - 1 < b\n c\nend", "(if (call < (call - a 1) b) (block c))"),
        ("if a -(b) < c; d; end", "(if (call < (call - a b) c) (block d))"),
        ("if t * T + i <= R && j <: S\n c\nend", "(if (&& (call <= (call + (call * t T) i) R) (<: j S)) (block c))"),
        ("if a\n -b\nelseif c + 1 > 2\n d\nend", "(if a (block (call - b)) (if (call > (call + c 1) 2) (block d)))"),
        ("while i + 1 < n\n i\nend", "(while (call < (call + i 1) n) (block i))"),
        ("!isa(a, B) && c", "(&& (call ! (call isa a B)) c)"),
        ("!in(x, y)", "(call ! (call in x y))"),
        ("x in(1, 2)", "(call in x (tuple 1 2))"),
        ("@m isa(a, B)", "(macrocall @m (call isa a B))"),
        ("1-(b)^2", "(call - 1 (call ^ b 2))"),
        ("2/(a)^2", "(call / 2 (call ^ a 2))"),
        ("0.5 *(a + b)", "(call * 0.5 (call + a b))"),
        ("f(1+(a), 2 -(b))", "(call f (call + 1 a) (call - 2 b))"),
        ("x[1+(i-1)*n:1+i*n]", "(ref x (call : (call + 1 (call * (call - i 1) n)) (call + 1 (call * i n))))"),
        ("a && @inbounds y[i] = 0", "(&& a (macrocall @inbounds (= (ref y i) 0)))"),
        (
            "a || @inbounds @atomic y[i] += b ? 1 : 2",
            "(|| a (macrocall @inbounds (macrocall @atomic (+= (ref y i) (if b 1 2)))))",
        ),
        ("[1 0 0; 0 0 d]", "(vcat (row 1 0 0) (row 0 0 d))"),
        ("@ntuple 10 k->k + 1", "(macrocall @ntuple 10 (-> (tuple k) (call + k 1)))"),
        ('@assert x == 0 "a"', '(macrocall @assert (call == x 0) "a")'),
        ("@inbounds c[i]acc", "(macrocall @inbounds (call * (ref c i) acc))"),
        ("[f(x; k = 1)]", "(vect (call f x (kw k 1)))"),
        ("a[f(x; k = 1)]", "(ref a (call f x (kw k 1)))"),
        ("[a;]", "(hcat a)"),
        ('var"a b" + 1', "(call + a b 1)"),
        ("s ⊻= s << 13", "(⊻= s (call << s 13))"),
    ],
)
def test_precedence_by_hand(text: str, wanted: str) -> None:
    assert sexpr(text) == wanted


# --- literals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("1", 1, "Int64"),
        ("1_000", 1000, "Int64"),
        ("9223372036854775807", 2**63 - 1, "Int64"),
        ("-9223372036854775808", -(2**63), "Int64"),
        ("0x1", 1, "UInt8"),
        ("0x001", 1, "UInt16"),
        ("0xffff_ffff", 2**32 - 1, "UInt32"),
        ("0x0000000001", 1, "UInt64"),
        ("0b101", 5, "UInt8"),
        ("0b000000001", 1, "UInt16"),
        ("0o17", 15, "UInt8"),
        ("0o777", 511, "UInt16"),
        ("1.", 1.0, "Float64"),
        (".5", 0.5, "Float64"),
        ("1e3", 1000.0, "Float64"),
        ("1f0", 1.0, "Float32"),
        ("5.9604645f-8", 5.960464477539063e-08, "Float32"),
        ("0x1p3", 8.0, "Float64"),
        ("0x.8p1", 1.0, "Float64"),
        ("-1.5f0", -1.5, "Float32"),
        ("true", True, "Bool"),
        ("'a'", "a", "Char"),
        (r"'\u3c0'", "π", "Char"),
        (r"'\\'", "\\", "Char"),
        (":add", "add", "Symbol"),
        (":+", "+", "Symbol"),
        (r'"a\tb\"\$"', 'a\tb"$', "String"),
        (r'raw"a\tb"', "a\\tb", "String"),
        ("nothing", None, "Nothing"),
        ('"""\n    a\n      b\n    """', "a\n  b\n", "String"),
    ],
)
def test_literals(text: str, value: object, kind: str) -> None:
    node = parse_expression(text)
    assert node == n.Literal(value, kind)  # type: ignore[arg-type]
    assert type(node.value) is type(value)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "before", ["", "x = a\n", "x = a ? 1 : 2\n", "x = f(y) # c\n", "@synchronize\n", "i = 2^j - 1\n"]
)
@pytest.mark.parametrize("names", ["i", "i, j", "i, j, k"])
def test_a_comma_before_the_equals_sign(before: str, names: str) -> None:
    body = function(f"function f()\n{before}{names}, = @index(Global, NTuple)\ny[i] = 1\nend").body.body
    shown = [to_sexpr(node) for node in body[-2:]]
    assert shown == [f"(= (tuple {names.replace(',', '')}) (macrocall @index Global NTuple))", "(= (ref y i) 1)"]


def test_literals_too_wide_for_any_engine() -> None:
    assert parse_expression("9223372036854775808") == n.Unsupported("Int128 literal")
    assert parse_expression("x + 0x12345678901234567") == n.Call(
        n.Name("+"), (n.Name("x"), n.Unsupported("UInt128 literal"))
    )
    with pytest.raises(SyntaxProblem, match="overflow"):
        parse_expression("1e999")
    with pytest.raises(SyntaxProblem, match="invalid"):
        parse_expression("1f99")


def test_interpolation() -> None:
    node = parse_expression('"a $x b $(y + 1)"')
    assert isinstance(node, n.Interpolated)
    assert [to_sexpr(part) for part in node.parts] == ['"a "', "x", '" b "', "(call + y 1)"]


# --- constructs -------------------------------------------------------------------------------------------------------


def function(text: str) -> n.FunctionDef:
    node = parse_expression(text)
    if isinstance(node, n.KernelDef):
        node = node.function
    assert isinstance(node, n.FunctionDef)
    return node


def test_kernel_with_everything_in_its_head() -> None:
    kernel = parse_module(
        '''
        using KernelAbstractions
        """
        A docstring with @kernel in it.
        """
        @kernel cpu = false inbounds = true function f!(A::AbstractArray{T}, @Const(B), n = 3,
                ::Val{N} = Val(16)) where {T <: Real, N}   # a comment
            i = @index(Global)  #= another =#
            A[i] = B[i]
        end
        '''
    ).items[1]
    assert isinstance(kernel, n.KernelDef)
    assert (kernel.cpu, kernel.inbounds, kernel.unsafe_indices) == (False, True, False)
    first, second, third, last = kernel.function.params
    assert first.type == n.Curly(n.Name("AbstractArray"), (n.Name("T"),))
    assert second.name == "B" and second.const and not first.const
    assert third.default == n.Literal(3, "Int64")
    assert last.name is None and last.default is not None
    assert [to_sexpr(item) for item in kernel.function.where] == ["(<: T Real)", "N"]
    assert len(kernel.function.body.body) == 2


@pytest.mark.parametrize("option", ["foo = true", "cpu = 1", "cpu", "inbounds = x", '"cpu"'])
def test_kernel_options_that_do_not_exist(option: str) -> None:
    with pytest.raises(KernelOptionProblem, match="@kernel"):
        parse_module(f"@kernel {option} function f(x)\n x[1] = 1\nend")


@pytest.mark.parametrize(
    "text",
    [
        "f(x, y = 2; k = 3)::Int = x",
        "function f(x, y = 2; k = 3)::Int\n x\nend",
        "function f(x, y = 2; k = 3)::Int x end",
        "f(x, y = 2; k = 3)::Int = begin x end",
    ],
)
def test_forms_of_a_function(text: str) -> None:
    made = function(text)
    assert [(p.name, p.default is None) for p in made.params] == [("x", True), ("y", False)]
    assert [p.name for p in made.kwparams] == ["k"]
    assert made.returns == n.Name("Int")
    assert made.body == n.Block((n.Name("x"),))


def test_names_of_functions() -> None:
    assert function("+(a, b) = a").name == "+"
    assert function("Base.:+(a, b) = a").name == "Base.+"
    assert function("Base.f(a) = a").name == "Base.f"
    assert function("f{T}(a) where T = a").name == "f"
    assert function("@kernel f!(x) = x[1] = 2").name == "f!"
    assert parse_module("function f end\nexport f").items == ()


def test_parameters_of_every_kind() -> None:
    made = function("f(a, b::T, ::Type{S}, c::Int...) where {T, S} = 1")
    assert [p.name for p in made.params] == ["a", "b", None, "c"]
    assert made.params[3].vararg and made.params[3].type == n.Name("Int")
    taken = function("f(a, (b, c)) = b")
    assert taken.params[1].name == "#2"
    assert to_sexpr(taken.body) == "(block (= (tuple b c) #2) b)"
    typed = function("f((a, b)::T, @nospecialize(c...)) = a")
    assert typed.params[0] == n.Param("#1", n.Name("T")) and typed.params[1] == n.Param("c", vararg=True)
    assert function("f(@context, a) = a").params[0].name == "__ctx__"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("let a = 1, b\n a\nend", "(let (block (= a 1) b) (block a))"),
        ("let\n a\nend", "(let (block) (block a))"),
        ("local a, b", "(local a b)"),
        ("local a = 1, b", "(local (= a (tuple 1 b)))"),
        ("const A = 1", "(const (= A 1))"),
        ("for i in 1:n, j = 1:2:m\n x\nend", "(for (block (= i (call : 1 n)) (= j (call : 1 2 m))) (block x))"),
        ("for (i, x) ∈ enumerate(A) x end", "(for (= (tuple i x) (call enumerate A)) (block x))"),
        ("while i < 3; i += 1; end", "(while (call < i 3) (block (+= i 1)))"),
        ("if a; b; elseif c; d; else; e; end", "(if a (block b) (if c (block d) (block e)))"),
        ("a && return", "(&& a (return nothing))"),
        ("i == k && continue", "(&& (call == i k) (continue))"),
        ("a || (b = 3)", "(|| a (= b 3))"),
        ("ntuple(3) do i\n i^2\nend", "(call ntuple (-> (tuple i) (call ^ i 2)) 3)"),
        ("map(x -> x + 1, t)", "(call map (-> (tuple x) (call + x 1)) t)"),
        ("(; a, b = 1)", "(tuple (= a a) (= b 1))"),
        ("(a = 1,)", "(tuple (= a 1))"),
        ("f(x; a, b = 1, c.d)", "(call f x (kw a a) (kw b 1) (kw d (. c d)))"),
        ("f(x...; y...)", "(call f (... x) (... y))"),
        ("f.(x, y)", "(dotcall f x y)"),
        ("-x .* y", "(dotcall * (call - x) y)"),
        ("x .= y .+ 1", "(.= x (dotcall + y 1))"),
        ("@inbounds begin\n a\n b\nend", "(macrocall @inbounds (block a b))"),
        ("KernelAbstractions.@atomic A[i] += 1", "(macrocall KernelAbstractions.@atomic (+= (ref A i) 1))"),
        ("@KernelAbstractions.index(Global)", "(macrocall KernelAbstractions.@index Global)"),
        ("@localmem T (N, M + 1)", "(macrocall @localmem T (tuple N (call + M 1)))"),
        ("@localmem(T, 4)", "(macrocall @localmem T 4)"),
        ("(@groupsize())[1]", "(ref (macrocall @groupsize) 1)"),
        ("@unroll 4 for i in 1:3\n x\nend", "(macrocall @unroll 4 (for (= i (call : 1 3)) (block x)))"),
        ("A'", "(' A)"),
        ("a.b.c[1]", "(ref (. (. a b) c) 1)"),
        ("A{T, 3}(x)", "(call (curly A T 3) x)"),
        ("x isa Vector{T} where T", "(call isa x (where (curly Vector T) T))"),
        ("(a; b)", "(block a b)"),
        ("(+)", "+"),
        ("reduce(+, x)", "(call reduce + x)"),
        ("[1, 2]", "(vect 1 2)"),
        ("@SMatrix [c -s; s c]", "(macrocall @SMatrix (vcat (row c (call - s)) (row s c)))"),
        ("a = b ? c : d", "(= a (if b c d))"),
        ("a[:, 1]", "(ref a : 1)"),
        ("a #= c =# + # d\n b", "(call + a b)"),
    ],
)
def test_constructs(text: str, wanted: str) -> None:
    assert sexpr(text) == wanted


def test_structs() -> None:
    made = parse_expression("struct P{T <: Real} <: Q\n x::T\n y\n P(x) = new(x, 1)\nend")
    assert isinstance(made, n.StructDef)
    assert made.name == "P" and made.supertype == n.Name("Q") and not made.mutable
    assert made.fields == (("x", n.Name("T")), ("y", None))
    assert len(made.methods) == 1
    assert isinstance(parse_expression("mutable struct P end"), n.StructDef)


def test_using() -> None:
    assert parse_expression("using A: b, @c, d as e") == n.Using("using A: b, @c, d as e", ("b", "@c", "e"))
    assert parse_expression("using A, B.C") == n.Using("using A, B.C", ("A", "C"))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("try\n a\ncatch e\n b\nend", "try"),
        ("[x for x in y]", "comprehension"),
        ("sum(x for x in y)", "generator"),
        ("(x for x in y)", "generator"),
        ("global a = 1", "global"),
        ("quote\n x\nend", "quote"),
        (":(a + b)", "quoted"),
        ("ccall(:f, Int, ())", "ccall"),
        ("abstract type A{T} end", "abstract"),
        ("T[1 2]", "typed matrix"),
        ("a[i -1]", "typed matrix"),
        ("(x::P)(y) = 1", "callable"),
        ("`ls`", "command"),
        ("module M\n x = 1\nend", "module"),
        ("a := b", ":="),
        ("V{T} = Vector{T}", "alias"),
        ("@all(P) = 1", "macro call"),
        ("(a, b = 1)", "names"),
    ],
)
def test_what_has_no_node_says_what_it_is(text: str, what: str) -> None:
    found = [node.what for node in walk(parse_expression(text)) if isinstance(node, n.Unsupported)]
    assert found and what in found[0]


def test_unsupported_names_what_is_in_it() -> None:
    assert parse_expression("[A[i] for i in r]") == n.Unsupported("comprehension", ("A", "i", "r")) or set(
        parse_expression("[A[i] for i in r]").names  # type: ignore[attr-defined]
    ) == {"A", "i", "r"}


# --- places -----------------------------------------------------------------------------------------------------------


def test_places_count_characters_from_one() -> None:
    module = parse_module("σⁿ = 1\nif x\n  Δz = σⁿ + β\nend")
    found = {node.id: (node.pos.line, node.pos.column) for node in walk(module) if isinstance(node, n.Name)}
    assert found["Δz"] == (3, 3)
    assert found["β"] == (3, 13)
    assert found["x"] == (2, 4)
    module = parse_module("y = (σ)β\nx[begin + 1] = (σ)β + γ\n")
    found = {node.id: (node.pos.line, node.pos.column) for node in walk(module) if isinstance(node, n.Name)}
    assert (found["β"], found["γ"]) == ((2, 19), (2, 23))


def test_names_are_read_as_julia_reads_them() -> None:
    assert parse_expression("e\u0301") == n.Name("\u00e9")
    assert parse_expression("\u00b5") == n.Name("\u03bc")
    assert sexpr("a \u00b7 b") == "(call \u22c5 a b)"


# --- what is no Julia -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("x = 1\ny = )\n", 2, "unexpected"),
        ("x = 1\ny +\n", 2, ""),
        ("function f(x)\n x[1] = 1\n", 1, "end"),
        ("if x\n 1\n", 1, "end"),
        ("x = 1\nend", 2, "`end`"),
        ("a\nf(x y)", 2, ""),
        ("a = (1, 2", 1, ""),
        ("a b", 1, ""),
        ("a && b = 3", 1, "parentheses"),
        ("1 = x", 1, "target"),
        ("x = 0b12", 1, ""),
        ("c ? a: b", 1, "space"),
        ("x = end", 1, "`end`"),
        ("'ab'", 1, ""),
        ("for i in 1 :n\n x\nend", 1, "`:n`"),
        ("x --y", 1, "--"),
        ("f(1 = 2)", 1, ""),
        ("i index(Local)", 1, "`ind`"),
        ("for i index(x)\n y\nend", 1, "`ind`"),
        ("a?b:c", 1, "`?`"),
        ("x = [, ]", 1, "`,`"),
        ("@ m x", 1, ""),
        ("@index(Global; NTuple)", 1, "`;`"),
        ("@m a->", 1, ""),
        ("x = a + * b", 1, ""),
        (" - ".join(["a"] * 200), 1, "operators in a row"),
    ],
)
def test_errors_have_a_place(text: str, line: int, what: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_module(text)
    assert caught.value.line == line
    assert what in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "(" * 3000 + "a" + ")" * 3000,
        "[" * 3000,
        "a[" * 3000 + "1" + "]" * 3000,
        "if a\n" * 3000 + "end\n" * 3000,
        " - ".join("a" * 5000),
        "-" * 3000 + "a",
        "x -> " * 3000 + "x",
        "a ? b : " * 3000 + "c",
        "!" * 5000,
        '"' * 3001,
        "\ud800",
    ],
    ids=lambda text: text[:6].encode("ascii", "replace").decode(),
)
def test_deep_and_broken_sources_end_in_a_clear_error(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(SyntaxProblem):
        parse_module(text)
    assert time.perf_counter() - start < 5


KERNELS = [
    """
    using KernelAbstractions: @kernel, @index, @Const
    const SCALE = 0.5f0
    @inline gelu(x) = 0.5f0 * x * (1 + tanh(SCALE * (x + 0.044715f0 * x^3)))
    @kernel function act!(y, @Const(x), mode) # modes
        i = @index(Global, Linear)
        @inbounds v = x[i]
        if mode == 1
            r = max(v, 0)
        elseif 1 < mode <= 3 && v != 2
            r = gelu(2v - 1)
        else
            r = ifelse(v < 0, -v, v) ⊻ 0x01
        end
        @inbounds y[i] += r
    end
    """,
    """
    @kernel cpu = false inbounds = true function tile!(C, @Const(A), ::Val{T} = Val(16)) where {T}
        gi, gj = @index(Group, NTuple)
        t = @localmem eltype(C) (T + 1, T)
        for k in 0:2:(T - 1), q in (1, 2)
            t[i, 2k + 1] = k <= size(A, 1) ? A[(gi - 1) * T + i, end] : zero(eltype(C))
            @synchronize
            while s > 0
                s >>= 1
                l <= s && (t[l, 1] = t[l + s, 1]; continue)
            end
        end
        σⁿ, (a, b) = f.(x .+ y, (1, 2.0, "a $k")), ntuple(d -> d, 2)
        KernelAbstractions.@atomic C[1] += a'
    end
    """,
]


@pytest.mark.parametrize("seed", range(6))
def test_mutated_kernels_parse_or_fail_cleanly(seed: int) -> None:
    dice = random.Random(seed)
    pieces = [
        "(",
        ")",
        "[",
        "]",
        "end",
        "=",
        " ",
        "\n",
        "'",
        '"',
        "::",
        "?",
        ":",
        ",",
        "@",
        "for",
        "if",
        "#",
        "$",
        "...",
    ]
    pieces += ["begin", "!", "x", "0x", "-", "{", "}", ";", "do", "->", "&&", "function ", "where", "2", "\\", "`", "⊻"]
    for _ in range(120):
        text = dice.choice(KERNELS)
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(len(text))
            kind = dice.randrange(3)
            if kind == 0:
                text = text[:at] + text[at + dice.randrange(1, 9) :]
            elif kind == 1:
                text = text[:at] + dice.choice(pieces) + text[at:]
            else:
                other = dice.randrange(len(text))
                text = text[:at] + text[other : other + dice.randrange(1, 20)] + text[at:]
        try:
            module = parse_module(text)
        except SyntaxProblem as problem:
            assert 1 <= problem.line <= text.count("\n") + 1 and problem.column >= 1
        else:
            to_sexpr(module)


def test_parsing_is_fast() -> None:
    best = min(_seconds(KERNELS[0]) for _ in range(20))
    assert best < 2e-3


def _seconds(text: str) -> float:
    start = time.perf_counter()
    parse_module(text)
    return time.perf_counter() - start
