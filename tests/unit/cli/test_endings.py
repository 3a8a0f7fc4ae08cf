"""How commands end when somebody else ends them: Ctrl-C, a reader that goes away, a full disk."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def started(*arguments: str, blocked: bool = False, **options: object) -> subprocess.Popen[str]:
    """blocked: Ctrl-C waits until Python is up, as under ./gradbed."""
    command = [sys.executable, "-I", "-m", "gradbed", *arguments]
    return subprocess.Popen(
        ["env", "--block-signal=INT", *command] if blocked else command,
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.commit_cases(5)
@pytest.mark.parametrize("delay_ms", range(0, 500, 50))
def test_ctrl_c_in_the_first_half_second(delay_ms: int, tmp_path: Path) -> None:
    process = started("run", "aggregation", "--output", str(tmp_path), blocked=True)
    while Path(f"/proc/{process.pid}/comm").read_text() == "env\n":
        time.sleep(0.001)
    time.sleep(delay_ms / 1000)
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in said and "Fatal" not in said, said
    assert printed == ""
    assert not (tmp_path / "aggregation" / "latest").exists()


def test_a_reader_that_goes_away() -> None:
    process = started("p4", "compile", "p4src/aggregation.p4", "--output", "/dev/null", "--p4info", "/dev/null")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    assert process.wait(timeout=60) == 128 + signal.SIGPIPE
    assert said == ""


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("arguments", [["--help"], ["run", "aggregation", "--help"]])
def test_help_whose_reader_goes_away(arguments: list[str]) -> None:
    process = started(*arguments)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) != 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_where_the_output_goes() -> None:
    command = [sys.executable, "-m", "gradbed", "p4", "compile", "p4src/aggregation.p4"]
    with open("/dev/full", "w") as full:
        outcome = subprocess.run(
            [*command, "--output", "/dev/null", "--p4info", "/dev/null"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert outcome.returncode == 2
    assert outcome.stderr.startswith("gradbed: no space left on the disk")
    assert len(outcome.stderr.splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_an_introduction_for_a_full_disk_is_one_line_too() -> None:
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "gradbed"], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (process.returncode, len(process.stderr.splitlines())) == (2, 1), process.stderr


def test_a_terminal_that_is_closed_ends_a_command_that_goes_on_without_it(tmp_path: Path) -> None:
    """As under nohup(1), or after `disown`: SIGHUP is ignored, and writing fails (EIO)."""
    command = [
        sys.executable,
        "-m",
        "gradbed",
        "p4",
        "compile",
        "p4src/aggregation.p4",
        "--output",
        str(tmp_path / "a"),
    ]
    terminal, end = pty.openpty()
    with subprocess.Popen(
        ["sh", "-c", 'trap "" HUP; read closed; exec "$@"', "sh", *command],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=end,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(end)
        os.close(terminal)
        _, said = process.communicate("closed\n", timeout=60)
    assert (process.returncode, said) == (128 + signal.SIGPIPE, "")


SEARCHED = """
import sys
import gradbed.cli.main
from gradbed.cli.start import start

class Cycle:
    def __del__(self):
        print("searched")

cycle = Cycle()
cycle.self = cycle
gradbed.cli.main.main = lambda: sys.exit(3)
start()
"""


def test_at_the_end_no_modules_are_searched_for_cycles() -> None:
    ended = subprocess.run([sys.executable, "-c", SEARCHED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", "")
