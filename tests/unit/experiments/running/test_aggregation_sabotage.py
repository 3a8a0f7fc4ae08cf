"""Aggregation runs whose switches, or whose results, are wrong though all sums are right: each fails."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.conservation.counts import Counts
from gradbed.experiments.programs import P4_SOURCES, Program
from gradbed.experiments.systems.aggregation import metrics
from gradbed.experiments.systems.aggregation import trial as trial_module
from tests.unit.trials import virtual_trial

STAR: Mapping[str, Any] = {
    "topology": {"kind": "star:5"},
    "switches": {"placement": "server-tor", "slots": 64},
    "workload": {"workers": 4, "rounds": 3, "lanes": 32, "values": 6400},
}
SCARCE: Mapping[str, Any] = {**STAR, "switches": {"placement": "server-tor", "slots": 16}}
LEVELS: Mapping[str, Any] = {
    "topology": {"kind": "leaf-spine:3,2,4"},
    "switches": {"placement": "every-tor", "slots": 16},
    "workload": {"workers": 6, "rounds": 3, "lanes": 32, "values": 6400},
}
LOSSY: Mapping[str, Any] = {**STAR, "topology": {"kind": "star:5", "link": {"loss": 0.03}}}
VERY_LOSSY: Mapping[str, Any] = {**STAR, "topology": {"kind": "star:5", "link": {"loss": 0.15}}}
"""So many losses that workers resend fragments of which the switch holds a sum."""
DOUBLED: Mapping[str, Any] = {**STAR, "topology": {"kind": "star:5", "link": {"duplicate": 0.1}}}
ONE: Mapping[str, Any] = {**STAR, "switches": {"placement": "server-tor", "slots": 1}}
SLOTS, POLICY = "include/aggregation/slots.p4", "include/aggregation/slot_policy.p4"
EVENT = "events.count(job_events + (bit<32>)verdict);"
PROGRAMS = {
    "a slot that no ACK frees": (
        SLOTS, "} else if (verdict == Event.RELEASED) {\n                slot.held = 0;",
        "} else if (verdict == Event.RELEASED) {", STAR, "s1 holds",
    ),
    "ACKs that free a slot and are not counted": (
        SLOTS, "if (verdict != Event.NOTHING) {", "if (verdict != Event.NOTHING && verdict != Event.RELEASED) {",
        STAR, "slots; ",
    ),
    "outcomes that are counted twice": (SLOTS, EVENT, f"{EVENT} {EVENT}", STAR, "its slots took in"),
    "collisions that are not counted": (
        SLOTS, "if (verdict != Event.NOTHING) {", "if (verdict != Event.NOTHING && verdict != Event.COLLISION) {",
        SCARCE, "outcomes of designated gradients",
    ),
    "sums that are not counted": (
        SLOTS, "events.count(job_events + (bit<32>)Event.COMPLETED);", "", STAR, "its slots took in",
    ),
    "sums that are complete one worker early": (
        "include/aggregation/verdict.p4", "complete = count >= gradient.fan_in;",
        "complete = count + 1 >= gradient.fan_in;", STAR, "sums of",
    ),
    "exhaustion that is counted with each packet": (
        SLOTS, "if (exhausted) {", "if (true) {", STAR, "times that all slots were held",
    ),
    "collisions that are counted as those of two jobs": (
        "include/aggregation/verdict.p4", "verdict = Event.COLLISION;", "verdict = Event.CONTENTION;",
        SCARCE, "there is one job",
    ),
    "resends that take a sum along and are not counted": (
        SLOTS, "if (verdict != Event.NOTHING) {", "if (verdict != Event.NOTHING && verdict != Event.RESEND_SUMMED) {",
        VERY_LOSSY, "slots; ",
    ),
    "a hash of the job alone": (
        POLICY, "{ gradient.job, gradient.packet_number }, 64w0x100000000", "{ gradient.job }, 64w0x100000000",
        STAR, "used 1 of 64 slots",
    ),
    "a hash without half of the slots": (
        POLICY, "{ selector }, count);", "{ selector & ~32w1 }, count);", STAR, "used 32 of 64 slots",
    ),
    "a collision that is sent past the next switch": (
        SLOTS, "bool finished = verdict == Event.STALE",
        "bool finished = verdict == Event.COLLISION || verdict == Event.STALE",
        LEVELS, "outcomes of designated gradients",
    ),
    "duplicates that count as added": (
        SLOTS, EVENT, EVENT.replace("verdict", "(verdict == Event.DUPLICATE ? Event.ADDED : verdict)"),
        DOUBLED, "fan-ins allow",
    ),
    "exhaustion that is never counted": (
        SLOTS, "if (exhausted) {", "if (false) {", ONE, "that its one slot was held",
    ),
    "a sum that leaves again for every retry": (
        "include/aggregation/verdict.p4", "complete && speaks_for_all", "complete", LOSSY, "that it does so for sent",
    ),
}  # fmt: skip
MEDIAN, MEAN, BYTE_HOPS = statistics.median, statistics.fmean, Counts.byte_hops.fget
assert BYTE_HOPS is not None
RESULTS: Mapping[str, tuple[object, str, object, str]] = {
    "a median of a twentieth of the shortest": (
        metrics.statistics, "median", lambda values: min(values) / 20, "the median of round_time_s is",
    ),
    "a mean that is halved": (
        metrics.statistics, "fmean", lambda values: MEAN(values) / 2, "the mean round time is",
    ),
    "byte hops that are halved": (
        Counts, "byte_hops", property(lambda counts: BYTE_HOPS(counts) // 2), "bytes times hops are",
    ),
}  # fmt: skip


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(
    "sections",
    [STAR, SCARCE, LEVELS, LOSSY, VERY_LOSSY, DOUBLED, ONE],
    ids=["star", "scarce", "levels", "lossy", "very lossy", "doubled", "one slot"],
)
@pytest.mark.parametrize("policy", ["dynamic", "static"])
def test_it_is_right_without(sections: Mapping[str, Any], policy: str) -> None:
    switches = {**sections["switches"], "slot_policy": policy}
    assert virtual_trial("aggregation", **{**sections, "switches": switches}).failures == []


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("what", PROGRAMS)
def test_a_wrong_program_fails_the_run(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, right, wrong, sections, line = PROGRAMS[what]
    sources = tmp_path / "p4src"
    shutil.copytree(P4_SOURCES, sources)
    text = (sources / file).read_text()
    assert text.count(right) == 1
    (sources / file).write_text(text.replace(right, wrong))

    class Wrong(Program):
        @classmethod
        def own(cls, name: str, **macros: object) -> Program:
            return replace(Program.own(name, **macros), source=sources / f"{name}.p4")

    monkeypatch.setattr(trial_module, "Program", Wrong)
    failures = virtual_trial("aggregation", **sections).failures
    assert any(line in failure for failure in failures), failures


@pytest.mark.parametrize("what", RESULTS)
def test_a_wrong_result_fails_the_run(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, name, wrong, line = RESULTS[what]
    monkeypatch.setattr(target, name, wrong)
    failures = virtual_trial("aggregation", **STAR).failures
    assert any(line in failure for failure in failures), failures
