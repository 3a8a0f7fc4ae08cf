"""Ten thousand connections that are opened and left: the servers go on, and take little memory for them."""

from __future__ import annotations

import contextlib
import json
import resource
import select
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import grpc
import httpx
import pytest
from finsy.proto import p4r, p4r_grpc

from gradbed.common.json_lines import own_program
from gradbed.switch.engine_network import NetworkConfig
from tests.command import ROOT
from tests.unit.controller import process as controllers
from tests.unit.p4runtime.server.test_malformed import PREFACE, SETTINGS
from tests.waiting import wait_until
from tools.bench.large import proportional_bytes

pytestmark = [pytest.mark.thorough, pytest.mark.nightly]

CONNECTIONS = 10_000
USUAL_DESCRIPTORS = 1024
"""Of a process, on most machines."""
IN_TIME_S = 30
LOG_BYTES = 200 * CONNECTIONS
"""A line for each."""
ROUNDS = 2
P4RUNTIME_BYTES = 20_000 * CONNECTIONS
REST_BYTES = 50 << 20


@pytest.fixture(autouse=True)
def _descriptors() -> Iterator[None]:
    """For both ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < CONNECTIONS + 500:
        pytest.skip(f"only {hard} descriptors for a process here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (CONNECTIONS + 500, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def crowd(port: int, beginnings: Sequence[bytes]) -> Iterator[None]:
    """All at once: the kernel makes those wait a second or more that a server has no room for yet."""
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(socket.socket()) for _ in range(CONNECTIONS)]
        for each in made:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        for number, each in enumerate(made):
            connected = select.poll()
            connected.register(each, select.POLLOUT)
            assert connected.poll(1000 * IN_TIME_S), f"only {number} have got through"
            with contextlib.suppress(ConnectionError):  # it is closed already
                each.sendall(beginnings[number % len(beginnings)])
        yield


def wait_until_gone(pid: int) -> None:
    wait_until(lambda: len(list(Path(f"/proc/{pid}/fd").iterdir())) < 100)


def p4runtime_answers(port: int) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        assert stub.Capabilities(p4r.CapabilitiesRequest(), timeout=IN_TIME_S).p4runtime_api_version


def test_p4runtime(tmp_path: Path) -> None:
    config = tmp_path / "switches.json"
    config.write_text(NetworkConfig(grpc_addresses=("127.0.0.1:0",), switches=()).model_dump_json())
    with subprocess.Popen(
        own_program("gradbed.switch.switch_process", str(config)),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            (port,) = json.loads(process.stdout.readline())["grpc_ports"]
            p4runtime_answers(port)
            before = proportional_bytes(process.pid)
            with crowd(port, (b"", PREFACE[:10], PREFACE, PREFACE + SETTINGS)):
                p4runtime_answers(port)
                taken = proportional_bytes(process.pid) - before
            wait_until_gone(process.pid)
            p4runtime_answers(port)
            print(f"P4Runtime: {before} bytes, and {taken} for the crowd")
            assert taken < P4RUNTIME_BYTES
        finally:
            process.kill()


def test_rest(tmp_path: Path) -> None:
    """Also with fewer descriptors than the crowd would need."""
    nothing: dict[str, list[str]] = {"hosts": [], "switches": [], "links": []}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        config = {
            "topology": {"name": "none", **nothing},
            "targets": {},
            "switches": {},
            "rest_fd": listener.fileno(),
        }
        with controllers.running(config, tmp_path, pass_fds=[listener.fileno()]) as process:
            hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[1]
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (USUAL_DESCRIPTORS, hard))

            def answers() -> None:
                assert httpx.get(f"http://127.0.0.1:{port}/topology", timeout=IN_TIME_S).status_code == 200

            answers()
            before, taken = proportional_bytes(process.pid), []
            for _ in range(ROUNDS):
                with crowd(port, (b"", b"GET /top", b"GET /topology HTTP/1.1\r\nHost: localhost\r\n")):
                    started_s = time.monotonic()
                    answers()
                    waited_s = time.monotonic() - started_s
                    taken.append(proportional_bytes(process.pid) - before)
                wait_until_gone(process.pid)
                answers()
            print(f"REST: {before} bytes, for crowds {taken}; an answer after {waited_s:.3f} s")
            assert max(taken) < REST_BYTES
    assert (tmp_path / "stderr").stat().st_size < LOG_BYTES
