from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jlkern import log
from jlkern.errors import OptionError
from jlkern.knobs import Knobs, describe, knobs


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name, knob in list(vars(Knobs).items()):
        if hasattr(knob, "env"):
            monkeypatch.delenv(knob.env, raising=False)
            knobs.__dict__.pop(name, None)
    yield
    knobs.__dict__.clear()


def test_layers_default_env_assignment_scope(monkeypatch):
    assert knobs.frozen is False
    monkeypatch.setenv("JLKERN_FROZEN", "yes")
    assert knobs.frozen is True
    knobs.frozen = False
    assert knobs.frozen is False
    with knobs.scope(frozen=True):
        assert knobs.frozen is True
        with knobs.scope(check_bounds=True):
            assert knobs.frozen is True and knobs.check_bounds is True
        assert knobs.check_bounds is False
    assert knobs.frozen is False
    del knobs.frozen
    assert knobs.frozen is True


def test_scope_ends_with_an_exception_and_stays_in_its_thread():
    seen = []
    with pytest.raises(RuntimeError), knobs.scope(frozen=True):
        thread = threading.Thread(target=lambda: seen.append(knobs.frozen))
        thread.start()
        thread.join()
        raise RuntimeError
    assert seen == [False] and knobs.frozen is False


@pytest.mark.parametrize(
    ("env", "text", "name", "expected"),
    [
        ("JLKERN_CHECK_BOUNDS", "maybe", "check_bounds", "bool"),
        ("JLKERN_ENGINE", "fortran", "engine", "auto, numba, julia"),
        ("JLKERN_SCRATCH_LIMIT", "lots", "scratch_limit", "bytes"),
    ],
)
def test_error_names_variable_value_and_expectation(monkeypatch, env, text, name, expected):
    monkeypatch.setenv(env, text)
    with pytest.raises(OptionError) as problem:
        getattr(knobs, name)
    for part in (env, repr(text), expected):
        assert part in str(problem.value)


def test_bad_assignments_and_names():
    with pytest.raises(OptionError, match=r"check_bounds='x'"):
        knobs.check_bounds = "x"
    with pytest.raises(OptionError, match="no knob 'frosen'"):
        knobs.frosen = True
    with pytest.raises(OptionError, match="no knob 'frosen'"), knobs.scope(frosen=True):
        pass


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("512", 512), ("2k", 2048), ("1.5MiB", 3 << 19), ("2GB", 2 << 30), ("1g", 1 << 30)]
)
def test_byte_sizes(monkeypatch, text, size):
    monkeypatch.setenv("JLKERN_SCRATCH_LIMIT", text)
    assert knobs.scratch_limit == size


def test_cache_dir(monkeypatch, tmp_path):
    assert knobs.cache_dir.name == "jlkern"
    monkeypatch.setenv("JLKERN_CACHE_DIR", str(tmp_path))
    assert knobs.cache_dir == tmp_path
    knobs.cache_dir = "~/x"
    assert knobs.cache_dir == Path.home() / "x"


def test_describe_lists_every_knob():
    rows = describe()
    assert {"JLKERN_CACHE_DIR", "JLKERN_FROZEN"} <= {env for env, _, _ in rows}
    assert all(doc for _, _, doc in rows)


def test_log_is_silent_and_carries_facts(caplog, capfd):
    logger = log.get("jlkern.test")
    logger.warning("unheard")
    assert capfd.readouterr() == ("", "")
    with caplog.at_level(logging.INFO, logger="jlkern"):
        log.event(logger, logging.INFO, "trial", config="block=1", status="ok")
    assert caplog.records[-1].facts == {"config": "block=1", "status": "ok"}
    assert "trial config=block=1 status=ok" in caplog.text


def test_log_goes_to_stderr_when_asked():
    code = "from jlkern import log; log.get('jlkern.x').info('heard'); log.get('jlkern.x').debug('not')"
    done = subprocess.run([sys.executable, "-c", code], env={"JLKERN_LOG": "info"}, capture_output=True, text=True)
    assert done.stderr == "jlkern.x: heard\n" and done.stdout == ""


def test_all_knobs_at_a_glance(monkeypatch):
    monkeypatch.setenv("JLKERN_PROGRESS", "perhaps")
    with knobs.scope(frozen=True, cache_dir="somewhere"):
        text = repr(knobs)
    assert text.startswith("<jlkern knobs: cache_dir='") and "somewhere', " in text and "frozen=True" in text
    assert "progress=<JLKERN_PROGRESS='perhaps' is not valid>" in text
