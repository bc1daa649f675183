"""Tunables, restrictions, configurations, callables by name, work-group rules."""

from __future__ import annotations

import enum
import itertools
import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlkern.errors import ConfigError, EmptySpaceError, OptionError, TunableError, WorkgroupError
from jlkern.space import UNSET, Config, call_named, fit_workgroup, make_space, make_workgroup

scalars = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e9, 1e9) | st.text(max_size=3)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)


def params(space):
    return [c.as_dict() for c in space.configs()]


# --- declaring --------------------------------------------------------------------------------------------------------


def test_values_keep_order_and_types():
    space = make_space({"a": [True, 1, 1.0, "1", (1,), (True,)], "b": (2, 1)})
    assert [repr(c.as_dict()["a"]) for c in space.configs()][::2] == ["True", "1", "1.0", "'1'", "(1,)", "(True,)"]
    assert [c.as_dict()["b"] for c in space.configs()][:2] == [2, 1]
    assert space.size == space.full_size == 12


def test_subclasses_and_numpy_scalars_become_plain():
    class Size(enum.IntEnum):
        BIG = 64

    space = make_space({"a": np.arange(2, 4), "b": [np.float64(0.5), np.bool_(True), Size.BIG, np.str_("x"), [1, 2]]})
    assert [type(v) for t in space.tunables for v in t.values] == [int, int, float, bool, int, str, tuple]
    assert type(make_space({"a": range(3)}).default().as_dict()["a"]) is int


@pytest.mark.parametrize(
    ("tune", "part"),
    [
        ({"a": []}, "a has no values"),
        ({"a": [1, 2, 1]}, "a has the value 1 twice"),
        ({"a": [(1, 2), [1, 2]]}, "twice"),
        ({"a": [None]}, "NoneType"),
        ({"a": [1, {}]}, "dict"),
        ({"a": [2**63]}, "does not fit Int64"),
        ({"a": [float("nan")]}, "not finite"),
        ({"a": [float("inf")]}, "not finite"),
        ({"a": [1j]}, "complex"),
        ({"a": [np.zeros(2)]}, "ndarray"),
        ({"a": "abc"}, "ordered list"),
        ({"a": {1, 2}}, "ordered list"),
        ({"a": {1: 2}}, "ordered list"),
        ({"a": 5}, "ordered list"),
        ({"a b": [1]}, "identifier"),
        ({"lambda": [1]}, "identifier"),
        ({3: [1]}, "identifier"),
        ({"ﬁ": [1]}, "NFKC"),
        ([("a", [1])], "mapping"),
    ],
)
def test_wrong_declarations(tune, part):
    with pytest.raises(TunableError, match=part):
        make_space(tune)


def test_unicode_names_work():
    assert make_space({"σ": [1, 2]}, ["σ > 1"]).default().as_dict() == {"σ": 2}


def test_no_tunables_is_one_configuration():
    space = make_space({})
    assert list(space.configs()) == [Config()] == [space.default()] and space.size == 1
    assert space.allows({}) and space.resolve({}) == Config()
    with pytest.raises(ConfigError):
        space.resolve({"a": 1})


# --- configurations ---------------------------------------------------------------------------------------------------


@given(values, values)
def test_configurations_are_equal_only_when_types_agree(a, b):
    x, y = Config((("a", a),)), Config((("a", b),))
    assert (x == y) == (repr(a) == repr(b))
    if x == y:
        assert hash(x) == hash(y)
    assert x != Config((("a", a),), (("s", 1),)) and x != "a"


def test_configurations_print_and_pickle():
    config = Config((("block", 64), ("mode", "fast")), (("jam", 4),))
    assert str(config) == "block=64 mode=fast [jam=4]" and str(Config()) == "default"
    assert pickle.loads(pickle.dumps(config)) == config
    assert config.with_schedule(()) == Config(config.params)
    assert len({Config((("a", True),)), Config((("a", 1),)), Config((("a", 1.0),))}) == 3


# --- restrictions -----------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True), min_size=1, max_size=4), st.data())
def test_configs_are_the_filtered_product_in_order(lists, data):
    names = "abcd"[: len(lists)]
    pairs = list(itertools.combinations_with_replacement(names, 2))
    chosen = data.draw(st.lists(st.sampled_from(pairs), max_size=3))
    texts = [f"{x} + {y} < 6" for x, y in chosen]
    space = make_space(dict(zip(names, lists, strict=True)), texts)
    expected = [
        dict(zip(names, combo, strict=True))
        for combo in itertools.product(*lists)
        if all(eval(t, {}, dict(zip(names, combo, strict=True))) for t in texts)
    ]
    assert params(space) == expected
    assert space.size == len(expected)
    for n in (len(expected) - 1, len(expected), len(expected) + 1):
        if n >= 0:
            assert space.larger_than(n) == (len(expected) > n)
    ranks = [space.rank(c) for c in space.configs()]
    assert ranks == sorted(ranks)


def test_restrictions_of_every_kind():
    tune = {"a": [1, 2, 3, 4], "b": [1, 2, 3, 4]}
    by_string = make_space(tune, ["a * b <= 4", "a != b"])
    assert params(by_string) == params(make_space(tune, [lambda a, b: a * b <= 4, lambda b, a: a != b]))
    assert params(by_string) == params(make_space(tune, [lambda p: p["a"] * p["b"] <= 4 and p["a"] != p["b"]]))
    assert params(make_space(tune, "max(a, b) == 2 and math.log2(a) == 1")) == [{"a": 2, "b": 1}, {"a": 2, "b": 2}]
    assert params(make_space(tune, lambda a: a == 3))[0] == {"a": 3, "b": 1}
    assert make_space(tune, ["sum(x == b for x in (a, 2)) == 2"]).size == 1
    assert make_space({"m": ["x", "y"], "t": [(1, 2), (3, 4)]}, ["m == 'y' and t[0] == 3"]).size == 1


@pytest.mark.parametrize(
    ("restriction", "part"),
    [
        ("a +", "not a Python expression"),
        ("a == 1; import os", "not a Python expression"),
        ("a < blok", "names blok, no tunable of a, b"),
        ("open('x')", "names open"),
        ("__import__('os')", "names __import__"),
        (3, "expression string or a callable"),
        (lambda *args: True, r"\*args"),
        (lambda **kw: True, r"\*\*kw"),
        (lambda blok: True, "wants 'blok', which is none of a, b"),
        (lambda a, c: True, "wants 'c'"),
    ],
)
def test_wrong_restrictions(restriction, part):
    with pytest.raises(TunableError, match=part):
        make_space({"a": [1], "b": [1]}, [restriction])


def test_a_restriction_that_raises_names_itself_and_the_configuration():
    space = make_space({"a": [4, 0]}, ["8 % a == 0"])
    with pytest.raises(TunableError, match="'8 % a == 0' raised ZeroDivisionError for a=0"):
        list(space.configs())


def test_a_large_space_gives_its_default_at_once():
    calls = []

    def slow(a, b):
        calls.append(1)
        return a < b

    tune = {name: list(range(50)) for name in "abcdefgh"}
    space = make_space(tune, [slow, "h > 5"])
    assert space.full_size == 50**8
    assert space.default().as_dict() == {"a": 0, "b": 1, "c": 0, "d": 0, "e": 0, "f": 0, "g": 0, "h": 6}
    assert len(calls) < 10  # the restriction on a and b is not asked again for each h
    assert space.larger_than(1000) and len(calls) < 20


def test_pruning_keeps_a_restricted_space_cheap_to_walk():
    space = make_space({name: list(range(30)) for name in "abcdef"}, ["a == b", "b == c", "c == d", "d == e", "e == f"])
    start = time.process_time()
    assert space.size == 30
    assert time.process_time() - start < 30  # 30**6 evaluations would take minutes


# --- default and resolve ----------------------------------------------------------------------------------------------


def test_default():
    tune = {"a": [3, 1], "b": [2, 5]}
    assert make_space(tune).default().as_dict() == {"a": 3, "b": 2}
    assert make_space(tune, ["a < b"]).default().as_dict() == {"a": 3, "b": 5}
    assert make_space(tune, default={"a": 1}).default().as_dict() == {"a": 1, "b": 2}
    assert make_space(tune, default={"b": 5, "a": 1}).default().params == (("a", 1), ("b", 5))
    with pytest.raises(EmptySpaceError, match=r"'a > b \+ 10' leave none of 4"):
        make_space(tune, ["a > b + 10"]).default()
    for wrong, part in (({"c": 1}, "names 'c'"), ({"a": 9}, "a=9"), ({"a": True}, "a=True"), (5, "mapping")):
        with pytest.raises(TunableError, match=part):
            make_space(tune, default=wrong)
    with pytest.raises(TunableError, match="breaks the restriction 'a < b'"):
        make_space(tune, ["a < b"], default={"b": 2})


def test_resolve():
    space = make_space({"a": [1, 2], "flag": [True, False], "t": [(1, 2), (3, 4)]}, ["a == 1 or flag"])
    assert space.resolve({"a": 2}).as_dict() == {"a": 2, "flag": True, "t": (1, 2)}
    assert space.resolve({"t": [3, 4]}).as_dict()["t"] == (3, 4)
    assert space.resolve({"a": np.int32(2)}).as_dict()["a"] == 2
    for config, part in (
        ({"b": 1}, "names 'b', which is none of the tunables a, flag, t"),
        ({"a": 3}, r"a=3, which is none of its values \[1, 2\]"),
        ({"a": True}, "a=True"),
        ({"flag": 1}, "flag=1"),
        ({"a": None}, "a=None"),
        ({"a": 2, "flag": False}, "breaks the restriction 'a == 1 or flag'"),
        ([("a", 1)], "mapping"),
    ):
        with pytest.raises(ConfigError, match=part):
            space.resolve(config)


def test_allows_is_strict():
    space = make_space({"a": [1, 2], "flag": [True, False]}, ["a == 1 or flag"])
    assert space.allows({"a": 2, "flag": True})
    for wrong in (
        {"a": 2},
        {"a": 2, "flag": 1},
        {"a": 2, "flag": False},
        {"a": 2, "flag": True, "x": 1},
        {"a": True, "flag": True},
    ):
        assert not space.allows(wrong)


# --- callables by name ------------------------------------------------------------------------------------------------


def test_call_named_passes_what_is_wanted():
    names = ["x", "y", "items"]
    m = {"x": 1, "y": 2, "items": 3}
    assert call_named(lambda items, x: (items, x), names)(m) == (3, 1)
    assert call_named(lambda: 5, names)(m) == 5
    assert call_named(lambda y: y, names)(m) == 2
    assert call_named(lambda x, *, items: (x, items), names)(m) == (1, 3)
    assert call_named(lambda x, scale=10: x * scale, names)(m) == 10
    assert call_named(lambda scale=10, y=0: y * scale, names)(m) == 20

    def positional(x, /, y):
        return x, y

    wanted = call_named(positional, names)
    assert wanted(m) == (1, 2) and wanted.names == ("x", "y")


@pytest.mark.parametrize(
    ("fn", "part"),
    [
        (lambda *a: 0, r"\*a"),
        (lambda **k: 0, r"\*\*k"),
        (lambda z: 0, "wants 'z', which is none of x, y"),
        (print, r"\*args|cannot tell"),
    ],
)
def test_call_named_refuses(fn, part):
    with pytest.raises(OptionError, match=part) as problem:
        call_named(fn, ["x", "y"], "ndrange=")
    assert str(problem.value).startswith("ndrange=: ")


# --- work-groups ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "chosen", "expected"),
    [
        (UNSET, {"block": 64}, (64,)),
        (UNSET, {"block": (8, 4)}, (8, 4)),
        (UNSET, {"block": 64, "block_size_x": 8}, (64,)),
        (UNSET, {"block_size_x": 8}, (8,)),
        (UNSET, {"block_size_y": 8}, (1, 8)),
        (UNSET, {"block_size_z": 2, "block_size_x": 8}, (8, 1, 2)),
        (UNSET, {"items": 8}, None),
        (None, {"block": 64}, None),
        (("items", 4), {"items": 8}, (8, 4)),
        ((16, 4), {}, (16, 4)),
        ("items", {"items": 8}, (8,)),
        ("items", {"items": (8, 2)}, (8, 2)),
        (32, {}, (32,)),
        (lambda items: (items, 2), {"items": 8, "block": 64}, (8, 2)),
        (lambda items: items, {"items": np.int64(8)}, (8,)),
    ],
)
def test_workgroup(option, chosen, expected):
    assert make_workgroup(option, chosen)(chosen) == expected


@pytest.mark.parametrize(
    ("option", "chosen", "part"),
    [
        (UNSET, {"block": 0}, "block gives the work-group size 0"),
        (UNSET, {"block": True}, "True"),
        (UNSET, {"block": "big"}, "'big'"),
        (UNSET, {"block": (8, -1)}, "positive"),
        (UNSET, {"block": 8.0}, "positive"),
        (UNSET, {"block": ()}, "empty"),
        (lambda b: None, {"b": 1}, "None"),
        (("b", "b"), {"b": (1, 2)}, "positive"),
    ],
)
def test_wrong_workgroup_sizes(option, chosen, part):
    with pytest.raises(WorkgroupError, match=part):
        make_workgroup(option, chosen)(chosen)


def test_wrong_workgroup_options():
    with pytest.raises(WorkgroupError, match="names 'c', which is none of the tunables a, b"):
        make_workgroup(("a", "c"), ["a", "b"])
    with pytest.raises(WorkgroupError, match="positive"):
        make_workgroup((0,), ["a"])
    with pytest.raises(OptionError, match="workgroup=: "):
        make_workgroup(lambda c: c, ["a"])


def test_fit_workgroup():
    assert fit_workgroup((8,), 3) == (8, 1, 1) and fit_workgroup((8, 2), 2) == (8, 2)
    with pytest.raises(WorkgroupError, match="has 2 dimensions, the ndrange only 1"):
        fit_workgroup((8, 1), 1)
