"""What a data plane that is a thread of its own records, and what is read of it elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.engine_network import NetworkConfig
from gradbed.switch.insight.recorder import (
    Begin,
    InstrumentedProgram,
    SwitchPass,
    TraceRecording,
    read_entries,
    read_recording,
    switch_passes,
)
from gradbed.switch.switch_process import KernelNetwork, serve_commands
from tests.unit.insight import tracing

FRAME = bytes([5]).ljust(64, b"\0")


def configuration(**record: str) -> NetworkConfig:
    switches = [{"device_id": number, "name": f"s{number}"} for number in (1, 2)]
    return NetworkConfig.model_validate({"switches": switches, **record})


@pytest.fixture(scope="module")
def program() -> InstrumentedProgram:
    return tracing.program(tracing.ORDERS)[0]


@pytest.fixture
def network(program: InstrumentedProgram) -> Iterator[KernelNetwork]:
    with KernelNetwork(configuration(record="values")) as running:
        for device_id, device in running.devices.items():
            running.engine.add_open_port(device_id, 1)
            device.load(program)
        yield running


def recorded(network: KernelNetwork, folder: Path) -> TraceRecording:
    assert network.engine.quiesce(5.0)
    file = folder / "records"
    (told,) = serve_commands(network, [f'{{"command": "records", "file": "{file}"}}'])
    return read_recording(file, told["answer"])


def passes(found: TraceRecording, program: InstrumentedProgram) -> list[SwitchPass]:
    return [
        each
        for words, devices in found.parts
        for each in switch_passes({address: (number, program) for address, number in devices.items()}, True, words)
    ]


def frames(found: list[SwitchPass]) -> list[tuple[int, bytes]]:
    """Of the parsers: device and frame."""
    begins = [(each.device_id, each.records[0]) for each in found]
    return [(number, begin.frame) for number, begin in begins if isinstance(begin, Begin) and begin.frame]


def test_every_switch_is_told_from_the_others(
    network: KernelNetwork, program: InstrumentedProgram, tmp_path: Path
) -> None:
    for device_id in (2, 1, 2):
        network.engine.inject(device_id, 1, FRAME)
    assert sorted(frames(passes(recorded(network, tmp_path), program))) == [(1, FRAME), (2, FRAME), (2, FRAME)]
    # What was handed over does not come again.
    assert passes(recorded(network, tmp_path), program) == []


def test_restarted_switches_are_known_by_all_their_states(
    network: KernelNetwork, program: InstrumentedProgram, tmp_path: Path
) -> None:
    """Also where one gets the memory that another had."""
    expected = []
    for round_number in range(4):
        for device_id in (1, 2):
            network.engine.inject(device_id, 1, FRAME + bytes([round_number]))
            assert network.engine.quiesce(5.0)
            expected.append((device_id, FRAME + bytes([round_number])))
        for device_id in (1, 2):
            network.restart_switch(device_id)
        for device_id in (2, 1) if round_number % 2 else (1, 2):
            network.devices[device_id].load(program)
    assert frames(passes(recorded(network, tmp_path), program)) == expected


def test_entries_come_along(network: KernelNetwork, program: InstrumentedProgram, tmp_path: Path) -> None:
    found = recorded(network, tmp_path)
    constant = [entry.table for entry in read_entries(program, found.entries[1])]
    assert list(found.entries) == [1, 2] and found.start_us[1] == 0 <= found.start_us[2]
    assert constant == [entry.table for entry in read_entries(program, found.entries[2])]


def test_nothing_is_kept_where_the_configuration_does_not_say_so(tmp_path: Path) -> None:
    with KernelNetwork(configuration()) as running:
        (told,) = serve_commands(running, [f'{{"command": "records", "file": "{tmp_path}/records"}}'])
        assert told == {"event": "error", "message": "nothing is recorded: the configuration does not say so"}
        with pytest.raises(UserError, match="recording what the data plane does"):
            running.engine.record(0)
