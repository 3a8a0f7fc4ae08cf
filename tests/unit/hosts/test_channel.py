"""Commands in, events out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hosts.agents.channel import BEGIN, STOP, Channel


@dataclass
class Ends:
    channel: Channel
    control: int
    events: int
    traffic: tuple[int, int]


@pytest.fixture
def ends() -> Iterator[Ends]:
    control_read, control_write = os.pipe()
    events_read, events_write = os.pipe()
    traffic = os.pipe()
    yield Ends(Channel(7, "worker 3", control_read, events_write), control_write, events_read, traffic)
    for descriptor in (control_read, events_read, events_write, *traffic):
        os.close(descriptor)


def test_events_are_lines_of_json(ends: Ends) -> None:
    ends.channel.emit("ready")
    ends.channel.emit("round", round=1, loss=0.5)
    lines = os.read(ends.events, 4096).splitlines()
    assert [json.loads(line) for line in lines] == [
        {"event": "ready", "job": 7, "name": "worker 3"},
        {"event": "round", "job": 7, "name": "worker 3", "round": 1, "loss": 0.5},
    ]
    os.close(ends.control)


def test_begin_and_then_stop(ends: Ends) -> None:
    os.write(ends.control, BEGIN)
    assert ends.channel.wait_for_begin()
    assert not ends.channel.stopped
    os.write(ends.control, STOP)
    ends.channel.wait(ends.traffic[0], None)
    assert ends.channel.stopped
    assert not ends.channel.wait_for_begin()
    os.close(ends.control)


def test_waiting_ends_with_traffic_or_time_and_ignores_a_late_begin(ends: Ends) -> None:
    ends.channel.wait(ends.traffic[0], 1)
    os.write(ends.traffic[1], b"x")
    ends.channel.wait(ends.traffic[0], None)
    os.write(ends.control, BEGIN)
    ends.channel.wait(ends.traffic[0], None)
    assert not ends.channel.stopped
    os.close(ends.control)


def test_a_launcher_that_is_gone_means_stop(ends: Ends) -> None:
    os.close(ends.control)
    assert not ends.channel.wait_for_begin()
    assert ends.channel.stopped
