"""What the documents' commands take for granted: programs, networks and captures that readers have."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.command import ROOT
from tests.plain_machine import PlainMachine

Run = Callable[[str], None]
"""Types a command into the machine's shell, which has to end well."""

NETWORK = """
from p4utils.mininetlib.network_API import NetworkAPI

net = NetworkAPI()
net.addP4Switch("s1", cli_input="s1-commands.txt")
net.setP4SourceAll("router.p4")
for name in ("h1", "h2"):
    net.addHost(name)
    net.addLink(name, "s1")
net.l3()
net.startNetwork()
"""
ROUTES = """
table_add routes forward 10.1.1.2/32 => 1 00:00:0a:01:01:02
table_add routes forward 10.1.2.2/32 => 2 00:00:0a:01:02:02
"""
LAYERS = """
from scapy.fields import ShortField
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_layers


class MyTunnel(Packet):
    name = "MyTunnel"
    fields_desc = [ShortField("proto_id", 0), ShortField("dst_id", 0)]


bind_layers(Ether, MyTunnel, type=0x1212)
bind_layers(MyTunnel, IP, proto_id=0x0800)
"""
HEADERS = "struct headers_t {\n    ethernet_t ethernet;"
TUNNEL_HEADER = "header tunnel_t {\n    bit<16> proto_id;\n    bit<16> dst_id;\n}\n\n"
STATE = "    state parse_ipv4 {"
TUNNEL_STATE = (
    "    state parse_tunnel {\n        packet.extract(hdr.tunnel);\n        transition parse_ipv4;\n    }\n"
)
TUNNEL = {
    HEADERS: f"{TUNNEL_HEADER}{HEADERS}\n    tunnel_t   tunnel;",
    "            ETHER_TYPE_IPV4: parse_ipv4;": "            0x1212: parse_tunnel;",
    STATE: TUNNEL_STATE + STATE,
    "key = { hdr.ipv4.dst_addr: lpm; }": "key = { hdr.tunnel.dst_id: exact; }",
    "        packet.emit(hdr.ipv4);": "        packet.emit(hdr.tunnel);\n        packet.emit(hdr.ipv4);",
}
"""Changes to the program that `gradbed new` makes."""


def make_readers_files(machine: PlainMachine, commands: str, run: Run) -> None:
    """Make what the commands name: in the clone, and in the home of the machine's user."""
    clone, home = machine.clone, machine.home
    if "./gradbed new my_program" not in commands.splitlines() and "my_program" in commands:
        run("./gradbed new my_program")
    if "other/" in commands:
        run("./gradbed new other")
    if "script.py" in commands:
        (clone / "script.py").write_text("import gradbed as gb\nprint(len(gb.star(2).hosts))\n")
    if "my_program.p4 -D" in commands:
        shutil.copy(clone / "my_program" / "my_program.p4", clone)
        shutil.copy(clone / "my_program" / "test.stf", clone / "my_program.stf")
        (clone / "include").mkdir()
        run("./gradbed p4 compile my_program.p4 -o made_by_p4c.json")
    if "compile program.p4" in commands:
        shutil.copy(ROOT / "p4src" / "router.p4", clone / "program.p4")
    if "~/p4c" in commands:
        _make_corpora(home, clone)
    if "--entries routes.stf" in commands:
        (clone / "routes.stf").write_text(_shown(ROOT / "docs" / "insight.md", "routes.stf"))
    if "grade class" in commands:
        for solution in ("forward class/ada", "forward class/ben/forward", "count class/ben/count"):
            run(f"./gradbed exercise solution {solution}")
    if "gpt" in commands and "./gradbed new trace gpt" not in commands:
        run("./gradbed new trace gpt --preset tiny --dp 2 --tp 2")
    if "--trace my_network" in commands:
        run("./gradbed new trace my_network --preset tiny --dp 2 --tp 2")
    if "my_network/network.py" in commands:
        _make_network(machine, run)
    if "tunnel.p4" in commands:
        run("./gradbed new my_tunnel")
        _make_tunnel(clone)
    if "results/aggregation/latest" in commands:
        run("./gradbed run aggregation --clock virtual --rounds 1 --topology star:3 --workers 2")


def _make_corpora(home: Path, clone: Path) -> None:
    """A small ~/p4c, and folders of programs."""
    samples = home / "p4c" / "testdata" / "p4_16_samples"
    for folder in (samples, home / "programs", home / "fabric" / "include"):
        folder.mkdir(parents=True, exist_ok=True)
    for mine, theirs in (("language/arithmetic", "issue281"), ("architecture/clone", "table-entries-lpm-bmv2")):
        for suffix in (".p4", ".stf"):
            shutil.copy(ROOT / "tests" / "p4" / "stf" / f"{mine}{suffix}", samples / f"{theirs}{suffix}")
    shutil.copy(ROOT / "tests" / "p4" / "stf" / "unused.p4", samples.parent)
    for folder in (home / "programs", home / "fabric"):
        shutil.copy(ROOT / "p4src" / "router.p4", folder)
    (clone / "must_pass.txt").write_text("issue281\n")


def _make_network(machine: PlainMachine, run: Run) -> None:
    """As p4-utils has it, with the program and the commands that it names."""
    run("./gradbed new my_network/router")
    folder = machine.clone / "my_network"
    shutil.copy(folder / "router" / "router.p4", folder)
    (folder / "network.py").write_text(NETWORK)
    (folder / "s1-commands.txt").write_text(ROUTES)


def _make_tunnel(clone: Path) -> None:
    text = (clone / "my_tunnel" / "my_tunnel.p4").read_text()
    for old, new in TUNNEL.items():
        text = _changed(text, old, new)
    (clone / "tunnel.p4").write_text(text)
    entries = (clone / "my_tunnel" / "entries.yaml").read_text()
    entries = _changed(entries, "{hdr.ipv4.dst_addr: $dst_ip}", "{hdr.tunnel.dst_id: $dst_number}")
    (clone / "entries.yaml").write_text(entries)
    (clone / "my_layers.py").write_text(LAYERS)


def _changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def _shown(document: Path, file: str) -> str:
    """What `cat FILE` prints in the document."""
    found = re.search(rf"^\$ cat {re.escape(file)}\n(.*?)^\$ ", document.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{document.name} does not show {file}"
    return found[1]


LACKING: Mapping[str, str] = {
    r"\./gradbed p4 stf .* --switch bmv2": "not installed",
    r"\.venv/bin/python -m tools\.conformance .* --compiler p4c": "not installed",
    r"\.venv/bin/python -m tools\.corpus .* --p4c": "there is no program",
    r"\./gradbed p4 shell ": "no such file|pip",
    r"\./gradbed run torch .*--": "PyTorch|networks need root",
    r"\./gradbed run aggregation$": "networks need root",
    r"\./gradbed run .* --scheduler tcp": "m1|dask",
}
"""What a machine need not have, by the command, and what the one line says then: status 2."""
