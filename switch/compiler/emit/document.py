"""The whole of BMv2 JSON, version 2.23."""

from __future__ import annotations

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.emit.actions import PrimitiveList, action_json
from gradbed.switch.compiler.emit.expressions import Json
from gradbed.switch.compiler.emit.externs import ExternEmitter
from gradbed.switch.compiler.emit.flow import build_flow
from gradbed.switch.compiler.emit.headers import HeaderEmitter
from gradbed.switch.compiler.emit.parsers import ParserEmitter
from gradbed.switch.compiler.emit.pipelines import PipelineEmitter
from gradbed.switch.compiler.emit.tables import TableEmitter
from gradbed.switch.compiler.ir.result import LoweredProgram
from gradbed.switch.compiler.source import SourceManager

VERSION = (2, 23)
COMPILER = "https://github.com/gradbed/gradbed"


def emit_bmv2(program: LoweredProgram, sources: SourceManager, reporter: Reporter, name: str) -> Json:
    """The program as BMv2 reads it. Sections that need new variables come before the list of variables."""
    action_ids = {action: number for number, action in enumerate(program.actions)}
    graphs = [build_flow(pipeline.body, program.storage, reporter) for pipeline in program.pipelines]
    tables = TableEmitter(action_ids, sources, reporter)
    pipelines = PipelineEmitter(program, sources, tables)
    pipelines_json = [
        pipelines.emit(pipeline, number, graph)
        for number, (pipeline, graph) in enumerate(zip(program.pipelines, graphs, strict=True))
    ]
    parsers_json = ParserEmitter(program, program.storage, sources).emit()
    externs = ExternEmitter(program, sources, reporter)
    arrays = externs.emit()
    standard = _standard_metadata(program)
    return {
        **HeaderEmitter(program.storage, standard, reporter).emit(),
        "field_lists": externs.field_lists(),
        "errors": [[error.name, error.number] for error in program.checked.errors.values()],
        "enums": [],
        "parsers": parsers_json,
        "parse_vsets": externs.parse_vsets(),
        "deparsers": [_deparser(program, sources)],
        **arrays,
        "calculations": externs.calculations(),
        "learn_lists": externs.learn_lists(),
        "actions": [
            *(action_json(action, number, sources) for action, number in action_ids.items()),
            *pipelines.run_actions,
        ],
        "pipelines": pipelines_json,
        "checksums": externs.checksums(),
        "force_arith": [],
        "extern_instances": externs.extern_instances(),
        "field_aliases": _aliases(standard),
        "program": name,
        "__meta__": {"version": list(VERSION), "compiler": COMPILER},
    }


def _standard_metadata(program: LoweredProgram) -> t.Struct:
    type_ = program.parser_node.signature[3].type
    assert isinstance(type_, t.Struct)
    return type_


def _aliases(standard: t.Struct) -> list[list[object]]:
    """Names that BMv2 has for parts of standard metadata, from @alias."""
    result: list[list[object]] = []
    for name, given in standard.annotations.items():
        alias = s.find_annotation(given, "alias")
        text = alias.string() if alias is not None else None
        if text is not None:
            result.append([text, ["standard_metadata", name]])
    return result


def _deparser(program: LoweredProgram, sources: SourceManager) -> Json:
    node = program.deparser_node
    primitives = PrimitiveList(sources)
    primitives.add(program.deparser_primitives)
    return {
        "name": "deparser",
        "id": 0,
        "source_info": sources.source_info(node.name_loc, node.name_loc + len(node.name)),
        "order": program.deparser_order,
        "primitives": primitives.finish(),
    }
