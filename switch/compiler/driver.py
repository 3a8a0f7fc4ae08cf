"""Compilation of a file to BMv2 JSON and P4Info."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.switch.compiler.analysis import analyse_program, silence_annotated
from gradbed.switch.compiler.checker import check_program
from gradbed.switch.compiler.checker.program import check_extern_kinds
from gradbed.switch.compiler.diagnostics import CompileError, Diagnostic, FatalError, Reporter
from gradbed.switch.compiler.emit import emit_bmv2
from gradbed.switch.compiler.lower import lower_program
from gradbed.switch.compiler.p4info import emit_p4info
from gradbed.switch.compiler.parser import parse_program
from gradbed.switch.compiler.preprocessor import Preprocessor
from gradbed.switch.compiler.source import SourceManager

# Expressions and statements nest up to parser.cursor.MAX_NESTING deep, each level a few Python calls.
RECURSION_LIMIT = 8000


@dataclass(frozen=True)
class Compiled:
    """The result of a compilation."""

    json: dict[str, Any]
    """BMv2 JSON."""
    p4info: Any
    """A p4.config.v1.P4Info message."""
    warnings: tuple[Diagnostic, ...]

    @property
    def json_text(self) -> str:
        return json.dumps(self.json, indent=2) + "\n"

    @property
    def p4info_text(self) -> str:
        from google.protobuf import text_format

        text: str = text_format.MessageToString(self.p4info)
        return text


def compile_p4(
    path: Path,
    *,
    include_dirs: Sequence[Path] = (),
    defines: Mapping[str, str] | None = None,
    without_warnings: Collection[str] = (),
) -> Compiled:
    """Compile a P4_16 program for v1model.

    Args:
        path: The program.
        include_dirs: Searched by #include after the directory of the program; the standard includes come last.
        defines: Replacement texts of macros by name.
        without_warnings: Categories of warnings to leave out (analysis.CATEGORIES).

    Raises:
        CompileError: The program has errors; all of them are listed.
        UserError: The file cannot be read.
    """
    path = Path(path)
    sources = SourceManager()
    reporter = Reporter(sources)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    try:
        return _compile(path, list(map(Path, include_dirs)), defines or {}, without_warnings, sources, reporter)
    except FatalError:
        raise CompileError(reporter.diagnostics) from None
    except RecursionError:
        reporter.fatal(sources.main_loc, "the program is nested too deeply to be compiled")
        raise CompileError(reporter.diagnostics) from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    finally:
        sys.setrecursionlimit(limit)


def _compile(
    path: Path,
    include_dirs: Sequence[Path],
    defines: Mapping[str, str],
    without_warnings: Collection[str],
    sources: SourceManager,
    reporter: Reporter,
) -> Compiled:
    tokens = Preprocessor(sources, reporter, include_dirs, defines).run(path)
    program = parse_program(tokens, reporter)
    reporter.raise_if_errors()
    silence_annotated(program, reporter)
    checked = check_program(program, reporter)
    check_extern_kinds(checked, reporter)
    reporter.raise_if_errors()
    lowered = lower_program(checked, reporter)
    reporter.raise_if_errors()
    assert lowered is not None
    analyse_program(checked, [*lowered.actions, *lowered.called_actions], reporter)
    bmv2 = emit_bmv2(lowered, sources, reporter, path.name)
    reporter.raise_if_errors()
    p4info = emit_p4info(lowered, reporter)
    reporter.raise_if_errors()
    warnings = [item for item in reporter.diagnostics if item.category not in without_warnings]
    return Compiled(bmv2, p4info, tuple(warnings))
