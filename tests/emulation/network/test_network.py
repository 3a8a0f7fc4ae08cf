"""Hosts, links and Mininet's view of an emulated network; a Linux bridge plays the switch where any would do."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.common.namespaces import in_network_namespace
from gradbed.emulation.network import EmulatedNetwork
from gradbed.topo.generators import fat_tree, star
from gradbed.topo.graph import Topology
from tests.emulation.sandboxed import in_sandbox

pytestmark = pytest.mark.root

PATIENCE_S = 20.0
ETH_P_ALL = 3


class BridgedStar:
    """Switches of which the only one is a Linux bridge that is also the hosts' gateway."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology

    def check(self) -> None: ...

    def add_nodes(self, net: Any, run_dir: Path) -> None:
        from gradbed.emulation.nodes import EngineSwitch

        for switch in self.topology.switches:
            net.addSwitch(switch.name, cls=EngineSwitch, number=switch.number)

    def start(self, run_dir: Path) -> None:
        from pyroute2 import IPRoute

        (switch,) = self.topology.switches
        with IPRoute() as netlink:
            netlink.link("add", ifname="gateway", kind="bridge", address=switch.mac)
            (bridge,) = netlink.link_lookup(ifname="gateway")
            for neighbour, port in self.topology.neighbours(switch.name).items():
                (index,) = netlink.link_lookup(ifname=f"{switch.name}-eth{port}")
                netlink.link("set", index=index, master=bridge)
                assert self.topology.is_host(neighbour)
            netlink.addr("add", index=bridge, address=self.topology.hosts[0].gateway_ip, prefixlen=24)
            netlink.link("set", index=bridge, state="up")
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")

    def stop(self) -> None: ...


class NoSwitches(BridgedStar):
    """Only the nodes."""

    def start(self, run_dir: Path) -> None: ...


def network(topology: Topology, backend: type[BridgedStar] = NoSwitches, **options: Any) -> EmulatedNetwork:
    made = EmulatedNetwork(topology, **options)
    made._runners = (backend(topology),)
    return made


def listen(interface: str) -> socket.socket:
    # Bound with its protocol only now: changing the protocol of a socket costs the kernel a grace period.
    receiver = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    receiver.bind((interface, ETH_P_ALL))
    receiver.settimeout(PATIENCE_S)
    return receiver


def interfaces() -> list[str]:
    return sorted(os.listdir("/sys/class/net"))


def processes() -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def leftovers(temporary: Path) -> tuple[list[str], list[str], list[str]]:
    return interfaces(), sorted(processes()), os.listdir(temporary)


# Hosts and links.


@pytest.mark.thorough
@in_sandbox
def test_hosts_have_addresses_routes_and_silent_links() -> None:
    topology = star(3)
    with network(topology) as net:
        ears = [listen(f"s1-eth{port}") for port in (1, 2, 3)]
        ears += [
            in_network_namespace(net.host_pid(host.name), lambda host=host: listen(f"{host.name}-eth0"))
            for host in topology.hosts
        ]
        h2 = net.mininet["h2"]
        assert h2.pid == net.host_pid("h2")
        assert (h2.IP(), h2.MAC()) == ("10.0.0.3", "02:00:0a:00:00:03")
        assert "link/ether 02:00:0a:00:00:03" in h2.cmd("ip link show h2-eth0")
        assert "mtu 1500" in h2.cmd("ip link show h2-eth0")
        assert "inet 10.0.0.3/24" in h2.cmd("ip -4 address show h2-eth0")
        assert h2.cmd("ip -6 address") == ""
        assert h2.cmd("ip route").split("\r\n")[0].startswith("default via 10.0.0.1 dev h2-eth0")
        assert "via 10.0.0.1" in h2.cmd("ip route get 10.0.0.4"), "neighbours too are reached through the gateway"
        assert "10.0.0.1 dev h2-eth0 lladdr 02:01:00:00:00:01 PERMANENT" in h2.cmd("ip neigh")
        assert h2.cmd("ls /sys/class/net").split() == ["h2-eth0", "lo"]
        time.sleep(1.2)  # router solicitations and the like come within a second
        for ear in ears:
            ear.setblocking(False)
            with pytest.raises(BlockingIOError):
                ear.recv(2000)


@in_sandbox
def test_frames_pass_as_soon_as_it_is_up() -> None:
    topology = star(8)
    with network(topology) as net:
        for number in range(1, 9):
            near = listen(f"s1-eth{number}")
            far = in_network_namespace(net.host_pid(f"h{number}"), lambda number=number: listen(f"h{number}-eth0"))
            for sender, receiver in ((near, far), (far, near)):
                frame = bytes(12) + b"\x88\xb5" + os.urandom(1500)
                sender.send(frame)
                assert receiver.recv(2000) == frame


@in_sandbox
def test_a_switch_sees_tcp_as_on_a_wire() -> None:
    """No segments larger than the MTU, every checksum filled in: offloads are off."""
    from scapy.layers.inet import IP, TCP
    from scapy.layers.l2 import Ether

    with network(star(2), BridgedStar) as net:
        assert "1 received" in net.mininet["h1"].cmd("ping -c 1 -W 5 10.0.0.3")
        ear = listen("s1-eth1")
        payload = os.urandom(300_000)
        received = bytearray()

        def receive(server: socket.socket) -> None:
            connection, _ = server.accept()
            while piece := connection.recv(65536):
                received.extend(piece)

        server = in_network_namespace(net.host_pid("h2"), lambda: socket.create_server(("10.0.0.3", 5000)))
        receiver = threading.Thread(target=receive, args=[server])
        receiver.start()
        client = in_network_namespace(net.host_pid("h1"), lambda: socket.create_connection(("10.0.0.3", 5000)))
        client.sendall(payload)
        client.close()
        receiver.join(PATIENCE_S)
        assert bytes(received) == payload
        ear.setblocking(False)
        frames = []
        with contextlib.suppress(BlockingIOError):
            while True:
                frames.append(ear.recv(70_000))
        assert sum(len(frame) for frame in frames) > 40_000
        assert max(map(len, frames)) <= 1514
        for frame in frames[:200]:
            packet = Ether(frame)
            if TCP in packet:
                sum_ = packet[TCP].chksum
                del packet[TCP].chksum
                assert Ether(bytes(packet))[TCP].chksum == sum_, packet[IP].summary()


@in_sandbox
def test_links_of_the_kernel_between_switches() -> None:
    with network(fat_tree(4), links="veth"):
        assert len(interfaces()) == 1 + 16 + 2 * 32
        receiver, sender = listen("c1-eth2"), listen("a3-eth3")
        sender.send(bytes(60))
        assert receiver.recv(100) == bytes(60)
    assert interfaces() == ["lo"]


@in_sandbox
def test_switch_ports_in_memory_are_no_interfaces() -> None:
    with network(fat_tree(4)) as net:
        expected = ["lo", *(f"e{e}-eth{port}" for e in range(1, 9) for port in (1, 2))]
        assert interfaces() == sorted(expected)
        assert len(net.mininet.links) == 48


# Mininet's own commands.


@in_sandbox
def test_mininet_commands_work_on_it() -> None:
    from mininet import log
    from mininet.cli import CLI

    script = Path("/proc/self/fd/0")
    commands = (
        "nodes\nnet\nlinks\ndump\nports\nintfs\nh1 ip -4 -o address show dev h1-eth0\nc1 echo hello there\n"
        "link h1 e1 down\nh1 cat /sys/class/net/h1-eth0/flags\nlink h1 e1 up\nh1 cat /sys/class/net/h1-eth0/flags\n"
        "link c1 a1 down\nswitch c1 stop\nswitch c1 start\npy net['c1'].dpid\nwait\n"
    )
    read_end, write_end = os.pipe()
    os.write(write_end, commands.encode())
    os.close(write_end)
    os.dup2(read_end, 0)
    said = io.StringIO()
    log.lg.handlers[0].stream = said
    with network(fat_tree(2)) as net, redirect_stdout(said):
        CLI(net.mininet, script=str(script))
    text = said.getvalue()
    for line in (
        "a1 a2 c1 e1 e2 h1 h2",
        "c1 lo:  c1-eth1:a1-eth2 c1-eth2:a2-eth2",
        "h1-eth0<->e1-eth1 (OK OK)",
        "a1-eth2<->c1-eth1 (OK OK)",
        "<EmulatedHost h1: h1-eth0:10.0.0.2 pid=",
        "<EngineSwitch c1: lo:127.0.0.1,c1-eth1:None,c1-eth2:None pid=",
        "e1 lo:0 e1-eth1:1 e1-eth2:2",
        "inet 10.0.0.2/24",
        "hello there",
        "0x1002",
        "0x1003",
        "c1-eth1 is in the memory of the switch process and cannot be configured",
        "0000000000000001",
    ):
        assert line in text, f"{line!r} is not in\n{text}"
    for trouble in ("Traceback", "MISSING", "Unknown command"):
        assert trouble not in text


# Coming and going.


@in_sandbox
def test_nothing_is_left_and_it_can_come_again(tmp_path: Path) -> None:
    tempfile.tempdir = str(tmp_path)
    before = leftovers(tmp_path)
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        net = network(fat_tree(4))
        net.start()
        run_dir = net.run_dir
        assert run_dir.is_dir()
        with pytest.raises(RuntimeError, match="already"):
            net.start()
        net.stop()
        net.stop()
        assert not run_dir.exists()
        with pytest.raises(RuntimeError, match="not been started"):
            _ = net.mininet
        assert leftovers(tmp_path) == before
    with network(star(1), run_dir=tmp_path / "run") as net:
        assert net.run_dir == tmp_path / "run"
    assert (tmp_path / "run").is_dir(), "a given run_dir is the caller's"
    # Mininet keeps the slave end of every host's terminal open.
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 3


class Interruption:
    """Raises KeyboardInterrupt in place of the n-th call of a function."""

    def __init__(self, function: Callable[..., Any], call: int) -> None:
        self.function, self.left = function, call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self.function(*args, **kwargs)


@in_sandbox
def test_an_interrupted_start_leaves_nothing(tmp_path: Path) -> None:
    from mininet.node import Node

    from gradbed.emulation import veth

    tempfile.tempdir = str(tmp_path)
    before = leftovers(tmp_path)
    for place, name, call in (
        (Node, "read", 3),  # while the second host's shell is about to show its prompt
        (EmulatedNetwork, "_add_links", 1),
        (veth, "_bring_up", 3),
        (veth, "configure_host", 2),
        (NoSwitches, "start", 1),
    ):
        function = getattr(place, name)
        interruption = Interruption(function, call)
        setattr(place, name, lambda *a, interruption=interruption, **k: interruption(*a, **k))
        net = network(fat_tree(2))
        try:
            with pytest.raises(KeyboardInterrupt):
                net.start()
        finally:
            setattr(place, name, function)
        assert interruption.left == 0, name
        # A command that was running in a shell may need a moment to find out that the shell has gone.
        deadline = time.monotonic() + PATIENCE_S
        while leftovers(tmp_path) != before and time.monotonic() < deadline:
            time.sleep(0.02)
        assert leftovers(tmp_path) == before, name
        net.stop()
    with network(fat_tree(2)):
        pass


@in_sandbox
def test_an_interrupted_stop_can_be_repeated(tmp_path: Path) -> None:
    from gradbed.emulation.nodes import EmulatedHost

    tempfile.tempdir = str(tmp_path)
    before = leftovers(tmp_path)
    net = network(fat_tree(2))
    net.start()
    terminate = EmulatedHost.terminate
    interruption = Interruption(terminate, 2)
    EmulatedHost.terminate = lambda self: interruption(self)
    with pytest.raises(KeyboardInterrupt):
        net.stop()
    EmulatedHost.terminate = terminate
    net.stop()
    assert leftovers(tmp_path) == before


@in_sandbox
def test_two_networks_in_one_namespace_are_a_user_error() -> None:
    with network(star(2)) as first:
        with pytest.raises(UserError, match="s1-eth1 exists already"):
            network(star(2)).start()
        assert interfaces() == ["lo", "s1-eth1", "s1-eth2"]
        assert "2: h1-eth0" in first.mininet["h1"].cmd("ip link"), "the first one is not harmed"


def test_without_root_or_with_long_names(monkeypatch: pytest.MonkeyPatch) -> None:
    long = star(1)
    named = long.hosts[0].model_copy(update={"name": "parameterserver"})
    link = long.links[0].model_copy(update={"a": long.links[0].a.model_copy(update={"node": named.name})})
    topology = Topology(name="long", hosts=(named,), switches=long.switches, links=(link,))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(UserError, match="parameterserver-eth0 is too long for an interface"):
        EmulatedNetwork(topology).start()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match="an emulated network needs root: run with sudo"):
        EmulatedNetwork(long).start()


def test_without_bmv2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("GRADBED_BMV2", "/nowhere/simple_switch_grpc")
    with pytest.raises(UserError, match=r"/nowhere/simple_switch_grpc is not installed.*--switch bmv2"):
        EmulatedNetwork(star(1), switch_kind="bmv2").start()


@in_sandbox
def test_the_kernel_has_what_networks_of_it_need() -> None:
    from gradbed.common import kernel

    by_name = {feature.name: feature for feature in kernel.features()}
    assert kernel.has_veth() and by_name["veth"].present
    assert by_name["network namespaces"].present
    assert by_name["Mininet"].present
