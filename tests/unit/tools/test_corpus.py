"""python -m tools.corpus: verdicts and P4Info of a folder of programs, ours beside those of a p4c."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from finsy.proto import p4i

from tests.conftest import ToolHere
from tests.unit.compiler.programs import compile_text, control
from tools.corpus.comparison import find_programs, p4info_differences

LOCALS = "action set(bit<8> v) { hdr.h.a = v; } table t { key = { hdr.h.b: exact; } actions = { set; } size = SIZE; }"
GOOD = control("t.apply();", LOCALS)
BAD = control("hdr.h.nothing = 1;")

# Ours under p4c's name, with other opinions: it refuses newer.p4, and knows less of table.p4.
FAKE = """#!{python}
import re, subprocess, sys
from pathlib import Path
source = sys.argv[-1]
if source.endswith("newer.p4"):
    print("newer.p4(3): [--Werror=unsupported] error: loops", file=sys.stderr)
    sys.exit(1)
ours = "import sys; sys.path.insert(0, {root!r}); from gradbed.switch.shims.p4c import compiler"
outcome = subprocess.run([sys.executable, "-c", ours + "; sys.exit(compiler(sys.argv[1:]))", *sys.argv[1:]])
if source.endswith("table.p4"):
    info = next(Path(a.split("=", 1)[1]) for a in sys.argv if a.startswith("--p4runtime-files="))
    info.write_text(info.read_text().replace("size: 64", "size: 63"))
sys.exit(outcome.returncode)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    programs = tmp_path / "programs"
    (programs / "deep").mkdir(parents=True)
    (programs / "size.p4").write_text("#define SIZE 64\n")
    (programs / "deep" / "good.p4").write_text('#include "size.p4"\n' + GOOD.replace("SIZE", "32"))
    (programs / "table.p4").write_text('#include "size.p4"\n' + GOOD)
    (programs / "newer.p4").write_text(control("for (bit<8> i = 0; i < 3; i = i + 1) { hdr.h.a = i; }"))
    (programs / "bad.p4").write_text(BAD)
    (programs / "other.p4").write_text("// V1Switch(P(), ...) comes elsewhere\n")
    return programs


@pytest.fixture
def p4c(tmp_path: Path) -> str:
    path = tmp_path / "p4c-bm2-ss"
    path.write_text(FAKE.format(python=sys.executable, root=str(Path(__file__).resolve().parents[3])))
    path.chmod(0o755)
    return str(path)


def test_programs_are_files_with_a_v1switch(folder: Path) -> None:
    names = [str(path.relative_to(folder)) for path in find_programs(folder)]
    assert names == ["bad.p4", "deep/good.p4", "newer.p4", "table.p4"]


def test_ours_alone(tool_here: ToolHere, folder: Path) -> None:
    said = tool_here("corpus", str(folder))
    assert said.status == 1
    lines = said.out.splitlines()
    assert [line for line in lines if "refused" in line] == [
        f"bad.p4: refused by ours: {folder}/bad.p4:14:1: header 'bytes_t' has no field 'nothing'"
    ]
    assert lines[-1] == "3 of 4 programs compile"
    (folder / "bad.p4").unlink()
    assert tool_here("corpus", str(folder)).status == 0


@pytest.mark.thorough
def test_beside_p4c(tool_here: ToolHere, folder: Path, p4c: str) -> None:
    said = tool_here("corpus", str(folder), "--p4c", p4c)
    assert said.status == 1
    lines = said.out.splitlines()
    assert "newer.p4: refused by p4c: newer.p4(3): [--Werror=unsupported] error: loops" in lines
    assert "table.p4: tables: I.t: size differs" in lines
    assert {line.split(":")[0] for line in lines[:-2]} == {"bad.p4", "newer.p4", "table.p4"}
    assert lines[-1] == "the same for 2 of 4 programs"


@pytest.mark.thorough
def test_as_json(tool_here: ToolHere, folder: Path, p4c: str) -> None:
    said = tool_here("corpus", str(folder), "--p4c", p4c, "--json")
    assert said.status == 1
    found = {item["program"]: item for item in json.loads(said.out)["programs"]}
    assert list(found) == ["bad.p4", "deep/good.p4", "newer.p4", "table.p4"]
    assert found["deep/good.p4"] == {
        "program": "deep/good.p4",
        "ours": {"accepted": True, "reason": ""},
        "theirs": {"accepted": True, "reason": ""},
        "differences": [],
    }
    assert found["table.p4"]["differences"] == ["tables: I.t: size differs"]
    assert [found["newer.p4"][name]["accepted"] for name in ("ours", "theirs")] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no folder nowhere"),
        (["{empty}"], "has no v1model program"),
        (["{folder}", "--p4c", "/no/p4c"], "--p4c: there is no program /no/p4c that can be run"),
    ],
)
def test_mistakes(tool_here: ToolHere, arguments: list[str], message: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    places = {"folder": folder, "empty": tmp_path / "empty"}
    said = tool_here("corpus", *(argument.format(**places) for argument in arguments))
    assert said.status == 2 and message in said.err


def test_what_can_differ_in_p4info() -> None:
    ours = compile_text(GOOD.replace("SIZE", "64")).p4info
    theirs = p4i.P4Info()
    theirs.CopyFrom(ours)
    theirs.pkg_info.arch = "psa"
    theirs.tables[0].preamble.id += 1
    theirs.actions[0].preamble.name = "other"
    theirs.actions[1].params.clear() if theirs.actions[1].params else theirs.actions[1].preamble.ClearField("alias")
    assert p4info_differences(ours, ours) == []
    lines = p4info_differences(ours, theirs)
    assert [line for line in lines if line.startswith("pkg_info")] == ["pkg_info: arch differs"]
    table = ours.tables[0].preamble.id
    assert f"tables: I.t has id {table:#x}, with p4c {table + 1:#x}" in lines
    only = {line.split(" has ")[0] for line in lines if "only" in line}
    assert only == {"actions: only ours", "actions: only p4c's"}
    assert len(lines) == 5


def test_what_an_older_p4c_writes_as_annotations_is_no_difference() -> None:
    selector = (
        '@selector_size_semantics("sum_of_members") @max_member_weight(9)'
        " action_selector(HashAlgorithm.crc16, 64, 16) s;"
        " action a(bit<8> v) { hdr.h.a = v; } table t { key = { hdr.h.b: exact; hdr.h.c: selector; } actions = { a; }"
        " implementation = s; default_action = a(1); }"
        " table u { key = { hdr.h.b: exact; } actions = { a; } const entries = { 1: a(1); } default_action = a(2); }"
    )
    source = control("t.apply(); u.apply();", selector).replace(
        "V1Switch(", "@platform_property(multicast_group_table_size = 5) V1Switch("
    )
    ours = compile_text(source).p4info
    theirs = p4i.P4Info()
    theirs.CopyFrom(ours)
    for table in theirs.tables:
        table.ClearField("initial_default_action")
        table.ClearField("has_initial_entries")
    theirs.pkg_info.ClearField("platform_properties")
    theirs.pkg_info.annotations.append("@platform_property(multicast_group_table_size = 5)")
    profile = theirs.action_profiles[0]
    profile.ClearField("sum_of_members")
    profile.preamble.annotations.extend(['@selector_size_semantics("sum_of_members")', "@max_member_weight(9)"])
    assert p4info_differences(ours, theirs) == []
    profile.preamble.annotations[1] = "@max_member_weight(8)"
    theirs.pkg_info.annotations[0] = "@platform_property(multicast_group_table_size = 6)"
    assert p4info_differences(ours, theirs) == [
        "pkg_info: platform_properties.multicast_group_table_size differs",
        "action_profiles: I.s: sum_of_members.max_member_weight differs",
    ]
