"""Two programs, or two kinds of switches, under one workload: from the command line to the table of differences."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.study.running import runner
from gradbed.experiments.systems.workload.configuration import WorkloadConfiguration, WorkloadShorthands
from tests.conftest import GradbedHere
from tests.unit.experiments.study.coin import in_this_process
from tests.unit.workload.runs import OWN, ROUTES


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program and its changed copy, with the entries beside each."""
    for name, text in (("one", OWN.read_text()), ("two", OWN.read_text())):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.p4").write_text(text)
        (tmp_path / name / "entries.yaml").write_text(ROUTES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "open_executor", in_this_process)
    return tmp_path


RUN = ("run", "workload", "one/one.p4", "--topology", "star:3", "--packets", "60")


@pytest.mark.thorough
def test_two_programs_stand_beside_each_other(two: Path, gradbed_here: GradbedHere) -> None:
    (two / "two" / "entries.yaml").write_text("tables: {}\n")
    ended = gradbed_here(*RUN, "--compare", "two/two.p4")
    said = ended.out
    assert ended.status == 0
    assert "one.p4" in said and "two.p4" in said and "-60 (-100.0%)" in said
    assert "nothing arrived" in said


def axes(**given: Any) -> dict[str, list[Any]]:
    values = {"program": {"path": Path("one/one.p4"), **given.pop("program", {})}}
    return {path: list(found) for path, found in WorkloadShorthands(**given).axes(values).items()}


def test_what_fills_the_other_programs_tables(two: Path) -> None:
    own, other = two / "one" / "one.p4", two / "two" / "two.p4"
    beside = other.with_name("entries.yaml")
    assert axes(compare=other) == {"program.path": [own, other], "program.entries_file": [None, beside]}
    named = axes(compare=other, compare_entries="mine.yaml", program={"entries_file": Path("e.yaml")})
    assert named["program.entries_file"] == [Path("e.yaml"), two / "mine.yaml"]
    beside.unlink()
    assert axes(compare=other) == {"program.path": [own, other]}
    # In the same folder there is one file of entries for both.
    assert axes(compare=own.with_name("other.p4")) == {"program.path": [own, own.with_name("other.p4")]}
    # Of one program entries are what differs.
    assert list(axes(compare=own, compare_entries="mine.yaml")) == ["program.entries_file", "program.path"]


def test_kinds_of_switches_are_an_axis(two: Path) -> None:
    assert axes(switch=("bmv2", "gradbed")) == {"program.model": ["bmv2", "gradbed"]}
    assert axes(switch=("bmv2",), compare="two/two.p4")["program.model"] == ["bmv2", "bmv2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--switch", "bmv2,gradbed"), "simple_switch_grpc is not installed"),
        (("--switch", "bmv2,gradbed", "--compare", "two/two.p4"), "one comparison at a time"),
        (("--switch", "ovs"), "--switch: must be one of 'gradbed', 'bmv2', got 'ovs'"),
        (("--compare", "two/none.p4"), "cannot read .*none.p4"),
        (("--compare-entries", "mine.yaml"), "--compare-entries goes with --compare"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    arguments: tuple[str, ...],
    message: str,
    two: Path,
    monkeypatch: pytest.MonkeyPatch,
    gradbed_here: GradbedHere,
) -> None:
    monkeypatch.setenv("GRADBED_BMV2", str(two / "simple_switch_grpc"))
    ended = gradbed_here(*RUN, *arguments)
    said = ended.err.strip().splitlines()
    assert (ended.status, len(said)) == (2, 1)
    assert re.search(message, said[0])


@pytest.mark.thorough
def test_expectations_of_the_command_line_decide_its_status(two: Path, gradbed_here: GradbedHere) -> None:
    assert gradbed_here(*RUN, "--expect", "loss=0", "--expect", "register:seen[1] >= 60").status == 0
    ended = gradbed_here(*RUN, "--expect", "loss=0", "--expect", "p99_us<0.001")
    assert ended.status == 1 and "FAILED: expected p99_us < 0.001, found" in ended.out
    ended = gradbed_here(*RUN, "--expect", "loss~0")
    assert ended.status == 2 and "--expect: 'loss~0' is no condition such as loss=0" in ended.err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--packets", "0"), "gradbed: --packets: must be at least 1, got 0"),
        (("--load", "0"), "gradbed: --load: must be more than 0, got 0.0"),
        (("--sizes", "wide"), "gradbed: --sizes: must be one of 'fixed', 'uniform', .*'data-mining', got 'wide'"),
        (
            ("--background", "h1"),
            "gradbed: --background: gradients of one host need no network: name two hosts or more",
        ),
        (
            ("--transport", "tcp"),
            "gradbed: --transport: tcp needs the real clock: use --transport udp, or --clock real",
        ),
    ],
)
def test_wrong_options_are_one_line(
    arguments: tuple[str, ...], line: str, two: Path, gradbed_here: GradbedHere
) -> None:
    ended = gradbed_here(*RUN, *arguments)
    assert ended.status == 2 and re.fullmatch(line, ended.err.strip())


def test_conditions_of_a_list_are_those_of_a_mapping() -> None:
    lines = ["loss=0", "p99_us < 200", "register:seen[0]>0", "mean_us=10..20", "sent_packets==5"]
    expect = {
        "loss": "0",
        "p99_us": "< 200",
        "register:seen[0]": "> 0",
        "mean_us": "10..20",
        "sent_packets": "== 5",
    }
    assert WorkloadConfiguration.model_validate({"expect": lines}).expect == expect
    with pytest.raises(ValueError, match="loss stands twice"):
        WorkloadConfiguration.model_validate({"expect": ["loss=0", "loss<1"]})
    with pytest.raises(UserError, match="which program"):
        WorkloadShorthands(compare=OWN).axes({})
