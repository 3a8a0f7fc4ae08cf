"""Replicas of multicast groups and clone sessions, between messages and the device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from finsy.proto import p4r

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.device import Replica
from gradbed.switch.p4runtime.values import bytestrings
from gradbed.switch.p4runtime.values.status import RequestError, invalid, unimplemented


class Widths(NamedTuple):
    """Of a program's numbers of ports, multicast groups and replicas' instances, in bits."""

    port: int = 9
    group: int = 16
    instance: int = 16


def widths_bits_of(program: ProgramModel) -> Widths:
    """Those of v1model where the program does not say."""
    header = program.headers.get("standard_metadata")
    fields = {field.name: field.width for field in header.type.fields} if header else {}
    names = ("egress_spec", "mcast_grp", "egress_rid")
    return Widths._make(fields.get(name, usual) for name, usual in zip(names, Widths(), strict=True))


def decode_replicas(messages: Iterable[Any], widths_bits: Widths) -> list[Replica]:
    """Raises RequestError unless ports and instances fit and every (port, instance) is there once."""
    replicas = [_decode(message, widths_bits) for message in messages]
    if len(set(replicas)) != len(replicas):
        raise invalid("two replicas have the same port and instance")
    return replicas


def canonical_replicas(messages: Iterable[Any]) -> list[Any]:
    """The valid messages as a client reads them back: port in the field it was written in, shortest byte strings."""
    return [_canonical(message) for message in messages]


def _decode(message: Any, widths_bits: Widths) -> Replica:
    if message.backup_replicas:
        raise unimplemented("backup replicas are not supported: a replica whose port is down is lost")
    instance: int = message.instance
    if instance >> widths_bits.instance:
        raise invalid(f"replica instance {instance} does not fit in {widths_bits.instance} bits")
    kind = message.WhichOneof("port_kind")
    if kind is None:
        raise invalid("a replica has no port")
    if kind == "egress_port":
        port: int = message.egress_port
        if port >> widths_bits.port:
            raise invalid(f"port {port} does not fit in {widths_bits.port} bits")
        return Replica(port, instance)
    try:
        return Replica(bytestrings.decode(message.port, widths_bits.port), instance)
    except RequestError as error:
        raise RequestError(error.code, f"port of a replica: {error.message}") from None


def _canonical(message: Any) -> Any:
    replica = p4r.Replica(instance=message.instance)
    if message.WhichOneof("port_kind") == "egress_port":
        replica.egress_port = message.egress_port
    else:
        replica.port = bytestrings.encode(int.from_bytes(message.port, "big"))
    return replica
