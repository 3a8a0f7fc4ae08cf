"""Agents with queue pairs: waiting, ends of all kinds, and what is counted of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from gradbed.common.errors import UserError
from gradbed.formats.packet_class import udp_datagram
from gradbed.formats.roce import ROCE_PORT
from gradbed.hosts.agents.config import AgentAddress, AgentConfig
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.agents.kernel.context import RealContext
from gradbed.hosts.agents.launching import INTERFACES
from gradbed.hosts.agents.queue_pairs import CompletionKind, QueuePairOptions, QueuePairs
from gradbed.hosts.agents.virtual.clock import VirtualClock
from gradbed.hosts.agents.virtual.launcher import VirtualLauncher
from gradbed.hosts.collectives.schedule import CollectiveAction, CollectiveStep
from gradbed.topo.link import LinkModel
from tests.unit.virtual.transport import roce_frames as rf
from tests.unit.virtual.transport.network import Line, contents
from tests.unit.virtual.transport.test_collectives import TAG, of_steps, on_nic

LINK = LinkModel(rate_bps=10**10, delay_us=5, queue_packets=1000)
PATIENT = QueuePairOptions(timeout_us=100, give_up_after=4)
UDP_PORT = 7000
GIVES_UP_NS, LATER_NS = 4 * 100_000, 3 * 50_000
"""Four timeouts, and how much longer they are at most: all but the first by up to a half."""
US = 1000
Script = Callable[[AgentContext], None]


class Name(AgentConfig):
    """Which of SCRIPTS an agent follows."""

    name: str


SCRIPTS: dict[str, Script] = {}


def follow(context: AgentContext, config: Name) -> None:
    """The agent."""
    SCRIPTS[config.name](context)


def address(host: int) -> AgentAddress:
    return AgentAddress(
        name=f"h{host}", ip=f"10.0.0.{host}", mac=f"02:00:00:00:00:0{host}", gateway_mac="02:01:00:00:00:01"
    )


class Hosts:
    """Of one switch, with a script in each, or several: (host, script)."""

    def __init__(self, scripts: list[tuple[int, Script]], link: LinkModel = LINK, classes: Any = ()) -> None:
        self.line = Line([1] * max(host for host, _ in scripts), link)
        self.line.simulated.engine.count_classes(classes) if classes else None
        self.clock = VirtualClock(self.line.simulated)
        nics = {f"h{i}-eth0": interface for i, interface in enumerate(self.line.interfaces, 1)}
        self.launcher = VirtualLauncher(self.clock, nics)
        for number, (host, script) in enumerate(scripts):
            SCRIPTS[f"{number}"] = script
            self.launcher.send(
                "start", agent=f"{__name__}:follow", name=f"{number}", job=1, interfaces=(f"h{host}-eth0",),
                config={"name": f"{number}"}, classes=classes,
            )  # fmt: skip

    def events(self, count: int) -> list[dict[str, Any]]:
        found = [self.launcher.event() for _ in range(count)]
        assert not [each for each in found if each["event"] == "error"], found
        return found

    def run(self, until_ns: int) -> None:
        self.clock.at(until_ns, lambda: None)
        while self.clock.now_ns < until_ns:
            self.clock.step()


def await_completions(context: AgentContext, pairs: QueuePairs, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count and not context.stopped:
        context.wait()
        found += pairs.completions()
    return found


def sender(messages: int, size_bytes: int = 5000, options: QueuePairOptions = PATIENT, peer: int = 2) -> Script:
    """Sends, and tells how each message ended."""

    def script(context: AgentContext) -> None:
        with context.open_queue_pairs(address(1)) as pairs:
            pairs.connect(1, address(peer), 1, options)
            for tag in range(messages):
                pairs.send(1, tag, size_bytes)
            for each in await_completions(context, pairs, messages):
                context.emit("done", kind=each.kind.name, tag=each.tag, time_ns=each.time_ns, now_ns=context.now_ns())
            context.emit("statistics", **vars(pairs.statistics(1)))
            while not context.stopped:
                context.wait()

    return script


def receiver(messages: int, options: QueuePairOptions = PATIENT) -> Script:
    def script(context: AgentContext) -> None:
        with context.open_queue_pairs(address(2)) as pairs:
            pairs.connect(1, address(1), 1, options)
            for each in await_completions(context, pairs, messages):
                context.emit("received", tag=each.tag, time_ns=each.time_ns, now_ns=context.now_ns())
            while not context.stopped:
                context.wait()

    return script


# ---- Waiting ----


def test_completions_end_a_wait_when_they_come() -> None:
    hosts = Hosts([(1, sender(3)), (2, receiver(3))])
    events = hosts.events(7)
    done = [each for each in events if each["event"] in ("done", "received")]
    assert [each["tag"] for each in done if each["event"] == "received"] == [0, 1, 2]
    assert [(each["tag"], each["kind"]) for each in done if each["event"] == "done"] == [
        (i, "SENT") for i in range(3)
    ]
    assert all(each["time_ns"] <= each["now_ns"] for each in done)
    # 4170, 966 bytes behind each other over two links of 10 Gbit/s and 5 us.
    first = next(each for each in done if each["event"] == "received")
    assert first["time_ns"] == 2 * 5 * US + 2 * 4170 * 8 // 10 + 966 * 8 // 10


def test_time_is_exact_to_the_nanosecond() -> None:
    def sleeper(context: AgentContext) -> None:
        for until_ns in (1, 999, 1_000_001):
            context.wait(until_ns=until_ns)
            context.emit("woke", now_ns=context.now_ns())
        context.wait(until_us=2000)
        context.emit("woke", now_ns=context.now_ns())

    woken = [each["now_ns"] for each in Hosts([(1, sleeper)]).events(4)]
    assert woken == [1, 999, 1_000_001, 2_000_000]


# ---- Ends ----


def test_queue_pairs_of_a_killed_agent_vanish() -> None:
    hosts = Hosts([(1, sender(3, 10**6)), (2, receiver(3))])
    hosts.run(100 * US)
    hosts.launcher.send("kill", job=1, name="1")
    events = hosts.events(5)
    done = [each for each in events if each["event"] == "done"]
    assert [(each["kind"], each["tag"]) for each in done] == [("FAILED", tag) for tag in range(3)]
    # The last news came just after the agent's end, and then there were four timeouts.
    assert 0 <= done[0]["time_ns"] - 100 * US - GIVES_UP_NS < 30 * US + LATER_NS
    assert next(each for each in events if each["event"] == "statistics")["timeouts"] == 4


def test_a_killed_senders_pairs_vanish_and_its_number_is_free_again() -> None:
    hosts = Hosts([(1, sender(3, 10**6)), (2, receiver(99))])
    hosts.run(100 * US)
    hosts.launcher.send("kill", job=1, name="0")
    hosts.run(500 * US)
    before = sum(row.packets for row in hosts.line.simulated.engine.link_statistics())
    hosts.run(5000 * US)
    assert sum(row.packets for row in hosts.line.simulated.engine.link_statistics()) == before
    pairs = hosts.line.open(1)
    hosts.line.connect_end(1, 2, 1, 1, give_up_after=1)
    pairs.close()


def test_the_nic_of_a_paused_agent_works_on() -> None:
    hosts = Hosts([(1, sender(3)), (2, receiver(3))])
    hosts.run(1)
    hosts.launcher.send("pause", job=1, name="1")
    events = hosts.events(4)
    assert [each["event"] for each in events] == ["done"] * 3 + ["statistics"]
    now_ns = hosts.clock.now_ns
    hosts.launcher.send("resume", job=1, name="1")
    received = hosts.events(3)
    assert all(each["time_ns"] < now_ns <= each["now_ns"] for each in received)


def test_collectives_of_a_paused_agent_wait_for_it() -> None:
    """Its NIC acknowledges what comes meanwhile."""
    opened: list[QueuePairs] = []

    def answers(here: int, there: int) -> Script:
        def script(context: AgentContext) -> None:
            one = of_steps(
                CollectiveStep(CollectiveAction.SEND, there - 1, 0, 4),
                CollectiveStep(CollectiveAction.RECEIVE, there - 1, 0, 4),
                CollectiveStep(CollectiveAction.SEND, there - 1, 0, 4, (1,)),
                CollectiveStep(CollectiveAction.RECEIVE, there - 1, 0, 4, (2,)),
            )
            with context.open_queue_pairs(address(here)) as pairs:
                opened.append(pairs)
                pairs.connect(there, address(there), here, PATIENT, for_collectives=True)
                assert not pairs.begin_collective(TAG, on_nic(one))
                while not (done := pairs.completions()):
                    context.wait()
                context.emit("done", kinds=[each.kind.name for each in done], now_ns=context.now_ns())
                context.wait(until_ns=20_000 * US)

        return script

    hosts = Hosts([(1, answers(1, 2)), (2, answers(2, 1))])
    hosts.run(1)
    hosts.launcher.send("pause", job=1, name="1")
    hosts.run(10_000 * US)
    assert [pairs.collective_counts().messages for pairs in opened] == [2, 1]
    hosts.launcher.send("resume", job=1, name="1")
    assert [each["kinds"] for each in hosts.events(2)] == [["COLLECTIVE"]] * 2
    assert hosts.clock.now_ns > 10_000 * US


@pytest.mark.parametrize(("mended_us", "kind"), [(300, "SENT"), (900, "FAILED")])
def test_a_cut_link(mended_us: int, kind: str) -> None:
    hosts = Hosts([(1, sender(1, 10**6)), (2, receiver(1))])
    hosts.run(100 * US)
    hosts.line.simulated.engine.set_link_up(1, 2, False)
    hosts.run(mended_us * US)
    hosts.line.simulated.engine.set_link_up(1, 2, True)
    done = next(each for each in hosts.events(2) if each["event"] == "done")
    assert done["kind"] == kind


@pytest.mark.parametrize(("loaded_us", "kind"), [(300, "SENT"), (900, "FAILED")])
def test_a_restarted_switch(loaded_us: int, kind: str) -> None:
    hosts = Hosts([(1, sender(1, 10**6)), (2, receiver(1))])
    hosts.run(100 * US)
    hosts.line.simulated.restart_switch(1)
    hosts.run(loaded_us * US)
    hosts.line.load(1)
    done = next(each for each in hosts.events(2) if each["event"] == "done")
    assert done["kind"] == kind


def test_a_failed_pair_fails_at_once_and_others_do_not() -> None:
    def script(context: AgentContext) -> None:
        with context.open_queue_pairs(address(1)) as pairs:
            pairs.connect(1, address(3), 1, PATIENT)  # nobody is there
            pairs.connect(2, address(2), 1, PATIENT)
            pairs.send(1, 7, 100)
            (failed,) = await_completions(context, pairs, 1)
            assert failed.kind is CompletionKind.FAILED
            failed_ns = context.now_ns()
            assert GIVES_UP_NS <= failed_ns < GIVES_UP_NS + LATER_NS
            pairs.send(1, 8, 100)
            pairs.send(2, 9, 100)
            again, sent = await_completions(context, pairs, 2)
            assert (again.kind, again.tag, again.time_ns) == (CompletionKind.FAILED, 8, failed_ns)
            assert (sent.kind, sent.tag) == (CompletionKind.SENT, 9)
            context.wait(until_ns=2 * GIVES_UP_NS)
            pairs.send(1, 10, 100)
            assert [each.tag for each in pairs.completions()] == [10]  # without being woken for it
            context.emit("done")

    def peer(context: AgentContext) -> None:
        with context.open_queue_pairs(address(2)) as pairs:
            pairs.connect(1, address(1), 2, PATIENT)
            await_completions(context, pairs, 1)
            context.emit("received")
            while not context.stopped:
                context.wait()

    hosts = Hosts([(1, script), (2, peer), (3, lambda context: None)])
    assert {each["event"] for each in hosts.events(2)} == {"done", "received"}


# ---- Several on one host ----


def test_two_agents_and_frames_of_one_host() -> None:
    """Completions go to whose they are, frames to who opened the interface."""

    def with_pairs(number: int) -> Script:
        def script(context: AgentContext) -> None:
            with context.open_queue_pairs(address(2)) as pairs:
                pairs.connect(number, address(1), number, PATIENT)
                with pytest.raises(UserError, match=f"queue pair {number} .* already"):
                    pairs.connect(number, address(1), 9, PATIENT)
                (each,) = await_completions(context, pairs, 1)
                context.emit("received", tag=each.tag, pair=each.pair)
                while not context.stopped:
                    context.wait()

        return script

    def with_frames(context: AgentContext) -> None:
        with context.open(udp_port=UDP_PORT) as interface:
            while True:
                context.wait()
                _, lengths = interface.receive()
                if len(lengths):
                    context.emit("frames", lengths=lengths.tolist())
                    return

    def source(context: AgentContext) -> None:
        with context.open_queue_pairs(address(1)) as pairs, context.open() as interface:
            for number in (5, 6):
                pairs.connect(number, address(2), number, PATIENT)
                pairs.send(number, 100 + number, 3000)
            interface.send(np.frombuffer(rf.datagram(1, 2, UDP_PORT, b"plain"), np.uint8)[None])
            await_completions(context, pairs, 2)

    hosts = Hosts([(1, source), (2, with_pairs(5)), (2, with_pairs(6)), (2, with_frames)])
    events = [each for each in hosts.events(5) if each["event"] != INTERFACES]
    assert sorted((each["pair"], each["tag"]) for each in events if each["event"] == "received") == [
        (5, 105),
        (6, 106),
    ]
    assert [each["lengths"] for each in events if each["event"] == "frames"] == [[14 + 20 + 8 + 5]]


# ---- Counts ----


def test_what_agents_counted_is_what_links_carried() -> None:
    roce = udp_datagram(ROCE_PORT)
    classes = ([(12, 0xFFFF, 0x0806)], [list(word) for word in roce])
    lossy = dataclasses.replace(LINK, loss=0.05, duplicate=0.05)
    options = QueuePairOptions(timeout_us=100, give_up_after=1000)
    scripts = [(1, sender(20, 20_000, options)), (2, receiver(20, options))]
    hosts = Hosts(scripts, lossy, classes)
    hosts.events(41)
    hosts.run(hosts.clock.now_ns + 10_000 * US)
    hosts.launcher.send("stop", job=1)
    told = {each["name"]: each["interfaces"] for each in hosts.events(3) if each["event"] == INTERFACES}
    links = {(row.port, row.direction): row for row in hosts.line.simulated.engine.link_statistics()}
    by_class = {(row.port, row.direction): row for row in hosts.line.simulated.engine.link_classes()}
    for host in (1, 2):
        counts = told[str(host - 1)][f"h{host}-eth0"]
        assert (counts["sent_frames"], counts["sent_bytes"]) == (
            links[host, "in"].offered, links[host, "in"].offered_bytes,
        )  # fmt: skip
        assert (counts["received_frames"], counts["received_bytes"], counts["drops"]) == (
            links[host, "out"].packets, links[host, "out"].bytes, 0,
        )  # fmt: skip
        assert counts["sent_classes"] == list(by_class[host, "in"].entered[:3]) == [0, 0, counts["sent_frames"]]
        assert counts["received_classes"] == list(by_class[host, "out"].delivered[:3])
    assert links[1, "in"].losses and links[2, "out"].duplicates


# ---- Mistakes ----


def test_mistakes_are_told() -> None:
    with pytest.raises(ValidationError, match="dctcp needs a window"):
        QueuePairOptions(congestion_control="dctcp")
    with Line([1, 1], LinkModel()) as line:
        line.connect_end(1, 2, 1, 1)
        pairs = line.open(1)
        with pytest.raises(UserError, match="no queue pair 2"):
            pairs.send(2, 0, 10)
        with pytest.raises(UserError, match="no queue pair 2"):
            pairs.statistics(2)
        with pytest.raises(ValueError, match="9 bytes"):
            pairs.send(1, 0, 10, contents(9))
        with pytest.raises(ValueError, match="C-contiguous"):
            pairs.send(1, 0, 10, contents(20)[::2])
        with pytest.raises(UserError, match="64 bits"):
            pairs.send(1, 2**64, 10)
        with pytest.raises(UserError, match="2\\^31"):
            pairs.send(1, 0, 2**31 + 1)
        with pytest.raises(UserError, match="numbers are"):
            line.connect_end(1, 2, 2**24, 1)
        with pytest.raises(UserError, match="needs a rate"):
            line.connect_end(1, 2, 3, 1, congestion_control="dcqcn")
        pairs.close()
        pairs.close()
        assert pairs.completions() == []
        with pytest.raises(UserError, match="no queue pair 1"):
            pairs.send(1, 0, 10)
        with pytest.raises(UserError, match="does not lead to a host"):
            line.simulated.interface(1, 7)


def test_a_launcher_without_nics_says_so() -> None:
    context = RealContext(1, "worker 1", ("h1-eth0",), 0, 1)
    with pytest.raises(UserError, match="this launcher was started without NICs"):
        context.open_queue_pairs(address(1))
