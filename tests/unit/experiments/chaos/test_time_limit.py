"""What does not come to an end is ended."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.study.running.worker import STATUS, time_limit

DEAF = """
from gradbed.experiments.study.running import worker as module
module.GRACE_S = 0.05
with module.time_limit(0.05):
    while True:
        try:
            while True:
                pass
        except Exception:
            pass
"""


def test_one_line_says_so() -> None:
    with pytest.raises(UserError, match=r"not at its end after 0\.05 s"), time_limit(0.05):
        time.sleep(30)


def test_what_is_in_time_is_left_alone() -> None:
    with time_limit(0.05):
        pass
    with time_limit(None):
        time.sleep(0.1)


def test_what_does_not_heed_it_ends_with_its_process() -> None:
    assert subprocess.run([sys.executable, "-c", DEAF], timeout=60, check=False).returncode == STATUS
