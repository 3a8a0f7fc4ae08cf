"""Counters, registers, multicast groups, clone sessions, and what is not carried."""

from __future__ import annotations

import random

import grpc
import pytest
from finsy.proto import p4d, p4r

from gradbed.switch.device import EntryExists, Replica, StateFull, StillReferenced
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.status import StatusCode
from gradbed.switch.server.target import ENTITIES_PER_RESPONSE, _responses
from gradbed.switch.state.base import CellArray
from gradbed.switch.state.counters import CounterEntries
from tests.unit.p4runtime.client import INSERT, MODIFY, Client, batch_errors
from tests.unit.p4runtime.fake_device import FakeCounters, FakeDevice
from tests.unit.p4runtime.sample_program import FLAGS, OFFSETS, PORT_COUNTER, TOTALS


def index(value: int) -> p4r.Index:
    return p4r.Index(index=value)


def counter(i: int | None = None, packets: int | None = None, bytes_: int = 0, counter_id: int = PORT_COUNTER):
    return p4r.CounterEntry(
        counter_id=counter_id,
        index=None if i is None else index(i),
        data=None if packets is None else p4r.CounterData(packet_count=packets, byte_count=bytes_),
    )


def register(register_id: int, i: int | None = None, **data) -> p4r.RegisterEntry:
    return p4r.RegisterEntry(
        register_id=register_id,
        index=None if i is None else index(i),
        data=p4d.P4Data(**data) if data else None,
    )


def failures(client: Client, *messages) -> list[int]:
    with pytest.raises(grpc.RpcError) as caught:
        client.read(*messages)
    assert caught.value.code() == grpc.StatusCode.UNKNOWN
    return [error.canonical_code for error in batch_errors(caught.value)]


class TestCounters:
    def test_read(self, client: Client, device: FakeDevice) -> None:
        device.state.counters["Ingress.port_counter"][3] = (2, 128)
        assert client.read(counter(3)) == [counter(3, 2, 128)]
        everything = [counter(i, *((2, 128) if i == 3 else (0, 0))) for i in range(8)]
        assert client.read(counter()) == everything
        assert client.read(p4r.CounterEntry()) == everything

    @pytest.mark.parametrize("counting", [0, 7, 2000])
    def test_cells_that_counted_and_others(self, counting: int) -> None:
        """Of arrays that are longer than what is kept of zeros, and than one answer."""
        sizes, chance = {7: 1024, 8: 2500}, random.Random(counting)
        cells = {str(p4_id): [(0, 0)] * size for p4_id, size in sizes.items()}
        for _ in range(counting):
            row = chance.choice(list(cells.values()))
            row[chance.randrange(len(row))] = (chance.randrange(2), chance.randrange(100))
        kind = CounterEntries(FakeCounters(cells), {i: CellArray(i, str(i), size) for i, size in sizes.items()})
        expected = [counter(i, *cell, p4_id) for p4_id in sizes for i, cell in enumerate(cells[str(p4_id)])]
        for _ in range(2):
            answers = list(_responses([kind.read(p4r.CounterEntry(), Role(""))], []))
            entries = [entity.counter_entry for answer in answers for entity in answer.entities]
            assert entries == expected
            assert max(len(answer.entities) for answer in answers) == ENTITIES_PER_RESPONSE
            for entry in entries:
                entry.data.packet_count = 5  # what came is the client's

    def test_counts_beyond_63_bits(self, client: Client, device: FakeDevice) -> None:
        device.state.counters["Ingress.port_counter"][0] = (2**63 + 5, 0)
        assert client.read(counter(0)) == [counter(0, 5)]

    def test_write(self, client: Client, device: FakeDevice) -> None:
        assert client.modify(counter(1, 5, 6)) == StatusCode.OK
        assert device.state.counters["Ingress.port_counter"][:3] == [(0, 0), (5, 6), (0, 0)]
        assert client.modify(counter(1)) == StatusCode.OK  # without data: unchanged
        assert device.state.counters["Ingress.port_counter"][1] == (5, 6)
        assert client.modify(counter(None, 0)) == StatusCode.OK
        assert device.state.counters["Ingress.port_counter"] == [(0, 0)] * 8

    def test_errors(self, client: Client) -> None:
        assert client.insert(counter(1, 5)) == StatusCode.INVALID_ARGUMENT
        assert client.delete(counter(1)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(counter(-1, 0)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(counter(8, 0)) == StatusCode.OUT_OF_RANGE
        assert client.modify(counter(0, -1)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(counter(0, 0, counter_id=0)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(counter(0, 0, counter_id=1)) == StatusCode.NOT_FOUND


class TestRegisters:
    def test_unsigned(self, client: Client, device: FakeDevice) -> None:
        assert client.modify(register(TOTALS, 2, bitstring=b"\x00\x01\x00\x00\x00\x00")) == StatusCode.OK
        assert device.state.registers["Ingress.totals"] == [0, 0, 1 << 32, 0]
        assert client.read(register(TOTALS, 2)) == [register(TOTALS, 2, bitstring=b"\x01\x00\x00\x00\x00")]
        assert client.read(register(TOTALS)) == [
            register(TOTALS, i, bitstring=b"\x01\x00\x00\x00\x00" if i == 2 else b"\x00") for i in range(4)
        ]

    def test_signed(self, client: Client, device: FakeDevice) -> None:
        assert client.modify(register(OFFSETS, 0, bitstring=b"\xfd\x1d")) == StatusCode.OK
        assert device.state.registers["Ingress.offsets"][0] == 0x1000 - 739
        assert client.read(register(OFFSETS, 0)) == [register(OFFSETS, 0, bitstring=b"\xfd\x1d")]
        assert client.modify(register(OFFSETS, 0, bitstring=b"\x8d\x1d")) == StatusCode.OUT_OF_RANGE

    def test_bool(self, client: Client, device: FakeDevice) -> None:
        assert client.modify(register(FLAGS, bool=True)) == StatusCode.OK
        assert device.state.registers["Ingress.flags"] == [1, 1, 1, 1]
        assert client.read(register(FLAGS, 1)) == [register(FLAGS, 1, bool=True)]
        assert client.modify(register(FLAGS, bitstring=b"\x01")) == StatusCode.INVALID_ARGUMENT

    def test_wildcard(self, client: Client) -> None:
        assert [r.register_id for r in client.read(p4r.RegisterEntry())] == [TOTALS] * 4 + [OFFSETS] * 4 + [FLAGS] * 4

    def test_errors(self, client: Client) -> None:
        assert client.insert(register(TOTALS, 0, bitstring=b"\x01")) == StatusCode.INVALID_ARGUMENT
        assert client.delete(register(TOTALS, 0)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(register(TOTALS, 0)) == StatusCode.INVALID_ARGUMENT
        assert client.modify(register(TOTALS, 4, bitstring=b"\x01")) == StatusCode.OUT_OF_RANGE
        assert client.modify(register(TOTALS, -1, bitstring=b"\x01")) == StatusCode.INVALID_ARGUMENT
        assert client.modify(register(TOTALS, 0, bitstring=b"\x02\x00\x00\x00\x00")) == StatusCode.OUT_OF_RANGE
        assert client.modify(register(0, 0, bitstring=b"\x01")) == StatusCode.INVALID_ARGUMENT
        assert client.modify(register(1, 0, bitstring=b"\x01")) == StatusCode.NOT_FOUND


def test_failed_reads_of_a_batch(client: Client) -> None:
    request = [counter(3), register(1), p4r.RegisterEntry(register_id=TOTALS, index=index(9)), None]
    assert failures(client, *request) == [
        StatusCode.OK,
        StatusCode.NOT_FOUND,
        StatusCode.OUT_OF_RANGE,
        StatusCode.INVALID_ARGUMENT,
    ]


def replica(port: bytes | int, instance: int = 0) -> p4r.Replica:
    if isinstance(port, int):
        return p4r.Replica(egress_port=port, instance=instance)
    return p4r.Replica(port=port, instance=instance)


def group(group_id: int, *replicas, **more) -> p4r.MulticastGroupEntry:
    return p4r.MulticastGroupEntry(multicast_group_id=group_id, replicas=replicas, **more)


class TestMulticastGroups:
    def test_life_of_a_group(self, client: Client, device: FakeDevice) -> None:
        written = group(7, replica(b"\x01"), replica(b"\x01\xff", 5), replica(0, 2), metadata=b"m")
        assert client.insert(written) == StatusCode.OK
        assert device.replication.groups == {7: (Replica(1), Replica(511, 5), Replica(0, 2))}
        assert client.insert(written) == StatusCode.ALREADY_EXISTS
        assert client.modify(group(8)) == StatusCode.NOT_FOUND
        assert client.delete(group(8)) == StatusCode.NOT_FOUND

        def read(group_id: int) -> list:
            return [e.multicast_group_entry for e in client.read(group(group_id))]

        assert read(7) == read(0) == [written]
        assert failures(client, group(8)) == [StatusCode.NOT_FOUND]
        assert client.modify(group(7, replica(b"\x00\x03"))) == StatusCode.OK
        assert device.replication.groups == {7: (Replica(3),)}
        assert read(0) == [group(7, replica(b"\x03"))]
        assert client.delete(group(7)) == StatusCode.OK
        assert device.replication.groups == {} and read(0) == []

    @pytest.mark.parametrize(
        ("wrong", "code"),
        [
            (group(0, replica(1)), StatusCode.INVALID_ARGUMENT),
            (group(1 << 16), StatusCode.INVALID_ARGUMENT),
            (group(1, replica(1), replica(b"\x01")), StatusCode.INVALID_ARGUMENT),
            (group(1, replica(1, 1 << 16)), StatusCode.INVALID_ARGUMENT),
            (group(1, replica(512)), StatusCode.INVALID_ARGUMENT),
            (group(1, replica(b"\x02\x00")), StatusCode.OUT_OF_RANGE),
            (group(1, replica(b"")), StatusCode.INVALID_ARGUMENT),
            (group(1, p4r.Replica(instance=1)), StatusCode.INVALID_ARGUMENT),
            (
                group(1, p4r.Replica(egress_port=1, backup_replicas=[p4r.BackupReplica(port=b"\x02")])),
                StatusCode.UNIMPLEMENTED,
            ),
            (p4r.PacketReplicationEngineEntry(), StatusCode.INVALID_ARGUMENT),
        ],
    )
    def test_unusable_groups(self, client: Client, device: FakeDevice, wrong, code: StatusCode) -> None:
        assert client.insert(wrong) == code
        assert device.replication.groups == {}


class TestCloneSessions:
    def test_life_of_a_session(self, client: Client, device: FakeDevice) -> None:
        session = p4r.CloneSessionEntry(
            session_id=100, replicas=[replica(b"\x02", 1)], packet_length_bytes=128, class_of_service=7
        )
        assert client.insert(session) == StatusCode.OK
        assert device.replication.sessions == {100: ((Replica(2, 1),), 128, 7)}
        assert client.insert(session) == StatusCode.ALREADY_EXISTS
        assert [e.clone_session_entry for e in client.read(p4r.CloneSessionEntry())] == [session]
        session.packet_length_bytes = session.class_of_service = 0
        assert client.modify(session) == StatusCode.OK
        assert device.replication.sessions == {100: ((Replica(2, 1),), 0, 0)}
        assert client.delete(session) == StatusCode.OK
        assert client.delete(session) == StatusCode.NOT_FOUND
        assert device.replication.sessions == {}

    def test_errors(self, client: Client) -> None:
        assert client.insert(p4r.CloneSessionEntry()) == StatusCode.INVALID_ARGUMENT
        assert client.insert(p4r.CloneSessionEntry(session_id=1 << 16)) == StatusCode.INVALID_ARGUMENT
        assert client.insert(p4r.CloneSessionEntry(session_id=1, class_of_service=8)) == StatusCode.INVALID_ARGUMENT
        assert (
            client.insert(p4r.CloneSessionEntry(session_id=1, packet_length_bytes=-1)) == StatusCode.INVALID_ARGUMENT
        )
        assert failures(client, p4r.CloneSessionEntry(session_id=5)) == [StatusCode.NOT_FOUND]


def test_externs(client: Client) -> None:
    assert client.modify(p4r.ExternEntry(extern_id=1)) == StatusCode.UNIMPLEMENTED
    assert client.read(p4r.ExternEntry()) == []
    assert failures(client, p4r.ExternEntry(extern_id=1)) == [StatusCode.NOT_FOUND]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EntryExists("x"), StatusCode.ALREADY_EXISTS),
        (StateFull("x"), StatusCode.RESOURCE_EXHAUSTED),
        (StillReferenced("x"), StatusCode.FAILED_PRECONDITION),
        (IndexError("x"), StatusCode.OUT_OF_RANGE),
        (ValueError("x"), StatusCode.INVALID_ARGUMENT),
        (MemoryError("x"), StatusCode.RESOURCE_EXHAUSTED),
        (KeyError("x"), StatusCode.INTERNAL),
    ],
)
def test_codes_of_what_a_device_raises(
    client: Client, device: FakeDevice, error: Exception, code: StatusCode
) -> None:
    def refuse(*_: object) -> None:
        raise error

    device.state.counters.write = refuse
    assert client.modify(counter(0, 1)) == code


def test_updates_without_type_or_entity(client: Client) -> None:
    assert (
        client.outcomes((0, counter(0, 1)), (INSERT, None), (9, counter(0, 1))) == [StatusCode.INVALID_ARGUMENT] * 3
    )


def test_faults_of_a_device_stay_one_line(client: Client, device: FakeDevice, caplog) -> None:
    def broken(*_: object) -> None:
        raise OSError("first line\nsecond line")

    device.state.counters.write = broken
    [(code, text), (other, _)] = client.failures((MODIFY, counter(0, 1)), (MODIFY, register(FLAGS, 0, bool=True)))
    assert (code, text) == (StatusCode.INTERNAL, "OSError: first line second line")
    assert other == StatusCode.OK
    assert "unexpected OSError" in caplog.text
