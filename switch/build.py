"""C sources to shared libraries, compiled once and cached by content."""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common.errors import UserError

RUNTIME_DIR = Path(__file__).resolve().parent / "runtime"
"""C files that every program needs; includes are relative to it."""
RUNTIME_SOURCES = tuple(sorted(RUNTIME_DIR.rglob("*.c")))
RUNTIME_HEADERS = tuple(sorted(RUNTIME_DIR.rglob("*.h")))

FLAGS = ("-std=gnu11", "-fPIC", "-shared", "-Wall", "-Wno-unused", "-fno-strict-aliasing")


def cache_dir() -> Path:
    """Where compiled programs are kept: GRADBED_CACHE, else XDG_CACHE_HOME/gradbed, else ~/.cache/gradbed."""
    own = os.environ.get("GRADBED_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gradbed"


@functools.cache
def compiler() -> tuple[str, str]:
    """Path and version line of the system C compiler (CC, else cc, gcc, clang)."""
    wanted = os.environ.get("CC")
    for name in (wanted,) if wanted else ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
            return path, version.splitlines()[0] if version else "unknown"
    raise UserError(
        f"no C compiler found ({wanted or 'cc, gcc or clang'}): install one, for instance 'apt-get install gcc'"
    )


def compiler_flags(optimise: str, extra_flags: Sequence[str] = ()) -> list[str]:
    """All that the C compiler is told about how to compile; not where its files are."""
    return [*FLAGS, optimise, *extra_flags]


def shared_library(
    name: str,
    sources: Sequence[Path],
    text: str = "",
    include_dirs: Sequence[Path] = (),
    optimise: str = "-O2",
    extra_flags: Sequence[str] = (),
) -> Path:
    """Compile `sources` (and the C text `text`) into one shared library; return its path in the cache.

    Files in `include_dirs` count towards the content hash. Raises UserError without a compiler and
    RuntimeError with the compiler's words if it refuses the code.
    """
    cc, version = compiler()
    flags = compiler_flags(optimise, extra_flags)
    digest = hashlib.sha256("\0".join([cc, version, *flags, text]).encode())
    headers = sorted(header for folder in include_dirs for header in folder.rglob("*.h"))
    for path in [*sources, *headers]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    target = cache_dir() / f"{name}-{digest.hexdigest()[:32]}.so"
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the cache {target.parent} ({error.strerror}): set GRADBED_CACHE") from None
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        inputs = [str(s) for s in sources]
        if text:
            generated = Path(scratch) / f"{name}.c"
            generated.write_text(text)
            inputs.append(str(generated))
        built = Path(scratch) / target.name
        command = [
            cc,
            *flags,
            *(f"-I{d}" for d in include_dirs),
            "-o",
            str(built),
            *inputs,
            "-lpthread",
            "-lm",
        ]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if os.strerror(errno.ENOSPC) in outcome.stderr:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target.parent))
        if outcome.returncode != 0:
            raise RuntimeError(f"{cc} refused {name}:\n{outcome.stderr.strip()}")
        # A rename is atomic, so two runs that build at once cannot see half a file.
        built.replace(target)
    return target
