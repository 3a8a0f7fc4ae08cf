"""A packet of one class that is lost, made up or changed unseen, by a host, a link or a switch, fails the run of
every system, and the failure says of which class and where."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw

from gradbed.emulation.backend import VirtualBackend
from gradbed.emulation.statistics import ClassCounts
from gradbed.experiments.engine import trial
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.systems.aggregation.metrics import CLASSES as AGGREGATION
from gradbed.experiments.systems.compression.trial import CLASSES as COMPRESSION
from gradbed.experiments.systems.interconnect.trial import CLASSES as INTERCONNECT
from gradbed.experiments.systems.ndn.metrics import CLASSES as NDN
from gradbed.experiments.systems.shuffle.metrics import CLASSES as SHUFFLE
from gradbed.experiments.systems.training.trial import CLASSES as TRAINING
from gradbed.formats.packet_class import BY_PROTOCOL, OTHER, PacketClass
from gradbed.hosts.agents.frames.counts import ClassCounts as HostsClassCounts
from gradbed.switch.engine import Engine
from gradbed.switch.engine.queue_pairs import HostQueuePairs
from gradbed.switch.virtual import HostInterface
from tests.unit.trials import virtual_trial
from tests.unit.workload.runs import run as run_workload

LOSSY = {"rate_mbps": 100, "loss": 0.02, "duplicate": 0.02}

SMALL: dict[str, dict[str, Any]] = {
    "aggregation": {
        "topology": {"kind": "leaf-spine:2,1,2", "link": LOSSY},
        "switches": {"placement": "every-tor", "legacy": "none"},
        "workload": {"workers": 3, "rounds": 2, "lanes": 32, "values": 640},
    },
    "ndn": {
        "topology": {"kind": "leaf-spine:2,1,2", "link": LOSSY},
        "workload": {"peers": 3, "rounds": 2, "values": 960},
    },
    "compression": {
        "topology": {"kind": "star:4", "link": LOSSY},
        "workload": {"workers": 3, "rounds": 2, "values": 9600},
    },
    "shuffle": {
        "topology": {"kind": "star:3", "link": LOSSY},
        "shuffle": {"workers": 3},
        "samples": {"samples": 30, "storage": 0.34},
    },
    "interconnect": {"topology": {"kind": "optical-electrical:2"}, "traffic": {"packets": 20}},
    "workload": {},
    "training": {
        "topology": {"kind": "star:3", "link": LOSSY},
        "workload": {"size_bytes": 300_000},
        "transport": {"recovery": "selective-repeat", "timeout_us": 20_000},
    },
}
CLASS_OF = {
    "aggregation": "gradient",
    "ndn": "Data",
    "compression": "ACK",
    "shuffle": "scheduled",
    "interconnect": "electrical",
    "workload": "UDP",
    "training": "data",
}
"""The one that is tampered with."""

FRAMES: Sequence[tuple[Sequence[PacketClass], Packet, str]] = [
    (AGGREGATION, UDP(dport=0x4742) / Raw(bytes([2, 0x00])), "gradient"),
    (AGGREGATION, UDP(dport=0x4742) / Raw(bytes([2, 0x82])), "gradient"),
    (AGGREGATION, UDP(dport=0x4742) / Raw(bytes([2, 0x14])), "partial sum"),
    (AGGREGATION, UDP(dport=0x4742) / Raw(bytes([2, 0x03])), "ACK"),
    (AGGREGATION, UDP(dport=0x4742) / Raw(bytes([2, 0x09])), "NACK"),
    (AGGREGATION, UDP(dport=0x4752) / Raw(bytes([1, 0x03])), "ring ACK"),
    (AGGREGATION, UDP(dport=0x4752) / Raw(bytes([1, 0x04])), "ring"),
    (AGGREGATION, UDP(sport=0x4742, dport=0x4743) / Raw(bytes(30)), OTHER),
    (AGGREGATION, TCP(dport=0x4742) / Raw(bytes(30)), OTHER),
    (COMPRESSION, UDP(dport=0x4743) / Raw(bytes([1, 0x04])), "part"),
    (COMPRESSION, UDP(dport=0x4743) / Raw(bytes([1, 0x03])), "ACK"),
    (SHUFFLE, UDP(dport=0x4743) / Raw(bytes([1, 0x0C])), "scheduled"),
    (SHUFFLE, UDP(dport=0x4743) / Raw(bytes([1, 0x01])), "repair"),
    (SHUFFLE, UDP(dport=0x4743) / Raw(bytes([1, 0x02])), "request"),
    (NDN, Ether(type=0x8624) / Raw(bytes([5, 0])), "Interest"),
    (NDN, Ether(type=0x8624) / Raw(bytes([6, 0])), "Data"),
    (NDN, Ether(type=0x8624), OTHER),
    (NDN, Ether(type=0x8624) / Raw(bytes([7, 0])), OTHER),
    (INTERCONNECT, UDP(dport=9), "electrical"),
    (TRAINING, UDP(dport=4791) / Raw(bytes([0x11]) + bytes(15)), "ACK"),
    (TRAINING, UDP(dport=4791) / Raw(bytes([0x81]) + bytes(27)), "CNP"),
    (TRAINING, UDP(dport=4791) / Raw(bytes([0x07]) + bytes(30)), "data"),
    (TRAINING, UDP(sport=4791, dport=4792) / Raw(bytes([0x07]) + bytes(30)), OTHER),
    (INTERCONNECT, Ether() / Dot1Q(vlan=3) / IP() / UDP(dport=9), "light"),
    (BY_PROTOCOL, UDP(dport=9), "UDP"),
    (BY_PROTOCOL, IP(options=[IPOption_NOP()] * 4) / UDP(dport=9), "UDP"),
    (BY_PROTOCOL, TCP(dport=9), "TCP"),
    (BY_PROTOCOL, ICMP(), "ICMP"),
    (BY_PROTOCOL, IP(proto=89), "IPv4"),
    (BY_PROTOCOL, Ether() / ARP(), "ARP"),
    (BY_PROTOCOL, Ether(type=0x86DD), "IPv6"),
    (BY_PROTOCOL, Ether(type=0x88B5), OTHER),
]


def frame(packet: Packet) -> bytes:
    whole = packet if packet.haslayer(Ether) else packet if packet.haslayer(IP) else IP() / packet
    whole = whole if whole.haslayer(Ether) else Ether() / whole
    whole[Ether].src, whole[Ether].dst = "02:00:00:00:00:01", "02:00:00:00:00:02"
    if whole.haslayer(IP):
        whole[IP].src, whole[IP].dst = "10.0.0.1", "10.0.0.2"
    return bytes(whole)


@pytest.mark.parametrize(("classes", "packet", "name"), FRAMES)
def test_links_and_hosts_see_the_class_of_a_frame(classes: Sequence[PacketClass], packet: Packet, name: str) -> None:
    patterns = [each.words for each in classes]
    expected = [int(each == name) for each in (OTHER, *(each.name for each in classes))]
    data = frame(packet)
    with Engine(manual_clock=True) as engine:
        engine.add_switch(1)
        engine.add_open_port(1, 0)
        engine.count_classes(patterns)
        engine.inject(1, 0, data)
        (row,) = [row for row in engine.link_classes() if (row.port, row.direction) == (0, "in")]
    assert list(row.entered[: len(expected)]) == expected and sum(row.entered) == 1
    counts = HostsClassCounts(patterns)
    counts.add(np.frombuffer(data, np.uint8)[None], 1, None)
    assert counts.by_class() == expected
    # In a buffer where an older frame was: behind the end of the shortest, it reads as an Interest.
    counts = HostsClassCounts(patterns)
    buffer = np.full((2, 1600), 5, np.uint8)
    buffer[0, : len(data)] = np.frombuffer(data, np.uint8)
    counts.add(buffer, 1, np.array([len(data)], np.uint32))
    assert counts.by_class() == expected


def test_a_class_without_words_takes_what_no_class_before_it_took() -> None:
    counts = HostsClassCounts([[(0, 0xFFFF, 0x0102)], [], [(0, 0xFFFF, 0x0202)]])
    counts.add(np.array([[1, 2], [1, 3], [2, 2]], np.uint8), 3, None)
    assert counts.by_class() == [0, 1, 2, 0]


def run(system: str, folder: Path) -> TrialResult:
    return run_workload(folder) if system == "workload" else virtual_trial(system, **SMALL[system])


def number_of(system: str) -> int:
    of_system = {
        "aggregation": AGGREGATION, "ndn": NDN, "compression": COMPRESSION, "shuffle": SHUFFLE,
        "interconnect": INTERCONNECT, "workload": BY_PROTOCOL, "training": TRAINING,
    }  # fmt: skip
    return 1 + [each.name for each in of_system[system]].index(CLASS_OF[system])


def a_host_forgets(patch: pytest.MonkeyPatch, number: int) -> None:
    """A frame that it counts never gets to its link: of its agent, or of its NIC."""
    sent, left = HostInterface.send, [True]

    def send(self: HostInterface, frames: Any, lengths: Any = None, times_ns: Any = None) -> int:
        kept = int(bool(left and left.pop()))
        rest = (None if each is None else each[kept:] for each in (lengths, times_ns))
        return sent(self, frames[kept:], *rest) + kept

    patch.setattr(HostInterface, "send", send)
    counted = HostQueuePairs.counts

    def counts(self: HostQueuePairs) -> dict[str, Any]:
        found = counted(self)
        sent = found["sent_classes"]
        return {**found, "sent_classes": [count + (place == number) for place, count in enumerate(sent)]}

    patch.setattr(HostQueuePairs, "counts", counts)


def tampered(change: Callable[[ClassCounts], ClassCounts]) -> Callable[[pytest.MonkeyPatch], None]:
    """Once something was counted."""

    def tamper(patch: pytest.MonkeyPatch) -> None:
        told = VirtualBackend.classes

        def classes(self: VirtualBackend) -> ClassCounts:
            found = told(self)
            return change(found) if any(sum(link.begun) for link in found.links.values()) else found

        patch.setattr(VirtualBackend, "classes", classes)

    return tamper


def one_fewer(cells: tuple[int, ...], number: int) -> tuple[int, ...]:
    return tuple(count - (place == number) for place, count in enumerate(cells))


def a_link_forgets(patch: pytest.MonkeyPatch, number: int) -> None:
    def change(found: ClassCounts) -> ClassCounts:
        name, link = next((name, link) for name, link in found.links.items() if link.delivered[number])
        fewer = replace(link, delivered=one_fewer(link.delivered, number))
        return replace(found, links={**found.links, name: fewer})

    tampered(change)(patch)


def a_switch_makes_one_up(patch: pytest.MonkeyPatch, number: int) -> None:
    def change(found: ClassCounts) -> ClassCounts:
        name, switch = next((name, each) for name, each in found.switches.items() if each.left[number][number])
        left = tuple(one_fewer(row, number) if place == number else row for place, row in enumerate(switch.left))
        return replace(found, switches={**found.switches, name: replace(switch, left=left)})

    tampered(change)(patch)


def a_switch_changes_one(patch: pytest.MonkeyPatch, number: int) -> None:
    def change(found: ClassCounts) -> ClassCounts:
        name, switch = next((name, each) for name, each in found.switches.items() if each.left[number][number])
        row = (switch.left[number][0] + 1, *one_fewer(switch.left[number], number)[1:])
        left = (*switch.left[:number], row, *switch.left[number + 1 :])
        return replace(found, switches={**found.switches, name: replace(switch, left=left)})

    tampered(change)(patch)


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("system", SMALL)
def test_all_packets_of_all_classes_are_accounted_for(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[ClassCounts] = []
    looked = trial.class_disagreements

    def looking(topology: Any, classes: Any, counts: ClassCounts, *rest: Any) -> list[str]:
        seen.append(counts)
        return looked(topology, classes, counts, *rest)

    monkeypatch.setattr(trial, "class_disagreements", looking)
    assert list(run(system, tmp_path).failures) == []
    number = number_of(system)
    for counts in seen:
        assert sum(link.begun[number] for link in counts.links.values()) > 20
        assert sum(sum(switch.left[number]) for switch in counts.switches.values()) > 10


@pytest.mark.parametrize(("told", "is_right"), [(0, False), (1, True)])
def test_what_the_socket_in_front_of_a_link_tells_explains_as_many(
    told: int, is_right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a frame that a host sent and its link never got."""
    a_host_forgets(monkeypatch, 1)
    statistics = VirtualBackend.link_statistics

    def link_statistics(self: VirtualBackend) -> Any:
        rows = statistics(self)
        # The first sender of all is the one that forgets.
        first = [row.from_node for row in rows if self.topology.is_host(row.from_node) and row.packets][:1]
        return [replace(row, socket_drops=told * (row.from_node in first)) for row in rows]

    monkeypatch.setattr(VirtualBackend, "link_statistics", link_statistics)
    assert (list(run("workload", tmp_path).failures) == []) == is_right


SABOTAGES: Mapping[str, tuple[Callable[[pytest.MonkeyPatch, int], None], str]] = {
    "host": (a_host_forgets, r"h\w+: it sent \d+ packets of class {}, its link got \d+"),
    "link": (a_link_forgets, r"link \w+-\w+: \d+ packets of class {} began, duplicates included, but"),
    "switch": (a_switch_makes_one_up, r"\w+: \d+ packets of class {} came or were copied, but \d+ left and"),
    "change": (a_switch_changes_one, r"\w+: 1 packets of class {} left it as class other, which none may"),
}


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize("system", SMALL)
@pytest.mark.parametrize("place", SABOTAGES)
def test_one_that_is_not_fails_the_run(
    place: str, system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage, said = SABOTAGES[place]
    if place == "change" and system == "workload":  # whose program may do what it likes
        said = r"\w+: \d+ packets left as class {}, but its links began \d+"
    sabotage(monkeypatch, number_of(system))
    name = r"[\w ]+" if place == "host" else CLASS_OF[system]
    assert [line for line in run(system, tmp_path).failures if re.search(said.format(name), line)]
