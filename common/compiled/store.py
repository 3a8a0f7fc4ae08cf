"""Where compiled things are kept: made once, found by what went into them."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from common.errors import UserError


def cache_dir() -> Path:
    """GRADBED_CACHE, else XDG_CACHE_HOME/gradbed, else ~/.cache/gradbed."""
    own = os.environ.get("GRADBED_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gradbed"


def make_cache_folder(folder: Path) -> None:
    """One of the cache, or all of it: nobody else can open it, since what is compiled is loaded and run."""
    for each in (cache_dir(), folder):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)


def digest_of(texts: Iterable[str | bytes], files: Iterable[Path] = ()) -> str:
    """Of texts and of files, their names and contents."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update((text.encode() if isinstance(text, str) else text) + b"\0")
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def stored(make: Callable[..., object], *places: Path) -> None:
    """Have these files of one folder of the cache: if one is missing `make` writes all, to the paths it is given.

    UserError if the cache cannot be written.
    """
    if all(place.exists() for place in places):
        return
    folder = places[0].parent
    try:
        make_cache_folder(folder)
    except OSError as error:
        raise UserError(f"cannot make the cache {folder} ({error.strerror}): set GRADBED_CACHE") from None
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = [Path(scratch) / place.name for place in places]
        make(*made)
        # A rename is atomic: who makes or reads the same beside this never sees half a file.
        for new, place in zip(made, places, strict=True):
            new.replace(place)
