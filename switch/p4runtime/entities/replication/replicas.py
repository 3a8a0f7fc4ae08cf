"""Replicas of multicast groups and clone sessions, between messages and the device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from finsy.proto import p4r

from switch.device import Replica
from switch.p4runtime.pipeline.pipeline import Pipeline
from switch.p4runtime.values import bytestrings
from switch.p4runtime.values.status import RequestError, invalid, unimplemented


def decode_replicas(messages: Iterable[Any], pipeline: Pipeline) -> list[Replica]:
    """Raises RequestError unless ports and instances fit and every (port, instance) is there once."""
    replicas = [_decode(message, pipeline) for message in messages]
    if len(set(replicas)) != len(replicas):
        raise invalid("two replicas have the same port and instance")
    return replicas


def canonical_replicas(messages: Iterable[Any]) -> list[Any]:
    """The valid messages as a client reads them back: port in the field it was written in, shortest byte strings."""
    return [_canonical(message) for message in messages]


def _decode(message: Any, pipeline: Pipeline) -> Replica:
    if message.backup_replicas:
        raise unimplemented("backup replicas are not supported: a replica whose port is down is lost")
    instance: int = message.instance
    if instance >> pipeline.instance_width_bits:
        raise invalid(f"replica instance {instance} does not fit in {pipeline.instance_width_bits} bits")
    kind = message.WhichOneof("port_kind")
    if kind is None:
        raise invalid("a replica has no port")
    if kind == "egress_port":
        port: int = message.egress_port
        if port >> pipeline.port_width_bits:
            raise invalid(f"port {port} does not fit in {pipeline.port_width_bits} bits")
        return Replica(port, instance)
    try:
        return Replica(bytestrings.decode(message.port, pipeline.port_width_bits), instance)
    except RequestError as error:
        raise RequestError(error.code, f"port of a replica: {error.message}") from None


def _canonical(message: Any) -> Any:
    replica = p4r.Replica(instance=message.instance)
    if message.WhichOneof("port_kind") == "egress_port":
        replica.egress_port = message.egress_port
    else:
        replica.port = bytestrings.encode(int.from_bytes(message.port, "big"))
    return replica
