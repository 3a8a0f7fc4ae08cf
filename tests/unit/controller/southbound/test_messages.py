"""Digests and packet-ins, from a packet in a real data plane to a service and back into the switch's tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pydantic import BaseModel

from controller.core.controller import Controller
from controller.core.mailbox import Mailbox
from controller.core.service import NoSettings, Service
from controller.core.services import LoadedService
from controller.planning.plan import Plan, SwitchPlan, TableEntry
from controller.southbound.messages import Digest, Message, PacketIn
from controller.southbound.p4runtime import codec
from controller.southbound.p4runtime.p4runtime import P4RuntimeSouthbound
from controller.southbound.p4runtime.pipeline import Pipeline
from controller.southbound.target import Target
from controller.switches import unrouted_programs
from switch.compiler import compile_p4
from switch.engine import Engine
from switch.server import P4RuntimeServer
from topo.shapes.star import star

PATIENCE_S = 30.0
CPU_PORT = 510
TOPOLOGY = star(3)


class Nothing(BaseModel):
    """The learning switch has no jobs."""


class LearningService(Service[NoSettings, Nothing, Nothing, Nothing]):
    Settings, Request, State, Answer = NoSettings, Nothing, Nothing, Nothing
    programs = ("learning",)

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.messages: list[Message] = []
        self.port_of: dict[int, int] = {}
        self.learns = True

    def base(self) -> Plan:
        known = [
            TableEntry(table="known", match={"hdr.ethernet.src_addr": address}, action="NoAction")
            for address in self.port_of
        ]
        hosts = [
            TableEntry(
                table="hosts", match={"hdr.ethernet.dst_addr": address}, action="forward", params={"port": port}
            )
            for address, port in self.port_of.items()
        ]
        return Plan(switches={"s1": SwitchPlan.of("learning", [*known, *hosts])})

    def on_message(self, switch: str, message: Message) -> Plan | None:
        self.messages.append(message)
        if isinstance(message, PacketIn) or not self.learns:
            return None
        self.port_of |= {each["address"]: each["port"] for each in message.entries}
        return self.base()

    def admit(self, number: int, request: Nothing, others: Mapping[int, Nothing]) -> Nothing:
        return request

    def plan(self, number: int, state: Nothing) -> Plan:
        return Plan(switches={})

    def answer(self, number: int, state: Nothing) -> Nothing:
        return state


class Network:
    """One switch, its P4Runtime server, and a controller of the learning service alone."""

    def __init__(self, directory: Path) -> None:
        compiled = compile_p4(Path(__file__).parents[1] / "learning.p4")
        (directory / "learning.json").write_text(compiled.json_text)
        (directory / "learning.p4info.txt").write_text(compiled.p4info_text)
        self.pipelines = {
            "learning": Pipeline.load("learning", directory / "learning.json", directory / "learning.p4info.txt")
        }
        self.engine = Engine()
        device = self.engine.add_switch(1, "s1", cpu_port=CPU_PORT)
        for port in (1, 2, 3):
            self.engine.add_open_port(1, port)
        self.engine.start()
        self.address = f"unix:{directory}/p4rt.sock"
        self.server = P4RuntimeServer({1: device}, [self.address])
        self.server.start()
        self.start_controller()

    def start_controller(self, keep_pipelines: bool = False) -> None:
        southbound = P4RuntimeSouthbound({"s1": Target(self.address, 1)}, self.pipelines, keep_pipelines)
        self.controller = Controller(
            TOPOLOGY,
            southbound,
            [LoadedService("learning", LearningService, NoSettings())],
            {"s1": "learning"},
            unrouted_programs=unrouted_programs(self.pipelines),
        )
        self.mailbox = Mailbox(self.controller)
        southbound.listen(self.mailbox)
        self.controller.start(PATIENCE_S)

    def stop_controller(self) -> None:
        self.mailbox.stop()
        self.controller.southbound.stop()

    @property
    def service(self) -> LearningService:
        service = self.controller.services["learning"]
        assert isinstance(service, LearningService)
        return service

    def exchange(self, port: int, frame: bytes) -> dict[int, bytes]:
        """Send a frame in; what came out, by port."""
        self.engine.inject(1, port, frame)
        assert self.engine.quiesce(PATIENCE_S)
        return {port: received for _, port, received in self.engine.drain()}

    def close(self) -> None:
        self.stop_controller()
        self.server.stop()
        self.engine.close()


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    network = Network(tmp_path)
    yield network
    network.close()


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def frame(destination: int, source: int) -> bytes:
    return destination.to_bytes(6, "big") + source.to_bytes(6, "big") + b"\x88\xb5payload"


H1, H2 = 0x020000000001, 0x020000000002


def test_what_is_learnt_from_packets_is_forwarded_by(network: Network) -> None:
    assert network.exchange(1, frame(H2, H1)) == {}
    wait_until(lambda: len(network.service.messages) == 2)
    digests = [message for message in network.service.messages if isinstance(message, Digest)]
    packets = [message for message in network.service.messages if isinstance(message, PacketIn)]
    assert digests == [Digest("learn_t", ({"address": H1, "port": 1, "local": 1},))]
    assert [(packet.payload, packet.metadata["ingress_port"]) for packet in packets] == [(frame(H2, H1), 1)]
    # The digest's plan is in the switch: the answer finds its way, and is learnt from in turn.
    wait_until(lambda: network.exchange(2, frame(H1, H2)) == {1: frame(H1, H2)})
    wait_until(lambda: network.exchange(1, frame(H2, H1)) == {2: frame(H2, H1)})
    assert network.service.port_of == {H1: 1, H2: 2}


def test_every_digest_is_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the switch would keep an equal one back; here for longer than anybody waits."""
    monkeypatch.setattr(codec, "DIGEST_ACK_TIMEOUT_NS", 3_600_000_000_000)
    network = Network(tmp_path)
    try:
        network.service.learns = False

        def another_has_come() -> bool:
            network.exchange(3, frame(0, H1))
            return sum(isinstance(message, Digest) for message in network.service.messages) >= 3

        wait_until(another_has_come)
    finally:
        network.close()


def test_a_successor_that_keeps_the_pipeline_hears_digests_too(network: Network) -> None:
    network.exchange(1, frame(H2, H1))
    wait_until(lambda: network.service.port_of == {H1: 1})
    network.stop_controller()
    network.start_controller(keep_pipelines=True)
    network.exchange(2, frame(0, H2))
    wait_until(lambda: network.service.port_of == {H2: 2})


def test_registers_are_read(network: Network) -> None:
    network.exchange(3, frame(H1, H2))
    for name in ("last_source", "LearningIngress.last_source"):
        assert network.controller.southbound.registers("s1", name) == [0, 0, 0, H2, 0, 0, 0, 0]
