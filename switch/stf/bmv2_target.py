"""STF on BMv2's simple_switch: packets through pcap files, commands through its Thrift command line.

BMv2 does not say when it is idle: it counts as idle once nothing has come out for QUIET_S.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from functools import singledispatchmethod
from pathlib import Path
from types import TracebackType
from typing import Any

from switch.bmv2_json.load import load_program
from switch.bmv2_json.model import KeyField, ProgramModel, Table
from switch.device import KeyMatch
from switch.p4lang.bmv2_programs import PRIORITY_QUEUES, require_simple_switch
from switch.p4lang.bmv2_shell import THRIFT_MOST, Bmv2Ended, Bmv2Refuses, Shell
from switch.stf import names
from switch.stf import statements as s
from switch.stf.bmv2_processes import SwitchProcess, free_port
from switch.stf.names import NoFit
from switch.stf.pcap_ports import PcapPorts
from switch.stf.runner import Outcome, run_on
from switch.stf.target import CheckFailed, NotPossible, check

QUIET_S = 0.3
# The smaller of BMv2's priorities wins, in STF the larger.
_LEAST_PRIORITY = 10000


def run_script_on_bmv2(bmv2_json: Mapping[str, Any], script: s.Script) -> Outcome:
    try:
        target = Bmv2Target(bmv2_json, script)
    except NoFit as error:
        return Outcome((f"{script.path}: {error}",))
    with target:
        return run_on(target, script)


class Bmv2Target:
    """One simple_switch process, for one script. Use it as a context manager. NoFit if it refuses the program."""

    def __init__(self, bmv2_json: Mapping[str, Any], script: s.Script) -> None:
        found = require_simple_switch()
        self._model = load_program(bmv2_json)
        self._entries: list[tuple[Table, str | None, int]] = []
        self._received: list[tuple[int, bytes]] = []
        self._is_idle = True
        packets = [statement for statement in script.statements if isinstance(statement, s.Packet)]
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gradbed-bmv2-")))
            (folder / "program.json").write_text(json.dumps(bmv2_json))
            ports = stack.enter_context(PcapPorts(folder, sorted(script.ports), packets))
            thrift_port = free_port()
            command = [found[0], "--thrift-port", str(thrift_port), *ports.arguments, "program.json"]
            self._switch = SwitchProcess([*command, "--", PRIORITY_QUEUES], folder)
            stack.callback(self._switch.end)
            self._switch.wait_for(thrift_port)
            self._shell = Shell(found[1], thrift_port)
            stack.callback(self._shell.end)
            self._ports = ports
            self._stack = stack.pop_all()

    def __enter__(self) -> Bmv2Target:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def model(self) -> ProgramModel:
        return self._model

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
            self._apply(statement)
        except Bmv2Refuses as error:
            raise NoFit(str(error)) from None
        except Bmv2Ended as error:
            if (how := self._switch.ended()) is not None:
                raise NoFit(how) from None
            raise CheckFailed(str(error)) from None

    def _settle(self) -> None:
        if not self._is_idle:
            self._received += self._ports.collect(QUIET_S)
            self._is_idle = True

    # ---- Statements as commands ----

    @singledispatchmethod
    def _apply(self, statement: s.Statement) -> None:
        raise TypeError(f"{type(statement).__name__} is no command to the switch")

    @_apply.register
    def _(self, statement: s.Wait) -> None:
        """The switch is idle."""

    @_apply.register
    def _(self, statement: s.Add) -> None:
        table = names.table(self._model, statement.table)
        call = names.action_call(table, statement.call)
        key = names.key_matches(table, statement.matches)
        priority = names.priority(table, statement.priority)
        words = [_key_text(field, match) for field, match in zip(table.key, key, strict=True)]
        last = [_LEAST_PRIORITY - priority] if table.match in ("ternary", "range") else []
        if table.profile is None:
            answer = self._shell.run("table_add", table.name, call.action, *words, "=>", *call.arguments, *last)
        else:
            # A member of its own, which does it.
            made = self._shell.run("act_prof_create_member", table.profile, call.action, *call.arguments)
            member = _handle(made, "created")
            answer = self._shell.run("table_indirect_add", table.name, *words, "=>", member, *last)
        self._entries.append((table, statement.entry, _handle(answer, "added")))

    @_apply.register
    def _(self, statement: s.SetDefault) -> None:
        table = names.table(self._model, statement.table)
        call = names.action_call(table, statement.call)
        if table.profile is None:
            self._shell.run("table_set_default", table.name, call.action, *call.arguments)
        else:
            made = self._shell.run("act_prof_create_member", table.profile, call.action, *call.arguments)
            self._shell.run("table_indirect_set_default", table.name, _handle(made, "created"))

    @_apply.register
    def _(self, statement: s.Remove) -> None:
        gone = list(self._entries) if statement.entry is None else [self._entry(statement.entry)]
        for entry in gone:
            delete = "table_delete" if entry[0].profile is None else "table_indirect_delete"
            self._shell.run(delete, entry[0].name, entry[2])
            self._entries.remove(entry)

    def _entry(self, name: str) -> tuple[Table, str | None, int]:
        found = next((entry for entry in self._entries if entry[1] == name), None)
        if found is None:
            raise NoFit(f"there is no entry {name}: add ... = {name} names one")
        return found

    @_apply.register
    def _(self, statement: s.CheckCounter) -> None:
        if isinstance(statement.index, int):
            counter, index = names.counter(self._model, statement.counter), statement.index
        else:
            table, _, index = self._entry(statement.index)
            counter = next(name for name, c in self._model.counters.items() if c.table == table.name)
        answer = self._shell.run("counter_read", counter, index)
        count = re.search(r"\((\d+) bytes, (\d+) packets\)", answer)
        got = int(count[1 if statement.unit == "bytes" else 2]) if count else 0
        check(f"counter {statement.counter}({statement.index})", statement.condition, got, statement.unit)

    @_apply.register
    def _(self, statement: s.CounterRead) -> None:
        self._shell.run("counter_read", names.counter(self._model, statement.counter), statement.index)

    @_apply.register
    def _(self, statement: s.CounterWrite) -> None:
        counter = names.counter(self._model, statement.counter)
        self._shell.run("counter_write", counter, statement.index, statement.packets, statement.bytes)

    @_apply.register
    def _(self, statement: s.RegisterRead) -> None:
        register = names.register(self._model, statement.register)
        [got] = self._shell.register(register, statement.index)
        if statement.condition is not None:
            if got == THRIFT_MOST:
                raise NotPossible(f"BMv2's Thrift reads no number as large as {THRIFT_MOST:#x}", ends=False)
            check(f"register {statement.register}[{statement.index}]", statement.condition, got)

    @_apply.register
    def _(self, statement: s.RegisterWrite) -> None:
        register = names.register(self._model, statement.register)
        if statement.value > THRIFT_MOST:
            why = f"BMv2's Thrift writes numbers up to {THRIFT_MOST:#x}, not {statement.value:#x}"
            raise NotPossible(why, ends=True)
        self._shell.run("register_write", register, statement.index, statement.value)

    @_apply.register
    def _(self, statement: s.RegisterReset) -> None:
        self._shell.run("register_reset", names.register(self._model, statement.register))

    @_apply.register
    def _(self, statement: s.MeterGetRates) -> None:
        self._shell.run("meter_get_rates", names.meter(self._model, statement.meter), statement.index)

    @_apply.register
    def _(self, statement: s.MeterSetRates) -> None:
        meter = names.meter(self._model, statement.meter)
        rates = [f"{rate.rate_per_us:.12f}:{rate.burst}" for rate in statement.rates]
        if statement.index is None:
            self._shell.run("meter_array_set_rates", meter, *rates)
        else:
            self._shell.run("meter_set_rates", meter, statement.index, *rates)

    @_apply.register
    def _(self, statement: s.ValueSetAdd) -> None:
        names.value_set(self._model, statement.value_set)
        raise NotPossible("BMv2's simple_switch_CLI sends members of value sets with a byte too many", ends=True)

    @_apply.register
    def _(self, statement: s.ValueSetClear) -> None:
        self._shell.run("pvs_clear", names.value_set(self._model, statement.value_set))

    @_apply.register
    def _(self, statement: s.GroupCreate) -> None:
        self._shell.run("mc_mgrp_create", statement.group)

    @_apply.register
    def _(self, statement: s.NodeCreate) -> None:
        self._shell.run("mc_node_create", statement.instance, *statement.ports)

    @_apply.register
    def _(self, statement: s.NodeUpdate) -> None:
        self._shell.run("mc_node_update", statement.node, *statement.ports)

    @_apply.register
    def _(self, statement: s.NodeAssociate) -> None:
        self._shell.run("mc_node_associate", statement.group, statement.node)

    @_apply.register
    def _(self, statement: s.MirroringAdd) -> None:
        self._shell.run("mirroring_add", statement.session, statement.port)

    @_apply.register
    def _(self, statement: s.MirroringAddMulticast) -> None:
        self._shell.run("mirroring_add_mc", statement.session, statement.group)

    @_apply.register
    def _(self, statement: s.MirroringDelete) -> None:
        self._shell.run("mirroring_delete", statement.session)

    @_apply.register
    def _(self, statement: s.MirroringGet) -> None:
        self._shell.run("mirroring_get", statement.session)


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
