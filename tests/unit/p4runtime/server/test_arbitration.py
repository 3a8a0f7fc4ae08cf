"""Controllers, primaries and roles, over gRPC."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from finsy.proto import U128, p4r, stratum
from google.protobuf import any_pb2, wrappers_pb2

from gradbed.switch.p4runtime.status import StatusCode
from tests.unit.p4runtime.client import INSERT, TIMEOUT_S, Client, Stream, action, entry, exact
from tests.unit.p4runtime.fake_device import FakeDevice
from tests.unit.p4runtime.sample_program import DROP, HOSTS, PORT_COUNTER, PORTS, ROUTES

OK, BACKUP, NO_PRIMARY = StatusCode.OK, StatusCode.ALREADY_EXISTS, StatusCode.NOT_FOUND


@pytest.fixture
def streams(bare_client: Client) -> Iterator[list[Stream]]:
    streams = [bare_client.stream() for _ in range(3)]
    yield streams
    for stream in streams:
        stream.cancel()


def test_highest_election_id_is_primary(streams: list[Stream]) -> None:
    a, b, c = streams
    a.arbitrate(5)
    assert a.status() == (OK, 5)
    b.arbitrate(3)
    assert b.status() == (BACKUP, 5)
    assert a.silent()
    c.arbitrate(2**64 + 1)
    assert c.status() == (OK, 2**64 + 1)
    assert a.status() == (BACKUP, 2**64 + 1)
    assert b.status() == (BACKUP, 2**64 + 1)


@pytest.mark.parametrize("how", ["close", "cancel"])
def test_primary_leaves(streams: list[Stream], how: str) -> None:
    a, b, c = streams
    a.arbitrate(5)
    a.next()
    for backup, election_id in ((b, 3), (c, None)):
        backup.arbitrate(election_id)
        assert backup.status() == (BACKUP, 5)
    getattr(a, how)()
    assert b.status() == (NO_PRIMARY, 5)
    assert c.status() == (NO_PRIMARY, 5)
    # Lower than the highest ever seen: nobody becomes primary.
    b.arbitrate(4)
    assert b.status() == (NO_PRIMARY, 5)
    assert c.silent()
    b.arbitrate(5)
    assert b.status() == (OK, 5)
    assert c.status() == (BACKUP, 5)


def test_primary_steps_down(streams: list[Stream]) -> None:
    a, b, _ = streams
    a.arbitrate(5)
    a.next()
    b.arbitrate(1)
    b.next()
    a.arbitrate(0)
    assert a.status() == (NO_PRIMARY, 5)
    assert b.status() == (NO_PRIMARY, 5)


def test_unset_election_id_never_becomes_primary(streams: list[Stream]) -> None:
    streams[0].arbitrate(None)
    assert streams[0].status() == (NO_PRIMARY, None)
    streams[1].arbitrate(0)
    assert streams[1].status() == (OK, 0)
    assert streams[0].status() == (BACKUP, 0)


def test_devices_are_independent(streams: list[Stream]) -> None:
    a, b, _ = streams
    a.arbitrate(5, device_id=1)
    b.arbitrate(5, device_id=2)
    assert a.status() == (OK, 5)
    assert b.status() == (OK, 5)


def test_used_election_id_ends_the_stream(streams: list[Stream]) -> None:
    a, b, c = streams
    a.arbitrate(5)
    a.next()
    b.arbitrate(5)
    code, text = b.error()
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "election id 5 is already used" in text  # finsy recognises this text
    c.arbitrate(4)
    assert c.status() == (BACKUP, 5)
    c.arbitrate(5)
    assert c.error()[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert a.silent()


def test_unknown_device_ends_the_stream(streams: list[Stream]) -> None:
    streams[0].arbitrate(1, device_id=99)
    assert streams[0].error() == (grpc.StatusCode.NOT_FOUND, "there is no device 99")
    streams[1].arbitrate(1, device_id=0)
    assert streams[1].error()[0] == grpc.StatusCode.NOT_FOUND


def test_device_and_role_of_a_stream_are_fixed(streams: list[Stream]) -> None:
    for stream, change in zip(streams, ({"device_id": 2}, {"role": p4r.Role(name="other")}), strict=False):
        stream.arbitrate(None)
        stream.next()
        stream.arbitrate(1, **change)
        assert stream.error()[0] == grpc.StatusCode.FAILED_PRECONDITION


def test_too_many_controllers(bare_client: Client) -> None:
    streams = [bare_client.stream() for _ in range(65)]
    for i, stream in enumerate(streams[:64]):
        stream.arbitrate(i)
        assert stream.status()[0] == OK
    streams[64].arbitrate(None)
    assert streams[64].error()[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
    for stream in streams:
        stream.cancel()


class TestWhoMayWrite:
    UPDATE = (INSERT, entry(HOSTS, exact(1, b"\x01"), action=action(DROP)))

    def refusal(self, client: Client, **changes) -> grpc.StatusCode:
        request = client.write_request(self.UPDATE)
        for name, value in changes.items():
            if value is None:
                request.ClearField(name)
            elif name == "election_id":
                request.election_id.CopyFrom(U128.encode(value))
            else:
                setattr(request, name, value)
        with pytest.raises(grpc.RpcError) as caught:
            client.stub.Write(request, timeout=TIMEOUT_S)
        assert caught.value.details()
        return caught.value.code()

    def test_only_the_primary(self, client: Client) -> None:
        assert self.refusal(client, election_id=2) == grpc.StatusCode.PERMISSION_DENIED
        assert self.refusal(client, election_id=None) == grpc.StatusCode.PERMISSION_DENIED
        assert self.refusal(client, role="nobody") == grpc.StatusCode.NOT_FOUND
        assert self.refusal(client, device_id=3) == grpc.StatusCode.NOT_FOUND
        assert self.refusal(client, role_id=3) == grpc.StatusCode.INVALID_ARGUMENT
        assert self.refusal(client, device_id=2) == grpc.StatusCode.PERMISSION_DENIED  # no primary there
        client.write(self.UPDATE)

    def test_not_the_former_primary(self, client: Client) -> None:
        newer = Client(client.channel, election_id=2)
        newer.become_primary()
        assert self.refusal(client) == grpc.StatusCode.PERMISSION_DENIED
        newer.write(self.UPDATE)

    def test_before_a_pipeline(self, bare_client: Client) -> None:
        bare_client.become_primary()
        assert self.refusal(bare_client) == grpc.StatusCode.FAILED_PRECONDITION

    @pytest.mark.parametrize("atomicity", ["ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"])
    def test_atomicities(self, client: Client, atomicity: str) -> None:
        value = p4r.WriteRequest.Atomicity.Value(atomicity)
        assert self.refusal(client, atomicity=value) == grpc.StatusCode.UNIMPLEMENTED


def role_config(**fields) -> any_pb2.Any:
    config = any_pb2.Any()
    config.Pack(stratum.P4RoleConfig(**fields))
    return config


class TestRoles:
    def test_roles_have_their_own_primaries(self, streams: list[Stream]) -> None:
        a, b, _ = streams
        a.arbitrate(5)
        b.arbitrate(5, role=p4r.Role(name="acl"))
        assert a.status() == (OK, 5)
        update = b.next().arbitration
        assert (update.status.code, update.role.name) == (OK, "acl")

    def test_scope_of_a_role(self, client: Client, device: FakeDevice) -> None:
        stream = client.stream()
        config = role_config(shared_p4_ids=[HOSTS], exclusive_p4_ids=[PORTS])
        stream.arbitrate(1, role=p4r.Role(name="hosts", config=config))
        assert stream.next().arbitration.role.config == config
        host = entry(HOSTS, exact(1, b"\x01"), action=action(DROP))
        port = entry(PORTS, exact(1, b"\x01"), action=action(DROP))
        route = entry(ROUTES, action=action(DROP))
        assert client.outcomes((INSERT, host), (INSERT, port), (INSERT, route)) == [
            0,
            StatusCode.PERMISSION_DENIED,
            0,
        ]
        limited = Client(client.channel, role="hosts")
        assert limited.outcomes((INSERT, route), (INSERT, port)) == [StatusCode.PERMISSION_DENIED, 0]
        assert limited.read(entry(0)) == [host, port]
        assert limited.read(entry(ROUTES)) == []
        assert limited.read(p4r.CounterEntry(counter_id=PORT_COUNTER)) == []
        with pytest.raises(grpc.RpcError) as caught:
            limited.push_sample()
        assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
        # Not asked for packet-ins either.
        device.packet_in(b"\x00\x00frame")
        stream.arbitrate(2, role=p4r.Role(name="hosts", config=config))
        assert stream.next().WhichOneof("update") == "arbitration"

    @pytest.mark.parametrize(
        "role",
        [
            p4r.Role(
                name="x", config=any_pb2.Any(type_url="type.googleapis.com/stratum.P4RoleConfig", value=b"\xff")
            ),
            p4r.Role(name="x", config=any_pb2.Any()),
            p4r.Role(config=role_config()),
            p4r.Role(id=3),
        ],
    )
    def test_unusable_roles(self, streams: list[Stream], role) -> None:
        streams[0].arbitrate(1, role=role)
        assert streams[0].error()[0] == grpc.StatusCode.INVALID_ARGUMENT

    def test_role_config_of_another_scheme(self, streams: list[Stream]) -> None:
        config = any_pb2.Any()
        config.Pack(wrappers_pb2.StringValue(value="x"))
        streams[0].arbitrate(1, role=p4r.Role(name="x", config=config))
        code, text = streams[0].error()
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert "stratum.P4RoleConfig" in text and "StringValue" in text
