"""A trial goes to a machine that has none of its files, and its results come back."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.definition import TrialSpec
from gradbed.experiments.study.loading import load_study
from gradbed.experiments.study.running.distributed import BundleResult, _moved, bundle_of, run_bundle, unpack_result
from gradbed.experiments.study.running.worker import BrokenTrial, run_task
from gradbed.experiments.systems.training.configuration import TraceWorkload
from tests.own_study import FILES, STUDY

MATRIX = "studies/matrix.csv"


def put(folder: Path) -> Path:
    """The study, with a traffic matrix besides."""
    given = {**FILES, MATRIX: "from,to,mbps\nh1,h2,10\n"}
    for name, text in given.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("MILLISECONDS", "2"))
    study = folder / STUDY
    study.write_text(study.read_text().replace("pattern: pairs", f"matrix: {folder / MATRIX}"))
    return study


def first(study: Path) -> TrialSpec:
    return load_study(study).trials[0]


def task_of(study: Path, results: Path) -> TrialTask:
    trial = first(study)
    return TrialTask(trial.configuration, trial.seed, Scale(), results, system="workload", digest="digest")


def test_a_trial_runs_where_none_of_its_files_are(tmp_path: Path) -> None:
    task = task_of(put(tmp_path / "people"), tmp_path / "here")
    here = run_task(task)
    assert isinstance(here, TrialRecord) and not here.failures
    bundle = bundle_of(replace(task, folder=tmp_path / "there"))
    shutil.rmtree(tmp_path / "people")
    there = unpack_result(run_bundle(bundle), tmp_path / "there")
    assert there == here
    found = {folder: contents(tmp_path / folder) for folder in ("here", "there")}
    assert found["there"] == found["here"] and "network.json" in found["here"]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_people_read_the_names_that_they_gave(tmp_path: Path) -> None:
    study = put(tmp_path)
    bundle = bundle_of(task_of(study, tmp_path / "results"))
    program = str(tmp_path / "p4" / "own.p4")
    broken = unpack_result(
        run_bundle(replace(bundle, files={**bundle.files, program: b"parser"})), tmp_path / "results"
    )
    assert isinstance(broken, BrokenTrial)
    assert broken.reason.startswith(f"{program}:")


def test_of_a_network_that_a_link_leads_to(tmp_path: Path) -> None:
    """What its file names lies around where the link leads."""
    study = put(tmp_path / "people")
    (tmp_path / "people" / "networks").rename(tmp_path / "elsewhere")
    (tmp_path / "people" / "networks").symlink_to(tmp_path / "elsewhere")
    bundle = bundle_of(task_of(study, tmp_path / "results"))
    shutil.rmtree(tmp_path / "elsewhere")
    assert isinstance(unpack_result(run_bundle(bundle), tmp_path / "results"), TrialRecord)


@pytest.mark.parametrize("name", sorted({*FILES, MATRIX} - {STUDY}))
def test_every_file_is_part_of_what_identifies_a_trial(tmp_path: Path, name: str) -> None:
    study = put(tmp_path)
    before = first(study).configuration.canonical()
    with (tmp_path / name).open("a") as file:
        file.write("\n")
    assert first(study).configuration.canonical() != before
    assert (tmp_path / name).resolve() in {path.resolve() for path in first(study).configuration.files()}


def test_a_file_that_is_gone_is_one_line(tmp_path: Path) -> None:
    task = task_of(put(tmp_path), tmp_path / "results")
    (tmp_path / MATRIX).unlink()
    broken = unpack_result(run_bundle(bundle_of(task)), tmp_path / "results")
    assert isinstance(broken, BrokenTrial)
    assert broken.reason == f"cannot read {tmp_path / MATRIX}: No such file or directory"


@pytest.mark.parametrize("named", ["traces", "traces/ring", "traces/ring.txt"])
def test_of_a_trace(tmp_path: Path, named: str) -> None:
    """By its folder, by the beginning of its files, or by a file of it."""
    for name in ("ring.txt", "ring.groups.json"):
        (tmp_path / "traces").mkdir(exist_ok=True)
        (tmp_path / "traces" / name).write_text(name)
    files = [str(path) for path in TraceWorkload(trace=tmp_path / named).files()]
    assert files == [str(tmp_path / "traces" / name) for name in ("ring.groups.json", "ring.txt")]
    moved = _moved({"trace": str(tmp_path / named), "greedy": "greedy"}, files, Path("/root-of-it"))
    assert moved == {"trace": f"/root-of-it{tmp_path / named}", "greedy": "greedy"}


def test_results_stay_in_their_folder(tmp_path: Path) -> None:
    result = BundleResult({"broken": {"reason": "", "details": ""}}, {"../escaped": b""})
    with pytest.raises(ValueError, match="leads out"):
        unpack_result(result, tmp_path / "results")
    assert not (tmp_path / "escaped").exists()
