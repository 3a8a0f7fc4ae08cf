"""Each check of a trial fails when what it guards is broken."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.systems import find_system
from gradbed.experiments.systems.training.configuration import TrainingConfiguration
from gradbed.experiments.systems.training.phase import TrainingPhase
from gradbed.hosts.agents.queue_pairs import SEND, NicCollective
from gradbed.hosts.systems.training import rank as rank_module
from gradbed.hosts.systems.training.messages import Messages
from gradbed.hosts.systems.training.plans import contents
from gradbed.hosts.systems.training.rank import Processor, Rank
from tests.command import gradbed
from tests.unit.training.runs import CONTENTS, run

TRANSFORMER = {"preset": "tiny", "dp": 2, "tp": 2, "batch": 8, "layers": 2}
Patch = Callable[[pytest.MonkeyPatch], None]


def failures(workload: dict[str, Any]) -> list[str]:
    return list(run("star:4", workload=workload, collectives=CONTENTS).failures)


def a_wrong_input(patch: pytest.MonkeyPatch) -> None:
    made = contents

    def changed(rank: int, collective: int, values: int) -> Any:
        found = made(rank, collective, values)
        found[-1] += rank == 2
        return found

    patch.setattr(rank_module, "contents", changed)


def a_wrong_message(patch: pytest.MonkeyPatch) -> None:
    """The first one of rank 1 is of another part of its vector."""
    began = Messages.begin_collective

    def begin(self: Messages, subject: int, collective: NicCollective, on_result: Callable[[], None]) -> None:
        if self._rank == 1:
            assert collective.offset_bytes is not None
            offsets, first = collective.offset_bytes.copy(), collective.schedule.kinds.tolist().index(SEND)
            offsets[first] = 0 if offsets[first] else 4
            collective = dataclasses.replace(collective, offset_bytes=offsets)
        began(self, subject, collective, on_result)

    patch.setattr(Messages, "begin_collective", begin)


def a_node_left_out(patch: pytest.MonkeyPatch) -> None:
    """Of rank 2: it is complete, but nobody has done it."""
    ended = Rank._end

    def end(self: Rank, place: int, end_ns: int | None = None) -> None:
        ended(self, place, end_ns)
        self._report.nodes -= self._number == 2 and place == 0

    patch.setattr(Rank, "_end", end)


def a_computation_of_another_length(patch: pytest.MonkeyPatch) -> None:
    began = Processor.begin

    def begin(self: Processor, place: int, node: Any, now_ns: int) -> None:
        self._slowdown = 1.01
        began(self, place, node, now_ns)

    patch.setattr(Processor, "begin", begin)


def an_end_before_its_time(patch: pytest.MonkeyPatch) -> None:
    take = TrainingPhase.take

    def hurried(self: TrainingPhase, event: Any) -> None:
        take(self, {**event, "end_ns": event["begin_ns"] + 1} if event["event"] == "iteration" else event)

    patch.setattr(TrainingPhase, "take", hurried)


BROKEN: dict[str, tuple[Patch, dict[str, Any], str]] = {
    "input": (a_wrong_input, {"size_bytes": 4000}, r"rank \d, .*: the result of all-reduce 0 is wrong"),
    "message": (a_wrong_message, {"size_bytes": 4000}, r"the result of all-reduce 0 is wrong"),
    "node": (a_node_left_out, {"size_bytes": 4000}, r"job 1, rank 2, iteration 0: did 0 of 1 nodes"),
    "length": (
        a_computation_of_another_length,
        TRANSFORMER,
        r"rank 0, iteration 0: computed for \d+ ns, by its trace",
    ),
    "too soon": (an_end_before_its_time, TRANSFORMER, r"rank 0, iteration 0: ended before it could have computed"),
    "too fast": (
        an_end_before_its_time,
        {"size_bytes": 4_000_000},
        r"h1 received \d+ bytes of messages in 1 ns, more",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_seen(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, workload, said = BROKEN[what]
    patch(monkeypatch)
    found = failures(workload)
    assert [line for line in found if re.search(said, line)], found


@pytest.mark.parametrize("workload", [{"size_bytes": 4000}, TRANSFORMER], ids=["collective", "transformer"])
def test_what_is_not_broken_passes(workload: dict[str, Any]) -> None:
    assert failures(workload) == []


@pytest.mark.parametrize(
    ("control", "sections", "consequence"),
    [
        ("none", {}, None),
        ("dctcp", {}, "it follows losses alone"),
        ("dcqcn", {}, "its rate stays the link's"),
        ("dctcp", {"switches": {"k_min": 20}}, None),
        ("dctcp", {"collectives": {"in_network": "aggregation"}}, None),
        ("dctcp", {"switches": {"fabric_program": "interconnect:least-loaded"}}, None),
    ],
)
def test_a_control_without_marks_is_warned_of(
    control: str, sections: dict[str, Any], consequence: str | None
) -> None:
    """Other switches than training's know no k_min: it would be no remedy."""
    configuration = TrainingConfiguration.model_validate({"transport": {"congestion_control": control}, **sections})
    expected = f"--congestion-control {control}: no switch marks packets; take --k-min, or {consequence}"
    assert list(find_system("training").warnings(configuration)) == ([expected] if consequence else [])


STUDY = """
name: unmarked
system: training
topology: {kind: "star:4", link: {rate_mbps: 100000, delay_us: 1}}
workload: {kind: collective, size_bytes: 1000}
sweep:
  product:
    transport.congestion_control: [none, dctcp]
    transport.mtu_bytes: [1000, 4096]
"""


def test_a_study_says_once_that_nothing_marks(tmp_path: Path) -> None:
    (tmp_path / "unmarked.yaml").write_text(STUDY)
    ended = gradbed("run", tmp_path / "unmarked.yaml", "--output", tmp_path)
    assert ended.returncode == 0, ended.stderr
    line = "gradbed: --congestion-control dctcp: no switch marks packets; take --k-min, or it follows losses alone\n"
    assert ended.stderr.count(line) == ended.stderr.count("--congestion-control") == 1
