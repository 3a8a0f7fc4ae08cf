"""gradbed up with a program of one's own: reloaded when it changes, or left to a controller of one's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gradbed.cli.commands.new import new
from tests.conftest import GradbedHere
from tests.emulation.prompt import Prompt

pytestmark = [pytest.mark.thorough, pytest.mark.root]

PROGRAM = ("--program", "mine.p4", "--topology", "star:2")

CONTROLLER = """\
import json, os, sys, time
from finsy.proto import p4r, p4r_grpc
import grpc
targets = json.loads(os.environ["GRADBED_TARGETS"])
assert json.load(open(os.environ["GRADBED_TOPOLOGY"]))["switches"][0]["name"] == "s1"
target = targets["s1"]
assert "tables" in open(target["p4info"]).read()
stub = p4r_grpc.P4RuntimeStub(grpc.insecure_channel(target["address"]))
def requests():
    bid = p4r.MasterArbitrationUpdate(device_id=target["device_id"], election_id=p4r.Uint128(low=1))
    yield p4r.StreamMessageRequest(arbitration=bid)
    time.sleep(60)
for answer in stub.StreamChannel(requests()):
    print("the outside controller is told", answer.arbitration.status.code, flush=True)
    break
time.sleep(60)
"""


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[Path]:
    """A folder with a program and entries."""
    assert new(tmp_path / "mine") == 0
    yield tmp_path / "mine"


def test_a_program_is_reloaded_while_the_network_goes_on(mine: Path) -> None:
    program, entries = mine / "mine.p4", mine / "entries.yaml"
    source, routes = program.read_text(), entries.read_text()
    prompt = Prompt(*PROGRAM, "--watch", folder=mine)
    try:
        prompt.wait_for("REST interface")
        prompt.say("pingall")
        assert "h1 -> h2" in prompt.wait_for("(2/2 received)")
        program.write_text(source + "\nnonsense")
        assert f"{program.name}:" in prompt.wait_for("error")
        prompt.say("pingall")
        prompt.wait_for("(2/2 received)")
        # Another name of the table: the entries of the old one are left out.
        program.write_text(source.replace("routes", "ways"))
        left_out = prompt.wait_for("gradbed: reloaded")
        assert "entries.yaml:3:3: the P4 program has no table 'routes'" in left_out
        prompt.say("pingall 1")  # second of patience; ping's own is ten
        prompt.wait_for("(0/2 received)")
        entries.write_text(routes.replace("  routes:", "  ways:"))
        prompt.wait_for("gradbed: reloaded")
        prompt.say("pingall")
        prompt.wait_for("(2/2 received)")
    finally:
        assert prompt.close() == 0


def test_a_controller_of_ones_own_takes_over(mine: Path) -> None:
    (mine / "mine_controller.py").write_text(CONTROLLER)
    prompt = Prompt(
        *PROGRAM,
        "--controller",
        f"{sys.executable} mine_controller.py",
        folder=mine,
    )
    try:
        assert "device id 1" in prompt.wait_for("GRADBED_TOPOLOGY")
        prompt.wait_for("the outside controller is told 0")
        prompt.say("pingall")
        prompt.wait_for("(2/2 received)")
        prompt.say("counters s1")
        prompt.wait_for("s1 is not connected: handed over to another controller")
        prompt.say("sh echo $GRADBED_TARGETS")
        prompt.wait_for("mininet> ")
        told = json.loads(prompt.wait_for("}}").split("mininet>")[-1].strip() + "}}")
        assert told["s1"]["device_id"] == 1
    finally:
        assert prompt.close() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--entries", "entries.yaml"], "gradbed: which program? name a P4 file with --program"),
        (["--program", "nothing.p4"], "gradbed: cannot read nothing.p4: there is no such file"),
        (["--program", "mine.p4", "--slots", "4"], "gradbed: --slots does not go with a program of your own"),
        (
            ["--program", "mine.p4", "--watch", "--controller", "none"],
            "gradbed: --watch does not go with --controller: who fills the tables reloads them",
        ),
        (
            ["--program", "mine.p4", "--entries", "mine.p4"],
            "gradbed: mine.p4: entries are .yaml, .yml, .json, .py, .txt",
        ),
    ],
)
def test_what_does_not_go_together_is_one_line(
    mine: Path, gradbed_here: GradbedHere, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(mine)
    ended = gradbed_here("up", "--rest-port", "0", "--topology", "star:2", *arguments)
    assert ended.status == 2 and ended.err.strip().splitlines()[-1] == message


PORTS = """\
#include <core.p4>
#include <v1model.p4>
struct headers_t {}
struct metadata_t {}
parser Parse(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t standard_metadata) {
    state start { transition accept; }
}
control Check(inout headers_t h, inout metadata_t m) { apply {} }
control Forward(inout headers_t h, inout metadata_t m, inout standard_metadata_t standard_metadata) {
    action drop() { mark_to_drop(standard_metadata); }
    action send(bit<9> port) { standard_metadata.egress_spec = port; }
    table ports {
        key = { standard_metadata.ingress_port: exact; }
        actions = { send; drop; }
        default_action = drop();
    }
    apply { ports.apply(); }
}
control Leave(inout headers_t h, inout metadata_t m, inout standard_metadata_t standard_metadata) { apply {} }
control Deparse(packet_out p, in headers_t h) { apply {} }
V1Switch(Parse(), Check(), Forward(), Leave(), Check(), Deparse()) main;
"""
"""Frames go from port 1 to 2 and back, once entries say so, and nowhere else: gradbed's own programs route."""

TO_EACH_OTHER = "table_add ports send 1 => 2\ntable_add ports send 2 => 1\n"

SCRIPT = """\
from p4utils.mininetlib.network_API import NetworkAPI
net = NetworkAPI()
net.addP4Switch("s1", cli_input="s1.txt")
net.setP4Source("s1", "ports.p4")
for host in ("h1", "h2", "h3"):
    net.addHost(host)
    net.addLink("s1", host)
net.l2()
net.startNetwork()
"""


def _of_p4_utils(folder: Path) -> str:
    (folder / "s1.txt").write_text(TO_EACH_OTHER)
    hosts = {f"h{number}": {} for number in (1, 2, 3)}
    network = {
        "assignment_strategy": "l2",
        "hosts": hosts,
        "switches": {"s1": {"cli_input": "s1.txt"}},
        "links": [[host, "s1"] for host in hosts],
    }
    (folder / "p4app.json").write_text(json.dumps({"p4_src": "ports.p4", "topology": network}))
    return "p4app.json"


def _script(folder: Path) -> str:
    (folder / "s1.txt").write_text(TO_EACH_OTHER)
    (folder / "network.py").write_text(SCRIPT)
    return "network.py"


def _of_the_tutorials(folder: Path) -> str:
    entries = [
        {
            "table": "Forward.ports",
            "match": {"standard_metadata.ingress_port": port},
            "action_name": "Forward.send",
            "action_params": {"port": 3 - port},
        }
        for port in (1, 2)
    ]
    pod = folder / "pod"
    pod.mkdir()
    runtime = {"target": "bmv2", "bmv2_json": "build/ports.json", "table_entries": entries}
    (pod / "s1-runtime.json").write_text(json.dumps(runtime))
    hosts = {f"h{n}": {"ip": f"10.0.1.{n}/24", "mac": f"08:00:00:00:01:0{n}"} for n in (1, 2, 3)}
    links = [[f"h{n}", f"s1-p{n}"] for n in (1, 2, 3)]
    topology = {"hosts": hosts, "switches": {"s1": {"runtime_json": "pod/s1-runtime.json"}}, "links": links}
    (pod / "topology.json").write_text(json.dumps(topology))
    return "pod/topology.json"


@pytest.mark.parametrize("write", [_of_p4_utils, _script, _of_the_tutorials])
def test_a_file_that_names_its_program_brings_it_up(tmp_path: Path, write: Callable[[Path], str]) -> None:
    (tmp_path / "ports.p4").write_text(PORTS)
    prompt = Prompt("--topology", write(tmp_path), folder=tmp_path)
    try:
        first = prompt.wait_for("REST interface").splitlines()[0]
        assert first.startswith("gradbed: s1 runs ports.p4; entries: ") and "s1" in first.split("entries: ")[1]
        prompt.say("pingall 1")
        # h3 hangs on port 3, of which the entries say nothing; gradbed's own programs would route to it.
        prompt.wait_for("(2/6 received)")
    finally:
        assert prompt.close() == 0
