"""The command line: look at the memo, tune kernels of a module, and check the installation."""

from __future__ import annotations

import importlib
import platform
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import jlkern
from jlkern import knobs
from jlkern.engines.julia.setup import GPUS
from jlkern.errors import JlkernError
from jlkern.kernel import Kernel
from jlkern.report import table
from jlkern.tuning.task import format_seconds


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(jlkern.__version__, prog_name="jlkern")
def main() -> None:
    """Self-tuning KernelAbstractions.jl kernels for NumPy arrays."""


@main.group()
def cache() -> None:
    """The memo: what tunings have found."""


@cache.command("path")
def cache_path() -> None:
    """Print where the memo is kept."""
    from jlkern.memo.store import open_store

    path = open_store().path
    click.echo(str(path) if path is not None else f"in memory ({knobs.knobs.cache_dir} cannot be used)")


@cache.command("show")
def cache_show() -> None:
    """Print every remembered winner."""
    from jlkern.memo.store import open_store

    entries = list(open_store().entries())
    if not entries:
        click.echo("nothing is remembered")
        return
    rows = []
    for key, winner in entries:
        shapes = " ".join(f"{name}={value}" for name, value in key.shapes)
        seconds = format_seconds(winner.seconds) if winner.seconds is not None else "-"
        gain = f"{winner.speedup:.2f}" if winner.speedup is not None else "-"
        rows.append((key.source[:8], ", ".join(key.signature), shapes, str(winner.config), seconds, gain))
    click.echo(table(rows, ("source", "types", "shapes", "configuration", "time", "gain")))


@cache.command("clear")
@click.option("--yes", is_flag=True, help="Do not ask.")
def cache_clear(yes: bool) -> None:
    """Forget every winner and trial, and remove the compiled code that is kept."""
    from jlkern import disk
    from jlkern.memo.store import open_store

    store = open_store()
    path = store.path
    if path is None or not path.exists():
        count = disk.clear()
        click.echo(
            f"nothing is remembered; removed {count} files of compiled code" if count else "nothing is remembered"
        )
        return
    if not yes:
        click.confirm(f"delete {path}?", abort=True)
    store.close()
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    click.echo(f"deleted {path}, and {disk.clear()} files of compiled code")


@main.command()
@click.argument("target", metavar="[MODULE[:KERNEL]]", required=False)
@click.argument("signature", nargs=-1, metavar="[ARGUMENT]...")
@click.option("--from", "record", type=click.Path(dir_okay=False), help="Work off what was recorded.")
@click.option("--again", is_flag=True, help="Also what is remembered on this machine.")
def tune(target: str | None, signature: tuple[str, ...], record: str | None, again: bool) -> None:
    """Tune kernels of a module on synthetic arrays.

    Each ARGUMENT describes a parameter: `float32[1024,1024]` an array (`float32[1024,1024]F` in column-major order),
    `float32` a scalar type, `3` or `0.5` a scalar value. With --from, what `jlkern.frozen(record=FILE)` or
    JLKERN_RECORD=FILE noted is tuned instead.
    """
    sys.path.insert(0, "")
    if record is not None:
        if target is not None:
            raise click.UsageError("--from says what to tune; leave MODULE out")
        _tune_record(record)
        return
    if target is None:
        raise click.UsageError("pass a MODULE, or --from FILE")
    module_name, _, kernel_name = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as problem:
        raise click.ClickException(f"cannot import {module_name}: {problem}") from problem
    chosen: Kernel[...] | types.ModuleType = module
    if kernel_name:
        found = getattr(module, kernel_name, None)
        if not isinstance(found, Kernel):
            raise click.ClickException(f"{kernel_name} is no kernel of {module_name}")
        chosen = found
    try:
        specs = [tuple(map(_argument, signature))] if signature else []
        for made in jlkern.precompile(chosen, *specs, tune="again" if again else True):
            click.echo(str(made))
    except JlkernError as problem:
        raise click.ClickException(str(problem)) from problem


@main.command("export")
@click.argument("modules", nargs=-1, metavar="[MODULE]...")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="The file; default: one beside each kernel's module."
)
@click.option("--all", "everything", is_flag=True, help="Everything that is remembered; needs --output.")
def export_(modules: tuple[str, ...], output: str | None, everything: bool) -> None:
    """Write what is remembered for the kernels of modules to a file that a package can ship."""
    from jlkern.memo import bundle
    from jlkern.memo.store import open_store

    if everything == bool(modules):
        raise click.UsageError("pass the modules whose kernels are meant, or --all")
    sys.path.insert(0, "")
    homes: dict[
        str, set[str]
    ] = {}  # the module that a kernel is in, which may be one inside of a package that is named
    for name in modules:
        try:
            module = importlib.import_module(name)
        except ImportError as problem:
            raise click.ClickException(f"cannot import {name}: {problem}") from problem
        for kernel in vars(module).values():
            if isinstance(kernel, Kernel):
                homes.setdefault(kernel.__module__, set()).add(kernel._runtime.declaration.source.digest)
    if output is not None:
        files = {Path(output): None if everything else set().union(*homes.values())}
    elif everything:
        raise click.UsageError("--all needs --output FILE")
    else:
        files = {bundle.bundle_paths(home)[0]: sources for home, sources in homes.items()}
    written = 0
    for path, sources in files.items():
        records = bundle.export(open_store(), sources)
        if not records:
            continue
        try:
            path.write_text(bundle.write_bundle(records), encoding="utf-8")
        except OSError as problem:
            raise click.ClickException(f"cannot write {path}: {problem}") from problem
        click.echo(f"{len(records)} records in {path}")
        written += len(records)
    if not written:
        raise click.ClickException("nothing is remembered of these kernels; tune them first")


@main.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--replace", "override", is_flag=True, help="Also where this machine has a result of its own.")
def import_(file: str, override: bool) -> None:
    """Take the records of a file into the memo of this user."""
    from jlkern.memo import bundle
    from jlkern.memo.store import open_store

    try:
        records = bundle.read_bundle(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise click.ClickException(f"cannot read {file}: {problem}") from problem
    taken = bundle.take_in(open_store(), records, override)
    click.echo(f"{taken} of {len(records)} records taken in, {len(records) - taken} known")


def _tune_record(path: str) -> None:
    """Tune each line of a record once; say what can not be tuned, and go on."""
    from jlkern.policy import read_miss
    from jlkern.precompile import tune_miss

    if not Path(path).exists():
        click.echo(f"nothing to tune: {path} is not there, which is so when nothing was recorded")
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = list(dict.fromkeys(line.strip() for line in file if line.strip()))
    skipped = 0
    for line in lines:
        miss = read_miss(line)
        try:
            if miss is None:
                raise click.ClickException("no record of a miss")
            click.echo(str(tune_miss(miss)))
        except (JlkernError, click.ClickException) as problem:
            skipped += 1
            what = f"{miss.reference}({miss.signature})" if miss is not None else repr(line[:60])
            text = problem.message if isinstance(problem, click.ClickException) else str(problem)
            click.echo(f"left out: {what}: {text}", err=True)
    click.echo(f"tuned {len(lines) - skipped} of {len(lines)} recorded calls")
    if skipped:
        raise SystemExit(1)


@main.command()
@click.option("--gpu", "gpus", multiple=True, type=click.Choice(GPUS), help="Also the package for these devices.")
@click.option("--image", "with_image", is_flag=True, help="Also a system image, from which Julia starts faster.")
def setup(gpus: tuple[str, ...], with_image: bool) -> None:
    """Download Julia and KernelAbstractions.jl for the julia engine, once; nothing else ever downloads.

    Where PYTHON_JULIACALL_EXE and PYTHON_JULIACALL_PROJECT name a Julia of yours, that is checked instead.
    """
    from jlkern.engines.julia.setup import setup as set_up

    try:
        with _telling() as tell:
            made = set_up(gpus, with_image, tell)
    except JlkernError as problem:
        raise click.ClickException(str(problem)) from problem
    except KeyboardInterrupt:
        raise click.ClickException("interrupted; run `jlkern setup` again, it goes on where it stopped") from None
    for remark in made.remarks:
        click.echo(f"note: {remark}", err=True)
    found = made.installation
    what = ", ".join(f"{name} {made.facts[name]}" for name in ("julia", "KernelAbstractions", "juliacall"))
    click.echo(f"the julia engine is ready: {what}")
    click.echo(f"  julia    {found.executable}\n  project  {found.project}\n  image    {made.image or 'none'}")


@contextmanager
def _telling() -> Iterator[Callable[[str, str], None]]:
    """Show what is being done: on a terminal one line that moves, else a line for each thing."""
    if not sys.stderr.isatty():
        yield lambda step, line: click.echo(f"  {line}" if line else f"{step} ...", err=True)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    with console.status("") as status:

        def tell(step: str, line: str) -> None:
            text = Text(f"{step} ...", "bold")
            if line:
                text.append(f" {line.strip()}", "dim")
            text.truncate(max(20, console.width - 4), overflow="ellipsis")
            status.update(text)

        yield tell


@main.command()
@click.option("--start", is_flag=True, help="Also start Julia, which takes seconds.")
def doctor(start: bool) -> None:
    """Check what jlkern needs, and print where and with what it runs."""
    rows = [("python", platform.python_version(), ""), ("jlkern", jlkern.__version__, "")]
    for name in ("numpy", "numba", "kernel_tuner", "tree_sitter", "tree_sitter_julia"):
        rows.append((name, *_version(name)))
    try:
        from jlkern.engines.select import engine_named

        device = engine_named("numba").devices()[0]
        rows.append(("engine numba", "ok", f"{device.name} ({device.kind})"))
    except Exception as problem:  # whatever is broken is what the user wants to see here
        rows.append(("engine numba", "fails", f"{type(problem).__name__}: {problem}"))
    rows.extend(_about_julia(start))
    from jlkern.memo.store import open_store

    path = open_store().path
    rows.append(("memo", "ok" if path is not None else "in memory", str(path or knobs.knobs.cache_dir)))
    from jlkern import disk

    rows.append(("compiled code", "not kept" if disk.problem() else "ok", disk.problem() or str(disk.folder())))
    click.echo(table(rows, ("", "", "")).lstrip("\n"))
    click.echo()
    click.echo(table(knobs.describe(), ("setting", "value", "")))
    if any(row[1] in ("missing", "fails") for row in rows):
        raise SystemExit(1)


def _about_julia(start: bool) -> list[tuple[str, str, str]]:
    """Return doctor's rows on Julia: found without starting it, unless that is asked for."""
    from jlkern.engines.julia import image, installation

    try:
        found = installation.find()
    except JlkernError as problem:
        absent = installation.option("exe") is None and not (installation.home() / installation.RECORD).exists()
        return [("engine julia", "not set up" if absent else "fails", str(problem))]
    known = ", ".join(f"{name} {value}" for name, value in installation.facts().items())
    by = "named by the environment" if found.origin == "environment" else f"of `jlkern setup`: {known}"
    fitting = image.find(found)
    of_image = fitting or ("outdated: jlkern setup --image" if image.outdated(found) else "none: jlkern setup --image")
    rows = [
        ("engine julia", "set up", by),
        ("  executable", image.julia_version(found) or "fails", found.executable),
        ("  project", "", found.project),
        ("  image", "", installation.option("sysimage") or of_image),
    ]
    if start:
        rows.append(_started())
    return rows


def _started() -> tuple[str, str, str]:
    import time

    from jlkern.engines.julia.bridge import runtime

    begin = time.perf_counter()
    try:
        julia = runtime()
    except JlkernError as problem:
        return ("  start", "fails", str(problem))
    versions = ", ".join(f"{name} {value}" for name, value in julia.versions.items())
    calls = "direct" if julia.fast is not None else "slow: this Python's objects are not as expected"
    seconds = time.perf_counter() - begin
    return ("  start", "ok", f"{seconds:.1f} s: {versions}, {julia.threads} threads, calls {calls}")


def _version(package: str) -> tuple[str, str]:
    import importlib.metadata

    try:
        return importlib.metadata.version(package), ""
    except importlib.metadata.PackageNotFoundError:
        return "missing", f"install it: python -m pip install {package}"


def _argument(text: str) -> Any:
    import numpy as np

    name, bracket, rest = text.partition("[")
    if bracket:
        shape, _, order = rest.partition("]")
        try:
            sizes = tuple(int(size) for size in shape.split(",") if size.strip())
        except ValueError as problem:
            raise click.ClickException(f"{text!r}: the shape must be made of ints, as float32[640,480]") from problem
        return jlkern.Array(name, sizes, order or "C")  # type: ignore[arg-type]  # checked by Array itself
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    try:
        return np.dtype(text).type
    except TypeError as problem:
        raise click.ClickException(
            f"{text!r} is no array such as float32[640,480], no scalar type and no number"
        ) from problem


if __name__ == "__main__":
    main()
