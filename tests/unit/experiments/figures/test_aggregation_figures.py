"""The seven figures of aggregation on made-up rows, and the analytic curves in them."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.study.evaluation.figures import draw_figures
from gradbed.experiments.study.make_figures import chosen, studies_of
from gradbed.experiments.systems.aggregation.figures import (
    LossModel,
    SlotModel,
    course,
    lower_bound,
    ring_bound,
    time_to_accuracy_ms,
)
from tests.unit.experiments.figures.made_up import made_up_run


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(1, 8))
def test_every_figure_is_drawn_from_its_study(number: int, tmp_path: Path) -> None:
    study, results = made_up_run(number, tmp_path)
    written = draw_figures(results, study.head.figures, study.system.metrics)
    assert sorted(path.suffix for path in written) == [".pdf", ".png", ".svg"]
    text = next(path for path in written if path.suffix == ".svg").read_text()
    assert "degraded or unknown (host)" in text
    if number in (1, 2, 3, 4):
        assert "bound of the linear program" in text


def test_the_full_studies_repeat_every_trial_with_seeds_of_its_own() -> None:
    from gradbed.experiments.study.loading import load_study

    studies = studies_of("aggregation")
    assert list(studies) == list(range(1, len(studies) + 1)) and len(studies) >= 7
    for path in studies.values():
        assert load_study(path).head.repetitions >= 3
        assert load_study(path, quick=True).head.repetitions >= 2


def test_chosen_figures() -> None:
    assert list(chosen("aggregation", "3, 1")) == [3, 1]
    assert list(chosen("aggregation", "")) == list(studies_of("aggregation"))
    for wrong in (str(len(studies_of("aggregation")) + 1), "x", "1,,2"):
        with pytest.raises(UserError, match="has no figure"):
            chosen("aggregation", wrong)


MODEL = LossModel(workers=8, fragments=200, window=32, packet_ms=0.118, delay_ms=0.05, min_timeout_ms=10)


def test_a_slot_is_used_about_2np_times_more_often() -> None:
    assert MODEL.timeouts(0) == 0
    # 2n packets of workers and 2 of the server; the exact value grows faster, since a repetition can fail as well.
    assert MODEL.timeouts(1e-5) == pytest.approx(18e-5, rel=1e-3)
    draw, loss, uses = random.Random(1), 0.01, 40_000
    failed = 0
    for _ in range(uses):
        while any(draw.random() < loss for _ in range(18)):
            failed += 1
    assert failed / uses == pytest.approx(MODEL.timeouts(loss), rel=0.05)


def test_round_time_with_losses() -> None:
    # 200 / 32 uses of each slot in turn, each longer by the expected number of timeouts.
    slower = MODEL.round_time_ms(26, 0.01, repair_ms=MODEL.round_trip_ms + 10)
    assert slower == pytest.approx(26 + 6.25 * MODEL.timeouts(0.01) * 10.672)


def test_share_of_fragments_that_find_a_slot() -> None:
    draw, slots, live, runs = random.Random(1), 16, 64, 2000
    taken = sum(len({draw.randrange(slots) for _ in range(live)}) for _ in range(runs))
    assert taken / runs / live == pytest.approx(SlotModel.thrown(slots / live, live), rel=0.01)
    assert SlotModel.thrown(1e6, 64) == pytest.approx(1, abs=1e-4)


def test_slots_that_are_taken_in_turn() -> None:
    """A new fragment takes the place of one that was live, and is summed if its slot is free."""
    draw, slots, live, steps = random.Random(1), 32, 64, 60_000
    held: list[int | None] = [None] * live
    found = 0
    for step in range(steps):
        held[step % live] = None
        slot = draw.randrange(slots)
        if slot not in held:
            held[step % live] = slot
            found += 1
    assert found / steps == pytest.approx(SlotModel.in_turn(slots / live), rel=0.03)


def test_throughput_with_scarce_slots() -> None:
    model = SlotModel(jobs=2, workers=4, window=32, round_trip_packets=16)
    assert model.live == 64
    assert [model.dynamic_throughput(share) for share in (0, 0.5, 1)] == [0.25, 0.4, 1]
    assert [model.static_throughput(ratio) for ratio in (0.125, 0.5, 4)] == [0.25, 1, 1]


def test_lower_bound_of_bytes_times_hops() -> None:
    # Eight workers on eight edge switches of four pods, two on each but for the server's: 8 + 8 + 4 edges.
    assert lower_bound("fat-tree:4", 8) == 2 * 20
    assert lower_bound("star:9", 8) == 2 * 8


def test_ring_bound() -> None:
    assert ring_bound(2) == 1
    assert ring_bound(16) == pytest.approx(16 / 30)


def test_time_to_accuracy(tmp_path: Path) -> None:
    _, results = made_up_run(7, tmp_path)
    found = course(results.trials[0])
    # 0.1 / 0.2 s a round, nominal whatever the scale; 0.1 + 0.05 n >= 0.9 after round 17.
    assert time_to_accuracy_ms(found) == pytest.approx(17 * 500)
    assert time_to_accuracy_ms(found, 0.99) is None


def test_zero_resends_are_left_out_of_the_log_axis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study, results = made_up_run(3, tmp_path)
    trials = tuple(replace(trial, values={**trial.values, "resends": 0.0}) for trial in results.trials)
    draw_figures(replace(results, trials=trials), study.head.figures, study.system.metrics)
    assert "y = 0" in capsys.readouterr().out
