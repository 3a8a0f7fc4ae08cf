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
class LoweredCalculation:
    name: str
    algorithm: str
    inputs: list[ir.Expr]
    with_payload: bool
    loc: int
    end: int


@dataclass(frozen=True)
class LoweredChecksum:
    target: ir.FieldRef
    calculation: str
    verify: bool
    condition: ir.Expr
    loc: int
    end: int


@dataclass(frozen=True)
class LoweredDigest:
    number: int
    name: str
    type: t.Type
    fields: list[ir.FieldRef]
    loc: int
    end: int


@dataclass(frozen=True)
class LoweredValueSet:
    name: str
    type: t.Type
    size: int
    node: s.ValueSetDeclaration


@dataclass(frozen=True)
class LoweredPipeline:
    """ingress or egress"""

    name: str
    body: list[ir.LoweredStatement]
    node: s.ControlDeclaration


@dataclass
class LoweredProgram:
    """Everything that the emitters need."""

    checked: CheckedProgram
    storage: Storage
    headers: t.Type
    metadata: t.Type
    parser_start: ir.LoweredState
    parser_node: s.ParserDeclaration
    pipelines: list[LoweredPipeline]
    deparser_order: list[str]
    deparser_primitives: list[ir.LoweredStatement]
    deparser_node: s.ControlDeclaration
    checksums: list[LoweredChecksum]
    tables: list[ir.LoweredTable]
    actions: list[ir.LoweredAction]
    called_actions: list[ir.LoweredAction]
    objects: list[ExternObject]
    calculations: list[LoweredCalculation]
    digests: list[LoweredDigest]
    value_sets: list[LoweredValueSet]
    field_lists: list[tuple[int, str, list[ir.FieldRef]]]
    direct_tables: dict[str, ir.LoweredTable]
    direct_meter_results: dict[str, ir.FieldRef]
