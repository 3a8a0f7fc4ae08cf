"""What happens inside of a stage: states, tables, statements, fields, registers."""

from __future__ import annotations

from gradbed.switch.insight.packet_state import FieldChange, Request, ValidityChange
from gradbed.switch.insight.trace_events import (
    Branch,
    ChecksumStep,
    Emitted,
    EntryPart,
    ExecutedStatement,
    FieldValue,
    KeyPart,
    MatchedEntry,
    ParserState,
    TableApplication,
    TraceStage,
)
from tests.unit.insight.tracing import ORDERS, ROUTED, ROUTER, ROUTES, order, place, trace


def tables(stage: TraceStage) -> list[TableApplication]:
    return [event for event in stage.events if isinstance(event, TableApplication)]


def states(stage: TraceStage) -> list[ParserState]:
    return [event for event in stage.events if isinstance(event, ParserState)]


def test_parser_states_with_bytes_and_fields() -> None:
    parse = trace(ROUTER, ROUTES, ROUTED).stages[0]
    start, ipv4 = states(parse)
    assert (start.name, str(start.source), start.at_byte) == ("start", place(ROUTER, "state start"), 0)
    (extract,) = start.operations
    assert (extract.op, extract.header, str(extract.source)) == (
        "extract",
        "ethernet",
        place(ROUTER, "packet.extract(hdr.ethernet)"),
    )
    assert extract.data == ROUTED[:14]
    assert extract.fields == (
        FieldValue("ethernet.dst_addr", 48, 0x020000000001),
        FieldValue("ethernet.src_addr", 48, 0x020000000002),
        FieldValue("ethernet.ether_type", 16, 0x0800),
    )
    assert start.select == (FieldValue("ethernet.ether_type", 16, 0x0800),)
    assert (start.case, start.following, str(start.transition_source)) == (
        "0x0800",
        "parse_ipv4",
        place(ROUTER, "ETHER_TYPE_IPV4: parse_ipv4"),
    )
    assert (ipv4.at_byte, ipv4.case, ipv4.following, ipv4.error) == (14, None, "accept", None)
    assert ipv4.operations[0].data == ROUTED[14:34]
    assert FieldValue("ipv4.ttl", 8, 64) in ipv4.operations[0].fields
    assert FieldValue("ipv4.dst_addr", 32, 0x0A000107) in ipv4.operations[0].fields
    (checksum,) = [event for event in parse.events if isinstance(event, ChecksumStep)]
    assert (checksum.task, checksum.target, checksum.changes) == ("verify", "ipv4.header_checksum", ())


def test_wrong_checksum() -> None:
    wrong = ROUTED[:24] + bytes([ROUTED[24] ^ 1]) + ROUTED[25:]
    told = trace(ROUTER, ROUTES, wrong)
    (checksum,) = [event for event in told.stages[0].events if isinstance(event, ChecksumStep)]
    assert checksum.changes == (FieldChange("standard_metadata.checksum_error", 1, 0, 1),)


def test_checksum_that_does_not_apply_is_not_told() -> None:
    told = trace(ROUTER, ROUTES, ROUTED[:12] + bytes.fromhex("86dd") + bytes(40))
    assert [event for event in told.stages[0].events if isinstance(event, ChecksumStep)] == []


def test_frame_that_ends_within_a_header() -> None:
    told = trace(ROUTER, ROUTES, ROUTED[:30])
    last = states(told.stages[0])[-1]
    assert (last.name, last.following, last.error) == ("parse_ipv4", "reject", "PacketTooShort")
    assert [(operation.op, operation.failed) for operation in last.operations] == [("extract", True)]


def test_verify_that_fails() -> None:
    told = order(255)
    (state,) = states(told.stages[0])
    assert [(operation.op, operation.failed) for operation in state.operations] == [
        ("extract", False),
        ("verify", True),
    ]
    assert (state.error, str(state.operations[1].source)) == ("ParserInvalidArgument", place(ORDERS, "verify("))
    # The control exits: nothing comes after the drop.
    assert isinstance(told.stages[1].events[0], Branch) and told.stages[1].events[0].outcome
    assert tables(told.stages[1]) == []


def test_tables_with_keys_entries_and_actions() -> None:
    ingress = trace(ROUTER, ROUTES, ROUTED).stages[1]
    routes, next_hops = tables(ingress)
    assert (routes.name, str(routes.source), routes.hit) == (
        "RouterIngress.routes",
        place(ROUTER, "table routes"),
        True,
    )
    assert routes.key == (KeyPart("hdr.ipv4.dst_addr", "lpm", 32, 0x0A000107),)
    assert routes.entry == MatchedEntry((EntryPart("lpm", 32, 0x0A000100, prefix_bits=24),), priority=None)
    assert (routes.action, str(routes.action_source)) == (
        "RouterIngress.set_next_hop",
        place(ROUTER, "action set_next_hop"),
    )
    assert routes.arguments == (FieldValue("next_hop", 16, 1),)
    assert routes.counted == (1, len(ROUTED))
    assert routes.statements[0].changes == (FieldChange("metadata_t.next_hop", 16, 0, 1),)
    assert next_hops.entry == MatchedEntry((EntryPart("exact", 16, 1),), priority=None)
    assert [change for statement in next_hops.statements for change in statement.changes] == [
        FieldChange("standard_metadata.egress_spec", 9, 0, 3),
        FieldChange("ethernet.src_addr", 48, 0x020000000002, 0x020000000001),
        FieldChange("ethernet.dst_addr", 48, 0x020000000001, 0x020000000002),
        FieldChange("ipv4.ttl", 8, 64, 63),
    ]
    assert [str(statement.source) for statement in next_hops.statements] == [
        place(ROUTER, text)
        for text in ("std.egress_spec = port", "src_addr = src_mac", "dst_addr = dst_mac", "hdr.ipv4.ttl = ")
    ]


def test_miss_runs_the_default_action() -> None:
    told = trace(ROUTER, "", ROUTED)
    (routes,) = tables(told.stages[1])
    assert (routes.hit, routes.entry, routes.action) == (False, None, "NoAction")
    # The statement behind the table is the apply block's, not the action's.
    last = told.stages[1].events[-1]
    assert isinstance(last, ExecutedStatement) and str(last.source) == place(ROUTER, "mark_to_drop(std)")


def test_range_and_ternary_entry_with_priority() -> None:
    limits = tables(order(1, value=222).stages[1])[-1]
    assert limits.entry == MatchedEntry(
        (EntryPart("range", 8, 200, high=250), EntryPart("ternary", 8, 0, mask=0xFF)), priority=10
    )
    assert limits.action == "OrderIngress.drop"


def test_conditions_with_their_operands() -> None:
    ingress = trace(ROUTER, ROUTES, ROUTED).stages[1]
    branch = ingress.events[0]
    assert isinstance(branch, Branch)
    assert (branch.outcome, str(branch.source)) == (False, place(ROUTER, "if (!hdr.ipv4.isValid()"))
    assert branch.operands == (
        FieldValue("ipv4.isValid()", 0, 1),
        FieldValue("ipv4.ihl", 4, 5),
        FieldValue("ipv4.ttl", 8, 64),
        FieldValue("standard_metadata.checksum_error", 1, 0),
    )


def test_registers_and_counters() -> None:
    remember = tables(order(5, value=3).stages[1])[0]
    read, write = [use for statement in remember.statements for use in statement.cells]
    assert (read.array, read.name, read.index, read.old, read.new) == ("register", "OrderIngress.seen", 3, 0, None)
    assert (write.index, write.width, write.old, write.new) == (3, 16, 0, 1)
    egress = trace(ROUTER, ROUTES, ROUTED).stages[2]
    (count,) = [use for event in egress.events if isinstance(event, ExecutedStatement) for use in event.cells]
    assert (count.array, count.index, count.old, count.new) == ("counter", 3, (0, 0), (1, len(ROUTED)))


def test_register_out_of_range_reads_zero_and_keeps_nothing() -> None:
    remember = tables(order(5, value=9).stages[1])[0]
    read, write = [use for statement in remember.statements for use in statement.cells]
    assert (read.index, read.old, write.old, write.new) == (9, 0, 0, 0)


def test_header_that_appears() -> None:
    told = order(16, rest="1234")
    note = states(told.stages[0])[1]
    assert note.operations[0].fields == (FieldValue("note.text", 16, 0x1234),)
    annotated = order(16, rest="1234").stages[1]
    changes = [change for statement in tables(annotated)[0].statements for change in statement.changes]
    assert FieldChange("note.text", 16, 0x1234, 0xBEEF) in changes
    assert [event.header for event in told.stages[3].events if isinstance(event, Emitted)] == ["order", "note"]


def test_requests() -> None:
    mirror = tables(order(3).stages[1])[0]
    assert Request("clone", 7) in [change for statement in mirror.statements for change in statement.changes]
    again = tables(order(4).stages[1])[0]
    assert again.statements[0].changes == (FieldChange("meta_t.rounds", 8, 0, 1),)
    assert again.statements[1].changes == (Request("resubmit", None),)


def test_cases_of_a_range_are_told_by_value_and_mask() -> None:
    state = states(order(17, rest="0000").stages[0])[0]
    assert (state.case, state.following) == ("0x10 &&& 0xfc", "with_note")
    other = states(order(1).stages[0])[0]
    assert (other.case, other.following) == ("default", "accept")


def test_header_that_was_made_valid_in_ingress() -> None:
    ingress = trace(ORDERS, "add orders hdr.order.what:30 annotate()", bytes([30, 0])).stages[1]
    changes = [change for statement in tables(ingress)[0].statements for change in statement.changes]
    assert ValidityChange("note", True) in changes
    assert FieldChange("note.text", 16, 0, 0xBEEF) in changes
