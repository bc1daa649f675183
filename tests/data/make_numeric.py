"""Make `numeric.json.gz`: what Julia's numeric operations give on edge values of every pair of types.

    JULIA=julia python tests/data/make_numeric.py

`tables.py` reads the file; its object holds

- `julia`: the version;
- `values`: for each type and each set of edge values (`wide`, `few`, ...) the values as tokens, split by spaces;
- `tables`: objects with `expr` (over `x`, `y`, `z`), `types` of these arguments, `sets` (which values each runs over;
  all combinations, the last argument fastest), `result` (the type of most results) and `values` (tokens);
- `constants`: `[expr, type, token]` for the expressions of `numeric.txt` and for properties of types.

Tokens: integers in decimal, Bool `0` or `1`, floats as the hexadecimal of their bits or `nan`, complex numbers
`re,im`, tuples `a;b`, types by name, `!Name` for an exception of that type, `?` where Julia leaves the value undefined,
and `Type:token` where the type is not the table's.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def parse(lines: list[str]) -> dict[str, Any]:
    """Gather the lines that `numeric.jl` prints."""
    values: dict[str, dict[str, str]] = {}
    tables: list[dict[str, Any]] = []
    constants: list[list[str]] = []
    for line in lines:
        kind, *parts = line.split("\t")
        if kind == "values":
            values.setdefault(parts[0], {})[parts[1]] = parts[2]
        elif kind == "table":
            expr, types, sets, result, tokens = parts
            row = {"expr": expr, "types": types.split(), "sets": sets.split(), "result": result, "values": tokens}
            tables.append(row)
        else:
            constants.append(parts)
    return {"values": values, "tables": tables, "constants": constants}


def main() -> None:
    """Ask Julia (some minutes) and write the file."""
    call = [os.environ.get("JULIA", "julia"), "--startup-file=no"]
    version = subprocess.run([*call, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    script = [*call, str(HERE / "numeric.jl")]
    constants = (HERE / "numeric.txt").read_bytes()
    done = subprocess.run(script, input=constants, stdout=subprocess.PIPE, check=True)
    data: dict[str, Any] = {"julia": version, **parse(done.stdout.decode().splitlines())}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # No time stamp and no file name in the archive: the same data gives the same file.
    (HERE / "numeric.json.gz").write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    print(f"{len(data['tables'])} tables, {len(data['constants'])} constants, {len(text)} characters", file=sys.stderr)


if __name__ == "__main__":
    main()
