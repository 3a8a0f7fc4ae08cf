"""A gradient-summing switch in plain Python between veth interfaces: slow, simple, and independent of P4.

    python -m tests.emulation.slot_switch CONFIG.json

It stands in the middle of a star of hosts, runs the slot model of the unit tests on whole frames (read and
written by Scapy) and loses and duplicates frames at random on every port, in both directions. It says "ready" on
standard output once it receives.
"""

from __future__ import annotations

import json
import random
import select
import socket
import sys
from typing import Any

from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from hosts.protocols.datagram_format import CE, ECN_MASK, ECT_0
from hosts.systems.aggregation.gradient import Gradient, gradient_frame
from hosts.systems.aggregation.gradient_format import Flags
from tests.unit.hosts.slot_model import Label, Packet, SwitchModel


class SlotSwitch:
    """config: ports {interface: {"ip", "mac", "gateway_mac", "worker": index or null}}, group_ip, group_mac, number,
    slots, static, jobs, loss, duplicate, mark, seed. mark: part of the frames that are marked CE on their way."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.random = random.Random(config["seed"])
        self.model = SwitchModel(config["number"], config["slots"], frozenset(config["jobs"]), config["static"])
        self.sockets = {}
        for interface in config["ports"]:
            port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
            port.bind((interface, 0x0800))
            self.sockets[interface] = port

    def run(self) -> None:
        by_descriptor = {port.fileno(): port for port in self.sockets.values()}
        print("ready", flush=True)
        while True:
            for descriptor in select.select(list(by_descriptor), [], [])[0]:
                frame = Ether(by_descriptor[descriptor].recv(2048))
                if Gradient in frame:
                    for _ in range(self.copies()):
                        self.switch(frame)

    def copies(self) -> int:
        arrived = self.random.random() >= self.config["loss"]
        return arrived + (self.random.random() < self.config["duplicate"])

    def switch(self, frame: Any) -> None:
        header, workers = frame[Gradient], {port["ip"]: port["worker"] for port in self.config["ports"].values()}
        packet = Packet(
            flags=int(header.flags),
            job=header.job,
            number=header.packet_number,
            label=Label(header.switch_number, header.fan_in, header.next_switch, header.next_fan_in),
            bitmap=header.worker_bitmap,
            magnitude=header.magnitude,
            lanes=tuple(header.lanes),
            worker=workers[frame[IP].src],
            congested=frame[IP].tos & ECN_MASK == CE or bool(header.flags & Flags.CONGESTION),
        )
        passed_on = self.model.process(packet)
        if passed_on is None:
            return
        for interface, port in self.config["ports"].items():
            to_group = frame[IP].dst == self.config["group_ip"] and port["worker"] is not None
            if to_group or frame[IP].dst == port["ip"]:
                self.send(interface, frame, passed_on, self.config["group_mac"] if to_group else port["mac"])

    def send(self, interface: str, frame: Any, packet: Packet, dst_mac: str) -> None:
        out = gradient_frame(
            src_mac=self.config["ports"][interface]["gateway_mac"],
            dst_mac=dst_mac,
            src_ip=frame[IP].src,
            dst_ip=frame[IP].dst,
            ttl=frame[IP].ttl - 1,
            job=packet.job,
            packet_number=packet.number,
            worker_bitmap=packet.bitmap,
            lanes=packet.lanes,
            flags=packet.flags | Flags.CONGESTION if packet.congested else packet.flags,
            switch_number=packet.label.switch_number,
            fan_in=packet.label.fan_in,
            next_switch=packet.label.next_switch,
            next_fan_in=packet.label.next_fan_in,
            magnitude=packet.magnitude,
            tos=CE if self.random.random() < self.config["mark"] else ECT_0,
        )
        for _ in range(self.copies()):
            self.sockets[interface].send(bytes(out))


if __name__ == "__main__":
    SlotSwitch(json.loads(sys.argv[1])).run()
