"""A run on a disk that fills up: one clear line, and `latest` does not name it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.command import gradbed
from tests.emulation.sandboxed import in_sandbox

pytestmark = [pytest.mark.thorough, pytest.mark.root]

RUN = ["run", "aggregation", "--topology", "star:3", "--workers", "2", "--rounds", "2"]


def run_on_small_disk(folder: Path, kilobytes: int, output: Path, **environment: str) -> str:
    """What a run says last whose output, or cache, is on a disk of this size."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=700", "none", folder], check=True)
    outcome = gradbed(*RUN, "--output", output, timeout_s=100, **environment)
    assert outcome.returncode == 2, outcome.stderr
    assert "Traceback" not in outcome.stderr, outcome.stderr
    assert not (output / "aggregation" / "latest").exists()
    return outcome.stderr.splitlines()[-1]


# Full at the first file, in the network, and while drawing.
@pytest.mark.parametrize("kilobytes", [4, 8, pytest.param(128, marks=pytest.mark.nightly)])
@in_sandbox
def test_no_room_for_results(kilobytes: int, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    assert run_on_small_disk(disk, kilobytes, disk).startswith("gradbed: no space left on the disk")


@in_sandbox
def test_no_room_in_the_cache(tmp_path: Path) -> None:
    said = run_on_small_disk(tmp_path / "disk", 400, tmp_path / "results", GRADBED_CACHE=str(tmp_path / "disk"))
    assert said.startswith("gradbed: no space left on the disk"), said
    # What was whole is kept, and nothing else.
    left = list((tmp_path / "disk").rglob("*"))
    folders = [path.name for path in left if path.is_dir()]
    files = [path for path in left if path.is_file()]
    assert folders in ([], ["placements"])
    assert all(path.suffix in (".json", ".txt", ".so") for path in files), files
    for path in files:
        if path.suffix == ".json":
            json.loads(path.read_text())
