"""A solution under test: its files, and its program, compiled once for all checks."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.switch.codegen import BuiltProgram, build_program
from gradbed.switch.compiler import compile_p4, files_of
from gradbed.switch.insight.recorder import InstrumentedProgram, build_instrumented
from gradbed.switch.insight.source import SourceMap

MOST_BYTES = 1_000_000
"""Largest size of one file of a solution."""
_P4_INCLUDE = Path(__file__).resolve().parents[2] / "switch" / "compiler" / "p4include"


@dataclass(frozen=True)
class Solution:
    """A solution under test."""

    folder: Path
    """A copy that belongs to the check."""
    program: Path
    """The P4 file in it."""

    @cached_property
    def json(self) -> dict[str, Any]:
        """BMv2 JSON of the program.

        Raises:
            UserError: the program does not compile, or includes a file outside its folder.
        """
        folders = (self.folder.resolve(), _P4_INCLUDE)
        for file in files_of(self.program):
            # Macros of the command line are a file that does not exist.
            if file.path.exists() and not any(file.path.resolve().is_relative_to(folder) for folder in folders):
                raise UserError(f"{self.program.name} includes {file.path}, which is not in its folder")
        return compile_p4(self.program).json

    @cached_property
    def built(self) -> BuiltProgram:
        try:
            return build_program(self.json)
        except ValueError as error:
            raise UserError(f"{self.program.name}: {error}") from None

    @cached_property
    def instrumented(self) -> InstrumentedProgram:
        return build_instrumented(self.json)

    @cached_property
    def sources(self) -> SourceMap:
        return SourceMap(self.instrumented.model, [self.folder])

    def words(self, error: UserError) -> str:
        """Return an error's message with files as the student knows them."""
        return str(error).replace(f"{self.folder}/", "")


def copied(folder: Path, program: str, place: Path) -> Solution:
    """Copy the programs and entries of a student's folder into the new folder `place`.

    Links, hidden files and inner folders are left out.

    Raises:
        UserError: a file is too large, or cannot be read.
    """
    place.mkdir()
    for file in sorted(folder.iterdir()):
        if file.is_symlink() or not file.is_file() or file.name.startswith("."):
            continue
        if file.suffix not in (".p4", ".yaml", ".h"):
            continue
        if file.stat().st_size > MOST_BYTES:
            raise UserError(f"{file.name} is larger than {MOST_BYTES // 1000} kB")
        try:
            shutil.copyfile(file, place / file.name)
        except OSError as error:
            raise UserError(f"cannot read {file.name}: {error.strerror}") from None
    return Solution(place, place / program)
