"""The section `pipelines`: tables, conditions and action profiles of ingress and egress."""

from __future__ import annotations

import itertools
import re
from typing import Any

from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.emit.flow import FlowCondition, FlowGraph, FlowTable, Node, Run
from gradbed.switch.compiler.emit.primitives import Json, PrimitiveList, boolean, field, hex_digits
from gradbed.switch.compiler.ir import (
    DEFAULT_SIZE,
    NO_ACTION,
    LoweredAction,
    LoweredEntry,
    LoweredKey,
    LoweredKeyMatch,
    LoweredParameter,
    LoweredPipeline,
    LoweredProgram,
    LoweredTable,
)
from gradbed.switch.compiler.ir.storage import NameSet
from gradbed.switch.compiler.ir.values import ExternObject
from gradbed.switch.compiler.source import SourceManager

# ---- Tables ----


_BMV2_KINDS = {"exact": "exact", "lpm": "lpm", "ternary": "ternary", "range": "range", "optional": "ternary"}
_STRONGEST_FIRST = ("range", "ternary", "lpm", "exact")


class TableEmitter:
    """Emits tables."""

    def __init__(self, action_ids: dict[LoweredAction, int], sources: SourceManager, reporter: Reporter) -> None:
        self._action_ids = action_ids
        self._sources = sources
        self._reporter = reporter

    def emit(self, node: FlowTable, number: int) -> Json:
        table = node.table
        declared = table.node
        kinds = [self._kind(key) for key in table.keys]
        if kinds.count("lpm") > 1:
            self._reporter.error(declared.loc, f"table '{declared.name}' has more than one lpm key")
        match_type = next((kind for kind in _STRONGEST_FIRST if kind in kinds), "exact")
        result: Json = {
            "name": table.name,
            "id": number,
            "source_info": self._sources.source_info(declared.name_loc, declared.name_loc + len(declared.name)),
            "key": [self._key(key, kind) for key, kind in zip(table.keys, kinds, strict=True)],
            "match_type": match_type,
            "type": self._implementation(table),
            "max_size": table_size(table),
            "with_counters": table.counters is not None,
            "support_timeout": table.support_timeout,
            "direct_meters": table.meters.name if table.meters else None,
            "action_ids": [self._action_ids[item.action] for item in table.actions],
            "actions": [item.action.name for item in table.actions],
        }
        if table.implementation is not None:
            result["action_profile"] = table.implementation.name
        result.update(self._next(node))
        # BMv2 refuses a default entry beside an action profile. NoAction needs none: see `_next`.
        if table.default_action is not None and (
            table.implementation is None or table.default_action.name != NO_ACTION
        ):
            result["default_entry"] = {
                "action_id": self._action_ids[table.default_action],
                "action_const": table.default_const,
                "action_data": self._data(table.default_action, table.default_data),
                "action_entry_const": table.default_const,
            }
        if table.entries is not None:
            if table.implementation is not None:
                self._reporter.error(
                    declared.loc, "a table with an action profile cannot have entries in the program"
                )
            result["entries"] = [self._entry(table, entry, kinds) for entry in table.entries]
            self._check_duplicates(table, result["entries"])
        return result

    def _kind(self, key: LoweredKey) -> str:
        kind = _BMV2_KINDS.get(key.match_kind)
        if kind is None:
            self._reporter.error(key.node.loc, f"match kind '{key.match_kind}' is not supported by this target")
            return "exact"
        return kind

    def _implementation(self, table: LoweredTable) -> str:
        implementation = table.implementation
        if implementation is None:
            return "simple"
        return "indirect" if implementation.kind == "action_profile" else "indirect_ws"

    def _key(self, key: LoweredKey, kind: str) -> Json:
        return {
            "match_type": kind,
            "name": key.name,
            "target": [key.target.header, key.target.field],
            "mask": None,
        }

    def _next(self, node: FlowTable) -> Json:
        def name(target: Node | None) -> str | None:
            return None if target is None else str(getattr(target, "name", ""))

        following = {key: name(target) for key, target in node.next.items()}
        if node.kind == "hit":
            if following["hit"] != following["miss"]:
                return {
                    "base_default_next": None,
                    "next_tables": {"__HIT__": following["hit"], "__MISS__": following["miss"]},
                }
            everywhere = following["hit"]
            following = {item.action.name: everywhere for item in node.table.actions}
            following[""] = everywhere
        base = following.pop("")
        if node.table.implementation is not None:
            # On a miss no action runs where there is no default entry, and NoAction is the one that counts as run.
            base = following.get(NO_ACTION, base)
        return {"base_default_next": base, "next_tables": following}

    def _data(self, action: LoweredAction, values: list[int]) -> list[str]:
        return [
            hex_digits(value & ((1 << width) - 1), width)
            for value, width in zip(values, map(_width, action.parameters), strict=True)
        ]

    def _entry(self, table: LoweredTable, entry: LoweredEntry, kinds: list[str]) -> Json:
        matches = []
        for match, key, kind in zip(entry.matches, table.keys, kinds, strict=True):
            width = t.width_bits(key.type) or 1
            if key.match_kind == "optional" and match.kind not in ("value", "any"):
                self._bad(entry, "an optional key takes a single value")
            matches.append(self._match(match, kind, width, entry))
        # BMv2 JSON does not tell constant entries from others; BMv2 reads no key that it does not know.
        mixed = {"const": True} if entry.node.is_const and not table.node.entries_const else {}
        return {
            "source_info": self._sources.source_info(entry.node.loc, entry.node.end),
            "match_key": matches,
            "action_entry": {
                "action_id": self._action_ids[entry.action],
                "action_data": self._data(entry.action, entry.data),
            },
            "priority": entry.priority,
            **mixed,
        }

    def _match(self, match: LoweredKeyMatch, kind: str, width: int, entry: LoweredEntry) -> Json:
        ones = (1 << width) - 1
        first, second = match.first & ones, match.second & ones
        if kind == "range":
            bounds = {"any": (0, ones), "value": (first, first), "range": (first, second)}.get(match.kind)
            if bounds is None or bounds[0] > bounds[1]:
                self._bad(entry, "a range key takes a value, first .. last or _")
                bounds = (0, ones)
            return {
                "match_type": kind,
                "start": hex_digits(bounds[0], width),
                "end": hex_digits(bounds[1], width),
            }
        if match.kind == "range":
            self._bad(entry, f"a key that is matched {kind} takes no range")
        mask = {"any": 0, "value": ones}.get(match.kind, second)
        value = first & mask
        if kind == "ternary":
            return {"match_type": kind, "key": hex_digits(value, width), "mask": hex_digits(mask, width)}
        if kind == "lpm":
            length = mask.bit_count()
            if mask != ones & ~(ones >> length):
                self._bad(entry, "the mask of an lpm key must be a prefix")
            return {"match_type": kind, "key": hex_digits(value, width), "prefix_length": length}
        if match.kind != "value":
            self._bad(entry, "an exact key takes a single value")
        return {"match_type": kind, "key": hex_digits(value, width)}

    def _bad(self, entry: LoweredEntry, message: str) -> None:
        self._reporter.error(entry.node.loc, message, entry.node.end)

    def _check_duplicates(self, table: LoweredTable, entries: list[Json]) -> None:
        seen: set[str] = set()
        assert table.entries is not None
        for lowered, entry in zip(table.entries, entries, strict=True):
            key = repr([entry["match_key"], entry["priority"] if table.keys and "mask" in str(entry) else 0])
            if key in seen:
                self._bad(lowered, "an entry with this key is there already")
            seen.add(key)


def _width(parameter: LoweredParameter) -> int:
    return t.width_bits(parameter.type) or 1


def table_size(table: LoweredTable) -> int:
    """Return how many entries a table holds; a table of constant entries holds just these."""
    if table.entries is not None and table.node.entries_const:
        return max(1, len(table.entries))
    return table.size or DEFAULT_SIZE


# ---- Pipelines ----


class PipelineEmitter:
    """Emits pipelines; numbers tables, conditions and actions made for runs of statements over both of them."""

    def __init__(self, program: LoweredProgram, sources: SourceManager, tables: TableEmitter) -> None:
        self._program = program
        self._sources = sources
        self._tables = tables
        self.run_actions: list[Json] = []
        self._next_action = itertools.count(len(program.actions))
        self._next_table = itertools.count()
        self._next_condition = itertools.count()
        self._next_profile = itertools.count()
        self._names = NameSet(table.name for table in program.tables)
        self._action_names = NameSet(action.name for action in program.actions)

    def emit(self, pipeline: LoweredPipeline, number: int, graph: FlowGraph) -> Json:
        self._name_nodes(graph)
        tables: list[Json] = []
        conditions: list[Json] = []
        profiles: list[ExternObject] = []
        selectors: dict[str, Json] = {}
        for node in graph.nodes:
            if isinstance(node, FlowTable):
                tables.append(self._tables.emit(node, next(self._next_table)))
                implementation = node.table.implementation
                if implementation is not None and implementation not in profiles:
                    profiles.append(implementation)
                if node.table.selectors and implementation is not None:
                    inputs = [field(key.target) for key in node.table.selectors]
                    selectors.setdefault(implementation.name, {"input": inputs})
            elif isinstance(node, Run):
                tables.append(self._run(node))
            elif isinstance(node, FlowCondition):
                conditions.append(self._condition(node))
        declared = pipeline.node
        return {
            "name": pipeline.name,
            "id": number,
            "source_info": self._sources.source_info(declared.name_loc, declared.name_loc + len(declared.name)),
            "init_table": node_name(graph.start),
            "tables": tables,
            "action_profiles": [self._profile(profile, selectors) for profile in profiles],
            "conditionals": conditions,
        }

    def _name_nodes(self, graph: FlowGraph) -> None:
        for node in graph.nodes:
            if isinstance(node, FlowTable):
                node.name = node.table.name
            elif isinstance(node, Run):
                node.name = self._names.unique(f"tbl_{self._run_name(node)}")
            elif isinstance(node, FlowCondition):
                node.name = self._names.unique("node")

    def _run_name(self, node: Run) -> str:
        """Return file and line of the first statement that has a position."""
        for statement in node.body:
            if statement.loc:
                info = self._sources.source_info(statement.loc, statement.end)
                stem = re.sub(r"\W", "_", str(info["filename"]).rsplit("/", 1)[-1].rsplit(".", 1)[0])
                return f"{stem}{info['line']}"
        return "act"

    def _run(self, node: Run) -> Json:
        number = next(self._next_action)
        name = self._action_names.unique(node.name.removeprefix("tbl_"))
        primitives = PrimitiveList(self._sources)
        primitives.add(node.body)
        self.run_actions.append({"name": name, "id": number, "runtime_data": [], "primitives": primitives.finish()})
        following = node_name(node.next)
        table: Json = {
            "name": node.name,
            "id": next(self._next_table),
            "key": [],
            "match_type": "exact",
            "type": "simple",
            "max_size": 1024,
            "with_counters": False,
            "support_timeout": False,
            "direct_meters": None,
            "action_ids": [number],
            "actions": [name],
            "base_default_next": following,
            "next_tables": {name: following},
            "default_entry": {
                "action_id": number,
                "action_const": True,
                "action_data": [],
                "action_entry_const": True,
            },
        }
        placed = [statement for statement in node.body if statement.loc]
        if placed:
            table["source_info"] = self._sources.source_info(placed[0].loc, placed[-1].end)
        return table

    def _condition(self, node: FlowCondition) -> Json:
        result: Json = {
            "name": node.name,
            "id": next(self._next_condition),
            "expression": boolean(node.expression),
            "true_next": node_name(node.if_true),
            "false_next": node_name(node.if_false),
        }
        if node.loc:
            result["source_info"] = self._sources.source_info(node.loc, node.end)
        return result

    def _profile(self, profile: ExternObject, selectors: dict[str, Json]) -> Json:
        arguments = profile.arguments
        result: Json = {
            "name": profile.name,
            "id": next(self._next_profile),
            "source_info": self._sources.source_info(
                profile.node.name_loc, profile.node.name_loc + len(profile.node.name)
            ),
            "max_size": constant(arguments["size"]),
        }
        if profile.kind == "action_selector":
            selector = selectors.get(profile.name, {"input": []})
            result["selector"] = {"algo": getattr(arguments["algorithm"], "name", ""), **selector}
        return result


def node_name(node: Node | None) -> str | None:
    return None if node is None else str(getattr(node, "name", ""))


def constant(value: Any) -> int:
    number = getattr(value, "value", 0)
    return number if isinstance(number, int) else 0
