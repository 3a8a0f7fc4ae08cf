"""The queue of timers (timer.c) beside a list that is searched whole, under sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gradbed.switch.runtime.library import RUNTIME_SOURCES
from tests.sanitizers import sanitized

DRIVER = Path(__file__).parent / "programs" / "timer_driver.c"
STEPS = 20_000


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(
    ("timers", "spread_ns"),
    [
        pytest.param(20, 100, id="few"),
        pytest.param(3000, 40, id="one slot"),
        pytest.param(3000, 3000, id="many in each slot"),
        pytest.param(1500, 100_000, id="one or so in each slot"),
        pytest.param(300, 3_000_000, id="further than the wheel reaches"),
    ],
)
def test_timers_come_in_order_whatever_is_stopped_and_renumbered(timers: int, spread_ns: int, tmp_path: Path) -> None:
    driver = sanitized(tmp_path / "driver", [DRIVER, *RUNTIME_SOURCES])
    for seed in (1, 2):
        command = [str(driver), *map(str, (seed, STEPS, timers, spread_ns))]
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert outcome.returncode == 0, outcome.stderr
        assert outcome.stdout == "looked ahead\n"
