"""The list of this project's own externs: what a new one is registered by."""

from __future__ import annotations

from gradbed.switch.state.externs.count_min_sketch import COUNT_MIN_SKETCH
from gradbed.switch.state.externs.kind import ExternKind

EXTERNS: dict[str, ExternKind] = {kind.name: kind for kind in (COUNT_MIN_SKETCH,)}
"""By name."""
