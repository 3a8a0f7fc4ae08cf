"""gradbed new trace: its options are the transformer's numbers, and its files are read."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import gradbed.cli.commands.new as new_commands
from gradbed.common.errors import UserError
from gradbed.experiments import systems
from gradbed.hosts.systems.training.source import open_trace
from gradbed.hosts.systems.training.traces.transformer_model import TransformerModel


@pytest.fixture(autouse=True)
def a_maker(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"trace": "gradbed.experiments.systems.training.configuration:NewTrace"}
    monkeypatch.setattr(new_commands, "makers", lambda: made)


def new(*arguments: object) -> str:
    ran = CliRunner().invoke(new_commands.app, list(map(str, arguments)))
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran.output


def test_options_are_the_numbers_of_the_transformer(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    said = new("trace", folder, "--preset", "tiny", "--dp", 2, "--tp", 2, "--flop-time", 10, "--sequence-parallel")
    assert f"made {folder}/: trace.0.et to trace.3.et" in said
    model = TransformerModel(preset="tiny", dp=2, tp=2, flop_time=10, sequence_parallel=True)
    read, made = open_trace(folder), open_trace(model)
    assert [list(read.nodes(rank)) for rank in range(4)] == [list(made.nodes(rank)) for rank in range(4)]


def test_numbers_that_are_wrong_name_their_option(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--width: 256 is not a multiple of --tp"):
        new("trace", tmp_path / "x", "--tp", 3)
    with pytest.raises(UserError, match="--layers"):
        new("trace", tmp_path / "x", "--layers", 0)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is there already"):
        new("trace", tmp_path, "--tp", 2)
    assert not (tmp_path / "x").exists()


def test_other_names_are_programs(tmp_path: Path) -> None:
    assert "made" in new(tmp_path / "router")
    assert (tmp_path / "router" / "router.p4").is_file()
    assert (
        "--layers" in new("trace", "--help")
        and "--heads" in new("trace", "--help-all")
        and "program" in new("--help")
    )


def test_makers_are_read_of_the_systems_classes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a_system_with_makers.py").write_text(
        'class Made:\n    tools = SystemTools(makers={"thing": "module:Class"})\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(systems, "SYSTEMS", {"made": "a_system_with_makers:Made"})
    systems.makers.cache_clear()
    try:
        assert systems.makers()["thing"] == "module:Class"
    finally:
        systems.makers.cache_clear()
