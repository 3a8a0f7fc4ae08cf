"""A device that is restarted has forgotten everything, and its controllers notice."""

from __future__ import annotations

import grpc
import pytest

from gradbed.switch.p4runtime.status import StatusCode
from gradbed.switch.server import P4RuntimeServer
from tests.unit.p4runtime.client import INSERT, Client, action, entry, exact
from tests.unit.p4runtime.fake_device import FakeDevice
from tests.unit.p4runtime.sample_program import DROP, HOSTS

UPDATE = (INSERT, entry(HOSTS, exact(1, b"\x01"), action=action(DROP)))


def test_streams_end_and_the_pipeline_is_gone(client: Client, server: P4RuntimeServer, device: FakeDevice) -> None:
    client.write(UPDATE)
    first, backup, elsewhere = client.stream(), client.stream(), client.stream()
    first.arbitrate(7)
    assert first.status()[0] == StatusCode.OK
    backup.arbitrate(3)
    assert backup.status()[0] == StatusCode.ALREADY_EXISTS
    elsewhere.arbitrate(9, device_id=2)
    assert elsewhere.status()[0] == StatusCode.OK

    server.restart_device(1)

    for stream in (first, backup):
        assert stream.error() == (grpc.StatusCode.UNAVAILABLE, "device 1 was restarted")
    assert elsewhere.silent()
    assert device.program is None
    elsewhere.cancel()

    # Whoever comes first is primary again, also with a lower election id, and starts from nothing.
    again = Client(client.channel, election_id=2)
    again.become_primary()
    with pytest.raises(grpc.RpcError) as caught:
        again.write(UPDATE)
    assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    again.push_sample(cookie=7)
    again.write(UPDATE)
    assert device.loads == 2


def test_only_devices_that_exist(client: Client, server: P4RuntimeServer) -> None:
    with pytest.raises(KeyError):
        server.restart_device(5)


def test_a_server_that_does_not_run_restarts_nothing() -> None:
    with pytest.raises(RuntimeError, match="not running"):
        P4RuntimeServer({}, []).restart_device(1)
