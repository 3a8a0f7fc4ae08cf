"""C sources to shared libraries, compiled once and cached by content."""

from __future__ import annotations

import errno
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gradbed.common.errors import MissingPackages, UserError
from gradbed.common.store import cache_dir, digest_of, stored

FLAGS = ("-std=gnu11", "-fPIC", "-shared", "-Wall", "-Wno-unused", "-fno-strict-aliasing")


@functools.cache
def compiler() -> tuple[str, str]:
    """Path and version line of the system C compiler (CC, else cc, gcc, clang)."""
    wanted = os.environ.get("CC")
    for name in (wanted,) if wanted else ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
            return path, version.splitlines()[0] if version else "unknown"
    if wanted:
        raise UserError(f"no C compiler found ({wanted}): CC names one that is not there")
    text = "no C compiler found (cc, gcc or clang): install one, for instance 'apt-get install gcc libc6-dev'"
    raise MissingPackages(text, ("gcc", "libc6-dev"))


def compiler_flags(optimise: str, extra_flags: Sequence[str] = ()) -> list[str]:
    """Return all flags of the C compiler that decide what it compiles, without where files are."""
    return [*FLAGS, optimise, *extra_flags]


def shared_library(
    name: str,
    sources: Sequence[Path],
    text: str = "",
    include_dirs: Sequence[Path] = (),
    optimise: str = "-O2",
    extra_flags: Sequence[str] = (),
    notice: str = "",
) -> Path:
    """Compile `sources` (and the C text `text`) into one shared library; return its path in the cache.

    `notice`: what a terminal shows before the compiler is run, which may take long.
    Files in `include_dirs` count towards the content hash. Raises MissingPackages without a compiler and
    RuntimeError with the compiler's words if it refuses the code.
    """
    flags = compiler_flags(optimise, extra_flags)
    headers = sorted(header for folder in include_dirs for header in folder.rglob("*.h"))
    digest = digest_of([*compiler(), *flags, text], [*sources, *headers])
    target = cache_dir() / f"{name}-{digest}.so"

    def build(built: Path) -> None:
        if notice and sys.stderr.isatty():
            print(f"gradbed: {notice} ...", file=sys.stderr, flush=True)
        _compile(name, flags, sources, text, include_dirs, built)

    stored(build, target)
    return target


def _compile(
    name: str, flags: Sequence[str], sources: Sequence[Path], text: str, include_dirs: Sequence[Path], built: Path
) -> None:
    cc, _ = compiler()
    inputs = [str(source) for source in sources]
    if text:
        generated = built.with_name(f"{name}.c")
        generated.write_text(text)
        inputs.append(str(generated))
    folders = [f"-I{folder}" for folder in include_dirs]
    command = [cc, *flags, *folders, "-o", str(built), *inputs, "-lpthread", "-lm"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if os.strerror(errno.ENOSPC) in outcome.stderr:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(built.parent))
    if outcome.returncode != 0:
        raise RuntimeError(f"{cc} refused {name}:\n{outcome.stderr.strip()}")
