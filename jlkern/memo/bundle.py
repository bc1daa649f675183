"""Bundles: winners as a JSON file that a package ships, or that goes from one machine to another.

1. A bundle is data: records are checked one by one, and one that is not of the right shape does not exist.
2. Nothing in it is believed beyond that: what the space of the kernel does not allow is a miss, as in the user's memo.
3. A package's bundle is never written to by a call, and counts after the user's own memo.
4. It lies beside the kernel's module as `<module>.jlkern.json` or `jlkern.json`, or an installed package names it in
   the entry point group `jlkern.bundles` as `package:file.json`, which is looked up without importing the package.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jlkern import log
from jlkern.memo.key import MemoKey, Rank, dumps
from jlkern.memo.store import Store, Winner, parse_key, parse_winner
from jlkern.space import Config

FORMAT: Final = "jlkern-bundle-1"
GROUP: Final = "jlkern.bundles"
LARGEST: Final = 64 << 20

Record = tuple[MemoKey, Winner]

_log = log.get(__name__)


# --- text -------------------------------------------------------------------------------------------------------------


def write_bundle(records: Iterable[Record]) -> str:
    """Return records as the text of a bundle, one record a line, in a fixed order.

    >>> read_bundle(write_bundle([]))
    []
    """
    lines = sorted({dumps(_record(key, winner)) for key, winner in records})
    body = ",\n    ".join(lines)
    return f'{{\n  "format": "{FORMAT}",\n  "records": [\n    {body}\n  ]\n}}\n'


def read_bundle(text: str) -> list[Record]:
    """Return the records of a bundle that are of the right shape.

    Raises
    ------
    ValueError: when the text is no bundle of this format.
    """
    try:
        data = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("records"), list):
        raise ValueError(f"it is no {FORMAT} file")
    return [record for item in data["records"] if (record := _parse(item)) is not None]


def _record(key: MemoKey, winner: Winner) -> dict[str, Any]:
    return {
        "engine": key.engine,
        "source": key.source,
        "tunables": key.tunables,
        "signature": key.signature,
        "options": key.options,
        "shapes": key.shapes,
        "exact": key.environment.exact,
        "same_class": key.environment.same_class,
        "config": _config(winner.config),
        "default": None if winner.default is None else _config(winner.default),
        "seconds": winner.seconds,
        "default_seconds": winner.default_seconds,
        "trials": winner.trials,
        "noisy": winner.noisy,
        "created": winner.created,
    }


def _config(config: Config) -> dict[str, Any]:
    return {"params": config.params, "schedule": config.schedule}


def _parse(data: Any) -> Record | None:
    """Check one record by the rules of the store, whose rows hold the same as text."""
    if not isinstance(data, dict):
        return None
    try:
        family = {name: data.get(name) for name in ("engine", "source", "tunables", "signature", "options")}
        place = {name: data.get(name) for name in ("exact", "same_class", "shapes")}
        key_text = dumps({"family": dumps(family), **place})
        details = {name: data.get(name) for name in ("seconds", "default_seconds", "trials", "noisy")}
        details["default"] = None if data.get("default") is None else dumps(data["default"])
        key = parse_key(key_text)
        winner = parse_winner("exact", key_text, dumps(data.get("config")), dumps(details), data.get("created"))
    except (ValueError, TypeError, RecursionError):  # NaN, say
        return None
    return None if key is None or winner is None else (key, winner)


# --- the user's memo --------------------------------------------------------------------------------------------------


def export(store: Store, sources: Iterable[str] | None = None) -> list[Record]:
    """Return a store's winners, of these sources (their digests) only when given; those under options stay."""
    wanted = None if sources is None else set(sources)
    return [(k, w) for k, w in store.entries() if not k.options and (wanted is None or k.source in wanted)]


def take_in(store: Store, records: Iterable[Record], override: bool = False) -> int:
    """Put records into a store, over what it knows for the same environment if `override`; return how many."""
    count = 0
    for key, winner in records:
        if override or not any(w.rank == "exact" for w in store.winners(key)):
            store.publish(key, winner)
            count += 1
    return count


# --- what packages ship -----------------------------------------------------------------------------------------------


def shipped(module: str, key: MemoKey) -> list[Winner]:
    """Return the winners for a key that come with the kernel's module or with installed packages, ranked."""
    return [_ranked(key, record, path) for path, record in _all(module) if record[0].id == key.id]


def shipped_family(module: str, key: MemoKey) -> list[Winner]:
    """Return the shipped winners for all shapes of a key."""
    return [_ranked(key, record, path) for path, record in _all(module) if record[0].family == key.family]


def bundle_paths(module: str) -> list[Path]:
    """Return the bundles that count for a module's kernels: its own first."""
    paths: list[Path] = []
    file = getattr(sys.modules.get(module), "__file__", None)
    if isinstance(file, str):
        where = Path(file)
        paths += [where.with_name(f"{where.stem}.jlkern.json"), where.with_name("jlkern.json")]
    return [*paths, *_named()]


def _all(module: str) -> Iterator[tuple[Path, Record]]:
    for path in bundle_paths(module):
        for record in _load(path):
            yield path, record


def _ranked(key: MemoKey, record: Record, path: Path) -> Winner:
    theirs, winner = record
    rank: Rank = "exact" if theirs.exact == key.exact else "class" if theirs.same_class == key.same_class else "other"
    return replace(winner, rank=rank, shapes=theirs.shapes, bundle=str(path))


_lock = threading.Lock()
_loaded: dict[Path, list[Record]] = {}


def _load(path: Path) -> list[Record]:
    """Read a file once in this process; whatever is wrong with it, it then holds nothing."""
    found = _loaded.get(path)
    if found is None:
        found = []
        try:
            if path.stat().st_size <= LARGEST:
                found = read_bundle(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            pass
        except (OSError, ValueError) as problem:
            log.event(_log, logging.WARNING, "a bundle can not be read", path=path, problem=problem)
        with _lock:
            _loaded[path] = found
    return found


@lru_cache(maxsize=1)
def _named() -> tuple[Path, ...]:
    """Return the files that installed packages name in the entry point group."""
    from importlib.metadata import entry_points

    paths = []
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (e.name, e.value)):
        package, _, name = entry.value.partition(":")
        top, *below = package.strip().split(".")
        spec = None
        # Only the top package is looked for: finding a module in it would import it.
        with suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(top)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            if name.strip():
                paths.append(Path(folder, *below, name.strip()))
    return tuple(paths)


def forget() -> None:
    """Read every bundle again when it is next asked for."""
    with _lock:
        _loaded.clear()
    _named.cache_clear()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
