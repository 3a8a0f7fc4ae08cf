"""The page's memory stays bounded: what ten minutes of a k=4 fat-tree at ten updates a second tell it, faster."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from gradbed.experiments.live import server
from gradbed.experiments.live.recording import VERSION, Recording, with_places
from gradbed.topo.registry import parse_topology
from tests.browser.browser import BROWSER, WHY_NOT, browser
from tests.browser.live_pages import FLAGS, opened, served, until

pytest.importorskip("playwright", reason="Playwright is not installed")
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(BROWSER is None, reason=WHY_NOT), pytest.mark.nightly]

UPDATES = 6000
MOST_BYTES = 100e6
REDRAWN = 1500


class Growing:
    """A network that sends everywhere; every link changes with every update."""

    is_live = True
    generation = 1

    def __init__(self) -> None:
        topology = parse_topology("fat-tree:4")
        links = [
            {"a": link.a.node, "b": link.b.node, "a_port": link.a.port, "b_port": link.b.port}
            | {"rate_bps": 1e8, "delay_us": 50, "queue_packets": 100}
            for link in topology.links
        ]
        nodes: list[dict[str, Any]] = [{"name": host.name, "tier": None} for host in topology.hosts]
        nodes += [{"name": each.name, "tier": each.tier, "number": each.number} for each in topology.switches]
        self.directions = 2 * len(links)
        self.recording = Recording()
        begin = {"kind": "begin", "version": VERSION, "t_us": 0, "title": "test", "clock": "real", "programs": {}}
        self.recording.add(with_places({**begin, "nodes": nodes, "links": links}))

    def grow(self) -> None:
        draw = random.Random(1)
        for update in range(UPDATES):
            t_us = 100_000 * (update + 1)
            links = {
                str(direction): [update * 10, update * 15_000 + draw.randrange(9000), 0, draw.randrange(20)]
                for direction in range(self.directions)
            }
            self.recording.add({"kind": "frame", "t_us": t_us, "links": links})
            row = {"phase": "p", "job": 1, "name": "loss", "round": update, "value": draw.random()}
            self.recording.add({"kind": "value", "t_us": t_us, **row})
            self.recording.add({"kind": "event", "t_us": t_us, "level": "note", "text": f"event {update}"})
            time.sleep(0.002)
        self.recording.add({"kind": "end", "t_us": 100_000 * UPDATES})

    def names(self) -> list[str]:
        return []

    def choose(self, number: int) -> None: ...

    def command(self, command: Mapping[str, Any]) -> None: ...


def test_ten_minutes_of_a_fat_tree_take_less_than_100_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "UPDATE_S", 0.01)
    shown = Growing()
    feeding = threading.Thread(target=shown.grow, daemon=True)
    with served(shown) as url, browser(*FLAGS) as chromium, opened(chromium, url) as page:
        until(page, "gradbed.store().begin !== null")
        page.evaluate("gradbed.choose({link: 0})")
        feeding.start()
        until(page, "gradbed.store().ended")
        told = page.evaluate("gradbed.store().told")
        # Drawing leaves nothing behind, either.
        page.evaluate(
            f"for (let i = 0; i < {REDRAWN}; i += 1) {{"
            f"  document.getElementById('time').value = 1000 * i / {REDRAWN};"
            "  document.getElementById('time').dispatchEvent(new Event('input'));"
            "}"
        )
        page.evaluate("gc()")
        used = page.evaluate("performance.memory.usedJSHeapSize")
        frames = page.evaluate("gradbed.store().frames.length")
        arrays = page.evaluate("gradbed.store().frames.length * gradbed.store().state.byteLength")
    feeding.join()
    print(f"{told} rows told, {frames} frames kept, {used / 1e6:.1f} MB of heap, {arrays / 1e6:.1f} MB in arrays")
    assert told == 3 * UPDATES + 2
    assert used + arrays < MOST_BYTES
