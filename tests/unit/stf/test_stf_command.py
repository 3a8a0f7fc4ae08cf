"""gradbed p4 stf: one program with STF files."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gradbed.cli.main import app
from gradbed.common.errors import UserError

PROGRAM = """
#include <v1model.p4>
header h_t { bit<8> value; }
struct headers_t { h_t h; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; hdr.h.value = hdr.h.value + STEP; }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control U(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
"""
ADDS_ONE = PROGRAM.replace("STEP", "1")


def run(*arguments: object) -> tuple[int, str]:
    outcome = CliRunner().invoke(app, ["p4", *map(str, arguments)], standalone_mode=False)
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return int(outcome.return_value or 0), outcome.stdout


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    files = {
        "good.p4": ADDS_ONE,
        "good.stf": "packet 0 01\nexpect 1 02$\n",
        "bad.p4": ADDS_ONE,
        "bad.stf": "packet 0 01\nexpect 1 03$\n",
        "broken.p4": ADDS_ONE.replace("hdr.h.value +", "hdr.h.walue +"),
        "broken.stf": "",
        "untested.p4": ADDS_ONE,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_one_program(programs: Path) -> None:
    assert run("stf", programs / "good.p4") == (0, f"passed  {programs}/good.stf\n")
    status, said = run("stf", programs / "good.p4", programs / "good.stf", programs / "bad.stf")
    assert status == 1
    assert said.splitlines()[:2] == [f"passed  {programs}/good.stf", f"FAILED  {programs}/bad.stf"]
    assert said.splitlines()[2].startswith(f"  {programs}/bad.stf:2: port 1:")
    with pytest.raises(UserError, match=r"broken\.p4:\d+:\d+: error"):
        run("stf", programs / "broken.p4")
    with pytest.raises(UserError, match=r"cannot read .*untested\.stf"):
        run("stf", programs / "untested.p4")


def test_macros_and_json_in_place_of_compiling(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (programs / "step.p4").write_text(PROGRAM)
    assert run("stf", programs / "step.p4", programs / "good.stf", "-D", "STEP")[0] == 0
    assert run("stf", programs / "step.p4", programs / "bad.stf", "-D", "STEP=2")[0] == 0
    monkeypatch.chdir(programs)
    run("compile", "step.p4", "-D", "STEP=2")
    assert run("stf", "good.p4", "bad.stf", "--bmv2-json", "step.json")[0] == 0
    for text, problem in (
        ("[]", "it is not an object"),
        ("{", "is not JSON"),
        ('{"pipelines": 3}', "BMv2 JSON: pipelines"),
    ):
        (programs / "step.json").write_text(text)
        with pytest.raises(UserError, match=problem):
            run("stf", "good.p4", "bad.stf", "--bmv2-json", "step.json")
