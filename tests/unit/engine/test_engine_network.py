"""The switch process's configuration and its commands. The process as a whole is tested with P4Runtime."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.engine_network import NetworkConfig, read_network_config
from gradbed.switch.switch_process import KernelNetwork, serve_commands
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import instructed_program, pass_through

TWO_SWITCHES: dict[str, Any] = {
    "grpc_addresses": ["127.0.0.1:0"],
    "switches": [{"device_id": 1, "name": "s1"}, {"device_id": 2, "name": "s2"}],
    "links": [{"a": [1, 1], "b": [2, 1], "link": {"rate_bps": 1000000, "delay_us": 5}, "seed": 8}],
}


def write(path: Path, config: object) -> Path:
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return path


def test_the_configuration_is_read(tmp_path: Path) -> None:
    config = read_network_config(write(tmp_path / "switches.json", TWO_SWITCHES))
    assert [switch.name for switch in config.switches] == ["s1", "s2"]
    assert config.links[0].b == (2, 1)
    assert config.links[0].link == LinkModel(rate_bps=1_000_000, delay_us=5)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("not json", "Invalid JSON"),
        ({}, "switches: is missing"),
        ({**TWO_SWITCHES, "swiches": []}, "swiches: is not known here"),
        ({"switches": [{"device_id": -1}]}, "switches.0.device_id"),
        ({**TWO_SWITCHES, "links": [{"a": [1], "b": [2, 1]}]}, "links.0.a"),
        ({**TWO_SWITCHES, "links": [{"a": [1, 1], "b": [2, 1], "link": {"loss": 2}}]}, "loss is a probability"),
    ],
)
def test_what_is_wrong_with_a_configuration_is_one_line(tmp_path: Path, config: object, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read_network_config(write(tmp_path / "switches.json", config))
    assert "\n" not in str(caught.value)


def test_a_configuration_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read_network_config(tmp_path / "missing.json")


def test_what_cannot_be_built_is_a_user_error() -> None:
    twice = NetworkConfig.model_validate({**TWO_SWITCHES, "links": TWO_SWITCHES["links"] * 2})
    with pytest.raises(UserError, match="in use"):
        KernelNetwork(twice)


def test_commands_are_answered_in_turn_until_stop() -> None:
    commands = [
        '{"command": "link_statistics"}',
        '{"command": "statistics"}',
        '{"command": "quiesce", "timeout_s": 5}',
        '{"command": "quiesce", "timeout_s": "long"}',
        '{"command": "dance"}',
        "[]",
        "no json",
        '{"command": "stop"}',
        '{"command": "quiesce"}',
    ]
    with KernelNetwork(NetworkConfig.model_validate(TWO_SWITCHES)) as network:
        network.devices[1].load(instructed_program())
        network.devices[1].packet_out(pass_through(1) + b"x" * 100)
        assert network.engine.quiesce(10)
        events = list(serve_commands(network, commands))
    assert [event["event"] for event in events] == [
        "link_statistics",
        "statistics",
        "quiesce",
        "error",
        "error",
        "error",
        "error",
    ]
    rows = events[0]["answer"]
    assert [(row["device_id"], row["direction"], row["packets"], row["bytes"]) for row in rows] == [
        (1, "out", 1, 100),
        (2, "out", 0, 0),
    ]
    assert [device["no_program_drops"] for device in events[1]["answer"]["devices"]] == [0, 1]
    assert events[1]["answer"]["engine"]["timers_fired"] == 1
    assert events[2]["answer"] is True
    assert "dance" in events[4]["message"]
    json.dumps(events)


def test_links_can_be_changed_and_captured_by_command(tmp_path: Path) -> None:
    always, later = tmp_path / "always.pcap", tmp_path / "later.pcap"
    config = {**TWO_SWITCHES, "captures": [{"file": str(always), "ports": [[1, 1, "out"]]}]}
    commands: list[dict[str, Any]] = [
        {"command": "set_link", "device_id": 1, "port": 1, "link": {"loss": 0.5}, "directions": ["out"]},
        {"command": "start_capture", "capture": {"file": str(later), "ports": [[1, 1, "out"], [2, 1, "in"]]}},
        {"command": "start_capture", "capture": {"file": str(later), "ports": [[2, 1, "in"]]}},
        {"command": "start_capture", "capture": {"file": str(always), "ports": []}},
        {"command": "set_link", "device_id": 1, "port": 1, "link": {"rate": 1}},
        {"command": "set_link", "device_id": 9, "port": 1, "link": {}},
        {"command": "captures"},
        {"command": "stop_capture", "file": str(always)},
        {"command": "stop_capture", "file": str(always)},
        {"command": "start_capture", "capture": {"file": str(later), "ports": [[2, 1, "in"]]}},
    ]
    with KernelNetwork(NetworkConfig.model_validate(config)) as network:
        for device in network.devices.values():
            device.load(instructed_program())
        network.devices[1].packet_out(pass_through(1) + b"captured")
        assert network.engine.quiesce(10)
        events = list(serve_commands(network, map(json.dumps, commands)))
        network.devices[1].packet_out(pass_through(1) + b"after that")
        assert network.engine.quiesce(10)
    assert [event.get("message", event["event"]) for event in events] == [
        "set_link",
        "start_capture",
        f"{later} is being written already",
        f"{always} is being written already",
        "link.rate: Unexpected keyword argument",
        "there is no switch with device id 9",
        "captures",
        "stop_capture",
        "there is no capture to that file",
        f"{later} is being written already",
    ]
    assert events[6]["answer"] == [
        {"file": str(always), "packets": 1, "over": False},
        {"file": str(later), "packets": 0, "over": False},
    ]
    assert events[7]["answer"] == 1
    assert b"captured" in always.read_bytes()
    assert b"after that" not in always.read_bytes()


def start(config: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gradbed.switch.switch_process", str(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("last_words", ['{"command": "stop"}\n', ""], ids=["stop", "end of input"])
def test_the_process_serves_and_ends(tmp_path: Path, last_words: str) -> None:
    socket = tmp_path / "p4rt.sock"
    config = {**TWO_SWITCHES, "grpc_addresses": ["127.0.0.1:0", f"unix:{socket}"]}
    process = start(write(tmp_path / "switches.json", config))
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    assert ready["event"] == "ready"
    assert len(ready["grpc_ports"]) == 1
    assert socket.exists()
    output, errors = process.communicate('{"command": "quiesce"}\n' + last_words, timeout=30)
    assert json.loads(output) == {"event": "quiesce", "answer": True}
    assert (process.returncode, errors) == (0, "")


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"switches": []}, None),
        ({**TWO_SWITCHES, "interfaces": [{"device_id": 3, "port": 1, "interface": "lo"}]}, "device id 3"),
        ({**TWO_SWITCHES, "grpc_addresses": ["nonsense"]}, "nonsense"),
        ({"switches": "many"}, "switches"),
    ],
)
def test_the_process_says_in_one_line_what_is_wrong(tmp_path: Path, config: object, message: str | None) -> None:
    process = start(write(tmp_path / "switches.json", config))
    _, errors = process.communicate("", timeout=30)
    if message is None:
        assert (process.returncode, errors) == (0, "")
    else:
        assert process.returncode == 2
        assert len(errors.splitlines()) == 1
        assert message in errors


def test_the_process_needs_a_configuration() -> None:
    outcome = subprocess.run(
        [sys.executable, "-m", "gradbed.switch.switch_process"], capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 2
    assert "usage" in outcome.stderr


def test_the_process_dies_with_its_parent(tmp_path: Path) -> None:
    """Also when its standard input stays open."""
    config = write(tmp_path / "switches.json", TWO_SWITCHES)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(config)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None and parent.stdin is not None
    child = int(parent.stdout.readline())
    assert json.loads(parent.stdout.readline())["event"] == "ready"
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 10
    while running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not running(child)
    parent.stdin.close()
    parent.stdout.close()


PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-m", "gradbed.switch.switch_process", sys.argv[1]])
print(child.pid, flush=True)
time.sleep(60)
"""


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_switch_that_is_restarted_has_lost_its_program() -> None:
    commands = [
        {"command": "restart_switch", "device_id": 2},
        {"command": "restart_switch", "device_id": 3},
        {"command": "restart_switch"},
    ]
    with KernelNetwork(NetworkConfig.model_validate(TWO_SWITCHES)) as network:
        for device in network.devices.values():
            device.load(instructed_program())
        events = list(serve_commands(network, map(json.dumps, commands)))
        network.devices[1].packet_out(pass_through(1) + b"nobody at home")
        assert network.engine.quiesce(10)
        assert network.devices[2].program is None
        assert network.devices[2].statistics().no_program_drops == 1
        network.devices[2].load(instructed_program())
        network.devices[1].packet_out(pass_through(1) + b"back again")
        assert network.engine.quiesce(10)
        assert network.devices[2].statistics().no_program_drops == 1
    assert [event.get("message", event["event"]) for event in events] == [
        "restart_switch",
        "there is no P4 switch with device id 3",
        "device_id: Missing required argument",
    ]
