"""Competing traffic: datagrams at a constant rate into the server's link, from a host that has no other part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradbed.experiments.scale import Scale
from gradbed.experiments.systems.compression.configuration import BackgroundSection
from gradbed.experiments.testbeds.agents import AgentSpec
from gradbed.experiments.traffic.agents import AGENT, NAME
from gradbed.hosts.agents.description import AgentAddress
from gradbed.hosts.traffic.description import EndpointDescription, Sizes, Stream
from gradbed.topo.graph import Topology

_SENDER, _RECEIVER = 0, 1
"""Their numbers in packets."""


def background_agents(
    section: BackgroundSection, sender: str, server: str, topology: Topology, scale: Scale, seed: int, job: int
) -> list[AgentSpec]:
    """The agents in both hosts. topology: in emulated units."""
    link_bps = topology.link(server, topology.attachment(server).name).model.rate_bps
    assert link_bps is not None
    stream = Stream(
        destination=AgentAddress.of(topology.host(server)),
        receiver=_RECEIVER,
        rate_bps=section.load * link_bps,
        dst_mac=topology.destination_mac(sender, server),
    )
    return [
        AgentSpec(
            host,
            AGENT,
            NAME.format(host),
            EndpointDescription(
                address=AgentAddress.of(topology.host(host)),
                source=source,
                streams=(stream,) if source == _SENDER else (),
                sizes=Sizes(frame_bytes=section.frame_bytes),
                link_rate_bps=link_bps,
                begin_us=scale.time_us(1000 * section.from_ms),
                duration_us=max(1, scale.time_us(1000 * section.duration_ms)),
                seed=seed,
            ),
            0,
            job,
        )
        for host, source in ((sender, _SENDER), (server, _RECEIVER))
    ]


def background_loss(
    final: Mapping[tuple[int, str], Mapping[str, Any]], sender: str, server: str, job: int
) -> float | None:
    """The part of the datagrams that did not come; None: none were sent."""
    sent = sum(final.get((job, NAME.format(sender)), {}).get("sent_flows", {}).get("packets", ()))
    came = sum(final.get((job, NAME.format(server)), {}).get("flows", {}).get("packets", ()))
    return 1 - came / sent if sent else None
