"""A parser that is fuzzed, and what it is held to: it takes the input, or refuses it with an error of its own."""

from __future__ import annotations

import contextlib
import io
import logging
import resource
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from gradbed.common.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
MAX_INPUT_BYTES = 1 << 16
MAX_PROCESSOR_S = 5.0
MAX_MEMORY_BYTES = 1 << 30


class TooSlow(Exception):
    """An input that takes longer than it may."""


@dataclass(frozen=True)
class Target:
    """refusals: what `read` may raise. lines: what it says may have several. mutants: how many of the seeds the
    ordinary tests try."""

    read: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    refusals: tuple[type[Exception], ...] = (UserError,)
    lines: bool = False
    processor_s: float = MAX_PROCESSOR_S
    mutants: int = 100

    def check(self, data: bytes) -> bool:
        """Whether it takes the input. Any exception but the refusals is a finding."""
        with _limited(self.processor_s), contextlib.redirect_stdout(io.StringIO()):
            try:
                self.read(data)
            except self.refusals as error:
                said = str(error)
                assert said.strip(), f"a refusal without a word: {type(error).__name__}"
                assert self.lines or "\n" not in said, f"a refusal of several lines: {said!r}"
                return False
        return True


@contextlib.contextmanager
def _limited(processor_s: float) -> Iterator[None]:
    """No more processor time and memory than an input may take."""

    def too_slow(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise TooSlow(f"more than {processor_s:g} s of the processor")

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGPROF, too_slow)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MAX_MEMORY_BYTES, before[1]))
    signal.setitimer(signal.ITIMER_PROF, processor_s)
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGPROF, handler)


def of_file(read: Callable[[Path], object], name: str) -> Callable[[bytes], object]:
    """A parser of files as one of bytes. name: of the file."""
    folder = tempfile.TemporaryDirectory(prefix="gradbed-fuzz-")

    def read_bytes(data: bytes) -> object:
        file = Path(folder.name) / name
        file.write_bytes(data)
        return read(file)

    return read_bytes


def files(*patterns: str, most_bytes: int = MAX_INPUT_BYTES) -> list[bytes]:
    """The repository's own files, as seeds; each pattern has to find one."""
    found = []
    for pattern in patterns:
        paths = [path for path in sorted(ROOT.glob(pattern)) if path.stat().st_size <= most_bytes]
        assert paths, f"no file is called {pattern}"
        found += paths
    return [path.read_bytes() for path in found]


def texts(*seeds: str) -> Iterable[bytes]:
    return (seed.encode() for seed in seeds)
