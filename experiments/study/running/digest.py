"""What identifies a point: a digest of all that it depends on."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from experiments.scale import Scale
from experiments.study.definition.model import Point
from experiments.study.running.sources import source_digest

DIGEST_CHARACTERS = 20


def identity(system: str, point: Point, scale: Scale) -> dict[str, Any]:
    """System, resolved configuration (with every default, and what does not matter set to one value), seed, scale and
    the program's sources, as plain JSON values."""
    return {
        "system": system,
        "configuration": point.configuration.canonical().model_dump(mode="json"),
        "seed": point.seed,
        "scale_factor": scale.factor,
        "sources": source_digest(system),
    }


def digest(identified: Any) -> str:
    """Equal for equal JSON values, however they were written down."""
    text = json.dumps(identified, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]
