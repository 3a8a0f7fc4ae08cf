"""C programs with the compiler's sanitizers. Objects are kept by their content, as compiled P4 programs are: several
tests are built of the same runtime, and compiling that takes longer than they do."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from switch.build import RUNTIME_DIR, RUNTIME_HEADERS, compiler
from switch.store import cache_dir, digest_of, stored

MEMORY, THREADS = "address,undefined", "thread"

FLAGS = ("-std=gnu11", "-g", "-O1", "-fno-strict-aliasing", "-fno-sanitize-recover=all")
STRICT = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter")
"""Of written code; generated code has variables that it does not use."""


def sanitized(target: Path, sources: Sequence[Path], generated: str = "", checks: str = MEMORY) -> Path:
    """Build `target` of C files, which include the runtime's headers, and of generated C. Skips the test if this
    compiler has no such sanitizers."""
    _require(checks)
    objects = [_object(source.stem, source.read_text(), checks, STRICT, source.parent) for source in sources]
    if generated:
        objects.append(_object("program", generated, checks, (), RUNTIME_DIR))
    command = [compiler()[0], f"-fsanitize={checks}", "-o", str(target), *map(str, objects), "-lpthread", "-lm"]
    subprocess.run(command, check=True)
    return target


def _object(name: str, text: str, checks: str, more: Sequence[str], folder: Path) -> Path:
    flags = [*FLAGS, *more, f"-fsanitize={checks}"]
    headers = sorted({*RUNTIME_HEADERS, *folder.glob("*.h")})
    place = cache_dir() / f"sanitized-{digest_of([*compiler(), *flags, name, text], headers)}.o"

    def compile_object(made: Path) -> None:
        source = made.with_name(f"{name}.c")
        source.write_text(text)
        folders = [f"-I{RUNTIME_DIR}", f"-I{folder}"]
        subprocess.run([compiler()[0], *flags, *folders, "-c", "-o", str(made), str(source)], check=True)

    stored(compile_object, place)
    return place


@functools.cache
def _has(checks: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        command = [compiler()[0], f"-fsanitize={checks}", "-x", "c", "-", "-o", f"{folder}/empty"]
        empty = "int main(void) { return 0; }\n"
        return subprocess.run(command, input=empty, text=True, capture_output=True, check=False).returncode == 0


def _require(checks: str) -> None:
    if not _has(checks):
        pytest.skip(f"{compiler()[0]} cannot build with -fsanitize={checks}")
