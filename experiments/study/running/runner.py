"""Run the trials of a study: all that are not done yet, each stored as soon as it is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gradbed.common.errors import ProcessLost, UserError
from gradbed.experiments.results.run_folder import RunFiles, RunFolder, TrialRecord, environment, find_run
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.definition import Study, TrialSpec
from gradbed.experiments.study.running.concurrent_trials import ConcurrentExecutor
from gradbed.experiments.study.running.digest import digest, identity, source_digest
from gradbed.experiments.study.running.executors import RunOptions, open_executor
from gradbed.experiments.study.running.worker import BrokenTrial
from gradbed.experiments.tables.files import write_tables

MOST_OF_THE_TIME = 0.05
"""Share of the time that may go into tables of all trials while there are more to come."""
SAME_TROUBLES = 2
"""So many trials in turn that break for the same reason, and none that does not, end the study: the others would,
too."""


@dataclass(frozen=True)
class StudyRun:
    """A run that has ended."""

    folder: Path
    files: RunFiles
    done: tuple[TrialRecord, ...]
    """In the order of the study."""
    planned: int
    broken: dict[str, str]
    """By label, why a trial has no result."""
    interrupted: bool


def plan(study: Study, scale: Scale) -> tuple[TrialSpec, ...]:
    """Return all trials of the study, in order, with their digests."""
    return tuple(
        replace(trial, digest=digest(identity(study.head.system, trial, _scale_of(trial, scale))))
        for trial in study.trials
    )


def _scale_of(trial: TrialSpec, scale: Scale) -> Scale:
    """Return the scale of a trial: the virtual clock needs no slower links."""
    return Scale() if trial.configuration.clock == "virtual" else scale


def run_trials(
    study: Study,
    scale: Scale,
    options: RunOptions,
    on_tables: Callable[[Path], None] = lambda folder: None,
) -> StudyRun:
    """Run what is not done yet. A trial that breaks is reported, with the reason in the run's logs, and the study
    goes on.

    Args:
        study: What to run.
        scale: Scale of trials on the real clock.
        options: Where and how to run it.
        on_tables: Called with the run's folder once that is there, and whenever its tables were written meanwhile.

    Raises:
        UserError: Nothing can run at all.
    """
    planned = plan(study, scale)
    # Unlocked at the end of this process: figures are drawn into it.
    folder = _folder(study, planned, scale, options)
    files = RunFiles(folder.path)
    on_tables(folder.path)
    tasks = [_task(study, trial, scale, files, options.threads) for trial in _todo(planned, files)]
    labels = {trial.digest: trial.label for trial in planned}
    broken: dict[str, str] = {}
    interrupted = False
    try:
        with open_executor(tasks, options) as executor:
            started_s = written_s = time.monotonic()
            writing_s = 0.0
            outcomes = executor.results(lambda task: report(f"{labels[task.digest]} ..."))
            for ended, (task, outcome) in enumerate(outcomes, 1):
                if isinstance(outcome, BrokenTrial):
                    broken[task.digest] = outcome.reason
                    kind = ProcessLost if outcome.is_lost else UserError
                    files.log(task.digest, outcome.details)
                    words = f"BROKEN: {outcome.reason}"
                else:
                    files.write(outcome)
                    words = _outcome_words(outcome)
                if broken and len(planned) == 1:
                    raise kind(broken[task.digest])
                # When the first of two such trials ends, the other is not far from its end.
                together = isinstance(executor, ConcurrentExecutor)
                left_s = 0.0 if together else (time.monotonic() - started_s) / ended * (len(tasks) - ended)
                report(f"[{ended}/{len(tasks)}] {labels[task.digest]}: {words}{_left(left_s)}")
                # Tables are for those who watch: trials are stored already. All rows are written again each time.
                if (now_s := time.monotonic()) - written_s >= writing_s / MOST_OF_THE_TIME:
                    write_trial_tables(files, planned)
                    on_tables(files.path)
                    written_s = time.monotonic()
                    writing_s = written_s - now_s
                if len(broken) == ended >= SAME_TROUBLES and len(set(broken.values())) == 1:
                    raise kind(f"{labels[task.digest]}: {broken[task.digest]}")
    except KeyboardInterrupt:
        interrupted = True
        if options.observer is not None:
            options.observer.on_abort()
    done = write_trial_tables(files, planned)
    files.link_captures()
    if not interrupted:
        folder.finish()
    return StudyRun(
        folder.path, files, tuple(done), len(planned), {labels[d]: why for d, why in broken.items()}, interrupted
    )


def _left(seconds: float) -> str:
    if seconds < 10:
        return ""
    return f" ({seconds / 60:.0f} min left)" if seconds >= 90 else f" ({seconds:.0f} s left)"


def _todo(planned: Sequence[TrialSpec], files: RunFiles) -> list[TrialSpec]:
    """Return what is missing, in order, and then what is there but worth nothing."""
    each_once = list({trial.digest: trial for trial in planned}.values())
    stored = {trial.digest: files.read(trial.digest) for trial in each_once}
    missing = [trial for trial in each_once if stored[trial.digest] is None]
    return missing + [
        trial for trial in each_once if (found := stored[trial.digest]) is not None and not found.is_good
    ]


def _task(study: Study, trial: TrialSpec, scale: Scale, files: RunFiles, threads: int) -> TrialTask:
    return TrialTask(
        trial.configuration,
        trial.seed,
        _scale_of(trial, scale),
        files.folder(trial.digest),
        False if trial.other_clock else study.head.pcap,
        threads,
        system=study.head.system,
        digest=trial.digest,
        attempts=study.head.attempts,
        limit_s=study.head.limit_s,
    )


def done_trials(files: RunFiles, planned: Iterable[TrialSpec]) -> list[TrialRecord]:
    """Return the records of trials that are done, in order."""
    return [
        record.at(trial.coordinates, trial.repetition, trial.other_clock)
        for trial in planned
        if (record := files.read(trial.digest)) is not None
    ]


def write_trial_tables(files: RunFiles, planned: Sequence[TrialSpec]) -> list[TrialRecord]:
    """Write the raw rows of all trials that are done: the table of trials, and every table that systems made."""
    done = done_trials(files, planned)
    tables = {"trials": [trial.row for trial in done]}
    for name in dict.fromkeys(name for trial in done for name in trial.tables):
        tables[name] = [row for trial in done for row in trial.table(name)]
    for name, rows in tables.items():
        if rows:
            write_tables(rows, files.path / name)
    return done


def _folder(study: Study, planned: Sequence[TrialSpec], scale: Scale, options: RunOptions) -> RunFolder:
    if options.resume:
        found = find_run(options.output, study.name, {trial.digest for trial in planned}, study.quick)
        if found is not None:
            folder = RunFolder.reopen(found)
            files = RunFiles(found)
            done = done_trials(files, planned)
            bad = sum(not trial.is_good for trial in done)
            again = (
                f"; {bad} of them failed or {'was' if bad == 1 else 'were'} invalid, and are run again" if bad else ""
            )
            report(f"going on with {found}: {len(done)} of {len(planned)} trials are done{again}")
            write_description(folder, study, planned, scale)
            return folder
        report("there is nothing to go on with (other trials, or another version of the program): starting anew")
    folder = RunFolder(options.output, study.name)
    write_description(folder, study, planned, scale)
    return folder


def write_description(folder: RunFolder, study: Study, planned: Sequence[TrialSpec], scale: Scale) -> None:
    """Write the study as given and resolved, versions and machine; those of each session that worked in the
    folder."""
    if study.path is not None:
        (folder.path / "study.yaml").write_bytes(study.path.read_bytes())
    session = 1 + len(list(folder.path.glob("environment*.json")))
    folder.write_json("environment.json" if session == 1 else f"environment-{session}.json", environment())
    folder.write_json(
        "study.json",
        {
            **study.head.model_dump(mode="json", exclude={"quick"}),
            "quick": study.quick,
            "scale_factor": scale.factor,
            "sources": source_digest(study.head.system),
            "trials": [
                {
                    "digest": trial.digest,
                    "coordinates": trial.coordinates,
                    "repetition": trial.repetition,
                    "seed": trial.seed,
                    "other_clock": trial.other_clock,
                    "configuration": trial.configuration.model_dump(mode="json"),
                }
                for trial in planned
            ],
        },
    )


def _outcome_words(record: TrialRecord) -> str:
    if record.failures:
        return f"FAILED: {record.failures[0]}"
    reasons = record.values["verdict_reasons"]
    return f"{record.values['verdict']}{': ' + str(reasons) if reasons else ''}"


def report(text: str) -> None:
    print(text if text.startswith("[") else f"gradbed: {text}", file=sys.stderr, flush=True)
