"""Kernels run by a real Julia with KernelAbstractions, and how their results are written down.

`JULIA` names the Julia to start; its packages are those of `JULIA_LOAD_PATH` or `JULIA_PROJECT`, as for any Julia.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import select
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SECONDS = 240
"""How long one kernel may take; it is compiled first."""

JULIA_NAMES = {
    "bool": "Bool",
    **{f"int{bits}": f"Int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"UInt{bits}" for bits in (8, 16, 32, 64)},
    "float32": "Float32",
    "float64": "Float64",
}


class JuliaError(Exception):
    """An exception in Julia: the name of its type, and its message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class Julia:
    """One Julia process that runs kernels; it is started when it is first needed, and again after a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Julia:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def run(
        self,
        source: str,
        name: str,
        args: list[Any],
        ndrange: tuple[int, ...],
        workgroup: tuple[int, ...],
        params: Mapping[str, Any] | None = None,
    ) -> list[np.ndarray]:
        """Run one kernel and return the arrays among its arguments as they are afterwards. Raises `JuliaError`."""
        lines = [
            f"source\t{_text(source)}",
            f"name\t{name}",
            f"ndrange\t{_sizes(ndrange)}",
            f"workgroup\t{_sizes(workgroup)}",
        ]
        lines += [_argument(arg) for arg in args]
        lines += [
            f"julia\t{_text(f'Val({str(v).lower() if isinstance(v, bool) else v})')}" for v in (params or {}).values()
        ]
        reply = self._ask("\n".join([*lines, "run"]) + "\n").split("\t")
        if reply[0] != "ok":
            raise JuliaError(reply[1], bytes.fromhex(reply[2]).decode("utf-8", "replace"))
        arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
        return [
            np.frombuffer(bytes.fromhex(digits), a.dtype).reshape(a.shape, order="F").copy(order="F")
            for a, digits in zip(arrays, reply[1:], strict=True)
        ]

    def _ask(self, request: str) -> str:
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(request)
        process.stdin.flush()
        if not select.select([process.stdout], [], [], SECONDS)[0]:
            self.close()
            raise JuliaError("Timeout", f"no answer within {SECONDS} s")
        reply = process.stdout.readline().rstrip("\n")
        if not reply:
            self.close()
            raise JuliaError("Crash", "Julia ended")
        return reply

    def _start(self) -> subprocess.Popen[str]:
        command = [os.environ.get("JULIA", "julia"), "--startup-file=no", str(HERE / "run_kernels.jl")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == "ready", "Julia does not start"
        return self._process


def _text(text: str) -> str:
    return text.encode().hex()


def _sizes(dims: tuple[int, ...]) -> str:
    return ",".join(map(str, dims))


def _argument(arg: Any) -> str:
    if isinstance(arg, np.ndarray):
        return f"array\t{arg.dtype.name}\t{_sizes(arg.shape)}\t{arg.tobytes(order='F').hex()}"
    if isinstance(arg, str):
        return f"julia\t{_text(arg)}"
    if isinstance(arg, tuple):
        return f"julia\t{_text(julia_text(arg))}"
    value = np.asarray(arg)
    return f"scalar\t{value.dtype.name}\t{value.tobytes().hex()}"


def julia_text(value: Any) -> str:
    """Return a tuple of numbers as Julia writes it."""
    if isinstance(value, tuple):
        return "(" + "".join(f"{julia_text(v)}, " for v in value) + ")"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, np.generic):
        return f"{JULIA_NAMES[value.dtype.name]}({value.item()})"
    return repr(value)


# --- recorded results ---


def recorded(before: list[Any], after: list[np.ndarray]) -> list[dict[str, Any] | None]:
    """Return the arrays after a launch as JSON can hold them; None for those that did not change."""
    arrays = [arg for arg in before if isinstance(arg, np.ndarray)]
    return [None if a.tobytes("F") == b.tobytes("F") else _packed(b) for a, b in zip(arrays, after, strict=True)]


def _packed(array: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(array.tobytes("F")).decode("ascii")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def unpacked(made: dict[str, Any]) -> np.ndarray:
    """Return a recorded array."""
    data = np.frombuffer(base64.b64decode(made["data"]), made["dtype"])
    return data.reshape(made["shape"], order="F")


def read(name: str) -> dict[str, Any]:
    """Return what a file of results holds."""
    with gzip.open(HERE / name, "rt", encoding="utf-8") as file:
        made: dict[str, Any] = json.load(file)
    return made


def write(name: str, results: dict[str, Any]) -> None:
    """Write a file of results, one case a line, the same bytes for the same results."""
    lines = [f"{json.dumps(key)}: {json.dumps(results[key], sort_keys=True)}" for key in sorted(results)]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (HERE / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
