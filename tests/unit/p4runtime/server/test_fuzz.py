"""Random messages: always a gRPC status of one line, never a server that is gone or broken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from finsy.proto import U128, p4r
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.p4runtime.client import INSERT, TIMEOUT_S, Client, action, batch_errors, entry, exact, serving
from tests.unit.p4runtime.fake_device import FakeDevice
from tests.unit.p4runtime.sample_program import (
    ACL,
    AGING,
    DROP,
    ECMP,
    ETHER_TYPES,
    FORWARD,
    HOSTS,
    INDIRECT,
    KINDS,
    LEARN,
    MARK,
    METERED,
    PORT_COUNTER,
    PORT_METER,
    PRESET,
    ROUTES,
    SPECIALS,
    TOTALS,
    bmv2_json,
    config,
    p4info,
)

TABLES = [ROUTES, ACL, HOSTS, KINDS, PRESET, AGING, METERED, INDIRECT]
OBJECTS = [DROP, FORWARD, MARK, PORT_COUNTER, TOTALS, ECMP, PORT_METER, ETHER_TYPES, SPECIALS, LEARN]
MEANINGFUL_IDS = [0, 1, 2, 3, 4, *TABLES, *OBJECTS]

BOUNDS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}

RELAXED = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))


def scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    kind = field.cpp_type
    if kind in BOUNDS:
        low, high = BOUNDS[kind]
        return st.sampled_from(MEANINGFUL_IDS) | st.integers(low, high)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return st.sampled_from([value.number for value in field.enum_type.values]) | st.integers(0, 99)
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return st.binary(max_size=8)
        return st.sampled_from(["", "PortId", "Ingress.routes", "packet_out"]) | st.text(max_size=4)
    return st.floats(allow_nan=False)


@st.composite
def messages(draw: st.DrawFn, descriptor: Descriptor, depth: int = 7) -> dict[str, Any]:
    """Keyword arguments of a message with some of its fields set, to anything."""
    fields: dict[str, Any] = {}
    candidates = [f for f in descriptor.fields if depth or f.message_type is None]
    if not candidates or (descriptor.full_name.startswith("google.") and draw(st.booleans())):
        return fields
    # Oneofs of entities and updates are worth filling; of the rest, half.
    chosen = draw(st.lists(st.sampled_from(candidates), min_size=1, max_size=5, unique_by=lambda f: f.name))
    for field in chosen:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        if field.message_type is not None:
            value: st.SearchStrategy[Any] = messages(field.message_type, depth - 1)
        else:
            value = scalars(field)
        if field.is_repeated:
            value = st.lists(value, max_size=3)
        fields[field.name] = draw(value)
    return fields


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Client]:
    with serving({1: FakeDevice(1)}) as client:
        client.become_primary()
        client.push_sample()
        yield client


def status(call: Any) -> str:
    """Name of the status; checks what every status has to satisfy."""
    try:
        call()
    except grpc.RpcError as error:
        name = error.code().name
        assert name not in ("INTERNAL", "DEADLINE_EXCEEDED", "UNAVAILABLE", "CANCELLED"), error
        assert error.details() and "\n" not in error.details()
        if name == "UNKNOWN":
            for detail in batch_errors(error):
                assert detail.canonical_code != grpc.StatusCode.INTERNAL.value[0], detail.message
                assert bool(detail.message) == bool(detail.canonical_code)
        return name
    return "OK"


@pytest.fixture(autouse=True)
def still_in_order(fuzzed: Client) -> Iterator[None]:
    """After each test the server does its work as before."""
    yield
    fuzzed.push_sample()
    host = entry(HOSTS, exact(1, b"\x01"), action=action(DROP))
    fuzzed.write((INSERT, host))
    assert fuzzed.read(entry(HOSTS)) == [host]


@given(st.lists(messages(p4r.Update.DESCRIPTOR), max_size=4))
@RELAXED
def test_write(fuzzed: Client, updates: list[dict[str, Any]]) -> None:
    request = fuzzed.write_request()
    request.MergeFrom(p4r.WriteRequest(updates=updates))
    assert status(lambda: fuzzed.stub.Write(request, timeout=TIMEOUT_S)) in ("OK", "UNKNOWN")


@given(messages(p4r.WriteRequest.DESCRIPTOR))
@RELAXED
def test_whole_write_request(fuzzed: Client, fields: dict[str, Any]) -> None:
    assert status(lambda: fuzzed.stub.Write(p4r.WriteRequest(**fields), timeout=TIMEOUT_S))


@pytest.mark.thorough
@given(st.lists(messages(p4r.Entity.DESCRIPTOR), max_size=4))
@RELAXED
def test_read(fuzzed: Client, entities: list[dict[str, Any]]) -> None:
    request = p4r.ReadRequest(device_id=1, entities=entities)
    assert status(lambda: list(fuzzed.stub.Read(request, timeout=TIMEOUT_S))) in ("OK", "UNKNOWN")


@given(messages(p4r.SetForwardingPipelineConfigRequest.DESCRIPTOR))
@RELAXED
def test_set_pipeline(fuzzed: Client, fields: dict[str, Any]) -> None:
    request = p4r.SetForwardingPipelineConfigRequest(**fields)
    request.device_id, request.role, request.role_id = 1, "", 0
    request.election_id.CopyFrom(U128.encode(1))
    assert status(lambda: fuzzed.stub.SetForwardingPipelineConfig(request, timeout=TIMEOUT_S)) in (
        "OK",
        "INVALID_ARGUMENT",
        "NOT_FOUND",
    )


@pytest.mark.thorough
@given(st.data())
@RELAXED
def test_mutated_p4info(fuzzed: Client, data: st.DataObject) -> None:
    """The sample's P4Info with something random merged into it, next to its own JSON."""
    info = p4info()
    try:
        info.MergeFrom(type(info)(**data.draw(messages(info.DESCRIPTOR))))
        pushed = p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=config().p4_device_config)
    except ValueError:
        return
    assert status(lambda: fuzzed.push("VERIFY_AND_COMMIT", pushed)) in ("OK", "INVALID_ARGUMENT")


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


JSON_VALUES = st.none() | st.booleans() | st.integers(-3, 300) | st.text(max_size=3) | st.just([]) | st.just({})
PATHS = list(paths(bmv2_json()))


@given(st.lists(st.tuples(st.sampled_from(PATHS), JSON_VALUES | st.lists(JSON_VALUES, max_size=2)), max_size=3))
@RELAXED
def test_mutated_json(fuzzed: Client, changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    """Values of the sample's JSON replaced by others. (Only verified: the device in memory trusts its programs.)"""
    document = json.loads(json.dumps(bmv2_json()))
    for path, value in changes:
        holder = document
        for key in path[:-1]:
            if not isinstance(holder, dict | list) or (isinstance(holder, dict) and key not in holder):
                break
            if isinstance(holder, list) and not (isinstance(key, int) and key < len(holder)):
                break
            holder = holder[key]
        else:
            if isinstance(holder, dict) or (isinstance(holder, list) and path[-1] in range(len(holder))):
                holder[path[-1]] = value
    pushed = p4r.ForwardingPipelineConfig(p4info=p4info(), p4_device_config=json.dumps(document).encode())
    assert status(lambda: fuzzed.push("VERIFY", pushed)) in ("OK", "INVALID_ARGUMENT")


@given(messages(p4r.StreamMessageRequest.DESCRIPTOR))
@RELAXED
def test_stream(fuzzed: Client, fields: dict[str, Any]) -> None:
    """Whatever a stream sends, it gets an answer or its end; the primary of another stream stays."""
    request = p4r.StreamMessageRequest(**fields)
    request.arbitration.ClearField("election_id")
    if "arbitration" not in fields:
        request.ClearField("arbitration")
    responses = fuzzed.stub.StreamChannel(iter([request]), timeout=TIMEOUT_S)
    assert status(lambda: list(responses)) in (
        "OK",
        "NOT_FOUND",
        "INVALID_ARGUMENT",
    )
