"""What a program gives as values and studies need as files: kept by content among gradbed's own files, so that a
run's record goes on naming what it was."""

from __future__ import annotations

from pathlib import Path


def kept_text(kind: str, text: str, suffix: str) -> Path:
    """The file with this text, made if it is not there yet."""
    from gradbed.common.store import cache_dir, digest_of, make_cache_folder

    path = cache_dir() / kind / f"{digest_of([text])}{suffix}"
    if not path.exists():
        make_cache_folder(path.parent)
        scratch = path.with_name(f".{path.name}")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    return path
