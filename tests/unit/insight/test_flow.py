"""Where packets go: every way through v1model, as a trace tells it."""

from __future__ import annotations

from gradbed.switch.insight.trace_events import Decision, Trace, TraceStage
from tests.unit.insight.tracing import ORDER_COMMANDS, ORDERS, order, path, place, trace


def kinds(stage: TraceStage) -> list[str]:
    return [decision.kind for decision in stage.decisions]


def stages(of: Trace, name: str) -> list[TraceStage]:
    return [stage for stage in of.stages if stage.name == name]


def test_unicast() -> None:
    told = order(1, rest="aabb")
    assert path(told) == [
        ("parse", "arrived", 30),
        ("ingress", "continued", 30),
        ("egress", "unicast", 1),
        ("deparse", "continued", 1),
    ]
    assert [stage.parent for stage in told.stages] == [None, 1, 2, 3]
    assert told.stages[1].decisions == [Decision("to_port", 1)]
    assert told.stages[3].decisions == [Decision("sent", 1, frame=bytes.fromhex("0100aabb"))]
    assert told.outputs == ((1, bytes.fromhex("0100aabb")),)


def test_multicast_makes_a_copy_for_each_port() -> None:
    told = order(2)
    assert told.stages[1].decisions == [Decision("to_group", 12, copies=2)]
    copies = stages(told, "egress")
    assert [(stage.cause, stage.port, stage.instance, stage.parent) for stage in copies] == [
        ("multicast", 8, 3, 2),
        ("multicast", 9, 3, 2),
    ]
    assert [port for port, _ in told.outputs] == [8, 9]


def test_clone_of_ingress_is_parsed_again_and_goes_to_its_session() -> None:
    told = order(3)
    assert path(told) == [
        ("parse", "arrived", 30),
        ("ingress", "continued", 30),
        ("parse", "clone", 30),
        ("egress", "clone", 10),
        ("deparse", "continued", 10),
        ("egress", "unicast", 4),
        ("deparse", "continued", 4),
    ]
    assert [stage.parent for stage in told.stages] == [None, 1, 2, 3, 4, 2, 6]
    assert told.stages[1].decisions == [Decision("clone", 7, copies=1), Decision("to_port", 4)]
    assert sorted(port for port, _ in told.outputs) == [4, 10]


def test_clone_to_a_session_that_is_not_there() -> None:
    told = trace(ORDERS, "add orders hdr.order.what:3 mirror(port:4)", bytes([3, 0]))
    assert told.stages[1].decisions == [Decision("clone", 7, copies=0), Decision("to_port", 4)]
    assert [port for port, _ in told.outputs] == [4]


def test_resubmitted_packet_comes_back_with_its_field_list() -> None:
    told = order(4)
    assert path(told) == [
        ("parse", "arrived", 30),
        ("ingress", "continued", 30),
        ("parse", "resubmit", 30),
        ("ingress", "continued", 30),
        ("egress", "unicast", 5),
        ("deparse", "continued", 5),
    ]
    assert kinds(told.stages[1]) == ["resubmit"]
    assert told.stages[2].parent == told.stages[1].number
    assert told.stages[2].frame == told.frame


def test_recirculated_packet_comes_back_as_it_was_deparsed() -> None:
    told = order(6, rest="cc")
    assert path(told) == [
        ("parse", "arrived", 30),
        ("ingress", "continued", 30),
        ("egress", "unicast", 6),
        ("deparse", "continued", 6),
        ("parse", "recirculate", 30),
        ("ingress", "continued", 30),
        ("egress", "unicast", 5),
        ("deparse", "continued", 5),
    ]
    assert kinds(told.stages[2]) == ["recirculate"]
    assert told.stages[3].decisions == []
    assert (told.stages[4].parent, told.stages[4].frame) == (told.stages[3].number, bytes.fromhex("0600cc"))


def test_clone_of_egress_outlives_the_packet() -> None:
    told = order(7)
    egress = stages(told, "egress")
    assert [(stage.cause, stage.port, stage.parent) for stage in egress] == [
        ("unicast", 7, 2),
        ("clone", 11, egress[0].number),
    ]
    assert egress[0].decisions[0] == Decision("clone", 8, copies=1)
    dropped = egress[0].decisions[1]
    assert (dropped.kind, dropped.reason) == ("drop", "mark_to_drop(std)")
    assert str(dropped.source) == place(ORDERS, "mark_to_drop(std)", occurrence=2)
    assert [port for port, _ in told.outputs] == [11]


def test_drop_names_the_statement_that_asked_for_it() -> None:
    told = order(99)
    (decision,) = told.stages[-1].decisions
    assert (decision.kind, decision.reason) == ("drop", "mark_to_drop(std)")
    assert str(decision.source) == place(ORDERS, "mark_to_drop(std)")
    assert told.outputs == ()


def test_drop_by_a_later_table() -> None:
    told = order(1, value=222)
    (decision,) = told.stages[-1].decisions
    assert (decision.kind, str(decision.source)) == ("drop", place(ORDERS, "mark_to_drop(std)"))


def test_group_without_ports_and_port_that_is_not_there() -> None:
    told = trace(ORDERS, "add orders hdr.order.what:2 spread(group:77)", bytes([2, 0]))
    assert told.stages[-1].decisions == [Decision("drop", reason="multicast group 77 has no ports")]
    assert [stage.name for stage in told.stages] == ["parse", "ingress"]


def test_packet_to_the_cpu_port_is_a_packet_in() -> None:
    told = trace(ORDERS, "add orders hdr.order.what:1 send(port:510)", bytes([1, 0]))
    assert told.stages[-1].decisions == [Decision("sent", 510, frame=bytes([1, 0]))]
    assert told.outputs == ((510, bytes([1, 0])),)


def test_packet_out_arrives_at_the_cpu_port() -> None:
    told = trace(ORDERS, ORDER_COMMANDS, bytes([1, 0]), port=510)
    assert path(told)[0] == ("parse", "arrived", 510)
    assert [port for port, _ in told.outputs] == [1]
