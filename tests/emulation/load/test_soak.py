"""A short soak is flat; one with a leak that is made on purpose is not, whatever leaks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gradbed.common.sandbox import run_in_sandbox
from gradbed.experiments.runtimes.real import RealRuntime
from tools.bench.flatness import judge, read_samples
from tools.bench.leaks import ResourceLeak
from tools.bench.soak import Pace, soak

pytestmark = [pytest.mark.thorough, pytest.mark.root, pytest.mark.nightly]

PACE = Pace(duration_s=15, every_s=0, sample_s=0)
Leak = Callable[[RealRuntime], object]


def outcome(folder: Path, leak: Leak) -> tuple[list[str], str]:
    """What is not flat, and what was said of the job that left something."""

    def run() -> int:
        os.environ["TMPDIR"] = str(folder)
        try:
            soak(folder, folder.parent / "samples.csv", PACE, lambda runtime: leak(runtime) and None)
        except ResourceLeak as leak:
            (folder.parent / "said").write_text(str(leak))
        return 0

    folder.mkdir()
    assert run_in_sandbox(run) == 0
    said = folder.parent / "said"
    if said.exists():
        return [], said.read_text()
    return [course.name for course in judge(read_samples(folder.parent / "samples.csv"))], ""


KEPT: list[object] = []

LEAKS: dict[str, tuple[Leak, set[str]]] = {
    "a descriptor": (lambda runtime: os.open("/dev/null", os.O_RDONLY), {"experiment_descriptors"}),
    "memory": (lambda runtime: KEPT.append(os.urandom(1 << 20)), {"experiment_resident_bytes"}),
    "a file": (lambda runtime: (runtime.folder / f"left-{os.urandom(4).hex()}").touch(), {"files"}),
    "a process": (
        lambda runtime: KEPT.append(subprocess.Popen(["sleep", "1000"])),
        {"processes", "others_descriptors", "others_threads", "others_resident_bytes"},
    ),
    "a namespace": (
        lambda runtime: KEPT.append(subprocess.Popen(["unshare", "--net", "sleep", "1000"])),
        {"processes", "networks", "interfaces", "others_descriptors", "others_threads", "others_resident_bytes"},
    ),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_seen(tmp_path: Path, name: str) -> None:
    leak, grows = LEAKS[name]
    found, said = outcome(tmp_path / "run", leak)
    assert not said
    # Programs load and pools fill in the first jobs.
    assert grows <= set(found) | {"others_resident_bytes"}, found


def test_a_job_that_stays_is_seen_at_once(tmp_path: Path) -> None:
    _, said = outcome(
        tmp_path / "run",
        lambda runtime: runtime.client.add_job("aggregation", {"workers": ["h2"], "server": "h6"}),
    )
    assert said.startswith("job 1 has left ") and "entries more and 0 fewer in " in said


def test_a_short_soak_leaves_nothing(tmp_path: Path) -> None:
    """Memory is another matter: pools fill in the first minutes."""
    found, said = outcome(tmp_path / "run", lambda runtime: None)
    assert not said
    assert not [name for name in found if not name.endswith(("_bytes", "_threads"))]
