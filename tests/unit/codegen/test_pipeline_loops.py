"""Loops of P4 in a control: nodes that follow one another in a circle, as BMv2's pipelines allow."""

from __future__ import annotations

import pytest

from gradbed.switch.codegen import build_program
from tests.unit.codegen import program_maker as make
from tests.unit.codegen.bare_switch import BareSwitch

COUNT, LIMIT = make.field("h", "count"), make.field("h", "limit")


def counting(condition: make.Json) -> BareSwitch:
    """h.count grows by one as long as the condition holds."""
    maker = make.ProgramMaker()
    maker.add_header("h", [["count", 32, False], ["limit", 32, False]])
    maker.states = [make.state("start", [make.extract("h")])]
    maker.order = ["h"]
    one_more = make.operation("&", make.operation("+", COUNT, make.constant(1)), make.constant(2**32 - 1))
    grow = maker.add_action("grow", [make.call("assign", COUNT, make.expression(one_more))])
    maker.add_table("again", actions=[grow], default_action=grow, next_node="test")
    maker.pipelines["ingress"]["conditionals"].append(
        {
            "name": "test",
            "id": 0,
            "expression": condition,
            "true_next": "again",
            "false_next": None,
        }
    )
    maker.pipelines["ingress"]["init_table"] = "test"
    return BareSwitch(build_program(maker.json()))


@pytest.mark.parametrize("rounds", [0, 1, 300])
def test_a_loop_ends_when_its_condition_says(rounds: int) -> None:
    frame = bytes(4) + rounds.to_bytes(4, "big")
    assert counting(make.operation("<", COUNT, LIMIT)).through(frame).frame == rounds.to_bytes(4, "big") * 2


def test_a_loop_without_end_is_stopped() -> None:
    packet = counting({"type": "bool", "value": True}).through(bytes(8) + b"payload")
    rounds = int.from_bytes(packet.frame[:4], "big")
    assert rounds == 2**16
    assert packet.frame[4:] == bytes(4) + b"payload"
