"""P4Info as a compiler would write it for p4src/aggregation.p4, and a small program with every kind of match."""

from __future__ import annotations

from typing import Any

from finsy.proto import p4i

INGRESS = "AggregationIngress"


class P4InfoBuilder:
    """Adds objects with identifiers of the right kind (the type is the identifier's first byte)."""

    def __init__(self) -> None:
        self.message = p4i.P4Info()
        self._count = 0

    def _preamble(self, message: Any, prefix: int, name: str) -> Any:
        self._count += 1
        message.preamble.id = prefix << 24 | self._count
        message.preamble.name = name
        message.preamble.alias = name.split(".")[-1]
        return message

    def action(self, name: str, **params: int) -> Any:
        action = self._preamble(self.message.actions.add(), p4i.P4Ids.ACTION, name)
        for number, (param, bits) in enumerate(params.items(), start=1):
            action.params.add(id=number, name=param, bitwidth=bits)
        return action

    def table(self, name: str, fields: dict[str, tuple[int, str]], actions: list[Any], **attributes: Any) -> Any:
        table = self._preamble(self.message.tables.add(**attributes), p4i.P4Ids.TABLE, name)
        for number, (field, (bits, kind)) in enumerate(fields.items(), start=1):
            table.match_fields.add(
                id=number, name=field, bitwidth=bits, match_type=p4i.MatchField.MatchType.Value(kind)
            )
        for action in actions:
            table.action_refs.add(id=action.preamble.id)
        return table

    def counter(self, name: str, size: int) -> Any:
        counter = self._preamble(self.message.counters.add(size=size), p4i.P4Ids.COUNTER, name)
        counter.spec.unit = p4i.CounterSpec.BOTH
        return counter

    def register(self, name: str, bits: int, size: int) -> Any:
        register = self._preamble(self.message.registers.add(size=size), p4i.P4Ids.REGISTER, name)
        register.type_spec.bitstring.bit.bitwidth = bits
        return register


def aggregation_p4info() -> Any:
    build = P4InfoBuilder()
    build.message.pkg_info.arch = "v1model"
    no_action = build.action("NoAction")
    forward = build.action(f"{INGRESS}.forwarding.forward", port=9, dst_mac=48)
    drop = build.action(f"{INGRESS}.forwarding.drop")
    replicate = build.action(f"{INGRESS}.forwarding.replicate", group=16)
    towards = build.action(f"{INGRESS}.forwarding.towards_designated", port=9)
    role = {"switch_number": 16, "first_slot": 32, "slots": 32, "reclaim_distance": 32}
    hashed = build.action(f"{INGRESS}.aggregation.policy.aggregate_hashed", **role)
    indexed = build.action(f"{INGRESS}.aggregation.policy.aggregate_indexed", **role)
    destination = "hdr.ipv4.dst_addr"
    number = "hdr.gradient.switch_number"
    build.table(f"{INGRESS}.forwarding.ipv4_routes", {destination: (32, "LPM")}, [forward, drop])
    build.table(f"{INGRESS}.forwarding.multicast_routes", {destination: (32, "EXACT")}, [replicate, no_action])
    build.table(f"{INGRESS}.forwarding.designated_routes", {number: (16, "EXACT")}, [towards, no_action])
    build.table(
        f"{INGRESS}.aggregation.policy.roles",
        {"hdr.gradient.job": (16, "EXACT")},
        [hashed, indexed, no_action],
    )
    for name in ("arrivals.gradient_in", "arrivals.acknowledgement_in", "aggregation.events"):
        build.counter(f"{INGRESS}.{name}", 16)
    build.register(f"{INGRESS}.aggregation.slot_owner", 64, 16)
    return build.message


def every_match_p4info() -> Any:
    build = P4InfoBuilder()
    set_port = build.action("Ingress.set_port", port=9)
    build.table("Ingress.exact_table", {"hdr.a": (16, "EXACT")}, [set_port])
    build.table(
        "Ingress.wide_table",
        {
            "hdr.t": (16, "TERNARY"),
            "hdr.r": (16, "RANGE"),
            "hdr.o": (16, "OPTIONAL"),
            "hdr.l": (128, "LPM"),
        },
        [set_port],
    )
    build.table("Ingress.fixed", {"hdr.a": (16, "EXACT")}, [set_port], is_const_table=True)
    build.table("Ingress.inner.twin", {"hdr.a": (16, "EXACT")}, [set_port])
    build.table("Ingress.outer.twin", {"hdr.a": (16, "EXACT")}, [set_port])
    build.register("Ingress.memory", 32, 4)
    return build.message
