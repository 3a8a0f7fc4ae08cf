"""Which switches are simulated on one thread."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import accumulate

import networkx

from gradbed.switch.fabric_config import FabricConfig

MOST_PARTITIONS = 64


def partitions(config: FabricConfig, count: int) -> dict[int, int]:
    """0 to count - 1 by device id.

    Switches equally far from hosts are shared out alike, as bursts of many hosts are in one tier of a network
    at a time. Of each tier stretches of device ids, with about as many ports each: neighbours are numbered one after
    the other, so that few links lead from one stretch to another.
    """
    if count == 1:
        return {switch.device_id: 0 for switch in config.switches}
    ports: Counter[int] = Counter(port.device_id for port in config.interfaces)
    with_hosts = set(ports)
    graph = networkx.Graph((link.a[0], link.b[0]) for link in config.links)
    for link in config.links:
        ports.update((link.a[0], link.b[0]))
    sources = with_hosts & set(graph)
    far = networkx.multi_source_dijkstra_path_length(graph, sources) if sources else {}
    tiers: defaultdict[int, list[int]] = defaultdict(list)
    for device_id in sorted(switch.device_id for switch in config.switches):
        tiers[far.get(device_id, 0)].append(device_id)
    found: dict[int, int] = {}
    for device_ids in tiers.values():
        until = list(accumulate(ports[device_id] + 1 for device_id in device_ids))
        found |= {each: (end - 1) * count // until[-1] for each, end in zip(device_ids, until, strict=True)}
    return found
