"""Results of a run: pandas tables, verdicts, failures, figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem

if TYPE_CHECKING:
    import pandas

    from gradbed.experiments.results.study_results import StudyResults
    from gradbed.experiments.study.definition import Study as LoadedStudy
    from gradbed.experiments.tables.metric import Metric


@dataclass(frozen=True)
class Figure:
    """A figure that was drawn.

    Attributes:
        paths: Its files: .png, .svg and .pdf. Notebooks show the first.
    """

    paths: tuple[Path, ...]

    def _repr_png_(self) -> bytes | None:
        found = next((path for path in self.paths if path.suffix == ".png"), None)
        return None if found is None else found.read_bytes()


class Results:
    """The trials of a run that have ended.

    Args:
        folder: The run's folder, results/NAME/STAMP.

    Attributes:
        folder: The same.
        broken: Why trials have no result, by the trial's name.

    Raises:
        UserError: The folder holds no run of a study.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        broken: Mapping[str, str] | None = None,
        study: LoadedStudy | None = None,
    ) -> None:
        from gradbed.experiments.results.study_results import load_results

        self.folder = Path(folder)
        self.broken = dict(broken or {})
        self._results: StudyResults = load_results(self.folder)
        self._study = study

    @cached_property
    def frame(self) -> pandas.DataFrame:
        """A row for each trial: where it is in the sweep (by dotted path), repetition, seed, all metrics, verdict.

        Metrics carry their units in their names (p99_us, goodput_bps); times and rates are those of the network that
        was asked for, whatever the machine's scale was. What a trial has no value of is NaN.
        """
        import pandas

        return pandas.DataFrame([_flat(trial.row) for trial in self._results.trials])

    @property
    def tables(self) -> list[str]:
        """The names of the further tables: hosts, links, series and so on, as the system has them."""
        found = ((name, rows) for trial in self._results.trials for name, rows in trial.tables.items())
        return list(dict.fromkeys(name for name, rows in found if rows))

    def table(self, name: str) -> pandas.DataFrame:
        """Return a further table, each row with the place of its trial in the sweep. UserError if there is none."""
        import pandas

        if name not in self.tables:
            raise UserError(f"these results have no table {name!r}; they have: {', '.join(self.tables) or 'none'}")
        rows = [_flat(row) for trial in self._results.trials for row in trial.table(name)]
        return pandas.DataFrame(rows)

    @property
    def metrics(self) -> dict[str, str]:
        """The description of each metric, by column of `frame`."""
        return {name: f"{metric.meaning} ({metric.unit})" for name, metric in self._metrics.items()}

    @property
    def verdict(self) -> str:
        """The worst of all trials: "simulated" (virtual clock), "valid", "unknown", "degraded" or "invalid"."""
        from gradbed.experiments.results.study_results import worst

        return worst(trial.row["verdict"] for trial in self._results.trials)

    @property
    def failures(self) -> list[str]:
        """Failures, one line each: failed checks of trials, broken trials, missed goals."""
        stored = {trial.digest: trial for trial in self._results.trials}
        lines = [f"{trial.place_text}{line}" for trial in stored.values() for line in trial.failures]
        lines += [f"{label}: {reason}" for label, reason in self.broken.items()]
        if self._study is not None:
            from gradbed.experiments.study.evaluation.goals import judged

            lines += [goal.words for goal in judged(self._study.head, self._results) if goal.has_failed]
        return lines

    @property
    def ok(self) -> bool:
        """The run has no failures."""
        return not self.failures

    def plot(self, x: str, y: str, series: str | None = None, *, name: str | None = None, **fields: Any) -> Figure:
        """Draw a metric against what was swept, with the mean and its 95 % interval over repetitions.

        Args:
            x: A swept path, or a column of `frame`.
            y: A metric.
            series: A swept path: a line for each of its values.
            name: The figure's files, in the run's folder; None: Y_over_X.
            **fields: All else that a figure in a study can have: kind="bars", y_scale="log", title, x_label.

        Raises:
            UserError: There is no such column, or no trial to draw.
        """
        from pydantic import ValidationError

        from gradbed.experiments.study.definition import FigureSection
        from gradbed.experiments.study.evaluation.figures import draw_figures

        for column in (x, y, *([series] if series else [])):
            if column not in self.frame.columns:
                from gradbed.common.errors import suggestion

                raise UserError(f"these results have no column {column!r}{suggestion(column, list(self.frame))}")
        try:
            section = FigureSection.model_validate({"x": x, "y": y, "series": series, **fields})
        except ValidationError as error:
            raise UserError(first_problem(error)) from None
        title = name or f"{y}_over_{x}".replace(".", "_")
        said: list[str] = []
        paths = draw_figures(self._results, {title: section}, self._metrics, said.append)
        if not paths:
            raise UserError(said[-1])
        return Figure(tuple(paths))

    def figures(self) -> dict[str, Figure]:
        """Draw the figures that the study asks for, by name."""
        from gradbed.experiments.study.definition import FigureSection
        from gradbed.experiments.study.evaluation.figures import draw_figures

        head = {} if self._study is None else self._study.head.figures
        found: dict[str, FigureSection] = dict(head)
        return {
            name: Figure(tuple(draw_figures(self._results, {name: section}, self._metrics)))
            for name, section in found.items()
        }

    @property
    def _metrics(self) -> Mapping[str, Metric]:
        from gradbed.experiments.systems import find_system

        return find_system(str(self._results.resolved["system"])).metrics

    def __len__(self) -> int:
        return len(self._results.trials)

    def __repr__(self) -> str:
        said = f", {len(self.failures)} failures" if self.failures else ""
        return f"<Results of {len(self)} trials in {self.folder}: {self.verdict}{said}>"


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as figures show them: those with parts as words, and no value as NaN."""
    from gradbed.experiments.tables.metric import value_words

    return {
        key: value_words(value) if isinstance(value, (list, Mapping)) else math.nan if value is None else value
        for key, value in row.items()
    }


def load_results(folder: str | Path) -> Results:
    """Load the results of an earlier run; results/NAME/latest is the newest. UserError if there is none."""
    return Results(folder)
