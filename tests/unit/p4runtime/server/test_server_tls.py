"""P4Runtime over TLS, with and without certificates of clients."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from gradbed.common.errors import UserError
from gradbed.switch.server import P4RuntimeServer
from gradbed.switch.server.addresses import ServerTls
from tests.unit.p4runtime.certificates import DAY, Authority
from tests.unit.p4runtime.fake_device import FakeDevice, FakeProgram

TIMEOUT_S = 20.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "ca")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("other"), "other")


@contextmanager
def serving(tls: ServerTls) -> Iterator[str]:
    """The address of a server over TLS, beside an address without."""
    server = P4RuntimeServer(
        {1: FakeDevice(1)}, ["127.0.0.1:0", "localhost:0"], build=FakeProgram, tls={"127.0.0.1:0": tls}
    )
    server.start()
    try:
        secure, plain = server.ports
        assert calls(f"localhost:{plain}")
        yield f"127.0.0.1:{secure}"
    finally:
        server.stop()


def calls(address: str, ca: Authority | None = None, certificate: tuple[Path, Path] | None = None) -> bool:
    """Whether a client gets an answer. ca: None for one without TLS."""
    if ca is None:
        channel = grpc.insecure_channel(address)
    else:
        own, key = (None, None) if certificate is None else (file.read_bytes() for file in certificate)
        channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(ca.certificate.read_bytes(), key, own))
    with channel:
        try:
            answer = p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE
            return False
    return bool(answer.p4runtime_api_version)


def test_a_server_that_shows_its_certificate(authority: Authority, other: Authority) -> None:
    with serving(ServerTls(*authority.issue("server"))) as address:
        assert calls(address, authority)
        assert calls(address, authority, other.issue("whoever"))
        assert not calls(address)
        assert not calls(address, other)


def test_a_server_that_asks_for_certificates(authority: Authority, other: Authority) -> None:
    with serving(ServerTls(*authority.issue("server"), client_ca=authority.certificate)) as address:
        assert calls(address, authority, authority.issue("client"))
        assert not calls(address, authority)
        assert not calls(address, authority, other.issue("stranger"))
        assert not calls(address, authority, authority.issue("late", ends_in=-DAY))
        assert not calls(address)


def test_half_a_handshake_holds_nobody_up(authority: Authority) -> None:
    """Also one that is none, and clients that never say anything."""
    hello = bytes.fromhex("16030102000100" + "01fc0303") + bytes(100)
    with serving(ServerTls(*authority.issue("server"), client_ca=authority.certificate)) as address:
        host, port = address.split(":")
        left = [socket.create_connection((host, int(port)), TIMEOUT_S) for _ in range(60)]
        for number, connection in enumerate(left):
            connection.sendall((b"", hello, b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n")[number % 4])
        assert calls(address, authority, authority.issue("client"))
        for connection in left:
            connection.close()


def test_a_certificate_of_the_server_that_has_expired(authority: Authority) -> None:
    with serving(ServerTls(*authority.issue("server", ends_in=-DAY))) as address:
        assert not calls(address, authority)


def test_files_that_will_not_do(authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.issue("server")
    text, missing = tmp_path / "text", tmp_path / "missing"
    text.write_text("no certificate")
    wrong = {
        ServerTls(missing, key): f"^cannot read {missing}: No such file",
        ServerTls(certificate, tmp_path): f"^cannot read {tmp_path}: Is a directory",
        ServerTls(certificate, key, missing): f"^cannot read {missing}: ",
        ServerTls(text, key): f"^{text} and {key} are not a certificate and its key",
        ServerTls(certificate, text): f"^{certificate} and {text} are not",
        ServerTls(certificate, authority.issue("another")[1]): "are not a certificate and its key.*mismatch",
        ServerTls(*authority.issue("locked", password=b"secret")): "without a password",
        ServerTls(certificate, key, text): f"^{text} has no certificate in PEM format",
    }
    for tls, message in wrong.items():
        server = P4RuntimeServer({}, ["127.0.0.1:0"], build=FakeProgram, tls={"127.0.0.1:0": tls})
        with pytest.raises(UserError, match=message) as caught:
            server.start()
        assert "\n" not in str(caught.value)
