"""Data of figures that documents show are those that the code makes now: each study once more, an hour in all."""

from __future__ import annotations

import csv
import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.documented_figures import ROOT

PUBLISHED = sorted(path.stem for path in (ROOT / "docs/data").glob("*_[0-9]*_*.csv"))
PROCESSOR_TIMES = {"schedule_s", "schedule_s_half"}
"""Columns that no two runs have alike."""


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as text:
        return [
            {name: value for name, value in row.items() if name not in PROCESSOR_TIMES}
            for row in csv.DictReader(text)
            if row["clock"] == "virtual"
        ]


@pytest.mark.nightly
@pytest.mark.parametrize("study", PUBLISHED)
def test_published_data_are_those_of_today(study: str, tmp_path: Path) -> None:
    named = re.fullmatch(r"([a-z]+)_(\d+)_.*", study)
    assert named is not None
    command = [ROOT / "gradbed", "figures", named[1], "--only", named[2], "--clock", "virtual", "--output", tmp_path]
    subprocess.run(command, check=True)
    made, published = rows(tmp_path / study / "latest/data" / f"{study}.csv"), rows(ROOT / f"docs/data/{study}.csv")
    assert made and made == published
