"""A program of one's own under traffic on the real clock: Mininet, agents that are processes, the kernel's stamps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.emulation.sandboxed import in_sandbox
from tests.unit.workload.runs import run

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
def test_templates_are_counted_beside_what_kernels_send(tmp_path: Path) -> None:
    result = run(tmp_path, frames={"template": "Ether()/IP(dst=$dst)/TCP(dport=7)"}, **SECTIONS)
    assert (result.metrics["sent_packets"], result.metrics["received_packets"]) == (200, 200)
