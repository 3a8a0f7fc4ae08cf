"""Checks of a workload trial: expectations of its study, and packet counts that hold for every program."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradbed.common.errors import UserError, suggestion
from gradbed.experiments.conservation.counts import Counts, HostAccount, disagreements, first_lines
from gradbed.experiments.traffic.checks import mark_disagreements
from gradbed.experiments.traffic.results import TrafficResults
from gradbed.topo.graph import Topology

# ---- Expectations ----
#
#     expect: {loss: 0, p99_us: "< 200", "register:count[0]": "> 0", "counter:s1:seen[3]": "10..20"}
#
# A number means equality; otherwise there is an operator (<, <=, >, >=, ==, !=) and a number, or LOW..HIGH, both
# included. A register or counter without a switch is the sum over all switches; counters count packets.


Value = float | int | str | bool | None

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_LINE = re.compile(r"([^<>=!\s]+)\s*(<=|>=|==|!=|=|<|>)\s*([^<>=!]+)")
_CELL = re.compile(r"(register|counter):(?:([A-Za-z]\w*):)?([A-Za-z_][\w.]*)\[(\d+)\]")


@dataclass(frozen=True)
class StateCell:
    """A cell of a register or counter."""

    kind: str
    switch: str | None
    """Name of the switch; None: the sum over all switches."""
    name: str
    index: int


@dataclass(frozen=True)
class Expectation:
    """A condition on one value."""

    subject: str | StateCell
    """Name of a metric, or a cell."""
    text: str
    holds: Callable[[float], bool]


def parse_expectation(subject: str, condition: float | str) -> Expectation:
    """Parse a condition.

    Raises:
        UserError: the text is no condition.
    """
    cell = _CELL.fullmatch(subject)
    if cell is None and ("[" in subject or ":" in subject):
        raise UserError(f"expect: {subject!r} is no register:NAME[INDEX] or counter:SWITCH:NAME[INDEX]")
    about = subject if cell is None else StateCell(cell[1], cell[2], cell[3], int(cell[4]))
    words = condition.strip() if isinstance(condition, str) else f"{condition:g}"
    text = f"{subject} {words}" if words.startswith(tuple(_OPERATORS)) or ".." in words else f"{subject} == {words}"
    return Expectation(about, text, _condition(subject, condition))


def _condition(subject: str, condition: float | str) -> Callable[[float], bool]:
    if not isinstance(condition, str):
        wanted = float(condition)
        return lambda value: value == wanted
    text = condition.strip()
    for sign, compare in _OPERATORS.items():
        if text.startswith(sign):
            limit = _number(subject, text.removeprefix(sign))
            return lambda value: compare(value, limit)
    if ".." in text:
        low, high = (_number(subject, part) for part in text.split("..", 1))
        return lambda value: low <= value <= high
    exact = _number(subject, text)
    return lambda value: value == exact


def _number(subject: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(
            f'expect: {subject}: {text.strip()!r} is no number; conditions are 0, "< 200", "1..5"'
        ) from None


def expectations_of(lines: Sequence[str]) -> dict[str, float | str]:
    """Parse conditions of a command line: "loss=0", "p99_us<200", "flow_p50_us=10..20".

    Raises:
        UserError: a text is no condition.
    """
    found: dict[str, float | str] = {}
    for line in lines:
        parts = _LINE.fullmatch(line.strip())
        if parts is None:
            raise UserError(f"expect: {line!r} is no condition such as loss=0 or p99_us<200")
        subject, sign, limit = parts.groups()
        if subject in found:
            raise UserError(f"expect: {subject} stands twice: one condition may be LOW..HIGH")
        found[subject] = limit if sign == "=" else f"{sign} {limit}"
    return found


def check_subjects(expect: Mapping[str, float | str], metrics: Mapping[str, object]) -> None:
    """Raise UserError for metrics that do not exist."""
    for subject, condition in expect.items():
        about = parse_expectation(subject, condition).subject
        if isinstance(about, str) and about not in metrics:
            raise UserError(f"expect: there is no metric {about!r}{suggestion(about, list(metrics))}")


def unmet(
    expect: Mapping[str, float | str], metrics: Mapping[str, Value], cell_value: Callable[[StateCell], int | None]
) -> list[str]:
    """Return a line for each expectation that does not hold."""
    lines = []
    for subject, condition in expect.items():
        expectation = parse_expectation(subject, condition)
        about = expectation.subject
        value = cell_value(about) if isinstance(about, StateCell) else metrics.get(about)
        if not isinstance(value, (int, float)):
            lines.append(f"expected {expectation.text}, but there is no such value here")
        elif not expectation.holds(float(value)):
            lines.append(f"expected {expectation.text}, found {value:g}")
    return lines


# ---- Packet counts ----
#
# Marks identify each packet (hosts/traffic/frames.py); interfaces count frames beneath the agents; links and switches
# count what they did. None of them knows of the others.


def packet_failures(
    topology: Topology, counts: Counts, accounts: Sequence[HostAccount], results: TrafficResults
) -> list[str]:
    """Return a line for each disagreement, the first of them; for a network in which no packet is in flight any
    more.

    Args:
        accounts: of the hosts whose agents have reported their counts.
    """
    return first_lines(
        [
            *disagreements(accounts),
            *mark_disagreements(results),
            *_copies(counts, results),
        ]
    )


def _copies(counts: Counts, results: TrafficResults) -> list[str]:
    """Report packets that arrived more often than they were sent or copied."""
    flows = results.flows
    lines = [
        f"{sender}: of a flow with {sent} packets {received} arrived at {receiver}"
        for sender, receiver, sent, received in zip(
            *(flows[name].tolist() for name in ("sender", "receiver", "packets", "received_packets")), strict=True
        )
        if received > sent
    ]
    if counts.devices:
        made = sum(_copies_of(device) for device in counts.devices.values())
        made += sum(effect.duplicates.packets for effect in counts.effects.values())
        if results.duplicates > made:
            lines.append(f"{results.duplicates} packets arrived again, but switches and links made {made} copies")
    return lines


def _copies_of(device: Mapping[str, Any]) -> int:
    return int(device["cloned"] + device["copied"])
