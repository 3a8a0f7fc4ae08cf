"""A topology in words: what it has, and how its tiers hang together."""

from __future__ import annotations

from collections import Counter

from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel

HOSTS = "hosts"


def link_words(model: LinkModel) -> str:
    """What a link does: "100 Mbit/s, 50 us, queues of 1000 packets"."""
    words = ["unlimited" if model.rate_bps is None else f"{model.rate_bps / 1e6:g} Mbit/s", f"{model.delay_us} us"]
    words += [f"{name} {value:g}" for name, value in (("loss", model.loss), ("jitter us", model.jitter_us)) if value]
    words.append(f"queues of {model.queue_packets} packets")
    words += [f"PFC from {model.pfc_xoff_bytes} to {model.pfc_xon_bytes} bytes"] if model.pfc_xoff_bytes else []
    return ", ".join(words)


def drawing(topology: Topology) -> str:
    """Its tiers from the hosts on, and how many links join them: "16 hosts --16-- 8 edge --16-- 8 aggregation".
    Links that are not on this way follow: "; 9 hybrid --18-- 3 optical"."""
    tiers = {switch.name: switch.tier for switch in topology.switches}
    nodes = Counter([HOSTS] * len(topology.hosts) + list(tiers.values()))
    links = Counter(
        tuple(sorted((tiers.get(link.a.node, HOSTS), tiers.get(link.b.node, HOSTS)))) for link in topology.links
    )
    named = {tier: f"{count} {tier}" for tier, count in nodes.items()}
    parts = [named.get(HOSTS, "no hosts")]
    at, left = HOSTS, dict(links)
    while way := next((pair for pair in left if at in pair and pair[0] != pair[1]), None):
        count = left.pop(way)
        at = way[1] if way[0] == at else way[0]
        parts.append(f"{count}-- {named[at]}")
    more = [f"{named[a]} --{count}-- {'each other' if a == b else named[b]}" for (a, b), count in left.items()]
    return "; ".join([" --".join(parts), *more])
