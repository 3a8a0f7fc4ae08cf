"""One program, compiled with ours and with p4c."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError, unforeseen
from gradbed.switch.compiler import CompileError, compile_p4
from gradbed.switch.corpus.p4info import p4info_differences
from gradbed.switch.p4lang.p4c import compile_with_p4c


@dataclass(frozen=True)
class Verdict:
    """`reason`: the first error of a program that is refused, in one line."""

    accepted: bool
    reason: str = ""


@dataclass(frozen=True)
class Comparison:
    """theirs: None without p4c. differences: of P4Info, where both accept the program."""

    program: str
    ours: Verdict
    theirs: Verdict | None = None
    differences: tuple[str, ...] = ()

    @property
    def agree(self) -> bool:
        """Both say the same of the program, or there is nobody to differ from."""
        return self.theirs is None or (self.ours.accepted == self.theirs.accepted and not self.differences)


def compare_program(
    p4c: str | None, include_dirs: Sequence[Path], defines: Mapping[str, str], folder: Path, program: Path
) -> Comparison:
    """Compile with ours and, if a p4c is given, with that. `folder`: what the program's name is relative to."""
    name = str(program.relative_to(folder))
    ours, our_info = _ours(program, include_dirs, defines)
    if p4c is None:
        return Comparison(name, ours)
    theirs, their_info = _theirs(p4c, program, include_dirs, defines)
    both = our_info is not None and their_info is not None
    return Comparison(name, ours, theirs, tuple(p4info_differences(our_info, their_info)) if both else ())


def _ours(program: Path, include_dirs: Sequence[Path], defines: Mapping[str, str]) -> tuple[Verdict, Any]:
    try:
        return Verdict(True), compile_p4(program, include_dirs=include_dirs, defines=defines).p4info
    except CompileError as error:
        first = next((item for item in error.diagnostics if item.severity == "error"), error.diagnostics[0])
        return Verdict(False, f"{first.file}:{first.line}:{first.column}: {first.message}"), None
    except UserError as error:
        return Verdict(False, str(error)), None
    except Exception as error:
        return Verdict(False, f"defect: {unforeseen(error)}"), None


def _theirs(p4c: str, program: Path, include_dirs: Sequence[Path], defines: Mapping[str, str]) -> tuple[Verdict, Any]:
    from finsy.proto import p4i
    from google.protobuf import text_format

    with tempfile.TemporaryDirectory() as folder:
        bmv2_json, info = Path(folder) / "program.json", Path(folder) / "program.p4info.txt"
        try:
            compile_with_p4c(p4c, program, defines, bmv2_json, info, include_dirs)
        except UserError as error:
            lines = str(error).splitlines()
            return Verdict(False, next((line for line in lines[1:] if "error" in line), lines[-1])), None
        if not info.exists():
            return Verdict(False, "p4c ended well and wrote no P4Info"), None
        # What a newer P4Info has is passed over: ours cannot have it.
        return Verdict(True), text_format.Parse(info.read_text(), p4i.P4Info(), allow_unknown_field=True)
