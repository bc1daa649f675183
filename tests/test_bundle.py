"""Bundles: what is exported comes back, the shipped comes after the user's own, and nothing in a file is trusted."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from test_lookup import GOOD, KEY, OTHER, SPACE

import jlkern
from jlkern.cli import main
from jlkern.engines.base import Environment
from jlkern.memo import bundle
from jlkern.memo.store import Store, Winner
from jlkern.space import Config

ROOT = Path(__file__).resolve().parent.parent
WINNER = Winner(GOOD, 1e-3, OTHER, 2e-3, 7, True, 1.7e9)

KERNELS = """
import jlkern

double = jlkern.from_source(
    "@kernel function double!(y) i = @index(Global); @inbounds y[i] *= 2 end", tune={"block": [32, 64]}, max_evals=2
)
"""


@pytest.fixture(autouse=True)
def memo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("JLKERN_CACHE_DIR", str(tmp_path / "memo"))
    monkeypatch.setenv("JLKERN_LOCK_DIR", str(tmp_path))
    bundle.forget()
    yield tmp_path / "memo"
    bundle.forget()


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "jlkern_bundle_kernels.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("jlkern_bundle_kernels")
    sys.modules.pop("jlkern_bundle_kernels")


def call(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_records_come_back_as_they_were() -> None:
    far = KEY.with_shapes((("y", (3, 4)), ("key", "text"), ("n", 1.5)))
    text = bundle.write_bundle([(KEY, WINNER), (far, Winner(OTHER, created=1.0))])
    assert dict(bundle.read_bundle(text)) == {
        KEY: replace(WINNER, shapes=KEY.shapes),
        far: Winner(OTHER, created=1.0, shapes=far.shapes),
    }
    assert bundle.write_bundle(bundle.read_bundle(text)) == text


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"format": "other", "records": []}', '{"format": "jlkern-bundle-1"}', "[" * 100_000]
)
def test_other_text_is_no_bundle(text: str) -> None:
    with pytest.raises(ValueError):
        bundle.read_bundle(text)


CHANGES: list[tuple[str, Any]] = [
    ("engine", 3), ("source", None), ("tunables", [["block"]]), ("signature", "f8"), ("signature", [1]),
    ("shapes", {"y": 3}), ("options", None), ("exact", [["v", 1]]), ("same_class", None), ("config", None),
    ("config", {"params": []}), ("config", {"params": [["block", {"$": "exec"}]], "schedule": []}),
    ("config", {"params": [["block", float("nan")]], "schedule": []}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_a_record_of_another_shape_does_not_exist(name: str, value: Any) -> None:
    data = json.loads(bundle.write_bundle([(KEY, WINNER), (KEY.with_shapes(()), WINNER)]))
    data["records"][0][name] = value
    data["records"].append(7)
    assert len(bundle.read_bundle(json.dumps(data))) == 1


def test_strange_numbers_are_dropped() -> None:
    data = json.loads(bundle.write_bundle([(KEY, WINNER)]))
    data["records"][0].update(seconds=-1, default_seconds="1", trials=-3, noisy="yes", created=None)
    ((_, winner),) = bundle.read_bundle(json.dumps(data))
    assert (winner.seconds, winner.default_seconds, winner.trials, winner.noisy) == (None, None, 0, False)


def test_taking_in_keeps_what_this_machine_found() -> None:
    store = Store(None)
    store.publish(KEY, Winner(OTHER))
    elsewhere = replace(KEY, environment=Environment((("v", "9"),), (("isa", "a"),)))
    records = [(KEY, WINNER), (elsewhere, WINNER)]
    assert bundle.take_in(store, records) == 1
    assert store.winner(KEY).config == OTHER
    assert bundle.take_in(store, records, override=True) == 2
    assert store.winner(KEY).config == GOOD
    assert len(bundle.export(store)) == 2 and bundle.export(store, ["b" * 64]) == []


def test_export_and_import(kernels: Any, tmp_path: Path, memo: Path) -> None:
    y = np.zeros(100)
    assert "nothing is remembered" in call("export", "jlkern_bundle_kernels").output
    best = kernels.double.tune(y).best
    result = call("export", "jlkern_bundle_kernels", "-o", str(tmp_path / "out.json"))
    assert result.exit_code == 0 and "1 records in" in result.output
    assert call("cache", "clear", "--yes").exit_code == 0
    assert kernels.double.config_for(y) is None
    assert "1 of 1 records taken in" in call("import", str(tmp_path / "out.json")).output
    assert kernels.double.config_for(y) == best and kernels.double.explain(y).origin == "memo"
    assert "0 of 1 records taken in, 1 known" in call("import", str(tmp_path / "out.json")).output
    assert "1 of 1" in call("import", "--replace", str(tmp_path / "out.json")).output
    for words, message in (
        (("export",), "pass the modules"),
        (("export", "--all"), "needs --output"),
        (("export", "jlkern_no_such_module"), "cannot import"),
        (("import", str(tmp_path / "jlkern_bundle_kernels.py")), "cannot read"),
    ):
        result = call(*words)
        assert result.exit_code and message in result.output


def test_a_packages_kernels_are_written_beside_their_own_module(kernels: Any, tmp_path: Path) -> None:
    (tmp_path / "jlkern_facade.py").write_text("from jlkern_bundle_kernels import double\n")
    kernels.double.tune(np.zeros(100))
    result = call("export", "jlkern_facade")
    assert result.exit_code == 0 and "1 records in" in result.output
    assert (tmp_path / "jlkern_bundle_kernels.jlkern.json").exists()
    assert not (tmp_path / "jlkern_facade.jlkern.json").exists()


def test_user_then_package_then_nearest_then_default(kernels: Any, tmp_path: Path) -> None:
    y = np.zeros(100)
    best = kernels.double.tune(y).best
    assert call("export", "jlkern_bundle_kernels").exit_code == 0
    shipped = tmp_path / "jlkern_bundle_kernels.jlkern.json"
    assert kernels.double.explain(y).origin == "memo"
    call("cache", "clear", "--yes")
    bundle.forget()
    explanation = kernels.double.explain(y)
    assert (explanation.origin, explanation.config) == ("package", best)
    assert "shipped with a package" in str(explanation) and str(shipped) in str(explanation)
    with jlkern.frozen() as misses:
        kernels.double(y)
        assert not misses
        assert kernels.double.explain(np.zeros(200)).origin == "nearest"
        assert kernels.double.explain(np.zeros(1 << 24)).origin == "default"
    assert kernels.double.explain(np.zeros(200)).origin == "unknown"
    # a file of another kind of machine counts only where nothing is tuned
    data = json.loads(shipped.read_text())
    data["records"][0].update(exact=[["v", "x"]], same_class=[["isa", "x"]])
    shipped.write_text(json.dumps(data))
    bundle.forget()
    assert kernels.double.explain(y).origin == "unknown"
    with jlkern.frozen():
        assert kernels.double.explain(y).origin == "nearest"


def test_a_configuration_outside_the_space_is_a_miss(kernels: Any, tmp_path: Path) -> None:
    y = np.zeros(100)
    kernels.double.tune(y)
    call("export", "jlkern_bundle_kernels")
    call("cache", "clear", "--yes")
    shipped = tmp_path / "jlkern_bundle_kernels.jlkern.json"
    text = shipped.read_text()
    for config in ([["block", 128]], [["block", True]], [["other", 32]], []):
        data = json.loads(text)
        data["records"][0]["config"]["params"] = config
        shipped.write_text(json.dumps(data))
        bundle.forget()
        assert kernels.double.explain(y).origin == "unknown"
    shipped.write_bytes(b"\xff\xfe broken")
    bundle.forget()
    assert kernels.double.explain(y).origin == "unknown"


def test_an_installed_package_names_its_bundle(kernels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.zeros(100)
    kernels.double.tune(y)
    (tmp_path / "jlkern_bundle_package" / "data").mkdir(parents=True)
    (tmp_path / "jlkern_bundle_package" / "__init__.py").write_text("raise RuntimeError('imported')")
    call("export", "--all", "-o", str(tmp_path / "jlkern_bundle_package" / "data" / "tuned.json"))
    call("cache", "clear", "--yes")
    entries = [
        importlib.metadata.EntryPoint("a", "jlkern_bundle_package.data:tuned.json", bundle.GROUP),
        importlib.metadata.EntryPoint("b", "jlkern_no_such_package:tuned.json", bundle.GROUP),
        importlib.metadata.EntryPoint("c", "", bundle.GROUP),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **kwargs: entries)
    bundle.forget()
    assert kernels.double.explain(y).origin == "package"
    assert "jlkern_bundle_package" not in sys.modules


def test_the_space_decides_about_the_shipped_and_the_nearest_alike() -> None:
    from jlkern.memo.lookup import nearest

    store = Store(None)
    other = Winner(OTHER, shapes=(("y", (1001,)),), bundle="file")
    wrong = Winner(Config((("block", 1), ("flag", False))), shapes=(("y", (1000,)),), bundle="file")
    assert nearest(store, KEY, SPACE, [other, wrong]).config == OTHER
    store.publish(KEY.with_shapes((("y", (1001,)),)), Winner(GOOD))
    assert nearest(store, KEY, SPACE, [other]).config == GOOD


EXAMPLE = """
import numpy as np, jlkern, smoothing
from smoothing.kernels import box
picture = np.random.default_rng(0).random((200, 200), np.float32)
with jlkern.frozen() as misses:
    out = smoothing.smooth(picture)
want = picture.copy()
want[1:-1, 1:-1] = sum(picture[1 + i : 199 + i, 1 + j : 199 + j] for i in (-1, 0, 1) for j in (-1, 0, 1)) / 9
print(np.allclose(out, want, rtol=1e-5), len(misses), box.explain(out, picture).origin)
"""


def test_the_example_library_ships_tuned_kernels(tmp_path: Path) -> None:
    library = tmp_path / "library"
    shutil.copytree(ROOT / "examples" / "library", library, ignore=shutil.ignore_patterns("__pycache__"))
    records = bundle.read_bundle((library / "smoothing" / "kernels.jlkern.json").read_text())
    sys.path.insert(0, str(library))
    try:
        from smoothing.kernels import box  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(library))
    declaration = box._runtime.declaration
    # what is in the repository belongs to the source beside it, and to its space
    assert {key.source for key, _ in records} == {declaration.source.digest}
    assert all(declaration.space.allows(winner.config.as_dict()) for _, winner in records)
    # for this machine: as if it had been tuned here, then in a new process with an empty memo
    for key, winner in records:
        box_key = replace(key, environment=jlkern.engines.select.engine_named("numba").environment())
        bundle.take_in(jlkern.choice.the_store(), [(box_key, winner)])
    assert call("export", "smoothing.kernels").exit_code == 0
    path = os.pathsep.join([str(library), str(ROOT), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "JLKERN_CACHE_DIR": str(tmp_path / "empty")}
    done = subprocess.run([sys.executable, "-c", EXAMPLE], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["True", "0", "package"], done.stderr
