"""Compilation of BMv2 JSON to a shared library that exports `gb_program` (switch/runtime/program.h).

A cache has the model and the name of the library by everything that a build depends on. The cache of
gradbed.common.c_library is by the C text, which takes longer to generate for a large program than to load it.
"""

from __future__ import annotations

import functools
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.common.c_library import compiler, compiler_flags, shared_library
from gradbed.common.store import cache_dir, digest_of, stored
from gradbed.switch.bmv2_json.drop_sites import DropSites
from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.bmv2_json.model import Extern, ProgramModel, Table, words_of
from gradbed.switch.bmv2_json.reader import MalformedProgram
from gradbed.switch.codegen.emit.calculations_c import calculation_function
from gradbed.switch.codegen.emit.deparser_c import DeparserWriter
from gradbed.switch.codegen.emit.parser_c import ParserWriter
from gradbed.switch.codegen.emit.pipeline_c import (
    METER_UNIT,
    PipelineWriter,
    action_function,
    recent_tables,
    used_actions,
)
from gradbed.switch.codegen.emit.probes import NO_PROBES, DeparserPrimitiveDone, ParserDone, Probes
from gradbed.switch.codegen.emit.statements import Statements, extern_kind
from gradbed.switch.codegen.emit.values import quoted
from gradbed.switch.codegen.layout import FRAME_LENGTH, Layout
from gradbed.switch.codegen.reroll import reroll
from gradbed.switch.runtime.library import RUNTIME_DIR, RUNTIME_HEADERS

# ---- The cache of builds ----


def cache_entry(bmv2_json: Mapping[str, Any], optimise: str, extra_flags: Sequence[str] = ()) -> Path | None:
    """Return the path of the cache entry for a program with these flags; None if the program is not JSON."""
    try:
        text = json.dumps(bmv2_json, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return None
    flags = compiler_flags(optimise, extra_flags)
    return cache_dir() / f"program-{digest_of([*compiler(), *flags, _generator_digest(), text])}.model"


def find_build(entry: Path) -> tuple[ProgramModel, Path] | None:
    """Return the model and the library, if the cache has both."""
    try:
        library_name, model = pickle.loads(entry.read_bytes())
        library = entry.with_name(library_name)
    except (OSError, EOFError, LookupError, ValueError, TypeError, AttributeError, ImportError, pickle.PickleError):
        # There is none, or it was damaged (as by a full disk): it is written anew.
        return None
    return (model, library) if isinstance(model, ProgramModel) and library.exists() else None


def note_build(entry: Path, model: ProgramModel, library: Path) -> None:
    """Record a build whose library is in the cache."""
    entry.unlink(missing_ok=True)
    stored(lambda note: note.write_bytes(pickle.dumps((library.name, model))), entry)


@functools.cache
def _generator_digest() -> str:
    """Return a digest of the code generator, its knowledge of externs, and the headers that its output includes."""
    switch = Path(__file__).resolve().parents[1]
    sources = sorted(path for folder in ("bmv2_json", "codegen") for path in (switch / folder).rglob("*.py"))
    return digest_of((), [*sources, switch / "state/externs.py", *RUNTIME_HEADERS])


# ---- Building ----


_MATCH = {"exact": "GB_EXACT", "lpm": "GB_LPM", "ternary": "GB_TERNARY", "range": "GB_RANGE"}


@dataclass(frozen=True)
class BuiltProgram:
    """A compiled program (gradbed.switch.device.Program)."""

    json: dict[str, Any]
    library: Path
    model: ProgramModel
    """The contents of the JSON as values."""


def build_program(
    bmv2_json: Mapping[str, Any], *, optimise: str = "-O2", extra_flags: Sequence[str] = ()
) -> BuiltProgram:
    """Generate C for a BMv2 program and compile it, unless the cache has it.

    Raises:
        MalformedProgram: The JSON is malformed; the message says in one line how.
        UserError: There is no C compiler.
    """
    entry = cache_entry(bmv2_json, optimise, extra_flags)
    found = find_build(entry) if entry else None
    if found:
        model, library = found
    else:
        model = load_program(bmv2_json)
        library = shared_library(
            "program", (), generate(model), include_dirs=(RUNTIME_DIR,), optimise=optimise, extra_flags=extra_flags
        )
        if entry:
            note_build(entry, model, library)
    return BuiltProgram(dict(bmv2_json), library, model)


def generate(model: ProgramModel, *, roll: bool = True, probes: Probes = NO_PROBES) -> str:
    """Return the C text of a program.

    Args:
        model: The program.
        roll: Whether to turn runs of similar statements into loops; an instrumented build has none.
        probes: What an instrumented build reports.
    """
    try:
        return _Generator(model, roll and not probes.recording, probes).text()
    except RecursionError:
        raise ValueError("BMv2 JSON: expressions are nested too deeply") from None


class _Generator:
    """Generates the text of a program, function by function."""

    def __init__(self, model: ProgramModel, roll: bool, probes: Probes) -> None:
        self.model = model
        self.layout = Layout(model)
        self.deparser = DeparserWriter(model, self.layout, probes)
        self._roll = roll
        self._drops = DropSites(model)
        self._probes = probes

    def text(self) -> str:
        model, layout = self.model, self.layout
        pipelines = PipelineWriter(model, layout, self._drops, self._probes)
        functions: list[list[str]] = [
            calculation_function(f"calculation_{i}", calculation, model, layout)
            for i, calculation in enumerate(model.calculations.values())
        ]
        for i, profile in enumerate(model.profiles.values()):
            if profile.selector is not None:
                functions.append(calculation_function(f"selector_{i}", profile.selector, model, layout))
        functions.extend(
            action_function(action, model, layout, self._drops, self._probes) for action in used_actions(model)
        )
        functions += [
            self._parse(),
            pipelines.function("ingress"),
            pipelines.function("egress"),
            *self._deparse(),
            self._copy_field_list(),
            self._reset_metadata(),
        ]
        lines = ['#include "generated.h"', *(['#include "trace.h"'] if self._probes.recording else []), ""]
        for kind in dict.fromkeys(extern.kind for extern in model.externs.values()):
            lines += extern_kind(kind).declarations()
        for function in functions:
            lines.extend(reroll(function) if self._roll else function)
            lines.append("")
        return "\n".join([*lines, *self._state(), *self._program()]) + "\n"

    # ---- Functions ----

    def _parse(self) -> list[str]:
        layout, model = self.layout, self.model
        after_metadata = layout.metadata_first + layout.metadata_words
        return [
            "static void parse(struct gb_switch *sw, struct gb_packet *p) {",
            "uint64_t *phv = p->pass->phv;",
            "if (p->keep_metadata) {",
            f"gb_clear(phv, {layout.metadata_first});",
            f"gb_clear(phv + {after_metadata}, {layout.words - after_metadata});",
            "} else {",
            f"gb_clear(phv, {layout.words});",
            "}",
            f"phv[{FRAME_LENGTH}] = p->length;",
            *self._probes.begin("parse", layout.words),
            "const uint8_t *at = p->data, *end = at + p->length;",
            f"uint64_t error = {model.errors['NoError']}, variable_bits = 0;",
            "uint32_t first = 0;",
            *ParserWriter(model, layout, self._probes).body(),
            "p->payload_offset = (uint32_t)(at - p->data);",
            "p->pass->std.parser_error = error;",
            "p->pass->std.checksum_error = 0;",
            *self._probes.at(ParserDone(), "p->payload_offset"),
            *self.deparser.verify_checksums(),
            *self._probes.end("parse"),
            "}",
        ]

    def _deparse(self) -> list[list[str]]:
        model, layout = self.model, self.layout
        statements = Statements(model, layout, now="p->pass->std.egress_global_timestamp", probes=self._probes)
        primitives = statements.body(model.deparser_primitives, DeparserPrimitiveDone)
        before = [
            "static int before_deparsing(struct gb_switch *sw, struct gb_packet *p) {",
            "uint64_t *phv = p->pass->phv;",
            *self.deparser.update_checksums(),
            *primitives,
            "return 0;",
            "}",
        ]
        deparse = [
            "static void deparse(struct gb_switch *sw, struct gb_packet *p) {",
            "uint64_t *phv = p->pass->phv;",
            *self._probes.begin("deparse", layout.words),
            "before_deparsing(sw, p);",
            *self.deparser.body(),
            *self._probes.end("deparse"),
            "}",
        ]
        return [before, deparse]

    def _copy_field_list(self) -> list[str]:
        lines = [
            "static void copy_field_list(uint32_t list, struct gb_packet *to, const struct gb_packet *from) {",
            "switch (list) {",
        ]
        values = Statements(self.model, self.layout).values
        for field_list in self.model.field_lists.values():
            lines.append(f"case {field_list.id}:")
            for field in field_list.fields:
                standard = self.layout.standard(field)
                if standard:
                    lines.append(f"to->pass->std.{standard} = from->pass->std.{standard};")
                else:
                    slot, kind = values.slot(field), values.field_type(field)
                    words = max(1, words_of(kind.width)) + kind.variable
                    places = f"&to->pass->phv[{slot}], &from->pass->phv[{slot}]"
                    lines.append(f"memcpy({places}, {words} * sizeof(uint64_t));")
            lines.append("break;")
        return [*lines, "}", "}"]

    def _reset_metadata(self) -> list[str]:
        layout = self.layout
        return [
            "static void reset_metadata(struct gb_packet *p) {",
            f"gb_clear(p->pass->phv + {layout.metadata_first}, {layout.metadata_words});",
            "}",
        ]

    # ---- State ----

    def _state(self) -> list[str]:
        model = self.model
        profile_number = {name: i for i, name in enumerate(model.profiles)}
        lines: list[str] = []
        rows = []
        recent = recent_tables(model)
        for number, table in enumerate(model.tables.values()):
            keys = ", ".join(f"{{{k.width}, {_MATCH[k.match]}}}" for k in table.key)
            if table.key:
                lines.append(f"static const struct gb_key_layout key_{number}[] = {{{keys}}};")
            meter = model.meters.get(table.direct_meter or "")
            rows.append(
                f"{{{quoted(table.name)}, {_MATCH[table.match]}, {len(table.key)}, "
                f"{sum(words_of(k.width) for k in table.key)}, {f'key_{number}' if table.key else 'NULL'}, "
                f"{_data_words(table)}, {table.max_size}, {METER_UNIT[meter.unit] if meter else 'GB_METER_NONE'}, "
                f"{profile_number[table.profile] if table.profile else -1}, {recent.get(table.name, -1)}}}"
            )
        profile_words = {
            name: max((_data_words(t) for t in model.tables.values() if t.profile == name), default=0)
            for name in model.profiles
        }
        arrays = [
            ("gb_table_layout", "tables", rows),
            (
                "gb_register_layout",
                "registers",
                [f"{{{quoted(r.name)}, {r.width}, {r.size}}}" for r in model.registers.values()],
            ),
            (
                "gb_counter_layout",
                "counters",
                [f"{{{quoted(n)}, {model.counters[n].size}}}" for n in model.indirect_counters],
            ),
            (
                "gb_meter_layout",
                "meters",
                [
                    f"{{{quoted(n)}, {METER_UNIT[model.meters[n].unit]}, {model.meters[n].size}}}"
                    for n in model.indirect_meters
                ],
            ),
            (
                "gb_value_set_layout",
                "value_sets",
                [f"{{{quoted(v.name)}, {v.width}}}" for v in model.value_sets.values()],
            ),
            (
                "gb_profile_layout",
                "profiles",
                [f"{{{quoted(p.name)}, {profile_words[p.name]}, {p.max_size}}}" for p in model.profiles.values()],
            ),
            ("gb_extern_layout", "externs", [_extern_layout(extern) for extern in model.externs.values()]),
        ]
        for kind, name, items in arrays:
            if items:
                lines += [f"static const struct {kind} {name}[] = {{", *(f"{item}," for item in items), "};"]
        counts = ", ".join([*(str(len(items)) for _, _, items in arrays), str(self._drops.count)])
        names = ", ".join(name if items else "NULL" for _, name, items in arrays)
        return [*lines, f"static const struct gb_layout layout = {{{counts}, {names}}};", ""]

    def _program(self) -> list[str]:
        return [
            "const struct gb_program gb_program = {",
            # An instrumented packet also remembers its pass (runtime/trace.h).
            f"GB_ABI_VERSION, {self.layout.words + self._probes.recording}, {quoted(self.model.name)},",
            "parse, ingress, egress, deparse, copy_field_list, reset_metadata,",
            f"{self.deparser.max_bytes()}, &layout,",
            "};",
        ]


def _extern_layout(extern: Extern) -> str:
    kind = extern_kind(extern.kind)
    if extern.attributes.keys() != kind.attributes.keys():
        raise MalformedProgram(
            f"BMv2 JSON: extern '{extern.name}' has the attributes {', '.join(extern.attributes) or 'none'}, "
            f"a {kind.name} takes {', '.join(kind.attributes)}"
        )
    for name, (least, most) in kind.attributes.items():
        if not least <= extern.attributes[name] <= most:
            raise MalformedProgram(f"BMv2 JSON: {name} of extern '{extern.name}' is outside {least} to {most}")
    values = ", ".join(f"{extern.attributes[name]}ULL" for name in kind.attributes)
    return f"{{{quoted(extern.name)}, &{kind.c_name}, {{{values}}}}}"


def _data_words(table: Table) -> int:
    return max((sum(words_of(p.width) for p in action.parameters) for action in table.actions), default=0)
