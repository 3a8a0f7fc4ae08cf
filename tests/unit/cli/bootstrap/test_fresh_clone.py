"""Every command in a fresh clone: its environment holds what the command asks for, and nothing else.

The clone is a copy of the sources. Its ./gradbed installs a layer by links to the distributions that the layer's
requirements reach in the environment of these tests, so that nothing is downloaded and child processes see no more.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib import metadata
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import pytest
import typer
from packaging.requirements import Requirement

from gradbed.cli import layers
from gradbed.cli.main import app
from gradbed.experiments import systems
from tests.copied_sources import copy_sources
from tests.unit.cli.bootstrap.test_bootstrap import write_program

ROOT = Path(__file__).resolve().parents[4]
SOURCES = ("api", "cli", "experiments", "controller", "hosts", "emulation", "switch", "formats", "topo", "common")
SITE = Path(str(metadata.distribution("typer").locate_file("")))
PACKAGES = Path(sysconfig.get_paths()["purelib"]).relative_to(sys.prefix)

ELSEWHERE = {
    "mininet": "a Debian package",
    "torch": "installed by `run torch --install`, or by those who have scripts for it",
    "setuptools": "only looked at, for its version",
}
"""Modules that no layer has."""

BASE = {"pydantic", "pydantic_core", "rich", "typer", "typing_extensions"}
"""Modules that the command line itself takes."""

INSTALLER = """#!{python}
import pathlib, sys
site = pathlib.Path({site!r})
if sys.argv[1] == "--install-python":
    for layer in sys.argv[2:]:
        for name in {contents!r}[layer]:
            if not (site / name).exists():
                (site / name).symlink_to(pathlib.Path({packages!r}) / name)
"""

ASK_ALL = """
import json, os, pathlib, sys
from gradbed.cli.main import main
sys.dont_write_bytecode = True
site, batches = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
base = set(os.listdir(site))
for batch in batches:
    if os.fork() == 0:
        for command in batch:
            print("asked:", *command, flush=True)
            sys.argv = ["gradbed", *command, "--help"]
            try:
                main()
            except SystemExit as end:
                if end.code:
                    raise
        sys.exit()
    if os.wait()[1] != 0:
        sys.exit(f"failed: {batch}")
    for name in set(os.listdir(site)) - base:
        (site / name).unlink()
"""
"""Asks for the help of each batch of commands: in a process of its own, with the base alone in its environment."""


def distributions(names: Iterable[str]) -> set[str]:
    """What a wheel puts into site-packages, for the named distributions and all that they need."""
    found: dict[str, set[str]] = {}
    todo = list(names)
    while todo:
        distribution = metadata.distribution(todo.pop())
        if distribution.name in found:
            continue
        found[distribution.name] = {
            file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")
        }
        for line in distribution.requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                todo.append(requirement.name)
    return set().union(*found.values())


@pytest.fixture(scope="module")
def contents() -> dict[str, set[str]]:
    return {layer: distributions(layers.requirements(layer)) for layer in ("base", *layers.MEGABYTES)}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with what Python compiled: to compile it again for every command would take a second each."""
    place = tmp_path_factory.mktemp("sources")
    copy_sources((*SOURCES, "p4src", "requirements", "examples"), place)
    return place


class Clone:
    """A checkout with an environment that holds the base."""

    def __init__(self, place: Path, sources: Path, contents: dict[str, set[str]]) -> None:
        self.place = place
        shutil.copytree(sources, place, copy_function=os.link, dirs_exist_ok=True)
        venv = place / ".venv"
        self.site = venv / PACKAGES
        self.site.mkdir(parents=True)
        (venv / "bin").mkdir()
        (venv / "bin" / "python").symlink_to(Path(sys.executable).resolve())
        shutil.copy(Path(sys.prefix, "pyvenv.cfg"), venv)
        (self.site / "gradbed").symlink_to(place / "api")
        for name in contents["base"] | ({"mininet"} if (SITE / "mininet").exists() else set()):
            (self.site / name).symlink_to(SITE / name)
        installer = INSTALLER.format(
            python=Path(sys.executable).resolve(), site=str(self.site), contents=contents, packages=str(SITE)
        )
        write_program(place / "gradbed", installer)

    def run(self, *arguments: str) -> str:
        """What Python, run so, prints. It must end well."""
        command = [self.place / ".venv" / "bin" / "python", "-I", *arguments]
        outcome = subprocess.run(
            command,
            cwd=self.place,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert outcome.returncode == 0, outcome.stderr
        return outcome.stdout


@pytest.fixture
def clone(tmp_path: Path, sources: Path, contents: dict[str, set[str]]) -> Clone:
    return Clone(tmp_path, sources, contents)


def commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[list[tuple[str, ...]]]:
    """Every command of the command line, and every group, each alone; those that a group makes when they are asked
    for (a system's), which load the same, together."""
    group = group or typer.main.get_command(app)
    context = typer.Context(group)
    made = []
    for name in group.list_commands(context):
        command = group.resolve_command(context, [name])[1]
        if path and name not in group.commands:
            made.append((*path, name))
        else:
            yield [(*path, name)]
        if hasattr(command, "list_commands"):
            yield from commands(command, (*path, name))
    if made:
        yield made


# What a command lacks that another one of its group has brought is found with --nightly: 50 processes in place of 20.
@pytest.mark.thorough
@pytest.mark.parametrize("alone", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_the_help_of_every_command(clone: Clone, monkeypatch: pytest.MonkeyPatch, alone: bool) -> None:
    # Other tests add systems of their own.
    ours = {name: place for name, place in systems.SYSTEMS.items() if place.startswith("gradbed.experiments.")}
    monkeypatch.setattr(systems, "SYSTEMS", ours)
    batches = list(commands())
    if not alone:
        batches = [list(chain(*group)) for _, group in groupby(batches, key=lambda batch: batch[0][0])]
    wanted = [" ".join(command) for batch in batches for command in batch]
    assert {"up", "p4 compile", "run ndn"} <= set(wanted)
    said = clone.run("-c", ASK_ALL, str(clone.site), json.dumps(batches))
    answers = dict(part.split("\n", 1) for part in said.split("asked: ")[1:])
    assert list(answers) == wanted
    for command, answer in answers.items():
        assert f"Usage: gradbed {command} " in answer


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(
    "arguments",
    [
        ["exercise", "start", "forward", "task"],
        ["new", "mine"],
        ["p4", "compile", "p4src/router.p4"],
        pytest.param(["up", "--topology", "star:2", "--rest-port", "0"], marks=pytest.mark.root),
    ],
    ids=" ".join,
)
def test_commands_run(clone: Clone, arguments: list[str]) -> None:
    clone.run("-m", "gradbed", *arguments)


def outside_modules() -> dict[str, Path]:
    """Modules of others that the sources import anywhere, within functions too, and a file that does."""
    found: dict[str, Path] = {}
    for file in (file for folder in SOURCES for file in (ROOT / folder).rglob("*.py")):
        if "templates" in file.parts:  # what students get
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            found.update({name.split(".")[0]: file for name in names})
    return {name: file for name, file in found.items() if name not in {*sys.stdlib_module_names, "gradbed"}}


@pytest.mark.thorough
def test_every_module_of_others_leads_to_what_brings_it(contents: dict[str, set[str]]) -> None:
    """What is missed while a command runs is installed then: so that it is known what to install."""
    outside = outside_modules()
    assert {"yaml", "numpy"} <= outside.keys()
    for module, file in outside.items():
        layer = "base" if module in BASE else layers.layer_of(module)
        if module not in ELSEWHERE:
            assert layer is not None, f"{file} imports {module}"
            assert contents[layer] & {module, f"{module}.py"}, f"{module} is not in {layer}"
