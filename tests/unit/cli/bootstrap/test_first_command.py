"""Whichever command is the first in a fresh clone: it, and those after it, find the packages that they need."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.cli.commands.python import TESTS, runs_gradbeds_tests
from tests.plain_machine import USER, plain_machine

TEST = "tests/unit/topo/test_files.py::test_a_script_of_p4_utils"
PYTEST = f"./gradbed python -m pytest {TEST}"
TOPOLOGY = "./gradbed topo show star:3"
COMPILE = "./gradbed p4 compile p4src/router.p4"


@pytest.mark.root
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("user", "commands"),
    [
        (USER, (PYTEST, TOPOLOGY)),
        (USER, (TOPOLOGY, PYTEST)),
        (USER, (COMPILE, PYTEST, "./gradbed run shuffle --plan-only")),
        (None, (f"./gradbed test {TEST}", TOPOLOGY)),
        (None, (TOPOLOGY, f"./gradbed test {TEST}")),
        (None, ("./gradbed --install-python test", f".venv/bin/python -m pytest {TEST}")),
    ],
)
def test_in_any_order(user: int | None, commands: tuple[str, ...]) -> None:
    with plain_machine(user) as machine:
        for command in commands:
            status, said = machine.run(command)
            assert status == 0, f"{command}: {status}\n{said[-3000:]}"


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        ("-m pytest", True),
        ("-m pytest -q -n 2 tests/unit/topo", True),
        (f"-m pytest {TEST}", True),
        ("-m pytest docs", False),
        ("-m pytest -q -n 2 docs/index.md", False),
        ("tests/command.py", False),
        ("-m http.server", False),
    ],
)
def test_tests_of_the_checkout_are_known(words: str, ours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TESTS.parent)
    assert runs_gradbeds_tests(words.split()) is ours


def test_tests_of_elsewhere_are_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not runs_gradbeds_tests(["-m", "pytest"])
