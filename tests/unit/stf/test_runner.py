"""STF files against a small program: what passes, what fails, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.switch.device import KeyMatch
from gradbed.switch.stf import StfError, names, parse_stf, run_script
from gradbed.switch.stf import statements as s
from tests.examples import examples
from tests.unit.stf.programs import program

PATH = Path("t.stf")


def failures(text: str) -> list[str]:
    return list(run_script(program(), parse_stf(text, PATH)).failures)


ONE = "add wild 1 head.a:0x0001 set(value:0xaa, port:2)\n"
SENT = "packet 1 0001 00 00 ffff\n"
CAME = "expect 2 0001 00 aa ffff$\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ONE + SENT + CAME,
        ONE + CAME + SENT,
        ONE + SENT + "expect 2\n",
        ONE + SENT + "expect 2 0001 *0 *a\n",
        ONE + SENT + CAME + "no_packet\n",
        # Order counts for each port only.
        ONE
        + "add wild 1 head.a:0x0002 set(value:0xbb, port:3)\npacket 1 0002 00 00\n"
        + SENT
        + CAME
        + "expect 3 0002 00 bb$",
        # A port that the file does not name is not there.
        ONE + "packet 1 0001 00 00\nexpect 2\nadd wild 1 head.a:0x0002 set(value:1, port:9)\npacket 1 0002 00 00\n",
        # The CPU port too can be an ordinary one.
        "add wild 1 head.a:0x0001 set(value:1, port:510)\npacket 1 0001 00 00\nexpect 510 0001 00 01$",
        "setdefault wild set(value:0xaa, port:2)\n" + ONE + "remove all\n" + SENT + CAME,
    ],
)
def test_files_that_pass(text: str) -> None:
    assert failures(text) == []


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (ONE + SENT + "expect 2 0001 00 aa\nexpect 3", ["t.stf:4: port 3: no packet came"]),
        (ONE + SENT + "expect 1 00", ["t.stf:3: port 1: no packet came"]),
        (ONE + SENT + CAME + CAME, ["t.stf:4: port 2: no packet came (1 of 2)"]),
        (
            ONE + SENT + SENT + CAME,
            ["t.stf:4: port 2: a packet came that no expect is for: 000100aaffff"],
        ),
        (
            ONE + SENT + "expect 2 0001 00 ab",
            [
                "t.stf:3: port 2: the packet differs in head.result: 0xaa instead of 0xab; "
                "expected 000100ab, got 000100aaffff"
            ],
        ),
        (
            ONE + SENT + "expect 2 0001 00 aa $",
            [
                "t.stf:3: port 2: the packet is too long: 12 hex digits, 8 expected; "
                "expected 000100aa$, got 000100aaffff"
            ],
        ),
        (
            ONE + SENT + "expect 2 0001 00 ** ffff **",
            [
                "t.stf:3: port 2: the packet is too short: 12 hex digits, 14 expected; "
                "expected 000100**ffff**, got 000100aaffff"
            ],
        ),
        (ONE + SENT + "no_packet\n" + CAME, ["t.stf:3: a packet left by port 2: 000100aaffff"]),
        (
            "add wild 1 head.a:0x0001 set(value:1, port:9)\n" + SENT + "no_packet",
            ["t.stf:3: a packet left by port 9: 00010001ffff"],
        ),
        ("packet 511 00", ["t.stf:1: ports are 0..510, so there is no port 511"]),
        (f"packet 0 {'00' * 65554}", ["t.stf:1: a frame has at most 65553 bytes, this one 65554"]),
        (
            "add wild 1 head.a:0x0001 round()\n" + SENT,
            ["t.stf:2: the packet and its copies go round in circles and never come to rest"],
        ),
    ],
)
def test_files_that_fail(text: str, problems: list[str]) -> None:
    assert failures(text) == problems


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (
            "add wold 1 head.a:1 drop()",
            "there is no table wold; did you mean I.wild? (a table that is never applied is left out)",
        ),
        ("add wild 1 head.a:1 dorp()", "there is no action of table I.wild named dorp; did you mean I.drop?"),
        ("add wild 1 head.x:1 drop()", "there is no key field of table I.wild named head.x: there is hdr.head.a"),
        ("add wild 1 head.a:1 a:1 drop()", "key field hdr.head.a is there twice"),
        ("add wild head.a:1 drop()", "an entry of table I.wild needs a priority: add I.wild PRIORITY ..."),
        ("add wild 0x80000000 head.a:1 drop()", "the priority: 0x80000000 does not fit 31 bits"),
        ("mc_node_create 1 70000\nmc_mgrp_create 1\nmc_node_associate 1 0", "egress port 70000 is not in 0..511"),
        ("mirroring_add 65536 1", "clone session 65536 is not in 0..65535"),
        ("mc_mgrp_create 0", "multicast group 0 is not in 1..65535"),
        ("add wild 1 head.a:1 set(value:1)", "action I.set needs port"),
        ("add wild 1 head.a:1 set(value:1, prt:2)", "action I.set has no parameter prt; did you mean port?"),
        ("add wild 1 head.a:1 set(value:256, port:1)", "argument value of I.set: 0x100 does not fit 8 bits"),
        ("add wild 1 head.a:0x10000 drop()", "key field hdr.head.a: 0x10000 does not fit 16 bits"),
        ("add wild 1 head.a:1/4 drop()", "key field hdr.head.a is matched by ternary, so it cannot be VALUE/BITS"),
        ("add prefixes head.a:1/17 set(value:1, port:1)", "key field hdr.head.a has 16 bits, so no prefix of 17"),
        (
            "add prefixes head.a:0x*1 set(value:1, port:1)",
            "key field hdr.head.a is matched by lpm, so its wildcards stand at the end",
        ),
        (
            "add pairs 1 a:0x000* b:0..3 set(value:1, port:1)",
            "key field hdr.head.a is matched by exact, so it cannot have wildcards",
        ),
        (
            "add pairs 1 b:0..3 set(value:1, port:1)",
            "key field hdr.head.a of table I.pairs is matched exactly: give it a value",
        ),
        (
            "add pairs 1 a:1 b:3..2 set(value:1, port:1)",
            "key field hdr.head.b: the low end 3 is above the high end 2",
        ),
        ("add pairs 1 a:1 b:3..16 set(value:1, port:1)", "key field hdr.head.b: 0x10 does not fit 4 bits"),
        ("add wild 1 head.a:1 drop() = x\nadd wild 2 head.a:1 drop() = x", "there is an entry x already"),
        ("setdefault fixed NoAction()", "the default action of table I.fixed is const"),
        ("remove x", "there is no entry x: add ... = x names one"),
        ("check_counter hits(1)", "there is no indirect counter hits: there is I.seen"),
        ("check_counter seen(4)", "counter I.seen has 4 cells, no index 4"),
        ("check_counter seen(0) packets == 1", "counter seen(0) is 0 packets, should be == 1"),
        ("register_read cells 4", "register I.cells has 4 cells, no index 4"),
        ("register_read cells 0 == 3", "register cells[0] is 0, should be == 3"),
        ("register_read sells 0", "there is no register sells; did you mean I.cells?"),
        ("register_write cells 0 0x100000000", "register I.cells: 4294967296 does not fit 32 bits"),
        ("meter_get_rates rate 2", "meter I.rate has 2 cells, no index 2"),
        ("pvs_add extended 0x10000", "value set P.extended: 65536 does not fit 16 bits"),
        ("mc_node_associate 1 0", "there is no multicast group 1: mc_mgrp_create 1 first"),
        (
            "mc_mgrp_create 1\nmc_node_associate 1 0",
            "there is no multicast node 0: mc_node_create makes them, from 0 on",
        ),
        ("mc_mgrp_create 1\nmc_mgrp_create 1", "there is a multicast group 1 already"),
        ("mirroring_get 3", "there is no clone session 3: mirroring_add 3 PORT makes it"),
        ("mirroring_add_mc 3 4", "there is no multicast group 4: mc_mgrp_create 4 first"),
    ],
)
def test_commands_that_do_not_fit_the_program(command: str, problem: str) -> None:
    line = command.count("\n") + 1
    assert failures(f"{command}\n") == [f"t.stf:{line}: {problem}"]


def test_what_follows_a_command_that_does_not_fit_is_not_run() -> None:
    assert len(failures("add wild 1 head.a:1 none()\n" + SENT + CAME)) == 1


def test_checks_that_fail_do_not_stop_the_file() -> None:
    problems = failures("register_read cells 0 == 9\n" + ONE + SENT + "expect 2 ff\nregister_read cells 0 == 8\n")
    assert [p.split(":")[1] for p in problems] == ["1", "5", "4"]


def test_state_can_be_written_and_is_checked() -> None:
    assert not failures(
        ONE.replace("2)", "2) = mine", 1)
        + SENT
        + CAME
        + """
        check_counter hits(mine) packets == 1
        check_counter seen(0) bytes == 6
        register_read cells 0 == 1
        register_write cells 0 41
        """
        + SENT
        + CAME
        + """
        register_read cells 0 == 42
        register_reset cells
        register_read cells 0 == 0
        counter_write seen 0 5 6
        counter_read seen 0
        check_counter seen(0) packets == 5
        meter_array_set_rates rate 1:1 2:2
        meter_set_rates rate 1 1:1 2:2
        meter_get_rates rate 1
        """
    )


def test_groups_follow_their_nodes_and_sessions_their_groups() -> None:
    assert not failures(
        """
        mc_mgrp_create 3
        mc_node_create 1 2
        mirroring_add_mc 7 3
        mc_node_associate 3 0
        add wild 1 head.a:1 group(number:3)
        add wild 1 head.a:2 copy(port:4)
        packet 1 0001 00 00
        expect 2
        packet 1 0002 00 00
        expect 2
        expect 4
        mc_node_update 0 5 6
        packet 1 0001 00 00
        expect 5
        expect 6
        packet 1 0002 00 00
        expect 4
        expect 5
        expect 6
        mirroring_delete 7
        packet 1 0002 00 00
        expect 4
        mirroring_add 7 6
        mirroring_get 7
        packet 1 0002 00 00
        expect 4
        expect 6
        no_packet
        """
    )


def test_value_sets() -> None:
    assert not failures(
        """
        add stacked 1 more[0].a:0x1234 more$1.valid:0 set(value:0xcc, port:2)
        packet 1 0800 00 00 1234 00 00
        expect 0 0800 00 00 1234 00 00
        pvs_add extended 0x0801
        pvs_add extended 0x0800
        packet 1 0800 00 00 1234 00 00
        expect 2 0800 00 cc 1234 00 00
        pvs_clear extended
        packet 1 0800 00 00 1234 00 00
        expect 0 0800 00 00 1234 00 00
        """
    )


ANY_NUMBER = st.one_of(st.integers(0, 9), st.sampled_from([255, 511, 2**16, 2**31, 2**32, 2**63, 2**64, 2**130]))
COMMANDS = [
    "packet {} 0001000{}",
    "expect {} **",
    "no_packet",
    "add wild {} head.a:{} set(value:{}, port:{}) = e{}",
    "add wild {} head.a:{} group(number:{})",
    "add prefixes head.a:{}/{} set(value:{}, port:{})",
    "add pairs {} a:{} b:{}..{} set(value:{}, port:{})",
    "setdefault wild copy(port:{})",
    "remove all",
    "remove e{}",
    "check_counter seen({}) bytes > {}",
    "check_counter hits(e{}) packets > {}",
    "counter_write seen {} {} {}",
    "register_read cells {} < {}",
    "register_write cells {} {}",
    "meter_set_rates rate {} {}:{} {}:{}",
    "mirroring_add {} {}",
    "mirroring_add_mc {} {}",
    "mirroring_delete {}",
    "mc_mgrp_create {}",
    "mc_node_create {} {} {}",
    "mc_node_update {} {}",
    "mc_node_associate {} {}",
    "pvs_add extended {}",
]


@pytest.mark.thorough
@settings(deadline=None, max_examples=examples(150))
@given(
    st.lists(
        st.sampled_from(COMMANDS).flatmap(
            lambda c: st.tuples(st.just(c), st.lists(ANY_NUMBER, min_size=c.count("{}"), max_size=c.count("{}")))
        ),
        max_size=12,
    )
)
def test_whatever_a_file_asks_for_is_done_or_refused(commands: list[tuple[str, list[int]]]) -> None:
    text = "\n".join(command.format(*numbers) for command, numbers in commands)
    try:
        script = parse_stf(text, PATH)
    except StfError:
        return
    for failure in run_script(program(), script).failures:
        assert failure.startswith("t.stf:")
        assert "\n" not in failure


# ---- Keys ----


def key(table: str, *matches: s.Match) -> list[KeyMatch]:
    return names.key_matches(program().model.tables[table], matches)


@pytest.mark.parametrize("name", ["hdr.more[0].a", "more[0].a", "more$0.a"])
@pytest.mark.parametrize("valid", ["hdr.more[1].$valid$", "more[1].valid", "more$1.$valid", "valid"])
def test_names_of_key_fields(name: str, valid: str) -> None:
    assert key("I.stacked", s.Match(valid, s.Pattern(1)), s.Match(name, s.Masked(0x1200, 0xFF00))) == [
        KeyMatch(0x1200, mask=0xFF00),
        KeyMatch(1, prefix_bits=1, high=1),
    ]


def test_digits_that_are_not_written_match_anything_in_ternary_fields() -> None:
    assert key("I.wild", s.Match("a", s.Pattern(0x1, 0xF, 0xF))) == [KeyMatch(1, mask=0xF)]
    assert key("I.wild", s.Match("a", s.Pattern(1))) == [KeyMatch(1, mask=0xFFFF)]
    assert key("I.wild") == [KeyMatch(0, mask=0, prefix_bits=0, high=0xFFFF)]


def test_wildcards_at_the_end_are_a_prefix() -> None:
    assert key("I.prefixes", s.Match("a", s.Pattern(0x1200, 0xFF00, 0xFFFF))) == [KeyMatch(0x1200, prefix_bits=8)]
    assert key("I.prefixes", s.Match("a", s.Pattern(0, 0, 0xFFFF))) == [KeyMatch(0, prefix_bits=0)]
    assert key("I.prefixes", s.Match("a", s.Pattern(5)))[0].prefix_bits == 16


def test_short_names_must_be_unique() -> None:
    assert names.find("b.c", ["a.b.c", "x.c"], "thing") == "a.b.c"
    assert names.find("c", ["a.c", "c"], "thing") == "c"
    with pytest.raises(names.NoFit, match=r"thing c could be a\.c or b\.c"):
        names.find("c", ["a.c", "b.c"], "thing")
    with pytest.raises(names.NoFit, match="there is no thing c: the program has none"):
        names.find("c", [], "thing")
