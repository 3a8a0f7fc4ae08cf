"""A run on the real clock fails if it leaves anything in its sandbox."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pyroute2 import IPRoute

from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.running import sandboxed
from gradbed.experiments.study.running.sandboxed import run_sandboxed
from gradbed.experiments.study.running.worker import BrokenTrial, Outcome
from tests.emulation.sandboxed import in_sandbox

pytestmark = [pytest.mark.thorough, pytest.mark.root]


def outcome_of(run: Callable[[], Outcome]) -> Outcome:
    """What is kept of a run that does this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandboxed, "TIMEOUT_S", 1.0)
        patch.setattr(sandboxed, "run_task", lambda *task: run())
        return run_sandboxed(
            TrialTask(TrialConfiguration(), 1, Scale(), Path("unused"), system="aggregation", digest="trial")
        )


def stored(failures: tuple[str, ...] = ()) -> TrialRecord:
    return TrialRecord("trial", 1, {"failures": "; ".join(failures)}, {}, {}, list(failures))


@in_sandbox
def test_a_tidy_run_is_as_it_says() -> None:
    assert outcome_of(stored) == stored()
    assert outcome_of(lambda: BrokenTrial("no", "no")) == BrokenTrial("no", "no")


@in_sandbox
def test_an_untidy_run_fails_and_says_what_it_left() -> None:
    def untidy() -> Outcome:
        with IPRoute() as netlink:
            netlink.link("add", ifname="left1", kind="veth", peer="left2")
        subprocess.Popen(["sleep", "60"])
        subprocess.run(["ip", "netns", "add", "left4"], check=True)
        Path(tempfile.gettempdir(), "gradbed-left3").touch()
        Path(tempfile.gettempdir(), "of_a_script").touch()
        return stored(("wrong sum",))

    try:
        found = outcome_of(untidy)
    finally:
        Path("/run/netns/left4").unlink(missing_ok=True)  # its name stays where its mount is gone
    assert isinstance(found, TrialRecord)
    wrong, line = found.failures
    assert wrong == "wrong sum" and found.values["failures"] == f"{wrong}; {line}"
    assert line.startswith("left behind: ")
    for each in ("interface left1", "interface left2", "(sleep)", "/gradbed-left3", "namespace /run/netns/left4"):
        assert each in line, line
    assert "of_a_script" not in line


@in_sandbox
def test_a_clear_error_does_not_excuse_it() -> None:
    def untidy() -> Outcome:
        Path(tempfile.gettempdir(), "gradbed-left").touch()
        return BrokenTrial("no ACK", "no ACK, at line 3")

    found = outcome_of(untidy)
    assert isinstance(found, BrokenTrial)
    assert found.reason.startswith("left behind: file ") and "no ACK" not in found.reason, found.reason
    assert found.details.endswith("no ACK, at line 3")
