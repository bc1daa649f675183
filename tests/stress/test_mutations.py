"""A bounded run of mutated sources: only jlkern's own errors come of them."""

from __future__ import annotations

import pytest

from .mutations import campaign


@pytest.mark.stress
def test_mutated_sources_raise_errors_of_jlkern_only() -> None:
    outcomes, wrong = campaign(0, 1500, 0.02)
    assert not wrong, "\n".join(f"mutation {number}:\n{text}\n{error}" for number, text, error in wrong[:3])
    assert outcomes["lowered"] + outcomes["compiled"] > 100
