"""Compare what gradbed's compiler and p4c make of a P4 program: whether it is accepted, and its P4Info."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finsy.proto import p4i

from gradbed.common.errors import UserError, unforeseen
from gradbed.switch.compiler import CompileError, compile_p4
from gradbed.switch.p4lang.p4c import compile_with_p4c

# ---- The programs of a folder ----


_MAIN = re.compile(r"^[^\n/]*\bV1Switch\s*(<[^;()]*>\s*)?\(", re.MULTILINE)


def find_programs(folder: Path) -> list[Path]:
    """Return the .p4 files below `folder` that instantiate V1Switch, by name; the others are parts of programs."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    files = sorted(path for path in folder.rglob("*.p4") if path.is_file())
    programs = [path for path in files if _MAIN.search(path.read_text(encoding="utf-8", errors="replace"))]
    if not programs:
        raise UserError(f"{folder} has no v1model program: no .p4 file in it instantiates V1Switch")
    return programs


# ---- One program with both compilers ----


@dataclass(frozen=True)
class Verdict:
    """Whether a compiler accepts a program."""

    accepted: bool
    reason: str = ""
    """The first error of a program that is refused, in one line."""


@dataclass(frozen=True)
class Comparison:
    """What both compilers make of a program."""

    program: str
    ours: Verdict
    theirs: Verdict | None = None
    """None without p4c."""
    differences: tuple[str, ...] = ()
    """Of P4Info, where both accept the program."""

    @property
    def agree(self) -> bool:
        """Whether both accept the program with equal P4Info, or both refuse it; always true without p4c."""
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


# ---- Differences of P4Info ----


_UNTOLD = p4i.Table()
_PAIR = re.compile(r"(\w+) = (\d+)")
_NUMBER = re.compile(r"\d+")


def p4info_differences(ours: Any, theirs: Any) -> list[str]:
    """List the objects that only one message has, other identifiers, and fields that differ, by kind and name.

    What P4Info came to have later than p4c's version is taken from the annotations in which that left it: properties
    of the platform, the meaning of a selector's size. Of initial actions and entries it may not tell at all.
    """
    ours, theirs = _copy(ours), _copy(theirs)
    for name in ("initial_default_action", "has_initial_entries"):
        if not any(getattr(table, name) != getattr(_UNTOLD, name) for table in theirs.tables):
            for table in ours.tables:
                table.ClearField(name)
    _annotations_to_fields(theirs)
    lines: list[str] = []
    for field in ours.DESCRIPTOR.fields:
        one, other = getattr(ours, field.name), getattr(theirs, field.name)
        if one == other:
            continue
        if field.message_type is not None and "preamble" in field.message_type.fields_by_name:
            lines += _objects(field.name, _by_name(one), _by_name(other))
        else:
            lines += [f"{field.name}: {name} differs" for name in _different_fields(one, other)]
    return lines


def _copy(info: Any) -> Any:
    copy = type(info)()
    copy.CopyFrom(info)
    return copy


def _annotations_to_fields(info: Any) -> None:
    for text in _taken(info.pkg_info.annotations, "@platform_property("):
        for name, value in _PAIR.findall(text):
            setattr(info.pkg_info.platform_properties, name, int(value))
    for profile in info.action_profiles:
        semantics = _taken(profile.preamble.annotations, "@selector_size_semantics(")
        weights = _taken(profile.preamble.annotations, "@max_member_weight(")
        if not (semantics and profile.with_selector):
            continue
        if "sum_of_weights" in semantics[0]:
            profile.sum_of_weights.SetInParent()
        else:
            weight = int(_NUMBER.findall(weights[0])[0]) if weights else 0
            profile.sum_of_members.max_member_weight = weight


def _taken(annotations: Any, start: str) -> list[str]:
    """Remove the annotations that begin so, and return them."""
    found = [text for text in annotations if text.startswith(start)]
    for text in found:
        annotations.remove(text)
    return found


def _by_name(objects: Any) -> dict[str, Any]:
    return {item.preamble.name: item for item in objects}


def _objects(kind: str, ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[str]:
    for name in ours.keys() | theirs.keys():
        if name not in theirs:
            yield f"{kind}: only ours has {name}"
        elif name not in ours:
            yield f"{kind}: only p4c's has {name}"
        elif ours[name].preamble.id != theirs[name].preamble.id:
            one, other = ours[name].preamble.id, theirs[name].preamble.id
            yield f"{kind}: {name} has id {one:#x}, with p4c {other:#x}"
        else:
            for field in _different_fields(ours[name], theirs[name]):
                yield f"{kind}: {name}: {field} differs"


def _different_fields(one: Any, other: Any) -> Iterator[str]:
    """Yield names of fields that differ, with dots into messages that both have."""
    for field in one.DESCRIPTOR.fields:
        first, second = getattr(one, field.name), getattr(other, field.name)
        if first == second:
            continue
        # A map or a list is named as a whole.
        if hasattr(first, "DESCRIPTOR") and not hasattr(first, "__len__"):
            yield from (f"{field.name}.{inner}" for inner in _different_fields(first, second))
        else:
            yield field.name
