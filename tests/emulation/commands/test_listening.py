"""Commands that listen do so on loopback, unless they are told otherwise: as the kernel has it, in whichever of their
network namespaces."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradbed.common.json_lines import own_program
from gradbed.controller.planning.legacy import OPENFLOW
from gradbed.experiments.study.running.distributed import LOCAL
from gradbed.switch.engine_network import NetworkConfig
from gradbed.topo.generators import star
from gradbed.topo.link import LinkModel
from tests.command import ROOT
from tests.emulation.prompt import Prompt
from tests.listening import Listening, listening
from tests.unit.controller import process as controllers
from tests.unit.simple_switch.test_process import free_port, running, wait_until_it_serves
from tests.waiting import wait_until

pytestmark = [pytest.mark.thorough, pytest.mark.root]

VIRTUAL = ("run", "aggregation", "--clock", "virtual", "--topology", "star:3", "--workers", "2", "--rounds", "2")
IN_TIME_S = 120
BETWEEN_LOOKS_S = 0.05
DASK = """
import sys
from gradbed.controller.planning.legacy import OPENFLOW
from gradbed.experiments.study.running.distributed import dask_client
with dask_client({where!r}):
    print("ready", flush=True)
    sys.stdin.read()
"""


def check(pid: int, *ports: int) -> None:
    """At these and maybe others."""
    found = listening(pid)
    assert found and {each.port for each in found} >= set(ports), found
    assert not elsewhere(found)


def elsewhere(found: set[Listening]) -> list[Listening]:
    return [each for each in found if not each.is_loopback]


@contextlib.contextmanager
def program(*command: str, says: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, once it has said this on either output, and the group of it."""
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            said = []
            for line in process.stdout:
                said.append(line)
                if found := re.search(says, line):
                    yield process, found[1]
                    break
            else:
                raise AssertionError("".join(said))
        finally:
            process.kill()


def test_what_is_looked_at() -> None:
    """An address that is not loopback's is seen, of either kind of socket, and one that only calls others is not."""
    places = [
        ("127.0.0.1", socket.AF_INET, socket.SOCK_STREAM),
        ("0.0.0.0", socket.AF_INET, socket.SOCK_STREAM),
        ("0.0.0.0", socket.AF_INET, socket.SOCK_DGRAM),
        *((address, socket.AF_INET6, socket.SOCK_STREAM) for address in ("::", "::1", "::ffff:127.0.0.1")),
    ]
    code = "import socket, sys; sys.stdin.read()"
    with contextlib.ExitStack() as stack:
        open_ = [stack.enter_context(socket.socket(family, kind)) for _, family, kind in places]
        for each, (address, _, kind) in zip(open_, places, strict=True):
            each.bind((address, 0))
            if kind == socket.SOCK_STREAM:
                each.listen()
        stack.enter_context(socket.create_connection(open_[0].getsockname()))
        keeps = [each.fileno() for each in open_]
        child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, pass_fds=keeps)
        try:
            found = {(each.address, each.port, each.is_loopback) for each in listening(child.pid)}
        finally:
            child.communicate()
        ports = [each.getsockname()[1] for each in open_]
    is_loopback = (True, False, False, False, True, True)
    addresses = [address.removeprefix("::ffff:") for address, _, _ in places]
    assert found == set(zip(addresses, ports, is_loopback, strict=True))


def test_the_stand_in_for_simple_switch_grpc(tmp_path: Path) -> None:
    thrift_port = free_port()
    with running("simple_switch_grpc", "--no-p4", "--thrift-port", str(thrift_port), cwd=tmp_path) as process:
        wait_until_it_serves(process)
        check(process.pid, thrift_port, 9559)


def test_the_switches_process(tmp_path: Path) -> None:
    config = tmp_path / "switches.json"
    config.write_text(NetworkConfig(grpc_addresses=("127.0.0.1:0",), switches=()).model_dump_json())
    with program(*own_program("gradbed.switch.switch_process", str(config)), says=r'"grpc_ports": \[(\d+)\]') as (
        process,
        port,
    ):
        check(process.pid, int(port))


def test_the_controller(tmp_path: Path) -> None:
    """REST, and os-ken's own port where it speaks OpenFlow; here with a switch that never answers."""
    config = {
        "topology": json.loads(star(1, LinkModel()).to_json()),
        "targets": {"s1": "127.0.0.1:1"},
        "switches": {"s1": OPENFLOW},
        "rest_address": "127.0.0.1:0",
    }
    with controllers.started(config, tmp_path) as process:
        wait_until(lambda: process.poll() is not None or len(listening(process.pid)) == 2)
        check(process.pid)


@pytest.mark.nightly
def test_replay_and_the_page_of_a_run(tmp_path: Path) -> None:
    url = r"http://127\.0\.0\.1:(\d+)/"
    with program(*own_program("gradbed", *VIRTUAL, "--live", "--output", str(tmp_path)), says=url) as (process, port):
        check(process.pid, int(port))
        said, _ = process.communicate(timeout=IN_TIME_S)
        assert process.returncode == 0, said
    run = tmp_path / "aggregation" / "latest"
    with program(*own_program("gradbed", "replay", str(run)), says=url) as (process, port):
        check(process.pid, int(port))


def test_a_network_to_look_around_in(tmp_path: Path) -> None:
    """With hosts' namespaces, the controller and the switches."""
    up = Prompt("--topology", "star:2", folder=tmp_path)
    try:
        up.wait_for("REST interface: http://")
        port = int(up.wait_for("/docs").rpartition(":")[2])
        up.wait_for("P4Runtime: unix:")
        check(up.pid, port)
        assert {"s1-eth1"} < {name for each in listening(up.pid) for name in each.interfaces}
    finally:
        up.close()


@pytest.mark.nightly
def test_a_run_whose_page_is_open(tmp_path: Path) -> None:
    """On the real clock. What agents in hosts listen at is reached from other hosts alone."""
    command = own_program("gradbed", "run", "aggregation", "--live", "--topology", "star:3", "--workers", "2")
    seen: set[Listening] = set()
    with subprocess.Popen([*command, "--output", str(tmp_path)], cwd=ROOT) as process:
        ends = time.monotonic() + IN_TIME_S
        while process.poll() is None and time.monotonic() < ends:
            seen |= listening(process.pid)
            time.sleep(BETWEEN_LOOKS_S)
        process.kill()
    assert process.returncode == 0
    outside_hosts = {each for each in seen if not any(name.startswith("h") for name in each.interfaces)}
    # The page, the switches, the controller.
    assert len(outside_hosts) >= 3, seen
    assert not elsewhere(outside_hosts)


@pytest.mark.nightly
def test_workers_of_dask() -> None:
    pytest.importorskip("distributed")
    with program(sys.executable, "-c", DASK.format(where=LOCAL), says="(ready)") as (process, _):
        wait_until(lambda: len(listening(process.pid)) > 1)
        check(process.pid)
