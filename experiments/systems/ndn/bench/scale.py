"""A round of many peers, for `gradbed bench scale`."""

from __future__ import annotations

from collections.abc import Iterator

from gradbed.experiments.bench.scale import ScalePoint


def scale_points() -> Iterator[ScalePoint]:
    """All 128 hosts of a k = 8 fat-tree push their gradients to each other."""
    yield ScalePoint(
        name="ndn-128",
        configuration={
            "topology": {"kind": "fat-tree:8", "link": {"rate_mbps": 10_000, "delay_us": 1, "queue_packets": 1000}},
            "timing": {"receive_coalescing_us": 50},
            "workload": {"kind": "synthetic", "peers": 128, "values": 960, "rounds": 1},
        },
        shrunk={"workload": {"peers": 16}},
    )
