"""Digests and packet-ins, from a packet in a real data plane to a service and back into the switch's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import BaseModel

from gradbed.controller.core.controller import Controller
from gradbed.controller.core.service import LoadedService, NoSettings, Service
from gradbed.controller.planning.plan import Plan, SwitchPlan, TableEntry
from gradbed.controller.southbound.interface import Digest, Message, PacketIn, QueuedListener, Target
from gradbed.controller.southbound.p4runtime import codec
from gradbed.controller.southbound.p4runtime.p4runtime import P4RuntimeSouthbound
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.controller.switches import unrouted_programs
from gradbed.topo.generators import star
from tests.unit.p4runtime.network import Network, frame, running, write_program
from tests.waiting import wait_until

PATIENCE_S = 30.0
PROGRAM = Path(__file__).parents[1] / "learning.p4"
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


class LearningSwitch:
    """A controller of the learning service alone, for the switch of a network."""

    def __init__(self, network: Network, directory: Path) -> None:
        files = write_program(PROGRAM, directory)
        self.network = network
        self.pipelines = {"learning": Pipeline.load("learning", *files)}
        self.start_controller()

    def start_controller(self, keep_pipelines: bool = False) -> None:
        southbound = P4RuntimeSouthbound({"s1": Target(self.network.address, 1)}, self.pipelines, keep_pipelines)
        self.controller = Controller(
            TOPOLOGY,
            southbound,
            [LoadedService("learning", LearningService, NoSettings())],
            {"s1": "learning"},
            unrouted_programs=unrouted_programs(self.pipelines),
        )
        self.mailbox = QueuedListener(self.controller)
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


@contextmanager
def learning_switch(directory: Path) -> Iterator[LearningSwitch]:
    with running() as network:
        learning = LearningSwitch(network, directory)
        yield learning
        learning.stop_controller()


@pytest.fixture
def learning(tmp_path: Path) -> Iterator[LearningSwitch]:
    with learning_switch(tmp_path) as learning:
        yield learning


H1, H2 = 0x020000000001, 0x020000000002


def test_what_is_learnt_from_packets_is_forwarded_by(learning: LearningSwitch) -> None:
    assert learning.network.exchange(1, frame(H2, H1)) == {}
    wait_until(lambda: len(learning.service.messages) == 2)
    digests = [message for message in learning.service.messages if isinstance(message, Digest)]
    packets = [message for message in learning.service.messages if isinstance(message, PacketIn)]
    assert digests == [Digest("learn_t", ({"address": H1, "port": 1, "local": 1},))]
    assert [(packet.payload, packet.metadata["ingress_port"]) for packet in packets] == [(frame(H2, H1), 1)]
    # The digest's plan is in the switch: the answer finds its way, and is learnt from in turn.
    wait_until(lambda: learning.network.exchange(2, frame(H1, H2)) == {1: frame(H1, H2)})
    wait_until(lambda: learning.network.exchange(1, frame(H2, H1)) == {2: frame(H2, H1)})
    assert learning.service.port_of == {H1: 1, H2: 2}


def test_every_digest_is_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the switch would keep an equal one back; here for longer than anybody waits."""
    monkeypatch.setattr(codec, "DIGEST_ACK_TIMEOUT_NS", 3_600_000_000_000)
    with learning_switch(tmp_path) as learning:
        learning.service.learns = False

        def another_has_come() -> bool:
            learning.network.exchange(3, frame(0, H1))
            return sum(isinstance(message, Digest) for message in learning.service.messages) >= 3

        wait_until(another_has_come)


def test_a_successor_that_keeps_the_pipeline_hears_digests_too(learning: LearningSwitch) -> None:
    learning.network.exchange(1, frame(H2, H1))
    wait_until(lambda: learning.service.port_of == {H1: 1})
    learning.stop_controller()
    learning.start_controller(keep_pipelines=True)
    learning.network.exchange(2, frame(0, H2))
    wait_until(lambda: learning.service.port_of == {H2: 2})


def test_registers_are_read(learning: LearningSwitch) -> None:
    learning.network.exchange(3, frame(H1, H2))
    for name in ("last_source", "LearningIngress.last_source"):
        assert learning.controller.southbound.registers("s1", name) == [0, 0, 0, H2, 0, 0, 0, 0]
