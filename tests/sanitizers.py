"""C programs with the compiler's sanitizers. Objects are kept by their content, as compiled P4 programs are: several
tests are built of the same runtime, and compiling that takes longer than they do."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from gradbed.common.c_library import compiler
from gradbed.common.store import cache_dir, digest_of, stored
from gradbed.switch.runtime.library import RUNTIME_DIR, RUNTIME_HEADERS

MEMORY, THREADS = "address,undefined", "thread"
CLANGS = ("clang", *(f"clang-{version}" for version in range(22, 10, -1)))

FLAGS = ("-std=gnu11", "-g", "-O1", "-fno-strict-aliasing", "-fno-sanitize-recover=all")
STRICT = ("-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter")
"""Of written code; generated code has variables that it does not use."""


def sanitized(target: Path, sources: Sequence[Path], generated: str = "", checks: str = MEMORY) -> Path:
    """Build `target` of C files, which include the runtime's headers, and of generated C. Skips the test if this
    compiler has no such sanitizers."""
    _require(checks)
    return _linked(compiler(), target, sources, generated, checks, checks)


def guided(target: Path, sources: Sequence[Path], generated: str) -> Path:
    """The same with libFuzzer's main(), which looks for inputs that reach code that none before reached. `fuzzer()`
    says whether that can be built here."""
    cc = fuzzer()
    if cc is None:
        raise FileNotFoundError("no clang with libFuzzer")
    return _linked(cc, target, sources, generated, f"fuzzer-no-link,{MEMORY}", f"fuzzer,{MEMORY}")


@functools.cache
def fuzzer() -> tuple[str, str] | None:
    """A clang that has libFuzzer, and its version."""
    for cc in filter(None, map(shutil.which, CLANGS)):
        main = "int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }\n"
        if _builds(cc, f"fuzzer,{MEMORY}", main):
            return cc, subprocess.run([cc, "--version"], capture_output=True, text=True, check=True).stdout
    return None


def _linked(
    cc: tuple[str, str], target: Path, sources: Sequence[Path], generated: str, checks: str, linked_checks: str
) -> Path:
    objects = [_object(cc, source.stem, source.read_text(), checks, STRICT, source.parent) for source in sources]
    if generated:
        objects.append(_object(cc, "program", generated, checks, ("-w",), RUNTIME_DIR))
    command = [cc[0], f"-fsanitize={linked_checks}", "-o", str(target), *map(str, objects), "-lpthread", "-lm"]
    subprocess.run(command, check=True)
    return target


def _object(cc: tuple[str, str], name: str, text: str, checks: str, more: Sequence[str], folder: Path) -> Path:
    flags = [*FLAGS, *more, f"-fsanitize={checks}"]
    headers = sorted({*RUNTIME_HEADERS, *folder.glob("*.h")})
    place = cache_dir() / f"sanitized-{digest_of([*cc, *flags, name, text], headers)}.o"

    def compile_object(made: Path) -> None:
        source = made.with_name(f"{name}.c")
        source.write_text(text)
        folders = [f"-I{RUNTIME_DIR}", f"-I{folder}"]
        subprocess.run([cc[0], *flags, *folders, "-c", "-o", str(made), str(source)], check=True)

    stored(compile_object, place)
    return place


@functools.cache
def _builds(cc: str, checks: str, text: str = "int main(void) { return 0; }\n") -> bool:
    with tempfile.TemporaryDirectory() as folder:
        command = [cc, f"-fsanitize={checks}", "-x", "c", "-", "-o", f"{folder}/built"]
        return subprocess.run(command, input=text, text=True, capture_output=True, check=False).returncode == 0


def _require(checks: str) -> None:
    if not _builds(compiler()[0], checks):
        pytest.skip(f"{compiler()[0]} cannot build with -fsanitize={checks}")
