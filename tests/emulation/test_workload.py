"""A program of one's own under traffic on the real clock: Mininet, agents that are processes, the kernel's stamps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.emulation.sandboxed import in_sandbox
from tests.unit.workload.runs import run, table

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

SECTIONS: dict[str, Any] = {
    "clock": "real",
    "topology": {"kind": "star:3", "link": {"rate_mbps": 10, "delay_us": 2000}},
    "traffic": {"packets": 200, "load": 0.3, "frame_bytes": 500},
    "samples": {"interval_us": 50_000, "links": ["s1-h1"]},
}

THREE_SWITCHES: dict[str, Any] = {
    **SECTIONS,
    "topology": {**SECTIONS["topology"], "kind": "leaf-spine:2,1,1"},
    "samples": {},
}


@in_sandbox
def test_one_point_on_the_real_clock(tmp_path: Path) -> None:
    result = run(tmp_path, program={"registers": ["seen"]}, expect={"register:seen[1]": 200}, **SECTIONS)
    assert list(result.failures) == []
    assert (result.metrics["sent_packets"], result.metrics["received_packets"]) == (200, 200)
    assert [result.metrics[name] for name in ("duplicates", "reordered", "no_entry_drops")] == [0, 0, 0]
    # Two links of 2 ms and 0.4 ms each: stamps are of one clock, and nothing is faster than its links.
    assert float(str(result.metrics["p50_us"])) > 4800
    assert result.tables["link_samples"]


@in_sandbox
def test_coverage_is_that_of_the_virtual_clock(tmp_path: Path) -> None:
    """The same packets reach the same: pass by pass, in every switch, with as many hits."""
    sections = {**THREE_SWITCHES, "program": {"coverage": True}}
    real = run(tmp_path, **sections)
    virtual = run(tmp_path, **{**sections, "clock": "virtual"})
    assert not real.failures and real.metrics["covered_statements"] == virtual.metrics["covered_statements"]
    # Entries are installed in any order.
    found, expected = (
        {(row["category"], row["name"]): row for row in table(each, "coverage")} for each in (real, virtual)
    )
    assert found == expected
    assert "own.p4" in (tmp_path / "coverage.html").read_text()


@in_sandbox
def test_a_packet_is_followed_through_processes(tmp_path: Path) -> None:
    result = run(tmp_path, program={"trace": "dst=h2 and nth=3"}, **THREE_SWITCHES)
    rows = table(result, "trace")
    assert [row["switch"] for row in rows] == ["l1", "s1", "l2"]
    times = [row["time_us"] for row in rows]
    assert times == sorted(times) and times[0] > 0, times
    assert all("OwnIngress.routes" in row["text"] for row in rows)


@in_sandbox
def test_templates_are_counted_beside_what_kernels_send(tmp_path: Path) -> None:
    result = run(tmp_path, frames={"template": "Ether()/IP(dst=$dst)/TCP(dport=7)"}, **SECTIONS)
    assert (result.metrics["sent_packets"], result.metrics["received_packets"]) == (200, 200)
