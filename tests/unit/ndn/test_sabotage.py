"""Runs of routers that do something wrong: none is told to be right."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradbed.experiments.programs import P4_SOURCES, Program
from gradbed.experiments.systems.ndn import trial as trial_module
from gradbed.hosts.systems.ndn.node import NdnNode
from tests.unit.ndn.runs import run

LOSSY = {"kind": "star:4", "link": {"loss": 0.1}}
SABOTAGES = {
    "a copy more for port 2": (
        "ndn.p4", "waiting_for_prefix) & ~meta.in_port;", "waiting_for_prefix | 2) & ~meta.in_port;",
        {"topology": {"kind": "fat-tree:4"}},
        "pushes crossed",
    ),
    "stores that answer with another loss": (
        "include/ndn/content_store.p4", "content_loss.read(hdr.content.loss, row);", "hdr.content.loss = 1;",
        {"topology": LOSSY}, "the mean loss is",
    ),
    "stores that keep nothing, so that who asks late is answered by the publisher": (
        "include/ndn/content_store.p4", "content_name.write(row, meta.id);", "content_name.write(row, 0);",
        {"topology": {"kind": "fat-tree:4", "link": {"rate_mbps": 100, "delay_us": 50}},
         "workload": {"exchange": "pull", "peers": 5, "rounds": 2, "values": 700}},
        "links, 1120 are enough",
    ),
    "hops that count twice": (
        "include/ndn/hop.p4", "hdr.hop_limit.hops = hdr.hop_limit.hops - 1;",
        "hdr.hop_limit.hops = hdr.hop_limit.hops - 2;",
        {"topology": LOSSY}, "Interests from 2 links away",
    ),
    "stores that never answer": (
        "include/ndn/content_store.p4", "            if (first || second) {", "            if (false) {",
        {"topology": LOSSY, "workload": {"peers": 4, "rounds": 2, "values": 6400}},
        "probes, though its link lost",
    ),
    "stores that answer for a sixteenth of what they hold": (
        "include/ndn/content_store.p4", "            if (first || second) {",
        "            if ((first || second) && meta.id[3:0] == 1) {",
        {"topology": {"kind": "star:8", "link": {"loss": 0.05}},
         "workload": {"peers": 8, "rounds": 1, "values": 6400}},
        "packets and s1 evicted",
    ),
    "stores that answer and say that they do not": (
        "include/ndn/content_store.p4", "                hit = true;", "                hit = false;",
        {"topology": LOSSY, "workload": {"peers": 4, "rounds": 2, "values": 6400}},
        "from its store, sent",
    ),
    "hits that are counted twice": (
        "include/ndn/content_store.p4", "content_hits.count(hops);",
        "content_hits.count(hops); content_hits.count(hops);",
        {"topology": LOSSY}, "Interests up with success",
    ),
    "equal Interests that all go on": (
        "include/ndn/pending_interests.p4", "                    verdict = Pending.AGGREGATED;",
        "                    verdict = Pending.FORWARD;",
        {"topology": {"kind": "fat-tree:4", "link": {"rate_mbps": 100, "delay_us": 50}},
         "workload": {"exchange": "pull", "peers": 5, "rounds": 2, "values": 700}},
        "are enough",
    ),
    "equal Interests that all go on where pushes get lost": (
        "include/ndn/pending_interests.p4", "                    verdict = Pending.AGGREGATED;",
        "                    verdict = Pending.FORWARD;",
        {"topology": LOSSY, "workload": {"peers": 4, "rounds": 2, "values": 6400}},
        "were new to its PIT or due again",
    ),
    "Data that are counted twice when they are kept": (
        "include/ndn/content_store.p4", "content_kept.count(0);", "content_kept.count(0); content_kept.count(0);",
        {}, "Data, ",
    ),
    "rows that are counted as evicted when they are free": (
        "include/ndn/content_store.p4", "if (first_name != 0 && second_name != 0) {", "if (true) {",
        {}, "it cannot hold 0",
    ),
    "pending Interests that are counted twice when they are satisfied": (
        "include/ndn/pending_interests.p4", "pending_satisfied.count(0);",
        "pending_satisfied.count(0); pending_satisfied.count(0);",
        {"topology": LOSSY, "workload": {"peers": 4, "rounds": 2, "values": 6400}}, "pending Interests and evicted",
    ),
    "departures that are counted twice": (
        "include/ndn/packet_counters.p4", "ndn_out.count(cell);", "ndn_out.count(cell); ndn_out.count(cell);", {},
        "packets, the link brought",
    ),
}  # fmt: skip


def test_it_is_right_without() -> None:
    for sections in ({"topology": {"kind": "star:4"}}, {"topology": LOSSY}):
        assert run(workload={"peers": 4, "rounds": 2}, **sections).failures == []
    assert run(workload={"peers": 4, "rounds": 2, "values": 6400}, topology=LOSSY).failures == []
    many = run(
        workload={"peers": 8, "rounds": 1, "values": 6400}, topology={"kind": "star:8", "link": {"loss": 0.05}}
    )
    assert many.failures == [] and any(row["content_evicted"] for row in many.tables["routers"])
    timing = {"compute_us": 150_000, "compute_distribution": "exponential"}
    busy = run(workload={"peers": 4, "rounds": 8}, topology={"kind": "star:4"}, timing=timing)
    assert busy.failures == [], "probes wait while a publisher computes"


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("what", SABOTAGES)
def test_it_is_told(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, right, wrong, sections, line = SABOTAGES[what]
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
    standard: dict[str, Any] = {"topology": {"kind": "star:4"}, "workload": {"peers": 4, "rounds": 2}}
    failures = run(**standard | sections).failures
    assert any(line in failure for failure in failures)


def test_a_peer_that_hears_another_loss_than_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    publish = NdnNode.publish

    def wrong(self: NdnNode, version: int, publication: Any) -> None:
        head = replace(publication.head, loss=publication.head.loss + 1e-9)
        publish(self, version, replace(publication, head=head))

    monkeypatch.setattr(NdnNode, "publish", wrong)
    for mode in ("synchronous", "asynchronous"):
        workload: Mapping[str, Any] = {"kind": "training", "mode": mode, "peers": 3, "rounds": 2, "hidden_units": 8}
        failures = run(topology={"kind": "star:3"}, workload=workload, timing={"compute_us": 1000}).failures
        assert any("mean loss" in line or "its losses are not" in line for line in failures)
