"""Rounds of many workers, for `gradbed bench scale`."""

from __future__ import annotations

from collections.abc import Iterator

from gradbed.experiments.bench.scale import ScalePoint

VALUES = 1_000_000
JOB_WORKERS = 64
"""As many as a packet's bitmap has bits: more workers are several jobs."""


def scale_points() -> Iterator[ScalePoint]:
    """64 workers on k = 8, and 512 in eight jobs on k = 16. Links of 10 Gbit/s; cards tell of frames 200 us after the
    first, as in the studies of the figures, and windows hold what a round trip then takes. The switches on all
    workers' ways sum in turns, which needs no linear program."""
    for k, jobs in ((8, 1), (16, 8)):
        yield ScalePoint(
            name=f"aggregation-{jobs * JOB_WORKERS}",
            configuration={
                "topology": {
                    "kind": f"fat-tree:{k}",
                    "link": {"rate_mbps": 10_000, "delay_us": 1, "queue_packets": 1000},
                },
                "timing": {"receive_coalescing_us": 200},
                "switches": {"placement": "shared-path"},
                "workload": {
                    "kind": "synthetic",
                    "workers": JOB_WORKERS,
                    "jobs": jobs,
                    "values": VALUES,
                    "rounds": 1,
                    "window_fragments": 256,
                },
            },
            shrunk={"workload": {"values": 35_200}},
            judges_round=True,
            goal_s=10.0,
            goal_cpu_s=60.0,
        )
