"""The page of the live view in a browser: what its tests share."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradbed.experiments.live.recording import RecordingSource
from gradbed.experiments.live.server import Pages, address, listen, make_token, page_server
from tests.browser.browser import IN_TIME_S

FLAGS = ("--enable-precise-memory-info", "--js-flags=--expose-gc")
SIZE = {"width": 1400, "height": 900}


@contextmanager
def served(shown: RecordingSource) -> Iterator[str]:
    """The page's address, while it is served from a thread."""
    token, pages = make_token(), Pages()
    with listen() as listener:
        server = page_server(shown, pages, token)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
        thread.start()
        try:
            yield address(listener, token)
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def opened(chromium: Any, url: str, **options: Any) -> Iterator[Any]:
    """A page; what it complains of fails the test."""
    page = chromium.new_page(**{"viewport": SIZE, **options})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        page.goto(url)
        yield page
        assert complaints == []
    finally:
        page.close()


def until(page: Any, condition: str) -> None:
    """Wait for what an expression says of the page (its policy forbids what Playwright would do)."""
    deadline = time.monotonic() + IN_TIME_S
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, f"not in time: {condition}"
        time.sleep(0.05)
