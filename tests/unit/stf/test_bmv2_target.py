"""What BMv2 is sent and told, with stand-ins for it. tests/p4/test_stf.py uses BMv2 itself where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.compiler import compile_p4
from gradbed.switch.p4lang.bmv2 import find_simple_switch
from gradbed.switch.stf import parse_stf
from gradbed.switch.stf.bmv2_target import run_script_on_bmv2
from tests.unit.stf import fake_bmv2
from tests.unit.stf.programs import program

PATH = Path("t.stf")


@pytest.fixture
def bmv2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fake_bmv2.install(tmp_path)
    monkeypatch.setenv("GRADBED_BMV2", str(tmp_path / "simple_switch_grpc"))
    return tmp_path


def failures(text: str, **changes: Any) -> list[str]:
    return list(run_script_on_bmv2({**program().json, **changes}, parse_stf(text, PATH)).failures)


def test_packets_go_in_one_by_one_whatever_their_ports(bmv2: Path) -> None:
    """The stand-in numbers packets in the order in which it sees them."""
    assert not failures(
        """
        packet 1 02aa
        packet 1 03
        packet 2 02bb
        wait
        packet 1 02cc
        packet 3 03dd
        packet 2 02
        expect 2 00 01 02aa $
        expect 3 01 01 03 $
        expect 2 02 02 02bb $
        expect 2 03 01 02cc $
        expect 3 04 03 03dd $
        expect 2 05 02 02 $
        no_packet
        """
    )


def test_a_packet_waits_for_the_commands_before_it(bmv2: Path) -> None:
    problems = failures("packet 1 02\nno_packet\npacket 1 02\nexpect 2\nexpect 2\n")
    assert problems == ["t.stf:2: a packet left by port 2: 000102"]


def test_commands(bmv2: Path) -> None:
    assert not failures(
        """
        add wild 100 head.a:0x12** set(value:1, port:2) = mine
        add prefixes head.a:0x12** set(value:0x10, port:2)
        add pairs 1 a:0x1 b:2..3 set(value:1, port:2)
        add members a:0x1 set(value:1, port:2) = indirect
        setdefault wild drop()
        check_counter seen(1) packets == 2
        check_counter hits(mine) bytes == 60
        counter_read seen 1
        counter_write seen 1 2 3
        register_read cells 1 == 9
        register_reset cells
        meter_set_rates rate 1 0.0000001:2 3:4
        meter_array_set_rates rate 1:2 3:4
        meter_get_rates rate 1
        mc_mgrp_create 5
        mc_node_create 1 2 3
        mc_node_update 0 4
        mc_node_associate 5 0
        mirroring_add 1 2
        mirroring_add_mc 1 5
        mirroring_delete 1
        pvs_clear extended
        remove indirect
        remove mine
        remove all
        """
    )
    assert fake_bmv2.commands(bmv2) == [
        "table_add I.wild I.set 0x1200&&&0xff00 => 1 2 9900",
        "table_add I.prefixes I.set 0x1200/8 => 16 2",
        "table_add I.pairs I.set 0x1 0x2->0x3 => 1 2 9999",
        "act_prof_create_member I.members.implementation I.set 1 2",
        "table_indirect_add I.members 0x1 => 3",
        "table_set_default I.wild I.drop",
        "counter_read I.seen 1",
        "counter_read I.hits 7",
        "counter_read I.seen 1",
        "counter_write I.seen 1 2 3",
        "register_read I.cells 1",
        "register_reset I.cells",
        "meter_set_rates I.rate 1 0.000000100000:2 3.000000000000:4",
        "meter_array_set_rates I.rate 1.000000000000:2 3.000000000000:4",
        "meter_get_rates I.rate 1",
        "mc_mgrp_create 5",
        "mc_node_create 1 2 3",
        "mc_node_update 0 4",
        "mc_node_associate 5 0",
        "mirroring_add 1 2",
        "mirroring_add_mc 1 5",
        "mirroring_delete 1",
        "pvs_clear P.extended",
        "table_indirect_delete I.members 5",
        "table_delete I.wild 7",
        "table_delete I.prefixes 7",
        "table_delete I.pairs 7",
    ]


def test_groups_and_meters_of_entries(bmv2: Path) -> None:
    programs = Path(__file__).parents[2] / "p4" / "stf" / "architecture"
    text = "add balanced key:1 set(value:2) | set(value:3)"
    json = compile_p4(programs / "selector.p4").json
    assert not run_script_on_bmv2(json, parse_stf(text, PATH)).failures
    text = "add entries_that_mark key:1 read() = mine\nmeter_set_rates marker mine 1:2 3:4"
    json = compile_p4(programs / "direct_meter.p4").json
    assert not run_script_on_bmv2(json, parse_stf(text, PATH)).failures
    assert fake_bmv2.commands(bmv2) == [
        "act_prof_create_member balancer TestIngress.set 2",
        "act_prof_create_member balancer TestIngress.set 3",
        "act_prof_create_group balancer",
        "act_prof_add_member_to_group balancer 3 4",
        "act_prof_add_member_to_group balancer 3 4",
        "table_indirect_add_with_group TestIngress.balanced 0x1 => 4",
        "table_add TestIngress.entries_that_mark TestIngress.read 0x1 =>",
        "meter_set_rates TestIngress.marker 7 1.000000000000:2 3.000000000000:4",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("check_counter seen(1) packets == 3", "counter seen(1) is 2 packets, should be == 3"),
        ("register_read cells 1 > 9", "register cells[1] is 9, should be > 9"),
        ("register_write cells 4 1", "BMv2: Invalid register operation (INVALID_INDEX)"),
        ("mirroring_get 1", "BMv2's command line ended: lost the connection"),
        (
            "add wold 1 a()",
            "there is no table wold; did you mean I.wild? (a table that is never applied is left out)",
        ),
        ("remove x", "there is no entry x: add ... = x names one"),
    ],
)
def test_checks_and_what_bmv2_refuses(bmv2: Path, text: str, problem: str) -> None:
    (failure,) = failures(text)
    assert failure == f"t.stf:1: {problem}"


def test_what_bmv2_cannot_do_is_no_failure(bmv2: Path) -> None:
    """What is read is passed over; what was to change something ends the run, and the rest of it is not judged."""
    text = "register_read cells 2 == 9\ncheck_counter seen(1) packets == 3\nregister_write cells 1 0x8000000000000000"
    outcome = run_script_on_bmv2(program().json, parse_stf(f"{text}\nexpect 2", PATH))
    assert outcome.failures == ("t.stf:2: counter seen(1) is 2 packets, should be == 3",)
    assert outcome.not_possible == (
        "t.stf:1: BMv2's Thrift reads no number as large as 0x7fffffffffffffff",
        "t.stf:3: BMv2's Thrift writes numbers up to 0x7fffffffffffffff, not 0x8000000000000000",
    )


def test_a_program_that_bmv2_refuses(bmv2: Path) -> None:
    assert failures("packet 1 02", program="broken") == [
        "t.stf: BMv2 refuses the program: no such primitive (exit status 1)"
    ]


def test_without_bmv2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADBED_BMV2", str(tmp_path / "simple_switch_grpc"))
    assert find_simple_switch() is None
    with pytest.raises(UserError, match="simple_switch and simple_switch_CLI are not installed"):
        failures("packet 1 02")
