"""Every command line that README.md, docs/ and examples/ show is one that the command line takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from gradbed.cli.main import app
from gradbed.experiments.configuration.options import model_options, nested
from gradbed.experiments.systems import find_system, systems
from tools.bench.__main__ import command as bench
from tools.conformance.__main__ import command as conformance
from tools.corpus.__main__ import command as corpus
from tools.recordings.__main__ import command as recordings

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
LINE = re.compile(r"^ *(?:sudo )?(?:\./)?gradbed( [^#\n]*)", re.MULTILINE)
"""In blocks of code; the text around them may begin a line with gradbed, too."""
TOOL = re.compile(r"(?:sudo (?:\w+=\S+ )?)?(?:\w+=\S+ )?\.venv/bin/python -m tools\.(\w+(?: [^#\n`]*)?)")
"""Of `python -m tools.NAME ARGUMENTS` the name and the arguments, in code and in the text."""
BLOCK = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4}.*$", re.MULTILINE)
PART = re.compile(r"`(?:sudo )?(?:\./)?gradbed ([a-z][^`\n]*)`")
TOOLS = {"bench": bench, "conformance": conformance, "corpus": corpus, "recordings": recordings}
"""Those that have a command line of options; others take files."""
PLACEHOLDER = re.compile(r"\b[A-Z][A-Z_]+\b|\.\.\.|\[")
"""What stands for something else: the line is a pattern, not a command."""


def command_lines(pattern: re.Pattern[str]) -> list[str]:
    """In all documents; lines that go on after a backslash are whole."""
    texts = [document.read_text().replace("\\\n", " ") for document in DOCUMENTS]
    if pattern is LINE:
        texts = [in_code(text) for text in texts]
    found = {line.strip() for text in texts for line in pattern.findall(text)}
    return sorted(line for line in found if line and not PLACEHOLDER.search(line))


def in_code(text: str) -> str:
    """The blocks of code of a document that are of no language: what is typed."""
    fenced = [block for language, block in BLOCK.findall(text) if not language]
    return "\n".join([*fenced, *INDENTED.findall(BLOCK.sub("", text))])


def parse(command: Any, name: str, words: list[str], parent: Any = None) -> tuple[list[str], dict[str, Any]]:
    """The commands that a line names, and the options of the last; UsageError, as a person would see it."""
    if words == ["--help"]:
        return [name], {}
    context = command.make_context(name, words, parent)
    if not hasattr(command, "resolve_command"):
        return [name], dict(context.params)
    inner_name, inner, rest = command.resolve_command(context, [*context._protected_args, *context.args])
    names, given = parse(inner, inner_name, rest, context)
    return [name, *names], given


def check(line: str) -> None:
    names, given = parse(typer.main.get_command(app), "gradbed", shlex.split(line))
    if names[1:2] == ["run"] and given and names[-1] in systems():
        system = find_system(names[-1])
        made = model_options(system.configuration, system.options.defaults)
        known = {option.parameter for option in made}
        values = {name: value for name, value in given.items() if name in known}
        system.check(system.configuration.model_validate(nested(made, values, system.options.defaults)))


@pytest.fixture(scope="session")
def with_traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the trace that docs/training.md makes before it runs it."""
    folder = tmp_path_factory.mktemp("documented")
    [line] = [line for line in command_lines(LINE) if line.startswith("new trace gpt --preset gpt-345m")]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        app(shlex.split(line), standalone_mode=False)
    return folder


@pytest.mark.parametrize("line", command_lines(LINE))
def test_it_is_taken(line: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "run training --trace" in line:
        monkeypatch.chdir(request.getfixturevalue("with_traces"))
    check(line)


@pytest.mark.parametrize("line", command_lines(PART))
def test_it_is_taken_where_text_mentions_it(line: str) -> None:
    """Without its arguments, as a rule; of a group, without its command."""
    try:
        check(line)
    except typer.TyperException as error:
        assert type(error).__name__ in ("MissingParameter", "NoArgsIsHelpError"), error


@pytest.mark.parametrize("line", command_lines(TOOL))
def test_a_tool_takes_it(line: str) -> None:
    name, *words = shlex.split(line)
    if name in TOOLS:
        parse(TOOLS[name](), f"python -m tools.{name}", words)
    else:
        assert (ROOT / "tools" / f"{name}.py").exists()


@pytest.mark.parametrize(
    "line",
    [
        "run aggregation --wrokers 3",
        "run aggregation --placement gready",
        "run aggregation --workers 40",
        "figures",
        "run nothing",
    ],
)
def test_a_wrong_one_is_found(line: str) -> None:
    with pytest.raises(Exception, match=r"."):
        check(line)


def test_there_are_some() -> None:
    assert len(command_lines(LINE)) > 20 and len(command_lines(PART)) > 5 and len(command_lines(TOOL)) > 20
