"""The channel never holds up the network."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from gradbed.experiments.live.observer import Feed


@pytest.fixture
def ends() -> Iterator[tuple[Feed, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Feed(ours), theirs


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, 0.001])
def test_without_a_command_nobody_waits_for_long(ends: tuple[Feed, socket.socket], timeout_s: float) -> None:
    """Also when the time for which a slow clock is ahead has gone by meanwhile."""
    assert ends[0].commands(timeout_s) == []


def test_commands_come_whole(ends: tuple[Feed, socket.socket]) -> None:
    feed, theirs = ends
    text = b'{"command": "pause"}\n{"command": "run"}\n{"comm'
    theirs.sendall(text)
    assert [each["command"] for each in feed.commands()] == ["pause", "run"]
    theirs.sendall(b'and": "step", "step_us": 0}\n')
    assert feed.commands() == [{"command": "step", "step_us": 0}]


def test_a_page_that_has_gone_stops_nobody(ends: tuple[Feed, socket.socket]) -> None:
    feed, theirs = ends
    feed.send({"kind": "frame"})
    assert json.loads(theirs.recv(1000)) == {"kind": "frame"}
    theirs.close()
    feed.send({"kind": "frame"})
    feed.send({"kind": "frame"})
    assert not feed.is_open
    assert feed.commands(0.1) == []
