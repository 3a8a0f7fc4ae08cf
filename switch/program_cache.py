"""P4 programs compiled once: BMv2 JSON and P4Info in the cache, by content."""

from __future__ import annotations

import functools
import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from switch.build import cache_dir
from switch.p4c import compile_with_p4c, version


@dataclass(frozen=True)
class CompiledFiles:
    """What a controller pushes: BMv2 JSON, and P4Info as text."""

    json: Path
    p4info: Path


def compiled_files(source: Path, defines: Mapping[str, str], p4c: str | None = None) -> CompiledFiles:
    """Compile `source` with our compiler, or with the p4c at this path.

    Taken from the cache if neither the compiler nor any file that the source includes has changed. UserError (our
    compiler's is CompileError) if the program is wrong.
    """
    from switch.compiler import files_of

    digest = hashlib.sha256(repr((source.name, sorted(defines.items()))).encode())
    digest.update(version(p4c).encode() if p4c else _compiler_digest())
    for file in files_of(source, defines=defines):
        digest.update(f"{file.short_name}\0{file.text}\0".encode())
    stem = cache_dir() / f"{source.stem}-{digest.hexdigest()[:32]}"
    files = CompiledFiles(stem.with_name(f"{stem.name}.json"), stem.with_name(f"{stem.name}.p4info.txt"))
    if files.json.exists() and files.p4info.exists():
        return files
    stem.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=stem.parent) as folder:
        scratch = CompiledFiles(Path(folder) / files.json.name, Path(folder) / files.p4info.name)
        if p4c is None:
            _compile(source, defines, scratch)
        else:
            compile_with_p4c(p4c, source, defines, scratch.json, scratch.p4info)
        # A rename is atomic, so a run beside this one never reads half a file; the JSON comes last.
        scratch.p4info.replace(files.p4info)
        scratch.json.replace(files.json)
    return files


@functools.cache
def _compiler_digest() -> bytes:
    """Of our compiler; its .p4 files are among those that a program includes."""
    digest = hashlib.sha256()
    for path in sorted((Path(__file__).parent / "compiler").rglob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.digest()


def _compile(source: Path, defines: Mapping[str, str], files: CompiledFiles) -> None:
    from switch.compiler import compile_p4

    compiled = compile_p4(source, defines=defines)
    files.p4info.write_text(compiled.p4info_text)
    files.json.write_text(compiled.json_text)
