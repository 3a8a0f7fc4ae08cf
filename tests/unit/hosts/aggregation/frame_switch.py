"""The slot model on whole frames, read and written by Scapy: slow, simple, and independent of P4."""

from __future__ import annotations

import random
from collections.abc import Iterator

from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from formats.aggregation import Flags
from formats.datagram import CE, ECN_MASK, ECT_0
from hosts.systems.aggregation.description import JobDescription
from hosts.systems.aggregation.gradient import Gradient, gradient_frame
from tests.unit.hosts.aggregation.slot_model import Label, Packet, SwitchModel


class FrameSwitch:
    """A switch that all hosts of one job hang on. mark: part of the frames that it marks CE."""

    def __init__(self, job: JobDescription, number: int, slots: int, mark: float = 0.0, seed: int = 5) -> None:
        self.model = SwitchModel(number, slots, frozenset({job.job}), job.slot_policy == "static")
        self._hosts = {agent.ip: agent for agent in (job.server, *job.workers)}
        self._workers = {worker.ip: worker.index for worker in job.workers}
        self._groups = {group.ip: group.mac for group in job.multicast}
        self._mark = mark
        self._random = random.Random(seed)

    def forward(self, frame: bytes) -> Iterator[tuple[str, bytes]]:
        """tests.unit.hosts.agents.virtual_network.Forward."""
        received = Ether(frame)
        header, ip = received[Gradient], received[IP]
        packet = Packet(
            flags=int(header.flags),
            job=header.job,
            number=header.packet_number,
            label=Label(header.switch_number, header.fan_in, header.next_switch, header.next_fan_in),
            bitmap=header.worker_bitmap,
            magnitude=header.magnitude,
            lanes=tuple(header.lanes),
            worker=self._workers.get(ip.src),
            congested=ip.tos & ECN_MASK == CE or bool(header.flags & Flags.CONGESTION),
        )
        passed_on = self.model.process(packet)
        if passed_on is None:
            return
        to_group = ip.dst in self._groups
        for host in self._workers if to_group else [ip.dst]:
            agent = self._hosts[host]
            out = gradient_frame(
                src_mac=agent.gateway_mac,
                dst_mac=self._groups[ip.dst] if to_group else agent.mac,
                src_ip=ip.src,
                dst_ip=ip.dst,
                ttl=ip.ttl - 1,
                job=passed_on.job,
                packet_number=passed_on.number,
                worker_bitmap=passed_on.bitmap,
                lanes=passed_on.lanes,
                flags=passed_on.flags | Flags.CONGESTION if passed_on.congested else passed_on.flags,
                switch_number=passed_on.label.switch_number,
                fan_in=passed_on.label.fan_in,
                next_switch=passed_on.label.next_switch,
                next_fan_in=passed_on.label.next_fan_in,
                magnitude=passed_on.magnitude,
                tos=CE if self._random.random() < self._mark else ECT_0,
            )
            yield agent.name, bytes(out)
