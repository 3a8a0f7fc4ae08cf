"""In-network multicast by shuffle switches for other systems' ranks.

Prepares headers of coded packets with the bit string of all receivers, and of their answers, which hosts' NICs send
(hosts/agents/queue_pairs.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradbed.common.errors import UserError
from gradbed.controller.core.service import ServiceConfig
from gradbed.controller.systems.shuffle.messages import ShuffleRequest, ShuffleSettings
from gradbed.experiments.programs import Program
from gradbed.experiments.setup import StreamGroup, SwitchCollectives
from gradbed.experiments.systems.shuffle.metrics import CLASSES
from gradbed.formats.addresses import ip_integer
from gradbed.formats.datagram import DATAGRAM_BYTES
from gradbed.formats.packet_class import udp_datagram
from gradbed.formats.shuffle import CODED, CODED_PORT, MULTICAST_IP, MULTICAST_MAC, USUAL_BITS, CodedFlags
from gradbed.hosts.agents.queue_pairs import StreamOptions
from gradbed.hosts.protocols.frames import frame_type, mac_array, pack_datagrams
from gradbed.topo.graph import Topology

WINDOW = 512
"""Fragments in flight."""
PAYLOAD_BYTES = 1024
BIT_STRING = DATAGRAM_BYTES + CODED.size_bytes
HEADER_BYTES = BIT_STRING + USUAL_BITS // 8
MOST_MEMBERS = 64
"""Largest number of members whose answers a stream can tell apart."""


def switch_collectives(
    name: str, service: str, topology: Topology, groups: Sequence[tuple[Sequence[str], str]]
) -> SwitchCollectives:
    """Return what shuffle switches do for the ranks: copy packets of one member to all others.

    Args:
        name: of the system.
        service: "module:Class" of its controller service.
        groups: members, and the one that sends.

    Raises:
        UserError: a group has too many members.
    """
    for members, _ in groups:
        if len(members) > MOST_MEMBERS:
            raise UserError(f"--in-network: switches copy for at most {MOST_MEMBERS} ranks, not {len(members)}")
    copies = Program.own("multicast", BITS=USUAL_BITS)
    return SwitchCollectives(
        {switch.name: copies for switch in topology.switches},
        ServiceConfig(name=name, service=service, settings=ShuffleSettings().model_dump(mode="json")),
        [_group(topology, (root, *(each for each in members if each != root))) for members, root in groups],
        CLASSES,
    )


def _group(topology: Topology, members: tuple[str, ...]) -> StreamGroup:
    """Return the stream of a group, whose root comes first.

    To the shuffle it is a sample that one worker has and all others need.
    """
    root, others = members[0], members[1:]
    request = ShuffleRequest(
        workers=members,
        sizes_bytes=(PAYLOAD_BYTES,),
        stored=((0,), *((),) * len(others)),
        needed=((), *((0,),) * len(others)),
        scheduler="uncoded-multicast",
    )

    def streams(answer: Mapping[str, Any]) -> Mapping[str, StreamOptions]:
        (delivery,) = answer["deliveries"]
        found = {root: _source(topology, members, answer["job"], delivery)}
        for index, host in enumerate(others, start=1):
            found[host] = _sink(topology, members, index, answer["job"])
        return found

    return StreamGroup(members, root, request, streams)


def _bit(index: int) -> int:
    return 1 << index


def _offset(name: str) -> int:
    """Return the offset of a header field in the frame, in bytes."""
    return DATAGRAM_BYTES + CODED.offset_bytes(name)


def _template(payload_bytes: int, bits: int, **values: Any) -> str:
    dtype = frame_type(CODED, ("bits", "u1", USUAL_BITS // 8), ("rest", "u1", payload_bytes))
    string = np.frombuffer(bits.to_bytes(USUAL_BITS // 8, "big"), np.uint8)
    frame = pack_datagrams(CODED, dtype, 1, bits=string, rest=0, **values)
    return bytes(frame.view(np.uint8)[:HEADER_BYTES]).hex()


def _options(role: Any, everybody: int, template: str, job: int, request: int) -> StreamOptions:
    return StreamOptions(
        role=role,
        window=WINDOW if role == "source" else 4 * WINDOW,
        payload_bytes=PAYLOAD_BYTES,
        reply_payload=False,
        everybody=everybody,
        templates=(template,),
        number_offset=_offset("transmission"),
        bits_offset=HEADER_BYTES - 8,
        flags_offset=_offset("flags"),
        again=int(CodedFlags.LOAN),
        came_again=int(CodedFlags.LOAN),
        arrivals=(
            (_offset("job"), 0xFFFF, job),
            (_offset("flags") - 1, int(CodedFlags.REQUEST), request),
            *udp_datagram(CODED_PORT),
        ),
    )


def _source(topology: Topology, members: Sequence[str], job: int, delivery: Mapping[str, Any]) -> StreamOptions:
    host = topology.host(members[0])
    everybody = sum(_bit(index) for index in range(1, len(members)))
    by_bits = delivery["dst_ip"] is None
    template = _template(
        PAYLOAD_BYTES,
        everybody,
        src_mac=mac_array(host.mac),
        dst_mac=mac_array(MULTICAST_MAC if by_bits else host.gateway_mac),
        src_ip=ip_integer(host.ip),
        dst_ip=ip_integer(MULTICAST_IP if by_bits else delivery["dst_ip"]),
        flags=int(CodedFlags.BY_BIT_STRING) if by_bits else 0,
        job=job,
        bift_id=delivery["bift_id"],
        bfir_id=1,
        transmission=0,
        fragment=0,
    )
    return _options("source", everybody, template, job, int(CodedFlags.REQUEST))


def _sink(topology: Topology, members: Sequence[str], index: int, job: int) -> StreamOptions:
    host = topology.host(members[index])
    template = _template(
        0,
        _bit(index),
        src_mac=mac_array(host.mac),
        dst_mac=mac_array(host.gateway_mac),
        src_ip=ip_integer(host.ip),
        dst_ip=ip_integer(topology.host(members[0]).ip),
        flags=int(CodedFlags.REQUEST),
        job=job,
        bift_id=0,
        bfir_id=index + 1,
        transmission=0,
        fragment=0,
    )
    return _options("sink", _bit(index), template, job, 0)
