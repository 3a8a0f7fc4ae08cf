"""The section `pipelines`: tables, conditions and action profiles of ingress and egress."""

from __future__ import annotations

import itertools
import re
from typing import Any

from gradbed.switch.compiler.emit.actions import PrimitiveList
from gradbed.switch.compiler.emit.expressions import Json, boolean, field
from gradbed.switch.compiler.emit.flow import FlowCondition, FlowGraph, FlowTable, Node, Run
from gradbed.switch.compiler.emit.tables import TableEmitter
from gradbed.switch.compiler.ir.places import ExternObject
from gradbed.switch.compiler.ir.result import LoweredPipeline, LoweredProgram
from gradbed.switch.compiler.names import NameSet
from gradbed.switch.compiler.source import SourceManager


class PipelineEmitter:
    """Numbers tables, conditions and the actions made for runs of statements, over both pipelines."""

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
        """File and line of the first statement that has one."""
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
