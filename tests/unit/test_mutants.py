"""The lists of mutants fit the code: the text that each replaces stands there once, and its tests exist."""

from __future__ import annotations

import pytest

from tests.mutants.entries import ROOT, lists, mutants_of
from tests.mutants.table import tables


@pytest.mark.parametrize("name", lists())
def test_each_can_be_made(name: str) -> None:
    for mutant in mutants_of(name):
        assert mutant.mutated() != (ROOT / mutant.file).read_text(encoding="utf-8")
        for target in mutant.tests:
            path, *names = target.split("::")
            assert (ROOT / path).exists(), f"{target} of {mutant.file}: no such tests"
            text = (ROOT / path).read_text(encoding="utf-8") if names else ""
            assert all(part.split("[")[0] in text for part in names), f"{target} is not there"


def test_the_documented_tables_are_those_of_the_lists() -> None:
    text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    assert tables() in text, "docs/testing.md: put in what `python -m tests.mutants --table` prints"
