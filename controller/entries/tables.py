"""Entries of tables: one mapping each, written out or made by a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gradbed.common.suggestion import suggestion
from gradbed.controller.entries.collection import Collection, Rank
from gradbed.controller.entries.document import Element
from gradbed.controller.entries.values import parse_match, parse_param
from gradbed.controller.entries.variables import Values, Variables
from gradbed.controller.planning.plan import DefaultAction, MeterRates, TableEntry
from gradbed.controller.southbound.p4runtime.schema import ActionSchema, FieldSchema, MatchType, TableSchema

_FIELDS = ("match", "action", "params", "priority", "meter", "default_action", "routes", "to", "each")
RATES = ("committed_rate", "committed_burst", "peak_rate", "peak_burst")


def read_item(table: TableSchema, item: Element, variables: Variables, collection: Collection, rank: Rank) -> None:
    """Take in one item of a table's list: an entry, a rule, or the default action."""
    read_table(table, item.fields(_FIELDS), item, variables, collection, rank)


def read_table(
    table: TableSchema,
    fields: Mapping[str, Element],
    item: Element,
    variables: Variables,
    collection: Collection,
    rank: Rank,
) -> None:
    """As read_item, of the item's fields."""
    if "default_action" in fields:
        _read_default(table, fields, item, variables, collection, rank)
        return
    if table.is_const:
        raise item.error(f"{table.name}: the program has its entries as constants")
    if "action" not in fields:
        raise item.error("action is missing")
    rank = Rank(rank.scope, written="routes" not in fields and "each" not in fields)
    entry = _entries(table, fields, item)
    for values in _of_rule(fields, variables):
        collection.add(entry(variables if values is None else variables.bound(values)), rank, item.place)


def _of_rule(fields: Mapping[str, Element], variables: Variables) -> Iterator[Values | None]:
    """The values of each entry that is to be made; None: the one that is written."""
    if "routes" in fields:
        which = _word(fields["routes"], ("shortest", "all", "prefixes"))
        if which == "prefixes":
            if "to" in fields:
                raise fields["to"].error("'to' goes with 'routes: shortest': prefixes are those of hosts")
            yield from variables.prefixes()
            return
        to = _word(fields["to"], ("hosts", "switches")) if "to" in fields else "hosts"
        yield from variables.destinations(to == "switches", which == "all")
    elif "to" in fields:
        raise fields["to"].error("'to' goes with 'routes: shortest'")
    elif "each" in fields:
        which = _word(fields["each"], ("port", "host-port", "switch-port"))
        yield from variables.ports(which != "switch-port", which != "host-port")
    else:
        yield None


def _word(element: Element, known: tuple[str, ...]) -> str:
    if element.text() not in known:
        raise element.error(f"{element.text()!r} is no rule{suggestion(element.text(), known)}")
    return element.text()


def _entries(table: TableSchema, fields: Mapping[str, Element], item: Element) -> Callable[[Variables], TableEntry]:
    """What makes an item's entries, of which a rule can have many thousand: they differ in their variables alone."""
    given: list[tuple[FieldSchema, Element]] = []
    for key, value in fields["match"].pairs() if "match" in fields else []:
        with key.blamed():
            given.append((table.fields[key.text()], value))
    names = {field.name for field, _ in given}
    for field in table.fields:
        if field.match_type == MatchType.EXACT and field.name not in names:
            raise fields.get("match", item).error(f"{table.name}: an entry must give {field.name}")
    with fields["action"].blamed():
        action = table.actions[fields["action"].text()]
    priority = fields["priority"].integer(least=1) if "priority" in fields else 0
    if priority and not table.needs_priority:
        raise fields["priority"].error(f"{table.name} takes no priority: it has no ternary, range or optional field")
    meter = None
    if "meter" in fields:
        if not table.has_meter:
            raise fields["meter"].error(f"{table.name}: its entries have no meter")
        meter = read_rates(fields["meter"])
    params = _params(action, fields.get("params"), fields["action"])

    def entry(variables: Variables) -> TableEntry:
        match = {field.name: parse_match(value, field, variables) for field, value in given}
        return TableEntry(
            table=table.name,
            match={name: how for name, how in match.items() if how is not None},
            action=action.name,
            params={param.name: parse_param(value, param, variables) for param, value in params},
            priority=priority,
            meter=meter,
        )

    return entry


def _read_default(
    table: TableSchema,
    fields: Mapping[str, Element],
    item: Element,
    variables: Variables,
    collection: Collection,
    rank: Rank,
) -> None:
    name = fields["default_action"]
    for other, element in fields.items():
        if other not in ("default_action", "params"):
            raise element.error(f"a default action has no {other!r}")
    if table.default_is_const:
        raise name.error(f"{table.name}: the program has its default action as a constant")
    with name.blamed():
        action = table.actions[name.text()]
    params = {
        param.name: parse_param(value, param, variables)
        for param, value in _params(action, fields.get("params"), name)
    }
    collection.add(DefaultAction(table=table.name, action=action.name, params=params), rank, item.place)


def _params(action: ActionSchema, given: Element | None, where: Element) -> list[tuple[FieldSchema, Element]]:
    """What an action's parameters are to be: all are there, and no others."""
    params: list[tuple[FieldSchema, Element]] = []
    for key, value in given.pairs() if given is not None else []:
        with key.blamed():
            params.append((action.params[key.text()], value))
    names = {param.name for param, _ in params}
    missing = [param.name for param in action.params if param.name not in names]
    if missing:
        raise (given or where).error(f"action {action.name} lacks {', '.join(missing)}")
    return params


def read_rates(element: Element) -> MeterRates:
    """A meter's rates and bursts."""
    fields = element.fields(RATES, RATES)
    rates = MeterRates(**{name: value.integer() for name, value in fields.items()})
    if rates.peak_rate < rates.committed_rate:
        raise fields["peak_rate"].error(f"the peak rate {rates.peak_rate} is below the committed rate")
    return rates
