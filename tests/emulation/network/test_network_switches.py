"""Emulated networks with their real switches: the switch process, and BMv2 where it is installed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.common.namespaces import in_network_namespace
from gradbed.common.sandbox import run_in_sandbox
from gradbed.emulation.network import EmulatedNetwork
from gradbed.topo.addressing import host_port_mac, make_host, make_switch
from gradbed.topo.generators import fat_tree, leaf_spine
from gradbed.topo.graph import Endpoint, Link, Topology
from gradbed.topo.link import LinkModel
from gradbed.topo.selectors import select
from tests.emulation.programs import PATIENCE_S, descendants, eventually, started
from tests.emulation.sandboxed import in_sandbox

pytestmark = [pytest.mark.thorough, pytest.mark.root]


def running(word: str) -> bool:
    return any(word.encode() in path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline"))


@in_sandbox
@pytest.mark.parametrize("links", ["memory", "veth"])
def test_a_fat_tree_of_p4_routers(links: str, tmp_path: Path) -> None:
    from tests.emulation.routers import route_everything

    topology = fat_tree(4)
    with EmulatedNetwork(topology, links=links, run_dir=tmp_path, seed=5) as net:
        route_everything(net)
        for near, far, ip in (("h1", "h2", "10.0.0.3"), ("h1", "h3", "10.0.1.2"), ("h3", "h16", "10.3.1.3")):
            assert "3 received" in net.mininet[near].cmd(f"ping -c 3 -i 0.05 -W 5 {ip}"), f"{near} to {far}"
        assert net.backend.quiesce()
        rows = {(row.from_node, row.to_node): row for row in net.backend.link_statistics()}
        assert set(rows) == {(a, b) for link in topology.links for a, b in _directions(link.a.node, link.b.node)}
        # 3 echoes each way between h1 and h2, and h1 and h3; 98 bytes each with its Ethernet header.
        assert (rows["h1", "e1"].packets, rows["h1", "e1"].bytes) == (6, 6 * 98)
        assert (rows["e1", "h1"].packets, rows["e1", "h1"].bytes) == (6, 6 * 98)
        assert (rows["h2", "e1"].packets, rows["h3", "e2"].packets, rows["h16", "e8"].packets) == (3, 6, 3)
        into_cores = [row.packets for (_, to), row in rows.items() if to.startswith("c")]
        out_of_cores = [row.packets for (from_, _), row in rows.items() if from_.startswith("c")]
        assert sum(into_cores) == sum(out_of_cores) == 6
        assert not any(row.losses or row.duplicates or row.queue_drops for row in rows.values())
    assert os.listdir("/sys/class/net") == ["lo"]
    assert not running("gradbed.switch.switch_process")
    assert (tmp_path / "switches.json").is_file()


def _directions(a: str, b: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (a, b), (b, a)


@in_sandbox
@pytest.mark.parametrize("links", ["memory", "veth"])
def test_loss_and_duplication_are_those_asked_for_and_the_same_each_time(links: str) -> None:
    from tests.emulation.routers import route_everything

    topology = leaf_spine(2, 1, 1, LinkModel(loss=0.2, duplicate=0.2))
    seen = []
    for _ in range(2):
        with EmulatedNetwork(topology, links=links, seed=5) as net:
            route_everything(net)
            frame = routed_frame(topology, "h1", "h2")
            sender = in_network_namespace(net.host_pid("h1"), sender_socket)
            for _ in range(500):
                sender.send(frame)
                time.sleep(0.0002)
            assert net.backend.quiesce()
            rows = {(row.from_node, row.to_node): row for row in net.backend.link_statistics()}
            path = [rows["h1", "l1"], rows["l1", "s1"], rows["s1", "l2"], rows["l2", "h2"]]
            offered = 500
            for row in path:
                assert row.offered == offered
                assert 0.1 * offered < row.losses < 0.3 * offered
                assert 0.1 * offered < row.duplicates < 0.3 * offered
                offered = row.packets
            seen.append([(row.packets, row.losses, row.duplicates) for row in path])
    assert seen[0] == seen[1]


def sender_socket() -> socket.socket:
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sender.bind(("h1-eth0", 0))
    return sender


def routed_frame(topology: Topology, source: str, target: str) -> bytes:
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether

    a, b = topology.host(source), topology.host(target)
    return bytes(Ether(src=a.mac, dst=a.gateway_mac) / IP(src=a.ip, dst=b.ip) / UDP(dport=9) / bytes(100))


def hold_a_network() -> None:
    def function() -> int:
        with EmulatedNetwork(fat_tree(2)) as net:
            print(net.run_dir, flush=True)
            time.sleep(600)
        return 0

    sys.exit(run_in_sandbox(function))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["SIGKILL", "Ctrl-C"])
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_nothing_is_left_of_a_network_whose_run_is_ended(number: signal.Signals) -> None:
    with started(hold_a_network) as process:
        assert process.stdout is not None
        run_dir = Path(process.stdout.readline().strip())
        inside = descendants(process.pid)
        # The sandbox's three, the switch process, two hosts' shells.
        assert len(inside) == 6
        assert len({os.readlink(f"/proc/{pid}/ns/net") for pid in inside}) == 3
        os.kill(process.pid, number)
        assert process.wait(PATIENCE_S) == (-signal.SIGKILL if number == signal.SIGKILL else 128 + signal.SIGINT)
        assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in inside))
        if number == signal.SIGKILL:
            shutil.rmtree(run_dir)  # files outlive it: a run keeps its logs
        assert not run_dir.exists()


@in_sandbox
def test_bmv2_routers_on_links_that_change(tmp_path: Path) -> None:
    """Their links are gradbed's: all that a link can do, counted, whatever the kernel has."""
    from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc
    from tests.emulation.routers import route_everything

    try:
        find_simple_switch_grpc()
    except UserError as error:
        pytest.skip(str(error))
    topology = leaf_spine(2, 1, 1, LinkModel(rate_bps=10_000_000, delay_us=5_000))
    with EmulatedNetwork(topology, switch_kind="bmv2") as net:
        route_everything(net)
        ping = net.mininet["h1"].cmd("ping -c 3 -i 0.1 -W 5 10.0.1.2")
        assert "3 received" in ping
        least_ms = float(ping.rpartition("= ")[2].partition("/")[0])
        assert least_ms >= 2 * 4 * 5
        assert net.backend.quiesce()
        rows = {(row.from_node, row.to_node): row for row in net.backend.link_statistics()}
        assert set(rows) == {(a, b) for link in topology.links for a, b in _directions(link.a.node, link.b.node)}
        for row in rows.values():
            assert (row.packets, row.bytes, row.queue_drops) == (3, 3 * 98, 0)
        net.backend.change_link("l1", "s1", duplicate=0.99, delay_us=0)
        net.backend.start_capture(tmp_path / "l1-s1.pcapng", select(topology, "l1-s1"))
        assert "DUP!" in net.mininet["h1"].cmd("ping -c 2 -i 0.2 -W 5 10.0.1.2")
        assert net.backend.stop_capture(tmp_path / "l1-s1.pcapng") >= 4
        net.backend.change_link("l1", "s1", duplicate=0.0)
        net.backend.set_link_up("l2", "s1", False)
        assert "0 received" in net.mininet["h1"].cmd("ping -c 1 -W 1 10.0.1.2")
        net.backend.set_link_up("l2", "s1", True)
        assert "2 received" in net.mininet["h1"].cmd("ping -c 2 -i 0.2 -W 5 10.0.1.2")
        (lost,) = (row for row in net.backend.link_statistics() if (row.from_node, row.to_node) == ("s1", "l2"))
        assert lost.losses == 1
    assert os.listdir("/sys/class/net") == ["lo"]
    assert not running("simple_switch_grpc")


@in_sandbox
def test_a_host_with_two_ports(tmp_path: Path) -> None:
    switches = tuple(make_switch(f"p{number}", number, "plane") for number in (1, 2))
    hosts = tuple(make_host(f"h{index + 1}", "10.0.0", index, switches[0]) for index in range(2))
    links = tuple(
        Link(a=Endpoint(node=host.name, port=port), b=Endpoint(node=switch.name, port=index))
        for index, host in enumerate(hosts, 1)
        for port, switch in enumerate(switches)
    )
    between = Link(a=Endpoint(node="p1", port=9), b=Endpoint(node="p2", port=9))
    topology = Topology(name="two planes", hosts=hosts, switches=switches, links=(*links, between))
    with EmulatedNetwork(topology, run_dir=tmp_path) as net:
        assert net.host_interfaces("h2") == ("h2-eth0", "h2-eth1")
        for port in (0, 1):
            shown = net.mininet["h2"].cmd(
                f"cat /sys/class/net/h2-eth{port}/address /sys/class/net/h2-eth{port}/operstate"
            )
            assert shown.split() == [host_port_mac(hosts[1], port), "up"]
        assert "10.0.0.3" in net.mininet["h2"].cmd("ip -4 addr show h2-eth0")
        assert "inet" not in net.mininet["h2"].cmd("ip -4 addr show h2-eth1")
