"""Errors for the user: one line without a traceback, wrapped at a terminal and whole elsewhere, for programs."""

from __future__ import annotations

import errno
import os
import select
import shutil
import textwrap
import traceback
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TextIO


class UserError(Exception):
    """Something the user can put right. Its text is shown as it is, without a traceback; exit status 2."""

    prefix = "gradbed: "
    """Stands before the text; empty for messages that name a place themselves (file:line:column)."""


class MissingPackages(UserError):
    """A program is missing that Debian has in these packages."""

    def __init__(self, text: str, packages: tuple[str, ...]) -> None:
        super().__init__(text)
        self.packages = packages


class ProcessLost(RuntimeError):
    """A process that should go on has ended or no longer answers: it was killed, ran out of memory, or has a fault.

    Its text is one line, for people; exit status 3. log: what the process wrote to standard error.
    """

    status = 3

    def __init__(self, text: str, log: str = "") -> None:
        super().__init__(text)
        self.log = log


class EndlessCircle(UserError, RuntimeError):
    """Raised when packets are processed again and again without time going on."""


def unforeseen(error: BaseException) -> str:
    """Describe an unforeseen error in one line: its class and its message.

    One without a message (a bare `next`, an assertion, the key of a mapping) is described by the line that raised it.
    """
    text = " ".join(str(error).split())
    if text and not isinstance(error, KeyError):
        return f"{type(error).__name__}: {text}"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {'/'.join(Path(frames[-1].filename).parts[-2:])}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{f' {text}' if text else ''}{place}"


def trouble(error: BaseException | None) -> UserError | None:
    """Return the advice for an exception that any write may raise: a full disk, or one that is read-only.

    Libraries stumble over their half-written files afterwards, so the exceptions before this one count as well.
    """
    if error is None:
        return None
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return UserError(f"no space left on the disk{where}: make room and run it again; what was whole is kept")
        if error.errno == errno.EROFS:
            return UserError(f"the disk cannot be written{where}: it is mounted read-only")
        if error.errno == errno.ENOENT and "temporary directory" in str(error.strerror):
            return UserError("no temporary file can be made: make room in /tmp, or set TMPDIR")
    return trouble(error.__cause__ or error.__context__)


def out_of_reach(error: BaseException) -> UserError | None:
    """Return the advice for an exception about a path that may not even be looked at.

    Before Python 3.14, `Path.is_file` and the like raise this of a path in a folder that may not be searched.
    """
    if isinstance(error, PermissionError) and error.errno == errno.EACCES and error.filename:
        return UserError(f"cannot reach {error.filename}: {error.strerror}")
    return None


def nobody_reads(error: BaseException) -> bool:
    """Return whether an error means that the reader of standard output or error has gone.

    `| head` has (EPIPE), or a terminal was closed (EIO).
    """
    if not (isinstance(error, OSError) and error.errno in (errno.EPIPE, errno.EIO)):
        return False
    poller = select.poll()
    for descriptor in (1, 2):
        poller.register(descriptor, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poller.poll(0))


def columns(stream: TextIO) -> int | None:
    """Return the width of the terminal that a stream is; None if it is none. TTY_COMPATIBLE as with rich."""
    if not (stream.isatty() or os.environ.get("TTY_COMPATIBLE") == "1"):
        return None
    return shutil.get_terminal_size().columns


def folded(text: str, width: int | None, hang: int = 0) -> str:
    """Lines of at most so many columns (None: as they are), those that go on so much further in. A word that is
    longer, such as a path, stays whole, so that it can be copied."""
    return text if width is None else "\n".join(_folded(line, width, hang) for line in text.split("\n"))


def _folded(line: str, width: int, hang: int) -> str:
    if len(line) <= width:
        return line
    words = line.lstrip()
    indent = line[: len(line) - len(words)]
    return textwrap.fill(
        words,
        width,
        initial_indent=indent,
        subsequent_indent=indent + " " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )


def say(text: str, stream: TextIO, hang: int = 0) -> None:
    """Print sentences, folded if a terminal shows them."""
    print(folded(text, columns(stream), hang), file=stream, flush=True)


# ---- Suggestions for unknown words ----


def suggestion(word: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    """Return "; did you mean ...?" if a known word is similar, otherwise the list of known words."""
    words = list(known)
    near = get_close_matches(word, words, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(words)}"
