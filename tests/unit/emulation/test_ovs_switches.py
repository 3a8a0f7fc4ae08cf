"""What can be said about Open vSwitch without running it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradbed.common import programs
from gradbed.common.errors import UserError
from gradbed.emulation import veth
from gradbed.emulation.switches import open_vswitch as open_vswitch
from gradbed.emulation.switches.open_vswitch import FIRST_PORT, OvsSwitches
from gradbed.topo.generators import leaf_spine

NOTHING = ["set", []]


class FakeProcesses:
    """Takes commands and answers the one about interfaces with `rows`: name, port, port asked for, error."""

    rows: list[list[Any]] = []  # noqa: RUF012

    def __init__(self, directory: Path) -> None:
        self.commands: list[tuple[str, ...]] = []
        made.append(self)

    def vsctl(self, *arguments: str) -> str:
        self.commands.append(arguments)
        return json.dumps({"data": self.rows}) if "list" in arguments else ""

    def stop(self) -> None:
        self.commands.append(("stop",))


made: list[FakeProcesses] = []


@pytest.fixture
def switches(monkeypatch: pytest.MonkeyPatch) -> Iterator[OvsSwitches]:
    """s1 and l2 of a leaf-spine, without daemons."""
    made.clear()
    monkeypatch.setattr(open_vswitch, "OvsProcesses", FakeProcesses)
    monkeypatch.setattr(veth, "delete_interfaces", lambda names: None)
    yield OvsSwitches(leaf_spine(2, 2, 1), {"s1", "l2"})


def test_bridges_are_the_graphs_switches(switches: OvsSwitches, tmp_path: Path) -> None:
    switches.start(tmp_path)
    words = " ".join(made[0].commands[0])
    number = switches.topology.switch("l2").number
    assert "add-br s1" in words and "add-br l2" in words and "add-br l1" not in words
    assert words.count("datapath_type=netdev fail_mode=secure protocols=OpenFlow13") == 2
    assert f"other_config:datapath-id={number:016x}" in words
    for port in switches.topology.neighbours("l2").values():
        assert f"add-port l2 l2-eth{port} -- set interface l2-eth{port} ofport_request={port}" in words
    target = switches.control_address("l2").split(":")
    assert f"set-controller l2 ptcp:{target[1]}:{target[0]}" in words
    assert switches.control_address("l2") != switches.control_address("s1")
    switches.stop()
    switches.stop()
    assert made[0].commands[-1] == ("stop",)


def test_ports_that_others_have_are_passed_over(switches: OvsSwitches, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", FIRST_PORT))
            other.listen()
        except OSError:
            pass  # somebody has it already
        switches.start(tmp_path)
    ports = [int(switches.control_address(name).rpartition(":")[2]) for name in ("s1", "l2")]
    assert FIRST_PORT < ports[0] < ports[1]


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        (
            ["l2-eth1", -1, 1, "No such device"],
            UserError,
            r"cannot use l2-eth1 here \(No such device\): .*--legacy p4",
        ),
        (["l2-eth1", 7, 1, ""], RuntimeError, "made l2-eth1 port 7, not 1"),
    ],
)
def test_ports_that_do_not_work_are_not_passed_over_in_silence(
    switches: OvsSwitches,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    row: list[Any],
    error: type[Exception],
    words: str,
) -> None:
    monkeypatch.setattr(FakeProcesses, "rows", [["s1", 65534, NOTHING, NOTHING], ["s1-eth1", 1, 1, NOTHING], row])
    with pytest.raises(error, match=words):
        switches.start(tmp_path)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", ())
    for name in ("ovsdb-tool", "ovsdb-server", "ovs-ofctl", "ovs-vsctl"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(UserError, match=r"^Open vSwitch is not installed \(no ovs-vswitchd\): .*--legacy p4`$"):
        open_vswitch.require_open_vswitch()
    (tmp_path / "ovs-vswitchd").write_text("")
    (tmp_path / "ovs-vswitchd").chmod(0o755)
    monkeypatch.setattr(open_vswitch, "SCHEMAS", (str(tmp_path / "schema"),))
    with pytest.raises(UserError, match=r"has no .*schema: .*--legacy p4"):
        open_vswitch.require_open_vswitch()
    (tmp_path / "schema").write_text("")
    monkeypatch.setattr(open_vswitch, "TUN_DEVICE", tmp_path / "tun")
    with pytest.raises(UserError, match=r"needs .*tun: modprobe tun, or .*`--optical p4`.*`--legacy p4`$"):
        open_vswitch.require_open_vswitch()
