"""What is searched: a small network and a short job of every system, as options of `gradbed run`."""

from __future__ import annotations

import pytest

from tests.unit.chaos.search import Searched

_LINKS = {"topology.link.rate_mbps": 100, "topology.link.delay_us": 100, "timing.control_delay_us": 500}
_LEAVES = {"topology.kind": "leaf-spine:3,2,2", **_LINKS}

_VALUES = {"workload.kind": "synthetic", "workload.values": 960}

_NO_ACK = r"no ACK from server .* for 30 s"
_UNDONE = r"worker \d+ was killed when it had \d of 4 sums"
"""All others had their last sums."""
_NO_PEER = (
    r"peer \d+ ended after \d+ of \d+ versions. 30 s without h\d+|no acknowledgement in 30 s from h\d+"
    r"|not all peers have subscribed after 60 s"
)
_NO_SAMPLE = r"sample \d+ does not come, .* did that worker stop"
_NO_NEWS = r"no news from server .* for 30 s in round"
_GONE = r"rank \d+ on h\d+ does not answer any more"
_NOBODY = r"round \d+: no worker was there to its end"
"""Those that were had begun with another server."""

SYSTEMS = (
    Searched(
        "aggregation",
        {
            **_LEAVES,
            "switches.placement": "explicit",
            "switches.named": ("l2", "s1"),
            "switches.legacy": "p4",
            "workload.workers": 4,
            "workload.rounds": 4,
            "workload.lanes": 32,
            **_VALUES,
            "workload.window_fragments": 16,
            "workload.baselines": (),
        },
        ["server", *(f"worker {index}" for index in range(4))],
        {"killed": f"{_NO_ACK}|{_UNDONE}", "anew": _NO_ACK, "apart": _NO_ACK},
    ),
    Searched(
        "ndn",
        {**_LEAVES, "workload.peers": 4, "workload.rounds": 4, **_VALUES},
        [f"peer {index}" for index in range(4)],
        {"killed": _NO_PEER, "anew": _NO_PEER, "apart": _NO_PEER},
    ),
    Searched(
        "shuffle",
        {
            "topology.kind": "fat-tree:4",
            **_LINKS,
            "samples.data": "synthetic",
            "samples.samples": 64,
            "samples.sample_bytes": 4000,
            "samples.spread_bytes": 300,
            "shuffle.workers": 6,
        },
        [f"worker {index}" for index in range(6)],
        {"killed": _NO_SAMPLE, "anew": _NO_SAMPLE, "apart": _NO_SAMPLE},
    ),
    Searched(
        "compression",
        {
            **_LEAVES,
            "workload.workers": 4,
            "workload.rounds": 5,
            **_VALUES,
            "workload.values": 960,
        },
        ["server", *(f"worker {index}" for index in range(4))],
        {"killed": _NO_NEWS, "anew": f"{_NO_NEWS}|{_NOBODY}", "apart": _NO_NEWS},
    ),
    Searched(
        "interconnect",
        {
            **_LINKS,
            "topology.kind": "optical-electrical:2",
            "topology.link.delay_us": 5,
            "topology.link.queue_packets": 64,
            "traffic.pattern": "all-to-all",
            "traffic.load": 0.3,
            "traffic.duration_ms": 10,
        },
        [f"traffic of h{number}" for number in range(1, 9)],
        anew=False,
    ),
    Searched(
        "workload",
        {
            **_LINKS,
            "topology.kind": "leaf-spine:3,2,2",
            "topology.link.delay_us": 5,
            "topology.link.queue_packets": 50,
            "program.path": "p4src/ecmp.p4",
            "program.entries_file": "experiments/systems/workload/studies/all-paths.yaml",
            "traffic.pattern": "all-to-all",
            "traffic.within": "between-racks",
            "traffic.flows": 30,
            "traffic.load": 0.3,
            "traffic.duration_ms": 10,
        },
        [f"traffic of h{number}" for number in range(1, 7)],
        anew=False,
    ),
    Searched(
        "training",
        {
            **_LEAVES,
            "workload.preset": "tiny",
            "workload.dp": 3,
            "workload.tp": 2,
            "workload.batch": 6,
            "workload.layers": 2,
            "transport.recovery": "selective-repeat",
            "transport.reordering_packets": 12,
            "transport.window_bytes": 65_536,
            "transport.timeout_us": 50_000,
            "transport.give_up_after": 200,
        },
        [f"rank {number}" for number in range(6)],
        {"killed": _GONE, "anew": _GONE, "apart": _GONE},
    ),
)

of_every_system = pytest.mark.parametrize("searched", SYSTEMS, ids=lambda searched: searched.system)
