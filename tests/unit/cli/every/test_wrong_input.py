"""Every kind of mistake in every command: one line says what is wrong, status 2, and nothing on standard output."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import Ended, GradbedHere

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
LINES = (HERE / "wrong_lines.txt").read_text().splitlines()
COMPILERS = re.compile(r":\d+:\d+: error: ")
"""As gcc a compiler shows the source below its message, with a mark, and may have a hint."""
OFTEN = 8
"""Of so many lines one is tried each time; all of them take minutes."""

STUDY = """name: small
system: interconnect
clock: virtual
topology: {kind: "optical-electrical:2"}
sweep: {product: {traffic.load: [0.2, 0.4]}}
"""
TOPOLOGY = """hosts: {h1: {}, h2: {}}
switches: {s1: {}}
links: [[h1, s1], [s1, h2]]
"""
RULE = (
    "tables: {routes: [{routes: shortest, match: {hdr.ipv4.dst_addr: $dst_ip}, "
    "action: forward, params: {prt: $port}}]}\n"
)
WRONG_FILES = {
    "study: not YAML": ("run F.yaml", "name: [\n"),
    "study: empty": ("run F.yaml", ""),
    "study: a list": ("run F.yaml", "- 1\n"),
    "study: binary": ("run F.yaml", "\x00\x01\x02"),
    "study: without a system": ("run F.yaml", STUDY.replace("system: interconnect\n", "")),
    "study: of no system": ("run F.yaml", STUDY.replace("system: interconnect", "system: interconect")),
    "study: without a name": ("run F.yaml", STUDY.replace("name: small\n", "")),
    "study: a bad name": ("run F.yaml", STUDY.replace("name: small", "name: a/b")),
    "study: an unknown section": ("run F.yaml", STUDY + "trafic: {}\n"),
    "study: an unknown key": ("run F.yaml", STUDY + "traffic: {lod: 1}\n"),
    "study: a key twice": ("run F.yaml", STUDY + "name: twice\n"),
    "study: an unknown swept path": ("run F.yaml", STUDY.replace("traffic.load", "traffic.lod")),
    "study: nothing swept": ("run F.yaml", STUDY.replace("[0.2, 0.4]", "[]")),
    "study: a value that cannot be": ("run F.yaml", STUDY.replace("0.4", "-4")),
    "study: zip of two lengths": ("run F.yaml", STUDY.replace("product", "zip").replace("]}}", "], clock: [real]}}")),
    "study: an unknown metric": ("run F.yaml", STUDY + "metrics: [speed]\n"),
    "study: a figure of nothing": ("run F.yaml", STUDY + "figures: {f: {x: traffic.load, y: speed}}\n"),
    "study: a figure outside of the results": (
        "run F.yaml",
        STUDY + "figures: {../../x: {x: traffic.load, y: loss}}\n",
    ),
    "study: a figure at a path": ("run F.yaml", STUDY + "figures: {/etc/x: {x: traffic.load, y: loss}}\n"),
    "study: an unknown kind of figure": (
        "run F.yaml",
        STUDY + "figures: {f: {kind: pie, x: seed, y: loss}}\n",
    ),
    "study: a figure that is no file": ("run F.yaml", STUDY + "figures: {a/b: {x: traffic.load, y: loss}}\n"),
    "study: a figure of what is not swept": ("run F.yaml", STUDY + "figures: {f: {x: routing.policy, y: loss}}\n"),
    "study: compares what is not swept": ("run F.yaml", STUDY + "compare: routing.policy\n"),
    "study: a goal without a limit": ("run F.yaml", STUDY + "goals: {g: {metric: loss}}\n"),
    "study: a goal for nothing": ("run F.yaml", STUDY + "goals: {g: {metric: speed, at_most: 1}}\n"),
    "study: too few seeds": ("run F.yaml", STUDY + "repetitions: 3\nseeds: [1]\n"),
    "study: a fault at no link": (
        "run F.yaml",
        STUDY + "faults: [{fault: link-down, link: [h1, h2], at_ms: 1}]\n",
    ),
    "topology: not YAML": ("topo show F.yaml", "hosts: {\n"),
    "topology: empty": ("topo show F.yaml", ""),
    "topology: a link to nowhere": ("topo show F.yaml", TOPOLOGY.replace("h2]]", "h3]]")),
    "topology: a rate without end": ("topo show F.yaml", TOPOLOGY.replace("h2]]", "h2, {rate_mbps: .inf}]]")),
    "topology: an unknown key": ("topo show F.yaml", TOPOLOGY + "colour: red\n"),
    "topology: GraphML that is none": ("topo show F.graphml", "<graphml>"),
    "topology: GraphML without switches": ("topo show F.graphml", "<graphml></graphml>"),
    "topology: of a run": ("run interconnect --topology F.yaml", TOPOLOGY),
    "P4: a lexical error": ("p4 compile F.p4", 'const bit<8> A = "x;\n'),
    "P4: a syntax error": ("p4 compile F.p4", "control C( { }\n"),
    "P4: an include that is missing": ("p4 compile F.p4", '#include "nothing.p4"\n'),
    "P4: without a main": ("p4 compile F.p4", "const bit<8> A = 1;\n"),
    "P4: in a run": ("run workload F.p4", "control C( { }\n"),
    "STF: an unknown word": ("p4 stf PROGRAM F.stf", "paket 1 00\n"),
    "STF: no such table": ("p4 stf PROGRAM F.stf", "add nothing a:1 drop()\n"),
    "STF: no such table, for coverage": ("p4 coverage PROGRAM --stf F.stf", "add nothing a:1 drop()\n"),
    "STF: no such port": ("p4 stf PROGRAM F.stf", "packet 512 00\n"),
    "STF: odd digits": ("p4 stf PROGRAM F.stf", "packet 1 000\n"),
    "entries: not YAML": ("p4 plan PROGRAM F.yaml", "tables: {\n"),
    "entries: no such table": ("p4 plan PROGRAM F.yaml", "tables: {nothing: []}\n"),
    "entries: no such parameter": ("p4 plan PROGRAM F.yaml", RULE),
    "entries: JSON that is none": ("p4 plan PROGRAM F.json", "{"),
    "topology: a name that clears the terminal": (
        "topo show F.yaml",
        TOPOLOGY.replace("h2: {}", '"h\\e[2J": {}'),
    ),
    "entries: JSON of something else": ("p4 plan PROGRAM F.json", "[1, 2]"),
    "entries: Python that fails": ("p4 plan PROGRAM F.py", "1 / 0\n"),
    "entries: Python that ends": ("p4 plan PROGRAM F.py", "raise SystemExit(0)\n"),
    "pcap: too short": ("run workload PROGRAM --replay F.pcap", "\xd4\xc3"),
    "pcap: text": ("run workload PROGRAM --replay F.pcap", "not a capture at all, but text\n"),
    "pcap: to trace": ("p4 trace PROGRAM --pcap F.pcap", "not a capture at all, but text\n"),
    "results: JSON that is none": ("report FOLDER", "{"),
    "results: JSON of something else": ("report FOLDER", "[]"),
    "results: to replay": ("replay FOLDER", "{}"),
}
"""A command, and what is in its file F; FOLDER: of results, with that as study.json."""


def check(ended: Ended) -> None:
    first, *more = ended.err.splitlines() or [""]
    assert ended.status == 2, (ended.status, ended.out[:300], ended.err)
    assert ended.out == ""
    assert first.strip() and "Traceback" not in ended.err and "\x1b" not in ended.err
    assert len(more) <= (3 if COMPILERS.search(first) else 0), ended.err
    assert "None" not in first


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a program, its entries and a test, a text file and an empty folder, as the working directory."""
    template = ROOT / "cli" / "templates" / "program"
    (tmp_path / "ok.p4").write_text((template / "program.p4").read_text())
    for name in ("entries.yaml", "test.stf"):
        (tmp_path / name).write_text((template / name).read_text())
    (tmp_path / "file.txt").write_text("x\n")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_many_of_every_command() -> None:
    from typer.main import get_command

    from gradbed.cli.main import app

    assert len(LINES) == len(set(LINES)) > 150
    commands = set(get_command(app).list_commands(None))  # type: ignore[attr-defined]
    assert commands - {line.split()[0] for line in LINES} == {"python", "test"}, "they hand everything on"


@pytest.mark.parametrize(
    "line",
    [pytest.param(line, marks=[pytest.mark.thorough] if number % OFTEN else []) for number, line in enumerate(LINES)],
)
def test_a_wrong_command_line_is_one_line(line: str, folder: Path, gradbed_here: GradbedHere) -> None:
    check(gradbed_here(*shlex.split(line)))


@pytest.mark.commit_cases(24)
@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_broken_file_is_one_line(name: str, folder: Path, gradbed_here: GradbedHere) -> None:
    line, content = WRONG_FILES[name]
    words = line.replace("PROGRAM", "ok.p4").replace("FOLDER", "run").split()
    file = next((word for word in words if word.startswith("F.")), "run/study.json")
    (folder / "run").mkdir()
    (folder / file).write_text(content, encoding="latin-1")
    check(gradbed_here(*words))
