"""What identifies a point: a digest of all that it depends on."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.point import PointConfiguration
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.definition.model import Point
from gradbed.experiments.study.running.sources import source_digest

DIGEST_CHARACTERS = 20


def identity(system: str, point: Point, scale: Scale) -> dict[str, Any]:
    """System, resolved configuration (with every default, and what does not matter set to one value), what is in the
    files that it names, seed, scale and the program's sources, as plain JSON values."""
    return {
        "system": system,
        "configuration": point.configuration.canonical().model_dump(mode="json"),
        "files": _files(point.configuration),
        "seed": point.seed,
        "scale_factor": scale.factor,
        "sources": source_digest(system),
    }


def _files(configuration: PointConfiguration) -> dict[str, str]:
    """By path. The point itself says what is wrong with files that cannot be read."""
    found = {}
    with contextlib.suppress(UserError):
        for path in configuration.files():
            with contextlib.suppress(OSError):
                state = path.stat()
                found[str(path)] = _digest_of_file(path, state.st_mtime_ns, state.st_size)
    return found


@functools.cache
def _digest_of_file(path: Path, _mtime_ns: int, _size: int) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def digest(identified: Any) -> str:
    """Equal for equal JSON values, however they were written down."""
    text = json.dumps(identified, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]
