"""Every figure of lines or bars that any study asks for, with numbers that lie everywhere; tests/conftest.py looks at
them. The other kinds are drawn of runs, by tests of their systems."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradbed.experiments.plotting import style
from gradbed.experiments.results.run_folder import RunFiles, RunFolder, TrialRecord
from gradbed.experiments.results.study_results import load_results
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.evaluation.figures import draw_figures
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.running.runner import plan, write_description

SYSTEMS = Path(__file__).resolve().parents[4] / "experiments" / "systems"
STUDIES = [path for path in sorted(SYSTEMS.glob("*/studies/*.yaml")) if "\nfigures:" in path.read_text()]
assert len(STUDIES) > 30


@pytest.mark.commit_cases(8)
@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_it_is_readable(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "FORMATS", ("png",))
    study = load_study(path, quick=True)
    figures = {name: section for name, section in study.head.figures.items() if section.kind in ("lines", "bars")}
    if not figures:
        return
    planned = plan(study, Scale())
    run = RunFolder(tmp_path, study.name)
    write_description(run, study, planned, Scale())
    drawn = np.random.default_rng(1)
    files = RunFiles(run.path)
    for item in planned:
        row = {name: float(drawn.random()) for name in study.system.metrics}
        row |= {"clock": "virtual", "scale_factor": 1.0, "verdict": "simulated", "failures": ""}
        files.write(TrialRecord(item.digest, item.seed, row, {}, {}, []))
    assert len(draw_figures(load_results(run.path), figures, study.system.metrics)) == len(figures)
