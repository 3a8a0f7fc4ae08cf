"""python -m tools.conformance: a folder of programs with STF files."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gradbed.common.errors import UserError
from tests.unit.stf.test_stf_command import ADDS_ONE
from tools.conformance.__main__ import app
from tools.conformance.stf_corpus import corpus_programs, read_names


def run(*arguments: object) -> tuple[int, str]:
    outcome = CliRunner().invoke(app, [*map(str, arguments)], standalone_mode=False)
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    return int(outcome.return_value or 0), outcome.stdout


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    files = {
        "good.p4": ADDS_ONE,
        "good.stf": "packet 0 01\nexpect 1 02$\n",
        "bad.p4": ADDS_ONE,
        "bad.stf": "packet 0 01\nexpect 1 03$\n",
        "broken.p4": ADDS_ONE.replace("hdr.h.value +", "hdr.h.walue +"),
        "broken.stf": "",
        "unreadable.p4": ADDS_ONE,
        "unreadable.stf": "packit 0 01",
        "untested.p4": ADDS_ONE,
        "other.p4": "#include <core.p4>\n#include <psa.p4>\n",
        "other.stf": "",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_programs_of_a_corpus(corpus: Path) -> None:
    assert [p.stem for p in corpus_programs(corpus)] == ["bad", "broken", "good", "unreadable"]
    assert [p.stem for p in corpus_programs(corpus, ["good", "bad"])] == ["good", "bad"]
    with pytest.raises(UserError, match="has no v1model program other with an STF file"):
        corpus_programs(corpus, ["other"])
    with pytest.raises(UserError, match="there is no folder"):
        corpus_programs(corpus / "none")
    empty = corpus / "empty"
    empty.mkdir()
    with pytest.raises(UserError, match="has no v1model program with an STF file"):
        corpus_programs(empty)


def test_a_checkout_of_p4c_is_a_corpus_too(tmp_path: Path) -> None:
    samples = tmp_path / "testdata" / "p4_16_samples"
    samples.mkdir(parents=True)
    (samples / "x.p4").write_text(ADDS_ONE)
    (samples / "x.stf").write_text("")
    (samples / "gone.p4").symlink_to(tmp_path / "nowhere.p4")
    (samples / "gone.stf").write_text("")
    assert corpus_programs(tmp_path) == [samples / "x.p4"]


def test_the_table_names_every_failure(corpus: Path) -> None:
    status, said = run(corpus, "--jobs", "2")
    assert status == 1
    rows = dict(line.split(maxsplit=1) for line in said.splitlines()[:4])
    assert rows["good"] == "passed"
    assert rows["bad"].startswith("packet: ")
    assert "bad.stf:2: port 1: the packet differs in h.value: 0x02 instead of 0x03" in rows["bad"]
    assert rows["broken"].startswith("compile: ")
    assert "walue" in rows["broken"]
    assert rows["unreadable"].endswith("unreadable.stf:1: there is no command 'packit'")
    assert said.splitlines()[5:] == ["1 of 4 passed (25.0 %)", "2 failed: compile", "1 failed: packet"]


@pytest.mark.parametrize(
    ("expected", "only", "status"),
    [
        ("good # the only one", [], 0),
        ("good\nbad\n", [], 1),
        ("good\nbad\n", ["good"], 0),
        ("good\nnot-there\n", [], 1),
    ],
)
def test_what_must_pass_decides_the_exit_status(corpus: Path, expected: str, only: list[str], status: int) -> None:
    names = corpus / "expected.txt"
    names.write_text(expected)
    options = [option for name in only for option in ("--only", name)]
    assert run(corpus, "--expect", names, *options)[0] == status


def test_names_are_read_without_comments(tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_text("# all\na\n\n  b # why\n")
    assert read_names(path) == {"a", "b"}
    with pytest.raises(UserError, match="cannot read"):
        read_names(tmp_path / "none")
