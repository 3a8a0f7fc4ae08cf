"""Where runs leave what they found."""

import csv
import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.results.run_folder import RunFolder, environment
from gradbed.experiments.tables.files import write_tables

ROOT = Path(__file__).resolve().parents[3]


def test_rows_and_configuration(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "results", "aggregation")
    write_tables([{"round": 0, "seconds": 0.5}, {"round": 1, "seconds": 0.25}], folder.path / "rounds.csv")
    folder.write_json("configuration.json", {"workers": 8})
    with (folder.path / "rounds.csv").open() as file:
        assert list(csv.DictReader(file)) == [{"round": "0", "seconds": "0.5"}, {"round": "1", "seconds": "0.25"}]
    assert json.loads((folder.path / "configuration.json").read_text()) == {"workers": 8}


def test_two_runs_within_a_second_have_two_folders(tmp_path: Path) -> None:
    first, second = RunFolder(tmp_path, "x"), RunFolder(tmp_path, "x")
    assert first.path != second.path


def test_latest_names_the_run_that_finished_last(tmp_path: Path) -> None:
    latest = tmp_path / "x" / "latest"
    first, second, _unfinished = (RunFolder(tmp_path, "x") for _ in range(3))
    assert not latest.is_symlink()
    second.finish()
    assert latest.resolve() == second.path.resolve()
    first.finish()
    assert latest.resolve() == first.path.resolve()
    assert sorted(path.name for path in latest.parent.iterdir() if path.name.startswith(".")) == []


def test_latest_is_always_there_while_runs_finish(tmp_path: Path) -> None:
    first, second = RunFolder(tmp_path, "x"), RunFolder(tmp_path, "x")
    first.finish()
    stop, missing = threading.Event(), []

    def watch() -> None:
        while not stop.is_set():
            if not (tmp_path / "x" / "latest" / "logs").is_dir():
                missing.append(1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(300):
        second.finish()
        first.finish()
    stop.set()
    watcher.join()
    assert missing == []


def test_a_folder_that_another_command_writes_is_refused(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, "x")
    with pytest.raises(UserError, match=f"another gradbed works in {run.path}: wait for its end, or end it"):
        RunFolder.reopen(run.path)
    run.close()
    RunFolder.reopen(run.path).close()


def test_the_end_of_a_process_unlocks_its_folder(tmp_path: Path) -> None:
    program = """
import pathlib, sys
from gradbed.experiments.results.run_folder import RunFolder
print(RunFolder(pathlib.Path(sys.argv[1]), "x").path, flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        with pytest.raises(UserError, match="another gradbed works"):
            RunFolder.reopen(path)
        process.kill()
    RunFolder.reopen(path).close()


def test_what_cannot_be_written_leaves_the_former_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path, "x")
    folder.write_json("study.json", {"whole": True})
    write_tables([{"a": 1}], folder.path / "trials.csv")
    before = {path.name: path.read_bytes() for path in folder.path.iterdir() if path.is_file()}

    def no_space(path: Path, *_arguments: object, **_named: object) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_text", no_space)
    monkeypatch.setattr("gradbed.experiments.tables.files.write_csv", lambda rows, target: no_space(target))
    with pytest.raises(OSError, match="No space left"):
        folder.write_json("study.json", {"whole": False})
    with pytest.raises(OSError, match="No space left"):
        write_tables([{"a": 2}], folder.path / "trials.csv")
    assert {path.name: path.read_bytes() for path in folder.path.iterdir() if path.is_file()} == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_under_sudo_results_belong_to_its_caller(tmp_path: Path) -> None:
    program = """
import os, pathlib, sys
from gradbed.experiments.results.run_folder import RunFolder
run = RunFolder(pathlib.Path(sys.argv[1]) / "new" / "results", "x")
run.write_json("configuration.json", {})
(run.path / "trials").mkdir()
(run.path / "trials" / "rows").write_text("")
(run.path / "trials" / "elsewhere").symlink_to(sys.argv[1] + "/precious")
run.finish()
"""
    (tmp_path / "precious").write_text("")
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "SUDO_UID": "1234", "SUDO_GID": "2345"},
        timeout=60,
        check=True,
    )
    found = {path.relative_to(tmp_path): path.lstat() for path in tmp_path.rglob("*")}
    owners = {str(path): (status.st_uid, status.st_gid) for path, status in found.items()}
    assert owners.pop("precious") == (0, 0)
    assert len(owners) == 10
    assert set(owners.values()) == {(1234, 2345)}, owners


def test_a_folder_that_cannot_be_made_is_the_users_to_put_right(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write results to"):
        RunFolder(tmp_path / "file", "x")


def test_environment_names_versions() -> None:
    record = environment()
    assert record["libraries"]["numpy"]
    assert record["processors"] >= 1


def test_a_machine_without_git_has_no_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment()["revision"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment()["revision"] is None
