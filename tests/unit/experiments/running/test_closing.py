"""What a run of one trial says of its times: nothing that the machine may have made."""

from pathlib import Path

import pytest

from gradbed.experiments.systems.aggregation.report import beside, closing

PHASES = [
    {"phase": "parameter server", "server_in_gradient_bytes": 8000, "median_round_time_s": 0.016, "rounds": 30},
    {"phase": "in-network", "server_in_gradient_bytes": 1000, "median_round_time_s": 0.004, "rounds": 30},
]


@pytest.mark.parametrize("verdict", ["simulated", "valid"])
def test_three_lines_with_what_it_means(verdict: str) -> None:
    means, figure, following = closing({"verdict": verdict}, PHASES, Path("figure.png"), beside=False)
    assert "1/8 of the gradient bytes" in means
    assert "a round takes 25% of the time" in means
    assert "figure.png" in figure
    assert ("--clock virtual" in following) == (verdict == "simulated")


@pytest.mark.parametrize("verdict", ["unknown", "degraded", "invalid"])
def test_times_of_a_busy_machine_are_not_claimed(verdict: str) -> None:
    means, _, following = closing({"verdict": verdict}, PHASES, Path("figure.png"), beside=False)
    assert "1/8 of the gradient bytes" in means
    assert "of the time" not in means
    assert "Round times are not valid" in means
    assert "gradbed run aggregation --clock virtual" in following


def test_beside_it_stands_the_other_clock() -> None:
    line = beside(PHASES, "virtual")
    assert "same experiment in simulated time (30 rounds)" in line
    assert "parameter server 16 ms, in-network 4 ms: a round takes 25% of the time" in line
