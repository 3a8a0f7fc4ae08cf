"""Every command at 80 and 120 columns: no table and no help text is cut, none is wider than the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from gradbed.cli.main import INTRODUCTION, app
from gradbed.experiments.study import calibration as calibration_run
from gradbed.experiments.study import make_figures
from gradbed.experiments.study.calibration import CalibrationRun
from gradbed.experiments.study.running import runner
from tests.conftest import GradbedHere, ToolHere
from tests.unit.experiments.study.coin import in_this_process
from tools.bench.__main__ import command as benchmarks

ROOT = Path(__file__).resolve().parents[4]
STUDIES = ROOT / "experiments" / "systems"
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
WIDTHS = (80, 120)
P4, ENTRIES = "p4src/ecmp.p4", str(STUDIES / "workload" / "studies" / "all-paths.yaml")
STF = str(ROOT / "cli" / "templates" / "program")

STUDY = """
name: small
system: interconnect
clock: virtual
topology: {kind: "optical-electrical:2"}
traffic: {packets: 50}
sweep: {product: {routing.policy: [least-loaded, fixed-plane, ecmp]}}
compare: routing.policy
goals: {nothing is lost on the way: {metric: loss, at_most: 0}}
"""

SMALL = {
    "aggregation": "--clock virtual --workload synthetic --topology leaf-spine:2,2,2 --workers 3 --rounds 1",
    "ndn": "--workload synthetic --topology star:3 --peers 3 --rounds 1",
    "shuffle": "--topology star:3 --workers 3 --samples 30 --storage 0.34",
    "compression": "--workload synthetic --topology star:3 --workers 2 --rounds 1 --values 960",
    "interconnect": "--topology optical-electrical:2 --packets 50",
    "training": "--topology star:3 --size-bytes 4000",
    "workload": f"p4src/forward.p4 --entries {STUDIES}/workload/studies/routes.yaml --topology star:3 --packets 20",
}
PRINTING = {
    **{f"run {system}": f"run {system} {options}" for system, options in SMALL.items()},
    "run study": "run STUDY",
    "systems": "systems shuffle",
    "topo show": "topo show optical-electrical:3",
    "chaos": "chaos workload --quick --fault duplication",
    "doctor": "doctor",
    "p4 plan": f"p4 plan {P4} {ENTRIES} --topology star:2",
    "p4 stf": "p4 stf PROGRAM STF",
    "p4 coverage": "p4 coverage PROGRAM --stf STF",
    "exercise list": "exercise list",
    "exercise hint": "exercise hint EXERCISE",
    "exercise grade": "exercise grade CLASS",
    "figures": "figures interconnect",
    "calibrate": "calibrate --anyway",
    "tools.bench compressors": "tools.bench compressors --values 2000",
    "tools.bench shuffle": "tools.bench shuffle --sizes 4:60 --no-quality",
}
"""Of commands that print tables or many words, what is run here. `demo` and the other benchmarks print by the same
tables, and take long."""
LISTINGS = {"p4 plan", "p4 coverage"}
"""Of entries and source, whose lines stay as they are."""
NO_TABLE = {
    *("demo", "up", "topo export", "docs", "python", "replay", "report", "test", "exercise solution"),
    *("run torch", "new program", "new trace"),
}
"""Nothing that is as wide as its contents; or in Mininet, where tests/emulation look at it."""


LONG = "of all processors other programs used 44.8 % (limit 30 %), and of all packets 3.2 % came late (limit 1 %)"
CALIBRATION: dict[str, Any] = {
    "require_root": lambda command: None,
    "find_factor": lambda run_at, show: (0.05, 5.0, show(CalibrationRun(5.0, "degraded", (LONG,)))),
    "store": lambda *found: "calibration.json",
}
"""In place of measuring."""


def commands(group: Any, context: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its name."""
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])
        inner = command.make_context(name, [], parent=context, resilient_parsing=True)
        if isinstance(command, TyperGroup):
            yield from commands(command, inner, (*words, name))
        else:
            yield (*words, name), command


@pytest.fixture(scope="module")
def every_command() -> list[tuple[str, ...]]:
    """Those of gradbed, and after `tools.bench` the benchmarks."""
    whole = typer.main.get_command(app)
    context = whole.make_context("gradbed", [], resilient_parsing=True)
    bench = benchmarks()
    found = commands(bench, bench.make_context("bench", [], resilient_parsing=True), ("tools.bench",))
    return [words for words, _ in [*commands(whole, context), *found]]


@pytest.fixture
def terminal(
    monkeypatch: pytest.MonkeyPatch, gradbed_here: GradbedHere, tool_here: ToolHere
) -> Callable[[int, str], str]:
    """What a command prints on a terminal of so many columns."""

    def run(width: int, line: str) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
        monkeypatch.setenv("TTY_INTERACTIVE", "0")
        words = line.split()
        of_tools = line.startswith("tools.")
        ended = tool_here(words[0].removeprefix("tools."), *words[1:]) if of_tools else gradbed_here(*words)
        assert ended.status == 0 or of_tools, ended.err  # whose goals a busy machine misses
        return ESCAPE.sub("", ended.out)

    return run


def _long_path(line: str, width: int) -> bool:
    """Whether a path in it, which is never broken, leaves hardly any room."""
    return any("/" in word and len(word) > width - 20 for word in line.split())


def check(shown: str, width: int, is_listing: bool) -> None:
    """No cell is cut, no line of a table or box is longer than the terminal, and no other that could be folded."""
    assert "…" not in shown
    assert "None" not in shown
    boxes = [line for line in shown.splitlines() if line[:1] in tuple("│┃┏┡└╭╰┌├")]
    assert max(map(len, boxes), default=0) <= width
    for line in boxes:
        assert line[-1] in "│┃┓┩┘╮╯┐┤", line
    lines = shown.splitlines()
    assert is_listing or not [line for line in lines if len(line) > width and not _long_path(line, width)]


@pytest.mark.parametrize("width", [60, *WIDTHS])
def test_the_welcome_is_folded_between_words(width: int, terminal: Callable[[int, str], str]) -> None:
    shown = terminal(width, "")
    assert max(map(len, shown.splitlines())) <= width
    assert shown.split() == INTRODUCTION.split()


@pytest.mark.thorough
@pytest.mark.parametrize("width", [WIDTHS[0], pytest.param(WIDTHS[1], marks=pytest.mark.thorough)])  # as of tables
def test_help_of_every_command(
    width: int, every_command: list[tuple[str, ...]], terminal: Callable[[int, str], str]
) -> None:
    groups = {words[:-1] for words in every_command}
    assert len(every_command) > 30
    for words in [*every_command, *sorted(groups)]:
        if words == ("test",):
            continue  # passes --help on to pytest
        shown = terminal(width, f"{' '.join(words)} --help")
        assert f"Usage: {'python -m tools' if words[:1] == ('tools.bench',) else 'gradbed'}" in shown
        assert "…" not in shown, (words, [line for line in shown.splitlines() if "…" in line])
        assert max(map(len, shown.splitlines())) <= width, words


# What fits the narrower one fits the other: tests/unit/experiments/test_fitted.py has both.
@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("name", PRINTING)
@pytest.mark.parametrize("width", [WIDTHS[0], pytest.param(WIDTHS[1], marks=pytest.mark.thorough)])
def test_tables(
    name: str, width: int, tmp_path: Path, terminal: Callable[[int, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "open_executor", in_this_process)
    monkeypatch.setattr(make_figures, "studies_of", lambda system: {1: tmp_path / "study.yaml"})
    for what, made_up in CALIBRATION.items():
        monkeypatch.setattr(calibration_run, what, made_up)
    (tmp_path / "study.yaml").write_text(STUDY)
    program = tmp_path / "small.p4"
    program.write_text((ROOT / "cli/templates/program/program.p4").read_text())
    stf = tmp_path / "test.stf"
    stf.write_text((ROOT / "cli/templates/program/test.stf").read_text())
    line = PRINTING[name].replace("STUDY", str(tmp_path / "study.yaml"))
    line = line.replace("PROGRAM", str(program)).replace("STF", str(stf))
    if "EXERCISE" in line or "CLASS" in line:
        line = line.replace("EXERCISE", str(tmp_path / "mine")).replace("CLASS", str(tmp_path / "class"))
        terminal(width, f"exercise start forward {tmp_path / 'mine'}")
        (tmp_path / "class" / "a_student_with_a_long_name").mkdir(parents=True)
    more = f" --output {tmp_path}" if line.startswith(("run", "figures")) else ""
    shown = terminal(width, line + more)
    check(shown, width, name in LISTINGS)
    if line.startswith(("run", "figures", "tools.bench", "exercise grade")):
        assert "┏" in shown


def test_every_command_is_looked_at_or_said_to_have_no_table(every_command: list[tuple[str, ...]]) -> None:
    names = {" ".join(words) for words in every_command} - {"run coins"}  # other tests'
    known = {*PRINTING, *NO_TABLE}
    unknown = {name for name in names if name not in known and not name.startswith(("tools.bench", "exercise", "p4"))}
    assert not unknown, "add it to PRINTING, or to NO_TABLE"
    assert known <= names


def test_every_table_is_one_that_fits() -> None:
    """So what is not run here, such as the long benchmarks, has tables of tests/unit/experiments/test_fitted.py."""
    folders = (ROOT / name for name in ("cli", "experiments", "controller", "hosts", "tools"))
    files = [path for folder in folders for path in folder.rglob("*.py")]
    makers = {path.name for path in files if re.search(r"(?<![A-Za-z.])Table\(", path.read_text())}
    assert makers == {"console.py"}
