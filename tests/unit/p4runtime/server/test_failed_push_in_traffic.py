"""A pipeline that cannot be had: the switch goes on with the old one and its entries, and loses no packet."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r

from tests.unit.p4runtime.client import INSERT, Client, action, entry, exact, ids, pipeline_of
from tests.unit.p4runtime.network import H2, Network, frame, mac, running

PUSHES = 5
CONFIG = p4r.ForwardingPipelineConfig


@pytest.fixture(scope="module")
def config() -> CONFIG:
    return pipeline_of(Path(__file__).parents[1] / "punt.p4")


@pytest.fixture
def network() -> Iterator[Network]:
    with running() as network:
        yield network


def no_json(config: CONFIG) -> None:
    config.p4_device_config = b"{"


def program_that_cannot_be_compiled(config: CONFIG) -> None:
    program = json.loads(config.p4_device_config)
    program["actions"][0]["primitives"] = [{"op": "no_such_primitive", "parameters": []}]
    config.p4_device_config = json.dumps(program).encode()


def p4info_of_another_program(config: CONFIG) -> None:
    config.p4info.tables[0].preamble.name = "OtherIngress.hosts"


class Traffic(threading.Thread):
    """Frames to host 2, one after the other."""

    def __init__(self, network: Network) -> None:
        super().__init__(daemon=True)
        self.sent = 0
        self._engine = network.engine
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.is_set():
            self._engine.inject(1, 1, frame(H2))
            self.sent += 1

    def end(self) -> int:
        """How many were sent, once all have passed the switch."""
        self._ended.set()
        self.join()
        assert self._engine.quiesce(10)
        return self.sent


@pytest.mark.parametrize("break_", [no_json, program_that_cannot_be_compiled, p4info_of_another_program])
def test_traffic_goes_on(network: Network, config: CONFIG, break_: Callable[[CONFIG], None]) -> None:
    broken = CONFIG()
    broken.CopyFrom(config)
    break_(broken)
    client = Client(network.address)
    client.become_primary()
    client.push(pipeline=config)
    of = ids(config.p4info)
    route = entry(of["hosts"], exact(1, mac(H2)), action=action(of["forward"], b"\x02"))
    client.write((INSERT, route))
    traffic = Traffic(network)
    traffic.start()
    try:
        for _ in range(PUSHES):
            with pytest.raises(grpc.RpcError) as refusal:
                client.push(pipeline=broken)
            assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    finally:
        sent = traffic.end()
    out = network.engine.drain()
    assert len(out) == sent > PUSHES
    assert set(out) == {(1, 2, frame(H2))}
    assert client.read(entry(of["hosts"]))[0].match == route.match
    assert client.get_pipeline().config.p4_device_config == config.p4_device_config
    client.close()
