"""Events of many processes on one pipe."""

from __future__ import annotations

import json
import os

from gradbed.hosts.agents.launching import write_event

WRITERS, LINES, LONG = 4, 40, 30_000
"""Longer than what a pipe takes at once (PIPE_BUF, 4,096 bytes)."""


def test_long_lines_of_several_processes_do_not_mix() -> None:
    reader, writer = os.pipe()
    children = []
    for number in range(WRITERS):
        if (pid := os.fork()) == 0:
            os.close(reader)  # or nobody would be told that the test has failed
            try:
                for line in range(LINES):
                    write_event(writer, "said", name=number, line=line, text=str(number) * (LONG if line % 2 else 1))
            finally:
                os._exit(0)
        children.append(pid)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        events = [json.loads(line) for line in stream]
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    assert len(events) == WRITERS * LINES
    for number in range(WRITERS):
        own = [event for event in events if event["name"] == number]
        assert [event["line"] for event in own] == list(range(LINES))
        assert all(set(event["text"]) == {str(number)} for event in own)
