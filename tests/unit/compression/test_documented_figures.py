"""What docs/compression.md says of figure 1, computed from its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.documented_figures import figure_data, said

DOCUMENT = "docs/compression.md"
WORKERS = (4, 8, 16)
ROWS: Mapping[str, Mapping[str, Any]] = {
    "undisturbed, B1/N": {"pacing": "even", "rule": "repaired", "compress": "none", "faults": "[]"},
    "neither pacing nor compression": {"pacing": "none", "rule": "none", "compress": "none"},
    "pacing alone, B1/N": {"pacing": "even", "rule": "none", "compress": "none"},
    "compression alone, repaired": {"pacing": "none", "rule": "repaired", "compress": "none"},
    "both, B1/N": {"pacing": "even", "rule": "repaired", "compress": "none"},
    "both, AIMD": {"pacing": "aimd", "rule": "repaired", "compress": "none"},
    "the source's rule to the letter, B1/N": {"pacing": "even", "rule": "source", "compress": "none"},
    "`topk:0.1`, B1/N": {"pacing": "even", "rule": "none", "compress": "topk:0.1"},
    "`topk:0.01`, B1/N": {"pacing": "even", "rule": "none", "compress": "topk:0.01"},
}


def point(name: str, workers: int) -> Mapping[str, Any]:
    at = dict(ROWS[name])
    faults = at.pop("faults", None)
    rows = figure_data("compression_1_workers").rows(workers=workers, protocol="packets", **at)
    (found,) = [row for row in rows if (str(row["faults"]) in ("", "[]", "None")) == (faults is not None)]
    return found


def table_row(name: str) -> str:
    times = (f"{1e3 * point(name, workers)['iteration_time_s']:.3g} ms" for workers in WORKERS)
    ratio, drops = point(name, 8)["ratio"], point(name, 16)["queue_drops"]
    return f"| {name} | {' | '.join(times)} | {100 * ratio:.0f} % | {drops:.0f} |"


@pytest.mark.parametrize("name", ROWS)
def test_iteration_times(name: str) -> None:
    said(DOCUMENT, table_row(name))


def test_the_repaired_rule_keeps_the_time() -> None:
    longer = [
        point("both, B1/N", workers)["iteration_time_s"] / point("undisturbed, B1/N", workers)["iteration_time_s"]
        for workers in WORKERS
    ]
    said(DOCUMENT, "takes {:.2f}, {:.2f} and {:.2f} times as long as undisturbed".format(*longer))


@pytest.mark.parametrize(("rule", "name"), [("source", "source, to the letter"), ("repaired", "repaired")])
def test_ratios(rule: str, name: str) -> None:
    """The study's order is that of the rates, from a tenth to all."""
    rows = figure_data("compression_5_ratio").rows(rule=rule)
    cells = (f"{row['ratio']:.2g}, {1e3 * row['iteration_time_s']:.0f} ms" for row in reversed(rows))
    said(DOCUMENT, f"| {name} | {' | '.join(cells)} |")
