"""Entries of tables: one mapping each, written out or made by a rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from common.suggestion import suggestion
from controller.entries.collection import Collection, Rank
from controller.entries.document import Element
from controller.entries.values import parse_match, parse_param
from controller.entries.variables import Values, Variables
from controller.planning.plan import DefaultAction, Match, MeterRates, TableEntry
from controller.southbound.p4runtime.schema import ActionSchema, MatchType, TableSchema

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
    written = "routes" not in fields and "each" not in fields
    for values in _of_rule(fields, variables):
        bound = variables if values is None else variables.bound(values)
        collection.add(_entry(table, fields, item, bound), Rank(rank.scope, written), item.place)


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


def _entry(table: TableSchema, fields: Mapping[str, Element], item: Element, variables: Variables) -> TableEntry:
    match: dict[str, Match] = {}
    given = fields["match"].pairs() if "match" in fields else []
    for key, value in given:
        with key.blamed():
            field = table.fields[key.text()]
        how = parse_match(value, field, variables)
        if how is not None:
            match[field.name] = how
    for field in table.fields:
        if field.match_type == MatchType.EXACT and field.name not in match:
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
    params = _params(action, fields.get("params"), fields["action"], variables)
    return TableEntry(
        table=table.name, match=match, action=action.name, params=params, priority=priority, meter=meter
    )


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
    params = _params(action, fields.get("params"), name, variables)
    collection.add(DefaultAction(table=table.name, action=action.name, params=params), rank, item.place)


def _params(action: ActionSchema, given: Element | None, where: Element, variables: Variables) -> dict[str, int]:
    params: dict[str, int] = {}
    for key, value in given.pairs() if given is not None else []:
        with key.blamed():
            param = action.params[key.text()]
        params[param.name] = parse_param(value, param, variables)
    missing = [param.name for param in action.params if param.name not in params]
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
