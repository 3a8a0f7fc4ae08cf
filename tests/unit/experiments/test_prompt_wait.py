"""`wait` at the prompt asks the switches, and says what they answer."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from gradbed.experiments.prompt.network_commands import SwitchCommands
from gradbed.topo.registry import parse_topology


def said(answers: dict[str, list[str] | None]) -> list[str]:
    """What `wait` prints when switches answer so."""
    prompt: Any = object.__new__(SwitchCommands)  # without a network, which would read commands at once
    prompt.topology = parse_topology("leaf-spine:2,1,1")
    prompt.stdout = io.StringIO()
    names = [switch.name for switch in prompt.topology.switches]
    client = SimpleNamespace(
        switches=lambda: [{"name": name, "connected": True} for name in names],
        differences=lambda name: answers.get(name, []),
    )
    prompt.runtime = SimpleNamespace(client=client)
    prompt.do_wait("")
    return str(prompt.stdout.getvalue()).splitlines()


@pytest.mark.parametrize(
    ("answers", "lines"),
    [
        ({}, ["all 3 switches hold their part of the plan"]),
        (
            {"l1": ["+ flow: a", "+ flow: b", "+ flow: c"]},
            ["l1 does not hold its part of the plan: + flow: a and 2 more; restart l1 brings it back"],
        ),
        (
            {"l1": ["+ flow: a"], "l2": None},
            [
                "l1 does not hold its part of the plan: + flow: a; restart l1 brings it back",
                "these cannot tell what they hold: l2",
            ],
        ),
    ],
)
def test_wait_says_what_switches_answer(answers: dict[str, list[str] | None], lines: list[str]) -> None:
    assert said(answers) == lines
