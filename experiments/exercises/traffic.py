"""Check a solution by traffic: a study of the workload system with the solution's program and entries."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.experiments.engine.trial import run_trial
from gradbed.experiments.exercises.finding import Detail, SolutionFinding
from gradbed.experiments.exercises.subject import Solution
from gradbed.experiments.exercises.watch import labelled
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.loading import load_study

SHOWN = ("sent_packets", "received_packets", "duplicates", "reordered", "misdelivered")


def check_traffic(subject: Solution, study: Path) -> SolutionFinding | None:
    """Return the first failure of a trial, and what may be why; None: there is none."""
    about = _about(study)
    work = subject.folder
    place = work / study.name
    shutil.copyfile(study, place)
    try:
        loaded = load_study(place)
        for trial in loaded.trials:
            task = TrialTask(trial.configuration, trial.seed, Scale(), work)
            result = run_trial(loaded.system, task)
            if result.failures:
                return SolutionFinding(f"{about}: {result.failures[0]}", _details(result))
    except UserError as error:
        return SolutionFinding(f"{about}: {re.sub(rf'^{re.escape(study.name)}:[0-9]+: ', '', subject.words(error))}")
    finally:
        place.unlink()
    return None


def _details(result: TrialResult) -> tuple[Detail, ...]:
    numbers = ", ".join(
        f"{name.replace('_', ' ')} {value}" for name in SHOWN if (value := result.metrics.get(name)) is not None
    )
    lost = [row for row in result.tables["pairs"] if row.get("lost")]
    found = [Detail("came out", numbers)]
    if lost:
        first = lost[0]
        found.append(Detail("", f"of {len(lost)} pairs with losses the first: {first['from']} to {first['to']}"))
    return (*found, *labelled("hint", [str(row["note"]) for row in result.tables["notes"]]))


def _about(study: Path) -> str:
    first = study.read_text(encoding="utf-8").splitlines()[0]
    return first.removeprefix("# ") if first.startswith("# ") else study.stem
