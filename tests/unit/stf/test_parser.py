"""STF text to statements and back again, and what is said of text that is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.switch.stf import StfError, parse_stf, read_stf
from gradbed.switch.stf import statements as s

PATH = Path("some.stf")


def one(text: str) -> s.StfStatement:
    (statement,) = parse_stf(text, PATH).statements
    return statement


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("packet 3 00 a1 B2c3", s.Packet(1, 3, bytes.fromhex("00a1b2c3"))),
        ("PACKET 0 00", s.Packet(1, 0, b"\0")),
        ("expect 1", s.Expect(1, 1)),
        ("expect 1 0* **F", s.Expect(1, 1, "0***f")),
        ("expect 1 01 $", s.Expect(1, 1, "01", exact=True)),
        ("expect 1 01$", s.Expect(1, 1, "01", exact=True)),
        ("expect 1 $", s.Expect(1, 1, "", exact=True)),
        ("no_packet", s.NoPacket(1)),
        ("wait", s.Wait(1)),
        ("add t a()", s.Add(1, "t", (), s.StfAction("a"))),
        (
            "add c.t 7 hdr.h.f:0x1 x$0.y:5 c.a(p:1, q:0b11) = mine",
            s.Add(
                1,
                "c.t",
                (s.Match("hdr.h.f", s.Pattern(1, 15, 15)), s.Match("x$0.y", s.Pattern(5))),
                s.StfAction("c.a", (("p", 1), ("q", 3))),
                7,
                "mine",
            ),
        ),
        (
            'add "a table" f[0].g:1/8 b:0x0f&&&0xff c:1..5 d:1->5 a()',
            s.Add(
                1,
                "a table",
                (
                    s.Match("f[0].g", s.Prefix(1, 8)),
                    s.Match("b", s.Masked(15, 255)),
                    s.Match("c", s.Range(1, 5)),
                    s.Match("d", s.Range(1, 5)),
                ),
                s.StfAction("a"),
            ),
        ),
        ("add t f:0x1* a()", s.Add(1, "t", (s.Match("f", s.Pattern(0x10, 0xF0, 0xFF)),), s.StfAction("a"))),
        ("add t f:0b1*0 a()", s.Add(1, "t", (s.Match("f", s.Pattern(4, 5, 7)),), s.StfAction("a"))),
        ("setdefault t a(b:1)", s.SetDefault(1, "t", s.StfAction("a", (("b", 1),)))),
        ("remove all", s.Remove(1, None)),
        ("remove mine", s.Remove(1, "mine")),
        ("check_counter c(3)", s.CheckCounter(1, "c", 3, "packets", s.StfCondition("==", 0))),
        ("check_counter c($A) bytes >= 0x10", s.CheckCounter(1, "c", "$A", "bytes", s.StfCondition(">=", 16))),
        ("counter_read c 1", s.CounterRead(1, "c", 1)),
        ("counter_write c 1 2 3", s.CounterWrite(1, "c", 1, 2, 3)),
        ("register_read r 1", s.RegisterRead(1, "r", 1)),
        ("register_read r 1 != 4", s.RegisterRead(1, "r", 1, s.StfCondition("!=", 4))),
        ("register_write r 1 2", s.RegisterWrite(1, "r", 1, 2)),
        ("register_reset r", s.RegisterReset(1, "r")),
        ("meter_get_rates m 1", s.MeterGetRates(1, "m", 1)),
        (
            "add t a:1 b(c:2) | d() = mine",
            s.Add(
                1,
                "t",
                (s.Match("a", s.Pattern(1)),),
                s.StfAction("b", (("c", 2),)),
                None,
                "mine",
                (s.StfAction("d"),),
            ),
        ),
        ("meter_set_rates m e 1:4 2:5", s.MeterSetRates(1, "m", "e", (s.Rate(1, 4), s.Rate(2, 5)))),
        ("meter_set_rates m 1 0.5:4 2:5", s.MeterSetRates(1, "m", 1, (s.Rate(0.5, 4), s.Rate(2.0, 5)))),
        ("meter_array_set_rates m 1:1 2:2", s.MeterSetRates(1, "m", None, (s.Rate(1.0, 1), s.Rate(2.0, 2)))),
        ("mirroring_add 5 2", s.MirroringAdd(1, 5, 2)),
        ("mirroring_add_mc 5 9", s.MirroringAddMulticast(1, 5, 9)),
        ("mirroring_delete 5", s.MirroringDelete(1, 5)),
        ("mirroring_get 5", s.MirroringGet(1, 5)),
        ("mc_mgrp_create 1113", s.GroupCreate(1, 1113)),
        ("mc_node_create 400 6 7", s.NodeCreate(1, 400, (6, 7))),
        ("mc_node_update 0 6", s.NodeUpdate(1, 0, (6,))),
        ("mc_node_associate 1113 0", s.NodeAssociate(1, 1113, 0)),
        ("pvs_add v 0x800", s.ValueSetAdd(1, "v", 0x800)),
        ("pvs_clear v", s.ValueSetClear(1, "v")),
    ],
)
def test_statements(text: str, statement: s.StfStatement) -> None:
    assert one(text) == statement
    assert one(f"\t{text.replace(' ', chr(9), 1)}  # and a comment\r\n\n") == statement


def test_lines_are_counted_from_one_and_comments_are_lines() -> None:
    script = parse_stf("# nothing\n\npacket 4 00\n   expect 5 # 12\n", PATH)
    assert [(type(x).__name__, x.line) for x in script.statements] == [("Packet", 3), ("Expect", 4)]
    assert script.ports == {4, 5}
    assert isinstance(script.statements[1], s.Expect)
    assert script.statements[1].digits is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pakket 1 00", "there is no command 'pakket'"),
        ("packet", "a port number is missing: packet PORT HEX-DIGITS"),
        ("packet x 00", "a port number is missing: packet PORT HEX-DIGITS"),
        ("packet 1", "the packet has no bytes: packet PORT HEX-DIGITS"),
        ("packet 1 0*", "'*' is not a hex digit"),
        ("packet 1 000", "the packet has an odd number of hex digits: 3"),
        ("packet 1 00$", "'$' is not a hex digit"),
        ("expect 1 0g", "'g' is not a hex digit"),
        ("expect 1 $ 00", "'$' is not a hex digit"),
        ("no_packet 1", "'1' is not expected here"),
        ("add", "expected a table, got the end of the line"),
        ("add t", "expected an action, got the end of the line"),
        ("add t a", "expected '(', got the end of the line"),
        ("add t a(", "expected the name of an argument, got the end of the line"),
        ("add t a(b)", "expected ':', got ')'"),
        ("add t a(b:1 c:2)", "expected ',', got 'c'"),
        ("add t a(b:1, b:2)", "argument b is there twice"),
        ("add t a(b:0x*)", "argument b cannot have wildcards"),
        ("add t f:1 f:1 a()", "key field f is there twice"),
        ("add t f:x a()", "expected the value of f, got 'x'"),
        ("add t f:0x*/4 a()", "the value of f cannot have wildcards and /"),
        ("add t f:1.5 a()", "the value of f is a whole number, not 1.5"),
        ("add t f:1 a() =", "expected a name for the entry, got the end of the line"),
        ("add t ~", "cannot read '~'"),
        ("add t 12ab a()", "cannot read '12ab a()'"),
        ("check_counter c(1) bits == 1", "counters count packets or bytes, not bits"),
        ("check_counter c(1) bytes 1", "a comparison is missing: one of == != <= < >= >"),
        ("mc_node_create 1", "expected a port, got the end of the line"),
        ("meter_set_rates m 1 1:2", "expected the peak rate per microsecond, got the end of the line"),
        ("meter_set_rates m 1 0x1:2", "expected the committed rate per microsecond, got '0x1'"),
        (f"meter_set_rates m 1 {'9' * 400}:2 3:4", "the committed rate per microsecond is too large"),
        (f"add t f:{'9' * 5000} a()", "a decimal number has at most 1000 digits"),
        (f"packet {'9' * 5000} 00", "a decimal number has at most 1000 digits"),
        ("register_write r 1", "expected a value, got the end of the line"),
    ],
)
def test_mistakes_are_told_in_one_line_with_their_place(text: str, problem: str) -> None:
    with pytest.raises(StfError) as error:
        parse_stf(f"wait\n{text}\npakket", PATH)
    assert str(error.value) == f"some.stf:2: {problem}"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*none\.stf: No such file"):
        read_stf(tmp_path / "none.stf")
    binary = tmp_path / "binary.stf"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not a text file"):
        read_stf(binary)


@pytest.mark.parametrize(
    ("operator", "holds"),
    [
        ("==", [False, True, False]),
        ("!=", [True, False, True]),
        ("<", [True, False, False]),
        ("<=", [True, True, False]),
        (">", [False, False, True]),
        (">=", [False, True, True]),
    ],
)
def test_conditions(operator: str, holds: list[bool]) -> None:
    statement = one(f"register_read r 0 {operator} 5")
    assert isinstance(statement, s.RegisterRead)
    assert statement.condition is not None
    assert [statement.condition.holds(value) for value in (4, 5, 6)] == holds


# ---- Properties ----

digits = st.text("0123456789abcdef", min_size=1, max_size=16)
names = st.from_regex(r"[a-z_$][a-z0-9_$]{0,8}(\[[0-9]\])?(\.[a-z_$][a-z0-9_$]{0,8}){0,2}", fullmatch=True)


@given(st.binary(min_size=1, max_size=64), st.integers(0, 510), st.integers(1, 9))
def test_packets_come_back_however_they_are_grouped(frame: bytes, port: int, group: int) -> None:
    text = frame.hex()
    grouped = " ".join(text[i : i + group] for i in range(0, len(text), group))
    assert one(f"packet {port} {grouped.upper()}") == s.Packet(1, port, frame)
    expect = one(f"expect {port} {grouped} $")
    assert isinstance(expect, s.Expect)
    assert expect.describes(frame)
    assert not expect.describes(frame + b"\0")
    assert not expect.describes(frame[:-1])


@given(st.binary(min_size=1, max_size=32), st.data())
def test_expectations_ignore_wildcards_and_nothing_else(frame: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, 2 * len(frame) - 1))
    text = frame.hex()
    other = data.draw(st.sampled_from([c for c in "0123456789abcdef" if c != text[at]]))
    changed = bytes.fromhex(text[:at] + other + text[at + 1 :])
    strict = one(f"expect 0 {text}")
    lenient = one(f"expect 0 {text[:at]}*{text[at + 1 :]}")
    assert isinstance(strict, s.Expect)
    assert isinstance(lenient, s.Expect)
    assert strict.describes(frame + b"tail")
    assert not strict.describes(changed)
    assert lenient.describes(frame)
    assert lenient.describes(changed)


@given(names, names, names, st.integers(0, 2**64), digits, st.one_of(st.none(), st.integers(0, 9999)))
def test_entries_come_back(
    table: str, key: str, action: str, value: int, hexadecimal: str, priority: int | None
) -> None:
    before = "" if priority is None else f"{priority} "
    written = (1 << 4 * len(hexadecimal)) - 1
    assert one(
        f"add {table} {before}{key}:0x{hexadecimal} other.{key}:{value} {action}(x:{value}, y:0x{hexadecimal})"
    ) == s.Add(
        1,
        table,
        (
            s.Match(key, s.Pattern(int(hexadecimal, 16), written, written)),
            s.Match(f"other.{key}", s.Pattern(value)),
        ),
        s.StfAction(action, (("x", value), ("y", int(hexadecimal, 16)))),
        priority,
    )


@given(st.text(max_size=80))
@example("add t f:0x* 5 a()")
@example("expect 99999999999999999999999999 00")
@example("packet \u0661 00")
@example("add t \u00e9:1 a()")
@example("meter_set_rates m 1 0x*:2 3:4")
def test_any_text_is_parsed_or_refused_in_one_line(text: str) -> None:
    for command in ("", "add ", "packet 0 ", "expect 1 ", "check_counter ", "meter_set_rates m 1 "):
        try:
            parse_stf(command + text, PATH)
        except StfError as error:
            assert str(error).startswith("some.stf:")
            assert "\n" not in str(error)
