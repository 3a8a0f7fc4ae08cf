"""P4Runtime without a server: entities, packet-ins, digests and idle timeouts on the virtual clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import finsy
import numpy as np
import pytest
from finsy.proto import p4r

from gradbed.switch.compiler import compile_p4
from gradbed.switch.engine_network import InterfaceConfig, NetworkConfig, SwitchConfig
from gradbed.switch.p4runtime.status import BatchError, RequestError, StatusCode
from gradbed.switch.virtual import HostInterface, SimulatedNetwork, Stop
from tests.unit.p4runtime.network import H1, H2, frame

PROGRAMS = Path(__file__).parents[1] / "p4runtime"
AGED, LEARNT = 0x1004, 0x1005
MILLISECOND_NS = 1_000_000


class Network:
    """One switch with hosts at ports 1 to 3, without a pipeline yet."""

    def __init__(self, simulated: SimulatedNetwork, program: str) -> None:
        compiled = compile_p4(PROGRAMS / program)
        self.schema = finsy.P4Schema(compiled.p4info)
        self.config = p4r.ForwardingPipelineConfig(
            p4info=compiled.p4info, p4_device_config=compiled.json_text.encode()
        )
        self.simulated = simulated
        self.hosts = {port: simulated.interface(1, port) for port in (1, 2, 3)}

    def write(self, *updates: Any) -> None:
        self.simulated.write(1, finsy.p4entity.encode_updates(updates, self.schema))

    def read(self, *entities: Any) -> list[Any]:
        found = self.simulated.read(1, finsy.p4entity.encode_entities(entities, self.schema))
        return [finsy.p4entity.decode_entity(entity, self.schema) for entity in found]

    def send(self, port: int, sent: bytes) -> None:
        self.hosts[port].send(np.frombuffer(sent, np.uint8)[None])

    def exchange(self, port: int, sent: bytes) -> dict[int, bytes]:
        """What came out of which port."""
        self.send(port, sent)
        stop = self.simulated.run_until(None)
        return {interface.port: texts(interface)[0] for interface in stop.interfaces}


def texts(interface: HostInterface) -> list[bytes]:
    buffer, lengths = interface.receive()
    return [bytes(row[:length]) for row, length in zip(buffer, lengths, strict=True)]


def network_of(program: str) -> Iterator[Network]:
    config = NetworkConfig(
        switches=(SwitchConfig(device_id=1, name="s1"),),
        interfaces=tuple(InterfaceConfig(device_id=1, port=i, interface=f"s1-eth{i}") for i in (1, 2, 3)),
    )
    with SimulatedNetwork(config) as simulated:
        yield Network(simulated, program)


@pytest.fixture
def bare() -> Iterator[Network]:
    yield from network_of("punt.p4")


@pytest.fixture
def punt(bare: Network) -> Network:
    bare.simulated.set_pipeline(1, bare.config)
    return bare


@pytest.fixture
def state() -> Iterator[Network]:
    for network in network_of("state.p4"):
        network.simulated.set_pipeline(1, network.config)
        yield network


def to_h2(action: object, table: str = "hosts", **more: Any) -> finsy.P4TableEntry:
    return finsy.P4TableEntry(table, match=finsy.Match({"hdr.ethernet.dst_addr": H2}), action=action, **more)


def test_entries_groups_and_counters(punt: Network) -> None:
    punt.write(+to_h2(finsy.Action("flood", group=1)))
    punt.write(+finsy.P4MulticastGroupEntry(1, replicas=[2, 3]))
    assert punt.exchange(1, frame(H2)) == {2: frame(H2), 3: frame(H2)}
    [counted] = punt.read(finsy.P4DirectCounterEntry(table_entry=to_h2(None)))
    assert counted.data == finsy.P4CounterData(byte_count=len(frame(H2)), packet_count=1)
    assert punt.simulated.devices[1].state.registers.read("PuntIngress.last_source", 1) == 0x020000000001
    punt.write(~to_h2(finsy.Action("forward", port=3)))
    assert punt.exchange(1, frame(H2)) == {3: frame(H2)}
    punt.write(-to_h2(None))
    assert punt.exchange(1, frame(H2)) == {}


def test_updates_that_fail_are_told_one_by_one(punt: Network) -> None:
    entry = +to_h2(finsy.Action("forward", port=2))
    with pytest.raises(BatchError) as caught:
        punt.write(entry, entry)
    first, second = caught.value.outcomes
    assert first is None
    assert second is not None and second.code == StatusCode.ALREADY_EXISTS
    assert punt.exchange(1, frame(H2)).keys() == {2}


def test_packets_to_and_from_the_controller(punt: Network) -> None:
    punt.write(+to_h2(finsy.Action("punt", reason=9)))
    punt.simulated.run_until(5000)
    punt.send(3, frame(H2))
    stop = punt.simulated.run_until(None)
    [message] = stop.messages
    assert (message.time_ns, message.device_id, stop.interfaces) == (5000, 1, ())
    packet = message.message.packet
    assert packet.payload == frame(H2)
    assert [(m.metadata_id, m.value) for m in packet.metadata] == [(1, b"\x03"), (2, b"\x09")]
    out = p4r.PacketOut(payload=frame(H1))
    out.metadata.add(metadata_id=1, value=b"\x02")
    out.metadata.add(metadata_id=2, value=b"\x00")
    punt.simulated.packet_out(1, out)
    assert punt.simulated.run_until(None).interfaces == (punt.hosts[2],)
    assert texts(punt.hosts[2]) == [frame(H1)]


def test_without_a_pipeline_there_is_nothing_to_write(bare: Network) -> None:
    for attempt in (
        lambda: bare.write(+to_h2(finsy.Action("forward", port=2))),
        lambda: bare.read(to_h2(None)),
        lambda: bare.simulated.packet_out(1, p4r.PacketOut()),
        lambda: bare.simulated.acknowledge_digest(1, 1, 1),
    ):
        with pytest.raises(RequestError) as caught:
            attempt()
        assert caught.value.code == StatusCode.FAILED_PRECONDITION
    with pytest.raises(RequestError, match="cannot be realized"):
        bare.simulated.set_pipeline(1, p4r.ForwardingPipelineConfig())


def test_a_restarted_switch_has_lost_all_and_takes_another_pipeline(punt: Network) -> None:
    punt.write(+to_h2(finsy.Action("forward", port=2)))
    punt.simulated.restart_switch(1)
    assert punt.exchange(1, frame(H2)) == {}
    assert punt.simulated.devices[1].statistics().no_program_drops == 1
    punt.simulated.set_pipeline(1, punt.config)
    assert punt.read(finsy.P4TableEntry("hosts")) == []
    punt.write(+to_h2(finsy.Action("punt", reason=1)))
    punt.send(1, frame(H2))
    assert len(punt.simulated.run_until(None).messages) == 1


def digests(stop: Stop) -> list[tuple[int, int, int]]:
    """Time, list id and number of messages of each list."""
    lists = [(message.time_ns, message.message.digest) for message in stop.messages]
    assert all(digest_list.timestamp == time_ns for time_ns, digest_list in lists)
    return [(time_ns, digest_list.list_id, len(digest_list.data)) for time_ns, digest_list in lists]


def learn(state: Network, source: int) -> None:
    state.send(1, frame(H2, source, ether_type=LEARNT))


def test_digest_lists_are_sent_when_complete_or_due(state: Network) -> None:
    state.write(+finsy.P4DigestEntry("learn_t", max_list_size=3, max_timeout_ns=4 * MILLISECOND_NS))
    for source in (1, 2, 3, 4):
        learn(state, source)
    assert digests(state.simulated.run_until(MILLISECOND_NS)) == [(0, 1, 3)]
    stop = state.simulated.run_until(MILLISECOND_NS)
    assert (stop.time_ns, stop.messages, stop.idle) == (MILLISECOND_NS, (), False)
    for source in (4, 5):
        learn(state, source)
    # Number 4 waits since 0, and has come twice.
    assert digests(state.simulated.run_until(None)) == [(4 * MILLISECOND_NS, 2, 2)]
    assert state.simulated.run_until(None).idle


def test_digests_without_a_timeout_are_sent_at_once(state: Network) -> None:
    state.write(+finsy.P4DigestEntry("learn_t", ack_timeout_ns=10 * MILLISECOND_NS))
    learn(state, 1)
    assert digests(state.simulated.run_until(None)) == [(0, 1, 1)]
    learn(state, 1)
    # It has not been acknowledged.
    assert digests(state.simulated.run_until(MILLISECOND_NS)) == []
    state.simulated.acknowledge_digest(1, state.schema.digests["learn_t"].id, 1)
    learn(state, 1)
    assert digests(state.simulated.run_until(None)) == [(MILLISECOND_NS, 2, 1)]


def test_idle_timeouts_come_at_their_time(state: Network) -> None:
    entry = to_h2(finsy.Action("forward", port=2), "aged", idle_timeout_ns=2 * MILLISECOND_NS)
    state.write(+entry)
    state.simulated.run_until(MILLISECOND_NS)
    assert state.exchange(1, frame(H2, ether_type=AGED)).keys() == {2}
    stop = state.simulated.run_until(10 * MILLISECOND_NS)
    [message] = stop.messages
    assert (stop.time_ns, message.time_ns, stop.idle) == (3 * MILLISECOND_NS, 3 * MILLISECOND_NS, False)
    [idle] = message.message.idle_timeout_notification.table_entry
    assert idle.table_id == state.schema.tables["aged"].id
