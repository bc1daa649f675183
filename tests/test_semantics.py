"""Single operations: elementary functions against numbers of 200 bits, conversion, division at its limits, folding."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath  # type: ignore[import-untyped,unused-ignore]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jlkern.engines.base import CompileRequest
from jlkern.engines.numba import engine
from jlkern.engines.numba.lower import fold
from jlkern.engines.numba.lower.simt import Expr, Lit, Op, Var
from jlkern.engines.numba.lower.types import BOOL, FLOATS, INTS, PRIMS, UINTS, ComplexT, promote
from jlkern.signature import classify
from jlkern.source import Origin, load_source

Reference = Callable[..., Any]
Array = np.ndarray[Any, Any]


@cache
def compiled(expr: str, dtypes: tuple[str, ...], out: str) -> Callable[..., Array]:
    """Compile `y[i] = expr` over arrays a, b, c; a call returns y."""
    names = "abc"[: len(dtypes)]
    lines = [f"{n} = A{n}[i]" for n in names]
    text = "\n".join([
        f"@kernel function k!(y, {', '.join(f'@Const(A{n})' for n in names)})", "i = @index(Global)", "@inbounds begin",
        *lines, f"y[i] = {expr}", "end", "end",
    ])  # fmt: skip
    source = load_source(text, Origin(None, 1, False), (), None)
    args = [np.zeros(1, d) for d in (out, *dtypes)]
    signature = tuple(classify(n, a) for n, a in zip(source.names, args, strict=True))
    launcher = engine().compile(CompileRequest(source, signature, {}, (64,), 1, frozenset({"y"})))

    def call(*columns: Array) -> Array:
        y = np.zeros(len(columns[0]), out)
        fire = launcher.fire((len(y),))
        status = fire(y, *columns)
        if status:
            launcher.fail(fire, status)
        return y

    return call


# --- elementary functions ---

FUNCTIONS: dict[str, Reference] = {
    "sqrt": mpmath.sqrt, "exp": mpmath.exp, "expm1": mpmath.expm1, "log": mpmath.log, "log10": mpmath.log10,
    "log1p": mpmath.log1p, "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "asin": mpmath.asin,
    "acos": mpmath.acos, "atan": mpmath.atan, "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh,
    "asinh": mpmath.asinh, "acosh": mpmath.acosh, "atanh": mpmath.atanh, "sinpi": mpmath.sinpi, "cospi": mpmath.cospi,
    "sec": mpmath.sec, "csc": mpmath.csc, "cot": mpmath.cot,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "exp10": lambda x: mpmath.mpf(10) ** x,
    "log2": lambda x: mpmath.log(x, 2),
    "mod2pi": lambda x: x - 2 * mpmath.pi * mpmath.floor(x / (2 * mpmath.pi)),
}  # fmt: skip
PAIRS: dict[str, Reference] = {
    "hypot(a, b)": mpmath.hypot,
    "atan(a, b)": mpmath.atan2,
    "log(a, b)": lambda a, b: mpmath.log(b) / mpmath.log(a),
    "a^b": lambda a, b: a**b,
}


def arguments(name: str, dtype: str, count: int) -> Array:
    """Return arguments all over a function's domain, most where it is hard."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    top = {"float32": 88.0, "float64": 709.0}[dtype]
    sign = np.sign(rng.normal(size=count))
    wide, near = (
        sign * 2.0 ** rng.uniform(-60, 60, count),
        rng.normal(size=count) * rng.choice([0.01, 0.1, 1, 20], count),
    )
    small, unit = 2.0 ** rng.uniform(-60, 0, count), rng.uniform(-1, 1, count)
    if name in ("exp", "expm1", "sinh", "cosh"):
        x = np.concatenate([unit * top, near, sign * small])
    elif name in ("exp2", "exp10"):
        x = np.concatenate([unit * (120 if name == "exp2" else 37), near])
    elif name in ("log", "log2", "log10", "sqrt"):
        x = np.abs(np.concatenate([wide, 1 + near * 1e-3, 1 + near]))
    elif name == "log1p":
        x = np.concatenate([np.abs(wide), near.clip(-0.999), -small.clip(0, 0.99), sign * small * 0.9])
    elif name in ("asin", "acos", "atanh"):
        x = np.concatenate([unit, sign * small * 0.99, 1 - 2.0 ** rng.uniform(-20, -1, count)])
    elif name == "acosh":
        x = 1 + np.abs(np.concatenate([wide, small]))
    elif name in ("sinpi", "cospi"):
        x = np.concatenate([near, unit * 2, np.round(near * 4) / 4 + small])
    else:
        x = np.concatenate([wide, near, sign * small])
    made: Array = x.astype(dtype)
    return np.extract(made != 0, made)


def places(got: Any, exact: Any, dtype: str) -> float:
    """Return how many floats lie between a result and the float nearest to the exact value."""
    digits, least = (24, -149) if dtype == "float32" else (53, -1074)
    _, exponent = mpmath.frexp(exact)
    unit = mpmath.ldexp(1, max(int(exponent) - digits, least))
    with mpmath.workprec(digits):
        rounded = +exact
    return float(abs(mpmath.mpf(float(got)) - rounded) / unit)


def worst(expr: str, columns: tuple[Array, ...], dtype: str, reference: Reference) -> tuple[float, list[str]]:
    """Return the greatest distance from the correctly rounded value, and the arguments that are too far."""
    got = compiled(expr, (dtype,) * len(columns), dtype)(*columns)
    tiny, huge = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)
    greatest, bad = 0.0, []
    with mpmath.workprec(200):
        for value, *args in zip(got, *columns, strict=True):
            exact = reference(*(mpmath.mpf(float(a)) for a in args))
            if not tiny < abs(exact) < huge:
                continue
            distance = places(value, exact, dtype)
            greatest = max(greatest, distance)
            if not distance <= 1:
                bad.append(f"{expr} of {args} is {value}, {distance} places off")
    return greatest, bad


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_are_within_one_place(dtype: str) -> None:
    bad = []
    for name, reference in FUNCTIONS.items():
        bad += worst(f"{name}(a)", (arguments(name, dtype, 12),), dtype, reference)[1]
    assert not bad, "\n".join(bad[:20])


def pairs(expr: str, dtype: str, count: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=count) * 2.0 ** rng.uniform(-20, 20, count), rng.normal(size=count) * 10
    if expr in ("log(a, b)", "a^b"):
        a, b = np.abs(a) + 1e-3, np.abs(b) + 0.01
        b = np.minimum(b, 5) if expr == "a^b" else b
    return a.astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_two_are_within_one_place(dtype: str) -> None:
    bad = []
    for expr, reference in PAIRS.items():
        bad += worst(expr, pairs(expr, dtype, 100), dtype, reference)[1]
    assert not bad, "\n".join(bad[:20])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_at_many_places(dtype: str) -> None:
    bad = []
    for name, reference in FUNCTIONS.items():
        greatest, found = worst(f"{name}(a)", (arguments(name, dtype, 1500),), dtype, reference)
        print(f"{name:8} {dtype}: {greatest:.0f}")
        bad += found
    for expr, reference in PAIRS.items():
        greatest, found = worst(expr, pairs(expr, dtype, 3000), dtype, reference)
        print(f"{expr:12} {dtype}: {greatest:.0f}")
        bad += found
    assert not bad, "\n".join(bad[:20])


def test_functions_at_the_ends() -> None:
    inf, nan = np.inf, np.nan
    ends = np.array([0.0, -0.0, inf, -inf, nan, 5e-324, -5e-324, 1e308, -1e308])
    expected = {
        "sinh": [0.0, -0.0, inf, -inf, nan, 5e-324, -5e-324, inf, -inf],
        "cosh": [1, 1, inf, inf, nan, 1, 1, inf, inf],
        "tanh": [0.0, -0.0, 1, -1, nan, 5e-324, -5e-324, 1, -1],
        "asinh": [0.0, -0.0, inf, -inf, nan, 5e-324, -5e-324, np.arcsinh(1e308), -np.arcsinh(1e308)],
        "expm1": [0.0, -0.0, inf, -1, nan, 5e-324, -5e-324, inf, -1],
        "cbrt": [0.0, -0.0, inf, -inf, nan, np.cbrt(5e-324), -np.cbrt(5e-324), np.cbrt(1e308), -np.cbrt(1e308)],
    }
    for name, values in expected.items():
        got = compiled(f"{name}(a)", ("float64",), "float64")(ends)
        np.testing.assert_array_equal(got, values, err_msg=name)
        assert (np.signbit(got) == np.signbit(values)).all() or np.isnan(got).any()
        assert np.signbit(got[1]) == np.signbit(values[1])


# --- promotion and conversion ---

NUMBERS = [*PRIMS.values(), *(ComplexT(f) for f in FLOATS)]


@given(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS), st.sampled_from(NUMBERS))
def test_promotion_is_a_join(a: Any, b: Any, c: Any) -> None:
    """It commutes, gives back a type for itself, and for three types the order does not count."""
    assert promote(a, b) == promote(b, a)
    assert promote(a, a) == a
    ab, bc = promote(a, b), promote(b, c)
    assert ab is not None and bc is not None
    assert promote(ab, c) == promote(a, bc)


def test_promotion_of_integers() -> None:
    for a in (*INTS, *UINTS):
        assert promote(a, BOOL) == a
        for b in (*INTS, *UINTS):
            wide = max(a.bits, b.bits)
            same = [t for t in (a, b) if t.bits == wide]
            assert promote(a, b) == (next((t for t in same if t.kind == "uint"), same[0]))


INTEGERS = {t.julia: np.iinfo(t.numpy) for t in (*INTS, *UINTS)}


@st.composite
def integer(draw: Any) -> int:
    """An integer near the limits of some type, or any."""
    info = draw(st.sampled_from(list(INTEGERS.values())))
    edge = draw(st.sampled_from([info.min, info.max, 0]))
    near = edge + draw(st.integers(-3, 3))
    return int(draw(st.one_of(st.just(near), st.integers(-(2**63), 2**64 - 1)).filter(lambda v: -(2**63) <= v < 2**64)))


def fits(value: int, ty: str) -> bool:
    return bool(INTEGERS[ty].min <= value <= INTEGERS[ty].max)


@settings(max_examples=60, deadline=None)
@given(integer(), st.sampled_from(list(INTEGERS)), st.sampled_from(["Int64", "UInt64"]))
def test_conversion_of_integers(value: int, ty: str, of: str) -> None:
    """`T(x)` is the number or an error, `x % T` its low bits."""
    if not fits(value, of):
        return
    column = np.array([value], of.lower())
    low = compiled(f"a % {ty}", (of.lower(),), ty.lower())(column)[0]
    assert int(low) % 2 ** INTEGERS[ty].bits == value % 2 ** INTEGERS[ty].bits
    try:
        got = compiled(f"{ty}(a)", (of.lower(),), ty.lower())(column)[0]
    except ValueError as problem:
        assert type(problem).__name__ == "InexactError" and not fits(value, ty)
    else:
        assert int(got) == value


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(integer().map(float), st.floats(), st.integers(-300, 300).map(lambda n: n / 2)),
    st.sampled_from(list(INTEGERS)),
)
def test_conversion_of_floats(value: float, ty: str) -> None:
    """`T(x)` wants a whole number that fits; `trunc(T, x)` one whose whole part fits."""
    column = np.array([value])
    finite = bool(np.isfinite(value))
    for expr, good in ((f"{ty}(a)", finite and value == int(value)), (f"trunc({ty}, a)", finite)):
        good = good and fits(int(value), ty)
        try:
            got = compiled(expr, ("float64",), ty.lower())(column)[0]
        except ValueError as problem:
            assert type(problem).__name__ == "InexactError" and not good
        else:
            assert good and int(got) == int(value)


@settings(max_examples=100, deadline=None)
@given(integer())
def test_integers_are_rounded_once(value: int) -> None:
    of = "int64" if value < 2**63 else "uint64"
    for ty in ("Float32", "Float64"):
        exact = np.array([value], of).astype(ty.lower())[0]
        assert compiled(f"{ty}(a)", (of,), ty.lower())(np.array([value], of))[0] == exact
        assert fold.wrap(value, ty.lower()) == exact


# --- division ---


def test_no_operands_trap() -> None:
    """Unchecked division, as in the length of a range, never ends the process."""
    least = np.iinfo(np.int64).min
    a, b = np.array([least, 7, least, 0]), np.array([-1, -1, 2, 1])
    got = compiled("length(zero(a):b:a)", ("int64", "int64"), "int64")(a, b)
    assert got.shape == (4,)
    with pytest.raises(Exception, match="step of a range is zero"):
        compiled("length(zero(a):b:a)", ("int64", "int64"), "int64")(np.array([3]), np.array([0]))


# --- folding ---


def x() -> Expr:
    return Var("x", "int64")


def test_sums_of_constants_are_joined() -> None:
    one, big = Lit(1, "int64"), Lit(2**62, "int64")
    assert fold.op("sub", "int64", (fold.op("add", "int64", (x(), one)), one)) == x()
    twice = fold.op("sub", "int64", (fold.op("sub", "int64", (x(), big)), big))
    assert twice == Op("add", (x(), Lit(-(2**63), "int64")), "int64")


def test_known_operations_wrap() -> None:
    def known(name: str, ty: str, *values: Any) -> Any:
        result = fold.op(name, ty, tuple(Lit(v, ty) for v in values))
        assert isinstance(result, Lit), name
        return result.value

    assert known("add", "int8", 127, 1) == -128
    assert known("mul", "uint8", 16, 17) == 16
    assert known("sub", "uint64", 0, 1) == 2**64 - 1
    assert known("neg", "int64", -(2**63)) == -(2**63)
    assert known("rem", "int64", -7, 3) == -1
    assert known("mod", "int64", -7, 3) == 2
    assert known("div", "int64", -7, 2) == -3
    assert known("fld", "int64", -7, 2) == -4
    assert known("mul", "float32", np.float32(0.1), np.float32(3)) == float(np.float32(0.1) * np.float32(3))
