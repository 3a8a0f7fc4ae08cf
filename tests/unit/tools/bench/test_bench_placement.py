"""The benchmark of placement: its numbers add up, and wrong sizes get one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from tools.bench import placement as bench
from tools.bench.__main__ import placement
from tools.bench.placement import (
    LINK_RATE_BPS,
    measure_growth,
    measure_quality,
    random_fabric,
    run_bench_placement,
)


def test_growth() -> None:
    row = measure_growth(4, 2)
    assert (row.switches, row.workers, len(row.gammas_bps)) == (20, 8, 2)
    assert 0 < row.gammas_bps[0] <= row.gammas_bps[1] <= LINK_RATE_BPS
    assert 0 < row.round_cpu_s[0] <= row.round_cpu_s[1] <= row.cpu_s
    assert 0.9 * LINK_RATE_BPS < row.packets_bps <= LINK_RATE_BPS
    assert row.solved < row.asked


@pytest.fixture
def one_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quality for M = 1 alone: there are few placements to compare with."""
    monkeypatch.setattr(bench, "QUALITY_MAXIMA", (1,))


@pytest.mark.usefixtures("one_switch")
def test_quality_is_in_shares() -> None:
    for row in measure_quality(2):
        assert 0.6 < row.greedy_gradients <= 1 + 1e-6
        assert 0.9 < row.greedy <= 1 + 1e-6
        assert max(row.packets_degree, 0.9) <= row.packets <= 1 + 1e-9
        assert 0.3 < row.packets_gradients <= 1 + 1e-9
        assert 0.5 < row.packets_of_gamma <= row.arrivals + 1e-6 <= 1 + 2e-6


@pytest.mark.thorough
@pytest.mark.usefixtures("one_switch")
def test_the_figure_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_bench_placement([(4, 1)], 1, tmp_path / "figure") == 0
    assert (tmp_path / "figure" / "placement.png").stat().st_size > 1000
    assert "packets, greedy, of the best" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sizes", "message"), [("4", "form K:M"), ("4:x", "form K:M"), ("4:20", "1 to 19"), ("3:1", "even k")]
)
def test_wrong_sizes(sizes: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        placement(sizes, 0, None)


def test_random_fabrics_are_the_same_everywhere() -> None:
    assert random_fabric(5) == random_fabric(5)
    assert random_fabric(5) != random_fabric(6)
