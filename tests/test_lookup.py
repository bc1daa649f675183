"""Layers of memory: what counts as a hit, and in which order."""

from __future__ import annotations

from dataclasses import replace

from jlkern.engines.base import Environment
from jlkern.memo.key import MemoKey
from jlkern.memo.lookup import FAR, lookup, nearest
from jlkern.memo.store import Store, Winner
from jlkern.space import Config, make_space

SPACE = make_space({"block": [64, 128], "flag": [True, False]}, ["not (block == 128 and flag)"])
KEY = MemoKey(
    "numba",
    "a" * 64,
    (("block", "const"), ("flag", "const")),
    ("float32[1]F",),
    (("y", (1000,)),),
    Environment((("v", "1"),), (("isa", "a"),)),
)
GOOD = Config((("block", 128), ("flag", False)), (("jam", 2),))
OTHER = Config((("block", 64), ("flag", False)))


def config(block, flag):
    return Config((("block", block), ("flag", flag)))


def shaped(n):
    return KEY.with_shapes((("y", (n,)),))


def test_a_hit_keeps_the_schedule():
    store = Store(None)
    assert lookup(store, KEY, SPACE) is None
    store.publish(KEY, Winner(GOOD, 1e-3))
    found = lookup(store, KEY, SPACE)
    assert found.config == GOOD and found.origin == "user" and found.winner.rank == "exact"


def test_what_the_space_does_not_allow_is_a_miss():
    for wrong in (
        config(256, False),  # outside the list
        config(128, True),  # breaks the restriction
        config(64, 1),  # 1 is not True
        Config((("block", 64),)),
        Config((("block", 64), ("flag", True), ("x", 1))),
        Config((("block", 64), ("block", 64), ("flag", True))),
    ):
        store = Store(None)
        store.publish(KEY, Winner(wrong))
        assert lookup(store, KEY, SPACE) is None and nearest(store, KEY, SPACE) is None


def test_a_lower_rank_is_used_when_the_better_one_is_not_allowed():
    store = Store(None)
    store.publish(KEY, Winner(config(256, False)))
    store.publish(replace(KEY, environment=Environment((("v", "0"),), (("isa", "a"),))), Winner(GOOD))
    found = lookup(store, KEY, SPACE)
    assert found.config == GOOD and found.winner.rank == "class"


def test_users_before_packages_within_a_rank():
    store = Store(None)
    shipped = [Winner(OTHER, rank="exact")]
    assert lookup(store, KEY, SPACE, shipped).origin == "package"
    elsewhere = replace(KEY, environment=Environment((("v", "0"),), (("isa", "b"),)))
    store.publish(elsewhere, Winner(GOOD))
    assert lookup(store, KEY, SPACE, shipped).origin == "package"  # the user's is of another class of machine
    assert lookup(store, KEY, SPACE, [replace(shipped[0], rank="other")]).origin == "user"
    store.publish(KEY, Winner(GOOD))
    assert lookup(store, KEY, SPACE, shipped).origin == "user"


def test_nearest_shape():
    store = Store(None)
    store.publish(shaped(100), Winner(OTHER))
    store.publish(shaped(900), Winner(GOOD))
    store.publish(shaped(5000), Winner(OTHER))
    found = nearest(store, KEY, SPACE)
    assert found.config == GOOD and found.origin == "nearest" and found.winner.shapes == (("y", (900,)),)
    assert lookup(store, KEY, SPACE) is None
    # Other types, dimensions or sources have nothing to say.
    assert nearest(store, replace(KEY, signature=("float64[1]F",)), SPACE) is None
    assert nearest(store, KEY.with_shapes((("y", (1000, 1)),)), SPACE) is None
    assert nearest(store, replace(KEY, source="b" * 64), SPACE) is None


def test_nearest_does_not_reach_too_far_and_prefers_this_machine():
    store = Store(None)
    store.publish(shaped(1), Winner(OTHER))
    assert nearest(store, shaped(2 ** int(FAR)), SPACE) is not None
    assert nearest(store, shaped(2 ** int(FAR + 1)), SPACE) is None
    elsewhere = replace(KEY, environment=Environment((("v", "0"),), (("isa", "b"),)))
    store.publish(elsewhere, Winner(OTHER))
    assert nearest(store, KEY, SPACE).winner.rank == "other"
    store.publish(KEY, Winner(GOOD))
    assert nearest(store, KEY, SPACE).config == GOOD
