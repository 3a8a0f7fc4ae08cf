"""A shuffle among many workers, for `gradbed bench scale`."""

from __future__ import annotations

from collections.abc import Iterator

from gradbed.experiments.bench.scale import ScalePoint


def scale_points() -> Iterator[ScalePoint]:
    """All 1,024 hosts of a k = 16 fat-tree get four samples each, by the usual scheduler. Bit strings are too
    short for that."""
    yield ScalePoint(
        name="shuffle-1024",
        configuration={
            "topology": {"kind": "fat-tree:16", "link": {"rate_mbps": 10_000, "delay_us": 1, "queue_packets": 1000}},
            "timing": {"receive_coalescing_us": 50},
            "samples": {"data": "synthetic", "samples": 4096},
            "shuffle": {"multicast": "groups"},
        },
        shrunk={"shuffle": {"workers": 64}, "samples": {"samples": 256}},
    )
