"""What people are told of the programs that switches run, above all where a topology's file names one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.custom_program import custom_network
from gradbed.experiments.system import programs_line, unused_programs_line
from gradbed.experiments.systems import find_system
from gradbed.topo.files import topology_file
from tests.conftest import GradbedHere

HOSTS = {f"h{n}": {"ip": f"10.0.1.{n}/24", "mac": f"08:00:00:00:01:0{n}"} for n in (1, 2, 3)}
LINKS = [[f"h{n}", f"s1-p{n}"] for n in (1, 2, 3)]
TUTORIAL: dict[str, Any] = {"hosts": HOSTS, "switches": {"s1": {}}, "links": LINKS}
P4_UTILS: dict[str, Any] = {
    "topology": {
        "assignment_strategy": "l2",
        "hosts": {host: {} for host in HOSTS},
        "switches": {"s1": {}},
        "links": [[host, "s1"] for host in HOSTS],
    }
}
SCRIPT = """
from p4utils.mininetlib.network_API import NetworkAPI
net = NetworkAPI()
net.addP4Switch("s1")
for host in ("h1", "h2", "h3"):
    net.addHost(host)
    net.addLink("s1", host)
net.l2()
net.startNetwork()
"""
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
struct none_t {}
parser P(packet_in p, out none_t h, inout none_t m, inout standard_metadata_t s) {
    state start { transition accept; } }
control V(inout none_t h, inout none_t m) { apply {} }
control I(inout none_t h, inout none_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in none_t h) { apply {} }
V1Switch(P(), V(), I(), I(), V(), D()) main;
"""


@pytest.fixture(params=["topology.json", "p4app.json", "network.py"])
def without_program(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    text = {"topology.json": json.dumps(TUTORIAL), "p4app.json": json.dumps(P4_UTILS), "network.py": SCRIPT}
    (tmp_path / request.param).write_text(text[request.param])
    return str(request.param)


def test_up_asks_for_the_program_that_a_file_does_not_name(gradbed_here: GradbedHere, without_program: str) -> None:
    ended = gradbed_here("up", "--rest-port", "0", "--topology", without_program)
    assert ended.status == 2 and ended.err == (
        f"gradbed: {without_program} names no program for s1: which program? name a P4 file with --program, "
        "or run gradbed's with --system aggregation\n"
    )


def test_up_asks_for_the_program_that_is_not_there(
    gradbed_here: GradbedHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("topology.json").write_text(json.dumps({**TUTORIAL, "switches": {"s1": {"program": "build/mine.json"}}}))
    ended = gradbed_here("up", "--rest-port", "0", "--topology", "topology.json")
    assert ended.status == 2 and ended.err.count("\n") == 1
    assert (
        "s1 runs build/mine.json, and mine.p4 is not there: which program? name a P4 file with --program" in ended.err
    )


def test_options_of_gradbeds_programs_do_not_go_with_the_files(
    gradbed_here: GradbedHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.p4").write_text(PROGRAM)
    Path("p4app.json").write_text(json.dumps({"p4_src": "mine.p4", **P4_UTILS}))
    ended = gradbed_here("up", "--rest-port", "0", "--topology", "p4app.json", "--slots", "4")
    assert (ended.status, ended.err) == (
        2,
        "gradbed: --slots does not go with the programs that p4app.json names\n",
    )


def test_every_switch_is_told_with_its_program_and_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine.p4", "other.p4"):
        Path(name).write_text(PROGRAM)
    Path("s1.txt").write_text("# nothing\n")
    switches = {f"s{n}": {"p4_src": "other.p4"} if n == 2 else {} for n in range(1, 10)}
    network = {
        **P4_UTILS["topology"],
        "switches": {**switches, "s1": {"cli_input": "s1.txt"}},
        "links": [*P4_UTILS["topology"]["links"], *([f"s{n}", f"s{n + 1}"] for n in range(1, 9))],
    }
    Path("p4app.json").write_text(json.dumps({"p4_src": "mine.p4", "topology": network}))
    file = topology_file("p4app.json")
    assert file is not None
    assert programs_line(custom_network(file.topology, None, file=file)) == (
        "s1, s3, s4, s5, s6, s7 and 2 more run mine.p4; s2 runs other.p4; entries: s1.txt"
    )
    assert "no entries" in programs_line(custom_network(file.topology, tmp_path / "mine.p4", file=None))


@pytest.mark.parametrize(
    ("name", "line"), [("workload", ""), ("ndn", "p4app.json names mine.p4, which does not run")]
)
def test_a_program_that_does_not_run_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.p4").write_text(PROGRAM)
    Path("p4app.json").write_text(json.dumps({"p4_src": "mine.p4", **P4_UTILS}))
    told = unused_programs_line(find_system(name), topology_file("p4app.json"))
    assert told.startswith(line) and bool(told) == bool(line)
    assert unused_programs_line(find_system(name), None) == ""


def test_a_run_of_a_system_tells_of_the_files_program(
    gradbed_here: GradbedHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.p4").write_text(PROGRAM)
    Path("p4app.json").write_text(json.dumps({"p4_src": "mine.p4", **P4_UTILS}))
    of_run = ["--clock", "virtual", "--workload", "synthetic", "--workers", "2", "--rounds", "1", "--values", "64"]
    ended = gradbed_here("run", "aggregation", "--topology", "p4app.json", *of_run)
    assert ended.status == 0, ended.err
    assert "names mine.p4, which does not run: switches run the programs of aggregation\n" in ended.err


def test_topo_says_what_a_file_names_and_an_export_leaves_out(
    gradbed_here: GradbedHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.p4").write_text(PROGRAM)
    Path("p4app.json").write_text(json.dumps({"p4_src": "mine.p4", **P4_UTILS}))
    assert "s1 runs mine.p4, says the file\n" in gradbed_here("topo", "show", "p4app.json").out
    ended = gradbed_here("topo", "export", "p4app.json")
    assert ended.err == "gradbed: the yaml does not say what switches run: mine.p4\n" and "mine.p4" not in ended.out
