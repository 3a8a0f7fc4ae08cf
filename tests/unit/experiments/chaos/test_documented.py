"""The table of docs/faults.md about the real clock is that of its cells, of which none has failed."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from gradbed.experiments.study.chaos import with_chaos

DOCS = Path(__file__).resolve().parents[4] / "docs"
HEADING = "## On the real clock"


def test_the_table_counts_the_cells() -> None:
    with (DOCS / "data" / "faults_on_the_real_clock.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    counted = Counter((cell["system"], cell["network"], cell["verdict"]) for cell in cells)
    section = (DOCS / "faults.md").read_text(encoding="utf-8").partition(HEADING)[2].partition("\n## ")[0]
    told = [[word.strip() for word in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    assert [row[0] for row in told[2:]] == [
        name for name in with_chaos() if name in {each["system"] for each in cells}
    ]
    for system, *numbers in told[2:]:
        places = [(network, verdict) for network in ("Mininet", "BMv2") for verdict in ("right", "clear error")]
        assert [int(number) for number in numbers] == [counted[(system, *place)] for place in places]
    assert sum(counted.values()) == sum(int(number) for row in told[2:] for number in row[1:]) == len(cells)
