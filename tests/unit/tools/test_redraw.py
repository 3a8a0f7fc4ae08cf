"""Figures drawn from docs/data: of the right rows, with their means and intervals."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

import pytest
from scipy import stats

from gradbed.common.errors import UserError
from gradbed.experiments.study.loading import load_study
from tools.redraw import DATA, STUDIES, image_of, published

NAME, METRIC = "interconnect_1_latency", "latency_s"


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def write_rows(rows: list[dict[str, str]], file: Path) -> None:
    with file.open("w", newline="", encoding="utf-8") as text:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_means_and_intervals_are_the_published_ones(tmp_path: Path) -> None:
    study = load_study(STUDIES / "interconnect" / "studies" / f"{NAME}.yaml")
    results = published(study, DATA / f"{NAME}.csv", tmp_path)
    swept = list(study.head.sweep.paths)
    rows = {tuple(row[path] for path in swept): row for row in rows_of(DATA / f"{NAME}.csv")}
    values: dict[tuple[str, ...], list[float]] = {}
    for trial in results.trials:
        values.setdefault(tuple(str(trial.coordinates[path]) for path in swept), []).append(trial.values[METRIC])
    assert values.keys() == rows.keys()
    for place, found in values.items():
        assert len(found) == int(rows[place]["repetitions"]) == 5
        # Student's interval of five values, with the quantile of four degrees of freedom from a table.
        half = 2.7764 * statistics.stdev(found) / 5**0.5
        assert statistics.mean(found) == pytest.approx(float(rows[place][METRIC]), rel=1e-9)
        assert half == pytest.approx(float(rows[place][f"{METRIC}_half"]), rel=1e-4)
    assert stats.t.ppf(0.975, 4) == pytest.approx(2.7764, abs=1e-4)


def test_rows_of_another_sweep_are_refused(tmp_path: Path) -> None:
    study = load_study(STUDIES / "interconnect" / "studies" / f"{NAME}.yaml")
    rows = rows_of(DATA / f"{NAME}.csv")
    file = tmp_path / f"{NAME}.csv"
    write_rows([*rows[1:], rows[0]], file)
    with pytest.raises(UserError, match=r"row 1 of interconnect_1_latency\.csv has another"):
        published(study, file, tmp_path)
    write_rows(rows[:-1], file)
    with pytest.raises(UserError, match="the study sweeps more"):
        published(study, file, tmp_path)


def test_three_repetitions_need_a_run(tmp_path: Path) -> None:
    study = load_study(STUDIES / "interconnect" / "studies" / f"{NAME}.yaml")
    file = tmp_path / f"{NAME}.csv"
    write_rows([{**row, "repetitions": "3"} for row in rows_of(DATA / f"{NAME}.csv")], file)
    with pytest.raises(UserError, match="three repetitions"):
        published(study, file, tmp_path)


def test_every_published_row_is_of_its_trial(tmp_path: Path) -> None:
    """Whatever may be drawn: only studies with three repetitions, or without data, are left out."""
    drawn = 0
    for file in sorted(STUDIES.glob("*/studies/*_[0-9]*_*.yaml")):
        if (data := DATA / f"{file.stem}.csv").is_file():
            try:
                drawn += bool(published(load_study(file), data, tmp_path).trials)
            except UserError as problem:
                assert "three repetitions" in str(problem), (file.stem, problem)
    assert drawn > 20


def test_images_are_found_by_study_and_figure() -> None:
    found = image_of("shuffle_3_trees", "loads")
    assert found is not None and found.name == "shuffle_3_loads.png"
    assert image_of("shuffle_3_trees", "nothing") is None
