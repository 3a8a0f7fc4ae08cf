"""The live view of a command, from outside."""

from __future__ import annotations

import re
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from gradbed.common.json_lines import own_program

IN_TIME_S = 120


@pytest.mark.thorough
def test_ctrl_c_ends_a_run_whose_page_is_open(tmp_path: Path) -> None:
    options = ["--clock", "virtual", "--live-paused", "--topology", "star:3", "--workers", "2"]
    with subprocess.Popen(
        own_program("gradbed", "run", "aggregation", *options, "--output", str(tmp_path)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            url = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
            with urllib.request.urlopen(f"{url}stream", timeout=IN_TIME_S) as page:
                while b'"kind":"clock"' not in page.readline():
                    pass
                process.send_signal(signal.SIGINT)
                assert process.wait(IN_TIME_S) == 130
        finally:
            process.kill()
