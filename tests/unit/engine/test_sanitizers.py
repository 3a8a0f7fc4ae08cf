"""The C of the data plane under sanitizers: random traffic (driver.c), with and without the thread."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gradbed.common.c_library import compiler
from gradbed.switch.runtime.library import RUNTIME_DIR, RUNTIME_SOURCES
from tests.sanitized_python import no_data_race
from tests.sanitizers import FLAGS, STRICT, THREADS, sanitized

PROGRAMS = Path(__file__).parent / "programs"
SOURCES = [PROGRAMS / "driver.c", PROGRAMS / "instructed.c", *RUNTIME_SOURCES]
SIDE_BY_SIDE = [PROGRAMS / "windows_driver.c", *SOURCES[1:]]


def run(driver: Path, *arguments: int) -> str:
    command = [str(driver), *map(str, arguments)]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


@pytest.mark.thorough
def test_no_bad_memory_access_no_undefined_behaviour_no_leak(tmp_path: Path) -> None:
    driver = sanitized(tmp_path / "driver", SOURCES)
    for seed in (1, 2, 3):
        first = run(driver, seed, 10_000, 0)
        assert "24 directions delivered" in first
        # With the manual clock a run comes out the same every time.
        assert run(driver, seed, 10_000, 0) == first
    run(driver, 4, 10_000, 3)


@pytest.mark.thorough
def test_partitions_side_by_side_do_what_one_does(tmp_path: Path) -> None:
    driver = sanitized(tmp_path / "driver", SIDE_BY_SIDE)
    for seed in (1, 2, 3):
        alone = run(driver, seed, 1)
        assert "link 5:3" in alone
        assert run(driver, seed, 2) == run(driver, seed, 3) == alone


@pytest.mark.thorough
def test_no_data_race_between_the_data_plane_and_control_calls(tmp_path: Path) -> None:
    no_data_race_in_the_driver(sanitized(tmp_path / "driver", SOURCES, checks=THREADS), 5, 3000, 3)


def test_no_data_race_between_partitions(tmp_path: Path) -> None:
    no_data_race_in_the_driver(sanitized(tmp_path / "driver", SIDE_BY_SIDE, checks=THREADS), 5, 3)


def no_data_race_in_the_driver(driver: Path, *arguments: int) -> None:
    # Without address randomisation, which older thread sanitizers cannot cope with.
    command = ["setarch", "-R", str(driver), *map(str, arguments)]
    for _ in range(3):
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert "WARNING: ThreadSanitizer" not in outcome.stderr
        # Now and then gcc 12's sanitizer stops at a check of its own state, which says nothing about the program.
        if "ThreadSanitizer: CHECK failed" not in outcome.stderr:
            break
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.nightly
def test_no_data_race_in_any_test_of_the_engine(tmp_path: Path) -> None:
    """But those of the switch process, which would need the sanitizer, too."""
    options = ("-m", "not nightly", "-k", "not the_process", f"--ignore={__file__}")
    no_data_race(tmp_path, [Path(__file__).parent], [], options)


@pytest.mark.nightly
@pytest.mark.parametrize("source", RUNTIME_SOURCES, ids=lambda path: path.stem)
def test_what_the_compiler_finds_without_running_it(source: Path, tmp_path: Path) -> None:
    """Leaks are left to the sanitizers: gcc loses sight of what hangs in arrays and lists."""
    cc, version = compiler()
    if "clang" in version:
        pytest.skip("-fanalyzer is gcc's")
    flags = [*FLAGS, *STRICT, "-fanalyzer", "-Wno-analyzer-malloc-leak", f"-I{RUNTIME_DIR}"]
    analysed = [cc, *flags, "-c", "-o", str(tmp_path / "out.o"), str(source)]
    outcome = subprocess.run(analysed, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
