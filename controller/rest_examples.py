"""What the REST interface answers on a small network, star:2: the examples in its description."""

from __future__ import annotations

from typing import Any

from topo.star import star

TOPOLOGY: dict[str, Any] = star(2, rate_bps=20_000_000).model_dump(mode="json", by_alias=True)

SWITCHES = [{"name": "s1", "number": 1, "connected": True, "pipeline": "aggregation 1", "error": None}]

COUNTERS = {"gradient_in": [{"index": 2, "packets": 5, "bytes": 7270}], "events": []}

JOB_REQUEST: dict[str, Any] = {"workers": ["h2"], "server": "h1", "placement": "shared-path"}

NEW_JOB = {
    "job": 1,
    "designations": [[{"switch_number": 1, "fan_in": 1, "next_switch": 0, "next_fan_in": 0}]],
    "designated_switches": [1],
    "slot_policy": "dynamic",
    "slots": 1024,
    "acknowledgement": "multicast",
    "multicast": [{"ip": "239.66.0.16", "mac": "01:00:5e:42:00:10"}],
}

LISTED_JOB = {
    **NEW_JOB,
    "workers": JOB_REQUEST["workers"],
    "server": JOB_REQUEST["server"],
    "slot_ranges": {"s1": {"first_slot": 0, "slots": 1024}},
}

PLAN = {
    "switches": {
        "s1": {
            "program": "aggregation",
            "entries": [
                {
                    "table": "ipv4_routes",
                    "match": {"hdr.ipv4.dst_addr": {"value": 167772162, "prefix_bits": 32}},
                    "action": "forward",
                    "params": {"port": 1, "dst_mac": 2199191027714},
                },
                {
                    "table": "ipv4_routes",
                    "match": {"hdr.ipv4.dst_addr": {"value": 167772163, "prefix_bits": 32}},
                    "action": "forward",
                    "params": {"port": 2, "dst_mac": 2199191027715},
                },
            ],
        }
    }
}

PLAN_TEXT = """s1: aggregation (p4), 2 entries
  ipv4_routes
    ipv4.dst_addr=10.0.0.2/32 -> forward(port=1, dst_mac=02:00:0a:00:00:02)
    ipv4.dst_addr=10.0.0.3/32 -> forward(port=2, dst_mac=02:00:0a:00:00:03)
"""
