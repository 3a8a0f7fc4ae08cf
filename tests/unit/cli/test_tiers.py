"""gradbed test: which tests a tier runs, with how many examples, and what a change needs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer
from hypothesis import settings

from gradbed.common.errors import UserError
from tests import changed
from tests.examples import examples

ROOT = Path(__file__).resolve().parents[3]
CHECKS = 2
"""Of style, before the tests."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """The command lines that `gradbed test` would start, in order; each ends with status 0."""
    from gradbed.cli.commands import test as command
    from gradbed.common import namespaces, sandbox

    found: list[list[str]] = []

    def run(line: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        found.append(line)
        chosen = "tests/unit/topo/test_graph.py\n" if line[-1] == "tests.changed" else ""
        return subprocess.CompletedProcess(line, 0, chosen, "")

    def in_this_process(function: Callable[[], int], *_: Any) -> int:
        return function()

    class Mypy:
        returncode = 0

        def __enter__(self) -> Mypy:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def communicate(self) -> tuple[str, str]:
            return "", ""

    monkeypatch.setattr(command.subprocess, "run", run)
    monkeypatch.setattr(command.subprocess, "Popen", lambda *_, **__: Mypy())
    monkeypatch.setattr(command, "_install_optional_programs", lambda arguments: None)
    monkeypatch.setattr(namespaces, "require_root", lambda what: None)
    monkeypatch.setattr(sandbox, "run_in_sandbox", in_this_process)
    monkeypatch.chdir(ROOT)
    yield found


def chosen(line: list[str]) -> tuple[str, str]:
    """What pytest selects by its markers, and Hypothesis' profile."""
    return line[line.index("-m", 3) + 1], line[line.index("--hypothesis-profile") + 1]


def run(*arguments: str, **tiers: bool) -> int:
    from gradbed.cli.commands.test import test

    return test(cast(typer.Context, SimpleNamespace(args=list(arguments))), **tiers)


COMMIT, THOROUGH = "not thorough and not nightly", "thorough and not nightly"


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ({}, [(COMMIT, "commit")]),
        ({"everything": True}, [(COMMIT, "commit"), (THOROUGH, "thorough")]),
        ({"nightly": True}, [(COMMIT, "nightly"), (THOROUGH, "nightly"), ("nightly", "nightly")]),
    ],
)
def test_a_tier_runs_those_before_it(
    options: dict[str, bool], runs: list[tuple[str, str]], started: list[list[str]]
) -> None:
    assert run(**options) == 0
    of_pytest = [line for line in started if "pytest" in line]
    assert [chosen(line) for line in of_pytest] == runs
    assert [("--timeout=600" in line) for line in of_pytest] == ["nightly" not in options] * len(runs)
    others = len(started) - len(of_pytest) - CHECKS
    assert others == ("nightly" in options)
    assert (started[-1][1:] == ["-m", "tests.mutants"]) == ("nightly" in options)


def test_paths_run_at_once_with_the_tests_of_every_tier_asked_for(started: list[list[str]]) -> None:
    assert run("tests/unit/topo", "-x", everything=True) == 0
    (line,) = started
    assert chosen(line) == (f"({COMMIT}) or ({THOROUGH})", "thorough")
    assert line[-2:] == ["tests/unit/topo", "-x"]


def test_what_has_changed_is_tested_thoroughly(started: list[list[str]]) -> None:
    assert run(changed=True) == 0
    assert started[1][-1] == "tests/unit/topo/test_graph.py"
    assert chosen(started[1]) == (f"({COMMIT}) or ({THOROUGH})", "thorough")


@pytest.mark.parametrize("more", [{"everything": True}, {"nightly": True}])
def test_changed_takes_no_tier(more: dict[str, bool], started: list[list[str]]) -> None:
    with pytest.raises(UserError):
        run(changed=True, **more)
    assert started == []


def test_changed_takes_no_paths(started: list[list[str]]) -> None:
    with pytest.raises(UserError):
        run("tests/unit", changed=True)
    assert started == []


@pytest.mark.parametrize(
    ("profile", "count", "of_most"), [("commit", 12, 30), ("thorough", 40, 100), ("nightly", 120, 300)]
)
def test_each_profile_has_more_examples(profile: str, count: int, of_most: int) -> None:
    before = settings.get_current_profile_name()
    try:
        settings.load_profile(profile)
        assert examples(40) == count
        assert examples(1) >= 1
        assert settings.default.max_examples == of_most
    finally:
        settings.load_profile(before)


def test_a_change_needs_the_tests_that_kill_its_mutants_and_those_that_import_it() -> None:
    assert "tests/p4/aggregation/test_aggregation.py" in changed.tests_of(
        ["p4src/include/aggregation/slots.p4"], ROOT
    )
    of_a_module = changed.tests_of(["tests/changed.py"], ROOT)
    assert of_a_module == [Path(__file__).relative_to(ROOT).as_posix()]
    assert changed.tests_of([of_a_module[0], "docs/api.md", "tests/test_of_nothing.py"], ROOT) == of_a_module


def test_files_that_differ_from_the_last_commit(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    git("init")
    for name in ("same.py", "changed.py", "removed.py", "staged.py", ".gitignore"):
        (tmp_path / name).write_text("ignored.py\n")
    git("add", ".")
    git("commit", "-m", "First")
    assert changed.changed_files(tmp_path) == []
    for name in ("changed.py", "staged.py", "new.py", "ignored.py"):
        (tmp_path / name).write_text("different\n")
    (tmp_path / "removed.py").unlink()
    git("add", "staged.py")
    assert changed.changed_files(tmp_path) == ["changed.py", "new.py", "removed.py", "staged.py"]


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize("number", range(4))
def test_the_first_cases_run_before_a_commit(number: int, request: pytest.FixtureRequest) -> None:
    assert (request.node.get_closest_marker("thorough") is not None) == (number >= 2)
