"""p4c's corpus of STF tests for v1model, with this compiler on this switch. GRADBED_P4C_CORPUS: a checkout of p4c."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.command import tool
from tools.conformance.stf_corpus import corpus_programs

# docs/conformance.md has the reasons.
KNOWN_FAILURES = {"extern-funcs-bmv2"}


@pytest.mark.nightly
def test_the_whole_corpus(tmp_path: Path) -> None:
    checkout = os.environ.get("GRADBED_P4C_CORPUS")
    if not checkout:
        pytest.skip("GRADBED_P4C_CORPUS does not name a checkout of p4c")
    required = [program.stem for program in corpus_programs(Path(checkout)) if program.stem not in KNOWN_FAILURES]
    assert len(required) >= 180
    expect = tmp_path / "required.txt"
    expect.write_text("\n".join(required))
    outcome = tool("conformance", checkout, "--expect", expect, timeout_s=3600)
    failed = [line for line in outcome.stdout.splitlines() if not line.endswith("  passed")]
    assert outcome.returncode == 0, "\n".join(failed) + outcome.stderr
