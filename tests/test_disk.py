"""What is kept on the disk: read back only when it is whole and nobody else can have written it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from jlkern import disk
from jlkern.knobs import knobs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where files are kept; nothing is there yet."""
    monkeypatch.setenv("JLKERN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(disk, "own_version", lambda: "1")  # others may be editing jlkern while this runs
    monkeypatch.setattr(disk, "_unswept", 0)
    return tmp_path / "cache" / disk.FOLDER


def read(key: str = "key") -> Any:
    return disk.read(key, lambda facts, data: (facts, data))


def only(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_facts_and_bytes_come_back(folder: Path) -> None:
    assert read() is None
    disk.write("key", {"a": [1, 2.5, None, "ä\n"]}, b"\n\0bytes\n")
    assert read() == ({"a": [1, 2.5, None, "ä\n"]}, b"\n\0bytes\n")
    disk.write("key", [], b"")
    assert read() == ([], b"")
    assert read("other") is None


def test_folder_and_files_are_the_users_alone(folder: Path) -> None:
    old = os.umask(0)
    try:
        disk.write("key", 1)
    finally:
        os.umask(old)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert only(folder).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_is_left_alone(
    folder: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    disk.write("key", 1)
    folder.chmod(mode)
    assert read() is None
    assert "can be written by others" in caplog.text
    disk.write("new", 1)
    assert len(list(folder.iterdir())) == 1
    folder.chmod(0o700)
    assert read() == (1, b"")


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_can_write_is_not_read(folder: Path, mode: int) -> None:
    disk.write("key", 1)
    only(folder).chmod(mode)
    assert read() is None
    disk.write("key", 2)
    assert read() == (2, b"")
    assert only(folder).stat().st_mode & 0o777 == 0o600


def test_another_users_folder_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.write("key", 1)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert read() is None
    disk.write("new", 1)
    assert len(list(folder.iterdir())) == 1


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    disk.write("key", 1)
    real = only(folder)
    real.rename(tmp_path / "elsewhere")
    real.symlink_to(tmp_path / "elsewhere")
    assert read() is None
    real.unlink()
    (tmp_path / "elsewhere").rename(real)
    folder.rename(tmp_path / "real")
    folder.symlink_to(tmp_path / "real")
    assert read() is None
    disk.write("new", 1)
    assert len(list((tmp_path / "real").iterdir())) == 1


def test_what_is_no_file_is_not_read(folder: Path) -> None:
    disk.write("key", 1)
    path = only(folder)
    path.unlink()
    os.mkfifo(path, 0o600)
    assert read() is None  # and does not wait for a writer
    path.unlink()
    path.mkdir()
    assert read() is None
    disk.write("key", 1)  # cannot be put there: nothing is raised, and nothing is left beside it
    assert list(folder.iterdir()) == [path]


def test_torn_and_damaged_files_do_not_exist(folder: Path) -> None:
    disk.write("key", {"a": 1}, b"some bytes")
    path = only(folder)
    whole = path.read_bytes()
    damaged = [whole[:k] for k in range(len(whole))] + [whole + b"x"]
    damaged += [whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :] for k in range(len(whole))]
    for data in damaged:
        path.write_bytes(data)
        assert read() is None, data
    disk.write("key", {"a": 1}, b"some bytes")
    assert path.read_bytes() == whole


def test_a_renamed_file_does_not_exist(folder: Path) -> None:
    disk.write("key", 1)
    path = only(folder)
    disk.write("other", 2)
    (other,) = (p for p in folder.iterdir() if p != path)
    path.rename(other)
    assert read("other") is None


def test_what_cannot_be_used_counts_as_not_there(folder: Path) -> None:
    disk.write("key", {"a": 1})
    assert disk.read("key", lambda facts, data: facts["b"]) is None


def test_another_version_keeps_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.write("key", 1)
    monkeypatch.setattr(disk, "own_version", lambda: "2")
    assert read() is None
    disk.write("key", 2)
    monkeypatch.setattr(disk, "own_version", lambda: "1")
    assert read() == (1, b"")


@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_disk_that_takes_nothing_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch, problem: int) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise OSError(problem, os.strerror(problem))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        disk.write("key", 1)
    assert list(folder.iterdir()) == []
    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", refuse)
        folder.rmdir()
        disk.write("key", 1)
    assert not folder.exists()


def test_a_cache_dir_that_is_a_file_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("JLKERN_CACHE_DIR", str(tmp_path / "file" / "cache"))
    disk.write("key", 1)
    assert read() is None


def test_nothing_is_kept_when_the_knob_is_0(folder: Path) -> None:
    disk.write("key", 1)
    with knobs.scope(code_cache=0):
        assert read() is None
        disk.write("new", 1)
    assert len(list(folder.iterdir())) == 1


def test_the_least_recently_used_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_SWEEP_AFTER", 1)
    before = time.time() - 100 * 86400
    for k in range(10):
        disk.write(f"{k}", k, bytes(1000))
        for path in folder.iterdir():
            if path.stat().st_mtime > before + 100:
                os.utime(path, (before + k, before + k))
    assert read("0") is not None  # used now, so it is the newest
    with knobs.scope(code_cache=8000):
        disk.write("10", 10, bytes(1000))
    kept = [k for k in range(11) if read(f"{k}") is not None]
    assert kept == [0, 7, 8, 9, 10]
    assert sum(p.stat().st_size for p in folder.iterdir()) <= 8000 * 0.8


def test_what_killed_writers_left_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_SWEEP_AFTER", 1)
    disk.write("key", 1)
    (folder / "old.tmp").touch()
    (folder / "new.tmp").touch()
    os.utime(folder / "old.tmp", (time.time() - 7200, time.time() - 7200))
    disk.write("other", 1)
    assert not (folder / "old.tmp").exists()
    assert (folder / "new.tmp").exists()


def test_clearing_removes_all(folder: Path) -> None:
    disk.write("key", 1)
    disk.write("other", 2)
    assert disk.clear() == 2
    assert read() is None
    assert disk.clear() == 0


def test_a_problem_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert disk.problem() == ""
    folder.chmod(0o777)
    assert "can be written by others" in disk.problem()
    with knobs.scope(code_cache=0):
        assert "JLKERN_CODE_CACHE" in disk.problem()
    monkeypatch.setattr(disk, "own_version", lambda: None)
    assert "changed" in disk.problem()


WRITER = """
import sys
from jlkern import disk
disk.own_version = lambda: "1"
disk._SWEEP_AFTER = 50_000
seen = 0
for turn in range(200):
    number = turn % 7
    disk.write(f"{number}", number, bytes([number]) * 3000)
    found = disk.read(f"{number}", lambda facts, data: (facts, data))
    if found is not None:
        assert found == (number, bytes([number]) * 3000), found
        seen += 1
print(seen)
"""


def test_writers_at_the_same_time(folder: Path) -> None:
    environment = {**os.environ, "JLKERN_CODE_CACHE": "15000"}  # less than all of it, so that they remove files too
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    counts = [int(process.communicate()[0]) for process in running]
    assert all(process.returncode == 0 for process in running)
    assert all(count > 0 for count in counts)
    assert not [p for p in folder.iterdir() if p.name.endswith(".tmp")]


def test_threads_at_the_same_time(folder: Path) -> None:
    wrong: list[Any] = []

    def work() -> None:
        for turn in range(100):
            disk.write(f"{turn % 3}", turn % 3)
            if read(f"{turn % 3}") != (turn % 3, b""):
                wrong.append(turn)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- jlkern's own version ---------------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that counts as jlkern's own."""
    (tmp_path / "below").mkdir()
    for name in ("disk.py", "below/a.py", "data.txt"):
        (tmp_path / name).write_text("1")
        os.utime(tmp_path / name, (1000, 1000))
    monkeypatch.setattr(disk, "__file__", str(tmp_path / "disk.py"))
    return tmp_path


def version() -> str | None:
    return disk.own_version.__wrapped__()


def test_an_edit_is_another_version(package: Path) -> None:
    first = version()
    assert first is not None
    assert version() == first
    os.utime(package / "below" / "a.py", (1001, 1001))
    second = version()
    (package / "below" / "a.py").write_text("11")
    os.utime(package / "below" / "a.py", (1001, 1001))
    third = version()
    (package / "below" / "b.py").write_text("1")
    os.utime(package / "below" / "b.py", (1001, 1001))
    fourth = version()
    os.utime(package / "data.txt", (1001, 1001))
    assert version() == fourth
    assert len({first, second, third, fourth}) == 4


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says when a process started")
def test_an_edit_while_the_process_runs_ends_it(package: Path) -> None:
    assert version() is not None
    now = time.time()
    os.utime(package / "below" / "a.py", (now, now))
    assert version() is None


def test_files_that_cannot_be_looked_at(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "__file__", str(package / "archive.zip" / "disk.py"))
    assert version() is None


def test_without_a_version_nothing_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "own_version", lambda: None)
    disk.write("key", 1)
    assert read() is None
    assert not folder.exists()
