"""What controllers and people ask over the network: P4Runtime and REST."""

from __future__ import annotations

import asyncio
import functools
from urllib.parse import quote

import httpx
from fastapi import FastAPI
from finsy.proto import p4r
from google.protobuf.message import DecodeError

from gradbed.controller.core.service import ServiceConfig, load_services
from gradbed.switch.compiler import compile_p4
from gradbed.switch.engine_network import InterfaceConfig, NetworkConfig, SwitchConfig
from gradbed.switch.p4runtime.status import BatchError, RequestError, StatusCode
from gradbed.switch.virtual import SimulatedNetwork
from tests.fuzz.parsers.target import ROOT, Target
from tests.unit.controller.rest.test_rest_docs import AGGREGATION, description_of

_KINDS = (p4r.WriteRequest, p4r.ReadRequest, p4r.PacketOut, p4r.DigestListAck)
"""By an input's first byte."""
_PROGRAM = ROOT / "tests/unit/p4runtime/state.p4"
_MAX_PATH = 2_000
_METHODS = ("GET", "POST", "DELETE", "PUT")


@functools.cache
def _config() -> p4r.ForwardingPipelineConfig:
    compiled = compile_p4(_PROGRAM)
    return p4r.ForwardingPipelineConfig(p4info=compiled.p4info, p4_device_config=compiled.json_text.encode())


@functools.cache
def _simulated() -> SimulatedNetwork:
    interfaces = tuple(InterfaceConfig(device_id=1, port=i, interface=f"s1-eth{i}") for i in (1, 2, 3))
    return SimulatedNetwork(NetworkConfig(switches=(SwitchConfig(device_id=1, name="s1"),), interfaces=interfaces))


def _ask(data: bytes) -> object:
    """On a switch with fresh state, whose packets then go on."""
    kind = _KINDS[data[0] % len(_KINDS)] if data else p4r.WriteRequest
    request = kind.FromString(data[1:])
    simulated = _simulated()
    simulated.set_pipeline(1, _config())
    try:
        if kind is p4r.WriteRequest:
            simulated.write(1, request.updates)
            simulated.read(1, [update.entity for update in request.updates])
        elif kind is p4r.ReadRequest:
            simulated.read(1, request.entities)
        elif kind is p4r.PacketOut:
            simulated.packet_out(1, request)
        else:
            simulated.acknowledge_digest(1, request.digest_id, request.list_id)
    except BatchError as error:
        for outcome in filter(None, error.outcomes):
            assert outcome.code != StatusCode.INTERNAL, outcome
            assert outcome.message and "\n" not in outcome.message, outcome
        raise
    except RequestError as error:
        assert error.code != StatusCode.INTERNAL, error
        raise
    return simulated.run_until(simulated.now_ns + 1_000_000)


def _requests() -> list[bytes]:
    """An entry of every table and one of every kind of state, by the P4Info; and questions for them."""
    info = _config().p4info
    entities = [p4r.Entity(table_entry=p4r.TableEntry(table_id=table.preamble.id)) for table in info.tables]
    for table in info.tables:
        entity = entities[0].__class__(table_entry=p4r.TableEntry(table_id=table.preamble.id, priority=1))
        for field in table.match_fields:
            match = entity.table_entry.match.add(field_id=field.id)
            match.exact.value = b"\1"
        for reference in table.action_refs[:1]:
            entity.table_entry.action.action.action_id = reference.id
        entities.append(entity)
    for register in info.registers:
        entry = p4r.RegisterEntry(register_id=register.preamble.id, index=p4r.Index(index=0))
        entry.data.bitstring = b"\1"
        entities.append(p4r.Entity(register_entry=entry))
    entities += [p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=each.preamble.id)) for each in info.counters]
    entities += [p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=each.preamble.id)) for each in info.meters]
    group = p4r.MulticastGroupEntry(multicast_group_id=1, replicas=[p4r.Replica(egress_port=1, instance=1)])
    engine = p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
    entities.append(p4r.Entity(packet_replication_engine_entry=engine))
    seeds = []
    for entity in entities:
        write = p4r.WriteRequest(updates=[p4r.Update(type=p4r.Update.INSERT, entity=entity)])
        seeds += [b"\0" + write.SerializeToString(), b"\1" + p4r.ReadRequest(entities=[entity]).SerializeToString()]
    return [*seeds, b"\2" + p4r.PacketOut(payload=bytes(60)).SerializeToString()]


@functools.cache
def _app() -> FastAPI:
    (service,) = load_services([ServiceConfig(name="aggregation", service=AGGREGATION)])
    return description_of("aggregation", service)


def _call(data: bytes) -> object:
    """An input is METHOD PATH, a line's end, and the body. What the handlers raise gets here."""
    head, _, body = data.partition(b"\n")
    method, _, path = head.decode("latin-1").partition(" ")
    method = _METHODS[sum(method.encode()) % len(_METHODS)] if method not in _METHODS else method
    place = "/" + quote(path.lstrip("/")[:_MAX_PATH], safe="/?&=%:")
    headers = {"Content-Type": "application/json"}

    async def answered() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(_app()), base_url="http://localhost") as client:
            return await client.request(method, place, content=body, headers=headers)

    answer = asyncio.run(answered())
    assert answer.status_code < 500, answer.text
    return answer


def _calls() -> list[bytes]:
    return [
        b"GET /topology\n",
        b"GET /switches/s1/counters\n",
        b"GET /switches/s1/registers/memory\n",
        b"GET /plan.txt\n",
        b"GET /systems/aggregation/jobs\n",
        b"DELETE /systems/aggregation/jobs/1\n",
        b'POST /links\n{"a": "h1", "b": "s1", "up": false}',
        b'POST /systems/aggregation/jobs\n{"server": "h1", "workers": ["h2"], "slots": 4}',
    ]


TARGETS = {
    "p4runtime": Target(_ask, _requests, (RequestError, BatchError, DecodeError), mutants=60),
    "rest": Target(_call, _calls, (), mutants=60),
}
