"""Every exercise: its solution passes its checks, its starter code does not, nor do plausible wrong solutions."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gradbed.cli.commands.exercise import EXERCISES
from gradbed.experiments.exercises.checks import KINDS, check_solution
from gradbed.experiments.exercises.exercise import Exercise, exercises
from gradbed.experiments.exercises.solution import SolutionFinding, copied

MUTANTS = Path(__file__).parent / "mutants"
KNOWN = exercises(EXERCISES)
WRONG = [(name, mutant) for name in KNOWN for mutant in yaml.safe_load((MUTANTS / f"{name}.yaml").read_text())]


def told(finding: SolutionFinding | None) -> str:
    """All that the student reads, labels in front."""
    assert finding is not None
    return "\n".join([finding.what, *(f"{label} {text}" for label, text in finding.details)])


def test_each_is_whole() -> None:
    assert len(KNOWN) >= 4
    places = [each.description.place for each in KNOWN.values()]
    assert places == sorted(set(places)), "two have the same place"
    for name, exercise in KNOWN.items():
        readme = (exercise.folder / "README.md").read_text()
        for part in ("**Goal.**", "## Background", "## Steps", "## Check", "## Questions", "```\n"):
            assert part in readme, f"{name}: {part}"
        assert len(exercise.hints) >= 3, name
        assert 20 <= exercise.description.minutes <= 90, name
        starter = (exercise.folder / "starter" / exercise.program).read_text()
        assert "TODO" in starter and (exercise.folder / "solution" / exercise.program).is_file(), name
        assert not any("TODO" in file.read_text() for file in exercise.solution), name
        assert {file.name for file in exercise.solution} <= {
            file.name for file in (exercise.folder / "starter").iterdir()
        }
        assert sum(wrong == name for wrong, _ in WRONG) >= 3, name


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize("exercise", KNOWN.values(), ids=lambda each: each.name)
def test_the_solution_passes_and_the_starter_fails(exercise: Exercise, tmp_path: Path) -> None:
    exercise.solve(tmp_path / "solved")
    for checked in check_solution(exercise, tmp_path / "solved"):
        assert checked.finding is None, f"{checked.name}: {told(checked.finding)}"
    exercise.start(tmp_path / "started")
    outcomes = list(check_solution(exercise, tmp_path / "started"))
    assert outcomes[0].name != "it compiles", told(outcomes[0].finding)
    assert any(checked.finding is not None for checked in outcomes)


def mutated(exercise: Exercise, mutant: dict[str, Any], folder: Path) -> None:
    exercise.solve(folder)
    file = folder / mutant.get("file", exercise.program)
    text = file.read_text()
    assert text.count(mutant["old"]) == 1, f"{file.name} has {text.count(mutant['old'])} of {mutant['old']!r}"
    file.write_text(text.replace(mutant["old"], mutant["new"]))


@pytest.mark.commit_cases(11)
@pytest.mark.parametrize(
    ("name", "mutant"), WRONG, ids=[f"{name}-{number}" for number, (name, _) in enumerate(WRONG)]
)
def test_a_wrong_solution_is_refused_with_what_is_wrong(name: str, mutant: dict[str, Any], tmp_path: Path) -> None:
    exercise = KNOWN[name]
    mutated(exercise, mutant, tmp_path / "work")
    subject = copied(tmp_path / "work", exercise.program, tmp_path / "subject")
    check = exercise.folder / "checks" / mutant["check"]
    said = told(KINDS[check.suffix](subject, check))
    assert re.search(mutant["says"], said, re.DOTALL), said
    # The solution is not given away.
    solution = set(map(str.strip, (exercise.folder / "solution" / exercise.program).read_text().splitlines()))
    starter = set(map(str.strip, (exercise.folder / "starter" / exercise.program).read_text().splitlines()))
    own = set(map(str.strip, (tmp_path / "work" / exercise.program).read_text().splitlines()))
    assert not [line for line in solution - starter - own if len(line) > 12 and line in said]


def test_the_list_in_the_documentation_is_this_one() -> None:
    page = (Path(__file__).parents[3] / "docs" / "exercises.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE)
    about = [(name, str(added_lines(each)), each.description) for name, each in KNOWN.items()]
    assert rows == [(name, str(each.minutes), lines, each.title, each.learnt) for name, lines, each in about]


def added_lines(exercise: Exercise) -> int:
    """Number of lines of code that the solution has and the starter code has not."""
    added = 0
    for file in exercise.solution:
        starter = (exercise.folder / "starter" / file.name).read_text().splitlines()
        changes = difflib.ndiff(starter, file.read_text().splitlines())
        lines = [line[2:].strip() for line in changes if line.startswith("+ ")]
        added += sum(bool(line) and not line.startswith(("//", "#")) for line in lines)
    return added
