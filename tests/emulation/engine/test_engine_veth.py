"""The data plane's ports on real interfaces: veth pairs between namespaces of the test's own."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.codegen import build_program
from gradbed.switch.engine import Engine, LinkStatistics
from gradbed.topo.link import LinkModel
from tests.emulation.namespaces import Namespace
from tests.unit.compiler.programs import compile_text, control
from tests.unit.engine.instructed import Egress, instructed_program, pass_through, read_report

pytestmark = pytest.mark.root

ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
PERFECT = LinkModel()


def wait_until_up(namespace: Namespace, interface: str) -> None:
    """An interface drops what it is to send until the kernel has seen to its carrier, which on a busy machine takes a
    while."""
    deadline = time.monotonic() + 5
    while "state UP" not in namespace.run("ip", "link", "show", interface) and time.monotonic() < deadline:
        time.sleep(0.001)


class Bench:
    """A namespace with the switch's ends s1 and s2, two with a host's end each, all called eth0."""

    def __init__(self, switch: Namespace, hosts: list[Namespace], mtu: int) -> None:
        self.switch = switch
        self.hosts = hosts
        for number, host in enumerate(hosts, 1):
            switch.run("ip", "link", "add", f"s{number}", "mtu", str(mtu), "type", "veth", "peer", "name", "eth0",
                       "mtu", str(mtu), "netns", str(host.pid))  # fmt: skip
            switch.run("ip", "link", "set", f"s{number}", "up")
            host.run("ip", "link", "set", "eth0", "up")
            host.run("ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off")
            wait_until_up(switch, f"s{number}")
            wait_until_up(host, "eth0")
        self.sockets = [host.call(raw_socket) for host in hosts]

    def add_ports(self, engine: Engine, link: LinkModel = PERFECT, seed: int = 0) -> None:
        """Interfaces s1 and s2 become ports 1 and 2 of switch 1."""
        self.switch.call(lambda: [engine.add_interface(1, port, f"s{port}", link, seed) for port in (1, 2)])

    def receive(self, host: int, count: int) -> list[bytes]:
        """`count` frames; less than that if the next one takes seconds."""
        frames = []
        try:
            while len(frames) < count:
                frames.append(self.sockets[host - 1].recv(65536))
        except TimeoutError:
            pass
        return frames


def raw_socket() -> socket.socket:
    """Of the calling namespace's eth0; frames that it sends itself are not received."""
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 23)
    raw.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
    raw.bind(("eth0", ETH_P_ALL))
    raw.settimeout(15)
    return raw


@contextmanager
def make_bench(mtu: int = 1500) -> Iterator[Bench]:
    namespaces: list[Namespace] = []
    sockets: list[socket.socket] = []
    try:
        for _ in range(3):
            namespaces.append(Namespace())
        bench = Bench(namespaces[0], namespaces[1:], mtu)
        sockets = bench.sockets
        yield bench
    finally:
        for raw in sockets:
            raw.close()
        for namespace in namespaces:
            namespace.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    with make_bench() as bench:
        yield bench


@pytest.fixture
def engine() -> Iterator[Engine]:
    """Switch 1 with the instructed program, without ports, started."""
    with Engine() as engine:
        engine.add_switch(1, "s1").load(instructed_program())
        engine.start()
        yield engine
        assert engine.quiesce(10)
        engine.drain()
        assert engine.statistics().live_packets == 0


def statistics(engine: Engine) -> dict[tuple[int, str], LinkStatistics]:
    return {(row.port, row.direction): row for row in engine.link_statistics()}


def ethernet(number: int, length: int = 60) -> bytes:
    """What is left when the switch has taken off its instruction: a valid frame."""
    return (b"\x02" * 12 + b"\x88\xb5" + number.to_bytes(2, "big")).ljust(length, b"p")


def test_frames_cross_in_both_directions_byte_for_byte(bench: Bench, engine: Engine) -> None:
    bench.add_ports(engine)
    there = [ethernet(number, 14 + number * 13 % 1470) for number in range(300)]
    back = [ethernet(number, 60 + number) for number in range(300)]
    for a, b in zip(there, back, strict=True):
        bench.sockets[0].send(pass_through(2) + a)
        bench.sockets[1].send(pass_through(1) + b)
    assert bench.receive(2, 300) == there
    assert bench.receive(1, 300) == back
    assert engine.quiesce(5)
    rows = statistics(engine)
    # What the switch sends is not received again.
    assert {key: row.packets for key, row in rows.items()} == dict.fromkeys(rows, 300)
    assert rows[2, "out"].bytes == sum(map(len, there))
    assert rows[1, "in"].bytes == sum(map(len, there)) + 300 * 8
    for row in engine.interface_statistics():
        assert (row.received, row.sent, row.socket_drops, row.send_errors) == (300, 300, 0, 0)


def test_a_burst_fits_into_the_socket(bench: Bench, engine: Engine) -> None:
    bench.add_ports(engine)
    engine.stop()
    for number in range(1500):
        bench.sockets[0].send(pass_through(2) + ethernet(number, 200))
    assert not engine.quiesce(0)
    engine.start()
    assert [frame[14:16] for frame in bench.receive(2, 1500)] == [n.to_bytes(2, "big") for n in range(1500)]
    assert engine.interface_statistics()[0].socket_drops == 0


def test_a_socket_that_overflows_counts_what_the_kernel_drops(bench: Bench, engine: Engine) -> None:
    bench.add_ports(engine)
    engine.stop()
    for number in range(12_000):
        bench.sockets[0].send(pass_through(255) + ethernet(number % 1000, 1000))
    engine.start()
    assert engine.quiesce(10)
    row = engine.interface_statistics()[0]
    assert row.socket_drops > 0
    assert row.received + row.socket_drops == 12_000


@pytest.mark.parametrize("tags", [b"\x81\x00\x60\x2a", b"\x88\xa8\x00\x07", b"\x88\xa8\x00\x07\x81\x00\x00\x08"])
def test_vlan_tags_are_part_of_the_frame(bench: Bench, engine: Engine, tags: bytes) -> None:
    bench.add_ports(engine)
    engine.add_open_port(1, 9)
    # The kernel takes the tag from where a frame has it, so the instruction has to look like two addresses.
    instruction = pass_through(9, egress=Egress.KEEP)
    frame = instruction + b"\x02" * 4 + tags + b"\x88\xb5" + b"payload".ljust(60, b".")
    bench.sockets[0].send(frame)
    frames: list[tuple[int, int, bytes]] = []
    deadline = time.monotonic() + 15
    while not frames and time.monotonic() < deadline:
        frames = engine.drain()
    assert frames == [(1, 9, frame)]
    assert statistics(engine)[1, "in"].bytes == len(frame)


def test_jumbo_frames_with_a_large_mtu(engine: Engine) -> None:
    with make_bench(mtu=9000) as bench:
        bench.add_ports(engine)
        frame = ethernet(1, 9000)
        bench.sockets[0].send(pass_through(2) + frame)
        assert bench.receive(2, 1) == [frame]


def test_an_mtu_that_is_raised_later(bench: Bench, engine: Engine) -> None:
    bench.add_ports(engine)
    for number in (1, 2):
        bench.switch.run("ip", "link", "set", f"s{number}", "mtu", "9000")
        bench.hosts[number - 1].run("ip", "link", "set", "eth0", "mtu", "9000")
    # The first one shows that buffers are too small.
    for number in range(3):
        bench.sockets[0].send(pass_through(2) + ethernet(number, 8000))
        assert engine.quiesce(5)
    assert bench.receive(2, 2) == [ethernet(1, 8000), ethernet(2, 8000)]
    assert engine.interface_statistics()[0].oversize_drops == 1


def test_a_frame_longer_than_the_mtu_is_refused_and_counted(bench: Bench, engine: Engine) -> None:
    bench.add_ports(engine)
    bench.sockets[0].send(pass_through(2, egress=Egress.GROW, egress_argument=2) + ethernet(1))
    bench.sockets[0].send(pass_through(2) + ethernet(2))
    assert bench.receive(2, 1) == [ethernet(2)]
    assert engine.quiesce(5)
    assert engine.interface_statistics()[1].send_errors == 1
    row = statistics(engine)[2, "out"]
    assert (row.packets, row.queue_drops, row.offered) == (1, 1, 2)


def test_an_interface_may_go_down_and_come_back(bench: Bench, engine: Engine) -> None:
    bench.add_ports(engine)
    deadline = time.monotonic() + 5
    bench.switch.run("ip", "link", "set", "s2", "down")
    bench.sockets[0].send(pass_through(2) + ethernet(1))
    while engine.interface_statistics()[1].send_errors == 0 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert engine.interface_statistics()[1].send_errors == 1
    bench.switch.run("ip", "link", "set", "s2", "up")
    bench.sockets[0].send(pass_through(2) + ethernet(2))
    assert bench.receive(2, 1) == [ethernet(2)]
    wait_until_up(bench.hosts[1], "eth0")
    bench.sockets[1].send(pass_through(1) + ethernet(3))
    assert bench.receive(1, 1) == [ethernet(3)]


def test_an_interface_may_disappear(bench: Bench, engine: Engine) -> None:
    bench.add_ports(engine)
    bench.switch.run("ip", "link", "delete", "s2")
    bench.sockets[0].send(pass_through(2) + ethernet(1))
    bench.sockets[0].send(pass_through(1) + ethernet(2))
    assert bench.receive(1, 1) == [ethernet(2)]
    assert engine.quiesce(5)
    assert engine.interface_statistics()[1].send_errors == 1


def test_an_idle_engine_sleeps(bench: Bench, engine: Engine) -> None:
    """Also with an interface that has gone down, whose socket reports an error."""
    bench.add_ports(engine)
    bench.switch.run("ip", "link", "set", "s1", "down")
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.25


def has_htb() -> bool:
    command = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_before_a_slow_interface_packets_queue_in_the_switch(bench: Bench, engine: Engine) -> None:
    """Where programs see them: enq_qdepth. Only what the socket's buffer holds waits in the kernel."""
    if not has_htb():
        pytest.skip("this kernel has no HTB")
    bench.switch.run("tc", "qdisc", "add", "dev", "s2", "root", "handle", "1:", "htb", "default", "1")
    bench.switch.run("tc", "class", "add", "dev", "s2", "parent", "1:", "classid", "1:1", "htb", "rate", "20mbit")
    bench.add_ports(engine)
    for number in range(500):
        bench.sockets[0].send(pass_through(2, egress=Egress.REPORT) + ethernet(number, 1000))
    reports = [read_report(frame) for frame in bench.receive(2, 500)]
    assert [report.payload for report in reports] == [ethernet(number, 1000) for number in range(500)]
    assert max(report.enq_qdepth for report in reports) > 100
    assert reports[-1].deq_timedelta > 1000
    assert engine.interface_statistics()[1].send_errors == 0


def test_the_link_model_keeps_the_books_of_an_interface(bench: Bench, engine: Engine) -> None:
    lossy = LinkModel(rate_bps=200_000_000, delay_us=100, loss=0.1, duplicate=0.1, queue_packets=5000)
    bench.add_ports(engine, lossy, seed=3)
    for number in range(1000):
        bench.sockets[0].send(pass_through(2) + ethernet(number))
    assert engine.quiesce(10)
    rows = statistics(engine)
    assert rows[1, "in"].offered == 1000
    assert rows[1, "in"].losses > 50
    assert rows[1, "in"].duplicates > 50
    assert rows[2, "out"].offered == rows[1, "in"].packets
    assert len(bench.receive(2, rows[2, "out"].packets)) == rows[2, "out"].packets


def test_ping_and_tcp_through_a_compiled_program(bench: Bench) -> None:
    program = build_program(compile_text(control("std.egress_spec = std.ingress_port ^ 3;")).json)
    for number, host in enumerate(bench.hosts, 1):
        host.run("ip", "address", "add", f"10.0.0.{number}/24", "dev", "eth0")
    with Engine() as engine:
        engine.add_switch(1).load(program)
        bench.add_ports(engine, LinkModel(delay_us=500))
        engine.start()
        answer = bench.hosts[0].run("ping", "-c", "3", "-i", "0.01", "-W", "2", "10.0.0.2")
        assert " 0% packet loss" in answer
        # Four links of half a millisecond each.
        assert float(answer.split("rtt min/avg/max/mdev = ")[1].split("/")[0]) >= 2.0
        sent = os.urandom(300_000)
        server = bench.hosts[1].call(lambda: socket.create_server(("10.0.0.2", 5000)))
        client = bench.hosts[0].call(lambda: socket.create_connection(("10.0.0.2", 5000), timeout=10))
        with server, client:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(10)
                received = b""
                client.settimeout(10)
                for start in range(0, len(sent), 30_000):
                    client.sendall(sent[start : start + 30_000])
                    while len(received) < start + 30_000:
                        received += connection.recv(65536)
        assert received == sent


def test_without_the_right_to_open_an_interface(bench: Bench) -> None:
    with Engine(manual_clock=True) as engine:
        engine.add_switch(1, "s1")
        child = os.fork()
        if child == 0:
            os.setresuid(65534, 65534, 65534)
            try:
                engine.add_interface(1, 1, "lo", PERFECT, 0)
            except UserError as error:
                os._exit(0 if "needs root" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_unknown_interface_leaves_the_port_free(bench: Bench, engine: Engine) -> None:
    with pytest.raises(UserError, match="interface eth7: there is no such interface"):
        bench.switch.call(lambda: engine.add_interface(1, 1, "eth7", PERFECT, 0))
    bench.add_ports(engine)
    with pytest.raises(UserError, match="port 1 of switch s1 is in use"):
        bench.switch.call(lambda: engine.add_interface(1, 1, "s1", PERFECT, 0))
