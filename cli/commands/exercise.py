"""gradbed exercise: tasks with starter code, and tests that are not shown."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Annotated

import typer

from common.errors import UserError
from common.scratch import scratch_folder
from common.suggestion import suggestion

EXERCISES = Path(__file__).resolve().parents[1] / "templates" / "exercises"
HIDDEN = "hidden"
"""A folder of each exercise: packet tests and a study with expectations, which a solution must pass."""

app = typer.Typer(help="Exercises for courses.", no_args_is_help=True)


@app.command("list")
def list_() -> int:
    """Name the exercises, with the first line of each."""
    for name in names():
        first = (EXERCISES / name / "README.md").read_text(encoding="utf-8").splitlines()[0]
        print(f"{name:12} {first.removeprefix('# ')}")
    return 0


@app.command("start")
def start(
    name: Annotated[str, typer.Argument(help="Of an exercise.")],
    folder: Annotated[Path, typer.Argument(help="A new folder for the starter code.")],
) -> int:
    """Copy an exercise's starter code into a new folder."""
    try:
        shutil.copytree(_exercise(name), folder, ignore=shutil.ignore_patterns(HIDDEN))
    except FileExistsError:
        raise UserError(f"{folder} is there already: choose another name") from None
    except OSError as error:
        raise UserError(f"cannot make {folder}: {error}") from None
    print(f"made {folder}/: read {folder}/README.md")
    return 0


@app.command("check")
def check(
    name: Annotated[str, typer.Argument(help="Of an exercise.")],
    folder: Annotated[Path, typer.Argument(help="With a solution.")],
) -> int:
    """Run the exercise's hidden tests on a solution. Exit status 1 if one fails."""
    exercise = _exercise(name)
    program = folder / f"{name}.p4"
    if not program.is_file():
        raise UserError(f"{folder} has no {program.name}")
    passed = True
    for test in sorted((exercise / HIDDEN).iterdir()):
        found = _packets(program, test) if test.suffix == ".stf" else _traffic(folder, test)
        print(f"{'FAILED' if found else 'passed'}  {test.stem.replace('_', ' ')}{f': {found}' if found else ''}")
        passed &= not found
    return 0 if passed else 1


def names() -> list[str]:
    return sorted(path.name for path in EXERCISES.iterdir() if (path / HIDDEN).is_dir())


def _exercise(name: str) -> Path:
    if name not in names():
        raise UserError(f"there is no exercise {name!r}{suggestion(name, names())}")
    return EXERCISES / name


def _packets(program: Path, test: Path) -> str:
    """What fails first; "": nothing. Which packet it was says the comment above it in the test."""
    from switch.codegen import build_program
    from switch.compiler import compile_p4
    from switch.stf import read_stf, run_script

    outcome = run_script(build_program(compile_p4(program).json), read_stf(test))
    if outcome.passed:
        return ""
    failures = [failure.removeprefix(f"{test}:").partition(": ") for failure in outcome.failures]
    number, said = min((int(number), said) for number, _, said in failures)
    lines = test.read_text(encoding="utf-8").splitlines()[:number]
    about = [line.removeprefix("# ") for line in lines if line.startswith("#")][-1]
    return f"{about}: {said.partition('; expected')[0]}"


def _traffic(folder: Path, study: Path) -> str:
    """The first failure of a study whose program and entries are the solution's, and what may be why; "": none."""
    from experiments.engine.point import run_point
    from experiments.scale import Scale
    from experiments.setup import PointTask
    from experiments.study.loading import load_study

    with scratch_folder() as scratch:
        work = scratch / "solution"
        shutil.copytree(folder, work, ignore=shutil.ignore_patterns("results"))
        shutil.copy(study, work)
        try:
            loaded = load_study(work / study.name)
            for point in loaded.points:
                task = PointTask(point.configuration, point.seed, Scale(), scratch)
                result = run_point(loaded.system, task)
                if result.failures:
                    return "; ".join([result.failures[0], *(str(row["note"]) for row in result.tables["notes"])])
        except UserError as error:
            return re.sub(rf"^{re.escape(study.name)}:\d+: ", "", str(error).replace(f"{work}/", ""))
    return ""
