"""gradbed new: what it makes runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradbed.cli.commands.new import new
from gradbed.cli.p4.stf import stf
from gradbed.common.errors import UserError
from gradbed.controller.planning.routing import shortest_routes
from gradbed.experiments.custom_program import custom_network
from gradbed.topo.generators import leaf_spine


def test_program_entries_and_packet_test_fit_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "deep" / "my_router"
    assert new(folder) == 0
    assert {path.name for path in folder.iterdir()} == {
        "README.md",
        "entries.yaml",
        "my_router.p4",
        "study.yaml",
        "test.stf",
        "test_network.py",
    }
    assert not [path for path in folder.iterdir() if "NAME" in path.read_text() or "FOLDER" in path.read_text()]
    assert stf(folder / "my_router.p4", [folder / "test.stf"]) == 0
    topology = leaf_spine(2, 2, 2)
    setup = custom_network(topology, folder / "my_router.p4", [folder / "entries.yaml"])
    assert shortest_routes(topology) and set(setup.switches) == {switch.name for switch in topology.switches}
    # Nobody has to name what lies beside the program.
    assert custom_network(topology, folder / "my_router.p4").settings == setup.settings
    (folder / "none.yaml").write_text("tables: {}\n")
    assert custom_network(topology, folder / "my_router.p4", [folder / "none.yaml"]).settings != setup.settings
    assert f"./gradbed run workload {folder}/my_router.p4" in capsys.readouterr().out


@pytest.mark.thorough
def test_its_tests_in_python_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    new(Path("mine"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "mine"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "2 passed" in ended.stdout, ended.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("9lives", "'9lives' is no name for a program: use letters, digits and underscores, a letter first"),
        ("there", "there is there already: choose another name"),
        ("file/inside", "cannot make file/inside: Not a directory"),
    ],
)
def test_what_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(UserError) as caught:
        new(Path(name))
    assert str(caught.value) == message
