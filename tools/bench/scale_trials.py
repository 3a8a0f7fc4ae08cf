"""The large trials of `python -m tools.bench scale`, one or two of each system, all on the virtual clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.experiments.programs import P4_SOURCES

AGGREGATION_VALUES = 1_000_000
AGGREGATION_WORKERS = 64
"""As many as a packet's bitmap has bits: more workers are several jobs."""


@dataclass(frozen=True)
class ScaleTrial:
    """A large trial of a system, and its goals."""

    name: str
    system: str
    configuration: Mapping[str, Any]
    """As in a study, without the clock."""
    shrunk: Mapping[str, Mapping[str, Any]]
    """The fields of the small form, by section."""
    judges_round: bool = False
    """Whether the goals are for one round of the agents rather than for the whole run."""
    goal_s: float | None = 60.0
    """Upper limit of the wall time in seconds, if there is one."""
    goal_cpu_s: float | None = None
    """Upper limit of the processor time in seconds, if there is one."""


def fat_tree(k: int, rate_mbps: int = 10_000) -> dict[str, Any]:
    """Return the topology section of a k-ary fat-tree whose links have this rate and deep queues."""
    return {"kind": f"fat-tree:{k}", "link": {"rate_mbps": rate_mbps, "delay_us": 1, "queue_packets": 1000}}


def aggregation_point(k: int, jobs: int) -> ScaleTrial:
    """Return jobs of 64 workers each that sum a million values.

    NICs report frames 200 us after the first, as in the studies of the figures, and windows cover the round-trip time
    that follows from it. The switches on all workers' paths sum in turns, which needs no linear program.
    """
    return ScaleTrial(
        name=f"aggregation-{jobs * AGGREGATION_WORKERS}",
        system="aggregation",
        configuration={
            "topology": fat_tree(k),
            "timing": {"receive_coalescing_us": 200},
            "switches": {"placement": "shared-path"},
            "workload": {
                "kind": "synthetic",
                "workers": AGGREGATION_WORKERS,
                "jobs": jobs,
                "values": AGGREGATION_VALUES,
                "rounds": 1,
                "window_fragments": 256,
            },
        },
        shrunk={"workload": {"values": 35_200}},
        judges_round=True,
        goal_s=10.0,
        goal_cpu_s=60.0,
    )


SCALE_TRIALS = (
    aggregation_point(k=8, jobs=1),
    aggregation_point(k=16, jobs=8),
    # All 128 hosts of a k = 8 fat-tree push their gradients to each other.
    ScaleTrial(
        name="ndn-128",
        system="ndn",
        configuration={
            "topology": fat_tree(8),
            "timing": {"receive_coalescing_us": 50},
            "workload": {"kind": "synthetic", "peers": 128, "values": 960, "rounds": 1},
        },
        shrunk={"workload": {"peers": 16}},
    ),
    # All 1,024 hosts of a k = 16 fat-tree get four samples each, by the default scheduler. Bit strings are too short
    # for that many.
    ScaleTrial(
        name="shuffle-1024",
        system="shuffle",
        configuration={
            "topology": fat_tree(16),
            "timing": {"receive_coalescing_us": 50},
            "samples": {"data": "synthetic", "samples": 4096},
            "shuffle": {"multicast": "groups"},
        },
        shrunk={"shuffle": {"workers": 64}, "samples": {"samples": 256}},
    ),
    # N = 6: 216 hosts send to each other at half their links' rate for 5 ms.
    ScaleTrial(
        name="interconnect-216",
        system="interconnect",
        configuration={
            "topology": {
                "kind": "optical-electrical:6",
                "link": {"rate_mbps": 10_000, "delay_us": 1, "queue_packets": 64},
            },
            "traffic": {"pattern": "all-to-all", "load": 0.5, "duration_ms": 5, "warm_up_ms": 1},
        },
        shrunk={"traffic": {"duration_ms": 0.5, "warm_up_ms": 0.1}},
    ),
    # All 1,024 hosts of a k = 16 fat-tree send to one other each, at half their links' rate, for 10 ms.
    ScaleTrial(
        name="workload-1024",
        system="workload",
        configuration={
            "topology": fat_tree(16, rate_mbps=1_000),
            "program": {
                "path": P4_SOURCES / "forward.p4",
                "entries_file": Path(__file__).with_name("prefixes.yaml"),
            },
            "traffic": {"pattern": "permutation", "load": 0.5, "duration_ms": 10},
        },
        shrunk={"topology": {"kind": "fat-tree:4"}, "traffic": {"duration_ms": 2}},
    ),
    # All 1,024 hosts of a k = 16 fat-tree sum a vector of a million bytes in a ring: 2,046 messages of each.
    ScaleTrial(
        name="training-1024",
        system="training",
        configuration={
            "topology": fat_tree(16, rate_mbps=100_000),
            "workload": {"operation": "all-reduce", "size_bytes": 1_000_000},
            "collectives": {"algorithm": "ring"},
        },
        shrunk={"topology": {"kind": "fat-tree:4"}},
    ),
)
