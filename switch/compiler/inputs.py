"""What a compilation reads, without compiling: the preprocessor is all that this needs of the compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.switch.compiler.diagnostics import Abandoned, Reporter
from gradbed.switch.compiler.preprocessor import Preprocessor
from gradbed.switch.compiler.source import SourceFile, SourceManager


def files_of(
    path: Path, *, include_dirs: Sequence[Path] = (), defines: Mapping[str, str] | None = None
) -> Sequence[SourceFile]:
    """The macros, the program's file and every file that it includes with them.

    What the preprocessor finds wrong with them is left to a compilation. UserError if `path` cannot be read.
    """
    sources = SourceManager()
    try:
        Preprocessor(sources, Reporter(sources), include_dirs, defines).run(path)
    except Abandoned:
        pass
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    return sources.files
