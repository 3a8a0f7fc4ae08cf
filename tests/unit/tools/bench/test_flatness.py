"""What counts as flat, on made-up samples; the census against a process of which all is known."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tools.bench.flatness import courses, draw, judge, read_samples, slope
from tools.bench.memory_profile import (
    OTHERS,
    files_below,
    held_by_roles,
    least_of_several,
    processes,
    role_of,
)

HOUR_S, SAMPLES = 3600.0, 360
MEGABYTE = 2**20


def samples(**quantities: Callable[[float], float]) -> list[dict[str, float]]:
    """An hour of them; each quantity by the part of the hour that is over."""
    parts = [place / (SAMPLES - 1) for place in range(SAMPLES)]
    return [{"time_s": HOUR_S * part, **{name: of(part) for name, of in quantities.items()}} for part in parts]


def verdict(name: str, of: Callable[[float], float]) -> bool:
    (course,) = courses(samples(**{name: of}), "time_s")
    return course.is_flat


def test_the_line_is_that_of_least_squares() -> None:
    draw = random.Random(7)
    at = [draw.uniform(0, 100) for _ in range(50)]
    values = [3 * x - 8 + draw.gauss(0, 5) for x in at]
    assert slope(at, values) == pytest.approx(np.polyfit(at, values, 1)[0])
    assert slope([2, 2, 2], [1, 5, 9]) == 0


def test_memory_may_vary_and_come_to_its_size_but_not_grow() -> None:
    noise = random.Random(1)
    assert verdict("x_bytes", lambda part: 50 * MEGABYTE + noise.uniform(-4, 4) * MEGABYTE)
    assert verdict("x_bytes", lambda part: 50 * MEGABYTE * min(1, 0.5 + 2 * part))
    assert verdict("x_bytes", lambda part: (50 - 20 * part) * MEGABYTE), "memory that is given back"
    assert not verdict("x_bytes", lambda part: (50 + 2 * part) * MEGABYTE)
    assert not verdict("x_bytes", lambda part: (50 + 2 * part + noise.uniform(-4, 4)) * MEGABYTE)


def test_all_else_must_be_equal_once_it_is_warm() -> None:
    assert verdict("x_descriptors", lambda part: 20 if part > 0.2 else 9)
    assert not verdict("x_descriptors", lambda part: 20 + math.floor(2 * part))
    assert not verdict("entries", lambda part: 26 - (part == 1)), "one that is lost at the very end"


def test_what_a_sample_lacks_was_zero_and_too_few_are_refused() -> None:
    rows = samples(processes=lambda part: 5)
    rows[-1]["newcomer_threads"] = 1
    assert [course.name for course in courses(rows, "time_s") if not course.is_flat] == ["newcomer_threads"]
    with pytest.raises(ValueError, match="3 samples after the warm-up; 4 are needed"):
        courses(rows[:4], "time_s")


def test_samples_are_judged_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "samples.csv"
    columns = "time_s,jobs,entries,held_slots,a_resident_bytes,a_descriptors"
    rows = [f"{10 * i},{2 * i},26,0,{MEGABYTE},{7 + i // 30}" for i in range(40)]
    path.write_text("\n".join([columns, *rows]) + "\n")
    found = read_samples(path)
    assert [course.name for course in judge(found)] == ["a_descriptors"]
    said = capsys.readouterr().out
    assert "78 jobs in 0.11 h" in said and said.count("NOT FLAT") == 1
    assert [file.suffix for file in draw(found, tmp_path / "soak")] == [".png", ".svg", ".pdf"]


CHILD = """
import os, sys, threading, time
held = [os.open("/dev/null", os.O_RDONLY) for _ in range(7)]
for _ in range(3):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
memory = bytearray(os.urandom(1)) * (64 << 20)
print("up", flush=True)
sys.stdin.read()
"""


def test_the_census_tells_what_a_process_holds() -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"up\n"
        (found,) = [each for each in processes() if each.pid == child.pid]
        assert found.command == (sys.executable, "-c", CHILD)
        assert (found.descriptors, found.threads) == (3 + 7, 1 + 3)
        assert 64 * MEGABYTE < found.resident_bytes < 128 * MEGABYTE
        assert found.network == os.readlink("/proc/self/ns/net")
        child.communicate(b"")
    assert child.pid not in {each.pid for each in processes()}


def test_roles_are_those_of_modules() -> None:
    (own,) = [each for each in processes() if each.pid == os.getpid()]
    assert role_of(own, {}, "me") == "me"
    modules = {"gradbed.switch.switch_process": "switches"}
    with subprocess.Popen([sys.executable, "-m", "http.server", "--help"], stdout=subprocess.PIPE) as other:
        found = type(own)(other.pid, ("python", "-P", "-m", "gradbed.switch.switch_process", "x"), 0, 0, 0, "")
        assert role_of(found, modules, "me") == "switches"
        assert role_of(type(own)(other.pid, ("python", "-m"), 0, 0, 0, ""), modules, "me") == OTHERS
        other.communicate()


def test_a_moment_is_no_leak() -> None:
    before = held_by_roles({}, "me")
    looks = iter([{**before, "me_descriptors": before["me_descriptors"] + extra} for extra in (1, 0, 2, 0, 1)])
    assert least_of_several(lambda: next(looks)) == before


def test_files_are_found_in_every_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "one").touch()
    (tmp_path / "two").symlink_to("nowhere")
    assert sorted(file.name for file in files_below(tmp_path)) == ["one", "two"]
