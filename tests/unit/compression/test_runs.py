"""Whole runs on the virtual clock: sums are exact whatever is compressed, lost or cut short."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gradbed.emulation import backend
from gradbed.experiments.systems.compression.phase import EXPONENT
from gradbed.hosts.learning.reference import reference
from gradbed.hosts.learning.settings import TrainingSettings
from tests.unit.compression.trials import run

LOSSY = {"kind": "star:5", "link": {"loss": 0.02, "duplicate": 0.01}}


@pytest.mark.parametrize("compress", ["none", "topk:0.01", "quantise:4", "sign", "powersgd:2"])
def test_sums_are_exact_while_links_lose_packets(compress: str) -> None:
    found = run(
        topology=LOSSY,
        compression={"compress": compress, "momentum": 0.5},
        ratio={"rule": "none"},
        workload={"kind": "training", "workers": 4, "rounds": 4, "hidden_units": 32},
    )
    assert found.failures == []
    assert 0 < found.metrics["accuracy"] <= 1  # type: ignore[operator]


def test_without_compression_training_is_that_of_one_process() -> None:
    workload = {"rounds": 5, "hidden_units": 16}
    found = run(workload={"kind": "training", "workers": 4, **workload})
    settings = TrainingSettings(seed=1, exponent=EXPONENT, **workload)
    expected = [each.accuracy for each in reference(settings, 4, 352)]
    assert found.failures == []
    assert [row["accuracy"] for row in found.tables["rounds"]] == expected


@pytest.mark.commit_cases(3)
@pytest.mark.parametrize("pacing", ["none", "even", "active", "aimd"])
@pytest.mark.parametrize("rule", ["none", "source", "corrected"])
def test_every_pacing_goes_with_every_rule(pacing: str, rule: str) -> None:
    found = run(
        topology={"kind": "star:5"},
        transport={"pacing": pacing},
        ratio={"rule": rule, "interval_us": 1000},
        workload={"workers": 4, "rounds": 2, "values": 8800},
    )
    assert found.failures == []


def test_random_values_cost_no_indices() -> None:
    """A frame with 352 values, and the end."""
    workload = {"workers": 3, "rounds": 2, "values": 35_200}
    found = run(topology={"kind": "star:4"}, compression={"compress": "randomk:0.01"}, workload=workload)
    assert found.failures == [] and found.metrics["wire_bytes"] == 72 + 4 * 352 + 72


def test_equal_seeds_give_equal_rows() -> None:
    sections: dict[str, Any] = {
        "topology": LOSSY,
        "workload": {"kind": "training", "workers": 4, "rounds": 3, "hidden_units": 16},
    }
    one, other = run(**sections), run(**sections)
    assert (one.metrics, one.tables) == (other.metrics, other.tables)
    assert run(seed=2, **sections).metrics != one.metrics


def test_a_queue_that_nobody_tells_is_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with BMv2, whose links are the kernel's."""
    sections: dict[str, Any] = {
        "topology": {"kind": "star:3"},
        "workload": {"workers": 2, "rounds": 1, "values": 35_200},
    }
    told = run(**sections).metrics["mean_queue"]
    assert isinstance(told, float)
    known = backend.name_statistics
    monkeypatch.setattr(
        backend,
        "name_statistics",
        lambda *arguments: (replace(row, queued=None) for row in known(*arguments)),
    )
    assert run(**sections).metrics["mean_queue"] is None
