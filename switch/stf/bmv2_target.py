"""STF on BMv2's simple_switch: packets through pcap files, commands through its Thrift command line.

BMv2 does not say when it is idle: it counts as idle once nothing has come out for QUIET_S, in which no thread of it
wanted a processor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gradbed.common.scratch import scratch_folder
from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.bmv2_json.model import KeyField, Table, ValueSet
from gradbed.switch.device import ActionCall, Counts, KeyMatch
from gradbed.switch.p4lang.bmv2_programs import PRIORITY_QUEUES, require_simple_switch
from gradbed.switch.p4lang.bmv2_shell import THRIFT_MOST, Bmv2Ended, Bmv2Refuses, Shell
from gradbed.switch.stf import statements as s
from gradbed.switch.stf.bmv2_processes import SwitchProcess, free_port
from gradbed.switch.stf.names import NoFit
from gradbed.switch.stf.pcap_ports import PcapPorts
from gradbed.switch.stf.runner import Outcome, run_on
from gradbed.switch.stf.target import CheckFailed, CommandTarget, Entry, NotPossible

QUIET_S, LONGEST_S = 0.3, 3.0
# The smaller of BMv2's priorities wins, in STF the larger.
_LEAST_PRIORITY = 10000


def run_script_on_bmv2(bmv2_json: Mapping[str, Any], script: s.Script) -> Outcome:
    try:
        target = Bmv2Target(bmv2_json, script)
    except NoFit as error:
        return Outcome((f"{script.path}: {error}",))
    with target:
        return run_on(target, script)


class Bmv2Target(CommandTarget):
    """One simple_switch process, for one script. Use it as a context manager. NoFit if it refuses the program."""

    def __init__(self, bmv2_json: Mapping[str, Any], script: s.Script) -> None:
        found = require_simple_switch()
        super().__init__(load_program(bmv2_json))
        self._received: list[tuple[int, bytes]] = []
        self._is_idle = True
        packets = [statement for statement in script.statements if isinstance(statement, s.Packet)]
        with self._stack as stack:
            folder = stack.enter_context(scratch_folder("bmv2"))
            (folder / "program.json").write_text(json.dumps(bmv2_json))
            self._ports = stack.enter_context(PcapPorts(folder, sorted(script.ports), packets))
            thrift_port = free_port()
            command = [found[0], "--thrift-port", str(thrift_port), *self._ports.arguments, "program.json"]
            self._switch = SwitchProcess([*command, "--", PRIORITY_QUEUES], folder)
            stack.callback(self._switch.end)
            self._switch.wait_for(thrift_port)
            self._shell = Shell(found[1], thrift_port)
            stack.callback(self._shell.end)
            self._stack = stack.pop_all()

    def send(self, packet: s.Packet) -> None:
        self._ports.release_next()
        self._is_idle = False

    def drain(self) -> list[tuple[int, bytes]]:
        self._settle()
        received, self._received = self._received, []
        return received

    def apply(self, statement: s.Statement) -> None:
        self._settle()
        try:
            self._carry_out(statement)
        except Bmv2Refuses as error:
            raise NoFit(str(error)) from None
        except Bmv2Ended as error:
            if (how := self._switch.ended()) is not None:
                raise NoFit(how) from None
            raise CheckFailed(str(error)) from None

    def _settle(self) -> None:
        if not self._is_idle:
            self._received += self._ports.collect(QUIET_S, LONGEST_S, self._switch.is_busy)
            self._is_idle = True

    # ---- Tables ----

    def _insert(self, table: Table, key: Sequence[KeyMatch], call: ActionCall, priority: int) -> int:
        words = [_key_text(field, match) for field, match in zip(table.key, key, strict=True)]
        last = [_LEAST_PRIORITY - priority] if table.match in ("ternary", "range") else []
        if table.profile is None:
            answer = self._shell.run("table_add", table.name, call.action, *words, "=>", *call.arguments, *last)
        else:
            member = self._member(table.profile, call)
            answer = self._shell.run("table_indirect_add", table.name, *words, "=>", member, *last)
        return _handle(answer, "added")

    def _insert_group(self, table: Table, key: Sequence[KeyMatch], calls: Sequence[ActionCall], priority: int) -> int:
        assert table.profile is not None
        members = [self._member(table.profile, call) for call in calls]
        group = _handle(self._shell.run("act_prof_create_group", table.profile), "created")
        for member in members:
            self._shell.run("act_prof_add_member_to_group", table.profile, member, group)
        words = [_key_text(field, match) for field, match in zip(table.key, key, strict=True)]
        last = [_LEAST_PRIORITY - priority] if table.match in ("ternary", "range") else []
        answer = self._shell.run("table_indirect_add_with_group", table.name, *words, "=>", group, *last)
        return _handle(answer, "added")

    def _member(self, profile: str, call: ActionCall) -> int:
        """A new one that does this."""
        made = self._shell.run("act_prof_create_member", profile, call.action, *call.arguments)
        return _handle(made, "created")

    def _set_default(self, table: Table, call: ActionCall) -> None:
        if table.profile is None:
            self._shell.run("table_set_default", table.name, call.action, *call.arguments)
        else:
            self._shell.run("table_indirect_set_default", table.name, self._member(table.profile, call))

    def _delete(self, entry: Entry) -> None:
        delete = "table_delete" if entry.table.profile is None else "table_indirect_delete"
        self._shell.run(delete, entry.table.name, entry.handle)

    # ---- Counters, registers, meters, value sets ----

    def _entry_count(self, entry: Entry, counter: str) -> Counts:
        return self._counter_read(counter, entry.handle)

    def _counter_read(self, counter: str, index: int) -> Counts:
        count = re.search(r"\((\d+) bytes, (\d+) packets\)", self._shell.run("counter_read", counter, index))
        return (int(count[2]), int(count[1])) if count else (0, 0)

    def _counter_write(self, counter: str, index: int, counts: Counts) -> None:
        self._shell.run("counter_write", counter, index, *counts)

    def _register_read(self, register: str, index: int, compared: bool) -> int:
        [got] = self._shell.register(register, index)
        if compared and got == THRIFT_MOST:
            raise NotPossible(f"BMv2's Thrift reads no number as large as {THRIFT_MOST:#x}", ends=False)
        return got

    def _register_write(self, register: str, index: int, value: int) -> None:
        if value > THRIFT_MOST:
            why = f"BMv2's Thrift writes numbers up to {THRIFT_MOST:#x}, not {value:#x}"
            raise NotPossible(why, ends=True)
        self._shell.run("register_write", register, index, value)

    def _register_reset(self, register: str) -> None:
        self._shell.run("register_reset", register)

    def _meter_read(self, meter: str, index: int) -> None:
        self._shell.run("meter_get_rates", meter, index)

    def _meter_write(self, meter: str, index: int | None, rates: tuple[s.Rate, s.Rate]) -> None:
        words = [f"{rate.rate_per_us:.12f}:{rate.burst}" for rate in rates]
        if index is None:
            self._shell.run("meter_array_set_rates", meter, *words)
        else:
            self._shell.run("meter_set_rates", meter, index, *words)

    def _entry_meter_write(self, entry: Entry, meter: str, rates: tuple[s.Rate, s.Rate]) -> None:
        self._meter_write(meter, entry.handle, rates)

    def _value_set_add(self, value_set: ValueSet, value: int) -> None:
        raise NotPossible("BMv2's simple_switch_CLI sends members of value sets with a byte too many", ends=True)

    def _value_set_clear(self, value_set: str) -> None:
        self._shell.run("pvs_clear", value_set)

    # ---- Replication ----

    def _replicate(self, statement: s.Statement) -> None:
        match statement:
            case s.GroupCreate(group=group):
                self._shell.run("mc_mgrp_create", group)
            case s.NodeCreate(instance=instance, ports=ports):
                self._shell.run("mc_node_create", instance, *ports)
            case s.NodeUpdate(node=node, ports=ports):
                self._shell.run("mc_node_update", node, *ports)
            case s.NodeAssociate(group=group, node=node):
                self._shell.run("mc_node_associate", group, node)
            case s.MirroringAdd(session=session, port=port):
                self._shell.run("mirroring_add", session, port)
            case s.MirroringAddMulticast(session=session, group=group):
                self._shell.run("mirroring_add_mc", session, group)
            case s.MirroringDelete(session=session):
                self._shell.run("mirroring_delete", session)
            case s.MirroringGet(session=session):
                self._shell.run("mirroring_get", session)
            case _:
                raise TypeError(f"{type(statement).__name__} is no command to the switch")


def _handle(answer: str, done: str) -> int:
    """Of what was added or created. NoFit with BMv2's words if nothing was."""
    found = re.search(rf"{done} with handle (\d+)", answer)
    if found is None:
        raise NoFit(f"BMv2: {' '.join(answer.split())}")
    return int(found[1])


def _key_text(field: KeyField, match: KeyMatch) -> str:
    if field.match == "lpm":
        return f"{match.value:#x}/{match.prefix_bits}"
    if field.match == "ternary":
        return f"{match.value:#x}&&&{match.mask:#x}"
    if field.match == "range":
        return f"{match.value:#x}->{match.high:#x}"
    return f"{match.value:#x}"
