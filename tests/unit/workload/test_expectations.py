"""Conditions of studies."""

from __future__ import annotations

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.systems.workload.checks import StateCell, check_subjects, parse_expectation, unmet


@pytest.mark.parametrize(
    ("condition", "good", "bad"),
    [
        (0, [0], [1, -1]),
        ("0.5", [0.5], [0.4]),
        ("< 200", [199.9], [200, 300]),
        ("<=200", [200], [200.1]),
        ("> 0", [1], [0]),
        (">= 2", [2], [1]),
        ("== 3", [3], [2]),
        ("!= 3", [2], [3]),
        ("10..20", [10, 15, 20], [9, 21]),
    ],
)
def test_conditions(condition: float | str, good: list[float], bad: list[float]) -> None:
    expectation = parse_expectation("loss", condition)
    assert all(expectation.holds(value) for value in good)
    assert not any(expectation.holds(value) for value in bad)


@pytest.mark.parametrize(
    ("subject", "cell"),
    [
        ("register:count[0]", StateCell("register", None, "count", 0)),
        ("counter:s1:seen[12]", StateCell("counter", "s1", "seen", 12)),
        ("register:Ingress.count[3]", StateCell("register", None, "Ingress.count", 3)),
    ],
)
def test_cells(subject: str, cell: StateCell) -> None:
    assert parse_expectation(subject, 0).subject == cell


@pytest.mark.parametrize(
    ("subject", "condition", "message"),
    [
        ("register:count", 0, "is no register:NAME"),
        ("meter:x[0]", 0, "is no register:NAME"),
        ("loss", "< fast", "'fast' is no number"),
        ("loss", "1..", "'' is no number"),
    ],
)
def test_wrong_conditions_are_one_line(subject: str, condition: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_expectation(subject, condition)


def test_unknown_metrics_are_told_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"no metric 'los'.*loss"):
        check_subjects({"los": 0}, {"loss": None})
    check_subjects({"loss": 0, "register:x[0]": 1}, {"loss": None})


def test_what_does_not_hold_is_told() -> None:
    found = unmet(
        {"loss": 0, "p99_us": "< 10", "flow_p50_us": "> 0", "register:count[1]": "> 5", "register:s1:wide[0]": 0},
        {"loss": 0.25, "p99_us": 9.0, "flow_p50_us": None},
        lambda cell: 5 if cell.name == "count" else None,
    )
    assert found == [
        "expected loss == 0, found 0.25",
        "expected flow_p50_us > 0, but there is no such value here",
        "expected register:count[1] > 5, found 5",
        "expected register:s1:wide[0] == 0, but there is no such value here",
    ]
