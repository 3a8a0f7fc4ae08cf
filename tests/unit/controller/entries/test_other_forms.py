"""Runtime files of p4lang/tutorials, commands of simple_switch_CLI, functions in Python."""

from __future__ import annotations

import pytest

from gradbed.controller.planning.plan import (
    CloneSession,
    DefaultAction,
    Lpm,
    MeterCell,
    MeterRates,
    MulticastGroup,
    RegisterValue,
    Ternary,
)
from tests.unit.controller.entries.planning import TOPOLOGY, Written

RUNTIME = """
{
\t"target": "bmv2",
\t"p4info": "build/everything.p4info.txt",
\t"bmv2_json": "build/everything.json",
\t"table_entries": [
\t\t{"table": "TheIngress.routes", "default_action": true, "action_name": "TheIngress.drop", "action_params": {}},
\t\t{
\t\t\t"table": "TheIngress.routes",
\t\t\t"match": {"hdr.ipv4.dst_addr": ["10.0.1.1", 32]},
\t\t\t"action_name": "TheIngress.forward",
\t\t\t"action_params": {"dst_mac": "08:00:00:00:01:11", "port": 1}
\t\t},
\t\t{"table": "TheIngress.rules", "match": {"hdr.ipv4.src_addr": ["10.0.0.0", "255.0.0.0"]}, "priority": 4,
\t\t "action_name": "TheIngress.drop", "action_params": {}},
\t\t{"table": "TheIngress.stations", "match": {"hdr.ethernet.dst_addr": [3]}, "action_name": "NoAction",
\t\t "action_params": {}}
\t],
\t"multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_port": 2, "instance": 1}]}],
\t"clone_session_entries": [{"clone_session_id": 500, "replicas": [{"egress_port": 3, "instance": 1}],
\t\t"packet_length_bytes": 14}]
}
"""

COMMANDS = """
# of simple_switch_CLI
table_set_default routes drop
table_add routes forward 10.0.1.1/32 => 1 08:00:00:00:01:11
table_add routes copy 10.0.2.0/24 => 7
table_delete routes 1
table_add rules drop 10.0.0.0&&&255.0.0.0 0->65535 0&&&0 => 10
table_add rules NoAction 10.0.0.0&&&255.0.0.0 0->65535 0&&&0 => 20
mc_mgrp_create 1
mc_node_create 5 1 2
mc_node_associate 1 0
mirroring_add 5 3
register_write threshold 2 77
meter_set_rates police 1 0.000001:1 0.000003:2
set_queue_depth 64
table_add stations measured 1 => 3
meter_array_set_rates entry_meter 0.000001:1 0.000003:2
table_add stations measured 2 => 3
table_add stations measured 3 => 3
meter_set_rates entry_meter 2 0.000005:1 0.000006:2
act_prof_create_member paths forward 1 08:00:00:00:01:11
act_prof_create_member paths forward 2 08:00:00:00:02:22
act_prof_create_group paths
act_prof_create_group paths
act_prof_add_member_to_group paths 0 1
table_indirect_add chosen 1 => 1
table_indirect_add_with_group chosen 2 => 1
"""

SHOWING = """
show_tables
table_dump routes
table_info routes
table_num_entries routes
counter_read arrivals 1
counter_reset arrivals
register_read threshold
meter_get_rates police 0
mc_dump
mirroring_get 5
act_prof_dump paths
get_time_elapsed
exit
"""


def test_a_runtime_file_of_the_tutorials(written: Written) -> None:
    plan = written.own_plan(RUNTIME, "s1-runtime.json")
    assert plan["l2"].entries == ()
    own = plan["l1"]
    assert own.defaults == (DefaultAction(table="TheIngress.routes", action="TheIngress.drop"),)
    route, rule, station = own.entries
    assert route.match == {"hdr.ipv4.dst_addr": Lpm(value=0x0A000101, prefix_bits=32)}
    assert route.params == {"dst_mac": 0x080000000111, "port": 1}
    assert rule.match == {"hdr.ipv4.src_addr": Ternary(value=0x0A000000, mask=0xFF000000)} and rule.priority == 4
    assert (station.match, station.action) == ({"hdr.ethernet.dst_addr": 3}, "NoAction")
    assert own.groups == (MulticastGroup(id=1, ports=(2,)),)
    assert own.clones == (CloneSession(id=500, ports=(3,), truncate_bytes=14),)


def test_keys_of_the_writers_own_in_a_runtime_file_are_passed_over(written: Written) -> None:
    own = RUNTIME.replace(
        '{"table": "TheIngress.rules"', '{"comment": "of 10/8", "_why": {"a": [1]}, "table": "TheIngress.rules"'
    )
    own = own.replace('"target": "bmv2",', '"target": "bmv2", "author": "a student",')
    assert own.count("comment") == own.count("author") == 1
    assert written.own_plan(own, "own.json") == written.own_plan(RUNTIME, "s1-runtime.json")


def test_a_misspelled_key_in_a_runtime_file_is_not_passed_over(written: Written) -> None:
    with pytest.raises(Exception, match=r"there is no 'action_parms' here; did you mean 'action_params'\?"):
        written.own_plan(RUNTIME.replace('"action_params"', '"action_parms"', 1), "s1-runtime.json")


def test_a_mistake_in_a_runtime_file_names_its_place(written: Written) -> None:
    with pytest.raises(Exception, match=r"s1-runtime.json:7:13: the P4 program has no table 'x'; it has TheIngress"):
        written.own_plan(RUNTIME.replace('"TheIngress.routes"', '"x"', 1), "s1-runtime.json")


def test_commands_of_simple_switch_cli(written: Written) -> None:
    own = written.own_plan(COMMANDS, "s1-commands.txt")["l1"]
    assert own.defaults == (DefaultAction(table="TheIngress.routes", action="TheIngress.drop"),)
    by_member, by_group, route, first, second, *stations = (entry for entry in own.entries)
    assert (by_member.params["port"], by_group.params["port"]) == (2, 1)
    assert (route.action, route.params) == ("TheIngress.forward", {"port": 1, "dst_mac": 0x080000000111})
    # The smaller priority wins there, the greater one here.
    assert (first.action, second.action) == ("TheIngress.drop", "NoAction") and first.priority > second.priority
    assert own.groups == (MulticastGroup(id=1, ports=(1, 2), instances=(5, 5)),)
    assert own.clones == (CloneSession(id=5, ports=(3,), instances=(0,)),)
    assert own.registers == (RegisterValue(register_name="TheIngress.threshold", index=2, value=77),)
    rates = MeterRates(committed_rate=1, committed_burst=1, peak_rate=3, peak_burst=2)
    assert own.meters == (MeterCell(meter_name="TheIngress.police", index=1, rates=rates),)
    faster = MeterRates(committed_rate=5, committed_burst=1, peak_rate=6, peak_burst=2)
    assert [entry.meter for entry in stations] == [rates, rates, faster]


def test_files_for_one_switch_may_be_given_for_all(written: Written) -> None:
    for text, name in ((COMMANDS, "commands.txt"), (RUNTIME, "runtime.json")):
        plan, own = written.plan(text, name), written.own_plan(text, name)
        assert plan["l2"] == plan["l1"] == own["l1"] != own["l2"]


def test_commands_that_only_show_something_change_nothing(written: Written) -> None:
    assert written.own_plan(SHOWING, "s1-commands.txt")["l1"] == written.own_plan("#", "s1-commands.txt")["l1"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("table_add rotues drop 1/8 =>", "3:1: there is no table 'rotues'"),
        ("tabel_add routes drop", "3:1: there is no command tabel_add; help lists them"),
        ("register_write threshold 9 1", "3:1: register TheIngress.threshold has 8 cells, and so no cell 9"),
        ("table_indirect_add chosen 1 => 7", "3:1: there is no member 7"),
        (
            "act_prof_create_group paths\ntable_indirect_add_with_group chosen 1 => 0",
            "4:1: group 0 has 0 members: entries of a file have one action each",
        ),
    ],
)
def test_a_mistake_in_commands_names_its_line(written: Written, line: str, message: str) -> None:
    with pytest.raises(Exception, match=f"s1-commands.txt:{message}"):
        written.own_plan(f"\n\n{line}\n", "s1-commands.txt")


FUNCTION = """
from gradbed.controller.planning.plan import Plan, SwitchPlan, TableEntry

def entries(topology, p4info):
    assert any(table.preamble.alias == "routes" for table in p4info.tables)
    {body}
"""


def test_a_function_returns_a_plan_or_a_mapping(written: Written) -> None:
    entry = 'TableEntry(table="stations", match={"dst_addr": 1}, action="NoAction")'
    body = f'return Plan(switches={{s.name: SwitchPlan.of("mine", [{entry}]) for s in topology.switches}})'
    plan = written.plan(FUNCTION.format(body=body), "mine.py")
    assert [part.entries[0].table for part in plan.switches.values()] == ["TheIngress.stations"] * 4
    body = 'return {"tables": {"stations": [{"match": {"dst_addr": "$h1.mac"}, "action": "NoAction"}]}}'
    mapped = written.plan(FUNCTION.format(body=body), "mine.py")
    address = int(TOPOLOGY.host("h1").mac.replace(":", ""), 16)
    assert mapped["s1"].entries[0].match == {"hdr.ethernet.dst_addr": address}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "mine.py:1:1: it has no function entries(topology, p4info)"),
        (FUNCTION.format(body="return 1 / 0"), "mine.py:6:1: ZeroDivisionError: division by zero"),
        (FUNCTION.format(body="return 5"), "mine.py:1:1: entries() returns a Plan or a mapping, not int"),
        ("def entries(:", "mine.py:1:13: invalid syntax"),
        (
            FUNCTION.format(body='return {"tables": {"rotues": []}}'),
            "mine.py (entries() as YAML):2:3: the P4 program has no table 'rotues'; did you mean 'routes'?",
        ),
        (
            FUNCTION.format(body='return Plan(switches={"s9": SwitchPlan.of("mine")})'),
            "mine.py:1:1: the plan names s9, which is no switch that runs a program",
        ),
    ],
)
def test_a_mistake_in_a_function_names_its_line(written: Written, text: str, message: str) -> None:
    assert written.mistake(text, "mine.py") == message
