"""Few programmable switches: the others are bridges of Open vSwitch, or P4 switches that only forward."""

from __future__ import annotations

import os
import shutil
import socket
import struct
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether

from gradbed.common.errors import UserError
from gradbed.formats.aggregation import Flags
from gradbed.hosts.systems.aggregation.gradient import Gradient, gradient_frame
from gradbed.topo.generators import leaf_spine, star
from gradbed.topo.link import LinkModel
from tests.emulation.programs import PATIENCE_S, eventually
from tests.emulation.sandboxed import in_sandbox

pytestmark = [pytest.mark.thorough, pytest.mark.root]

LANES = 32
ETH_P_ALL = 3
TOPOLOGY = leaf_spine(3, 2, 2, LinkModel(delay_us=100))
PROGRAMMABLE = ("s1", "l1")
LEGACY = tuple(switch.name for switch in TOPOLOGY.switches if switch.name not in PROGRAMMABLE)
SERVER, WORKERS = "h1", ("h3", "h4", "h5", "h6")
"""The workers are below l2 and l3, the server is below l1."""


def require_open_vswitch() -> None:
    from gradbed.emulation.switches.open_vswitch import require_open_vswitch

    try:
        require_open_vswitch()
    except UserError as error:
        pytest.skip(str(error))


def running(word: str) -> bool:
    return any(word.encode() in path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline"))


class Frames:
    """What hosts send and receive, by packet sockets."""

    def __init__(self, network: Any, hosts: tuple[str, ...]) -> None:
        from gradbed.common.namespaces import in_network_namespace

        self._sockets = {
            host: in_network_namespace(network.host_pid(host), lambda name=host: self._open(f"{name}-eth0"))
            for host in hosts
        }

    @staticmethod
    def _open(interface: str) -> socket.socket:
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        raw.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
        raw.bind((interface, ETH_P_ALL))
        raw.settimeout(PATIENCE_S)
        return raw

    def send(self, host: str, frame: Any) -> None:
        self._sockets[host].send(bytes(frame))

    def receive(self, host: str) -> Any:
        """The next packet but for ICMP; kernels answer gradients, for whose port nobody listens."""
        while True:
            frame = Ether(self._sockets[host].recv(65536))
            if ICMP not in frame:
                return frame

    def nothing_more(self, host: str) -> bool:
        self._sockets[host].setblocking(False)
        try:
            self.receive(host)
        except BlockingIOError:
            return True
        return False


def ping_everybody(network: Any) -> None:
    for source, target in permutations(network.topology.hosts, 2):
        answer = network.mininet[source.name].cmd(f"ping -c 1 -W {PATIENCE_S:.0f} {target.ip}")
        assert "1 received" in answer, f"{source.name} to {target.name}: {answer}"


def aggregate_once(runtime: Any) -> None:
    """One fragment of four workers is summed in s1, arrives at the server once, and is acknowledged to all."""
    network = runtime.network
    job = runtime.client.add_job(
        "aggregation", {"workers": WORKERS, "server": SERVER, "placement": "explicit", "switches": ["s1"]}
    )
    frames = Frames(network, (SERVER, *WORKERS))
    server = TOPOLOGY.host(SERVER)
    for index, name in enumerate(WORKERS):
        worker, (label, *_) = TOPOLOGY.host(name), job["designations"][index]
        assert label["switch_number"] == TOPOLOGY.switch("s1").number
        frames.send(
            name,
            gradient_frame(
                src_mac=worker.mac,
                dst_mac=worker.gateway_mac,
                src_ip=worker.ip,
                dst_ip=server.ip,
                job=job["job"],
                packet_number=0,
                worker_bitmap=1 << index,
                lanes=[(index + 1) * lane for lane in range(LANES)],
                **label,
            ),
        )
    total = frames.receive(SERVER)
    assert total.dst == server.mac
    assert total[Gradient].worker_bitmap == 0b1111
    assert total[Gradient].lanes == [10 * lane for lane in range(LANES)]
    frames.send(
        SERVER,
        gradient_frame(
            src_mac=server.mac,
            dst_mac=job["multicast"][0]["mac"],
            src_ip=server.ip,
            dst_ip=job["multicast"][0]["ip"],
            job=job["job"],
            packet_number=0,
            worker_bitmap=0b1111,
            lanes=total[Gradient].lanes,
            flags=Flags.ACK,
        ),
    )
    for name in WORKERS:
        answer = frames.receive(name)
        assert answer[IP].dst == job["multicast"][0]["ip"]
        assert answer[Gradient].lanes == total[Gradient].lanes
    assert network.backend.quiesce()
    assert all(frames.nothing_more(name) for name in (SERVER, *WORKERS))
    runtime.client.delete_job("aggregation", job["job"])


def check_forwarding(runtime: Any) -> None:
    """What legacy switches do to packets: l2 and l3 are ones, on the way from h3 to h5."""
    source, target = TOPOLOGY.host("h3"), TOPOLOGY.host("h5")
    frames = Frames(runtime.network, (source.name, target.name))

    def send(ttl: int, tos: int, dst: str, payload: bytes) -> None:
        ethernet = Ether(src=source.mac, dst=source.gateway_mac)
        frames.send(
            source.name, ethernet / IP(src=source.ip, dst=dst, ttl=ttl, tos=tos) / UDP(sport=9, dport=9) / payload
        )

    send(1, 0, target.ip, b"over at once")
    send(3, 0, target.ip, b"over at l3")
    send(64, 0, "10.99.0.1", b"nowhere")
    frames.send(source.name, Ether(src=source.mac, dst=target.mac, type=0x88B5) / b"not IP")
    frames.send(source.name, Ether(src=source.mac, dst="ff:ff:ff:ff:ff:ff") / ARP(pdst=target.ip))
    send(64, 0b11, target.ip, b"arrives")
    arrived = frames.receive(target.name)
    assert (arrived.src, arrived.dst) == (target.gateway_mac, target.mac)
    # TTL and checksum are new, the ECN bits as they were.
    assert (arrived[IP].ttl, arrived[IP].tos, bytes(arrived[UDP].payload)) == (61, 0b11, b"arrives")
    checksum = arrived[IP].chksum
    del arrived[IP].chksum
    assert Ether(bytes(arrived))[IP].chksum == checksum
    assert runtime.backend.quiesce()
    assert frames.nothing_more(target.name)


def counted_at(runtime: Any, switch: str, name: str) -> dict[int, tuple[int, int]]:
    """Of a legacy switch: port -> packets and bytes."""
    counters = {full.rsplit(".", 1)[-1]: cells for full, cells in runtime.client.counters(switch).items()}
    return {cell["index"]: (cell["packets"], cell["bytes"]) for cell in counters[name]}


def check_counters(runtime: Any) -> None:
    """Legacy switches counted what the links carried."""
    assert runtime.backend.quiesce()
    rows = {(row.from_node, row.to_node): (row.packets, row.bytes) for row in runtime.backend.link_statistics()}
    assert set(rows) == {
        direction for link in TOPOLOGY.links for direction in ((link.a.node, link.b.node), (link.b.node, link.a.node))
    }
    for switch in LEGACY:
        for neighbour, port in TOPOLOGY.neighbours(switch).items():
            assert counted_at(runtime, switch, "port_in").get(port, (0, 0)) == rows[neighbour, switch]
            assert counted_at(runtime, switch, "port_out").get(port, (0, 0)) == rows[switch, neighbour]


def check_lookups(runtime: Any) -> None:
    """Open vSwitch has looked up all that its ports received, once it has gathered its counts."""

    def unseen(switch: str) -> int:
        received = sum(packets for packets, _ in counted_at(runtime, switch, "port_in").values())
        return received - counted_at(runtime, switch, "looked_up").get(0, (0, 0))[0]

    assert eventually(lambda: all(unseen(switch) == 0 for switch in LEGACY))


STALE = (11, 0)
"""OFPET_ROLE_REQUEST_FAILED, OFPRRFC_STALE (OpenFlow 1.3.5, section 7.4.4)."""


def answer_to_master(address: str, generation: int) -> tuple[int, int] | None:
    """Type and code of the error with which a switch refuses a master of this generation; None if it does not."""
    host, port = address.rsplit(":", 1)
    header, hello, error, role_request, xid = struct.Struct("!BBHI"), 0, 1, 24, 0x4742
    body = struct.pack("!I4xQ", 2, generation)
    with socket.create_connection((host, int(port)), 10) as connection, connection.makefile("rb") as answers:
        connection.sendall(header.pack(4, hello, header.size, 1))
        connection.sendall(header.pack(4, role_request, header.size + len(body), xid) + body)
        while True:
            _version, kind, length, answered = header.unpack(answers.read(header.size))
            rest = answers.read(length - header.size)
            if answered == xid:
                kind_and_code: tuple[int, int] = struct.unpack_from("!HH", rest)
                return kind_and_code if kind == error else None


def check_restart(runtime: Any) -> None:
    bridge = runtime.network.mininet["l3"]
    before = bridge.dpctl("dump-flows", "--no-stats")
    runtime.backend.restart_switch("l3")
    assert eventually(lambda: bridge.dpctl("dump-flows", "--no-stats") == before)
    assert eventually(lambda: all(switch["connected"] for switch in runtime.client.switches()))
    ping_everybody(runtime.network)


@in_sandbox
@pytest.mark.parametrize("legacy", ["openflow", "p4"])
def test_two_programmable_switches_among_legacy_ones(legacy: str, tmp_path: Path) -> None:
    from gradbed.experiments.runtimes.real import RealRuntime
    from gradbed.experiments.scale import Scale
    from gradbed.experiments.setup import TrialTask
    from gradbed.experiments.systems.aggregation.configuration import AggregationConfiguration
    from gradbed.experiments.systems.aggregation.system import AggregationSystem

    if legacy == "openflow":
        require_open_vswitch()
    plain = {
        "topology": {"kind": "leaf-spine:3,2,2", "link": {"rate_mbps": None, "delay_us": 100}},
        # The server of the trial is at l1, too.
        "switches": {"placement": "explicit", "named": ["s1"], "legacy": legacy},
        "workload": {"workers": 4, "lanes": LANES},
    }
    system = AggregationSystem()
    task = TrialTask(AggregationConfiguration.model_validate(plain), 1, Scale(), tmp_path)
    setup = system.trial(task).network
    assert setup.topology == TOPOLOGY
    with RealRuntime(system, setup, task) as runtime:
        net = runtime.network.mininet
        assert [switch.name for switch in net.switches] != []
        assert {switch.name for switch in net.switches} == {switch.name for switch in TOPOLOGY.switches}
        assert all(switch["connected"] for switch in runtime.client.switches())
        ping_everybody(runtime.network)
        aggregate_once(runtime)
        check_forwarding(runtime)
        check_counters(runtime)
        if legacy == "openflow":
            check_lookups(runtime)
            assert int(net["l2"].dpid, 16) == TOPOLOGY.switch("l2").number
            # What a new controller finds missing it puts back.
            net["l2"].dpctl("del-flows")
            runtime.restart_controller()
            ping_everybody(runtime.network)
            aggregate_once(runtime)
            assert answer_to_master(runtime.backend.control_address("l2"), generation=1) == STALE
            # So it does with a switch that comes back empty.
            check_restart(runtime)
    assert os.listdir("/sys/class/net") == ["lo"]
    assert not running("ovs") and not running("gradbed.switch.switch_process")


@in_sandbox
def test_links_of_legacy_switches_have_the_same_model(tmp_path: Path) -> None:
    from gradbed.emulation.network import EmulatedNetwork

    require_open_vswitch()
    topology = star(2, LinkModel(delay_us=20_000, rate_bps=1_000_000)).with_links([("h2", "s1")], loss=0.5)
    os.chdir(tmp_path)
    folder = Path("a folder, " + "with a long name " * 8)
    with EmulatedNetwork(topology, kinds={"s1": "openflow"}, run_dir=folder, seed=3) as network:
        h1, h2 = topology.hosts
        bridge = network.mininet["s1"]
        # Forwards nothing before a controller has said so.
        assert "1 packets transmitted, 0 received" in network.mininet["h1"].cmd(f"ping -c 1 -W 0.2 {h2.ip}")
        for there in (h1, h2):
            out = topology.port("s1", there.name)
            bridge.dpctl("add-flow", f"ip,nw_dst={there.ip},actions=set_field:{there.mac}->eth_dst,output:{out}")
        answers = network.mininet["h1"].cmd(f"ping -c 20 -i 0.01 -s 1000 -W 1 {h2.ip}")
        # Four times over a link of 1 Mb/s and 20 ms, with 1042 bytes. ping goes by a clock that is put right now and
        # then: three times would be a quarter less.
        round_trip_ms = float(answers.split("rtt min/avg/max/mdev = ")[1].split("/")[0])
        assert round_trip_ms >= 0.9 * 4 * (20 + 1042 * 8 / 1000)
        assert network.backend.quiesce()
        rows = {(row.from_node, row.to_node): row for row in network.backend.link_statistics()}
        assert rows["h1", "s1"].packets == 21
        towards, back = rows["s1", "h2"], rows["h2", "s1"]
        assert towards.packets + towards.losses == 20 and 0 < towards.losses < 20
        assert back.packets + back.losses == towards.packets
        assert rows["s1", "h1"].packets == back.packets
    assert os.listdir("/sys/class/net") == ["lo"]


@in_sandbox
def test_without_open_vswitch_one_line_says_what_to_do(tmp_path: Path) -> None:
    from gradbed.emulation.network import EmulatedNetwork
    from gradbed.emulation.switches import open_vswitch as open_vswitch

    open_vswitch._SYSTEM_PATHS = str(tmp_path)
    kept = [path for path in os.environ["PATH"].split(os.pathsep) if not shutil.which("ovs-vsctl", path=path)]
    os.environ["PATH"] = os.pathsep.join(path for path in kept if not shutil.which("ovs-vswitchd", path=path))
    with pytest.raises(UserError, match=r"^Open vSwitch is not installed .*: .*--legacy p4`$") as refusal:
        EmulatedNetwork(star(1), kinds={"s1": "openflow"}).start()
    assert "\n" not in str(refusal.value)
    assert os.listdir("/sys/class/net") == ["lo"]
