"""Where `gradbed p4 compile` writes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gradbed.cli.main import app

PROGRAM = Path(__file__).resolve().parents[3] / "p4src/forward.p4"


def written(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> list[str]:
    """Compiles in an empty folder: what lies in there then, which is what was printed."""
    monkeypatch.chdir(folder)
    outcome = CliRunner().invoke(app, ["p4", "compile", str(PROGRAM), *arguments], standalone_mode=False)
    assert outcome.exception is None
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert found == sorted(line for line in outcome.stdout.splitlines() if not line.startswith("/dev"))
    return found


def test_both_files_are_named_after_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert written(monkeypatch, tmp_path) == ["forward.json", "forward.p4info.txt"]


def test_p4info_goes_beside_the_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    for _ in range(2):
        names = written(monkeypatch, tmp_path, "--output", "build/a.json")
        assert names == ["build/a.json", "build/a.p4info.txt"]


def test_where_the_output_is_thrown_away_there_is_no_p4info(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert written(monkeypatch, tmp_path, "--output", "/dev/null") == []
    assert not Path("/dev/null.p4info.txt").exists()


def test_p4info_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert written(monkeypatch, tmp_path, "--output", "/dev/null", "--p4info", "b.txt") == ["b.txt"]
