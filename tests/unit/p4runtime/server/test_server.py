"""Addresses, life and load of the server."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r

from gradbed.common.errors import UserError
from gradbed.switch.p4runtime.status import StatusCode
from gradbed.switch.server import P4RuntimeServer
from tests.unit.p4runtime.client import INSERT, TIMEOUT_S, Client, action, entry, exact, serving
from tests.unit.p4runtime.fake_device import FakeDevice, FakeProgram
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
    unix = f"unix:{tmp_path}/p4rt.sock"
    server = P4RuntimeServer({}, ["127.0.0.1:0", unix, "127.0.0.1:0"], build=FakeProgram)
    server.start()
    try:
        first, second = server.ports
        assert first != second
        for address in (f"127.0.0.1:{first}", f"127.0.0.1:{second}", unix):
            assert version(address).startswith("1.4.")
    finally:
        server.stop()
    # The addresses are free again.
    again = P4RuntimeServer({}, [f"127.0.0.1:{first}", unix], build=FakeProgram)
    again.start()
    assert again.ports == [first]
    again.stop()


def refusal(*addresses: str) -> str:
    server = P4RuntimeServer({}, addresses, build=FakeProgram)
    with pytest.raises(UserError) as caught:
        server.start()
    server.stop()
    return str(caught.value)


def test_address_in_use(address: str) -> None:
    assert refusal(address) == f"cannot listen on {address}: Address already in use"
    assert version(address)
    # The addresses before the one that fails are not taken.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        other = f"127.0.0.1:{probe.getsockname()[1]}"
    assert refusal(other, address) == f"cannot listen on {address}: Address already in use"
    server = P4RuntimeServer({}, [other], build=FakeProgram)
    server.start()
    server.stop()


def test_unix_sockets_in_use_and_left_behind(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/p4rt.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(f"{tmp_path}/p4rt.sock")
        other.listen()
        assert refusal(address) == f"cannot listen on {address}: another server listens there"
    # Its owner is gone, the file is still there.
    server = P4RuntimeServer({}, [address], build=FakeProgram)
    server.start()
    assert server.ports == [] and version(address)
    server.stop()


def test_unusable_addresses(tmp_path: Path) -> None:
    missing = f"unix:{tmp_path}/missing/p4rt.sock"
    assert refusal(missing) == f"cannot listen on {missing}: No such file or directory"
    assert "AF_UNIX path too long" in refusal(f"unix:{tmp_path}/{'x' * 120}")
    assert refusal("192.0.2.1:0") == "cannot listen on 192.0.2.1:0: Cannot assign requested address"


@pytest.mark.parametrize("address", ["", "9559", "127.0.0.1", "127.0.0.1:port", "127.0.0.1:65536", "unix:"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(UserError, match="is no address"):
        P4RuntimeServer({}, [address], build=FakeProgram)


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


@pytest.mark.thorough
def test_hundreds_of_devices_connected_at_once() -> None:
    """Every device has a stream that stays open; writes, reads and packets still get through."""
    count = 200  # more than a connection has streams at once by default
    devices = {i: FakeDevice(i) for i in range(1, count + 1)}
    with serving(devices) as shared:
        clients = [Client(shared.channel, device_id) for device_id in devices]
        streams = []
        for client in clients:
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


def test_a_large_batch(client: Client, device: FakeDevice) -> None:
    hosts = [entry(HOSTS, exact(1, i.to_bytes(6, "big")), action=action(DROP)) for i in range(20_000)]
    client.write(*[(INSERT, host) for host in hosts])
    assert len(device.state.tables["Ingress.hosts"].entries) == 20_000
    assert len(client.read(entry(HOSTS))) == 20_000


@pytest.mark.parametrize(("count", "limit_bytes"), [(10, None), (150, None), (1_000, 64 * 1024)])
def test_errors_of_a_batch_reach_a_client(client: Client, address: str, count: int, limit_bytes: int | None) -> None:
    """Clients lose all errors when the metadata pass their limit: by default 8 KiB, with finsy 64 KiB."""
    options = [] if limit_bytes is None else [("grpc.max_metadata_size", limit_bytes)]
    host = entry(HOSTS, exact(1, b"\x01"), action=action(DROP))
    with grpc.insecure_channel(address, options=options) as channel:
        failures = Client(channel).failures(*[(INSERT, host)] * count)
    assert [code for code, _ in failures] == [StatusCode.OK] + [StatusCode.ALREADY_EXISTS] * (count - 1)
    assert failures[1][1]
    assert bool(failures[-1][1]) is (count == 10)


def test_concurrent_batches_are_all_applied(client: Client, device: FakeDevice) -> None:
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
    assert len(device.state.tables["Ingress.hosts"].entries) == 2_000


@pytest.mark.parametrize("method", ["Write", "Read", "SetForwardingPipelineConfig", "Capabilities", "StreamChannel"])
def test_a_body_that_is_no_message(bare_client: Client, method: str) -> None:
    """gRPC's libraries for C++, and so BMv2, say INTERNAL."""
    kind = {"Read": "unary_stream", "StreamChannel": "stream_stream"}.get(method, "unary_unary")
    call = getattr(bare_client.channel, kind)(f"/p4.v1.P4Runtime/{method}")
    body = iter([b"\xff\xff"]) if method == "StreamChannel" else b"\xff\xff"
    with pytest.raises(grpc.RpcError) as caught:
        answers = call(body, timeout=TIMEOUT_S)
        list(answers)
    message = "StreamMessage" if method == "StreamChannel" else method
    assert caught.value.code() == grpc.StatusCode.INTERNAL
    assert caught.value.details() == f"the request is no p4.v1.{message}Request"
