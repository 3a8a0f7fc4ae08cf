"""finsy's tests: those of its P4Runtime client, and its examples in Mininet."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from tools.conformance.suites.environment import SUPPORT, SuiteEnvironment
from tools.conformance.suites.ptf import last_error
from tools.conformance.suites.result import Outcome, SuiteResult

TIME_LIMIT_S = 300.0
ADDRESS = "127.0.0.1:9559"
DEVICE_ID = 1
SLEEP_FACTOR = 20
"""Tests wait for switches and controllers by sleeping; our stand-ins take longer to start than BMv2."""

FIXTURE = "p4rt_server_target"
"""What its tests ask for that call a P4Runtime server."""

SWITCH_OF_MININET = Path("/usr/local/mininet/custom/p4switch.py")
"""Where finsy's container has it; there, its tests start Mininet themselves."""

CONTAINER, STRATUM = "needs a container", "needs Stratum, another switch"


def groups(folder: Path) -> dict[str, Callable[[SuiteEnvironment], list[SuiteResult]] | SuiteResult]:
    """Return finsy's own tests that need a P4Runtime server, and a group for each example's file of tests."""
    made: dict[str, Callable[[SuiteEnvironment], list[SuiteResult]] | SuiteResult] = {"tests": _client_tests}
    for path in sorted((folder / "examples/tests").glob("test_*.py")):
        name = f"examples/{path.stem.removeprefix('test_')}"
        missing = _missing_for(path)
        made[name] = SuiteResult(name, "not run", missing) if missing else partial(_example, path, name)
    return made


def _missing_for(tests: Path) -> str | None:
    """Return what the example of a file of tests needs that is not here."""
    text = tests.read_text(encoding="utf-8")
    for network in tests.parents[1].glob("*/net/run.py"):
        if f'"{network.parents[1].name}"' in text:
            asked = network.read_text(encoding="utf-8")
            if "Image(" in asked:
                return CONTAINER
            if '"stratum"' in asked:
                return STRATUM
    return None


def _client_tests(env: SuiteEnvironment) -> list[SuiteResult]:
    options = ["--device-id", str(DEVICE_ID), "--no-p4", "--", "--grpc-server-addr", ADDRESS]
    env.start(["simple_switch_grpc", *options], cwd=env.folder)
    more = {"FINSY_TEST_P4RUNTIME_TARGET": ADDRESS, "FINSY_TEST_NO_BENCHMARK": "1"}
    # Others import what they need for themselves, such as formatters.
    files = [str(path) for path in sorted(env.folder.glob("tests/test_*.py")) if FIXTURE in path.read_text("utf-8")]
    return _pytest(env, "tests", ["-p", "only_with_switch", *files], env.folder, more)


def _example(path: Path, name: str, env: SuiteEnvironment) -> list[SuiteResult]:
    switch = env.folder / "ci/demonet/p4switch.py"
    env.add_file(SWITCH_OF_MININET, switch.read_text(encoding="utf-8"))
    folder = env.folder / "examples"
    more = {"GRADBED_SLEEP_FACTOR": str(SLEEP_FACTOR)}
    return _pytest(env, name, ["-p", "longer_sleeps", "-k", "not stratum", str(path)], folder, more)


def _pytest(
    env: SuiteEnvironment, name: str, arguments: list[str], cwd: Path, more: dict[str, str]
) -> list[SuiteResult]:
    report = env.scratch / "report.xml"
    command = [
        str(env.python),
        "-m",
        "pytest",
        "-o",
        "addopts=",
        "-p",
        "no:cacheprovider",
        f"--junitxml={report}",
    ]
    paths = os.pathsep.join((str(SUPPORT), str(env.folder)))
    ended = env.run([*command, *arguments], cwd=cwd, time_limit_s=TIME_LIMIT_S, more={**more, "PYTHONPATH": paths})
    if ended.status is None:
        return [SuiteResult(name, "stopped", f"after {TIME_LIMIT_S:g} s")]
    results = read_report(report, name) if report.is_file() else []
    if "outcomes.Exit" in ended.output:  # pytest reports nothing of the tests that were to come
        results.append(SuiteResult(f"{name} (the rest)", "failed", last_error(ended.output)))
    return results or [SuiteResult(name, "failed", last_error(ended.output))]


def read_report(report: Path, name: str) -> list[SuiteResult]:
    """Return the tests of a JUnit report, named after `name`."""
    results = []
    for case in ElementTree.parse(report).iter("testcase"):
        outcome: Outcome = "passed"
        reason = ""
        for problem in case:
            if problem.tag in ("failure", "error", "skipped"):
                outcome = "not run" if problem.tag == "skipped" else "failed"
                reason = " ".join((problem.get("message") or "").split())
        results.append(SuiteResult(f"{name} {case.get('name')}", outcome, reason))
    return results
