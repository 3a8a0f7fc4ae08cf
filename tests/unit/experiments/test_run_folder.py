"""Where runs leave what they found."""

import csv
import json
from pathlib import Path

import pytest

from experiments.run_folder import RunFolder, environment
from switch.errors import UserError


def test_rows_configuration_and_latest(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "results", "aggregation")
    folder.write_rows("rounds.csv", [{"round": 0, "seconds": 0.5}, {"round": 1, "seconds": 0.25}])
    folder.write_json("configuration.json", {"workers": 8})
    latest = tmp_path / "results" / "aggregation" / "latest"
    with (latest / "rounds.csv").open() as file:
        assert list(csv.DictReader(file)) == [{"round": "0", "seconds": "0.5"}, {"round": "1", "seconds": "0.25"}]
    assert json.loads((latest / "configuration.json").read_text()) == {"workers": 8}


def test_two_runs_within_a_second_have_two_folders(tmp_path: Path) -> None:
    first, second = RunFolder(tmp_path, "x"), RunFolder(tmp_path, "x")
    assert first.path != second.path
    assert (tmp_path / "x" / "latest").resolve() == second.path.resolve()


def test_a_folder_that_cannot_be_made_is_the_users_to_put_right(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write results to"):
        RunFolder(tmp_path / "file", "x")


def test_environment_names_versions() -> None:
    record = environment()
    assert record["libraries"]["numpy"]
    assert record["processors"] >= 1
