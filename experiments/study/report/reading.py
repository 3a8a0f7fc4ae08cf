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
from gradbed.experiments.fidelity.verdict import VerdictWord
from gradbed.experiments.records.results import StudyResults, load_results, worst
from gradbed.experiments.records.run_folder import DonePoint, NetworkFile, read_network
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition import StudyHead
from gradbed.experiments.system import System
from gradbed.experiments.systems import find_system


@dataclass(frozen=True)
class Run:
    """What reports are made of. system, head: None where this version of gradbed does not know them any more.
    environments: of each time that it was gone on with. broken: by digest, why a point has no result."""

    results: StudyResults
    system: System | None
    head: StudyHead | None
    environments: Sequence[Mapping[str, Any]]
    broken: Mapping[str, str]

    @property
    def folder(self) -> Path:
        return self.results.folder

    @property
    def resolved(self) -> Mapping[str, Any]:
        return self.results.resolved

    @property
    def points(self) -> tuple[DonePoint, ...]:
        """Those on the other clock last."""
        return (*self.results.points, *self.results.other_clock)

    @property
    def title(self) -> str:
        return str(self.resolved.get("title") or self.resolved["name"])

    @property
    def stamp(self) -> str:
        """When it began, as its folder is called."""
        return self.folder.resolve().name

    @cached_property
    def is_single(self) -> bool:
        """Whether it is of one point alone, such as `gradbed run NAME`."""
        return not (self.resolved["sweep"]["product"] or self.resolved["sweep"]["zip"])

    @cached_property
    def missing(self) -> list[Mapping[str, Any]]:
        """Points that are planned, and neither done nor broken; those that mean the same are one."""
        done = {point.stored.digest for point in self.points}
        planned = {point["digest"]: point for point in self.resolved["points"]}
        return [point for digest, point in planned.items() if digest not in done and digest not in self.broken]

    @property
    def failed(self) -> list[DonePoint]:
        """One for each digest."""
        return list({point.stored.digest: point for point in self.points if point.stored.failures}.values())

    @property
    def verdict(self) -> VerdictWord:
        """The worst of its own points; unknown without any."""
        return worst(point.row["verdict"] for point in self.results.points)

    def configuration(self, digest: str) -> Mapping[str, Any]:
        return self._configurations.get(digest, {})

    @cached_property
    def _configurations(self) -> dict[str, Mapping[str, Any]]:
        return self.results.configurations()

    def network(self, digest: str) -> NetworkFile | None:
        """What the point left; of older runs the topology of its configuration, if that has all that was counted."""
        found = read_network(self.folder / "points" / digest)
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
    planned = {point["digest"] for point in resolved["points"]}
    done = {point.stored.digest for point in (*results.points, *results.other_clock)}
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
