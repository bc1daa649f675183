"""Make `language.json.gz`: run the cases of `tests/conformance/language.py` that have no result yet with a real Julia.

JULIA=julia python tests/data/make_language.py [--all]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.conformance.language import cases
from tests.data.kernels import HERE, Julia, JuliaError, read, recorded, write

FILE = "language.json.gz"


def main() -> None:
    """Bring the file up to date."""
    known: dict[str, Any] = read(FILE) if (HERE / FILE).exists() and "--all" not in sys.argv else {}
    results: dict[str, Any] = {}
    with Julia() as julia:
        for case in cases():
            result = known.get(case.name)
            if result is None or result["digest"] != case.digest:
                result = {"digest": case.digest}
                args = case.fresh()
                try:
                    after = julia.run(case.source, "k!", args, case.ndrange, case.workgroup, case.params)
                    result["arrays"] = recorded(args, after)
                except JuliaError as error:
                    result["error"] = error.kind
                    print(f"{case.name}: {error}", file=sys.stderr)
            results[case.name] = result
    write(FILE, results)
    print(f"{len(results)} cases, {sum('error' in r for r in results.values())} of them errors")


if __name__ == "__main__":
    main()
