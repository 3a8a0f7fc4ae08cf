"""In-network reduction by aggregation switches for other systems' ranks.

Prepares the headers of gradients and of the server's answers, which hosts' NICs send
(hosts/agents/queue_pairs.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradbed.common.errors import UserError
from gradbed.controller.core.service import ServiceConfig
from gradbed.controller.systems.aggregation.service import AggregationJobRequest
from gradbed.experiments.programs import Program
from gradbed.experiments.setup import StreamGroup, SwitchCollectives
from gradbed.experiments.systems.aggregation.metrics import CLASSES
from gradbed.formats.addresses import ip_integer
from gradbed.formats.aggregation import GRADIENT, GRADIENT_PORT, MAX_WORKERS, Designation, Flags
from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.formats.lanes import MAX_LANES
from gradbed.formats.packet_class import bits_of, udp_datagram
from gradbed.hosts.agents.queue_pairs import StreamOptions, Word
from gradbed.hosts.protocols.frames import mac_array
from gradbed.hosts.systems.aggregation.gradient_frames import pack_frames
from gradbed.topo.graph import Topology

SLOTS = 512
"""Slots of each job in each of its switches, and fragments in flight: 512 of 1 KB are 42 us at 100 Gbit/s."""
HEADER_BYTES = DATAGRAM_BYTES + GRADIENT.size_bytes


def switch_collectives(
    name: str, service: str, topology: Topology, groups: Sequence[tuple[Sequence[str], str]]
) -> SwitchCollectives:
    """Return what aggregation switches do for the ranks: every ToR sums for its hosts, the server's ToR for all.

    Args:
        name: of the system.
        service: "module:Class" of its controller service.
        groups: members and server of each group.

    Raises:
        UserError: a group has too many members.
    """
    for members, _ in groups:
        if len(members) > MAX_WORKERS:
            raise UserError(f"--in-network: switches sum for at most {MAX_WORKERS} ranks, not {len(members)}")
    sums = Program.own("aggregation", LANES=MAX_LANES, SLOTS=SLOTS * len(groups))
    return SwitchCollectives(
        {switch.name: sums for switch in topology.switches},
        ServiceConfig(name=name, service=service, settings={"slots": SLOTS * len(groups)}),
        [_group(topology, tuple(members), server) for members, server in groups],
        CLASSES,
    )


def _group(topology: Topology, members: tuple[str, ...], server: str) -> StreamGroup:
    request = AggregationJobRequest(
        workers=list(members),
        server=server,
        placement="own-tor",
        slot_policy="static",
        slots=SLOTS,
    )

    def streams(answer: Mapping[str, Any]) -> Mapping[str, StreamOptions]:
        found = {server: _server(topology, members, server, answer)}
        for index, host in enumerate(members):
            found[host] = _worker(topology, host, index, len(members), server, answer)
        return found

    return StreamGroup(members, server, request, streams)


def _offset(name: str) -> int:
    """Return the offset of a header field in the frame, in bytes."""
    return DATAGRAM_BYTES + GRADIENT.offset_bytes(name)


def _templates(frames: Any) -> tuple[str, ...]:
    """Return the headers of frames with lanes, in hexadecimal."""
    rows = frames.view(np.uint8).reshape(len(frames), -1)
    return tuple(bytes(row[:HEADER_BYTES]).hex() for row in rows)


def _options(
    role: Any, everybody: int, templates: tuple[str, ...], arrivals: tuple[Word, ...], direct: str = ""
) -> StreamOptions:
    return StreamOptions(
        role=role,
        window=SLOTS if role == "source" else 4 * SLOTS,
        payload_bytes=4 * MAX_LANES,
        reply_payload=True,
        everybody=everybody,
        templates=templates,
        number_offset=_offset("packet_number"),
        bits_offset=_offset("worker_bitmap"),
        magnitude_offset=_offset("magnitude") if role == "source" else None,
        flags_offset=_offset("flags"),
        again=int(Flags.RETRY if role == "source" else Flags.RESEND),
        came_again=int(Flags.RETRY | Flags.RESEND),
        direct=direct,
        arrivals=arrivals,
    )


def _arrivals(job: int, acknowledgements: bool) -> tuple[Word, ...]:
    ack = int(Flags.ACK) if acknowledgements else 0
    return (
        (_offset("job"), 0xFFFF, job),
        bits_of(GRADIENT, "flags", DATAGRAM_BYTES, int(Flags.ACK), ack),
        *udp_datagram(GRADIENT_PORT),
    )


def _worker(
    topology: Topology, name: str, index: int, workers: int, server: str, answer: Mapping[str, Any]
) -> StreamOptions:
    host = topology.host(name)
    labels = [Designation(**label) for label in answer["designations"][index]] or [Designation()]
    frames = pack_frames(
        np.zeros((len(labels), MAX_LANES), np.int32),
        src_mac=mac_array(host.mac),
        dst_mac=mac_array(host.gateway_mac),
        src_ip=ip_integer(host.ip),
        dst_ip=ip_integer(topology.host(server).ip),
        job=answer["job"],
        worker_bitmap=1 << index,
        switch_number=[label.switch_number for label in labels],
        fan_in=[label.fan_in for label in labels],
        next_switch=[label.next_switch for label in labels],
        next_fan_in=[label.next_fan_in for label in labels],
    )
    direct = frames[:1].copy()
    for name, value in (("switch_number", 0), ("fan_in", 0), ("next_switch", 0), ("next_fan_in", 0)):
        direct[name] = value
    direct["src_port"], direct["flags"] = GRADIENT_PORT, int(Flags.RESEND)
    arrivals = _arrivals(answer["job"], acknowledgements=True)
    return _options("source", (1 << workers) - 1, _templates(frames), arrivals, _templates(direct)[0])


def _server(topology: Topology, members: Sequence[str], name: str, answer: Mapping[str, Any]) -> StreamOptions:
    host, groups = topology.host(name), answer["multicast"]
    if not groups:
        raise UserError("--in-network: no switch sums for these ranks")
    everybody = (1 << len(members)) - 1
    frames = pack_frames(
        np.zeros((len(groups), MAX_LANES), np.int32),
        src_mac=mac_array(host.mac),
        dst_mac=np.array([mac_array(group["mac"]) for group in groups]),
        src_ip=ip_integer(host.ip),
        dst_ip=[ip_integer(group["ip"]) for group in groups],
        job=answer["job"],
        worker_bitmap=everybody,
        flags=int(Flags.ACK),
        packet_number=0,
    )
    return _options("server", everybody, _templates(frames), _arrivals(answer["job"], acknowledgements=False))
