"""Serve the page of a network: beside a command that runs, or of the recording of one that is over.

It is served on loopback, to clients that have its token.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gradbed.common.errors import UserError
from gradbed.common.json_lines import own_program
from gradbed.controller.rest.middleware import AccessCheck, errors_in_one_line
from gradbed.experiments.live.packets import layers_of, trace_of
from gradbed.experiments.live.recording import (
    LONGEST_ROW_BYTES,
    Kept,
    LiveSource,
    RecordingSource,
    ReplaySource,
    recordings,
)

if TYPE_CHECKING:
    from gradbed.experiments.live.observer import LiveObserver

PAGE = Path(__file__).parent / "page"
TOKEN_BYTES = 16
UPDATE_S = 0.1
"""Pages hear of what is new so often."""
SILENCE_S = 10.0
"""So often they hear that there is nothing new, by which it is found out that one has gone."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Control(BaseModel):
    """Command to the virtual clock."""

    model_config = ConfigDict(extra="forbid")
    command: Literal["pause", "run", "step", "speed"]
    speed: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """Of "speed": network time over real time; None: as fast as possible."""
    step_us: Annotated[float, Field(ge=0, le=1e9)] = 0
    """Of "step": network time to run; 0: until the next event."""


class Watch(BaseModel):
    """Switch and link (by number) that a page shows in detail, and so gets more often."""

    model_config = ConfigDict(extra="forbid")
    switch: str | None = None
    link: Annotated[int, Field(ge=0)] | None = None


class Frame(BaseModel):
    """A packet in hexadecimal."""

    model_config = ConfigDict(extra="forbid")
    frame: Annotated[str, Field(pattern="^([0-9a-f]{2}){14,9234}$")]


class Traced(Frame):
    """A packet that arrives at a switch."""

    switch: str
    port: Annotated[int, Field(ge=0, le=511)]


class Guard:
    """Answers those alone whose path begins with the token, and gives every answer the headers of the page."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                kept = [each for each in message["headers"] if each[0] not in dict(given)]
                message = {**message, "headers": [*kept, *given]}
            await send(message)

        token, slash, rest = scope["path"].lstrip("/").partition("/")
        if not secrets.compare_digest(token.encode(), self._token):
            answer = JSONResponse({"detail": "take the whole address that gradbed has printed: it has a token"}, 403)
            await answer(scope, receive, sent)
        elif not slash:
            await Response(status_code=307, headers={"location": f"/{token}/"})(scope, receive, sent)
        else:
            await self._app({**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}, receive, sent)


class Pages:
    """Number of open pages, and their server."""

    def __init__(self) -> None:
        self.open = 0
        self.server: uvicorn.Server | None = None

    @property
    def are_closing(self) -> bool:
        return self.server is not None and self.server.should_exit


def create_app(shown: RecordingSource, pages: Pages) -> FastAPI:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    @app.get("/stream")
    async def get_stream() -> StreamingResponse:
        return StreamingResponse(_stream(shown, pages), media_type="text/event-stream")

    @app.post("/control", status_code=204)
    def post_control(control: Control) -> Response:
        shown.command(control.model_dump())
        return Response(status_code=204)

    @app.post("/watch", status_code=204)
    async def post_watch(watch: Watch) -> Response:
        shown.command({"command": "watch", **watch.model_dump()})
        return Response(status_code=204)

    @app.post("/choose/{number}", status_code=204)
    def post_choose(number: int) -> Response:
        if not 0 <= number < len(shown.names()):
            raise UserError(f"there is no recording {number}")
        shown.choose(number)
        return Response(status_code=204)

    @app.post("/layers")
    def post_layers(packet: Frame) -> list[dict[str, Any]]:
        """The headers of a packet."""
        return layers_of(bytes.fromhex(packet.frame))

    @app.post("/trace")
    def post_trace(packet: Traced) -> dict[str, str]:
        """Return the trace of the packet through the switch's program."""
        recording = shown.recording
        begin, plans = recording.of("begin")[0], recording.of("plan")
        return {"text": trace_of(begin, plans, packet.switch, packet.port, packet.frame)}

    errors_in_one_line(app)
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    return app


async def _stream(shown: RecordingSource, pages: Pages) -> AsyncIterator[bytes]:
    """Server-sent events: `begin` with what can be chosen, then lists of rows; as they come, where a network runs."""
    pages.open += 1
    generation, told = -1, 0
    silent_s = 0.0
    try:
        while not pages.are_closing:
            if generation != shown.generation:
                generation, told = shown.generation, 0
                head = {"live": shown.is_live, "names": shown.names(), "chosen": generation}
                yield f"event: begin\ndata: {json.dumps(head)}\n\n".encode()
            rows = shown.recording.after(told)
            if rows:
                told = rows[-1].number
                yield _event(rows)
                silent_s = 0.0
            elif (silent_s := silent_s + UPDATE_S) >= SILENCE_S:
                silent_s = 0.0
                yield b": nothing new\n\n"
            await asyncio.sleep(UPDATE_S)
    finally:
        pages.open -= 1


def _event(rows: list[Kept]) -> bytes:
    data = ",".join(json.dumps(each.row, separators=(",", ":")) for each in rows)
    return f"data: [{data}]\n\n".encode()


def make_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def listen() -> socket.socket:
    """Listen on loopback, at a free port."""
    return socket.create_server(("127.0.0.1", 0))


def address(listener: socket.socket, token: str) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/{token}/"


def page_server(shown: RecordingSource, pages: Pages, token: str) -> uvicorn.Server:
    """Return the server of the page, to run in an event loop on a listening socket."""
    app = AccessCheck(Guard(create_app(shown, pages), token))
    config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off", ws="none")
    pages.server = uvicorn.Server(config)
    return pages.server


# ---- Replay of a run that is over ----


def replay(run: Path) -> int:
    """Serve the page of a recorded run until Ctrl-C.

    Raises:
        UserError: the run has no recording.
    """
    shown = ReplaySource(recordings(run))
    token = make_token()
    with listen() as listener:
        print(f"gradbed: replay of {run}: {address(listener, token)} (Ctrl-C ends it)", file=sys.stderr, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(page_server(shown, Pages(), token).serve(sockets=[listener]))
    return 0


# ---- Live view of a run ----


@contextlib.contextmanager
def live_view(*, paused: bool = False) -> Iterator[LiveObserver]:
    """Serve a page while a command runs, from a process of its own, and print its address.

    At the end the page stays until it is closed, or until Ctrl-C.
    """
    from gradbed.experiments.live.observer import Feed, LiveObserver  # the page's own process needs neither

    token = make_token()
    ours, theirs = socket.socketpair()
    with listen() as listener, ours:
        with theirs:
            server = subprocess.Popen(
                own_program("gradbed.experiments.live.server", str(listener.fileno()), str(theirs.fileno())),
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno(), theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the run
            )
        assert server.stdin is not None
        server.stdin.write(token.encode() + b"\n")
        server.stdin.close()
        print(f"gradbed: live view: {address(listener, token)}", file=sys.stderr, flush=True)
        observer = LiveObserver(Feed(ours), paused=paused)
        try:
            yield observer
        except BaseException:
            observer.on_abort()
            raise
        finally:
            listener.close()
            ours.close()
            _wait_for_page(server)


def _wait_for_page(server: subprocess.Popen[bytes]) -> None:
    """Wait until the page is closed."""
    try:
        server.wait()
    except KeyboardInterrupt:
        server.terminate()
        server.wait()


GONE_S = 3.0
"""Time without an open page after which the server of a network that has gone ends; a reload takes less."""
LOOK_S = 0.2


async def serve(listener: socket.socket, channel: socket.socket, token: str) -> None:
    """Serve until the network has gone and the last page was closed."""
    shown, pages = LiveSource(), Pages()
    server = page_server(shown, pages, token)
    reader, writer = await asyncio.open_unix_connection(sock=channel, limit=LONGEST_ROW_BYTES)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    listening = asyncio.create_task(shown.listen(reader, writer))
    await shown.ended.wait()
    await listening
    quiet_s = GONE_S
    if pages.open and shown.stays:
        quiet_s = 0.0
        print("gradbed: the live view stays until its page is closed, or Ctrl-C", file=sys.stderr, flush=True)
    while quiet_s < GONE_S and not serving.done():
        await asyncio.sleep(LOOK_S)
        quiet_s = 0.0 if pages.open else quiet_s + LOOK_S
    server.should_exit = True
    with contextlib.suppress(asyncio.CancelledError):
        await serving


def main() -> None:
    """Run the server's process.

    Its arguments are the descriptors of a listening socket and of the channel; the token comes on standard input,
    which others cannot see in the list of processes.
    """
    listener, channel = (socket.socket(fileno=int(argument)) for argument in sys.argv[1:3])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(serve(listener, channel, sys.stdin.readline().strip()))


if __name__ == "__main__":
    main()
