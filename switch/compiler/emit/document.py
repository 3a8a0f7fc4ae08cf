"""The whole of BMv2 JSON, version 2.23, and its sections of headers."""

from __future__ import annotations

from typing import Any

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.emit.externs import ExternEmitter
from gradbed.switch.compiler.emit.flow import build_flow
from gradbed.switch.compiler.emit.parsers import ParserEmitter
from gradbed.switch.compiler.emit.pipelines import PipelineEmitter, TableEmitter
from gradbed.switch.compiler.emit.primitives import Json, PrimitiveList, action_json
from gradbed.switch.compiler.ir import LoweredProgram
from gradbed.switch.compiler.ir.storage import SCALARS, STANDARD_METADATA, NameSet, Storage
from gradbed.switch.compiler.ir.values import HeaderVariable, StackVariable, UnionVariable
from gradbed.switch.compiler.source import SourceManager

# ---- Headers ----


class HeaderEmitter:
    """Emits header_types, headers, header_stacks, header_union_types, header_unions and header_union_stacks."""

    def __init__(self, storage: Storage, standard_metadata: t.Struct, reporter: Reporter) -> None:
        self._storage = storage
        self._reporter = reporter
        self._standard_metadata = standard_metadata
        self._type_names: dict[t.Struct, str] = {}
        self._names = NameSet()
        self._padding = 0

    def emit(self) -> Json:
        header_types = [
            self._type(f"{SCALARS}_0", [[name, *_format(type_)] for name, type_ in self._storage.scalars]),
            self._type(STANDARD_METADATA, _fields(self._standard_metadata, ""), "_padding"),
        ]
        for header in self._storage.headers:
            if header.type not in self._type_names:
                header_types.append(self._header_type(header.type))
        for number, header_type in enumerate(header_types):
            header_types[number] = {"name": header_type.pop("name"), "id": number, **header_type}
        return {
            "header_types": header_types,
            "headers": self._instances(),
            "header_stacks": [
                self._stack(stack, number, "header_ids") for number, stack in enumerate(self._storage.stacks)
            ],
            **self._unions(),
        }

    def _type(self, name: str, fields: list[list[Any]], padding: str = "") -> Json:
        """Return a header type, padded to whole bytes, as BMv2 wants for metadata too."""
        bits = sum(item[1] for item in fields if item[1] != "*")
        if bits % 8:
            fields.append([padding or f"_padding_{self._padding}", 8 - bits % 8, False])
            self._padding += not padding
        return {"name": self._names.unique(name), "fields": fields}

    def _header_type(self, type_: t.Struct) -> Json:
        fields = _fields(type_, "")
        bits = sum(item[1] for item in fields if item[1] != "*")
        if bits % 8 and type_.node is not None:
            loc = type_.node.name_loc
            message = f"header '{type_.name}' is {bits} bits long: this target takes headers of whole bytes"
            hint = f"add {8 - bits % 8} bits, for instance a field bit<{8 - bits % 8}> padding"
            self._reporter.error(loc, message, loc + len(type_.node.name), hint=hint)
        result = self._type(type_.name, fields)
        self._type_names[type_] = result["name"]
        if any(item[1] == "*" for item in result["fields"]):
            varbit = sum(inner.width for inner in type_.fields.values() if isinstance(inner, t.Varbit))
            result["max_length"] = (bits + varbit + 7) // 8
        return result

    def _instances(self) -> list[Json]:
        instances = [
            _instance(SCALARS, 0, f"{SCALARS}_0", True),
            _instance(STANDARD_METADATA, 1, STANDARD_METADATA, True),
        ]
        for header in self._storage.headers:
            instances.append(_instance(header.name, len(instances), self._type_names[header.type], False))
        self._ids = {instance["name"]: instance["id"] for instance in instances}
        return instances

    def _stack(self, stack: StackVariable, number: int, member_key: str) -> Json:
        element = stack.type.element
        assert isinstance(element, t.Struct)
        return {
            "name": stack.name,
            "id": number,
            "header_type": self._type_names[element],
            "size": stack.type.size,
            member_key: [self._ids[item.name] for item in stack.elements if isinstance(item, HeaderVariable)],
        }

    def _unions(self) -> Json:
        types: dict[t.Struct, Json] = {}
        unions: list[Json] = []
        for union in self._storage.unions:
            if union.type not in types:
                types[union.type] = {
                    "name": self._names.unique(union.type.name),
                    "id": len(types),
                    "headers": [[name, self._type_names[member.type]] for name, member in union.members.items()],
                }
            unions.append(
                {
                    "name": union.name,
                    "id": len(unions),
                    "union_type": types[union.type]["name"],
                    "header_ids": [self._ids[member.name] for member in union.members.values()],
                    "pi_omit": True,
                }
            )
        ids = {union["name"]: union["id"] for union in unions}
        stacks = []
        for number, stack in enumerate(self._storage.union_stacks):
            elements = [item for item in stack.elements if isinstance(item, UnionVariable)]
            stacks.append(
                {
                    "name": stack.name,
                    "id": number,
                    "union_type": types[elements[0].type]["name"],
                    "size": stack.type.size,
                    "header_union_ids": [ids[item.name] for item in elements],
                }
            )
        return {
            "header_union_types": list(types.values()),
            "header_unions": unions,
            "header_union_stacks": stacks,
        }


def _format(type_: t.Type) -> list[Any]:
    """Return width and signedness of a field."""
    if isinstance(type_, t.Varbit):
        return ["*"]
    return [t.width_bits(type_), isinstance(type_, t.Int)]


def _fields(type_: t.Struct, prefix: str) -> list[list[Any]]:
    result: list[list[Any]] = []
    for name, inner in type_.fields.items():
        stored = t.representation(inner)
        if isinstance(stored, t.Struct):
            result += _fields(stored, f"{prefix}{name}.")
        else:
            result.append([prefix + name, *_format(stored)])
    return result


def _instance(name: str, number: int, header_type: str, metadata: bool) -> Json:
    return {"name": name, "id": number, "header_type": header_type, "metadata": metadata, "pi_omit": True}


# ---- The document ----


VERSION = (2, 23)
COMPILER = "https://github.com/gradbed/gradbed"


def emit_bmv2(program: LoweredProgram, sources: SourceManager, reporter: Reporter, name: str) -> Json:
    """Return the program as BMv2 JSON. Sections that need new variables come before the list of variables."""
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
    """Return the names that @alias gives to fields of the standard metadata."""
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
