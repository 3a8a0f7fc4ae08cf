"""Plans of entries on a data plane of this process: what is written is read back, and packets follow it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from finsy.proto import p4r
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from gradbed.controller.planning.plan import Lpm, MeterRates, Plan, RegisterValue, SwitchPlan
from gradbed.controller.southbound.interface import SouthboundError
from gradbed.controller.southbound.p4runtime.local import LocalSouthbound
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.emulation.layout import network_config
from gradbed.switch.program_cache import compiled_files
from gradbed.switch.virtual import HostInterface, SimulatedNetwork
from gradbed.topo.generators import star
from tests.unit.controller.entries.planning import SOURCE, Written

TOPOLOGY = star(3)
EVERYTHING = """
    tables:
      routes:
        - {match: {dst_addr: $h2.ip}, action: forward, params: {port: $to.h2, dst_mac: $h2.mac}}
        - {match: {dst_addr: 239.0.0.1}, action: copy, params: {group: 4}}
        - {match: {dst_addr: $h1.ip}, action: clone_too, params: {port: $to.h1}}
        - default_action: forward
          params: {port: $to.h3, dst_mac: 1}
    multicast: {4: [{port: 2, instance: 7}, {port: 2, instance: 8}, 3]}
    clone: {5: {ports: [3], truncate_bytes: 20}}
    registers: {threshold: {0: 1}}
    meters: {police: {0: {committed_rate: 1, committed_burst: 2, peak_rate: 3, peak_burst: 4}}}
"""


class OneSwitch:
    """A switch with three hosts."""

    def __init__(self) -> None:
        files = compiled_files(SOURCE, {})
        self.pipeline = Pipeline.load("everything", files.json, files.p4info)
        self.simulated = SimulatedNetwork(network_config(TOPOLOGY, "memory", 1, ()))
        self.hosts: list[HostInterface] = [self.simulated.interface(1, port) for port in (1, 2, 3)]
        self.southbound = LocalSouthbound(self.simulated, {"s1": 1}, {"everything": self.pipeline})

    def exchange(self, address: str) -> dict[int, list[bytes]]:
        """Port -> what comes out there of a packet that comes in by port 1."""
        frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(dst=address, proto=200, chksum=9)
        self.hosts[0].send(np.frombuffer(bytes(frame), np.uint8)[np.newaxis].copy())
        found: dict[int, list[bytes]] = {}
        while not (stop := self.simulated.run_until(None)).idle or stop.interfaces:
            for interface in stop.interfaces:
                frames, lengths = interface.receive()
                found.setdefault(interface.port, []).extend(
                    bytes(row[:length]) for row, length in zip(frames, lengths, strict=True)
                )
            if stop.idle:
                break
        return found


@pytest.fixture
def one() -> Iterator[OneSwitch]:
    switch = OneSwitch()
    with switch.simulated:
        yield switch


def rid_of(frame: bytes) -> int:
    return int.from_bytes(frame[6:12], "big")


def test_packets_follow_routes_groups_clones_and_default_actions(one: OneSwitch, written: Written) -> None:
    one.southbound.start(written.plan(EVERYTHING, topology=TOPOLOGY))
    assert list(one.exchange(TOPOLOGY.host("h2").ip)) == [2]
    copies = one.exchange("239.0.0.1")
    assert sorted(rid_of(frame) for frame in copies[2]) == [7, 8] and [rid_of(f) for f in copies[3]] == [1]
    cloned = one.exchange(TOPOLOGY.host("h1").ip)
    assert set(cloned) == {1, 3} and [len(frame) for frame in cloned[3]] == [20]
    (by_default,) = one.exchange("10.99.0.1")[3]
    assert by_default[:6] == bytes(5) + b"\x01"
    assert one.southbound.registers("s1", "threshold") == [1] + [0] * 7


def test_what_leaves_the_plan_leaves_the_switch(one: OneSwitch, written: Written) -> None:
    one.southbound.start(written.plan(EVERYTHING, topology=TOPOLOGY))
    one.southbound.apply(Plan(switches={"s1": SwitchPlan.of("everything")}))
    assert one.exchange("10.99.0.1") == {}, "the program drops by default"
    one.southbound.apply(written.plan("clone: {5: [1]}\nregisters: {threshold: 6}", topology=TOPOLOGY))
    assert one.southbound.registers("s1", "threshold") == [6] * 8
    again = written.plan("clone: {5: [2]}\nregisters: {threshold: {1: 3}}", topology=TOPOLOGY)
    one.southbound.apply(again)
    assert one.southbound.registers("s1", "threshold") == [6, 3] + [6] * 6


def test_a_cell_keeps_its_value_when_its_register_is_filled_anew(one: OneSwitch) -> None:
    def plan(filling: int) -> Plan:
        cells = [(None, filling), (2, 9)]
        registers = [RegisterValue(register_name="threshold", index=index, value=value) for index, value in cells]
        return Plan(switches={"s1": SwitchPlan.of("everything", registers=registers)})

    one.southbound.start(plan(5))
    one.southbound.apply(plan(4))
    assert one.southbound.registers("s1", "threshold") == [4, 4, 9, 4, 4, 4, 4, 4]


def test_a_switch_that_kept_everything_is_written_nothing(
    one: OneSwitch, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = written.plan(EVERYTHING, topology=TOPOLOGY)
    one.southbound.start(plan)
    monkeypatch.setattr(one.simulated, "write", lambda *_: pytest.fail("something was written"))
    one.southbound.apply(plan)
    # Even when all of it has to be read back first.
    one.southbound._contents["s1"]._held = None
    one.southbound.apply(plan)


def test_a_direct_meter_is_written_with_its_entry(one: OneSwitch, written: Written) -> None:
    text = """
        tables:
          stations:
            - match: {dst_addr: 02:00:00:00:00:02}
              action: measured
              params: {port: 2}
              meter: {committed_rate: 1, committed_burst: 1, peak_rate: 2, peak_burst: 2}
    """
    plan = written.plan(text, topology=TOPOLOGY)
    assert plan["s1"].entries[0].meter == MeterRates(committed_rate=1, committed_burst=1, peak_rate=2, peak_burst=2)
    one.southbound.start(plan)
    request = p4r.Entity(table_entry=p4r.TableEntry(meter_config=p4r.MeterConfig()))
    (found,) = (e.table_entry for e in one.simulated.read(1, [request]) if e.table_entry.HasField("meter_config"))
    assert (found.meter_config.cir, found.meter_config.pburst) == (1, 2)
    # Read back, it is what was written.
    one.southbound._contents["s1"]._held = None
    one.simulated.write = lambda *_: pytest.fail("something was written")  # type: ignore[method-assign]
    one.southbound.apply(plan)


def test_a_table_that_is_full_is_refused_in_one_line(one: OneSwitch, written: Written) -> None:
    plan = written.plan(EVERYTHING, topology=TOPOLOGY)
    (entry, *_) = plan["s1"].entries
    many = [
        entry.model_copy(update={"match": {"hdr.ipv4.dst_addr": Lpm(value=number << 8, prefix_bits=24)}})
        for number in range(100)
    ]
    with pytest.raises(SouthboundError, match=r"^s1: table TheIngress.routes is full.*, and 83 more$"):
        one.southbound.start(Plan(switches={"s1": SwitchPlan.of("everything", many)}))
