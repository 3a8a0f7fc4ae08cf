"""The C of the data plane under sanitizers: random traffic (driver.c), with and without the thread."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from switch.build import RUNTIME_DIR, RUNTIME_SOURCES, compiler

PROGRAMS = Path(__file__).parent / "programs"
SOURCES = [PROGRAMS / "driver.c", PROGRAMS / "instructed.c", *RUNTIME_SOURCES]


def build(scratch: Path, sanitizers: str) -> Path:
    """The driver with these sanitizers; skips the test if this compiler has none."""
    cc, _ = compiler()
    checks = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    empty = scratch / "empty.c"
    empty.write_text("int main(void) { return 0; }\n")
    probe = [cc, *checks, "-o", str(scratch / "empty"), str(empty)]
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        pytest.skip(f"{cc} cannot build with -fsanitize={sanitizers}")
    driver = scratch / "driver"
    flags = ["-std=gnu11", "-g", "-O1", "-Wall", "-Werror", "-fno-strict-aliasing", *checks, f"-I{RUNTIME_DIR}"]
    command = [cc, *flags, "-o", str(driver), *map(str, SOURCES), "-lpthread", "-lm"]
    subprocess.run(command, check=True)
    return driver


def run(driver: Path, *arguments: int) -> str:
    command = [str(driver), *map(str, arguments)]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


def test_no_bad_memory_access_no_undefined_behaviour_no_leak(tmp_path: Path) -> None:
    driver = build(tmp_path, "address,undefined")
    for seed in (1, 2, 3):
        first = run(driver, seed, 10_000, 0)
        assert "24 directions delivered" in first
        # With the manual clock a run comes out the same every time.
        assert run(driver, seed, 10_000, 0) == first
    run(driver, 4, 10_000, 3)


def test_no_data_race_between_the_data_plane_and_control_calls(tmp_path: Path) -> None:
    driver = build(tmp_path, "thread")
    # Without address randomisation, which older thread sanitizers cannot cope with.
    command = ["setarch", "-R", str(driver), "5", "3000", "3"]
    for _ in range(3):
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert "WARNING: ThreadSanitizer" not in outcome.stderr
        # Now and then gcc 12's sanitizer stops at a check of its own state, which says nothing about the program.
        if "ThreadSanitizer: CHECK failed" not in outcome.stderr:
            break
    assert outcome.returncode == 0, outcome.stderr
