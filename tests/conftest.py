"""For all tests: how long an example takes decides nothing, since machines have other things to do; what is marked
`root` needs root; Ctrl-C; the command line in this process; and that figures can be read."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from gradbed.common.modules import FOLDERS
from tests.command import ROOT
from tests.examples import THOROUGH_EXAMPLES


class OneName:
    """Refuses to load a module of gradbed by a name without `gradbed`: it would be another one, with other state."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in FOLDERS:
            raise ImportError(f"{name} is gradbed.{name}")


PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
for _tier, _examples in (("commit", 30), ("thorough", THOROUGH_EXAMPLES), ("nightly", 300)):
    settings.register_profile(_tier, PATIENT, max_examples=_examples)
# Of mutants: that something is found is enough, and smaller cases of it would take minutes.
settings.register_profile("as-found", settings.get_profile("thorough"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("commit")


def pytest_configure() -> None:
    """Processes that tests start find the modules of tests, too.

    What runs in the background of a script is born deaf to Ctrl-C, and so would be what the tests interrupt."""
    sys.meta_path.insert(0, OneName)  # type: ignore[arg-type]
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    gc.disable()  # which takes two fifths of the time of loading the tests


def pytest_collection_finish() -> None:
    """What is loaded by now stays: looking again and again whether some of it is garbage takes a fifth of the time of
    tests that simulate networks."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which programs are no longer what BMv2 was recorded with: their recordings are replayed as they were."""
    reports = (report for stat in terminalreporter.stats.values() for report in stat)
    if any("tests/p4/test_recordings.py" in getattr(report, "nodeid", "") for report in reports):
        from tests.p4.recordings import changed_programs

        for program, names in changed_programs().items():
            terminalreporter.line(f"{program} has changed since it was recorded on BMv2: {', '.join(names)}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that is marked `commit_cases(N)` the first N cases run before each commit, the others with --all."""
    seen: Counter[str] = Counter()
    for item in items:
        if few := item.get_closest_marker("commit_cases"):
            test = item.nodeid.partition("[")[0]
            seen[test] += 1
            if seen[test] > few.args[0]:
                item.add_marker("thorough")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root")


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


GradbedHere = ToolHere = Callable[..., Ended]


@pytest.fixture
def gradbed_here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> GradbedHere:
    """`gradbed ARGUMENTS` in this process: much faster than in one of its own."""
    from gradbed.cli.main import main

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["gradbed", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return Ended(int(str(end.value.code or 0)), *capfd.readouterr())

    return run


@pytest.fixture
def tool_here(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> ToolHere:
    """`python -m tools.NAME ARGUMENTS` in this process."""
    from gradbed.cli.main import run_command_line

    def run(name: str, *arguments: str) -> Ended:
        tool = importlib.import_module(f"tools.{name}.__main__")
        monkeypatch.setattr(sys, "argv", [tool.__file__, *arguments])
        with pytest.raises(SystemExit) as end:
            run_command_line(tool.command(), tool.NAME, [])
        return Ended(int(str(end.value.code or 0)), *capfd.readouterr())

    return run


@pytest.fixture(scope="session", autouse=True)
def figures_are_readable() -> Iterator[None]:
    """Every figure that a test draws is looked at, whatever draws it."""
    from matplotlib.figure import Figure

    from tests.unit.experiments.figures.looked_at import look

    save = Figure.savefig

    def looked_at(made: Figure, *arguments: Any, **settings: Any) -> Any:
        look(made)
        return save(made, *arguments, **settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", looked_at)
        yield
