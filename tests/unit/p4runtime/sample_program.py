"""A program made by hand, as BMv2 JSON and P4Info: every match kind, every kind of state, packet I/O."""

from __future__ import annotations

import json
from typing import Any

from finsy.proto import p4i, p4r
from google.protobuf import text_format

ROUTES, ACL, HOSTS, KINDS, PRESET, INDIRECT, KEYLESS, PORTS, AGING, METERED, NEXTHOPS = range(0x02000001, 0x0200000C)
NO_ACTION, DROP, FORWARD, MARK, DEFAULT_ONLY = range(0x01000001, 0x01000006)
ROUTE_COUNTER, KIND_COUNTER = 0x13000001, 0x13000002
PORT_COUNTER = 0x12000001
ECMP, NEXTHOP_PROFILE = 0x11000001, 0x11000002
PORT_METER, SINGLE_RATE_METER, TWO_COLOUR_METER, HOST_METER = 0x14000001, 0x14000002, 0x14000003, 0x15000001
ETHER_TYPES, SPECIALS = 0x03000001, 0x03000002
LEARN = 0x17000001
TOTALS, OFFSETS, FLAGS = range(0x16000001, 0x16000004)

ACTIONS = {
    "NoAction": [],
    "Ingress.drop": [],
    "Ingress.forward": [("port", 9), ("dst", 48)],
    "Ingress.mark": [("value", 12)],
    "Ingress.punt": [],
}

FIELD_WIDTHS_BITS = {
    ("ipv4", "dst"): 32,
    ("ipv4", "src"): 32,
    ("ipv4", "protocol"): 8,
    ("udp", "dst_port"): 16,
    ("eth", "dst"): 48,
    ("eth", "odd"): 1,
    ("standard_metadata", "ingress_port"): 9,
}

KINDS_OF_MATCH = ("exact", "lpm", "ternary", "range")
EMPTY_CALL = {"action_id": 0, "action_data": []}


def table(name: str, keys: list[tuple[str, str, str]], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "key": [{"match_type": kind, "name": f"{h}.{f}", "target": [h, f]} for kind, h, f in keys],
        "match_type": max((kind for kind, _, _ in keys), key=KINDS_OF_MATCH.index, default="exact"),
        "action_ids": list(range(len(ACTIONS))),
        "max_size": 100_000,
        "default_entry": EMPTY_CALL,
        **more,
    }


STATE: dict[str, Any] = {
    "meter_arrays": [
        {"name": "Ingress.port_meter", "is_direct": False, "size": 4, "type": "bytes"},
        {"name": "Ingress.single_rate_meter", "is_direct": False, "size": 1, "type": "bytes"},
        {"name": "Ingress.two_colour_meter", "is_direct": False, "size": 1, "type": "bytes"},
        {
            "name": "Ingress.host_meter",
            "is_direct": True,
            "binding": "Ingress.metered",
            "type": "packets",
            "result_target": ["udp", "dst_port"],
        },
    ],
    "parse_vsets": [
        {"name": "Parser.ether_types", "compressed_bitwidth": 16, "max_size": 4},
        {"name": "Parser.specials", "compressed_bitwidth": 48, "max_size": 4},
    ],
    "learn_lists": [
        {
            "name": "learn_t",
            "id": 1,
            "elements": [
                {"type": "field", "value": ["eth", "dst"]},
                {"type": "field", "value": ["standard_metadata", "ingress_port"]},
                {"type": "field", "value": ["eth", "odd"]},
            ],
        }
    ],
    "register_arrays": [
        {"name": "Ingress.totals", "size": 4, "bitwidth": 33},
        {"name": "Ingress.offsets", "size": 4, "bitwidth": 12},
        {"name": "Ingress.flags", "size": 4, "bitwidth": 1},
    ],
}
"""Of BMv2's JSON: what no table has to do with."""


def tables(routes: str) -> list[dict[str, Any]]:
    kinds = [
        {"match_key": [{"match_type": "exact", "key": "0x06"}], "action_entry": EMPTY_CALL, "priority": 1},
        {
            "match_key": [{"match_type": "exact", "key": "0x11"}],
            "action_entry": {"action_id": 3, "action_data": ["0x7"]},
            "priority": 2,
        },
    ]
    preset = [
        {
            "match_key": [{"match_type": "ternary", "key": "0x01", "mask": mask}],
            "action_entry": {"action_id": 3, "action_data": [value]},
            "priority": priority,
        }
        for mask, value, priority in (("0xff", "0x1", 1), ("0x0f", "0x2", 2))
    ]
    return [
        table(
            routes,
            [("lpm", "ipv4", "dst")],
            with_counters=True,
            default_entry={"action_id": 1, "action_data": []},
        ),
        table(
            "Ingress.acl",
            [
                ("ternary", "ipv4", "src"),
                ("range", "udp", "dst_port"),
                ("ternary", "standard_metadata", "ingress_port"),
                ("exact", "ipv4", "protocol"),
            ],
        ),
        table("Ingress.hosts", [("exact", "eth", "dst")]),
        table("Ingress.kinds", [("exact", "ipv4", "protocol")], entries=kinds, with_counters=True),
        table("Ingress.preset", [("ternary", "ipv4", "protocol")], entries=preset),
        table("Ingress.indirect", [("exact", "ipv4", "src")], default_entry=None),
        table("Ingress.nexthops", [("exact", "ipv4", "src")], default_entry=None),
        table("Ingress.aging", [("exact", "ipv4", "src")], support_timeout=True),
        table("Ingress.metered", [("exact", "eth", "dst")], direct_meters="Ingress.host_meter"),
        table("Ingress.keyless", []),
        table("Ingress.ports", [("exact", "standard_metadata", "ingress_port")]),
    ]


def bmv2_json(routes: str = "Ingress.routes") -> dict[str, Any]:
    headers: dict[str, list[list[Any]]] = {}
    for (header, field), width_bits in FIELD_WIDTHS_BITS.items():
        headers.setdefault(header, []).append([field, width_bits, False])
    headers["packet_in"] = [["ingress_port", 9, False], ["reason", 7, False]]
    headers["standard_metadata"] += [["egress_spec", 9, False], ["mcast_grp", 16, False], ["egress_rid", 16, False]]
    profiles = [
        {"name": "Ingress.ecmp", "max_size": 16, "selector": {"algo": "crc16", "input": []}},
        {"name": "Ingress.nexthop_profile", "max_size": 2},
    ]
    return {
        "header_types": [{"name": f"{name}_t", "fields": fields} for name, fields in headers.items()],
        "headers": [
            {"name": name, "id": i, "header_type": f"{name}_t", "metadata": True} for i, name in enumerate(headers)
        ],
        "actions": [
            {"name": name, "id": i, "runtime_data": [{"name": n, "bitwidth": w} for n, w in parameters]}
            for i, (name, parameters) in enumerate(ACTIONS.items())
        ],
        "pipelines": [{"name": "ingress", "tables": tables(routes), "action_profiles": profiles}],
        "counter_arrays": [
            {"name": "Ingress.port_counter", "size": 8, "is_direct": False},
            {"name": "Ingress.route_counter", "is_direct": True, "binding": routes},
        ],
        **STATE,
    }


OBJECTS = [
    (
        "action_profiles",
        ECMP,
        "Ingress.ecmp",
        f"table_ids: {INDIRECT} with_selector: true size: 16 max_group_size: 8",
    ),
    ("action_profiles", NEXTHOP_PROFILE, "Ingress.nexthop_profile", f"table_ids: {NEXTHOPS} size: 2"),
    ("meters", PORT_METER, "Ingress.port_meter", "spec { unit: BYTES } size: 4"),
    (
        "meters",
        SINGLE_RATE_METER,
        "Ingress.single_rate_meter",
        "spec { unit: BYTES type: SINGLE_RATE_THREE_COLOR } size: 1",
    ),
    (
        "meters",
        TWO_COLOUR_METER,
        "Ingress.two_colour_meter",
        "spec { unit: BYTES type: SINGLE_RATE_TWO_COLOR } size: 1",
    ),
    ("direct_meters", HOST_METER, "Ingress.host_meter", f"spec {{ unit: PACKETS }} direct_table_id: {METERED}"),
    ("value_sets", ETHER_TYPES, "Parser.ether_types", "match { id: 1 bitwidth: 16 match_type: EXACT } size: 4"),
    (
        "value_sets",
        SPECIALS,
        "Parser.specials",
        """
        match { id: 1 name: "kind" bitwidth: 8 match_type: EXACT }
        match { id: 2 name: "value" bitwidth: 16 match_type: TERNARY }
        match { id: 3 name: "prefix" bitwidth: 8 match_type: LPM }
        match { id: 4 name: "ports" bitwidth: 8 match_type: RANGE }
        match { id: 5 name: "maybe" bitwidth: 8 match_type: OPTIONAL } size: 4
        """,
    ),
    ("digests", LEARN, "learn_t", 'type_spec { struct { name: "learn_t" } }'),
    ("counters", PORT_COUNTER, "Ingress.port_counter", "spec { unit: BOTH } size: 8"),
    ("direct_counters", ROUTE_COUNTER, "Ingress.route_counter", f"spec {{ unit: BOTH }} direct_table_id: {ROUTES}"),
    ("direct_counters", KIND_COUNTER, "Ingress.kind_counter", f"spec {{ unit: BOTH }} direct_table_id: {KINDS}"),
    ("registers", TOTALS, "Ingress.totals", "type_spec { bitstring { bit { bitwidth: 33 } } } size: 4"),
    ("registers", OFFSETS, "Ingress.offsets", "type_spec { bitstring { int { bitwidth: 12 } } } size: 4"),
    ("registers", FLAGS, "Ingress.flags", "type_spec { bool { } } size: 4"),
    (
        "controller_packet_metadata",
        0x04000001,
        "packet_in",
        """
        metadata { id: 1 name: "ingress_port" bitwidth: 32 type_name { name: "PortId" } }
        metadata { id: 2 name: "reason" bitwidth: 7 }
        """,
    ),
    (
        "controller_packet_metadata",
        0x04000002,
        "packet_out",
        'metadata { id: 1 name: "egress_port" bitwidth: 9 } metadata { id: 2 name: "pad" bitwidth: 7 }',
    ),
]
"""All but tables and actions, as P4Info has them: kind, id, name, and what else is said of them."""

TYPES = """
    type_info {
        new_types { key: "PortId" value { translated_type { uri: "port" sdn_bitwidth: 32 } } }
        structs {
            key: "learn_t" value {
                members { name: "src" type_spec { bitstring { bit { bitwidth: 48 } } } }
                members { name: "port" type_spec { new_type { name: "PortId" } } }
                members { name: "odd" type_spec { bool { } } }
            }
        }
    }"""


def described(kind: str, object_id: int, name: str, more: str) -> str:
    """Of P4Info, as text."""
    alias = name.split(".")[-1]
    return f'{kind} {{ preamble {{ id: {object_id} name: "{name}" alias: "{alias}" }} {more} }}\n'


def p4info(routes: str = "Ingress.routes") -> Any:
    tables = [
        (ROUTES, routes, 4, [("LPM", 32)], f"direct_resource_ids: {ROUTE_COUNTER}"),
        (ACL, "Ingress.acl", 64, [("TERNARY", 32), ("RANGE", 16), ("OPTIONAL", 9), ("EXACT", 8)], ""),
        (HOSTS, "Ingress.hosts", 100_000, [("EXACT", 48)], f"const_default_action_id: {NO_ACTION}"),
        (
            KINDS,
            "Ingress.kinds",
            2,
            [("EXACT", 8)],
            f"is_const_table: true has_initial_entries: true direct_resource_ids: {KIND_COUNTER}",
        ),
        (PRESET, "Ingress.preset", 16, [("TERNARY", 8)], "has_initial_entries: true"),
        (INDIRECT, "Ingress.indirect", 16, [("EXACT", 32)], f"implementation_id: {ECMP}"),
        (KEYLESS, "Ingress.keyless", 16, [], ""),
        (PORTS, "Ingress.ports", 16, [("EXACT", 32)], ""),
        (AGING, "Ingress.aging", 16, [("EXACT", 32)], "idle_timeout_behavior: NOTIFY_CONTROL"),
        (METERED, "Ingress.metered", 16, [("EXACT", 48)], f"direct_resource_ids: {HOST_METER}"),
        (NEXTHOPS, "Ingress.nexthops", 16, [("EXACT", 32)], f"implementation_id: {NEXTHOP_PROFILE}"),
    ]
    text = ""
    for table_id, name, size, fields, more in tables:
        matches = ""
        for i, (kind, width_bits) in enumerate(fields, 1):
            type_name = 'type_name { name: "PortId" }' if table_id == PORTS else ""
            matches += (
                f'match_fields {{ id: {i} name: "f{i}" bitwidth: {width_bits} match_type: {kind} {type_name} }}'
            )
        actions = "".join(f"action_refs {{ id: {number} }}" for number in (NO_ACTION, DROP, MARK))
        actions += f"action_refs {{ id: {FORWARD} scope: TABLE_ONLY }}"
        actions += f"action_refs {{ id: {DEFAULT_ONLY} scope: DEFAULT_ONLY }}"
        text += described("tables", table_id, name, f"size: {size} {matches} {more} {actions}")
    for action_id, (name, parameters) in zip(range(NO_ACTION, DEFAULT_ONLY + 1), ACTIONS.items(), strict=True):
        params = "".join(f'params {{ id: {i} name: "{n}" bitwidth: {w} }}' for i, (n, w) in enumerate(parameters, 1))
        text += described("actions", action_id, name, params)
    for kind, object_id, name, more in OBJECTS:
        text += described(kind, object_id, name, more)
    text += TYPES
    return text_format.Parse(text, p4i.P4Info())


def config(cookie: int | None = None, routes: str = "Ingress.routes") -> Any:
    """A ForwardingPipelineConfig; another name for the routes table makes it another program."""
    result = p4r.ForwardingPipelineConfig(
        p4info=p4info(routes), p4_device_config=json.dumps(bmv2_json(routes)).encode()
    )
    if cookie is not None:
        result.cookie.cookie = cookie
    return result
