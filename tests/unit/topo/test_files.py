"""Topologies as p4lang/tutorials and p4-utils write them."""

from __future__ import annotations

import decimal
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.sections import LinkSection, TopologySection
from gradbed.experiments.scale import Scale
from gradbed.topo.files import topology_file
from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel
from gradbed.topo.registry import parse_topology

TUTORIAL: dict[str, Any] = {
    "hosts": {
        "h1": {
            "ip": "10.0.1.1/24",
            "mac": "08:00:00:00:01:11",
            "commands": ["route add default gw 10.0.1.10 dev eth0", "arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00"],
        },
        "h2": {"ip": "10.0.1.2/24", "mac": "08:00:00:00:02:22", "commands": []},
        "h3": {"ip": "10.0.2.3/31", "mac": "08:00:00:00:03:33"},
    },
    "switches": {"s1": {"runtime_json": "pod/s1-runtime.json", "program": "build/wall.json"}, "s2": {}},
    "links": [["h1", "s1-p1"], ["s1-p2", "h2"], ["s1-p3", "s2-p2", "5ms", 0.5], ["s2-p1", "h3", 2]],
}

P4_UTILS: dict[str, Any] = {
    "p4_src": "p4src/mine.p4",
    "topology": {
        "assignment_strategy": "mixed",
        "links": [["h1", "s1"], ["s1", "s2", {"bw": 5, "delay": "3ms", "loss": 1}], ["h3", "s2"], ["h4", "s2"]],
        "hosts": {"h1": {}, "h3": {}, "h4": {}},
        "switches": {"s1": {"cli_input": "s1-commands.txt"}, "s2": {"p4_src": "p4src/other.p4"}},
    },
}


def written(folder: Path, data: Any, name: str = "pod/topology.json") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return str(path)


@pytest.fixture
def tutorial(tmp_path: Path) -> str:
    kind = written(tmp_path, TUTORIAL)
    written(tmp_path, {"bmv2_json": "build/wall.json", "table_entries": []}, "pod/s1-runtime.json")
    return kind


def ports(topology: Topology, node: str) -> dict[str, int]:
    return topology.neighbours(node)


def test_a_topology_of_the_tutorials(tutorial: str) -> None:
    found = topology_file(tutorial, LinkModel(rate_bps=1000, delay_us=7))
    assert found is not None
    topology = found.topology
    assert ports(topology, "s1") == {"h1": 1, "h2": 2, "s2": 3} and ports(topology, "s2") == {"h3": 1, "s1": 2}
    h1 = topology.host("h1")
    assert (h1.ip, h1.gateway_ip, h1.gateway_mac) == ("10.0.1.1", "10.0.1.10", "08:00:00:00:01:00")
    assert topology.host("h3").gateway_mac == topology.switch("s2").mac
    assert topology.link("s1", "s2").model == LinkModel(rate_bps=500_000, delay_us=5000)
    assert topology.link("s2", "h3").model == LinkModel(rate_bps=1000, delay_us=2000)
    assert topology.link("h1", "s1").model == LinkModel(rate_bps=1000, delay_us=7)
    assert found.entries == {"s1": Path(tutorial).parent / "s1-runtime.json"}


def test_hosts_of_one_subnet_reach_each_other_directly(tutorial: str) -> None:
    topology = parse_topology(tutorial)
    assert topology.destination_mac("h1", "h2") == "08:00:00:00:02:22"
    assert topology.destination_mac("h1", "h3") == "08:00:00:00:01:00"
    ours = parse_topology("star:2")
    assert ours.destination_mac("h1", "h2") == ours.switch("s1").mac


def test_switches_may_run_other_programs_than_the_one_that_is_given(tutorial: str, tmp_path: Path) -> None:
    found = topology_file(tutorial)
    assert found is not None
    mine = tmp_path / "solution" / "mine.p4"
    assert found.sources(mine) == {"s1": mine, "s2": mine}, "there is no wall.p4"
    wall = tmp_path / "wall.p4"
    wall.touch()
    assert found.sources(mine) == {"s1": wall, "s2": mine}
    assert found.sources(tmp_path / "solution" / "wall.p4")["s1"].parent == tmp_path / "solution"


def test_a_file_of_the_tutorials_names_the_programs_of_its_switches(tutorial: str, tmp_path: Path) -> None:
    found = topology_file(tutorial)
    assert found is not None and found.own_programs() == {"s1": "build/wall.json"}
    with pytest.raises(UserError, match=r"topology.json: s1 runs build/wall.json, and wall.p4 is not there"):
        found.sources(None)
    wall = tmp_path / "solution" / "wall.p4"
    wall.parent.mkdir()
    wall.touch()
    with pytest.raises(UserError, match=r"topology.json names no program for s2: which program\?"):
        found.sources(None)
    written(tmp_path, {**TUTORIAL, "switches": {**TUTORIAL["switches"], "s2": {"program": "build/wall.json"}}})
    named = topology_file(tutorial)
    assert named is not None and named.sources(None) == {"s1": wall, "s2": wall}
    skeleton = tmp_path / "wall.p4"
    skeleton.touch()
    assert named.sources(None) == {"s1": skeleton, "s2": skeleton}, "what a student writes, not the solution"


def test_programs_of_one_name_in_two_folders_are_two(tmp_path: Path) -> None:
    more = 'net.l3()\nnet.setP4Source("s1", "p4src/main.p4")\nnet.setP4Source("s2", "other/main.p4")'
    kind = scripted(tmp_path, more)
    one, other = tmp_path / "p4src/main.p4", tmp_path / "other/main.p4"
    for source in (one, other):
        source.parent.mkdir(exist_ok=True)
        source.touch()
    found = topology_file(kind)
    assert found is not None and found.sources(None) == {"s1": one, "s2": other}


def test_a_script_without_a_program_for_a_switch_does_not_get_that_of_another(tmp_path: Path) -> None:
    kind = scripted(tmp_path, 'net.l3()\nnet.setP4Source("s1", "p4src/mine.p4")')
    path = Path(kind)
    path.write_text(path.read_text().replace('net.setP4SourceAll("p4src/mine.p4")\n', ""))
    found = topology_file(kind)
    assert found is not None
    with pytest.raises(UserError, match=r"network.py names no program for s2: which program\?"):
        found.sources(None)


def test_a_topology_of_p4_utils(tmp_path: Path) -> None:
    kind = written(tmp_path, P4_UTILS, "p4app.json")
    for name in ("p4src/mine.p4", "p4src/other.p4", "s1-commands.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = topology_file(kind)
    assert found is not None and found.program == tmp_path / "p4src/mine.p4"
    topology = found.topology
    # Ports follow the natural order of links.
    assert ports(topology, "s2") == {"h3": 1, "h4": 2, "s1": 3}
    h4 = topology.host("h4")
    assert (h4.ip, h4.prefix_bits, h4.mac) == ("10.0.2.4", 24, "00:00:0a:00:02:04")
    assert (h4.gateway_ip, h4.gateway_mac) == ("10.0.2.254", "00:01:0a:00:02:04")
    assert topology.link("s1", "s2").model == LinkModel(rate_bps=5_000_000, delay_us=3000, loss=0.01)
    assert found.sources(tmp_path / "p4src/mine.p4")["s2"] == tmp_path / "p4src/other.p4"


@pytest.mark.parametrize(
    ("strategy", "ip", "destination"),
    [("l2", "10.0.0.3", "00:00:0a:00:00:04"), ("l3", "10.2.3.2", "00:01:0a:02:03:02")],
)
def test_strategies_of_p4_utils(tmp_path: Path, strategy: str, ip: str, destination: str) -> None:
    network = {**P4_UTILS["topology"], "assignment_strategy": strategy, "switches": {"s1": {}, "s2": {}}}
    topology = parse_topology(written(tmp_path, {"topology": network}))
    assert topology.host("h3").ip == ip and topology.destination_mac("h3", "h4") == destination


SCRIPT = """
from p4utils.mininetlib.network_API import NetworkAPI

net = NetworkAPI()
net.setLogLevel("info")
net.enableCli()
net.addP4Switch("s2", cli_input="s2-commands.txt")
net.addP4Switch("s1")
net.setP4SourceAll("p4src/mine.p4")
for name in ("h1", "h10", "h2", "server"):
    net.addHost(name)
net.addLink("h10", "s1")
net.addLink("h2", "s1")
net.addLink("s1", "s2", port2=7)
net.addLink("h1", "s2")
net.addLink("server", "s2", bw=3)
net.setDelay("s1", "s2", 4)
net.setBw("h1", "s2", 2)
{more}
net.execScript("python controller.py", reboot=True)
net.enableLogAll()
net.startNetwork()
raise SystemExit("this is never reached")
"""


def scripted(folder: Path, more: str) -> str:
    for name in ("p4src/mine.p4", "s2-commands.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (folder / "network.py").write_text(SCRIPT.format(more=more))
    return str(folder / "network.py")


def test_a_script_of_p4_utils(tmp_path: Path) -> None:
    found = topology_file(scripted(tmp_path, "net.mixed()"), LinkModel(rate_bps=1000, delay_us=7))
    assert found is not None and found.program == tmp_path / "p4src/mine.p4"
    assert found.entries == {"s2": tmp_path / "s2-commands.txt"}
    topology = found.topology
    # h2 before h10: the order is natural.
    assert ports(topology, "s1") == {"h2": 1, "h10": 2, "s2": 3}
    assert ports(topology, "s2") == {"h1": 1, "s1": 7, "server": 2}
    assert topology.host("h10").ip == "10.0.1.10" and topology.host("server").ip == "10.0.2.2", "1 is h1's"
    assert topology.link("s1", "s2").model == LinkModel(rate_bps=1000, delay_us=4000)
    assert topology.link("h1", "s2").model.rate_bps == 2_000_000
    assert topology.link("s2", "server").model.rate_bps == 3_000_000
    other = tmp_path / "other.p4"
    assert set(found.sources(other).values()) == {other}
    assert "p4utils" not in sys.modules


BESIDE = """
from description import LEAVES  # the name of a module of ours, too
from p4utils.mininetlib.network_API import NetworkAPI

with open("racks.txt") as racks:
    hosts_of_each = int(racks.read())
net = NetworkAPI()
for leaf in LEAVES:
    net.addP4Switch(leaf)
net.addLink(*LEAVES)
for number in range(len(LEAVES) * hosts_of_each):
    net.addHost(f"h{number + 1}")
    net.addLink(f"h{number + 1}", LEAVES[number // hosts_of_each])
net.l3()
net.startNetwork()
"""


def test_a_script_runs_in_its_folder_with_the_modules_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `python3 network.py` there, from wherever it is asked for; and it leaves nothing."""
    folder, elsewhere = tmp_path / "network", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "network.py").write_text(BESIDE)
    (folder / "description.py").write_text('LEAVES = ["a1", "a2"]\n')
    (folder / "racks.txt").write_text("2\n")
    monkeypatch.chdir(elsewhere)
    for kind in (folder / "network.py", Path("../network/network.py")):
        found = topology_file(str(kind))
        assert found is not None
        topology = found.topology
        assert (len(topology.hosts), len(topology.switches), len(topology.links)) == (4, 2, 5)
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(
        ["description.py", "elsewhere", "network", "network.py", "racks.txt"]
    )


DRAWS = """
import decimal, os, sys, threading
import matplotlib.pyplot as plt
import numpy
from p4utils.mininetlib.network_API import NetworkAPI

net = NetworkAPI()
net.addP4Switch("s1", cls=dict)
for name in ("h0", "h1", "ps0"):
    net.addHost(name)
    net.addLink("s1", name, bw=numpy.float64(2.5))
plt.plot([1, 2])
plt.title("a star")
plt.show()
decimal.getcontext().prec = 3
os.environ["DRAWN"] = "1"
os.chdir("/")
threading.Thread(target=threading.Event().wait).start()
print("drawn")
net.l3()
try:
    net.startNetwork()
except Exception:
    raise SystemExit("startNetwork() does not return")
"""


def test_what_a_script_does_to_its_process_is_its_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "network.py").write_text(DRAWS)
    before = set(sys.modules), decimal.getcontext().prec, dict(os.environ), os.getcwd(), threading.active_count()
    found = topology_file(str(tmp_path / "network.py"))
    assert found is not None and found.topology.link("s1", "ps0").model.rate_bps == 2_500_000
    after = set(sys.modules), decimal.getcontext().prec, dict(os.environ), os.getcwd(), threading.active_count()
    assert before == after
    assert capfd.readouterr() == ("", "")
    assert [path.name for path in tmp_path.iterdir()] == ["network.py"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            r"network\.py: it was ended by signal 9 \(Killed\)",
        ),
        ("import os; print('lost', file=__import__('sys').stderr, flush=True); os._exit(3)", "status 3 .*: lost$"),
        ("input()", "line 1: EOFError: "),
        ("", r"makes no NetworkAPI\(\)"),
    ],
)
def test_a_script_that_tells_nothing_is_one_line(tmp_path: Path, script: str, message: str) -> None:
    (tmp_path / "network.py").write_text(script)
    with pytest.raises(UserError, match=message):
        topology_file(str(tmp_path / "network.py"))


def test_a_program_that_a_file_does_not_name_runs_on_all_switches(tmp_path: Path) -> None:
    more = 'net.l3()\nnet.setP4Source("s1", "p4src/a.p4")\nnet.setP4Source("s2", "p4src/b.p4")'
    kind = scripted(tmp_path, more)
    a, b, other = (tmp_path / "p4src" / name for name in ("a.p4", "b.p4", "other.p4"))
    for source in (a, b, other):
        source.touch()
    found = topology_file(kind)
    assert found is not None
    assert found.sources(a) == {"s1": a, "s2": b} and found.sources(other) == {"s1": other, "s2": other}


def test_a_script_may_give_addresses_itself(tmp_path: Path) -> None:
    more = 'net.l3()\nnet.setIntfIp("h1", "s2", "10.9.1.2/24")\nnet.setDefaultRoute("h1", "10.9.1.1")'
    found = topology_file(scripted(tmp_path, more + '\nnet.setIntfMac("h1", "s2", "02:00:00:00:00:77")'))
    assert found is not None
    h1 = found.topology.host("h1")
    assert (h1.ip, h1.gateway_ip, h1.mac) == ("10.9.1.2", "10.9.1.1", "02:00:00:00:00:77")
    assert found.topology.host("h2").ip == "10.1.2.2"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("1 / 0", "network.py: line 19: ZeroDivisionError: division by zero"),
        ("net.fly()", "network.py: line 19: AttributeError: gradbed does not know NetworkAPI.fly"),
        ('net.addLink("h1", "s9")', "network.py: line 19: a link of s9, which is no node"),
        (
            'net.addRouter("r1")',
            "network.py: line 19: r1 is no P4 switch: networks from files have P4 switches alone",
        ),
        ("net.l2(", r"network.py: line \d+: SyntaxError: "),
        ("import os; os._no", "network.py: line 19: AttributeError: "),
        ("raise SystemExit('no')", "network.py: line 19: SystemExit: no"),
    ],
)
def test_a_mistake_in_a_script_names_its_line(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        topology_file(scripted(tmp_path, more))
    assert "\n" not in str(caught.value)


def test_what_a_file_says_of_its_links_is_scaled(tutorial: str) -> None:
    section = TopologySection(kind=tutorial, link=LinkSection(rate_mbps=10, delay_us=100))
    slow = section.build(Scale(0.5))
    assert slow.link("s1", "s2").model == LinkModel(rate_bps=250_000, delay_us=10_000)
    assert slow.link("h1", "s1").model == LinkModel(rate_bps=5_000_000, delay_us=200)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"links": [["h1", "s1p1"]]}, "'s1p1' is no end of a link: write SWITCH-pPORT, or the name of a host"),
        ({"links": [["h1", "s1-p1"]]}, "host h2: it is not linked to any switch"),
        ({"links": [["h1", "s9-p1"], ["h2", "s1-p1"], ["h3", "s1-p2"]]}, "host h1: it is not linked to any switch"),
        ({"links": [*TUTORIAL["links"][:3], ["h3", "s2-p1", "5 miles"]]}, "'5 miles' is no time"),
        ({"hosts": 5}, "hosts has to be an object"),
        ({"hosts": {"h1": 5}}, "hosts.h1 has to be an object"),
        ({"hosts": {"h1": {"mac": "08:00:00:00:00:01"}}}, "hosts.h1.ip is missing"),
        ({"switches": ["s1", "s2"]}, "switches has to be an object"),
        ({"links": [["h1"]]}, "links.0 has too few parts"),
        ({"links": {"h1": "s1"}}, "links has to be a list"),
        ({"topology": {"hosts": {}, "links": []}}, "topology.switches is missing"),
        (
            {"topology": {"hosts": {"h1": {}}, "switches": {"s1": {}}, "links": [["h1", "s1", {}, 5]]}},
            "links.0 has too",
        ),
        ({"switches": {"s1": {"runtime_json": "nowhere.json"}, "s2": {}}}, "names nowhere.json, which is not there"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    data = {**TUTORIAL, "switches": {"s1": {}, "s2": {}}, **change}
    with pytest.raises(UserError, match=message) as caught:
        topology_file(written(tmp_path, data))
    assert "\n" not in str(caught.value) and "topology.json" in str(caught.value)


def test_no_file_and_no_json(tmp_path: Path) -> None:
    assert topology_file("fat-tree:4") is None
    with pytest.raises(UserError, match=r"nothing.json: it cannot be read: No such file"):
        topology_file("nothing.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(UserError, match=r"bad.json: it is no JSON"):
        topology_file(str(tmp_path / "bad.json"))
