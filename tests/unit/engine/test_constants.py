"""What hosts and the engine's Python say of queue pairs and collectives has the same numbers.

Hosts import nothing of switches. The engine's numbers are those of its headers.
"""

from __future__ import annotations

from gradbed.hosts.agents import queue_pairs as agents_queue_pairs
from gradbed.hosts.agents.queue_pairs import CompletionKind
from gradbed.switch.engine import queue_pairs


def test_turn_bits() -> None:
    assert queue_pairs.TURN_BITS == agents_queue_pairs.TURN_BITS


def test_kinds_of_steps() -> None:
    for name in ("SEND", "RECEIVE", "ADD", "COPY"):
        assert getattr(queue_pairs, name) == getattr(agents_queue_pairs, name), name


def test_kinds_of_completions() -> None:
    for kind in CompletionKind:
        assert getattr(queue_pairs, kind.name) == kind.value, kind
