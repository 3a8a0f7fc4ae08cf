"""P4 programs compiled once: BMv2 JSON and P4Info in the cache, by content."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gradbed.common.store import cache_dir, digest_of, stored
from gradbed.switch.p4lang.p4c import compile_with_p4c, version


@dataclass(frozen=True)
class CompiledFiles:
    """The files of a program that a controller pushes: BMv2 JSON, and P4Info as text."""

    json: Path
    p4info: Path


def compiled_files(source: Path, defines: Mapping[str, str], p4c: str | None = None) -> CompiledFiles:
    """Compile `source` with our compiler, or with the p4c at this path.

    Taken from the cache if neither the compiler nor any file that the source includes has changed. UserError (our
    compiler's is CompileError) if the program is wrong.
    """
    digest = digest_of([version(p4c) if p4c else _compiler_digest(), input_digest(source, defines)])
    stem = f"{source.stem}-{digest}"
    files = CompiledFiles(cache_dir() / f"{stem}.json", cache_dir() / f"{stem}.p4info.txt")

    def compile_(json: Path, p4info: Path) -> None:
        if p4c is None:
            _compile(source, defines, CompiledFiles(json, p4info))
        else:
            compile_with_p4c(p4c, source, defines, json, p4info)

    stored(compile_, files.json, files.p4info)
    return files


def input_digest(source: Path, defines: Mapping[str, str]) -> bytes:
    """Return a digest of all that a compiler reads: the source, the files that it includes with these macros, and the
    macros.

    Raises UserError if the source cannot be read.
    """
    from gradbed.switch.compiler import input_files

    key = (source, tuple(sorted(defines.items())))
    known = _input_digests.get(key)
    if known is None or _states(known[0]) != known[0]:
        digest = hashlib.sha256(source.name.encode())
        files = input_files(source, defines=defines)
        # A file that is new may be in another's place: folders change with it.
        states = _states({place for file in files for place in (file.path, file.directory)})
        for file in files:  # the macros are the first of them
            digest.update(f"{file.short_name}\0{file.text}\0".encode())
        known = _input_digests[key] = (states, digest.digest())
    return known[1]


_States = dict[Path, tuple[int, int] | None]
_input_digests: dict[tuple[Path, tuple[tuple[str, str], ...]], tuple[_States, bytes]] = {}
"""By source and macros, with the files as they were: reading them all takes a tenth of a second."""


def _states(places: Iterable[Path]) -> _States:
    found: _States = {}
    for place in places:
        try:
            state = place.stat()
            found[place] = (state.st_mtime_ns, state.st_size)
        except OSError:
            found[place] = None
    return found


@functools.cache
def _compiler_digest() -> str:
    """Return a digest of our compiler and of its externs; its .p4 files are among those that a program includes."""
    switch = Path(__file__).parent
    return digest_of((), [*sorted((switch / "compiler").rglob("*.py")), switch / "state/externs.py"])


def _compile(source: Path, defines: Mapping[str, str], files: CompiledFiles) -> None:
    from gradbed.switch.compiler import compile_p4

    compiled = compile_p4(source, defines=defines)
    files.p4info.write_text(compiled.p4info_text)
    files.json.write_text(compiled.json_text)
