"""The end of a run: what is still on its way is taken in and counted."""

from __future__ import annotations

from collections.abc import Callable

from gradbed.hosts.agents.context import AgentContext

QUIET_US = 50_000
"""Silence after which no frame is expected any more."""


def drain(context: AgentContext, receive: Callable[[], object | None]) -> None:
    """Call `receive`, which takes in one batch and returns None if there is none, until it is quiet."""
    quiet_us = context.now_us() + QUIET_US
    while context.now_us() < quiet_us:
        while receive() is not None:
            quiet_us = context.now_us() + QUIET_US
        context.wait(quiet_us)
