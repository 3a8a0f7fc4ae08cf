"""STF on BMv2's simple_switch: packets through pcap files (`--use-files`), commands through its Thrift command line.

Each port is a named pipe of pcap records into BMv2 and a pcap file out of it. Once BMv2 has handled a packet it waits
for the next one of the same port before it looks at any other port, and at the beginning it waits for the first one
of every port; then it takes the one with the earliest time. So all packets must be known beforehand, and packet n is
let go by writing (or ending) what comes after packet n - 1 in its pipe.

BMv2 does not say when it is idle: it counts as idle once nothing has come out for QUIET_S, in which no thread of it
wanted a processor.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.common.resources import Closing, scratch_folder
from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.bmv2_json.model import KeyField, Table, ValueSet
from gradbed.switch.device import ActionCall, Counts, KeyMatch
from gradbed.switch.p4lang.bmv2 import (
    PRIORITY_QUEUES,
    THRIFT_MOST,
    Bmv2Ended,
    Bmv2Refuses,
    Shell,
    require_simple_switch,
)
from gradbed.switch.stf import statements as s
from gradbed.switch.stf.names import NoFit
from gradbed.switch.stf.runner import Outcome, run_on
from gradbed.switch.stf.statements import Packet
from gradbed.switch.stf.target import AddedEntry, CheckFailed, CommandTarget, NotPossible

# ---- The process ----


READY_TIMEOUT_S = 30.0


class SwitchProcess:
    """simple_switch, running in `folder`."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._output = (folder / "output").open("wb")
        self._process = subprocess.Popen(command, cwd=folder, stdout=self._output, stderr=subprocess.STDOUT)

    def wait_for(self, thrift_port: int) -> None:
        """Wait until it serves. NoFit with its words if it ends instead."""
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline_s:
            if self._process.poll() is not None:
                raise NoFit(f"BMv2 refuses the program: {self._last_words()}")
            try:
                socket.create_connection(("127.0.0.1", thrift_port), 1.0).close()
                return
            except OSError:
                time.sleep(0.02)
        raise UserError(f"BMv2's simple_switch did not open its Thrift port in {READY_TIMEOUT_S:g} s")

    def is_busy(self) -> bool:
        """Return whether a thread of it runs, or waits for a processor."""
        states = []
        for thread in Path(f"/proc/{self._process.pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):  # the thread has ended
                states.append(thread.read_text().rpartition(") ")[2][:1])  # proc_pid_stat(5)
        return "R" in states

    def ended(self) -> str | None:
        """Return how it ended, if it has: BMv2 does not survive everything that a program does."""
        if self._process.poll() is None:
            return None
        return f"BMv2's simple_switch has ended: {self._last_words()}"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()

    def _last_words(self) -> str:
        output = Path(self._output.name).read_text(errors="replace").split()
        status = self._process.returncode
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return f"{' '.join(output)[-300:]} ({how})"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


# ---- Its ports as files ----


_MAGIC, _ETHERNET, _SNAP_LENGTH = 0xA1B2C3D4, 1, 65535
_FILE_HEADER = struct.Struct("=IHHiIII")
_RECORD_HEADER = struct.Struct("=IIII")
_POLL_S = 0.01


class PcapPorts(Closing):
    """folder: where the files are; BMv2 must run there. Interface names are p0, p1, ..."""

    def __init__(self, folder: Path, ports: Sequence[int], packets: Sequence[Packet]) -> None:
        self._folder = folder
        self._ports = sorted(ports)
        self._order = deque(packet.port for packet in packets)
        self._waiting = {
            port: deque(
                _RECORD_HEADER.pack(number, 0, len(p.frame), len(p.frame)) + p.frame
                for number, p in enumerate(packets)
                if p.port == port
            )
            for port in self._ports
        }
        self._pipes: dict[int, int] = {}
        self._read = dict.fromkeys(self._ports, _FILE_HEADER.size)
        self._last: int | None = None
        try:
            for port in self._ports:
                path = self._path(port, "in")
                os.mkfifo(path)
                # Opened to read as well, so that it does not wait for BMv2.
                self._pipes[port] = os.open(path, os.O_RDWR)
                os.write(self._pipes[port], _FILE_HEADER.pack(_MAGIC, 2, 4, 0, 0, _SNAP_LENGTH, _ETHERNET))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the input of all ports."""
        for port in list(self._pipes):
            self._end(port)

    @property
    def arguments(self) -> list[str]:
        """Return the arguments for simple_switch's command line."""
        interfaces = [word for port in self._ports for word in ("-i", f"{port}@p{port}")]
        return ["--use-files", "0", *interfaces]

    def release_next(self) -> None:
        """Let the next packet in."""
        for port in self._ports if self._last is None else [self._last]:
            if self._waiting[port]:
                os.write(self._pipes[port], self._waiting[port].popleft())
            else:
                self._end(port)
        self._last = self._order.popleft()

    def collect(self, quiet_s: float, longest_s: float, is_busy: Callable[[], bool]) -> list[tuple[int, bytes]]:
        """Return what comes out until nothing has come for `quiet_s` while the switch was not busy, or for
        `longest_s`."""
        frames: list[tuple[int, bytes]] = []
        now_s = last_s = quiet_since_s = time.monotonic()
        while now_s - quiet_since_s < quiet_s and now_s - last_s < longest_s:
            new = [(port, frame) for port in self._ports for frame in self._new_frames(port)]
            frames += new
            now_s = time.monotonic()
            if new:
                last_s = now_s
            if new or is_busy():
                quiet_since_s = now_s
            time.sleep(_POLL_S)
        return frames

    def _new_frames(self, port: int) -> list[bytes]:
        frames = []
        with contextlib.suppress(FileNotFoundError), self._path(port, "out").open("rb") as file:
            file.seek(self._read[port])
            while len(header := file.read(_RECORD_HEADER.size)) == _RECORD_HEADER.size:
                length = _RECORD_HEADER.unpack(header)[2]
                frame = file.read(length)
                if len(frame) < length:
                    break
                frames.append(frame)
                self._read[port] += len(header) + length
        return frames

    def _end(self, port: int) -> None:
        pipe = self._pipes.pop(port, None)
        if pipe is not None:
            os.close(pipe)

    def _path(self, port: int, direction: str) -> Path:
        return self._folder / f"p{port}_{direction}.pcap"


# ---- The target ----


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
    """A simple_switch process, for one script; a context manager. Raises NoFit if it refuses the program."""

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

    def apply(self, statement: s.StfStatement) -> None:
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
        """Create a member that runs this action, and return its number."""
        made = self._shell.run("act_prof_create_member", profile, call.action, *call.arguments)
        return _handle(made, "created")

    def _set_default(self, table: Table, call: ActionCall) -> None:
        if table.profile is None:
            self._shell.run("table_set_default", table.name, call.action, *call.arguments)
        else:
            self._shell.run("table_indirect_set_default", table.name, self._member(table.profile, call))

    def _delete(self, entry: AddedEntry) -> None:
        delete = "table_delete" if entry.table.profile is None else "table_indirect_delete"
        self._shell.run(delete, entry.table.name, entry.handle)

    # ---- Counters, registers, meters, value sets ----

    def _entry_count(self, entry: AddedEntry, counter: str) -> Counts:
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

    def _entry_meter_write(self, entry: AddedEntry, meter: str, rates: tuple[s.Rate, s.Rate]) -> None:
        self._meter_write(meter, entry.handle, rates)

    def _value_set_add(self, value_set: ValueSet, value: int) -> None:
        raise NotPossible("BMv2's simple_switch_CLI sends members of value sets with a byte too many", ends=True)

    def _value_set_clear(self, value_set: str) -> None:
        self._shell.run("pvs_clear", value_set)

    # ---- Replication ----

    def _replicate(self, statement: s.StfStatement) -> None:
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
    """Return the handle of what was added or created. Raises NoFit with BMv2's words if nothing was."""
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
