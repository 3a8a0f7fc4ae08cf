"""A server has all its threads from the beginning: what a crowd asks for later adds none."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from gradbed.switch.server.server import BUILD_THREADS, REQUEST_THREADS
from tests.unit.p4runtime.client import Client, entry
from tests.unit.p4runtime.sample_program import HOSTS

CROWD, TURNS = 2 * REQUEST_THREADS, 5
EXPECTED = {"p4runtime-request": REQUEST_THREADS, "p4runtime-build": BUILD_THREADS}


def pools() -> dict[str, int]:
    """How many threads each pool of the server has, by their names."""
    counts = Counter(thread.name.rsplit("_", 1)[0] for thread in threading.enumerate())
    return {name: counts[name] for name in EXPECTED}


def test_a_crowd_adds_no_thread(client: Client) -> None:
    assert pools() == EXPECTED
    with ThreadPoolExecutor(CROWD) as crowd:
        list(crowd.map(lambda _: client.read(entry(HOSTS)), range(CROWD * TURNS)))
    assert pools() == EXPECTED
