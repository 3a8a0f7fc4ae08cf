"""Files that people write: topologies, studies, entries, captures."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable
from pathlib import Path

from gradbed.controller.entries.planner import EntriesPlanner
from gradbed.controller.planning.routing import shortest_routes
from gradbed.experiments.live.recording import VERSION, Recording
from gradbed.experiments.study.loading import load_study
from gradbed.hosts.traffic.replay import Replay, replay_windows
from gradbed.switch.simple_switch.packet_files import read_pcap
from gradbed.topo.files import read_topology
from tests.fuzz.parsers.target import Target, files, of_file, texts
from tests.unit.controller.entries.planning import TOPOLOGY, settings

_TUTORIALS = {
    "hosts": {
        "h1": {
            "ip": "10.0.1.1/24",
            "mac": "08:00:00:00:01:11",
            "commands": ["route add default gw 10.0.1.10 dev eth0"],
        },
        "h2": {"ip": "10.0.2.2/24"},
    },
    "switches": {"s1": {}, "s2": {}},
    "links": [["h1", "s1-p1", "5ms", 10], ["s1-p2", "s2-p2"], ["s2-p1", "h2", 0]],
}
_P4_UTILS = {
    "p4_src": "",
    "topology": {
        "assignment_strategy": "l2",
        "default": {"bw": 10},
        "links": [["h1", "s1", {"delay": "5ms", "bw": 1}], ["h2", "s1"], ["s1", "s2"]],
        "hosts": {"h1": {}, "h2": {"ip": "10.0.0.9/24"}},
        "switches": {"s1": {}, "s2": {"priority": 1}},
    },
}
_RUNTIME = {
    "target": "bmv2",
    "table_entries": [
        {
            "table": "TheIngress.routes",
            "match": {"hdr.ipv4.dst_addr": ["10.0.1.1", 32]},
            "action_name": "TheIngress.forward",
            "action_params": {"port": 1, "dst_mac": "08:00:00:00:01:11"},
        },
        {"table": "TheIngress.routes", "default_action": True, "action_name": "TheIngress.drop", "action_params": {}},
    ],
    "multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_port": 1, "instance": 1}]}],
    "clone_session_entries": [{"clone_session_id": 5, "replicas": [{"egress_port": 1}]}],
}
_COMMANDS = """table_set_default routes drop
table_add routes forward 10.0.0.0/8 => 1 08:00:00:00:01:11
table_add rules drop 10.0.0.1&&&255.0.0.0 1->7 6&&&0xff => 3
mc_mgrp_create 1
mc_node_create 0 1 2
mc_node_associate 1 0
register_write threshold 0 1
meter_set_rates police 0 1:2 3:4
mirroring_add 5 1
"""


def _topology(name: str, seeds: Callable[[], list[bytes]]) -> Target:
    return Target(of_file(lambda path: read_topology(str(path)), name), seeds)


def _entries(file: Path) -> object:
    return EntriesPlanner(settings((file,), {})).plan(TOPOLOGY, shortest_routes(TOPOLOGY))


def _own_entries(file: Path) -> object:
    return EntriesPlanner(settings((), {"l1": file})).plan(TOPOLOGY, shortest_routes(TOPOLOGY))


def _written_entries() -> list[bytes]:
    """Those that the tests of entries give, and such as people write."""
    return [
        *files("cli/templates/**/*entries*.yaml", "examples/python/gate.yaml"),
        *texts("registers: {threshold: {0: 7}}\n"),
    ]


def _capture(order: str, frames: tuple[bytes, ...], link_type: int = 1) -> bytes:
    """A classic pcap file."""
    head = struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link_type)
    return head + b"".join(struct.pack(order + "4I", 1, 2, len(f), len(f)) + f for f in frames)


def _captures() -> list[bytes]:
    from gradbed.common.capture_files import OUTBOUND, PcapngInterface, file_header, packet_block

    ng = file_header([PcapngInterface("s1-eth1", "one"), PcapngInterface("s1-eth2", "two")])
    ng += packet_block(0, 5, bytes(60), OUTBOUND) + packet_block(1, 9, bytes(61), OUTBOUND)
    simple = struct.pack("<4I", 3, 80, 100, 0) + bytes(60) + struct.pack("<I", 80)
    raw = _capture("<", (b"\x45" + bytes(19),), 101)
    return [_capture("<", (bytes(60), bytes(1500))), _capture(">", (bytes(14),)), ng + simple + ng, raw]


def _recordings() -> list[bytes]:
    """Rows of every kind, packed and as they are."""
    rows: list[dict[str, object]] = [
        {"kind": "begin", "version": VERSION, "t_us": 0, "programs": {}},
        {"kind": "phase", "t_us": 1, "name": "rounds", "begins": True},
        {"kind": "frame", "t_us": 2, "links": {"0": [1, 64, 0, None]}},
        {"kind": "progress", "t_us": 2, "bars": []},
        {"kind": "value", "t_us": 3, "phase": "rounds", "job": 1, "name": "round_us", "round": 1, "value": 2.5},
        {"kind": "event", "t_us": 4, "text": "a link failed", "level": "fault"},
        {"kind": "end", "t_us": 5},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return [gzip.compress(text, mtime=0), gzip.compress(text * 300, mtime=0), text]


def _read_pcap(file: Path) -> object:
    with file.open("rb") as stream:
        return list(read_pcap(stream))


def _replay(file: Path) -> object:
    return list(replay_windows(Replay(file=file), 0))


TARGETS = {
    "topology-json": _topology("topology.json", lambda: [json.dumps(_TUTORIALS).encode()]),
    "p4app-json": _topology("p4app.json", lambda: [json.dumps(_P4_UTILS).encode()]),
    "topology-yaml": _topology("topology.yaml", lambda: files("examples/topologies/*.yaml")),
    "graphml": _topology("topology.graphml", lambda: files("examples/topologies/*.graphml")),
    "study": Target(
        of_file(load_study, "study.yaml"), lambda: files("experiments/systems/*/studies/*.yaml"), mutants=40
    ),
    "entries": Target(of_file(_entries, "entries.yaml"), _written_entries),
    "runtime-json": Target(of_file(_own_entries, "s1-runtime.json"), lambda: [json.dumps(_RUNTIME).encode()]),
    "commands": Target(of_file(_own_entries, "s1-commands.txt"), lambda: [_COMMANDS.encode()]),
    "pcap": Target(of_file(_read_pcap, "in.pcap"), _captures),
    "recording": Target(of_file(Recording.load, "live.jsonl.gz"), _recordings),
    "capture": Target(of_file(_replay, "in.pcap"), _captures),
}
