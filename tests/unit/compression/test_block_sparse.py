"""Blocks that all workers send: the same ones, summed by the switches of p4src/aggregation.p4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradbed.experiments.phases import TrialResult
from gradbed.hosts.compressors.block_sparse import (
    BLOCK_VALUES,
    AgreedBlocks,
    BlockSparse,
    Whole,
    compact_values,
    sent_form,
)
from gradbed.hosts.learning.settings import TrainingSettings
from tests.unit.trials import virtual_trial

VALUES = 1000
WORKERS = 4


@pytest.mark.parametrize("part", [0.01, 0.1, 0.5, 1.0])
def test_what_was_summed_and_what_is_held_back_are_all_gradients(part: float) -> None:
    generator = np.random.default_rng(1)
    forms = [BlockSparse(VALUES, part) for _ in range(WORKERS)]
    added, summed = np.zeros(VALUES, np.int64), np.zeros(VALUES, np.int64)
    for _ in range(12):
        gradients = generator.integers(-(2**30), 2**30, (WORKERS, VALUES), dtype=np.int32)
        sent = [form.compact(gradient) for form, gradient in zip(forms, gradients, strict=True)]
        assert {len(each) for each in sent} == {compact_values(VALUES, part)}
        total = np.sum(sent, axis=0, dtype=np.int64)
        sums = [form.expanded(total) for form in forms]
        assert all(np.array_equal(each, sums[0]) for each in sums)
        added += gradients.sum(axis=0)
        summed += sums[0]
        held = sum(form.held_back.held.astype(np.int64) for form in forms)
        assert np.array_equal(summed + held[:VALUES], added) and not held[VALUES:].any()


def test_every_block_has_its_turn_and_those_that_gather_most_have_it_more_often() -> None:
    agreed, turns = AgreedBlocks(8 * BLOCK_VALUES, 1 / 4), np.zeros(8, np.int64)
    gathers = np.array([1, 1, 20, 1, 1, 1, 20, 1])
    waiting = np.zeros(8, np.int64)
    for number in range(60):
        waiting += gathers
        chosen = agreed.chosen
        assert len(chosen) == 2 and (np.diff(chosen) > 0).all()
        if number < 4:
            assert chosen.tolist() == [2 * number, 2 * number + 1]
        turns[chosen] += 1
        agreed.take(np.repeat(waiting[chosen], BLOCK_VALUES).reshape(2, BLOCK_VALUES))
        waiting[chosen] = 0
    assert turns.min() >= 3 and turns[[2, 6]].min() > 3 * np.delete(turns, [2, 6]).max()


def test_values_that_do_not_fit_a_packet_wait() -> None:
    form = BlockSparse(BLOCK_VALUES, 1.0)
    most = np.full(BLOCK_VALUES, 2**31 - 1, np.int32)
    form.held_back.take(np.full(BLOCK_VALUES, 5, np.int64))
    assert np.array_equal(form.compact(most), most)
    assert form.held_back.held.tolist() == [5] * BLOCK_VALUES


def test_without_a_part_gradients_are_sent_whole() -> None:
    assert isinstance(sent_form(VALUES, None), Whole) and compact_values(VALUES, None) == VALUES


def test_what_is_held_back_needs_a_scale_that_stays() -> None:
    with pytest.raises(ValueError, match="blocks need an exponent"):
        TrainingSettings(blocks=0.1)


# ---- Through switches that sum ----


def run(blocks: float | None, **sections: Any) -> TrialResult:
    """Its failures tell of every sum and every worker's weights that are not bit for bit the reference's."""
    return virtual_trial(
        "aggregation",
        topology={"kind": "star:7", **sections.pop("topology", {})},
        switches={"placement": "greedy", "programmable": 1},
        workload={
            "kind": "training",
            "workers": 6,
            "rounds": 20,
            "blocks": blocks,
            **sections.pop("workload", {}),
        },
    )


def test_switches_sum_them_bit_for_bit_and_carry_that_much_less() -> None:
    whole, blocks = run(None), run(0.25)
    assert whole.failures == blocks.failures == []
    into = [found.tables["summary"][0]["server_in_gradient_bytes"] for found in (whole, blocks)]
    sent = [found.metrics["byte_hops"] for found in (whole, blocks)]
    # 14 packets of 352 values against 4: 38 of 151 blocks.
    assert into[1] / into[0] == pytest.approx(4 / 14, rel=0.01)
    assert sent[1] / sent[0] == pytest.approx(4 / 14, rel=0.01)
    assert blocks.metrics["accuracy"] > whole.metrics["accuracy"] - 0.02  # type: ignore[operator]
    events = blocks.tables["events"][0]
    assert events["completed"] == 4 * 20 and not events.get("overflow")


@pytest.mark.parametrize("kind", ["training", "synthetic"])
def test_sums_are_the_references_while_links_lose_packets(kind: str) -> None:
    found = run(
        0.1,
        topology={"kind": "leaf-spine:2,2,5", "link": {"loss": 0.02, "duplicate": 0.01}},
        workload={"kind": kind, "rounds": 6, **({"values": 5000} if kind == "synthetic" else {"hidden_units": 16})},
    )
    assert found.failures == []
