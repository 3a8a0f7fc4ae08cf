"""Traffic of many hosts through a person's own program, for `gradbed bench scale`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gradbed.experiments.bench.scale import ScalePoint
from gradbed.experiments.programs import P4_SOURCES


def scale_points() -> Iterator[ScalePoint]:
    """All 1,024 hosts of a k = 16 fat-tree send to one other each, at half of their links' rate, for 10 ms."""
    yield ScalePoint(
        name="workload-1024",
        configuration={
            "topology": {"kind": "fat-tree:16", "link": {"rate_mbps": 1_000, "delay_us": 1, "queue_packets": 1000}},
            "program": {
                "path": P4_SOURCES / "forward.p4",
                "entries_file": Path(__file__).with_name("prefixes.yaml"),
            },
            "traffic": {"pattern": "permutation", "load": 0.5, "duration_ms": 10},
        },
        shrunk={"topology": {"kind": "fat-tree:4"}, "traffic": {"duration_ms": 2}},
    )
