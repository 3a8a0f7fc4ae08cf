"""REST clients that send a byte now and then, or never read: others are served, and they are sent away."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from unittest.mock import create_autospec

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from uvicorn.server import ServerState

from gradbed.controller.rest import server as rest_server
from gradbed.controller.rest.server import RestServer, TimeoutProtocol, listening_socket
from tests.waiting import wait_until

LORIS, DEAF, USUAL = 100, 20, 30
BIG_BYTES = 8 << 20
SHORT_S = 0.4


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of a server that waits for nobody."""
    monkeypatch.setattr(rest_server, "REQUEST_TIMEOUT_S", SHORT_S)
    monkeypatch.setattr(rest_server, "ANSWER_TIMEOUT_S", SHORT_S)
    app = FastAPI()

    @app.get("/big")
    def big() -> PlainTextResponse:
        return PlainTextResponse("x" * BIG_BYTES)

    @app.get("/late")
    def late() -> str:
        time.sleep(3 * SHORT_S)
        return "late"

    @app.post("/echo")
    def echo(words: list[str]) -> list[str]:
        return words

    with listening_socket("127.0.0.1:0") as listener:
        server = RestServer(app, [listener])
        server.start()
        yield listener.getsockname()[1]
        server.stop()


def connection(stack: ExitStack, port: int, sent: bytes) -> socket.socket:
    made = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
    made.sendall(sent)
    made.settimeout(20)
    return made


def is_closed(client: socket.socket) -> bool:
    """Whether the server has closed it; what it answered before is taken."""
    try:
        while client.recv(1 << 20):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


HEAD = b"GET /big HTTP/1.1\r\nHost: localhost\r\n"
BODY = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n["


def test_others_are_served_and_who_does_not_act_is_sent_away(port: int, caplog: pytest.LogCaptureFixture) -> None:
    """A third of the slow ones says nothing, a third stays in its headers, a third in its body."""
    with ExitStack() as stack:
        slow = [connection(stack, port, (b"", HEAD, BODY)[number % 3]) for number in range(LORIS)]
        deaf = [connection(stack, port, HEAD + b"\r\n") for _ in range(DEAF)]
        go_on = threading.Event()

        def trickle() -> None:
            """A byte now and then puts nothing off."""
            while not go_on.wait(SHORT_S / 4):
                for each in slow[1:]:
                    try:
                        each.send(b"x")
                    except OSError:
                        continue

        thread = threading.Thread(target=trickle)
        thread.start()
        for number in range(USUAL):
            words = [str(number)]
            answer = httpx.post(f"http://127.0.0.1:{port}/echo", json=words, timeout=20)
            assert (answer.status_code, answer.json()) == (200, words)
        said = "does not send the whole of its request"
        wait_until(lambda: caplog.text.count(said) >= LORIS and caplog.text.count("does not read its answer") >= DEAF)
        go_on.set()
        thread.join()
        assert all(is_closed(each) for each in (*slow, *deaf))


def test_a_crowd_that_says_nothing_makes_room(
    port: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Long before its time is over. Who came last stays, and is served."""
    monkeypatch.setattr(rest_server, "REQUEST_TIMEOUT_S", 600.0)
    monkeypatch.setattr(rest_server, "MAX_CONNECTIONS", 20)
    monkeypatch.setattr(TimeoutProtocol, "_warned_at_s", -math.inf)
    with ExitStack() as stack:
        crowd = [connection(stack, port, HEAD if number % 2 else b"") for number in range(60)]
        assert all(is_closed(each) for each in crowd[:40])
        for each in crowd[-19:]:
            each.settimeout(SHORT_S / 10)
            with pytest.raises(TimeoutError):
                each.recv(1)
        assert httpx.post(f"http://127.0.0.1:{port}/echo", json=["x"], timeout=20).json() == ["x"]
        crowd[-1].settimeout(20)
        crowd[-1].sendall(b"Connection: close\r\n\r\n")
        assert crowd[-1].recv(100).startswith(b"HTTP/1.1 200")
    assert caplog.text.count("connections: those that wait longest are closed") == 1


@pytest.mark.thorough
def test_who_acts_is_served_however_long_the_answer_takes(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        assert client.get("/late").json() == "late"
        # On the same connection.
        assert client.get("/late").json() == "late"
        assert len(client.get("/big").content) == BIG_BYTES


def test_who_reads_slowly_but_steadily_is_not_sent_away() -> None:
    """Of what waits for the client something is gone at each look, but at the last."""
    transport = create_autospec(asyncio.Transport, instance=True)
    transport.get_extra_info.return_value = None
    transport.is_closing.return_value = False
    transport.get_write_buffer_size.side_effect = [900, 800, 100, 100]

    async def looks() -> list[bool]:
        config = uvicorn.Config(FastAPI(), http=TimeoutProtocol, lifespan="off")
        config.load()
        protocol = TimeoutProtocol(config=config, server_state=ServerState(), app_state={})
        protocol.connection_made(transport)
        protocol.pause_writing()
        aborted = []
        for _ in range(3):
            protocol._answer_is_late()
            aborted.append(transport.abort.called)
        protocol.connection_lost(None)
        return aborted

    assert asyncio.run(looks()) == [False, False, True]
