"""gradbed p4 shims."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from gradbed.cli.main import app
from gradbed.switch.shims import SHIMS


def test_it_says_what_it_wrote_and_how_to_use_it(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    outcome = CliRunner().invoke(app, ["p4", "shims", str(folder)])
    assert outcome.exit_code == 0
    *paths, last = outcome.output.splitlines()
    assert paths == [str(folder / name) for name in SHIMS]
    assert last == f'To use them: export PATH="{folder}:$PATH"'
    assert all(Path(path).stat().st_mode & 0o111 for path in paths)
