"""What the REST interface answers on a small network, star:2: the examples in its description."""

from __future__ import annotations

from typing import Any

from gradbed.topo.generators import star
from gradbed.topo.link import LinkModel

TOPOLOGY: dict[str, Any] = star(2, LinkModel(rate_bps=20_000_000)).model_dump(mode="json", by_alias=True)

LINK_STATE: dict[str, Any] = {"a": "h2", "b": "s1", "up": True}

LINKS = [{"a": "h1", "b": "s1", "up": True}, LINK_STATE]

SWITCHES = [{"name": "s1", "number": 1, "connected": True, "pipeline": "forward 1", "error": None}]

COUNTERS = {"port_in": [{"index": 2, "packets": 5, "bytes": 7270}], "port_out": []}

REGISTER = [{"index": 2, "value": 7}]

DIFFERENCES: list[str] = []  # the switch holds its part of the plan

PLAN = {
    "switches": {
        "s1": {
            "program": "forward",
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

PLAN_TEXT = """s1: forward (p4), 2 entries
  ipv4_routes
    ipv4.dst_addr=10.0.0.2/32 -> forward(port=1, dst_mac=02:00:0a:00:00:02)
    ipv4.dst_addr=10.0.0.3/32 -> forward(port=2, dst_mac=02:00:0a:00:00:03)
"""
