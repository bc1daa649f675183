"""Make `programs.json.gz`: random programs of `tests/conformance/programs.py`, run by a real Julia.

    JULIA=julia python tests/data/make_programs.py [count]

Programs that have a result already are left alone; `count` (320) programs from number 0 are kept.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.conformance.programs import case
from tests.data.kernels import HERE, Julia, JuliaError, read, recorded, write

FILE = "programs.json.gz"


def main() -> None:
    """Bring the file up to date."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 320
    known: dict[str, Any] = read(FILE) if (HERE / FILE).exists() else {}
    results: dict[str, Any] = {}
    with Julia() as julia:
        for seed in range(count):
            made = case(seed)
            result = known.get(str(seed))
            if result is None or result["digest"] != made.digest:
                result = {"digest": made.digest}
                args = made.fresh()
                try:
                    result["arrays"] = recorded(args, julia.run(made.source, "k!", args, made.ndrange, made.workgroup))
                except JuliaError as error:
                    result["error"] = error.kind
            results[str(seed)] = result
    write(FILE, results)
    print(f"{len(results)} programs, {sum('error' in r for r in results.values())} of them errors")


if __name__ == "__main__":
    main()
