"""A run as its folder tells it, whatever became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gradbed.common.errors import UserError, unforeseen
from gradbed.experiments.results.run_folder import NetworkFile, TrialRecord, read_network
from gradbed.experiments.results.study_results import StudyResults, load_results, worst
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition import StudyHead
from gradbed.experiments.system import System
from gradbed.experiments.systems import find_system
from gradbed.experiments.validity.verdict import VerdictWord


@dataclass(frozen=True)
class Run:
    """A run as reports read it."""

    results: StudyResults
    system: System | None
    """The system; None if this version of gradbed has no such system."""
    head: StudyHead | None
    """The study's head; None if this version of gradbed cannot read it."""
    environments: Sequence[Mapping[str, Any]]
    """Environment of each time that the run was started or resumed."""
    broken: Mapping[str, str]
    """Reason why a trial has no result, by digest."""

    @property
    def folder(self) -> Path:
        return self.results.folder

    @property
    def resolved(self) -> Mapping[str, Any]:
        return self.results.resolved

    @property
    def trials(self) -> tuple[TrialRecord, ...]:
        """Trials of the run, those on the other clock last."""
        return (*self.results.trials, *self.results.other_clock)

    @property
    def title(self) -> str:
        return str(self.resolved.get("title") or self.resolved["name"])

    @property
    def stamp(self) -> str:
        """Time at which it began, from the name of its folder."""
        return self.folder.resolve().name

    @cached_property
    def is_single(self) -> bool:
        """Return whether it is of one trial alone, such as `gradbed run NAME`."""
        return not (self.resolved["sweep"]["product"] or self.resolved["sweep"]["zip"])

    @cached_property
    def missing(self) -> list[Mapping[str, Any]]:
        """Trials that are planned, and neither done nor broken; those that mean the same are one."""
        done = {trial.digest for trial in self.trials}
        planned = {trial["digest"]: trial for trial in self.resolved["trials"]}
        return [trial for digest, trial in planned.items() if digest not in done and digest not in self.broken]

    @property
    def failed(self) -> list[TrialRecord]:
        """Failed trials, one for each digest."""
        return list({trial.digest: trial for trial in self.trials if trial.failures}.values())

    @property
    def verdict(self) -> VerdictWord:
        """The worst of its own trials; unknown without any."""
        return worst(trial.row["verdict"] for trial in self.results.trials)

    def configuration(self, digest: str) -> Mapping[str, Any]:
        return self._configurations.get(digest, {})

    @cached_property
    def _configurations(self) -> dict[str, Mapping[str, Any]]:
        return self.results.configurations()

    def network(self, digest: str) -> NetworkFile | None:
        """Return the stored network of a trial; of older runs the configured topology, if it has all that was
        counted.
        """
        found = read_network(self.folder / "trials" / digest)
        if found is not None or self.system is None:
            return found
        try:
            configuration = self.system.configuration.model_validate(self.configuration(digest))
            return NetworkFile(configuration.topology.build(Scale()))
        except (UserError, ValueError, OSError):
            return None


def read_run(folder: Path) -> Run:
    """UserError if the folder holds no run of a study."""
    try:
        results = load_results(folder)
        resolved = results.resolved
        resolved["sweep"]["product"], resolved["sweep"]["zip"], resolved["system"]  # are they there?
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder} holds no run that can be read: {unforeseen(error)}") from None
    planned = {trial["digest"] for trial in resolved["trials"]}
    done = {trial.digest for trial in (*results.trials, *results.other_clock)}
    return Run(results, _system(resolved), _head(resolved), _environments(folder), _broken(folder, planned - done))


def _system(resolved: Mapping[str, Any]) -> System | None:
    try:
        return find_system(str(resolved["system"]))
    except UserError:
        return None


def _head(resolved: Mapping[str, Any]) -> StudyHead | None:
    known = {name: resolved[name] for name in StudyHead.model_fields if name in resolved and name != "quick"}
    try:
        return StudyHead.model_validate(known)
    except ValidationError:
        return None


def _environments(folder: Path) -> list[Mapping[str, Any]]:
    found = []
    for path in sorted(folder.glob("environment*.json"), key=lambda path: (len(path.name), path.name)):
        try:
            found.append(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    return found


def _broken(folder: Path, without_result: set[str]) -> dict[str, str]:
    """The last line of each log."""
    found = {}
    for path in sorted((folder / "logs").glob("*.log")):
        if path.stem in without_result:
            lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            found[path.stem] = lines[-1] if lines else "it ended without a word"
    return found
