"""Programs built before: the model and the name of the library, by all that went into them.

The cache of gradbed.common.c_library goes by the C text, which takes longer to generate for a large program than to
load it.
"""

from __future__ import annotations

import functools
import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gradbed.common.c_library import compiler, compiler_flags
from gradbed.common.store import cache_dir, digest_of, stored
from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.runtime.library import RUNTIME_HEADERS


def cache_entry(bmv2_json: Mapping[str, Any], optimise: str, extra_flags: Sequence[str] = ()) -> Path | None:
    """Where the build of this program with these flags is noted; None if the program is not even JSON."""
    try:
        text = json.dumps(bmv2_json, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return None
    flags = compiler_flags(optimise, extra_flags)
    return cache_dir() / f"program-{digest_of([*compiler(), *flags, _generator_digest(), text])}.model"


def find_build(entry: Path) -> tuple[ProgramModel, Path] | None:
    """Model and library, if the cache has both."""
    try:
        library_name, model = pickle.loads(entry.read_bytes())
        library = entry.with_name(library_name)
    except (OSError, EOFError, LookupError, ValueError, TypeError, AttributeError, ImportError, pickle.PickleError):
        # There is none, or it was damaged (as by a full disk): it is written anew.
        return None
    return (model, library) if isinstance(model, ProgramModel) and library.exists() else None


def note_build(entry: Path, model: ProgramModel, library: Path) -> None:
    """Remember a build whose library lies in the cache."""
    entry.unlink(missing_ok=True)
    stored(lambda note: note.write_bytes(pickle.dumps((library.name, model))), entry)


@functools.cache
def _generator_digest() -> str:
    """Of the code generator and of the headers that its output includes."""
    switch = Path(__file__).resolve().parents[1]
    sources = sorted(path for folder in ("bmv2_json", "codegen") for path in (switch / folder).rglob("*.py"))
    return digest_of((), [*sources, *RUNTIME_HEADERS])
