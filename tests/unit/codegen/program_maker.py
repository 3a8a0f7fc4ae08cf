"""BMv2 JSON for tests, in few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

STANDARD_METADATA = [
    ["ingress_port", 9, False],
    ["egress_spec", 9, False],
    ["egress_port", 9, False],
    ["instance_type", 32, False],
    ["packet_length", 32, False],
    ["enq_timestamp", 32, False],
    ["enq_qdepth", 19, False],
    ["deq_timedelta", 32, False],
    ["deq_qdepth", 19, False],
    ["ingress_global_timestamp", 48, False],
    ["egress_global_timestamp", 48, False],
    ["mcast_grp", 16, False],
    ["egress_rid", 16, False],
    ["checksum_error", 1, False],
    ["parser_error", 32, False],
    ["priority", 3, False],
    ["_padding", 3, False],
]
PARTS = (
    "header_types",
    "headers",
    "header_stacks",
    "header_union_types",
    "header_unions",
    "header_union_stacks",
    "field_lists",
    "parse_vsets",
    "meter_arrays",
    "counter_arrays",
    "register_arrays",
    "calculations",
    "learn_lists",
    "actions",
    "checksums",
)
ERRORS = ["NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout"]


def field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def constant(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def header(name: str) -> Json:
    return {"type": "header", "value": name}


def named(kind: str, name: str) -> Json:
    return {"type": kind, "value": name}


def operation(op: str, left: Json | None, right: Any, **more: Json) -> Json:
    return {"type": "expression", "value": {"op": op, "left": left, "right": right, **more}}


def expression(value: Json) -> Json:
    return {"type": "expression", "value": value}


def call(op: str, *parameters: Json) -> Json:
    return {"op": op, "parameters": list(parameters)}


def default(next_state: str | None = None) -> Json:
    return {"type": "default", "value": None, "mask": None, "next_state": next_state}


def state(
    name: str, operations: Sequence[Json] = (), key: Sequence[Json] = (), transitions: Sequence[Json] = ()
) -> Json:
    return {
        "name": name,
        "parser_ops": list(operations),
        "transition_key": list(key),
        "transitions": list(transitions) or [default()],
    }


def extract(name: str, kind: str = "regular") -> Json:
    return {"op": "extract", "parameters": [{"type": kind, "value": name}]}


class ProgramMaker:
    """Collects the parts of a program; `json()` puts them together. Ids are given by order."""

    def __init__(self) -> None:
        self.parts: dict[str, list[Json]] = {key: [] for key in PARTS}
        self.states: list[Json] = []
        self.order: list[str] = []
        self.pipelines: dict[str, Json] = {
            name: {"name": name, "init_table": None, "tables": [], "action_profiles": [], "conditionals": []}
            for name in ("ingress", "egress")
        }
        self.add_header("standard_metadata", STANDARD_METADATA, metadata=True)

    def add(self, part: str, **values: Any) -> int:
        number = len(self.parts[part])
        self.parts[part].append({"id": number, **values})
        return number

    def add_header(
        self,
        name: str,
        fields: Sequence[Sequence[Any]],
        metadata: bool = False,
        type_name: str = "",
        **type_values: Any,
    ) -> int:
        """Fields are [name, bits, signed]. A type name that exists already is used again."""
        type_name = type_name or name + "_t"
        if all(t["name"] != type_name for t in self.parts["header_types"]):
            self.add("header_types", name=type_name, fields=[list(f) for f in fields], **type_values)
        return self.add("headers", name=name, header_type=type_name, metadata=metadata)

    def add_action(self, name: str, primitives: Sequence[Json], parameters: Sequence[tuple[str, int]] = ()) -> int:
        return self.add(
            "actions",
            name=name,
            primitives=list(primitives),
            runtime_data=[{"name": n, "bitwidth": w} for n, w in parameters],
        )

    def add_table(
        self,
        name: str,
        key: Sequence[tuple[str, list[str]]] = (),
        actions: Sequence[int] = (),
        default_action: int | None = None,
        default_data: Sequence[int] = (),
        match: str = "exact",
        next_node: str | None = None,
        pipeline: str = "ingress",
        **values: Any,
    ) -> None:
        names = [self.parts["actions"][a]["name"] for a in actions]
        table: Json = {
            "name": name,
            "key": [{"match_type": kind, "target": target, "mask": None} for kind, target in key],
            "match_type": match,
            "type": "simple",
            "max_size": 1024,
            "with_counters": False,
            "support_timeout": False,
            "direct_meters": None,
            "action_ids": list(actions),
            "actions": names,
            "next_tables": dict.fromkeys(names, next_node),
            "base_default_next": next_node,
            **values,
        }
        if default_action is not None:
            table["default_entry"] = {
                "action_id": default_action,
                "action_const": False,
                "action_data": [hex(v) for v in default_data],
                "action_entry_const": False,
            }
        self.pipelines[pipeline]["tables"].append(table)
        if self.pipelines[pipeline]["init_table"] is None:
            self.pipelines[pipeline]["init_table"] = name

    def run(self, primitives: Sequence[Json], name: str = "run", pipeline: str = "ingress") -> None:
        """A pipeline that does just this."""
        action = self.add_action(name, primitives)
        self.add_table("do_" + name, actions=[action], default_action=action, pipeline=pipeline)

    def json(self) -> Json:
        return {
            "program": "test.p4",
            "__meta__": {"version": [2, 23]},
            **self.parts,
            "errors": [[name, i] for i, name in enumerate(ERRORS)],
            "parsers": [
                {
                    "name": "parser",
                    "id": 0,
                    "init_state": self.states[0]["name"] if self.states else None,
                    "parse_states": [{"id": i, **s} for i, s in enumerate(self.states)],
                }
            ],
            "deparsers": [{"name": "deparser", "id": 0, "order": self.order, "primitives": []}],
            "pipelines": [{"id": i, **p} for i, p in enumerate(self.pipelines.values())],
            "field_aliases": [],
        }
