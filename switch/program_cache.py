"""P4 programs compiled once: BMv2 JSON and P4Info in the cache, by content."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from switch.build import cache_dir


@dataclass(frozen=True)
class CompiledFiles:
    """What a controller pushes: BMv2 JSON and P4Info as text."""

    json: Path
    p4info: Path


def compiled_files(source: Path, defines: Mapping[str, str]) -> CompiledFiles:
    """Compile `source`, or take it from the cache if neither compiler nor any .p4 file beside it has changed.

    Raises CompileError (a UserError) as the compiler does.
    """
    compiler = Path(__file__).parent / "compiler"
    inputs = [*sorted(compiler.rglob("*.py")), *sorted(compiler.rglob("*.p4")), *sorted(source.parent.rglob("*.p4"))]
    digest = hashlib.sha256(repr((source.name, sorted(defines.items()))).encode())
    for path in inputs:
        digest.update(str(path.name).encode() + b"\0" + path.read_bytes() + b"\0")
    stem = cache_dir() / f"{source.stem}-{digest.hexdigest()[:32]}"
    files = CompiledFiles(stem.with_suffix(".json"), stem.with_suffix(".p4info.txt"))
    if not (files.json.exists() and files.p4info.exists()):
        from switch.compiler import compile_p4

        compiled = compile_p4(source, defines=defines)
        stem.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(files.p4info, compiled.p4info_text)
        _write_whole(files.json, compiled.json_text)
    return files


def _write_whole(path: Path, text: str) -> None:
    # Renamed when complete, so that a run beside this one never reads half a file.
    descriptor, scratch = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    os.chmod(scratch, 0o644)
    os.replace(scratch, path)
