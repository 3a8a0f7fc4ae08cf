"""Agents of the test's own on simulated time: waiting, commands, ends, and what cannot go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP, IPOption_NOP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from gradbed.common.errors import UserError
from gradbed.experiments.runtimes.agents import Agents, AgentSpec
from gradbed.hosts.agents.config import AgentConfig
from gradbed.hosts.agents.context import AgentContext
from gradbed.hosts.agents.virtual.clock import VirtualClock
from gradbed.hosts.agents.virtual.context import udp_datagrams
from gradbed.hosts.agents.virtual.launcher import VirtualLauncher
from tests.unit.hosts.star import Star, virtual_agents

ETHER_TYPE = 0x88B5
FRAME_BYTES = 60


class Script(AgentConfig):
    """Which of SCRIPTS an agent follows."""

    name: str


SCRIPTS: dict[str, Callable[[AgentContext], None]] = {}


def follow(context: AgentContext, config: Script) -> None:
    """The agent."""
    SCRIPTS[config.name](context)


def frame(receiver: str, ether_type: int = ETHER_TYPE, number: int = 0) -> np.ndarray:
    """One frame to the host "hN", shape (1, 60)."""
    content = bytes([2, 0, 0, 0, 0, int(receiver[1:]), 2, 0, 0, 0, 0, 99]) + ether_type.to_bytes(2, "big")
    return np.frombuffer((content + bytes([number])).ljust(FRAME_BYTES, b"\0"), np.uint8)[None]


def agents_of(
    scripts: dict[str, Callable[[AgentContext], None]], hosts: int = 4, **options: Any
) -> tuple[Agents, VirtualClock]:
    """An agent in each host that has a script, named like it; they are started, not awaited. Links take 100 us."""
    SCRIPTS.update(scripts)
    agents, clock = virtual_agents(Star(hosts), **options)
    agents.launch([spec(host) for host in scripts])
    return agents, clock


def spec(host: str, **fields: Any) -> AgentSpec:
    return AgentSpec(host, f"{__name__}:follow", host, Script(name=host), **fields)


def test_time_stands_still_but_for_waiting() -> None:
    def h1(context: AgentContext) -> None:
        assert context.now_us() == 0
        context.wait(1500)
        assert context.now_us() == 1500
        context.wait(700)  # over
        context.emit("slept", us=context.now_us())

    agents, clock = agents_of({"h1": h1})
    assert agents.event()["us"] == 1500
    # What was due before is due now.
    done: list[int] = []
    clock.at(0, lambda: done.append(clock.now_ns))
    clock.step()
    assert done == [1_500_000]


def test_a_frame_ends_a_wait_when_it_arrives() -> None:
    def h1(context: AgentContext) -> None:
        with context.open(ether_type=ETHER_TYPE) as interface:
            context.wait(1000)
            interface.send(np.concatenate([frame("h2", number=5), frame("h2", number=6)]))

    def h2(context: AgentContext) -> None:
        with context.open(ether_type=ETHER_TYPE) as interface:
            context.wait()
            buffer, lengths = interface.receive()
            context.emit("got", us=context.now_us(), numbers=buffer[:2, 14].tolist(), lengths=lengths.tolist())
            assert interface.receive()[1].tolist() == []

    agents, _ = agents_of({"h1": h1, "h2": h2})
    got = agents.event("got")
    assert (got["us"], got["numbers"], got["lengths"]) == (1200, [5, 6], [60, 60])
    with pytest.raises(UserError, match="without any agent"):
        agents.event()


def test_a_wait_on_several_interfaces_ends_with_either() -> None:
    """One host with two NICs, each with an agent's interface, and one NIC with two: each gets its own."""

    def relay(context: AgentContext) -> None:
        with (
            context.open(ether_type=ETHER_TYPE) as left,
            context.open(ether_type=ETHER_TYPE + 1) as other,
            context.open(interface=1) as right,
        ):
            found = []
            while len(found) < 4:
                context.wait()
                for name, interface in (("left", left), ("other", other), ("right", right)):
                    buffer, lengths = interface.receive()
                    found += [(name, context.now_us(), int(number)) for number in buffer[: len(lengths), 14]]
            context.emit("found", found=found)

    def h3(context: AgentContext) -> None:
        with context.open() as interface:
            for number, (receiver, ether_type) in enumerate(
                [("h1", ETHER_TYPE), ("h2", ETHER_TYPE), ("h1", ETHER_TYPE + 1), ("h1", 0x0800), ("h2", 0x0800)]
            ):
                interface.send(frame(receiver, ether_type, number))
                context.wait(context.now_us() + 10)

    network = Star(3)
    clock = VirtualClock(network)
    launcher = VirtualLauncher(clock, network.nics)
    SCRIPTS.update(relay=relay, h3=h3)
    for name, interfaces in (("relay", ("h1-eth0", "h2-eth0")), ("h3", ("h3-eth0",))):
        launcher.send(
            "start", agent=f"{__name__}:follow", name=name, job=1, interfaces=interfaces, config={"name": name}
        )
    events = iter(launcher.event, None)
    found = next(event["found"] for event in events if event["event"] == "found")
    assert found == [
        ["left", 200, 0],
        ["right", 210, 1],
        ["other", 220, 2],
        ["right", 240, 4],
    ]


def test_a_wait_that_a_frame_ended_ends_no_later_one() -> None:
    """Nor does the frame of a wait that is over end a computation."""

    def h1(context: AgentContext) -> None:
        with context.open() as interface:
            times = []
            interface.send(frame("h1"))
            context.wait(1000)
            times.append(context.now_us())
            interface.receive()
            interface.send(frame("h1"))
            context.compute(lambda: None)
            times.append(context.now_us())
            context.wait()
            times.append(context.now_us())
            interface.receive()
            context.wait(5000)
            context.emit("times", us=[*times, context.now_us()])

    agents, _ = agents_of({"h1": h1}, compute_us=lambda job, name: 3000)
    assert agents.event("times")["us"] == [200, 3200, 3200, 5000]


def test_agents_that_something_reaches_at_one_moment_act_in_the_order_in_which_it_was_caused() -> None:
    order: list[str] = []

    def sends(context: AgentContext) -> None:
        with context.open() as interface:
            interface.send(np.concatenate([frame("h3"), frame("h1"), frame("h2")]))

    def receives(context: AgentContext) -> None:
        with context.open() as interface:
            context.wait()
            assert len(interface.receive()[1]) == 1
            order.append(context.name)

    _, clock = agents_of({"h1": receives, "h2": receives, "h3": receives, "h4": sends})
    while clock.step():
        pass
    assert order == ["h3", "h1", "h2"]


def test_an_interface_opened_beside_another_gets_nothing_of_before() -> None:
    def h1(context: AgentContext) -> None:
        with context.open() as first:
            first.send(frame("h1", number=7))
            context.wait(1000)
            with context.open() as second:
                for name, interface in (("first", first), ("second", second)):
                    buffer, lengths = interface.receive()
                    context.emit(name, numbers=buffer[: len(lengths), 14].tolist())

    agents, _ = agents_of({"h1": h1})
    assert [agents.event(name)["numbers"] for name in ("first", "second")] == [[7], []]


def test_what_came_before_an_interface_was_opened_is_not_received() -> None:
    def h1(context: AgentContext) -> None:
        with context.open() as interface:
            interface.send(frame("h2", number=1))
            context.wait(1000)
            interface.send(frame("h2", number=2))

    def h2(context: AgentContext) -> None:
        context.wait(900)
        with context.open() as interface:
            context.wait()
            buffer, lengths = interface.receive()
            context.emit("got", numbers=buffer[: len(lengths), 14].tolist())

    agents, _ = agents_of({"h1": h1, "h2": h2})
    assert agents.event("got")["numbers"] == [2]


def test_begin_and_stop_are_read_where_an_agent_waits() -> None:
    def h1(context: AgentContext) -> None:
        context.emit("ready")
        assert context.wait_for_begin()
        context.compute(lambda: None)
        assert not context.stopped  # told, but it has not waited since
        context.wait()
        context.emit("final", statistics={"stopped": context.stopped, "us": context.now_us()})

    agents, clock = agents_of({"h1": h1}, compute_us=lambda job, name: 3000)
    agents.begin()
    agents.event("ready")
    clock.step()
    assert agents.stop() == {(1, "h1"): {"stopped": True, "us": 3000}}


def test_stop_goes_by_rank() -> None:
    order: list[tuple[str, int]] = []

    def script(name: str) -> Callable[[AgentContext], None]:
        def follow(context: AgentContext) -> None:
            while not context.stopped:
                context.wait()
            context.wait(context.now_us() + 10)
            order.append((name, context.now_us()))

        return follow

    SCRIPTS.update({name: script(name) for name in ("h1", "h2", "h3")})
    agents, _ = virtual_agents(Star(3))
    agents.launch([spec("h1", stop_rank=2), spec("h2", stop_rank=1), spec("h3", stop_rank=1)])
    assert agents.stop() == {}
    assert order == [("h2", 10), ("h3", 10), ("h1", 20)]


def test_an_agent_that_does_not_stop_is_ended() -> None:
    def h1(context: AgentContext) -> None:
        while True:
            context.wait()

    agents, clock = agents_of({"h1": h1})
    with pytest.raises(UserError, match="h1: does not end when it is stopped"):
        agents.stop()
    assert clock.now_ns == 5_000_000_000


@pytest.mark.parametrize("starts", [True, False], ids=["in the middle", "before it lived"])
def test_a_killed_agent_says_nothing_more_and_its_interfaces_are_closed(starts: bool) -> None:
    said: list[str] = []

    def h1(context: AgentContext) -> None:
        with context.open() as interface:
            try:
                said.append("born")
                context.wait()
            except Exception:
                said.append("caught")
            finally:
                with pytest.raises(UserError, match="was closed"):
                    interface.send(frame("h2"))

    agents, clock = agents_of({"h1": h1})
    if starts:
        clock.step()
    agents.kill(1, "h1")
    assert said == ["born"] * starts
    with pytest.raises(UserError, match="there is no agent h1 of job 1 to be killed"):
        agents.kill(1, "h1")
    agents.launch([spec("h1")])
    clock.step()
    assert said == ["born"] * (1 + starts)


def test_when_all_wait_and_nothing_comes_one_line_says_who() -> None:
    def waits(context: AgentContext) -> None:
        with context.open():
            context.wait()

    def waits_to_begin(context: AgentContext) -> None:
        context.wait(250)
        context.wait_for_begin()

    agents, _ = agents_of({"h1": waits, "h2": waits_to_begin})
    expected = r"^nothing can happen any more: at 0.000250 s, h1 waits for frames, h2 waits for begin$"
    with pytest.raises(UserError, match=expected):
        agents.event()


def test_an_agent_that_lets_no_time_pass_is_ended_with_one_line() -> None:
    def h1(context: AgentContext) -> None:
        while True:
            context.wait(0)

    agents, _ = agents_of({"h1": h1})
    with pytest.raises(UserError, match="h1: RuntimeError: waited 100000 times for what is over"):
        agents.event()


def test_an_agent_for_ever_at_nothing_ends_after_an_hour() -> None:
    def h1(context: AgentContext) -> None:
        while True:
            context.wait(context.now_us() + 1_000_000_000)

    agents, _ = agents_of({"h1": h1})
    with pytest.raises(UserError, match=r"no agent has said anything for 3600 s: at 4000.000000 s, h1 waits"):
        agents.event()


def test_errors_are_one_line_and_names_are_checked() -> None:
    def h1(context: AgentContext) -> None:
        raise ValueError("bad\nluck")

    def h2(context: AgentContext) -> None:
        context.require_kernel("TCP")

    for scripts, expected in (
        ({"h1": h1}, r"^h1: ValueError: bad luck \(test_virtual_context.py:\d+\)$"),
        ({"h2": h2}, "^h2: TCP needs the real clock: use --clock real$"),
        ({"h3": h1}, "^launcher: there is no interface h3-eth0$"),
    ):
        agents, _ = agents_of(scripts, hosts=2)
        with pytest.raises(UserError, match=expected):
            agents.event()
    agents, _ = agents_of({"h1": lambda context: context.wait()})
    agents.launch([spec("h1")])
    with pytest.raises(UserError, match="job 1 has an agent h1 already"):
        agents.event()


PORT = 0x4742
OTHER_PORT = PORT + 1
IP_LAYERS = [
    IP(),
    IP(options=[IPOption_NOP()] * 8),
    IP(options=[IPOption_NOP()] * 8, flags="DF"),
    IP(flags="MF"),
    IP(frag=3),
]


@example([bytes(Ether() / IP() / UDP(dport=PORT))] * 2, 37)
@given(
    st.lists(
        st.builds(
            lambda ip, inner, length: bytes(Ether() / ip / inner / Raw(b"x" * length)),
            st.sampled_from(IP_LAYERS),
            st.sampled_from([UDP(dport=PORT), UDP(dport=OTHER_PORT), UDP(sport=PORT, dport=9), TCP(dport=PORT)]),
            st.integers(0, 60),
        )
        | st.sampled_from([bytes(Ether() / ARP()), bytes(Ether(type=0x88B5)), b""]),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 80),
)
def test_datagrams_are_told_from_the_rest_as_scapy_does(frames: list[bytes], cut: int) -> None:
    """Also in frames that are cut, over a buffer with the rest of older frames."""
    frames = [each[:cut] if number % 2 else each for number, each in enumerate(frames)]
    buffer = np.tile(np.frombuffer(bytes(Ether() / IP() / UDP(dport=PORT)).ljust(2048, b"\0"), np.uint8), (9, 1))
    for row, each in zip(buffer, frames, strict=False):
        row[: len(each)] = np.frombuffer(each, np.uint8)
    lengths = np.array([len(each) for each in frames], np.uint32)
    assert udp_datagrams(buffer[: len(frames)], lengths, PORT).tolist() == [is_wanted(each) for each in frames]


def is_wanted(content: bytes) -> bool:
    if len(content) < 24:
        return False
    packet: Packet = Ether(content.ljust(128, b"\0"))  # Scapy takes no cut headers
    if IP not in packet or UDP not in packet:
        return False
    ip = packet[IP]
    header = 14 + 4 * ip.ihl
    return len(content) >= header + 4 and ip.frag == 0 and not ip.flags.MF and packet[UDP].dport == PORT


def test_frames_leave_at_their_times_and_tell_them() -> None:
    arrived: list[tuple[int, int]] = []

    def sender(context: AgentContext) -> None:
        with context.open(ether_type=ETHER_TYPE) as interface:
            frames = np.concatenate([frame("h2", number=number) for number in range(3)])
            times_ns = context.now_ns() + np.array([100_000, 200_000, 400_000])
            interface.send_at(frames, times_ns, np.array([60, 40, 50], np.uint32), stamp=True)
            context.wait(context.now_us() + 1000)

    def receiver(context: AgentContext) -> None:
        with context.open(ether_type=ETHER_TYPE) as interface:
            while len(arrived) < 3:
                context.wait()
                buffer, lengths = interface.receive()
                for row, length, time_ns in zip(buffer, lengths, interface.times_ns, strict=True):
                    arrived.append((int.from_bytes(row[length - 8 : length].tobytes(), "big"), int(time_ns)))

    _, clock = agents_of({"h1": sender, "h2": receiver})
    while clock.step():
        pass
    # Two links of 100 us.
    assert arrived == [(sent_ns, sent_ns + 200_000) for sent_ns in (100_000, 200_000, 400_000)]


def test_a_quiet_interface_does_not_end_a_wait() -> None:
    looked: list[tuple[int, int]] = []

    def sender(context: AgentContext) -> None:
        with context.open(ether_type=ETHER_TYPE) as interface:
            interface.send(frame("h2"))

    def receiver(context: AgentContext) -> None:
        with context.open(ether_type=ETHER_TYPE, quiet=True) as interface:
            context.wait(5000)
            looked.append((context.now_us(), len(interface.receive()[1])))

    _, clock = agents_of({"h1": sender, "h2": receiver})
    while clock.step():
        pass
    assert looked == [(5000, 1)]
