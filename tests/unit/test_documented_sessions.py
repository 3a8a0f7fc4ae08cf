"""Every command that README.md and docs/ show without sudo, typed from a fresh clone: by root, and by an ordinary
user on a machine without the packages that networks need. Each ends with the status that the document says."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradbed.cli.commands.exercise import EXERCISES
from gradbed.experiments.exercises.exercise import exercises
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.make_figures import chosen
from tests.command import ROOT
from tests.plain_machine import USER, PlainMachine, plain_machine
from tests.unit import test_tutorial
from tests.unit.documented_sessions import DOCUMENTS, Typed, in_readme, typed
from tests.unit.readers_files import LACKING, make_readers_files

pytestmark = pytest.mark.root

QUICK = {
    "api.md": ("./gradbed python script.py",),
    "conformance.md": ("./gradbed p4 stf p4src/router.p4 tests/p4/stf/router.stf",),
    "exercises.md": (
        "./gradbed exercise list",
        "./gradbed exercise start forward",
        "./gradbed exercise check forward",
    ),
    "install.md": ("./gradbed", "./gradbed p4 compile p4src/router.p4", "./gradbed p4 --help"),
    "topologies.md": ("./gradbed topo show examples/topologies/ring.yaml",),
    "tour.md": ("./gradbed run aggregation --help", "./gradbed p4 trace --help"),
    "README.md": (
        "./gradbed doctor",
        "./gradbed run shuffle",
        "./gradbed run workload my_program/my_program.p4",
    ),
}
"""Without --nightly: what takes a second or two, and one run of a system."""

STATUS = {
    "./gradbed exercise check forward": 1,  # of the starter code, whose gaps are the exercise
    "./gradbed p4 plan": 2,  # named in a text, without its arguments
    "./gradbed p4 run --reference": 2,
    "./gradbed p4 trace": 2,
}
"""Where a document says nothing of it, and a command ends with another status than 0."""

QUICK_MADE = ("my_program", "forward")
"""Of what `gradbed new` and `gradbed exercise` make."""

LEFT_OUT = {
    "./gradbed p4 trace p4src/aggregation.p4": "reads a capture of the reader's",
    "./gradbed p4 coverage p4src/aggregation.p4": "reads a test of the reader's",
    ".venv/bin/python -m tools.conformance ~/p4c --errors": "works on p4c's wrong programs and its messages",
    "./gradbed python -m pip install": "needs a network",
    "./gradbed python -m notebook": "what the line above it installs",
    "./gradbed python -m pytest": "alone: all tests of the reader's folder",
}
"""What is not run, by the beginning of the line."""
WHOLE = {"./gradbed python -m pytest"}
"""Of these, the lines that have nothing behind it."""

BEGUN = (".venv/bin/python -m tools.bench ", "./gradbed figures ", "./gradbed replay ")
BEGUN_S = 30.0
"""After this time commands that take minutes, or that end with Ctrl-C, are interrupted."""
ENDS_S = 120.0
"""After Ctrl-C, on a busy machine."""


def is_left_out(command: str) -> bool:
    return command in WHOLE or any(command.startswith(beginning) for beginning in LEFT_OUT if beginning not in WHOLE)


def expect(machine: PlainMachine, line: Typed, cwd: Path | None = None) -> None:
    status, said = machine.run(line.command, cwd=cwd)
    assert "Traceback" not in said, f"{line.document}: {line.command}\n{said[-3000:]}"
    lacking = next((words for command, words in LACKING.items() if re.match(command, line.command)), None)
    if lacking is not None and status == 2 and re.search(lacking, said.splitlines()[-1]):
        return
    assert status == STATUS.get(line.command, line.status), (
        f"{line.document}: {line.command}: {status}\n{said[-3000:]}"
    )


def begins(machine: PlainMachine, line: Typed) -> None:
    process = machine.start(f"exec {line.command}")  # or the shell's end would hide the command's
    until_s = time.monotonic() + BEGUN_S
    while process.poll() is None and time.monotonic() < until_s:
        time.sleep(0.2)
    interrupted = process.poll() is None
    if interrupted:
        os.killpg(process.pid, signal.SIGINT)
    try:
        said, _ = process.communicate(timeout=ENDS_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"{line.command} goes on after Ctrl-C: {process.communicate()[0][-3000:]}")
    # What a benchmark measures may miss its goal: that is for the machine it is run on.
    expected = {0, 128 + signal.SIGINT} if interrupted else {0, 1} if " tools.bench " in line.command else {0}
    assert process.returncode in expected, f"{line.command}: {process.returncode}\n{said[-3000:]}"
    assert "Traceback" not in said, f"{line.command}\n{said[-3000:]}"


@pytest.fixture(scope="module", params=[USER, None], ids=["user", "root"])
def machine(request: pytest.FixtureRequest) -> Iterator[PlainMachine]:
    with plain_machine(request.param) as made:
        yield made


def path_of(document: str) -> Path:
    return ROOT / document if document == "README.md" else ROOT / "docs" / document


def session(machine: PlainMachine, document: str, only: tuple[str, ...] | None = None) -> None:
    lines = list(typed(path_of(document)))
    wanted = [line for line in lines if not is_left_out(line.command) and (only is None or line.command in only)]
    assert wanted
    with machine.kept():
        commands = "\n".join(line.command for line in wanted)
        make_readers_files(machine, commands, lambda command: expect(machine, Typed("", command)))
        for line in wanted:
            (begins if line.command.startswith(BEGUN) else expect)(machine, line)


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("document", QUICK)
def test_what_is_quick(machine: PlainMachine, document: str) -> None:
    found = {line.command for line in typed(path_of(document))}
    assert set(QUICK[document]) <= found, "the document does not show it any more"
    session(machine, document, QUICK[document])


def with_commands() -> list[str]:
    return [
        document.name
        for document in DOCUMENTS
        if document.name != "tutorial.md" and any(not is_left_out(line.command) for line in typed(document))
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("document", with_commands())
def test_every_command(machine: PlainMachine, document: str) -> None:
    session(machine, document)


@pytest.mark.nightly
def test_the_tutorial(machine: PlainMachine) -> None:
    """With its changes made between the commands."""
    with machine.kept():
        for block in test_tutorial.blocks():
            place = machine.clone / block.about
            if block.kind == "diff":
                test_tutorial.change(place, block.text)
            elif block.kind != "console":
                place.write_text(block.text)
            else:
                status = int(block.about.removeprefix("exits ") or 0)
                for line in block.text.splitlines():
                    if line.startswith("$ "):
                        expect(machine, Typed("tutorial.md", line.removeprefix("$ "), status))


MADE = {
    "my_program": "./gradbed new {folder}",
    **{name: f"./gradbed exercise solution {name} {{folder}}" for name in sorted(exercises(EXERCISES))},
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", [*QUICK_MADE, *(pytest.param(name, marks=pytest.mark.nightly) for name in MADE if name not in QUICK_MADE)]
)
def test_what_gradbed_makes_says_commands_that_run(machine: PlainMachine, name: str) -> None:
    """Typed where the folder was asked for, those of an exercise in it. With the solution they end well, too."""
    folder = Path("my work", name)
    with machine.kept():
        expect(machine, Typed(name, MADE[name].format(folder=shlex.quote(str(folder)))))
        made = machine.clone / folder
        lines = in_readme(made / "README.md")
        assert any("gradbed " in line.command for line in lines)
        for line in lines:
            expect(machine, line, None if name == "my_program" else made)


def shown_figures() -> list[tuple[str, str]]:
    """Documents, and their commands for figures without sudo."""
    lines = [line for document in DOCUMENTS for line in typed(document)]
    return [(line.document, line.command) for line in lines if line.command.startswith("./gradbed figures ")]


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(("document", "command"), shown_figures())
def test_figures_without_sudo_need_no_root(document: str, command: str) -> None:
    """They take minutes: of most it is only seen that they begin, perhaps not with the one that needs root."""
    system, *options = shlex.split(command.removeprefix("./gradbed figures "))
    of = dict(itertools.pairwise(options))
    for study in chosen(system, of.get("--only", "")).values():
        assert not load_study(study, "--quick" in options, of.get("--clock")).needs_network, document


def test_what_is_left_out_stands_in_a_document() -> None:
    shown = [line.command for document in DOCUMENTS for line in typed(document)]
    for beginning in LEFT_OUT:
        assert any(command.startswith(beginning) for command in shown), beginning


@pytest.mark.thorough
def test_without_packages_a_network_is_refused(machine: PlainMachine) -> None:
    """That the machine is as plain as it should be: what needs Mininet says so, by one line."""
    if machine.user is None:
        assert shutil.which("mnexec")
        return
    for command in ("./gradbed demo --clock real", "./gradbed run ndn --clock real", "./gradbed up"):
        status, said = machine.run(command)
        assert status == 2
        assert said.splitlines()[-1].startswith("gradbed: networks need root, and Debian packages that are missing")
    assert not Path("/etc/shadow").exists() or machine.run("cat /etc/shadow")[0] != 0
