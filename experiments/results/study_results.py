"""The trials of a run as a figure needs them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.experiments.validity.verdict import GRAVITY, VerdictWord
from gradbed.experiments.plotting.series import INTERVAL_FROM, SeriesPoint
from gradbed.experiments.results.run_folder import TrialRecord, RunFiles
from gradbed.experiments.tables.metric import CONFIDENCE
from gradbed.experiments.tables.metric import value_words

OfRow = Callable[[Mapping[str, Any]], Any]
"""Of a row of the trials table."""


@dataclass(frozen=True)
class StudyResults:
    """Results of all finished trials of a run."""

    folder: Path
    resolved: Mapping[str, Any]
    """Contents of study.json."""
    trials: tuple[TrialRecord, ...]
    other_clock: tuple[TrialRecord, ...] = ()
    """Trials that repeat others on the other clock."""

    @property
    def heading(self) -> str:
        """Heading of figures: the study's title, and how its trials were measured."""
        are_shown = self._repetitions < INTERVAL_FROM
        return self._heading("mean and values of" if are_shown else f"mean and {100 * CONFIDENCE:.0f} % interval of")

    @property
    def heading_of_first(self) -> str:
        """The same above figures that show the first repetition alone."""
        return self._heading("the first of")

    @property
    def heading_of_all(self) -> str:
        """The same above figures that show the values of all repetitions together."""
        return self._heading("values of all")

    def _heading(self, what_of: str) -> str:
        repetitions = self._repetitions
        measured = [
            *([f"{what_of} {repetitions} repetitions{self._random()}"] if repetitions > 1 else []),
            *clock_words([trial.row for trial in self.trials]),
            *(["quick form"] if self.resolved["quick"] else []),
        ]
        return "\n".join([str(self.resolved["title"] or self.resolved["name"]), "; ".join(measured)])

    @property
    def _repetitions(self) -> int:
        return max((1 + trial.repetition for trial in self.trials), default=1)

    def _random(self) -> str:
        """Return the reason for repetitions where not all trials have any."""
        repeated = {repr(trial.coordinates) for trial in self.trials if trial.repetition}
        alone = any(repr(trial.coordinates) not in repeated for trial in self.trials)
        return " where anything is random" if alone else ""

    def series(self, x: str, y: str, series: str | None = None) -> dict[Any, list[SeriesPoint]]:
        """Return y at each x by value of `series` (one key, None, without), in the order of the study.

        x and series are swept paths or columns of the trials table. Trials without y are left out.
        """
        return self.derived_series(
            lambda row: single(row[x]),
            lambda row: row.get(y),
            lambda row: single(row[series]) if series is not None else None,
        )

    def derived_series(self, x: OfRow, y: OfRow, label: OfRow) -> dict[Any, list[SeriesPoint]]:
        """Return a series as `series` does, of values computed from rows of the trials table; y None leaves a trial
        out.
        """
        groups: dict[Any, dict[Any, list[tuple[TrialRecord, float]]]] = {}
        for trial in (*self.trials, *self.other_clock):
            row = trial.row
            value = y(row)
            if value is not None:
                groups.setdefault(label(row), {}).setdefault(x(row), []).append((trial, float(value)))
        return {
            name: [
                _series_point(at, found) for at, found in places.items() if not all(p.other_clock for p, _ in found)
            ]
            for name, places in groups.items()
        }

    def configurations(self) -> dict[str, Mapping[str, Any]]:
        """Return the configuration of each trial, by its digest."""
        return {trial["digest"]: trial["configuration"] for trial in self.resolved["trials"]}

    def model_of(self, trial: TrialRecord) -> str:
        """Return the model of a trial's switches: "gradbed" or "bmv2"."""
        return str(self.configurations()[trial.digest]["program"]["model"])

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a further table, with the coordinates of their trials, those on the other clock included."""
        return [row for trial in (*self.trials, *self.other_clock) for row in trial.table(name)]


def load_results(folder: Path, files: RunFiles | None = None) -> StudyResults:
    """files: of the folder, if they are in memory already. UserError if the folder holds no run of a study."""
    try:
        resolved = json.loads((folder / "study.json").read_text(encoding="utf-8"))
        planned = [
            (trial["digest"], trial["coordinates"], trial["repetition"], trial.get("other_clock", False))
            for trial in resolved["trials"]
        ]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{folder} holds no run of a study: {error}") from None
    files = files or RunFiles(folder)
    trials = [
        stored.at(coordinates, repetition, other_clock)
        for digest, coordinates, repetition, other_clock in planned
        if (stored := files.read(digest)) is not None
    ]
    return StudyResults(
        folder,
        resolved,
        tuple(trial for trial in trials if not trial.other_clock),
        tuple(trial for trial in trials if trial.other_clock),
    )


def clock_words(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the clocks of the trials, and how much they were slowed down, as text."""
    found = []
    for clock, factor in sorted({(row["clock"], row["scale_factor"]) for row in rows}):
        scaled = f", links at {factor:g} of their rate (times and rates nominal)" if factor != 1 else ""
        found.append("virtual clock" if clock == "virtual" else f"Mininet in real time{scaled}")
    return found


def worst(verdicts: Iterable[VerdictWord]) -> VerdictWord:
    """Return the worst of the verdicts; "unknown" if there are none."""
    return max(verdicts, key=GRAVITY.index, default="unknown")


def single(value: Any) -> Any:
    """Return a value as it is, or as text if it has parts, such as faults: then it can be a key and a label."""
    return value_words(value) if isinstance(value, list | Mapping) else value


def _series_point(x: Any, found: Sequence[tuple[TrialRecord, float]]) -> SeriesPoint:
    beside = [(p, y) for p, y in found if p.other_clock]
    good = [(p, y) for p, y in found if p.is_good and not p.other_clock]
    bad = [(p, y) for p, y in found if not p.is_good and not p.other_clock]
    return SeriesPoint(
        x=x,
        values=tuple(y for _, y in good),
        invalid=tuple(y for _, y in bad),
        verdict=worst(p.row["verdict"] for p, _ in good) if good else "invalid",
        other_clock=tuple(y for p, y in beside if p.is_good),
    )
