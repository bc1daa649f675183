"""The memo's file: what it keeps, what it survives, and that it never raises."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlkern.engines.base import Environment
from jlkern.errors import MemoWarning
from jlkern.knobs import knobs
from jlkern.memo import database
from jlkern.memo import store as store_module
from jlkern.memo.key import MemoKey, config_text, distance, parse_config
from jlkern.memo.store import FILE_NAME, Store, TrialRecord, Winner, open_store
from jlkern.space import Config

ENVIRONMENT = Environment((("version", "1"), ("threads", "2")), (("isa", "avx2"),))
KEY = MemoKey(
    engine="numba",
    source="a" * 64,
    tunables=(("block", "const"), ("N", "val 1")),
    signature=("float32[1]F", "float32"),
    shapes=(("y", (1024, 8)), ("ndrange", (1024,))),
    environment=ENVIRONMENT,
)
CONFIG = Config((("block", 64), ("N", True)), (("jam", 4),))


def on(key: MemoKey, version: str, isa: str = "avx2") -> MemoKey:
    return replace(key, environment=Environment((("version", version), ("threads", "2")), (("isa", isa),)))


@pytest.fixture(autouse=True)
def _fresh_warning():
    database._reset_warning()
    yield
    database._reset_warning()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / FILE_NAME


values = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)
configs = st.builds(
    Config,
    st.lists(st.tuples(st.text(min_size=1), values), max_size=4).map(tuple),
    st.lists(st.tuples(st.text(min_size=1), values), max_size=2).map(tuple),
)

# --- keys and configurations as text ----------------------------------------------------------------------------------


@given(configs)
def test_configurations_come_back_with_their_types(config):
    assert parse_config(config_text(config)) == config
    assert config_text(parse_config(config_text(config))) == config_text(config)


@given(configs, configs)
def test_different_configurations_have_different_text(a, b):
    assert (a == b) == (config_text(a) == config_text(b))


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["params", "schedule", "x"]), inner),
    max_leaves=8,
)


@given(junk)
def test_junk_is_no_configuration(data):
    config = parse_config(json.dumps(data))
    assert config is None or parse_config(config_text(config)) == config


@pytest.mark.parametrize(
    "text", [None, 3, b"{}", "", "{", "[" * 100_000, "{}", '{"params":[["a",NaN]],"schedule":[]}', "x" * (2 << 20)]
)
def test_broken_text_is_no_configuration(text):
    assert parse_config(text) is None


def test_the_key_depends_on_each_part_and_its_text_is_stable():
    changes = {
        "engine": "julia",
        "source": "b" * 64,
        "tunables": (("block", "const"), ("N", "val 2")),
        "signature": ("float64[1]F", "float32"),
        "shapes": (("y", (1024, 9)), ("ndrange", (1024,))),
        "options": (("check_bounds", True),),
    }
    ids = {KEY.id} | {replace(KEY, **{name: value}).id for name, value in changes.items()}
    assert len(ids) == len(changes) + 1
    assert on(KEY, "2").id == KEY.id and on(KEY, "2").exact != KEY.exact
    assert on(KEY, "2").same_class == KEY.same_class != on(KEY, "1", "sse").same_class
    families = {replace(KEY, **{name: value}).family for name, value in changes.items()} | {KEY.family}
    assert len(families) == len(changes)  # all but the shapes
    # Records of earlier versions are found by this text, so it may not change by accident.
    assert KEY.id == "6786a234864b9c646d8489f7e886c009"
    code = "from tests.test_store import KEY; print(KEY.id, KEY.exact)"
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
        )
        assert done.stdout.decode().split() == [KEY.id, KEY.exact], done.stderr


def test_distance_of_shapes():
    assert distance(KEY.shapes, KEY.shapes) == 0
    assert distance((("y", (4,)), ("k", "a")), (("y", (16,)), ("k", "a"))) == 2
    assert distance((("k", "a"),), (("k", "b"),)) == float("inf")
    assert distance((("k", 1),), (("k", True),)) == float("inf")
    assert distance((("y", (0,)),), (("y", (0,)),)) == 0
    assert distance((("y", (0,)),), (("y", (1,)),)) == float("inf")


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_a_winner_is_remembered_across_openings(path):
    store = Store(path)
    assert store.winner(KEY) is None
    store.publish(KEY, Winner(CONFIG, 1e-3, Config((("block", 1),)), 2e-3, 7, True, 123.0))
    store.close()
    winner = Store(path).winner(KEY)
    assert winner == Winner(CONFIG, 1e-3, Config((("block", 1),)), 2e-3, 7, True, 123.0, "exact", KEY.shapes)
    assert winner.speedup == 2.0
    assert Store(path).path == path


def test_a_key_has_one_winner_per_environment_and_ranks(path):
    store = Store(path)
    a, b, c, d = (Config((("block", i),)) for i in range(4))
    store.publish(on(KEY, "0", "sse"), Winner(d, created=9.0))
    store.publish(on(KEY, "2"), Winner(b, created=5.0))
    store.publish(on(KEY, "3"), Winner(c, created=6.0))
    assert [(w.config, w.rank) for w in store.winners(KEY)] == [(c, "class"), (b, "class"), (d, "other")]
    store.publish(KEY, Winner(b, created=1.0))
    store.publish(KEY, Winner(a, created=2.0))
    assert [(w.config, w.rank) for w in store.winners(KEY)] == [
        (a, "exact"), (c, "class"), (b, "class"), (d, "other"),
    ]  # fmt: skip
    assert store.winner(KEY).config == a


def test_trials_are_kept_per_configuration_and_environment(path):
    store = Store(path)
    store.begin(KEY, CONFIG)
    assert [t.status for t in store.trials(KEY)] == ["begun"]
    other = Config((("block", 64), ("N", 1)), (("jam", 4),))  # differs in a type only
    store.end(KEY, TrialRecord(CONFIG, "ok", 1e-3, 0.1, 9))
    store.end(KEY, TrialRecord(other, "wrong", reason="y[0]" * 9999))
    first, second = Store(path).trials(KEY)
    assert (first.config, first.status, first.seconds, first.spread, first.samples) == (CONFIG, "ok", 1e-3, 0.1, 9)
    assert (second.config, second.status, second.seconds) == (other, "wrong", None)
    assert second.reason.startswith("y[0]y[0]")
    assert store.trials(on(KEY, "2")) == [] == store.trials(KEY.with_shapes(()))


def test_forgetting(path):
    store = Store(path)
    for key in (KEY, on(KEY, "2")):
        store.publish(key, Winner(CONFIG))
        store.end(key, TrialRecord(CONFIG, "compile"))
    store.forget(KEY, trials_only=True)
    assert store.trials(KEY) == [] and store.winner(KEY).rank == "exact"
    store.forget(KEY)
    assert store.winner(KEY).rank == "class" and len(store.trials(on(KEY, "2"))) == 1
    assert store.clear() == 1 and store.winner(KEY) is None


def test_entries_give_keys_back(path):
    store = Store(path)
    store.publish(KEY, Winner(CONFIG, 1e-3))
    store.publish(on(KEY, "2"), Winner(CONFIG))
    found = list(store.entries())
    assert [key for key, _ in found] == [KEY, on(KEY, "2")]
    assert found[0][0].id == KEY.id and found[0][1].seconds == 1e-3 and found[0][1].rank == "exact"
    assert {w.config for w in store.family(KEY.with_shapes((("y", (1, 1)),)))} == {CONFIG}


# --- nothing read is trusted ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE winners SET config = 'x'",
        "UPDATE winners SET config = NULL",
        "UPDATE winners SET config = x'00ff'",
        """UPDATE winners SET config = '{"params":[["block",null]],"schedule":[]}'""",
        "UPDATE winners SET details = '[]'",
        "UPDATE winners SET key = '{}'",
        "UPDATE winners SET key = 5",
    ],
)
def test_a_damaged_row_does_not_exist(path, change):
    store = Store(path)
    store.publish(KEY, Winner(CONFIG, 1e-3))
    with sqlite3.connect(path) as connection:
        try:
            connection.execute(change)
        except sqlite3.IntegrityError:
            return
    assert store.winner(KEY) is None and list(store.entries()) == []


def test_damaged_numbers_are_dropped(path):
    store = Store(path)
    store.publish(KEY, Winner(CONFIG, 1e-3))
    store.end(KEY, TrialRecord(CONFIG, "ok", 1e-3))
    with sqlite3.connect(path) as connection:
        details = '{"seconds": "fast", "default": 3, "default_seconds": -1, "trials": "x", "noisy": 1}'
        connection.execute("UPDATE winners SET created = 'now', details = ?", (details,))
        connection.execute("""UPDATE trials SET details = '{"seconds": 1e999, "reason": 4, "samples": -1}'""")
    assert store.winner(KEY) == Winner(CONFIG, shapes=KEY.shapes)
    assert store.trials(KEY) == []  # an ok trial without a time


# --- what the file survives -------------------------------------------------------------------------------------------


def works(store: Store) -> bool:
    store.publish(KEY, Winner(CONFIG, 1e-3))
    store.begin(KEY, CONFIG)
    store.end(KEY, TrialRecord(CONFIG, "ok", 1e-3))
    lease = store.acquire(KEY)
    lease.renew()
    lease.release()
    return store.winner(KEY).config == CONFIG and [t.status for t in store.trials(KEY)] == ["ok"]


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"SQLite format 3\0" + b"\xff" * 5000, b"\0" * 4096])
def test_a_corrupt_file_is_set_aside_with_one_warning(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    store = Store(path)
    with pytest.warns(MemoWarning, match="corrupt") as caught:
        assert works(store)
        path2 = path.with_name("other.sqlite")
        path2.write_bytes(content)
        assert works(Store(path2))
    assert len(caught) == 1
    assert store.path == path and Store(path).winner(KEY) is not None
    (aside,) = path.parent.glob(f"{FILE_NAME}.bad-*[0-9]")
    assert aside.read_bytes() == content


def test_a_file_that_becomes_corrupt_while_open(path):
    store = Store(path)
    assert works(store)
    store.close()
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    with pytest.warns(MemoWarning, match="set aside"):
        store.winner(KEY)
    assert works(store) and store.path == path


@pytest.mark.parametrize("table", ["winners", "trials", "leases"])
def test_a_missing_table_is_a_corrupt_file(path, table):
    assert works(Store(path))
    with sqlite3.connect(path) as connection:
        connection.execute(f"DROP TABLE {table}")
    store = Store(path)
    with pytest.warns(MemoWarning, match="no such table"):
        store.publish(KEY, Winner(CONFIG))
        store.begin(KEY, CONFIG)
        store.acquire(KEY).release()
    assert works(store) and works(Store(path)) and store.path == path


def test_another_programs_database_is_left_alone(path):
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=7")
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    store = Store(path)
    with pytest.warns(MemoWarning, match="schema 7"):
        assert works(store)
    assert store.path is None and path.read_bytes() == before


def test_a_directory_that_can_not_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "sub" / FILE_NAME)
    with pytest.warns(MemoWarning, match="in memory only"):
        assert works(store)
    assert store.path is None


def test_a_path_that_is_a_directory(path):
    path.mkdir(parents=True)
    with pytest.warns(MemoWarning, match="in memory only"):
        assert works(Store(path))


def test_a_read_only_file_is_still_read(path, monkeypatch):
    store = Store(path)
    store.publish(KEY, Winner(CONFIG, 1e-3))
    store.close()
    real = sqlite3.connect

    def read_only(target, *args, **kwargs):
        if target == path:  # root may write to what is read-only, so the mode alone does not do
            kwargs["uri"] = True
            target = f"{path.absolute().as_uri()}?mode=ro"
        return real(target, *args, **kwargs)

    monkeypatch.setattr(sqlite3, "connect", read_only)
    store = Store(path)
    assert store.winner(KEY).config == CONFIG
    other = Config((("block", 2),))
    with pytest.warns(MemoWarning, match="readonly"):
        store.publish(on(KEY, "2"), Winner(other))
    assert store.path is None
    assert store.winner(KEY).config == CONFIG and store.winner(on(KEY, "2")).config == other
    assert works(store)


def test_a_full_disk(path):
    store = Store(path)
    store.publish(KEY, Winner(CONFIG, 1e-3))
    pages = store._database.read(lambda c: c.execute("PRAGMA page_count").fetchone()[0], 0)
    store._database.read(lambda c: c.execute(f"PRAGMA max_page_count={pages}").fetchall(), [])
    with pytest.warns(MemoWarning, match="full"):
        for i in range(500):
            store.end(KEY, TrialRecord(Config((("block", i),)), "compile", reason="x" * 3000))
    assert store.path is None and store.winner(KEY).config == CONFIG
    assert len(store.trials(KEY)) == 500  # what was written before is kept as well
    store.forget(KEY)
    assert works(store)


def test_a_file_that_another_process_never_unlocks(path, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    assert works(Store(path))
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    store = Store(path)
    assert store.winner(KEY).config == CONFIG  # readers go on
    with pytest.warns(MemoWarning, match="locked"):
        store.publish(on(KEY, "2"), Winner(CONFIG))
    assert works(store)
    blocker.close()


def test_a_warning_that_is_an_error_does_not_raise(tmp_path):
    (tmp_path / "file").write_text("")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert works(Store(tmp_path / "file" / FILE_NAME))


def test_an_error_of_the_caller_is_not_swallowed(path):
    store = Store(path)

    def work(connection):
        connection.execute("DELETE FROM winners")
        raise KeyboardInterrupt

    store.publish(KEY, Winner(CONFIG))
    with pytest.raises(KeyboardInterrupt):
        store._database.write(work, None)
    assert store.winner(KEY) is not None  # rolled back


def test_the_cache_directory_is_private_and_versioned(tmp_path):
    with knobs.scope(cache_dir=tmp_path / "new"):
        store = open_store()
        assert store is open_store() and works(store)
        assert store.path == tmp_path / "new" / FILE_NAME and str(database.SCHEMA_VERSION) in FILE_NAME
        assert (tmp_path / "new").stat().st_mode & 0o077 == 0
    with knobs.scope(cache_dir=tmp_path / "two"):
        assert open_store() is not store


# --- threads, forks, leases -------------------------------------------------------------------------------------------


def test_threads_share_a_store(path):
    store = Store(path)

    def write(number: int) -> None:
        for i in range(20):
            store.end(KEY, TrialRecord(Config((("block", number * 100 + i),)), "ok", 1e-3))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.trials(KEY)) == 80


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_its_own_connection(path):
    store = Store(path)
    store.publish(KEY, Winner(CONFIG))
    holding, done = threading.Event(), threading.Event()

    def hold(connection):
        holding.set()
        done.wait(10)

    thread = threading.Thread(target=lambda: store._database.read(hold, None))
    thread.start()
    holding.wait(10)
    # The store's lock is held by a thread that the child does not have.
    context = multiprocessing.get_context("fork")
    child = context.Process(target=lambda: store.publish(on(KEY, "child"), Winner(CONFIG)))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    done.set()
    thread.join()
    store.publish(on(KEY, "parent"), Winner(CONFIG))
    assert len(store.winners(KEY)) == 3


def test_a_lease_has_one_owner_until_it_is_given_back(path):
    store, other = Store(path), Store(path)
    lease = store.acquire(KEY)
    assert lease is not None and other.acquire(KEY) is None and store.acquire(KEY) is None
    assert other.acquire(on(KEY, "2")) is not None and other.acquire(KEY.with_shapes(())) is not None
    lease.release()
    with other.acquire(KEY):
        lease.release()  # of an earlier owner: nothing happens
        assert store.acquire(KEY) is None
    assert store.acquire(KEY) is not None


def test_a_lease_ends_when_it_is_not_renewed(path, monkeypatch):
    store = Store(path)
    monkeypatch.setattr(store_module, "LEASE_SECONDS", 0.05)
    lease = store.acquire(KEY)
    monkeypatch.setattr(store_module, "LEASE_SECONDS", 100)
    lease.renew()
    time.sleep(0.06)
    assert store.acquire(KEY) is None
    monkeypatch.setattr(store_module, "LEASE_SECONDS", -1)
    lease.renew()
    assert store.acquire(KEY) is not None


def test_a_lease_ends_with_its_process(path):
    code = f"""
import os, sys
from pathlib import Path
from tests.test_store import KEY
from jlkern.memo.store import Store
store = Store(Path({str(path)!r}))
assert store.acquire(KEY) is not None
print("held", flush=True)
sys.stdin.readline()
os._exit(0)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert child.stdout.readline() == b"held\n"
    store = Store(path)
    assert store.acquire(KEY) is None
    child.kill()
    child.wait()
    assert store.acquire(KEY) is not None


def test_an_owner_that_was_killed_and_is_not_waited_for_holds_nothing(path):
    if store_module._state(os.getpid())[0] == "":
        pytest.skip("the system does not tell a process's state")
    code = f"""
from pathlib import Path
from tests.test_store import KEY
from jlkern.memo.store import Store
assert Store(Path({str(path)!r})).acquire(KEY) is not None
print("held", flush=True)
input()
"""
    environment = {**os.environ, "PYTHONPATH": "."}
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    try:
        assert child.stdout.readline() == b"held\n"
        store = Store(path)
        assert store.acquire(KEY) is None
        child.kill()
        end = time.monotonic() + 10
        while store_module._state(child.pid)[0] != "Z" and time.monotonic() < end:
            time.sleep(0.01)
        assert store.acquire(KEY) is not None
    finally:
        child.communicate()


def test_a_process_id_that_is_used_again_holds_nothing(path):
    store = Store(path)
    assert store.acquire(KEY) is not None
    if not store_module._state(os.getpid())[1]:
        pytest.skip("the system does not tell when a process started")
    store._database.write(lambda c: c.execute("UPDATE leases SET started = '1'"), None)
    assert store.acquire(KEY) is not None
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    store._database.write(lambda c: c.execute("UPDATE leases SET started = '', pid = ?", (child.pid,)), None)
    assert store.acquire(KEY) is not None
    # Of another machine only the time tells.
    store._database.write(lambda c: c.execute("UPDATE leases SET started = '1', host = 'elsewhere'"), None)
    assert store.acquire(KEY) is None


def test_errno_of_the_operating_system_does_not_escape(path, monkeypatch):
    def no_space(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.mkdir", no_space)
    with pytest.warns(MemoWarning, match="No space left"):
        assert works(Store(path))
