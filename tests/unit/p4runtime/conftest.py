from __future__ import annotations

from collections.abc import Iterator

import pytest

from gradbed.switch.server import P4RuntimeServer
from tests.unit.p4runtime.client import Client, Stream
from tests.unit.p4runtime.fake_device import FakeDevice, FakeProgram


@pytest.fixture
def devices() -> dict[int, FakeDevice]:
    return {i: FakeDevice(i) for i in (1, 2)}


@pytest.fixture
def server(devices: dict[int, FakeDevice]) -> Iterator[P4RuntimeServer]:
    server = P4RuntimeServer(devices, ["127.0.0.1:0"], build=FakeProgram)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def device(devices: dict[int, FakeDevice]) -> FakeDevice:
    return devices[1]


@pytest.fixture
def address(server: P4RuntimeServer) -> str:
    return f"127.0.0.1:{server.ports[0]}"


@pytest.fixture
def bare_client(address: str) -> Iterator[Client]:
    """Without stream and pipeline."""
    client = Client(address)
    yield client
    client.close()


@pytest.fixture
def client(bare_client: Client) -> Client:
    """Primary on device 1, where the sample program runs."""
    bare_client.become_primary()
    bare_client.push_sample(cookie=7)
    return bare_client


@pytest.fixture
def primary(bare_client: Client) -> Stream:
    """Of device 1, where the sample program runs."""
    stream = bare_client.become_primary()
    bare_client.push_sample()
    return stream
