"""simple_switch_CLI against a switch of ours, command by command."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from finsy.proto import p4r

from gradbed.common.errors import UserError
from gradbed.switch.engine import Engine, EngineDevice
from gradbed.switch.server import P4RuntimeServer
from gradbed.switch.simple_switch.cli.client import Client, Refused
from gradbed.switch.simple_switch.cli.command import SimpleSwitchShell, main
from tests.unit.simple_switch.programs import everything

DEVICE_ID = 7


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[EngineDevice, str]]:
    compiled = everything()
    with Engine() as engine:
        device = engine.add_switch(DEVICE_ID)
        engine.start()
        config = p4r.ForwardingPipelineConfig(p4info=compiled.p4info, p4_device_config=compiled.json_text.encode())
        server = P4RuntimeServer({DEVICE_ID: device}, ["127.0.0.1:0"], initial={DEVICE_ID: config})
        server.start()
        yield device, f"127.0.0.1:{server.ports[0]}"
        server.stop()


@pytest.fixture
def shell(served: tuple[EngineDevice, str], capsys: pytest.CaptureFixture[str]) -> Iterator[SimpleSwitchShell]:
    """With nothing written yet."""
    client = Client(served[1], None)
    shell = SimpleSwitchShell(client)
    yield shell
    for command in ("table_clear routes", "table_clear rules", "table_clear hosts", "table_reset_default routes"):
        shell.onecmd(command)
    client.close()
    capsys.readouterr()


def say(shell: SimpleSwitchShell, capsys: pytest.CaptureFixture[str], command: str) -> str:
    capsys.readouterr()
    assert shell.onecmd(command) is False
    return capsys.readouterr().out


def test_tables(shell: SimpleSwitchShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert say(shell, capsys, "show_tables").splitlines() == [
        "In.hosts                       [implementation=In.paths, mk=data.mac(exact, 48)]",
        "In.routes                      [implementation=None, mk=data.address(lpm, 32)]",
        "In.rules                       [implementation=None, mk=data.address(ternary, 32),\tdata.kind(range, 16),"
        "\tdata.x(optional, 8)]",
    ]
    assert "In.rewrite                     [mac(48),\tport(9)]" in say(shell, capsys, "table_info routes")
    assert "In.forward" in say(shell, capsys, "show_actions")


def test_an_entry_from_its_addition_to_its_end(shell: SimpleSwitchShell, capsys: pytest.CaptureFixture[str]) -> None:
    said = say(shell, capsys, "table_add In.routes rewrite 10.1.0.0/16 => 00:00:00:00:01:02 3")
    assert said.splitlines() == [
        "Adding entry to lpm match table In.routes",
        "match key:           LPM-0a:01:00:00/16",
        "action:              In.rewrite",
        "runtime data:        00:00:00:00:01:02\t00:03",
        "Entry has been added with handle 0",
    ]
    assert say(shell, capsys, "table_add routes forward 0x0a020000/16 => 4").endswith("handle 1\n")
    assert say(shell, capsys, "table_num_entries routes") == "2\n"
    assert "the entry exists" in say(shell, capsys, "table_add routes forward 10.1.0.0/16 => 4")
    assert say(shell, capsys, "table_modify routes forward 0 => 9").startswith("Modifying entry 0")
    assert say(shell, capsys, "table_dump_entry routes 0").splitlines() == [
        "Dumping entry 0x0",
        "Match key:",
        "* data.address        : LPM       0a010000/16",
        "Action entry: In.forward - 0009",
    ]
    assert say(shell, capsys, "table_delete routes 0") == "Deleting entry 0 from routes\n"
    assert "no entry with handle 0" in say(shell, capsys, "table_delete routes 0")
    # Handles of entries that are still there stay.
    assert "Dumping entry 0x1" in say(shell, capsys, "table_dump routes")
    assert say(shell, capsys, "table_add routes forward 10.3.0.0/16 => 4").endswith("handle 2\n")
    assert say(shell, capsys, "table_clear routes") == ""
    assert say(shell, capsys, "table_num_entries routes") == "0\n"


def test_the_default_entry(shell: SimpleSwitchShell, capsys: pytest.CaptureFixture[str]) -> None:
    say(shell, capsys, "table_set_default routes forward 5")
    assert "Dumping default entry\nAction entry: In.forward - 0005\n" in say(shell, capsys, "table_dump routes")
    say(shell, capsys, "table_reset_default routes")
    assert "Dumping default entry\nAction entry: In.drop - \n" in say(shell, capsys, "table_dump routes")


def test_all_kinds_of_keys_and_priorities(shell: SimpleSwitchShell, capsys: pytest.CaptureFixture[str]) -> None:
    say(shell, capsys, "table_add rules forward 10.0.0.0&&&255.0.0.0 100->200 7&&&0xff => 1 10")
    say(shell, capsys, "table_add rules forward 0&&&0 0->0xffff 0&&&0 => 2 20")
    entry = say(shell, capsys, "table_dump_entry rules 0")
    assert "* data.address        : TERNARY   0a000000 &&& ff000000" in entry
    assert "* data.kind           : RANGE     0064 -> 00c8" in entry
    assert "* data.x              : OPTIONAL  07 &&& ff" in entry
    assert "Priority: 10" in entry
    everything_goes = say(shell, capsys, "table_dump_entry rules 1")
    assert "00000000 &&& 00000000" in everything_goes
    assert "0000 -> ffff" in everything_goes
    # With BMv2's commands the smaller number wins, with P4Runtime the larger.
    entries = shell.client.read(p4r.Entity(table_entry=p4r.TableEntry()))
    by_port = {e.action.action.params[0].value: e.priority for e in entries}
    assert by_port[b"\1"] > by_port[b"\2"]


def test_entries_of_a_controller_have_handles_too(
    shell: SimpleSwitchShell, capsys: pytest.CaptureFixture[str]
) -> None:
    say(shell, capsys, "table_add routes forward 10.9.0.0/16 => 1")
    (entry,) = shell.client.read(p4r.Entity(table_entry=p4r.TableEntry()))
    bare = p4r.TableEntry(table_id=entry.table_id, match=entry.match, action=entry.action)
    bare.match[0].lpm.value = b"\x0a\x08\0\0"
    shell.client.insert(p4r.Entity(table_entry=bare))
    dump = say(shell, capsys, "table_dump routes")
    (foreign,) = (line.split()[-1] for line in dump.splitlines() if "Dumping entry 0x1" in line)
    assert int(foreign, 16) >= 1 << 24
    assert "0a080000/16" in say(shell, capsys, f"table_dump_entry routes {foreign}")
    say(shell, capsys, f"table_delete routes {foreign}")
    assert say(shell, capsys, "table_num_entries routes") == "1\n"


def test_timeouts(shell: SimpleSwitchShell, capsys: pytest.CaptureFixture[str]) -> None:
    say(shell, capsys, "act_prof_create_member paths forward 1")
    say(shell, capsys, "table_indirect_add hosts 1 => 0")
    assert say(shell, capsys, "table_set_timeout hosts 0 5000") == ""
    (entry,) = shell.client.read(p4r.Entity(table_entry=p4r.TableEntry()))
    assert entry.idle_timeout_ns == 5_000_000_000
    say(shell, capsys, "table_clear hosts")
    say(shell, capsys, "act_prof_delete_member paths 0")


def test_counters(
    shell: SimpleSwitchShell, served: tuple[EngineDevice, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert say(shell, capsys, "counter_write seen 3 10 640") == "seen[3] has been updated\n"
    assert say(shell, capsys, "counter_read In.seen 3") == "In.seen[3]= (640 bytes, 10 packets)\n"
    assert served[0].state.counters.read("In.seen", 3) == (10, 640)
    assert say(shell, capsys, "counter_reset seen") == ""
    assert say(shell, capsys, "counter_read seen 3") == "seen[3]= (0 bytes, 0 packets)\n"
    assert say(shell, capsys, "counter_read seen 8").startswith("Error: ")
    say(shell, capsys, "table_add routes forward 10.1.0.0/16 => 1")
    say(shell, capsys, "counter_write route_hits 0 2 3")
    assert say(shell, capsys, "counter_read route_hits 0").splitlines() == [
        "this is the direct counter for table In.routes",
        "route_hits[0]= (3 bytes, 2 packets)",
    ]
    say(shell, capsys, "counter_reset route_hits")
    assert "(0 bytes, 0 packets)" in say(shell, capsys, "counter_read route_hits 0")


def test_registers(
    shell: SimpleSwitchShell, served: tuple[EngineDevice, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert say(shell, capsys, "register_write cells 2 0x11223344") == ""
    assert say(shell, capsys, "register_read cells 2") == f"cells[2]= {0x11223344}\n"
    assert served[0].state.registers.read("In.cells", 2) == 0x11223344
    assert say(shell, capsys, "register_read cells").endswith(f"0, 0, {0x11223344}, 0, 0, 0, 0, 0\n")
    assert say(shell, capsys, "register_write cells 9 1").startswith("Error: ")
    assert say(shell, capsys, "register_write cells 1 0x100000000").startswith("Error: ")
    say(shell, capsys, "register_reset cells")
    assert served[0].state.registers.read_all("In.cells") == [0] * 8


def test_meters(shell: SimpleSwitchShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no rates are set" in say(shell, capsys, "meter_get_rates limits 0")
    say(shell, capsys, "meter_array_set_rates limits 0.5:1500 1:3000")
    say(shell, capsys, "meter_set_rates limits 2 0.25:100 0.75:200")
    assert say(shell, capsys, "meter_get_rates limits 2").splitlines() == [
        "0: info rate = 0.25, burst size = 100",
        "1: info rate = 0.75, burst size = 200",
    ]
    assert "info rate = 0.5, burst size = 1500" in say(shell, capsys, "meter_get_rates limits 3")


def test_meters_of_entries(shell: SimpleSwitchShell, capsys: pytest.CaptureFixture[str]) -> None:
    say(shell, capsys, "table_add routes limit 10.0.0.0/8 => 1")
    say(shell, capsys, "meter_array_set_rates route_limits 0.5:10 1:20")
    say(shell, capsys, "table_add routes limit 11.0.0.0/8 => 1")
    for handle in (0, 1):
        assert "info rate = 0.5, burst size = 10" in say(shell, capsys, f"meter_get_rates route_limits {handle}")
    say(shell, capsys, "meter_set_rates route_limits 1 0.25:5 0.5:6")
    assert "info rate = 0.5, burst size = 10" in say(shell, capsys, "meter_get_rates route_limits 0")
    assert "info rate = 0.25, burst size = 5" in say(shell, capsys, "meter_get_rates route_limits 1")


def test_action_profiles(shell: SimpleSwitchShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert say(shell, capsys, "act_prof_create_member paths forward 1") == "Member has been created with handle 0\n"
    assert say(shell, capsys, "act_prof_create_member paths forward 2") == "Member has been created with handle 1\n"
    assert say(shell, capsys, "act_prof_create_group paths") == "Group has been created with handle 0\n"
    for member in (0, 1):
        assert say(shell, capsys, f"act_prof_add_member_to_group paths {member} 0") == ""
    assert say(shell, capsys, "table_indirect_add_with_group hosts 00:00:00:00:00:01 => 0").endswith("handle 0\n")
    assert "Index: group(0)" in say(shell, capsys, "table_dump hosts")
    say(shell, capsys, "act_prof_modify_member paths forward 1 7")
    say(shell, capsys, "act_prof_remove_member_from_group paths 0 0")
    dump = say(shell, capsys, "act_prof_dump paths")
    assert "Dumping member 1\nAction entry: In.forward - 0007" in dump
    assert "Dumping group 0\nMembers: [1]" in dump
    assert "has no member 0" in say(shell, capsys, "act_prof_remove_member_from_group paths 0 0")
    assert say(shell, capsys, "act_prof_delete_member paths 1").startswith("Error: ")
    for command in ("table_delete hosts 0", "act_prof_delete_group paths 0"):
        say(shell, capsys, command)
    for member in (0, 1):
        assert say(shell, capsys, f"act_prof_delete_member paths {member}") == ""
    assert "Dumping" not in say(shell, capsys, "act_prof_dump paths")


def test_multicast_groups(shell: SimpleSwitchShell, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("mc_mgrp_create 5", "mc_node_create 0 1 2", "mc_node_create 9 3 | 1", "mc_node_associate 5 0"):
        assert "Error" not in say(shell, capsys, command)
    assert "mgrp(5)\n  -> (L1h=0, rid=0) -> (ports=[1, 2])\n" in say(shell, capsys, "mc_dump")
    say(shell, capsys, "mc_node_associate 5 1")
    say(shell, capsys, "mc_node_update 0 4")
    assert "is in group 5 already" in say(shell, capsys, "mc_node_associate 5 1")
    # Another shell finds in the switch what this one made.
    other = SimpleSwitchShell(shell.client)
    dump = say(other, capsys, "mc_dump")
    assert "  -> (L1h=0, rid=0) -> (ports=[4])\n  -> (L1h=1, rid=9) -> (ports=[3])\n" in dump
    say(shell, capsys, "mirroring_add_mc 3 5")
    assert say(shell, capsys, "mirroring_get 3") == "session 3 -> ports [4, 3]\n"
    say(shell, capsys, "mirroring_delete 3")
    say(shell, capsys, "mc_node_dissociate 5 0")
    say(shell, capsys, "mc_node_destroy 1")
    assert "rid" not in say(SimpleSwitchShell(shell.client), capsys, "mc_dump")
    say(shell, capsys, "mc_mgrp_destroy 5")
    assert "mgrp" not in say(shell, capsys, "mc_dump")


def test_mirroring(shell: SimpleSwitchShell, capsys: pytest.CaptureFixture[str]) -> None:
    say(shell, capsys, "mirroring_add 100 2")
    say(shell, capsys, "mirroring_add 100 3")
    assert say(shell, capsys, "mirroring_get 100") == "session 100 -> ports [3]\n"
    say(shell, capsys, "mirroring_delete 100")
    assert say(shell, capsys, "mirroring_get 100").startswith("Error: ")


@pytest.mark.commit_cases(6)
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("bogus", "there is no command bogus"),
        ("set_queue_rate 10", "set_queue_rate is not offered"),
        ("table_add", "usage: table_add"),
        ("table_add routes forward 10.0.0.0/8 3", "usage: table_add"),
        ("table_add routes bogus 10.0.0.0/8 => 3", "no action 'bogus'"),
        ("table_add routes NoAction 10.0.0.0/8 =>", "In.routes has no action NoAction"),
        ("table_add routes forward 10.0.0.0/8 =>", "needs 1 parameters, not 0"),
        ("table_add routes forward 10.0.0.0/8 => 512", "512 does not fit 9 bits"),
        ("table_add routes forward 10.0.0.0 => 3", "write PREFIX/LENGTH"),
        ("table_add routes forward 10.0.0/8 => 3", "is not an address"),
        ("table_add routes forward 10.0.0.0/33 => 3", "at most 32 bits"),
        ("table_add routes rewrite 10.0.0.0/8 => 1:2:3 3", "is not an address"),
        ("table_add routes forward 10.0.0.0/8 10.0.0.0/8 => 3", "has 1 key fields, not 2"),
        ("table_add rules forward 1 1->2 3 => 3 1", "write VALUE&&&MASK"),
        ("table_add rules forward 1&&&1 2->1 3 => 3 1", "is above its high end"),
        ("table_add rules drop 1&&&1 1->2 3 =>", "need a priority"),
        ("table_dump nosuch", "there is no table 'nosuch'"),
        ("table_dump_entry routes x", "is a number, not 'x'"),
        ("counter_read cells 1", "there is no counter 'cells'"),
        ("register_read cells -1", "is not negative"),
        ("meter_set_rates limits 0 1 2", "write RATE:BURST"),
        ("mc_node_associate 1 77", "no node with handle 77"),
        ("mc_node_create 1 2 2", "named twice"),
        ("mirroring_add_mc 1 99", "no multicast group 99"),
    ],
)
def test_mistakes_are_one_line(
    shell: SimpleSwitchShell, capsys: pytest.CaptureFixture[str], command: str, message: str
) -> None:
    said = say(shell, capsys, command)
    assert said.startswith("Error: ")
    assert message in said
    assert len(said.splitlines()) == 1


def test_names_that_several_objects_end_with() -> None:
    from types import SimpleNamespace

    from gradbed.switch.simple_switch.cli.arguments import Catalogue, CommandError

    objects = [
        SimpleNamespace(preamble=SimpleNamespace(name=name, id=i)) for i, name in enumerate(("a.t", "b.t", "t.u"))
    ]
    catalogue = Catalogue("table", objects)
    assert catalogue.find("b.t").preamble.id == 1
    assert catalogue.find("u").preamble.id == 2
    with pytest.raises(CommandError, match=r"'t' could be any of a\.t, b\.t"):
        catalogue.find("t")


def test_a_session_as_scripts_have_it(
    served: tuple[EngineDevice, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "# set up\n\ntable_add routes forward 10.0.0.0/8 => 3\ntable_num_entries routes\ntable_clear routes\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["--thrift-port", served[1].split(":")[1], "--json", "x.json"]) == 0
    said = capsys.readouterr().out
    assert "Entry has been added with handle 0" in said
    assert "RuntimeCmd: 1\n" in said
    assert "Error" not in said


def test_without_a_switch(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--thrift-port", "1"]) == 1
    assert capsys.readouterr().err == "simple_switch_CLI: no switch serves P4Runtime on 127.0.0.1:1\n"
    assert main(["--bogus"]) == 1
    assert "unknown argument --bogus" in capsys.readouterr().err


def test_a_switch_without_program_and_a_wrong_device(served: tuple[EngineDevice, str]) -> None:
    with pytest.raises(UserError, match="no switch with device id 8"):
        Client(served[1], 8)
    with Engine() as engine:
        server = P4RuntimeServer({1: engine.add_switch(1)}, ["127.0.0.1:0"])
        server.start()
        with pytest.raises(UserError, match="has no program yet"):
            Client(f"127.0.0.1:{server.ports[0]}", None)
        server.stop()


def test_the_shell_that_was_started_last_is_in_charge(
    served: tuple[EngineDevice, str], shell: SimpleSwitchShell
) -> None:
    shell.client.insert(group(1))
    later = Client(served[1], DEVICE_ID)
    with pytest.raises(Refused, match="exists"):
        later.insert(group(1))
    with pytest.raises(Refused, match="primary"):
        shell.client.delete(group(1))
    later.delete(group(1))
    later.close()


def group(number: int) -> object:
    entity = p4r.Entity()
    entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = number
    return entity
