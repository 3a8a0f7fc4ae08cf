"""Addresses, life and load of the server."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r

from switch.errors import UserError
from switch.p4runtime import P4RuntimeServer
from tests.unit.p4runtime.client import INSERT, TIMEOUT_S, Client, action, entry, exact
from tests.unit.p4runtime.fake_device import CapableDevice, FakeProgram
from tests.unit.p4runtime.sample_program import DROP, HOSTS


def version(address: str) -> str:
    client = Client(address)
    try:
        answer = client.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=TIMEOUT_S)
        return answer.p4runtime_api_version
    finally:
        client.close()


def test_capabilities(bare_client: Client, address: str) -> None:
    assert version(address).startswith("1.4.")
    assert bare_client.stub.Capabilities(p4r.CapabilitiesRequest(device_id=2), timeout=TIMEOUT_S)
    with pytest.raises(grpc.RpcError) as caught:
        bare_client.stub.Capabilities(p4r.CapabilitiesRequest(device_id=9), timeout=TIMEOUT_S)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_several_addresses(tmp_path: Path) -> None:
    socket = f"unix:{tmp_path}/p4rt.sock"
    server = P4RuntimeServer({}, ["127.0.0.1:0", socket, "127.0.0.1:0"], build=FakeProgram)
    server.start()
    try:
        first, second = server.ports
        assert first != second
        for address in (f"127.0.0.1:{first}", f"127.0.0.1:{second}", socket):
            assert version(address).startswith("1.4.")
    finally:
        server.stop()
    # The addresses are free again.
    again = P4RuntimeServer({}, [f"127.0.0.1:{first}", socket], build=FakeProgram)
    again.start()
    assert again.ports == [first]
    again.stop()


def test_address_in_use(address: str) -> None:
    second = P4RuntimeServer({}, [address], build=FakeProgram)
    with pytest.raises(UserError, match=f"cannot listen on {address}"):
        second.start()
    second.stop()
    assert version(address)


@pytest.mark.parametrize("address", ["", "9559", "127.0.0.1", "127.0.0.1:port", "unix:"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(UserError, match="is no address"):
        P4RuntimeServer({}, [address], build=FakeProgram)


def test_missing_directory_of_a_socket(tmp_path: Path) -> None:
    server = P4RuntimeServer({}, [f"unix:{tmp_path}/missing/p4rt.sock"], build=FakeProgram)
    with pytest.raises(UserError, match="cannot listen on unix:"):
        server.start()


def test_stop_ends_streams_and_lets_the_device_go(server: P4RuntimeServer, bare_client: Client, device) -> None:
    stream = bare_client.become_primary()
    assert device.packet_in is not None
    late = device.packet_in
    before = threading.active_count()
    server.stop()
    server.stop()
    assert stream.error()[0] in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)
    assert device.packet_in is None
    assert not [t for t in threading.enumerate() if t.name.startswith("p4runtime")]
    assert threading.active_count() < before
    late(b"frame that was under way")


def test_start_twice(server: P4RuntimeServer) -> None:
    with pytest.raises(RuntimeError):
        server.start()


def test_hundreds_of_devices_connected_at_once() -> None:
    """Every device has a stream that stays open; writes, reads and packets still get through."""
    count = 320
    devices = {i: CapableDevice(i) for i in range(1, count + 1)}
    server = P4RuntimeServer(devices, ["127.0.0.1:0"], build=FakeProgram)
    server.start()
    address = f"127.0.0.1:{server.ports[0]}"
    shared = Client(address)
    try:
        clients = [Client("", device_id) for device_id in devices]
        streams = []
        for client in clients:
            client.stub = shared.stub
            streams.append(client.stream())
            streams[-1].arbitrate(1, client.device_id)
        assert [stream.status()[0] for stream in streams] == [0] * count
        host = entry(HOSTS, exact(1, b"\x01"), action=action(DROP))

        def use(client: Client) -> int:
            client.push_sample()
            client.write((INSERT, host))
            return len(client.read(entry(HOSTS)))

        with ThreadPoolExecutor(16) as pool:
            assert list(pool.map(use, clients)) == [1] * count
        for device in devices.values():
            device.packet_in(b"\x00\x00" + device.device_id.to_bytes(2, "big"))
        for device_id, stream in zip(devices, streams, strict=True):
            assert int.from_bytes(stream.next().packet.payload, "big") == device_id
    finally:
        shared.close()
        server.stop()


def test_a_large_batch(client: Client, device: CapableDevice) -> None:
    hosts = [entry(HOSTS, exact(1, i.to_bytes(6, "big")), action=action(DROP)) for i in range(20_000)]
    client.write(*[(INSERT, host) for host in hosts])
    assert len(device.tables["Ingress.hosts"].entries) == 20_000
    assert len(client.read(entry(HOSTS))) == 20_000
    # All fail: the status stays small enough for a client that allows 1 MB of metadata, and has one error per update.
    failures = client.failures(*[(INSERT, host) for host in hosts[:2_000]])
    assert [code for code, _ in failures] == [6] * 2_000
    assert failures[0][1] and not failures[-1][1]


def test_concurrent_batches_are_all_applied(client: Client, device: CapableDevice) -> None:
    batches = [
        client.write_request(
            *[
                (INSERT, entry(HOSTS, exact(1, (b << 16 | i).to_bytes(6, "big")), action=action(DROP)))
                for i in range(50)
            ]
        )
        for b in range(40)
    ]
    calls = [client.stub.Write.future(batch, timeout=TIMEOUT_S) for batch in batches]
    for call in calls:
        call.result(TIMEOUT_S)
    assert len(device.tables["Ingress.hosts"].entries) == 2_000
