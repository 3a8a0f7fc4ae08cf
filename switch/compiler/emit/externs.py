"""Counters, meters, registers, calculations, checksums, field lists, digests and value sets."""

from __future__ import annotations

from collections.abc import Callable

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.emit.pipelines import table_size
from gradbed.switch.compiler.emit.primitives import Json, boolean, field, hexstr
from gradbed.switch.compiler.ir import MAX_SIZE, LoweredProgram
from gradbed.switch.compiler.ir.values import ExternObject
from gradbed.switch.compiler.source import SourceManager
from gradbed.switch.state.externs import EXTERNS

SUPPORTED = frozenset(
    ("counter", "direct_counter", "meter", "direct_meter", "register", "action_profile", "action_selector")
)


class ExternEmitter:
    """Emits everything that a program declares besides headers, parsers and pipelines."""

    def __init__(self, program: LoweredProgram, sources: SourceManager, reporter: Reporter) -> None:
        self._program = program
        self._sources = sources
        self._reporter = reporter

    def emit(self) -> Json:
        for item in self._program.objects:
            if item.kind in EXTERNS:
                message = f"BMv2 has no extern '{item.kind}': this program runs on gradbed's switch only"
                self._reporter.warning(item.node.loc, message, item.node.end, category="unsupported")
            elif item.kind not in SUPPORTED:
                self._reporter.error(item.node.loc, f"extern '{item.kind}' is not part of v1model", item.node.end)
            elif "size" in item.arguments:
                self._size(item)
        return {
            "meter_arrays": self._numbered(self._meter, "meter", "direct_meter"),
            "counter_arrays": self._numbered(self._counter, "counter", "direct_counter"),
            "register_arrays": self._numbered(self._register, "register"),
        }

    def _numbered(self, emit: Callable[[ExternObject], Json | None], *kinds: str) -> list[Json]:
        result: list[Json] = []
        for item in self._program.objects:
            if item.kind in kinds:
                body = emit(item)
                if body is not None:
                    result.append({"name": item.name, "id": len(result), "source_info": self._info(item), **body})
        return result

    def _info(self, item: ExternObject) -> Json:
        return self._sources.source_info(item.node.name_loc, item.node.name_loc + len(item.node.name))

    def _size(self, item: ExternObject) -> int:
        value = item.arguments["size"]
        if not isinstance(value, ir.Const):
            self._reporter.error(item.node.loc, f"the size of '{item.node.name}' must be known at compile time")
            return 1
        if not 0 < value.value <= MAX_SIZE:
            self._reporter.error(item.node.loc, f"a size of {value.value} is outside 1 to {MAX_SIZE}")
            return 1
        return value.value

    def _counter(self, item: ExternObject) -> Json | None:
        if item.kind == "counter":
            return {"size": self._size(item), "is_direct": False}
        table = self._program.direct_tables.get(item.name)
        return {"is_direct": True, "binding": table.name} if table is not None else None

    def _meter(self, item: ExternObject) -> Json | None:
        unit = getattr(item.arguments["type"], "name", "packets")
        if item.kind == "meter":
            return {"is_direct": False, "size": self._size(item), "rate_count": 2, "type": unit}
        table = self._program.direct_tables.get(item.name)
        if table is None:
            return None
        target = self._program.direct_meter_results.get(item.name)
        if target is None:
            self._reporter.error(
                item.node.loc, f"no action of table '{table.name}' reads its direct meter '{item.node.name}'"
            )
            return None
        return {
            "is_direct": True,
            "rate_count": 2,
            "type": unit,
            "size": table_size(table),
            "binding": table.name,
            "result_target": [target.header, target.field],
        }

    def _register(self, item: ExternObject) -> Json:
        stored = t.representation(item.type.arguments[0])
        if not isinstance(stored, (t.Bit, t.Int)):
            self._reporter.error(
                item.node.loc, f"registers hold bit<N> or int<N> on this target, not {stored}", item.node.end
            )
            stored = t.bit(1)
        return {"size": self._size(item), "bitwidth": stored.width}

    def extern_instances(self) -> list[Json]:
        return self._numbered(self._extern, *EXTERNS)

    def _extern(self, item: ExternObject) -> Json:
        attributes: list[Json] = []
        for name, (least, most) in EXTERNS[item.kind].attributes.items():
            value = item.arguments[name]
            if not isinstance(value, ir.Const):
                self._reporter.error(item.node.loc, f"{name} of '{item.node.name}' must be known at compile time")
            elif not least <= value.value <= most:
                self._reporter.error(item.node.loc, f"{name} of '{item.node.name}' is outside {least} to {most}")
            else:
                attributes.append({"name": name, **hexstr(value.value)})
        return {"type": item.kind, "attribute_values": attributes}

    # ---- Calculations ----

    def calculations(self) -> list[Json]:
        result: list[Json] = []
        for item in self._program.calculations:
            inputs: list[Json] = [_input(expr) for expr in item.inputs]
            if item.with_payload:
                inputs.append({"type": "payload", "value": None})
            entry: Json = {"name": item.name, "id": len(result)}
            if item.loc:
                entry["source_info"] = self._sources.source_info(item.loc, item.end)
            result.append({**entry, "algo": item.algorithm, "input": inputs})
        return result

    def checksums(self) -> list[Json]:
        result: list[Json] = []
        for item in self._program.checksums:
            result.append(
                {
                    "name": f"cksum_{len(result) - 1}" if result else "cksum",
                    "id": len(result),
                    "source_info": self._sources.source_info(item.loc, item.end),
                    "target": [item.target.header, item.target.field],
                    "type": "generic",
                    "calculation": item.calculation,
                    "verify": item.verify,
                    "update": not item.verify,
                    "if_cond": boolean(item.condition),
                }
            )
        return result

    def field_lists(self) -> list[Json]:
        return [
            {"id": number, "name": name, "elements": [field(item) for item in fields]}
            for number, name, fields in self._program.field_lists
        ]

    def learn_lists(self) -> list[Json]:
        return [
            {
                "id": item.number,
                "name": item.name,
                "source_info": self._sources.source_info(item.loc, item.end),
                "elements": [field(part) for part in item.fields],
            }
            for item in self._program.digests
        ]

    def parse_vsets(self) -> list[Json]:
        return [
            {
                "name": item.name,
                "id": number,
                "source_info": self._sources.source_info(
                    item.node.name_loc, item.node.name_loc + len(item.node.name)
                ),
                "compressed_bitwidth": t.width_bits(item.type),
                "max_size": item.size,
            }
            for number, item in enumerate(self._program.value_sets)
        ]


def _input(expr: ir.Expr) -> Json:
    if isinstance(expr, ir.Const):
        width = t.width_bits(expr.type) or 1
        return {**hexstr(expr.value & ((1 << width) - 1), width), "bitwidth": width}
    assert isinstance(expr, ir.FieldRef)
    return field(expr)
