"""The cache of compiled files, by a digest of their inputs."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from gradbed.common.caller import trusted_uids
from gradbed.common.errors import UserError


def cache_dir() -> Path:
    """GRADBED_CACHE, else XDG_CACHE_HOME/gradbed, else ~/.cache/gradbed."""
    own = os.environ.get("GRADBED_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gradbed"


def make_cache_folder(folder: Path) -> None:
    """Make a folder of the cache, or all of it, that no other account can open: what is compiled is loaded and run.

    Raises:
        UserError: As `check_cache`.
    """
    check_cache()
    for each in (cache_dir(), folder):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)


def check_cache() -> None:
    """Raise UserError where another account could put something into the cache, which would run as this one."""
    folder = cache_dir()
    try:
        found = folder.stat()
    except OSError:
        return
    if found.st_uid not in trusted_uids() or found.st_mode & stat.S_IWOTH:
        raise UserError(f"other accounts can write to the cache {folder}, whose programs are run: set GRADBED_CACHE")


def digest_of(texts: Iterable[str | bytes], files: Iterable[Path] = ()) -> str:
    """Return the digest of texts and of files, their names and contents."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update((text.encode() if isinstance(text, str) else text) + b"\0")
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def stored(make: Callable[..., object], *places: Path) -> None:
    """Have these files of one folder of the cache: if one is missing `make` writes all, to the paths it is given.

    UserError if the cache cannot be written, or others can write to it.
    """
    check_cache()
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
