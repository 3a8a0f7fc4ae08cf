"""p4c's command lines on our compiler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from finsy.proto import p4i
from google.protobuf import json_format, text_format

from gradbed.common.errors import UserError
from gradbed.switch.codegen.program import cache_entry, find_build
from gradbed.switch.shims.p4c import compiler, driver

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
#include "ports.p4"
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers { ethernet_t ethernet; }
struct metadata {}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control Verify(inout headers hdr, inout metadata meta) { apply {} }
control In(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    action forward(bit<9> port) { sm.egress_spec = port; }
    table hosts {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; NoAction; }
        default_action = NoAction();
        size = SIZE;
    }
    apply { hosts.apply(); if (sm.ingress_port == DOWN) { mark_to_drop(sm); } }
}
control Eg(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply {} }
control Compute(inout headers hdr, inout metadata meta) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(P(), Verify(), In(), Eg(), Compute(), D()) main;
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """hosts.p4 in the current directory, with what it includes in another."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts.p4").write_text(PROGRAM)
    (tmp_path / "unclosed.p4").write_text('#include "missing.p4"\n')
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "ports.p4").write_text("const bit<9> DOWN = 7;\n")
    return "hosts.p4"


INCLUDING = ["-I", "include", "-DSIZE=77"]


def table_size(path: Path) -> int:
    tables = json.loads(path.read_text())["pipelines"][0]["tables"]
    return next(int(table["max_size"]) for table in tables if table["name"] == "In.hosts")


def test_the_compiler_writes_the_file_it_is_told_to(program: str, tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    arguments = ["--p4v", "16", "--p4runtime-files", "build/a.txtpb,build/a.json,build/a.bin", "-o", "build/x.json"]
    assert compiler([*arguments, *INCLUDING, program]) == 0
    assert table_size(tmp_path / "build" / "x.json") == 77
    infos = [p4i.P4Info() for _ in range(3)]
    text_format.Parse((tmp_path / "build" / "a.txtpb").read_text(), infos[0])
    json_format.Parse((tmp_path / "build" / "a.json").read_text(), infos[1])
    infos[2].ParseFromString((tmp_path / "build" / "a.bin").read_bytes())
    assert infos[0] == infos[1] == infos[2]
    assert infos[0].tables[0].size == 77


def test_the_driver_writes_into_a_folder(program: str, tmp_path: Path) -> None:
    usual = ["--target", "bmv2", "--arch", "v1model", "--std", "p4-16"]
    assert driver([*usual, "--p4runtime-files", "i.txt", "-o", "new/folder", *INCLUDING, program]) == 0
    assert table_size(tmp_path / "new" / "folder" / "hosts.json") == 77
    assert "In.hosts" in (tmp_path / "i.txt").read_text()
    assert driver([*INCLUDING, program]) == 0
    assert table_size(tmp_path / "hosts.json") == 77


@pytest.mark.parametrize(("format_", "first"), [("text", b"pkg_info"), ("json", b"{"), (None, b"\n")])
def test_the_older_option_for_p4info(program: str, tmp_path: Path, format_: str | None, first: bytes) -> None:
    arguments = ["--p4runtime-file", "info"] + (["--p4runtime-format", format_] if format_ else [])
    assert compiler([*arguments, *INCLUDING, program]) == 0
    assert (tmp_path / "info").read_bytes().lstrip(b"# \n" if format_ == "text" else b"").startswith(first)


def test_macros_can_be_taken_back(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert compiler([*INCLUDING, "-U", "SIZE", program]) == 1
    assert "SIZE" in capsys.readouterr().err


def test_options_without_effect_are_named(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    harmless = ["--toJSON", "ir.json", "-O3", "-Wall", "-T", "parser:3", "--ndebug", "-MMD"]
    assert compiler([*harmless, *INCLUDING, program]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    lines = [line for line in said.err.splitlines() if line.startswith("p4c-bm2-ss: ")]
    assert [line.split()[1] for line in lines] == [
        "--toJSON",
        "-O3",
        "-Wall",
        "-T",
        "--ndebug",
        "-MMD",
    ]
    assert not Path("ir.json").exists()


def test_preprocessing_alone(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert compiler(["-E", "-o", "x.json", *INCLUDING, program]) == 0
    text = capsys.readouterr().out
    assert "const bit<9> DOWN = 7;" in text
    assert "size=77;" in text.replace(" ", "")
    assert "#include" not in text
    assert not Path("x.json").exists()


def test_the_driver_writes_what_was_preprocessed_to_a_file(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    """p4net reads it."""
    assert driver(["-E", "-o", "out", *INCLUDING, program]) == 0
    assert [path.name for path in Path("out").iterdir()] == [f"{Path(program).stem}.p4i"]
    text = (Path("out") / f"{Path(program).stem}.p4i").read_text()
    assert "const bit<9> DOWN = 7;" in text and "#include" not in text
    assert capsys.readouterr().out == ""
    # It is a program again.
    assert compiler(["-o", "again.json", f"out/{Path(program).stem}.p4i"]) == 0
    assert '"In.hosts"' in Path("again.json").read_text()


def test_the_driver_compiles_what_was_preprocessed_before(program: str, tmp_path: Path) -> None:
    """With -e, p4c reads FOLDER/NAME.p4i instead of the program and what it includes, whatever they say by now."""
    (tmp_path / "build").mkdir()
    assert driver(["-E", "-o", "build", *INCLUDING, program]) == 0
    (tmp_path / "include" / "ports.p4").write_text("const bit<9> DOWN = 8;\n")
    later = ["-e", "-o", "build", "-I", "include", "-D", "SIZE=78", program]
    assert driver(later) == 0
    assert table_size(tmp_path / "build" / "hosts.json") == 77
    assert "0x0007" in (tmp_path / "build" / "hosts.json").read_text()

    (tmp_path / "build" / "hosts.p4i").write_text("this is no program;")
    assert driver(later) == 1


def test_there_must_be_something_preprocessed(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert driver(["-e", "-o", "build", *INCLUDING, program]) == 1
    assert "build/hosts.p4i: No such file" in capsys.readouterr().err


def test_errors_are_status_1_and_leave_no_files(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.p4").write_text(PROGRAM.replace("sm.egress_spec = port", "sm.egress_spec = prot"))
    assert compiler(["-o", "x.json", "--p4runtime-files", "x.txt", *INCLUDING, "wrong.p4"]) == 1
    assert "wrong.p4:13:52: error:" in capsys.readouterr().err
    assert not Path("x.json").exists()
    assert not Path("x.txt").exists()


def test_warnings(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    unused = PROGRAM.replace("apply { hosts.apply();", "apply {")
    Path("unused.p4").write_text(unused)
    assert compiler([*INCLUDING, "unused.p4"]) == 0
    assert "warning:" in capsys.readouterr().err
    assert compiler([*INCLUDING, "--Wdisable", "unused.p4"]) == 0
    assert capsys.readouterr().err == ""
    assert compiler([*INCLUDING, "--Werror", "-o", "x.json", "unused.p4"]) == 1
    assert "--Werror makes them errors" in capsys.readouterr().err
    assert not Path("x.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no input file"),
        (["a.p4", "b.p4"], "only one input file"),
        (["missing.p4"], "missing.p4: No such file"),
        (["-E", "unclosed.p4"], "error: "),
        (["--bogus", "hosts.p4"], "Unknown option --bogus"),
        (["--std", "p4-14", "hosts.p4"], "P4_16 is the only language"),
        (["--p4v=14", "hosts.p4"], "P4_16 is the only language"),
        (["--target", "tofino", "hosts.p4"], "bmv2 is the only target"),
        (["--arch", "psa", "hosts.p4"], "v1model is the only architecture"),
        (["--p4runtime-files", "a.yaml", "hosts.p4"], "can be .txt, .txtpb, .json or .bin"),
        (["--p4runtime-file", "a", "--p4runtime-format", "yaml", "hosts.p4"], "formats are binary, text and json"),
        (["--p4runtime-entries-files", "a.txt", "hosts.p4"], "entries are not written"),
        (["--fromJSON", "ir.json", "hosts.p4"], "give the .p4 file"),
        ([*INCLUDING, "-o", "no/such/folder/x.json", "hosts.p4"], "cannot write no/such/folder/x.json"),
    ],
)
def test_mistakes(program: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert compiler(arguments) == 1
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


@pytest.mark.parametrize("command", [driver, compiler])
def test_help_and_version(command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["--version"]) == 0
    assert "Version 1." in capsys.readouterr().out
    assert command(["--help"]) == 0
    assert "--p4runtime-files" in capsys.readouterr().out


def test_the_switch_finds_the_program_built(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A client waits ten seconds for its push; the C compiler may take as long on a busy machine."""
    monkeypatch.setenv("GRADBED_CACHE", str(tmp_path / "cache"))
    arguments = ["-I", "include", "-D", "SIZE=77", program, "-o", "out.json"]
    assert compiler(arguments) == 0
    entry = cache_entry(json.loads(Path("out.json").read_text()), "-O2")
    assert entry is not None and find_build(entry) is not None

    def no_compiler() -> tuple[str, str]:
        raise UserError("no C compiler found")

    # Who only compiles needs none.
    monkeypatch.setattr("gradbed.switch.codegen.program.compiler", no_compiler)
    Path("out.json").unlink()
    assert (compiler(arguments), capsys.readouterr().err) == (0, "")
    assert Path("out.json").exists()
