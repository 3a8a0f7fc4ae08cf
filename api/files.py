"""Files for what programs pass as values and studies need as files.

They are kept by content among gradbed's own files, so that the record of a run continues to name its input.
"""

from __future__ import annotations

from pathlib import Path


def kept_text(kind: str, text: str, suffix: str) -> Path:
    """Return the file with this text, created if it does not exist yet."""
    from gradbed.common.store import cache_dir, digest_of, make_cache_folder

    path = cache_dir() / kind / f"{digest_of([text])}{suffix}"
    if not path.exists():
        make_cache_folder(path.parent)
        scratch = path.with_name(f".{path.name}")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    return path
