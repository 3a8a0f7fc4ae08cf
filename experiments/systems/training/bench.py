"""A collective of many ranks, for `gradbed bench scale`."""

from __future__ import annotations

from collections.abc import Iterator

from gradbed.experiments.bench.scale import ScalePoint

# ---- Scale ----
#
# A collective of many ranks, for `gradbed bench scale`.


def scale_points() -> Iterator[ScalePoint]:
    """All 1,024 hosts of a k = 16 fat-tree sum a vector of a million bytes in a ring: 2,046 messages of each."""
    yield ScalePoint(
        name="training-1024",
        configuration={
            "topology": {"kind": "fat-tree:16", "link": {"rate_mbps": 100_000, "delay_us": 1, "queue_packets": 1000}},
            "workload": {"operation": "all-reduce", "size_bytes": 1_000_000},
            "collectives": {"algorithm": "ring"},
        },
        shrunk={"topology": {"kind": "fat-tree:4"}},
    )
