"""Bodies that are too long, or never end: refused in one line, with little memory, while others are served."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from gradbed.controller.core.service import ServiceConfig, load_services
from gradbed.controller.rest.middleware import MAX_BODY_BYTES, BodyLimits
from tests.unit.controller.rest.test_rest_docs import AGGREGATION, description_of, served

GIGABYTE = 1 << 30
JOBS = "/systems/aggregation/jobs"
PATIENCE_S = 60.0
SERVER = """
import resource, sys
from pathlib import Path
from tests.unit.controller.rest.test_body_limits import application
from tests.unit.controller.rest.test_rest_docs import served
def most_bytes():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) << 10
with served(application(), Path(sys.argv[1])) as client:
    client.get("/topology")
    before = most_bytes()
    print("ready", flush=True)
    sys.stdin.readline()
    print(most_bytes() - before, flush=True)
"""


def application() -> FastAPI:
    (service,) = load_services([ServiceConfig(name="aggregation", service=AGGREGATION)])
    return description_of("aggregation", service)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    with served(application(), tmp_path) as found:
        yield found


def test_a_body_that_says_it_is_too_long(client: httpx.Client) -> None:
    refused = client.post(JOBS, content=bytes(MAX_BODY_BYTES + 1), headers={"Content-Type": "application/json"})
    assert refused.status_code == 413
    assert refused.json() == {"detail": f"the body is longer than {MAX_BODY_BYTES} bytes"}
    assert client.get("/topology").status_code == 200


def test_a_body_that_does_not_say_how_long_it_is_is_not_kept(tmp_path: Path) -> None:
    """Its server, a process of its own, takes no more memory for a gigabyte than the limit and what goes with it."""
    command = [sys.executable, "-c", SERVER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        head = f"POST {JOBS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += "Transfer-Encoding: chunked\r\n\r\n"
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE_S)
            connection.connect(str(tmp_path / "rest.sock"))
            connection.sendall(head.encode())
            chunk = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
            try:
                for _ in range(GIGABYTE >> 20):
                    connection.sendall(chunk)
            except OSError:
                pass  # it has hung up
            assert b" 413 " in connection.recv(1 << 16)
        more_bytes = int(server.communicate("\n")[0])
    assert more_bytes < 8 * MAX_BODY_BYTES == 128 << 20


def test_bodies_that_never_come_hold_nobody_up(tmp_path: Path) -> None:
    with served(application(), tmp_path) as client:
        left = [socket.socket(socket.AF_UNIX) for _ in range(200)]
        for number, connection in enumerate(left):
            connection.connect(str(tmp_path / "rest.sock"))
            head = f"POST {JOBS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n".encode()
            connection.sendall((head, head[:20], b"")[number % 3])
        assert client.get("/topology").status_code == 200
        for connection in left:
            connection.close()


def test_many_may_wait_while_the_server_is_busy(tmp_path: Path) -> None:
    """A unix socket refuses at once who does not fit in its backlog."""
    app, busy, done = FastAPI(), threading.Event(), threading.Event()

    @app.get("/busy")
    async def hold_the_loop() -> None:
        busy.set()
        done.wait(PATIENCE_S)

    with served(app, tmp_path) as client, contextlib.ExitStack() as waiting:
        asked = threading.Thread(target=client.get, args=("/busy",))
        asked.start()
        assert busy.wait(PATIENCE_S)
        try:
            for _ in range(400):
                connection = waiting.enter_context(socket.socket(socket.AF_UNIX))
                connection.setblocking(False)
                connection.connect(str(tmp_path / "rest.sock"))
        finally:
            done.set()
            asked.join()


def test_a_body_that_takes_too_long_is_refused() -> None:
    """Its bytes come one by one: it is the whole that has an end."""

    async def drops() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    async def answered() -> httpx.Response:
        transport = httpx.ASGITransport(BodyLimits(application(), timeout_s=0.2))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post(JOBS, content=drops(), headers={"Content-Type": "application/json"})

    refused = asyncio.run(answered())
    assert refused.status_code == 408
    assert refused.json() == {"detail": "the body did not arrive within 0.2 s"}
