"""Draw the figures of docs/images again from what is there, without running a study.

    python -m tools.redraw                                  # all that docs/data has enough of
    python -m tools.redraw --runs results ndn_3_recovery    # of the newest run in results/, where there is one

docs/data has means and intervals alone. Figures that show further tables, or the values of three repetitions, need a
run (`gradbed figures SYSTEM --only NUMBER --clock virtual`); the others are named at the end.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import stats

from gradbed.common.errors import UserError
from gradbed.experiments.plotting.style import NothingToDraw
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.results.study_results import StudyResults, load_results
from gradbed.experiments.study.definition import Study
from gradbed.experiments.study.evaluation.figures import draw_figures
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.tables.files import flat_value
from gradbed.experiments.tables.metric import CONFIDENCE

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
DATA = ROOT / "docs" / "data"
STUDIES = ROOT / "experiments" / "systems"


class PublishedRecord(TrialRecord):
    """A trial of which docs/data has the metrics alone."""

    def table(self, name: str) -> list[dict[str, Any]]:
        """Raise a UserError: the table is not published."""
        raise UserError(f"needs a run: it shows the table {name}")


def main() -> int:
    """Redraw the images of the studies that are named, or of all."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.redraw", description="Draw the figures of docs/images again."
    )
    parser.add_argument("studies", nargs="*", help="Names of studies, such as ndn_3_recovery (default all).")
    parser.add_argument("--runs", type=Path, action="append", default=[], help="Folder with runs (NAME/latest).")
    asked = parser.parse_args()
    files = {path.stem: path for path in sorted(STUDIES.glob("*/studies/*_[0-9]*_*.yaml"))}
    if unknown := [name for name in asked.studies if name not in files]:
        parser.error(f"there is no study {unknown[0]}")
    left: list[str] = []
    for name in asked.studies or files:
        study = load_study(files[name])
        for image, reason in _redraw(study, asked.runs):
            print(f"{image.relative_to(ROOT)}: {reason or 'drawn'}", flush=True)
            left += [image.name] if reason else []
    print(f"left as they are: {', '.join(left) or 'none'}")
    return 0


def image_of(study: str, figure: str) -> Path | None:
    """Return the image that documents show of a figure; None if they show none."""
    system, number, *_ = study.split("_")
    names = (study if study.endswith(f"_{figure}") else "", f"{system}_{number}_{figure}", f"{system}_{figure}")
    return next((path for name in names if name and (path := IMAGES / f"{name}.png").exists()), None)


def _redraw(study: Study, runs: list[Path]) -> Iterator[tuple[Path, str]]:
    """Yield each image of the study, and why it is left as it is, or nothing."""
    with TemporaryDirectory() as scratch:
        folder = next((found for each in runs if (found := each / study.name / "latest").is_dir()), None)
        file = DATA / f"{study.name}.csv"
        for name, section in study.head.figures.items():
            image = image_of(study.name, name)
            if image is None:
                continue
            try:
                results = load_results(folder) if folder is not None else published(study, file, Path(scratch))
                draw_figures(results, {name: section}, study.system.metrics)
                drawn = results.folder / f"{name}.png"
                shutil.copyfile(drawn, image)
                yield image, ""
            except (UserError, NothingToDraw) as problem:
                yield image, str(problem)
            except (OSError, KeyError, TypeError, ValueError, StopIteration) as problem:
                yield image, f"needs a run ({type(problem).__name__}: {problem})"


def published(study: Study, file: Path, folder: Path) -> StudyResults:
    """Return results whose means and intervals are those of the study's rows in docs/data.

    Raises:
        UserError: the rows are not those of the study's sweep in its order, or three repetitions differ, whose values
            do not follow from mean and interval.
    """
    with file.open(newline="", encoding="utf-8") as text:
        rows = [row for row in csv.DictReader(text) if row["clock"] == "virtual"]
    counts: dict[str, int] = {}
    trials, described = [], []
    for number, trial in enumerate(study.trials):
        if trial.other_clock or trial.configuration.clock != "virtual":
            continue
        place = repr(trial.coordinates)
        counts[place] = counts.get(place, -1) + 1
        number_of_row = list(counts).index(place)
        if number_of_row >= len(rows):
            raise UserError(f"needs a run: {file.name} has {len(rows)} rows, the study sweeps more")
        row = rows[number_of_row]
        for path, value in trial.coordinates.items():
            if row[path] != ("" if value is None else str(flat_value(value))):
                raise UserError(
                    f"needs a run: row {number_of_row + 1} of {file.name} has another {path} than the study"
                )
        configuration = trial.configuration.model_dump(mode="json")
        rate_bps = 1e6 * configuration["topology"]["link"]["rate_mbps"]
        values = {name: each for name, each in _values(row, counts[place]).items() if name not in trial.coordinates}
        for name, metric in study.system.metrics.items():
            if metric.scales and isinstance(values.get(name), float):
                values[f"{name}_normalised"] = (
                    values[name] / rate_bps if metric.scales == "rate" else values[name] * rate_bps
                )
        values |= {"clock": "virtual", "scale_factor": 1.0, "link_rate_bps": rate_bps, "verdict": "simulated"}
        digest = f"published-{number}"
        record = PublishedRecord(digest, trial.seed, values, {}, {}, [])
        trials.append(record.at(trial.coordinates, trial.repetition))
        described.append({"digest": digest, "configuration": configuration})
    resolved = {**study.head.model_dump(mode="json", exclude={"quick"}), "quick": False, "trials": described}
    return StudyResults(folder, resolved, tuple(trials))


def _values(row: Mapping[str, str], at: int) -> dict[str, Any]:
    """Return the metrics of one of a row's repetitions.

    The values are not those of the runs: they lie evenly about the published mean, with the spread that gives the
    published interval, so that a figure of means and intervals is the published one.
    """
    count = int(row["repetitions"])
    steps = np.arange(count) - (count - 1) / 2
    found: dict[str, Any] = {}
    for name, text in row.items():
        half = row.get(f"{name}_half")
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = None
            continue
        if half:
            if count == 3:
                raise UserError("needs a run: the values of three repetitions are not in docs/data")
            deviation = float(half) * count**0.5 / float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1))
            found[name] += deviation * steps[at] / float(np.std(steps, ddof=1))
    return found


if __name__ == "__main__":
    sys.exit(main())
