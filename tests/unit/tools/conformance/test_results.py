"""What tests of other repositories wrote, read as results."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.conformance.suites.environment import Ended
from tools.conformance.suites.finsy import read_report
from tools.conformance.suites.p4runtime_shell import results_of as shell_results
from tools.conformance.suites.pi import bytes_as_in_python_2
from tools.conformance.suites.ptf import results_of as ptf_results
from tools.conformance.suites.tutorials import result_of_run

PTF = """\
+ p4c --target bmv2 small.p4
small.AddTest ... ok
small.SayTest ... here is
a packet ... of two lines
ok
small.WrongTest ... FAIL
small.BrokenTest ... ERROR

======================================================================
FAIL: small.WrongTest
----------------------------------------------------------------------
Traceback (most recent call last):
  File "small.py", line 3, in runTest
AssertionError: no packet on port 2

======================================================================
ERROR: small.BrokenTest
----------------------------------------------------------------------
Traceback (most recent call last):
KeyError: 'nowhere'

----------------------------------------------------------------------
Ran 4 tests in 0.170s
"""


def test_what_ptf_writes() -> None:
    results = ptf_results(Ended(PTF, 0), "small", 60)
    assert [(r.name, r.outcome, r.reason) for r in results] == [
        ("small small.AddTest", "passed", ""),
        ("small small.SayTest", "passed", ""),
        ("small small.WrongTest", "failed", "AssertionError: no packet on port 2"),
        ("small small.BrokenTest", "failed", "KeyError: 'nowhere'"),
    ]


@pytest.mark.parametrize(
    ("output", "status", "outcome", "reason"),
    [
        ("a.p4:3:1: error: 'x' is not declared\nptf: no\n", 0, "refused", "a.p4:3:1: error: 'x' is not declared"),
        ("Traceback (most recent call last):\nModuleNotFoundError: No module named 'y'\nbye\n", 0, "failed",
         "ModuleNotFoundError: No module named 'y'"),
        ("bye\n\n", 1, "failed", "bye"),
        ("", None, "stopped", "after 60 s"),
    ],
)  # fmt: skip
def test_ptf_without_a_test(output: str, status: int | None, outcome: str, reason: str) -> None:
    (result,) = ptf_results(Ended(output, status), "small", 60)
    assert (result.outcome, result.reason) == (outcome, reason)


def test_a_test_that_does_not_end() -> None:
    results = ptf_results(Ended("small.A ... ok\nsmall.B ... waiting\n", None), "small", 60)
    assert [(r.name, r.outcome) for r in results] == [("small small.A", "passed"), ("small small.B", "stopped")]


def test_a_junit_report(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase name="good"/>'
        '<testcase name="bad"><failure message="two\nlines">trace</failure></testcase>'
        '<testcase name="late"><error message="gone"/></testcase>'
        '<testcase name="left"><skipped message="no time"/></testcase></testsuite></testsuites>'
    )
    assert [(r.name, r.outcome, r.reason) for r in read_report(report, "group")] == [
        ("group good", "passed", ""),
        ("group bad", "failed", "two lines"),
        ("group late", "failed", "gone"),
        ("group left", "not run", "no time"),
    ]


def test_requests_of_the_shell() -> None:
    ok = ["INSERT table_entry", "OK", "", [7]]
    denied = ["INSERT table_entry", "UNKNOWN", "INVALID_ARGUMENT: no priority", [7]]
    tests = {
        "shell.test.Case.good": {
            "passed": True,
            "requests": [ok, ["READ table_entry", "UNKNOWN", "NOT_FOUND: x", []]],
        },
        "shell.test.Case.refused": {"passed": True, "requests": [ok, denied]},
        "shell.test.Case.lacking": {
            "passed": True,
            "requests": [["INSERT table_entry", "UNKNOWN", "NOT_FOUND: x", [8]]],
        },
        "shell.test.Case.not_there": {"passed": True, "requests": [["INSERT x", "UNKNOWN", "NOT_FOUND: x", [7]]]},
        "shell.test.Case.wrong": {"passed": False, "problem": "a\nb", "requests": [denied]},
    }
    assert [(r.name, r.outcome, r.reason) for r in shell_results(tests, {8: "has two keys"})] == [
        ("Case.good", "passed", ""),
        ("Case.refused", "refused", "INSERT table_entry: INVALID_ARGUMENT: no priority"),
        ("Case.lacking", "not run", "has two keys"),
        ("Case.not_there", "refused", "INSERT x: NOT_FOUND: x"),
        ("Case.wrong", "failed", "a b"),
    ]


@pytest.mark.parametrize(
    ("output", "status", "outcome"),
    [
        ("mininet> ", 0, "passed"),
        ("Traceback (most recent call last):\nValueError: 3\n", 0, "failed"),
        ("Caught exception. Cleaning up...\n", 0, "failed"),
        ("make: *** [run] Error 2\n", 2, "failed"),
        ("mininet> ", None, "stopped"),
    ],
)
def test_a_run_of_an_exercise(output: str, status: int | None, outcome: str) -> None:
    assert result_of_run(output, status, "run/basic").outcome == outcome


def test_strings_of_python_2() -> None:
    source = 'a = "\\x0a\\x00"\nb = "text \\n"\nc = b"\\x01"\nd = f("\\xff", \'\\x7e\')\n'
    made: dict[str, object] = {"f": lambda *values: values}
    exec(bytes_as_in_python_2(source), made)
    assert (made["a"], made["b"], made["c"], made["d"]) == (b"\n\0", "text \n", b"\x01", (b"\xff", b"~"))
