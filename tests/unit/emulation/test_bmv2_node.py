"""The command line and life of a BMv2 process, with a small stand-in for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mininet", reason="Mininet is not installed")

from gradbed.common.errors import ProcessLost, UserError
from gradbed.emulation import nodes
from gradbed.emulation.nodes import Bmv2Switch, QuietLoopback, free_ports
from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc

STAND_IN = """#!{python}
import signal, socket, sys, time
if "--help" in sys.argv:
    print("--device-id arg", {usage!r})
    sys.exit()
print(*sys.argv[1:], flush=True)
{body}
"""

SERVE = """
host, port = next(a for a in sys.argv if "grpc-server-addr" in a).split("=")[1].split(":")
server = socket.create_server((host, int(port)))
time.sleep(60)
"""


@pytest.fixture
def make(tmp_path: Path) -> Iterator:
    made = []

    def make(body: str = SERVE, usage: str = "") -> Bmv2Switch:
        binary = tmp_path / f"simple_switch_grpc_{len(made)}"
        binary.write_text(STAND_IN.format(python=sys.executable, usage=usage, body=body))
        binary.chmod(0o755)
        grpc_port, thrift_port = free_ports(2)
        made.append(Bmv2Switch("e1", 13, str(binary), grpc_port, thrift_port, tmp_path / "e1.log"))
        for port in (2, 1):
            QuietLoopback(f"e1-eth{port}", made[-1], port=port)
        return made[-1]

    yield make
    for node in made:
        node.stop()


def test_command_line(make) -> None:
    node = make()
    assert node.dpid == "000000000000000d"
    assert node.arguments()[1:] == [
        "--no-p4",
        "--device-id=13",
        "--log-console",
        "--log-level=warn",
        "--interface=1@e1-eth1",
        "--interface=2@e1-eth2",
        "--",
        f"--grpc-server-addr={node.grpc_address}",
        "--cpu-port=510",
        "--drop-port=511",
        "--priority-queues=8",
    ]


def test_a_build_with_thrift_gets_a_port_of_its_own(make) -> None:
    node = make(usage="--thrift-port arg")
    assert f"--thrift-port={node.thrift_port}" in node.arguments()
    assert node.thrift_port != node.grpc_port


def test_it_starts_serves_and_ends(make) -> None:
    node = make()
    assert not node.connected()
    node.start([])
    node.start([])
    node.wait_ready()
    assert node.connected()
    pid = node.process.pid
    assert node.log.read_text().split() == node.arguments()[1:]
    node.terminate_process()
    node.stop()
    node.stop()
    assert not Path(f"/proc/{pid}").exists()
    assert not node.connected()


def test_its_words_are_shown_when_it_ends(make) -> None:
    node = make("sys.exit('no such interface')")
    node.start([])
    with pytest.raises(ProcessLost, match=r"^the simple_switch_grpc of e1 ended with status 1; its log: ") as caught:
        node.wait_ready()
    assert caught.value.log.endswith("\nno such interface")


def test_it_is_not_waited_for_forever_and_killed_if_it_must(make, monkeypatch) -> None:
    monkeypatch.setattr(nodes, "BMV2_READY_TIMEOUT_S", 0.3)
    monkeypatch.setattr(nodes, "BMV2_STOP_TIMEOUT_S", 0.05)
    node = make("signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)")
    node.start([])
    with pytest.raises(RuntimeError, match="does not answer"):
        node.wait_ready()
    pid = node.process.pid
    node.stop()
    assert not Path(f"/proc/{pid}").exists()


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("GRADBED_BMV2", raising=False)
    with pytest.raises(UserError, match="simple_switch_grpc is not installed") as caught:
        find_simple_switch_grpc()
    assert "\n" not in str(caught.value)
    binary = tmp_path / "simple_switch_grpc"
    binary.touch(0o755)
    assert find_simple_switch_grpc() == str(binary)
    other = tmp_path / "other"
    other.touch(0o755)
    monkeypatch.setenv("GRADBED_BMV2", str(other))
    assert find_simple_switch_grpc() == str(other)


def test_free_ports_are_different() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(1024 <= port < 65536 for port in ports)


def test_the_shell_of_a_switch_starts_with_the_first_command(make) -> None:
    node = make()
    assert (node.shell, node.pid) == (None, os.getpid())
    assert node.cmd("echo $((40 + 2))").strip() == "42"
    assert node.shell.pid == node.pid != os.getpid()
    node.terminate()
    assert node.shell is None
