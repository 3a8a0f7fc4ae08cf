"""A controller after another one: what it writes to switches, and who of several is in charge."""

from __future__ import annotations

import copy
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4r

from gradbed.common.errors import UserError
from gradbed.controller.core.term import take_charge
from gradbed.controller.rest.client import ControllerClient
from tests.unit.controller.fake_p4runtime import FakeDevice, FakeP4Runtime
from tests.unit.controller.process import TIMEOUT_S, TOPOLOGY, event, running, started

JOB = {"workers": ["h2", "h3"], "server": "h1", "slot_policy": "static", "slots": 100}


def client_of(config: dict[str, Any]) -> ControllerClient:
    return ControllerClient(config["rest_address"], timeout_s=TIMEOUT_S)


def forget_writes(switches: FakeP4Runtime) -> None:
    for device in switches.devices.values():
        device.writes.clear()
        device.pushes = 0


class Tampering:
    """Changes what a switch holds as nobody is told, and knows what has to be written to put it right."""

    def __init__(self, device: FakeDevice) -> None:
        self._device = device
        self.repairs: list[Any] = []

    def _repair(self, kind: int, entity: Any) -> None:
        self.repairs.append(p4r.Update(type=kind, entity=entity))

    def remove_entry(self) -> None:
        entry = self._device.entries.pop(next(iter(self._device.entries)))
        self._repair(p4r.Update.INSERT, p4r.Entity(table_entry=entry))

    def change_entry(self) -> None:
        key, entry = list(self._device.entries.items())[-1]
        changed = copy.deepcopy(entry)
        changed.action.action.params[0].value = b"\x2a"
        assert changed != entry
        self._device.entries[key] = changed
        self._repair(p4r.Update.MODIFY, p4r.Entity(table_entry=entry))

    def add_entry(self) -> None:
        entry = copy.deepcopy(next(iter(self._device.entries.values())))
        entry.match[0].lpm.value, entry.match[0].lpm.prefix_len = b"\x0b\x00\x00\x00", 8
        self._device.update(p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry)))
        key = p4r.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)
        self._repair(p4r.Update.DELETE, p4r.Entity(table_entry=key))

    def remove_group(self) -> None:
        group = self._device.groups.pop(next(iter(self._device.groups)))
        self._repair(p4r.Update.INSERT, _group(group))


def _group(entry: Any) -> Any:
    return p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(multicast_group_entry=entry))


def _comparable(update: Any) -> tuple[int, bytes]:
    """Without what a deletion says beyond its key."""
    entity = copy.deepcopy(update.entity)
    if update.type == p4r.Update.DELETE:
        entity.table_entry.ClearField("action")
    return update.type, entity.SerializeToString(deterministic=True)


@pytest.mark.thorough
def test_a_successor_writes_what_was_changed_meanwhile_and_nothing_else(
    switches: FakeP4Runtime, config: dict[str, Any], tmp_path: Path
) -> None:
    config = {**config, "journal": str(tmp_path / "journal")}
    with running(config, tmp_path):
        pass
    forget_writes(switches)
    # Its predecessor had no job yet, and all is right.
    with running(config, tmp_path):
        assert [(device.pushes, device.writes) for device in switches.devices.values()] == [(0, [])] * 3
        client_of(config).add_job("aggregation", JOB)
    forget_writes(switches)
    damaged = {name: Tampering(switches.devices[TOPOLOGY.switch(name).number]) for name in ("s1", "l1", "l2")}
    damaged["s1"].change_entry()
    damaged["l1"].remove_entry()
    damaged["l1"].remove_group()
    damaged["l1"].change_entry()
    damaged["l2"].add_entry()
    with running(config, tmp_path):
        for name, tampering in damaged.items():
            device = switches.devices[TOPOLOGY.switch(name).number]
            written = [_comparable(update) for updates in device.writes for update in updates]
            assert sorted(written) == sorted(map(_comparable, tampering.repairs)), name
            assert device.pushes == 0
        assert len(switches.devices[TOPOLOGY.switch("s1").number].writes) == 1


@contextmanager
def standing_by(config: dict[str, Any], directory: Path) -> Iterator[subprocess.Popen[str]]:
    with started(config, directory) as process:
        assert event(process) == "standby", (directory / "stderr").read_text()
        yield process


@pytest.mark.thorough
def test_a_standby_takes_over_from_one_that_is_killed_and_from_one_that_stands_still(
    switches: FakeP4Runtime, config: dict[str, Any], tmp_path: Path
) -> None:
    config = {**config, "journal": str(tmp_path / "journal")}
    second_config = {**config, "rest_address": str(tmp_path / "second.sock")}
    third_config = {**config, "rest_address": str(tmp_path / "third.sock")}
    with ExitStack() as processes:
        first = processes.enter_context(running(config, tmp_path / "first"))
        client_of(config).add_job("aggregation", JOB)
        jobs = client_of(config).jobs()
        forget_writes(switches)
        second = processes.enter_context(standing_by(second_config, tmp_path / "second"))
        first.kill()
        killed_s = time.monotonic()
        assert event(second) == "ready"
        print(f"took over after {time.monotonic() - killed_s:.2f} s")
        assert client_of(second_config).jobs() == jobs
        assert [(device.pushes, device.writes) for device in switches.devices.values()] == [(0, [])] * 3
        # One that comes back stands by.
        third = processes.enter_context(standing_by(third_config, tmp_path / "third"))
        second.send_signal(signal.SIGSTOP)
        assert event(third) == "ready"
        assert client_of(third_config).jobs() == jobs
        assert [device.pushes for device in switches.devices.values()] == [0, 0, 0]
        goes_on(second, second_config, tmp_path / "second")
        assert client_of(third_config).jobs() == jobs
        assert [device.writes for device in switches.devices.values()] == [[], [], []]
        assert client_of(third_config).add_job("aggregation", {**JOB, "workers": ["h4"]})["job"] == 2


def goes_on(process: subprocess.Popen[str], config: dict[str, Any], directory: Path) -> None:
    """What it was asked meanwhile it does not do, and it ends."""
    refusals: list[str] = []

    def ask() -> None:
        try:
            client_of(config).delete_job("aggregation", 1)
        except UserError as error:
            refusals.append(str(error))

    asking = threading.Thread(target=ask)
    asking.start()
    # It waits in the listener's backlog, whether it is there already or not.
    process.send_signal(signal.SIGCONT)
    assert process.wait(4 * TIMEOUT_S) == 2
    asking.join()
    assert len(refusals) == 1
    assert (directory / "stderr").read_text().splitlines()[-1] == (
        "error: another controller has taken charge of the switches: this one ends, start it again to stand by"
    )


def test_who_did_not_run_has_heard_nothing_and_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby that the machine left no time for takes its own silence for nobody's."""
    first = take_charge(tmp_path / "journal")
    now_s = [0.0]
    looks = 0

    def sleep(seconds: float) -> None:
        nonlocal looks
        looks += 1
        now_s[0] += 10.0
        if looks == 5:
            first.end()

    monkeypatch.setattr("gradbed.controller.core.term.time.monotonic", lambda: now_s[0])
    monkeypatch.setattr("gradbed.controller.core.term.time.sleep", sleep)
    take_charge(tmp_path / "journal").end()
    assert looks == 5


def test_a_standby_takes_charge_within_two_seconds_of_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its own clock, which nothing but its looks takes time of."""
    take_charge(tmp_path / "journal")
    now_s = [0.0]

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    monkeypatch.setattr("gradbed.controller.core.term.time.monotonic", lambda: now_s[0])
    monkeypatch.setattr("gradbed.controller.core.term.time.sleep", sleep)
    take_charge(tmp_path / "journal").end()
    assert 1.0 < now_s[0] < 2.0
