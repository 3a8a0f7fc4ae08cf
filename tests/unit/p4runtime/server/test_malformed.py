"""Requests that are no messages, whichever way protobuf is built (by its Python classes or those in C), and bytes
that are no requests: the server goes on serving those who speak P4Runtime."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from gradbed.switch.p4runtime.status import MalformedRequests, RequestError
from gradbed.switch.server import P4RuntimeServer
from tests.unit.p4runtime.client import TIMEOUT_S, Client
from tests.unit.p4runtime.fake_device import FakeDevice, FakeProgram

LEFT_CONNECTIONS = 300
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))


def frame(kind: int, flags: int, stream: int, payload: bytes, length: int | None = None) -> bytes:
    """Of HTTP/2 (RFC 9113, section 4.1). length: what it says, if not the truth."""
    size = len(payload) if length is None else length
    return size.to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


GARBAGE = {
    "random": random.Random(1).randbytes(100_000),
    "zeros": bytes(100_000),
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "http_without_end": b"GET /" + b"a" * 1_000_000,
    "tls": bytes.fromhex("160301020001000" + "1fc0303") + bytes(508),
    "preface_alone": PREFACE,
    "settings_without_end": PREFACE + frame(4, 0, 0, b"", (1 << 24) - 1),
    "headers_that_are_none": PREFACE + SETTINGS + frame(1, 5, 1, b"\xff" * 500),
    "data_of_no_stream": PREFACE + SETTINGS + frame(0, 0, 7, bytes(100)),
    "a_message_of_4_gigabytes": PREFACE + SETTINGS + frame(0, 0, 1, b"\0" + struct.pack(">I", 0xFFFFFFFF)),
    "many_resets": PREFACE + SETTINGS + b"".join(frame(3, 0, 2 * i + 1, bytes(4)) for i in range(5_000)),
    "window_of_nothing": PREFACE + SETTINGS + frame(8, 0, 0, bytes(4)),
}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Client, int]]:
    server = P4RuntimeServer({1: FakeDevice(1)}, ["127.0.0.1:0"], build=FakeProgram)
    server.start()
    client = Client(f"127.0.0.1:{server.ports[0]}")
    client.become_primary()
    client.push_sample()
    yield client, server.ports[0]
    client.close()
    server.stop()


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage(name: str, served: tuple[Client, int]) -> None:
    client, port = served
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        try:
            connection.sendall(GARBAGE[name])
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass
        except OSError:
            pass  # it has hung up before it was told all
    still_serves(client)


@pytest.mark.nightly
def test_a_message_that_is_too_long_is_refused_by_name(served: tuple[Client, int]) -> None:
    client, _ = served
    request = client.write_request()
    request.updates.add().entity.extern_entry.entry.value = bytes(257 << 20)
    with pytest.raises(grpc.RpcError) as caught:
        client.stub.Write(request, timeout=10 * TIMEOUT_S)
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in caught.value.details()
    still_serves(client)


def test_a_message_of_two_gigabytes_is_refused_by_its_first_bytes(served: tuple[Client, int]) -> None:
    """Which say how long it is: nothing is kept for the rest, or waited for."""
    client, port = served
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/p4.v1.P4Runtime/Write",
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    # Literals without indexing (RFC 7541, section 6.2.2).
    packed = b"".join(bytes((0, len(k))) + k.encode() + bytes((len(v),)) + v.encode() for k, v in headers.items())
    begun = b"\0" + struct.pack(">I", (1 << 31) - 1) + bytes(1000)
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        connection.sendall(PREFACE + SETTINGS + frame(1, 4, 1, packed) + frame(0, 0, 1, begun))
        said = b""
        while b"larger than max" not in said:
            more = connection.recv(1 << 16)
            assert more, said
            said += more
    status = said[said.index(b"grpc-status") :]
    assert status.startswith(b"grpc-status\x018"), status  # RESOURCE_EXHAUSTED
    still_serves(client)


def test_connections_that_are_opened_and_left(served: tuple[Client, int]) -> None:
    client, port = served
    left = [socket.create_connection(("127.0.0.1", port), TIMEOUT_S) for _ in range(LEFT_CONNECTIONS)]
    for number, connection in enumerate(left):
        connection.sendall((b"", PREFACE[:10], PREFACE, PREFACE + SETTINGS)[number % 4])
    still_serves(client)
    # A client that comes after them, too.
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        late = p4r_grpc.P4RuntimeStub(channel)
        assert late.Capabilities(p4r.CapabilitiesRequest(), timeout=TIMEOUT_S).p4runtime_api_version
    for connection in left:
        connection.close()
    still_serves(client)


def test_a_message_that_is_none_is_refused_by_name(served: tuple[Client, int]) -> None:
    client, port = served
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        write = channel.unary_unary("/p4.v1.P4Runtime/Write")
        with pytest.raises(grpc.RpcError) as caught:
            write(b"\xff" * 1000, timeout=TIMEOUT_S)
    assert caught.value.details() == "the request is no p4.v1.WriteRequest"
    still_serves(client)


def still_serves(client: Client) -> None:
    answer = client.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=TIMEOUT_S)
    assert answer.p4runtime_api_version
    list(client.stub.Read(p4r.ReadRequest(device_id=1), timeout=TIMEOUT_S))


@pytest.mark.parametrize("parse", [p4r.WriteRequest.FromString, lambda body: p4r.WriteRequest.FromString(body)])
def test_what_cannot_be_parsed_is_told_by_name(parse: Any) -> None:
    async def continuation(details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(lambda request, context: None, request_deserializer=parse)

    handler = asyncio.run(MalformedRequests().intercept_service(continuation, None))
    request = p4r.WriteRequest(device_id=7)
    assert handler.request_deserializer(request.SerializeToString()) == request
    error = handler.request_deserializer(b"\xff")
    assert isinstance(error, RequestError) and "p4.v1.WriteRequest" in str(error)
