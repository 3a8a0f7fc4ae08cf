"""Every system in Mininet while others keep all processors busy: slower, and exact all the same.

A busy machine may cost the verdict, never a result: `run` ends with status 1 where measured and expected
differ or an agent gives up.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradbed.experiments.systems import SYSTEMS
from tests.emulation.real_trial import real_trial

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.root,
    pytest.mark.nightly,
]
RUNS = 5
DEFAULTS = {"workload": "p4src/router.p4"}
"""What `gradbed run NAME` takes besides to start at all."""


@pytest.fixture
def busy_processors() -> Iterator[None]:
    """One endless loop for each processor."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.parametrize("number", range(RUNS))
@pytest.mark.parametrize("system", sorted(SYSTEMS))
@pytest.mark.usefixtures("busy_processors")
def test_a_default_run_is_exact(system: str, number: int, tmp_path: Path) -> None:
    assert real_trial(system, DEFAULTS.get(system, ""), tmp_path)["repetition"] == "0"
