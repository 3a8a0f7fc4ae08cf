"""What lowering hands to the emitters."""

from __future__ import annotations

from dataclasses import dataclass

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker import CheckedProgram
from gradbed.switch.compiler.ir.places import ExternObject
from gradbed.switch.compiler.ir.storage import Storage


@dataclass(frozen=True)
class Calculation:
    name: str
    algorithm: str
    inputs: list[ir.Expr]
    with_payload: bool
    loc: int
    end: int


@dataclass(frozen=True)
class Checksum:
    target: ir.FieldRef
    calculation: str
    verify: bool
    condition: ir.Expr
    loc: int
    end: int


@dataclass(frozen=True)
class Digest:
    number: int
    name: str
    type: t.Type
    fields: list[ir.FieldRef]
    loc: int
    end: int


@dataclass(frozen=True)
class ValueSet:
    name: str
    type: t.Type
    size: int
    node: s.ValueSetDeclaration


@dataclass(frozen=True)
class Pipeline:
    """ingress or egress"""

    name: str
    body: list[ir.Stmt]
    node: s.ControlDeclaration


@dataclass
class LoweredProgram:
    """Everything that the emitters need."""

    checked: CheckedProgram
    storage: Storage
    headers: t.Type
    metadata: t.Type
    parser_start: ir.State
    parser_node: s.ParserDeclaration
    pipelines: list[Pipeline]
    deparser_order: list[str]
    deparser_primitives: list[ir.Stmt]
    deparser_node: s.ControlDeclaration
    checksums: list[Checksum]
    tables: list[ir.LoweredTable]
    actions: list[ir.LoweredAction]
    called_actions: list[ir.LoweredAction]
    objects: list[ExternObject]
    calculations: list[Calculation]
    digests: list[Digest]
    value_sets: list[ValueSet]
    field_lists: list[tuple[int, str, list[ir.FieldRef]]]
    direct_tables: dict[str, ir.LoweredTable]
    direct_meter_results: dict[str, ir.FieldRef]
