"""Runtime files of p4lang/tutorials (sX-runtime.json): what one switch holds."""

from __future__ import annotations

from gradbed.controller.entries.collection import Collection, Precedence
from gradbed.controller.entries.document import Element
from gradbed.controller.entries.sections import read_table
from gradbed.controller.entries.values import Variables
from gradbed.controller.planning.plan import CloneSession, MulticastGroup, Replicas
from gradbed.controller.southbound.p4runtime.schema import ProgramSchema

MARKS = ("target", "table_entries", "bmv2_json")
"""Keys that distinguish such a file from one in the form of controller/entries/sections.py."""

_KNOWN = ("target", "p4info", "bmv2_json", "table_entries", "multicast_group_entries", "clone_session_entries")
_ENTRY = ("table", "match", "action_name", "default_action", "action_params", "priority")
_RANK = Precedence(2)


def is_runtime_json(document: Element) -> bool:
    return document.is_mapping and any(key.text() in MARKS for key, _ in document.pairs())


def read_runtime_json(document: Element, schema: ProgramSchema, variables: Variables, collection: Collection) -> None:
    """Take in the file's entries. Which program it names does not matter: the switch has one already. Keys that the
    tutorials' loader does not know, such as a comment, are passed over as there."""
    fields = document.known_fields(_KNOWN)
    for item in fields["table_entries"].items() if "table_entries" in fields else ():
        with collection.leaving_out():
            _read_entry(item, schema, variables, collection)
    for item in fields["multicast_group_entries"].items() if "multicast_group_entries" in fields else ():
        group = item.known_fields(("multicast_group_id", "replicas"), ("multicast_group_id", "replicas"))
        number = group["multicast_group_id"].integer(least=1)
        collection.add(MulticastGroup(id=number, **_replicas(group["replicas"])), _RANK, item.place)
    for item in fields["clone_session_entries"].items() if "clone_session_entries" in fields else ():
        session = item.known_fields(
            ("clone_session_id", "replicas", "packet_length_bytes"), ("clone_session_id", "replicas")
        )
        cut = session["packet_length_bytes"].integer() if "packet_length_bytes" in session else 0
        number = session["clone_session_id"].integer(least=1)
        copies = _replicas(session["replicas"])
        collection.add(CloneSession(id=number, truncate_bytes=cut, **copies), _RANK, item.place)


def _read_entry(item: Element, schema: ProgramSchema, variables: Variables, collection: Collection) -> None:
    entry = item.known_fields(_ENTRY, ("table", "action_name"))
    name = entry.pop("table")
    with name.blamed():
        table = schema.tables[name.text()]
    action = entry.pop("action_name")
    params = entry.pop("action_params", None)
    default = entry.pop("default_action", None)
    by_default = default is not None and default.text().lower() == "true"
    entry["default_action" if by_default else "action"] = action
    if params is not None:
        entry["params"] = params
    if by_default:
        entry.pop("match", None)
        entry.pop("priority", None)
    read_table(table, entry, item, variables, collection, _RANK)


def _replicas(element: Element) -> dict[str, tuple[int, ...]]:
    copies = []
    for item in element.items():
        fields = item.known_fields(("egress_port", "instance"), ("egress_port",))
        instance = fields["instance"].integer() if "instance" in fields else 1
        copies.append((fields["egress_port"].integer(), instance))
    return Replicas.fields(copies)
