"""The loader of pipelines: tables with their entries, conditions, action profiles, and the order among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json import model as m
from gradbed.switch.bmv2_json.load_expressions import NameTable, boolean, data, field, key_width, named
from gradbed.switch.bmv2_json.model import GREATEST_RANK, initial_priorities
from gradbed.switch.bmv2_json.reader import JsonNode

_MATCHES = ("exact", "lpm", "ternary", "range")
_MAX_TABLE_SIZE = 1 << 28


def load_pipelines(
    root: JsonNode, names: NameTable, actions: Mapping[int, m.Action]
) -> tuple[dict[str, m.Pipeline], dict[str, m.Profile]]:
    profiles: dict[str, m.Profile] = {}
    pipelines: dict[str, m.Pipeline] = {}
    seen_tables: set[str] = set()
    for node in root.list("pipelines"):
        for item in node.list("action_profiles"):
            profile = _profile(item, names)
            profiles[profile.name] = profile
        kinds = ("tables", "conditionals", "action_calls")
        nodes_here = {item["name"].text() for kind in kinds for item in node.list(kind)}
        nodes: dict[str, m.ControlNode] = {}
        for item in node.list("tables"):
            table = _table(item, names, actions, nodes_here, profiles)
            if table.name in seen_tables:
                raise item.error(f"a second table named '{table.name[:80]}'")
            seen_tables.add(table.name)
            nodes[table.name] = table
        for item in node.list("conditionals"):
            name = item["name"].text()
            condition = boolean(names, item["expression"])
            nodes[name] = m.ConditionalStep(
                name,
                condition,
                _next(item, "true_next", nodes_here),
                _next(item, "false_next", nodes_here),
                item.source(),
            )
        for item in node.list("action_calls"):
            name, action = item["name"].text(), item["action_id"].integer()
            if action not in actions or actions[action].parameters:
                raise item.error("calls an action that does not exist or has parameters")
            nodes[name] = m.PipelineActionCall(name, action, _next(item, "next_node", nodes_here), item.source())
        pipeline = m.Pipeline(node["name"].text(), _next(node, "init_table", nodes_here), nodes)
        pipelines[pipeline.name] = pipeline
    return pipelines, profiles


def successors(node: m.ControlNode) -> list[str | None]:
    """Return the nodes that may follow `node`."""
    if isinstance(node, m.ConditionalStep):
        return [node.if_true, node.if_false]
    if isinstance(node, m.PipelineActionCall):
        return [node.next]
    return [node.next_hit, node.next_miss, node.next_without_action, *node.next_by_action.values()]


def _next(node: JsonNode, key: str, nodes: set[str]) -> str | None:
    target = node.get(key)
    return named(target, "table or condition", nodes) if target else None


def _profile(node: JsonNode, names: NameTable) -> m.Profile:
    name = node["name"].text()
    selector = node.get("selector")
    calculation = None
    if selector is not None:
        inputs = []
        for item in selector.list("input"):
            value = field(names, item["value"])
            if not isinstance(value, ex.FieldReference):
                raise item.error("a selector hashes fields")
            inputs.append(m.CalculationInput(field=value))
        calculation = m.CalculationDefinition(name, selector["algo"].text(), tuple(inputs))
    size = node.get("max_size")
    return m.Profile(name, size.integer(0, _MAX_TABLE_SIZE) if size else 1024, calculation)


def _table(
    node: JsonNode,
    names: NameTable,
    actions: Mapping[int, m.Action],
    nodes: set[str],
    profiles: Mapping[str, m.Profile],
) -> m.Table:
    name = node["name"].text()
    key = tuple(_key_field(item, names) for item in node.list("key"))
    match_node = node.get("match_type")
    match = match_node.text() if match_node else "exact"
    if match not in _MATCHES:
        raise node.error(f"match type '{match[:40]}' is not supported")
    # The most general kind decides: an entry of a ternary table has a priority, even for its lpm field.
    match = max([match, *(k.match for k in key)], key=_MATCHES.index)
    if match == "lpm" and sum(k.match == "lpm" for k in key) > 1:
        raise node.error("a table has at most one lpm field")
    table_actions = tuple(_table_action(item, actions) for item in node.list("action_ids"))
    kind = node.get("type")
    profile_name = None
    if kind is not None and kind.text() in ("indirect", "indirect_ws"):
        profile_name = named(node["action_profile"], "action profile", profiles)
        if (kind.text() == "indirect_ws") != (profiles[profile_name].selector is not None):
            raise node.error("only a table of type indirect_ws has a profile with a selector")
    default_node = node.get("default_entry")
    default = _call(default_node, actions, table_actions, node) if default_node else None
    items = node.list("entries")
    priorities = initial_priorities([_rank(item, position) for position, item in enumerate(items, 1)])
    entries = tuple(
        _entry(item, key, actions, table_actions, priority) for item, priority in zip(items, priorities, strict=True)
    )
    direct_meter, counters, size = node.get("direct_meters"), node.get("with_counters"), node.get("max_size")
    timeouts = node.get("support_timeout")
    fixed = default_node.get("action_entry_const") if default_node else None
    return m.Table(
        name=name,
        match=match,
        key=key,
        actions=table_actions,
        max_size=max(size.integer(0, _MAX_TABLE_SIZE) if size else 1024, len(entries)),
        with_counters=counters.boolean() if counters else False,
        with_timeouts=timeouts.boolean() if timeouts else False,
        direct_meter=named(direct_meter, "meter array", names.meters) if direct_meter else None,
        profile=profile_name,
        **_following(node, table_actions, nodes),
        next_without_action=_next(node, "base_default_next", nodes),
        default=default,
        default_is_const=fixed.boolean() if fixed else False,
        entries=entries,
        source=node.source(),
    )


def _following(node: JsonNode, actions: Sequence[m.Action], nodes: set[str]) -> dict[str, Any]:
    """Return the fields of a table that say where control continues after it."""
    by_name = {action.name: action.id for action in actions}
    following = node.get("next_tables")
    next_by_action: dict[int, str | None] = {action.id: None for action in actions}
    has_next_hit = has_next_miss = False
    next_hit = next_miss = None
    if following is not None:
        if not isinstance(following.value, dict):
            raise following.error("expected an object")
        for action_name in following.value:
            target = _next(following, action_name, nodes)
            if action_name == "__HIT__":
                has_next_hit, next_hit = True, target
            elif action_name == "__MISS__":
                has_next_miss, next_miss = True, target
            elif action_name in by_name:
                next_by_action[by_name[action_name]] = target
            else:
                raise following.error(f"'{action_name[:80]}' is not an action of the table")
    return {
        "next_by_action": next_by_action,
        "next_hit": next_hit,
        "has_next_hit": has_next_hit,
        "next_miss": next_miss,
        "has_next_miss": has_next_miss,
    }


def _table_action(node: JsonNode, actions: Mapping[int, m.Action]) -> m.Action:
    action = actions.get(node.integer())
    if action is None:
        raise node.error(f"no action with id {node.integer()}")
    return action


def _key_field(node: JsonNode, names: NameTable) -> m.KeyField:
    match = node["match_type"].text()
    target = node["target"]
    value: ex.Data
    if match == "valid":
        value, match = ex.FromBoolean(ex.IsValid(ex.NamedHeader(named(target, "header", names.headers)))), "exact"
    elif isinstance(target.value, dict):
        value = data(names, target)
    else:
        value = field(names, target)
    match = "ternary" if match == "optional" else match
    if match not in _MATCHES:
        raise node.error(f"match type '{match[:40]}' is not supported")
    width = key_width(names, node, value)
    label, mask = node.get("name"), node.get("mask")
    return m.KeyField(label.text() if label else "", match, value, width, mask.hexadecimal() if mask else None)


def _call(
    node: JsonNode, actions: Mapping[int, m.Action], allowed: tuple[m.Action, ...], where: JsonNode
) -> m.ActionEntry:
    action = actions.get(node["action_id"].integer())
    if action is None or action not in allowed:
        raise node.error(f"action {node['action_id'].integer()} is not one of the table's")
    arguments = tuple(item.hexadecimal() for item in node.list("action_data"))
    if len(arguments) != len(action.parameters):
        raise node.error(f"action '{action.name}' takes {len(action.parameters)} arguments, got {len(arguments)}")
    return m.ActionEntry(
        action.id, tuple(v % (1 << p.width) for v, p in zip(arguments, action.parameters, strict=True))
    )


def _rank(node: JsonNode, position: int) -> int:
    rank = node.get("priority")
    return rank.integer(0, GREATEST_RANK) if rank else position


def _entry(
    node: JsonNode,
    key: tuple[m.KeyField, ...],
    actions: Mapping[int, m.Action],
    allowed: tuple[m.Action, ...],
    priority: int,
) -> m.ProgramEntry:
    parts = node.list("match_key")
    if len(parts) != len(key):
        raise node.error(f"an entry has {len(key)} key fields here, got {len(parts)}")
    const = node.get("const")
    return m.ProgramEntry(
        tuple(_entry_field(item, wanted) for item, wanted in zip(parts, key, strict=True)),
        _call(node["action_entry"], actions, allowed, node),
        priority,
        const is not None and const.value is True,
    )


def _entry_field(node: JsonNode, wanted: m.KeyField) -> m.EntryField:
    full = (1 << wanted.width) - 1
    if wanted.match == "range":
        low, high = node["start"].hexadecimal() & full, node["end"].hexadecimal() & full
        if low > high:
            raise node.error("the range's start is above its end")
        return m.EntryField(low, high=high)
    value = node["key"]
    number = int(value.value) if isinstance(value.value, bool) else value.hexadecimal()
    if wanted.match == "exact":
        return m.EntryField(number & full)
    if wanted.match == "lpm":
        return m.EntryField(number & full, prefix_bits=node["prefix_length"].integer(0, wanted.width))
    mask = node.get("mask")
    return m.EntryField(number & full, mask=(mask.hexadecimal() if mask else full) & full)
