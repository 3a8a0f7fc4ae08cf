"""A large network of hybrid switches by packets, for `gradbed bench scale`."""

from __future__ import annotations

from collections.abc import Iterator

from gradbed.experiments.bench.scale import ScalePoint


def scale_points() -> Iterator[ScalePoint]:
    """N = 6: 216 hosts send to each other at half their links' rate, for 5 ms."""
    yield ScalePoint(
        name="interconnect-216",
        configuration={
            "topology": {
                "kind": "optical-electrical:6",
                "link": {"rate_mbps": 10_000, "delay_us": 1, "queue_packets": 64},
            },
            "traffic": {"pattern": "all-to-all", "load": 0.5, "duration_ms": 5, "warm_up_ms": 1},
        },
        shrunk={"traffic": {"duration_ms": 0.5, "warm_up_ms": 0.1}},
    )
