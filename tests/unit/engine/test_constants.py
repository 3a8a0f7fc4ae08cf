"""What hosts, the engine's Python and its C say of queue pairs and collectives has the same numbers."""

from __future__ import annotations

import re

from gradbed.hosts.agents import queue_pairs as agents_queue_pairs
from gradbed.hosts.agents.queue_pairs import CompletionKind
from gradbed.switch.engine import queue_pairs
from gradbed.switch.runtime.library import RUNTIME_DIR

_TRANSPORT = RUNTIME_DIR / "engine/transport"
_PAIRS = (_TRANSPORT / "queue_pairs.h").read_text()
_COLLECTIVES = (_TRANSPORT / "collectives/collectives.h").read_text()


def _enum(header: str, name: str, prefix: str) -> dict[str, int]:
    """Members of an enum that counts from 0, without their prefix."""
    body = re.search(rf"enum {name} {{(.*?),?\s*}};", header, re.DOTALL)
    assert body is not None
    members = [each.strip() for each in body[1].split(",")]
    assert all(re.fullmatch(rf"{prefix}\w+", each) for each in members)
    return {each.removeprefix(prefix): number for number, each in enumerate(members)}


def test_turn_bits() -> None:
    bits = re.search(r"#define GB_TURN_BITS (\d+)", _COLLECTIVES)
    assert bits is not None
    assert int(bits[1]) == queue_pairs.TURN_BITS == agents_queue_pairs.TURN_BITS


def test_kinds_of_steps() -> None:
    kinds = _enum(_COLLECTIVES, "gb_step", "GB_STEP_")
    for module in (queue_pairs, agents_queue_pairs):
        assert {name: getattr(module, name) for name in kinds} == kinds


def test_kinds_of_completions() -> None:
    """Agents are not told that a collective has ended."""
    kinds = _enum(_PAIRS, "gb_completion_kind", "GB_COMPLETION_")
    assert {name: getattr(queue_pairs, name) for name in kinds} == kinds
    assert {kind.name: kind.value for kind in CompletionKind} | {"COLLECTIVE_ENDED": len(kinds) - 1} == kinds
