"""Sentences of the documents that quote a figure, held to the figure's data.

The data are docs/data/STUDY.csv, as `gradbed figures` leaves them in a run's folder (data/). A test of a system says

    ring = figure_data("aggregation_6_byte_hops").row(workers=15, exchange="ring")
    said("docs/figures.md", f"the ring of 15 sends {ring['byte_hops']:.0f} gradients")

so that no number of the sentence is typed: it is computed from the table, and must stand like this in the document.
"""

from __future__ import annotations

import csv
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.experiments.study.loading import load_study

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class FigureData:
    """Rows of a study's table: swept paths, clock, repetitions, metrics (means) and METRIC_half. Numbers are numbers,
    what is empty None."""

    study: str
    of_both_clocks: Sequence[Mapping[str, Any]]

    def rows(self, clock: str = "virtual", **at: Any) -> list[Mapping[str, Any]]:
        """Of a clock, those with the given values of swept paths, each called by its last part ("workers") or by more
        of it with __ for a dot (topology__kind). AssertionError without any."""
        wanted = {self._path(name): _shown(value) for name, value in at.items()}
        found = [
            row
            for row in self.of_both_clocks
            if row["clock"] == clock and all(_shown(row[path]) == value for path, value in wanted.items())
        ]
        assert found, f"{self.study}: no row has {at}"
        return found

    def row(self, clock: str = "virtual", **at: Any) -> Mapping[str, Any]:
        """The only one."""
        found = self.rows(clock, **at)
        assert len(found) == 1, f"{self.study}: {len(found)} rows have {at}"
        return found[0]

    def _path(self, name: str) -> str:
        wanted = name.replace("__", ".")
        found = [key for key in self.of_both_clocks[0] if f".{key}".endswith(f".{wanted}")]
        assert len(found) == 1, f"{self.study}: {len(found)} columns are called {wanted}"
        return found[0]


@functools.cache
def figure_data(study: str) -> FigureData:
    """The table of a study. AssertionError where it is not of the study's full form as its file now is: places that
    are missing or that the study no longer has."""
    path = ROOT / "docs" / "data" / f"{study}.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(file)]
    [yaml] = ROOT.glob(f"experiments/systems/*/studies/{study}.yaml")
    asked = load_study(yaml).trials
    paths = load_study(yaml).head.sweep.paths
    main = next(trial for trial in asked).configuration.clock
    of_main = [trial for trial in asked if not trial.other_clock and trial.configuration.clock == main]
    places = {tuple(_shown(trial.coordinates[path]) for path in paths) for trial in of_main}
    found = {tuple(_shown(row[path]) for path in paths) for row in rows if row["clock"] == main}
    assert found == places, f"docs/data/{study}.csv is not of the study as it is now: make it anew"
    return FigureData(study, rows)


def said(document: str, sentence: str) -> None:
    """The sentence, or the part of one, stands in a document (path from the top), wherever its lines are broken, and
    whatever is bold in it."""
    text = " ".join((ROOT / document).read_text(encoding="utf-8").replace("**", "").split())
    assert " ".join(sentence.replace("**", "").split()) in text, (
        f"{document} does not say, as the figure's data do: {sentence}"
    )


def _value(text: str) -> Any:
    if text == "":
        return None
    if text.startswith("["):
        return json.loads(text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _shown(value: Any) -> str:
    """Of a coordinate: the same as read from CSV and as validated. What a fault leaves as it is does not count: links
    may have got a further quality since."""
    if isinstance(value, dict):
        return str({key: _shown(each) for key, each in sorted(value.items()) if each is not None})
    if isinstance(value, list | tuple):
        return str([_shown(each) for each in value])
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(float(value))
    return "" if value is None else str(value)
