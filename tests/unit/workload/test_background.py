"""Gradient rounds beside a measured traffic."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.scale import Scale
from gradbed.experiments.systems.workload.trial import background_of
from tests.unit.workload.runs import configuration, run, table

TRAFFIC = {"packets": 400, "load": 0.2}


def test_rounds_go_on_until_the_traffic_is_over(tmp_path: Path) -> None:
    alone = run(tmp_path, traffic=TRAFFIC)
    beside = run(tmp_path, traffic=TRAFFIC, background={"workers": ["all"], "values": 2000})
    assert not beside.failures and alone.metrics.get("background_rounds") is None
    rows = table(beside, "background")
    rounds = int(str(beside.metrics["background_rounds"]))
    assert [(row["worker"], row["round"]) for row in rows] == [
        (worker, number) for worker in ("h1", "h2", "h3") for number in range(rounds)
    ]
    assert len({(row["round"], row["sum_sha256"]) for row in rows}) == rounds > 2
    # As long as packets were sent, and no longer than a round beyond.
    sent_us = 1e6 * 8 * 400 * 1000 / (3 * 0.2 * 100e6)
    last_us = max(float(row["round_us"]) for row in rows)
    taken_us = sum(float(row["round_us"]) for row in rows) / 3
    assert sent_us - last_us < taken_us < sent_us + 2 * last_us
    # Both share the links, and every frame is accounted for.
    assert (beside.metrics["sent_packets"], beside.metrics["received_packets"]) == (400, 400)
    assert float(str(beside.metrics["mean_us"])) > 1.2 * float(str(alone.metrics["mean_us"]))
    assert beside.metrics["foreign_frames"] == 0 and all(row["agrees"] for row in table(beside, "hosts"))


def test_some_hosts_alone_may_train(tmp_path: Path) -> None:
    result = run(tmp_path, traffic=TRAFFIC, background={"workers": ["h3", "h1"], "values": 500})
    assert {row["worker"] for row in table(result, "background")} == {"h1", "h3"} and not result.failures


def test_a_wrong_sum_is_a_failure(tmp_path: Path) -> None:
    chosen = configuration(tmp_path, background={"workers": ["h1", "h2"], "values": 500})
    background = background_of(chosen, chosen.topology.build(Scale()), Scale(), seed=1)
    assert background is not None
    result = run(tmp_path, traffic=TRAFFIC, background={"workers": ["h1", "h2"], "values": 500})
    rows = table(result, "background")
    assert background.failures(rows) == []
    wrong = [{**row, "sum_sha256": "0"} if (row["worker"], row["round"]) == ("h2", 1) else row for row in rows]
    assert background.failures(wrong) == ["background: h2: the sum of round 1 is wrong"]


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"background": {"workers": ["h1"]}}, "name two hosts or more"),
        ({"background": {"workers": ["h1", "h9"]}}, "h9"),
        ({"background": {"workers": ["h1", "h2", "h1"]}}, "a host stands twice"),
        ({"background": {"workers": ["all"]}, "frames": {"replay": "some.pcap"}}, "goes without"),
    ],
)
def test_what_cannot_be_is_one_line(sections: dict[str, dict[str, object]], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as caught:
        run(tmp_path, **sections)
    assert "\n" not in str(caught.value)


def test_a_program_that_loses_the_gradients_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no news on the ring for 10 s in round 0"):
        run(tmp_path, "tables: {}\n", traffic=TRAFFIC, background={"workers": ["all"]})
