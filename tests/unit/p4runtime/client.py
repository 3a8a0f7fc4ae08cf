"""A small synchronous client, and short ways to write messages."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc, rpc_status

from gradbed.switch.compiler import compile_p4
from gradbed.switch.server import P4RuntimeServer
from tests.unit.p4runtime.fake_device import FakeDevice, FakeProgram
from tests.unit.p4runtime.sample_program import config

TIMEOUT_S = 20

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


class Stream:
    """A StreamChannel. `next` waits for a message; `error` for the status that ends the stream."""

    def __init__(self, stub: Any) -> None:
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._call = stub.StreamChannel(iter(self._requests.get, None))
        self._responses: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        try:
            for response in self._call:
                self._responses.put(response)
            self._responses.put(None)
        except grpc.RpcError as error:
            self._responses.put(error)
        finally:
            self._requests.put(None)  # gRPC's own thread waits for the next request, else for ever

    def send(self, **fields: Any) -> None:
        self._requests.put(p4r.StreamMessageRequest(**fields))

    def arbitrate(self, election_id: int | None, device_id: int = 1, role: Any = None) -> None:
        update = p4r.MasterArbitrationUpdate(device_id=device_id, role=role)
        if election_id is not None:
            update.election_id.CopyFrom(U128.encode(election_id))
        self.send(arbitration=update)

    def next(self) -> Any:
        response = self._responses.get(timeout=TIMEOUT_S)
        if isinstance(response, grpc.RpcError):
            raise response
        return response

    def status(self) -> tuple[int, int | None]:
        """Status code and election id of the next arbitration message."""
        arbitration = self.next().arbitration
        election_id = U128.decode(arbitration.election_id) if arbitration.HasField("election_id") else None
        return arbitration.status.code, election_id

    def error(self) -> tuple[Any, str]:
        try:
            response = self.next()
        except grpc.RpcError as error:
            return error.code(), error.details()
        raise AssertionError(f"expected the stream to end, got {response}")

    def silent(self) -> bool:
        return self._responses.empty()

    def close(self) -> None:
        self._requests.put(None)

    def cancel(self) -> None:
        self._call.cancel()


class Client:
    def __init__(self, channel: Any, device_id: int = 1, election_id: int = 1, role: str = "") -> None:
        """`channel`: of gRPC, or the address for a new one."""
        if isinstance(channel, str):
            channel = grpc.insecure_channel(channel, options=[("grpc.max_metadata_size", 1 << 20)])
        self.channel = channel
        self.stub = p4r_grpc.P4RuntimeStub(channel)
        self.device_id = device_id
        self.election_id = election_id
        self.role = role

    def stream(self) -> Stream:
        return Stream(self.stub)

    def become_primary(self) -> Stream:
        stream = self.stream()
        stream.arbitrate(self.election_id, self.device_id)
        assert stream.status()[0] == 0
        return stream

    def push(self, action: str = "VERIFY_AND_COMMIT", pipeline: Any = None) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            election_id=U128.encode(self.election_id),
            role=self.role,
            action=p4r.SetForwardingPipelineConfigRequest.Action.Value(action),
            config=pipeline,
        )
        self.stub.SetForwardingPipelineConfig(request, timeout=TIMEOUT_S)

    def push_sample(self, **more: Any) -> None:
        self.push(pipeline=config(**more))

    def get_pipeline(self, response_type: str = "ALL") -> Any:
        kinds = p4r.GetForwardingPipelineConfigRequest.ResponseType
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self.device_id, response_type=kinds.Value(response_type)
        )
        return self.stub.GetForwardingPipelineConfig(request, timeout=TIMEOUT_S)

    def write_request(self, *updates: tuple[int, Any]) -> Any:
        return p4r.WriteRequest(
            device_id=self.device_id,
            election_id=U128.encode(self.election_id),
            role=self.role,
            updates=[p4r.Update(type=kind, entity=entity(message)) for kind, message in updates],
        )

    def write(self, *updates: tuple[int, Any]) -> None:
        self.stub.Write(self.write_request(*updates), timeout=TIMEOUT_S)

    def outcomes(self, *updates: tuple[int, Any]) -> list[int]:
        """Canonical code of each update."""
        return [code for code, _ in self.failures(*updates)]

    def failures(self, *updates: tuple[int, Any]) -> list[tuple[int, str]]:
        try:
            self.write(*updates)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNKNOWN, error
            return [(e.canonical_code, e.message) for e in batch_errors(error)]
        return [(0, "")] * len(updates)

    def insert(self, message: Any) -> int:
        return self.outcomes((INSERT, message))[0]

    def modify(self, message: Any) -> int:
        return self.outcomes((MODIFY, message))[0]

    def delete(self, message: Any) -> int:
        return self.outcomes((DELETE, message))[0]

    def read(self, *messages: Any) -> list[Any]:
        """The messages inside the entities that are found."""
        request = p4r.ReadRequest(
            device_id=self.device_id, role=self.role, entities=[entity(message) for message in messages]
        )
        found = [e for r in self.stub.Read(request, timeout=TIMEOUT_S) for e in r.entities]
        return [getattr(e, e.WhichOneof("entity")) for e in found]

    def close(self) -> None:
        self.channel.close()


@contextmanager
def serving(devices: Mapping[int, FakeDevice], **options: Any) -> Iterator[Client]:
    """A client, without stream and pipeline, of a server of its own. options: of P4RuntimeServer."""
    server = P4RuntimeServer(devices, ["127.0.0.1:0"], **{"build": FakeProgram, **options})
    server.start()
    client = Client(f"127.0.0.1:{server.ports[0]}")
    try:
        yield client
    finally:
        client.close()
        server.stop()


def batch_errors(error: Any) -> list[Any]:
    """The p4.v1.Error messages in the status of a failed batch."""
    [details] = [value for key, value in error.trailing_metadata() if key == "grpc-status-details-bin"]
    status = rpc_status.Status.FromString(details)
    assert status.code == error.code().value[0]
    assert status.message == error.details()
    errors = []
    for detail in status.details:
        errors.append(p4r.Error())
        assert detail.Unpack(errors[-1])
    return errors


_ONEOFS = {field.message_type.name: field.name for field in p4r.Entity.DESCRIPTOR.oneofs_by_name["entity"].fields}


def entity(message: Any) -> Any:
    """An Entity around one of its messages, or around a multicast group or clone session."""
    result = p4r.Entity()
    if isinstance(message, p4r.MulticastGroupEntry):
        result.packet_replication_engine_entry.multicast_group_entry.CopyFrom(message)
    elif isinstance(message, p4r.CloneSessionEntry):
        result.packet_replication_engine_entry.clone_session_entry.CopyFrom(message)
    elif message is not None:
        inner = getattr(result, _ONEOFS[type(message).__name__])
        inner.SetInParent()
        inner.CopyFrom(message)
    return result


def action(action_id: int, *values: bytes) -> Any:
    params = [p4r.Action.Param(param_id=i, value=value) for i, value in enumerate(values, 1)]
    return p4r.TableAction(action=p4r.Action(action_id=action_id, params=params))


def exact(field_id: int, value: bytes) -> Any:
    return p4r.FieldMatch(field_id=field_id, exact=p4r.FieldMatch.Exact(value=value))


def lpm(field_id: int, value: bytes, prefix_bits: int) -> Any:
    return p4r.FieldMatch(field_id=field_id, lpm=p4r.FieldMatch.LPM(value=value, prefix_len=prefix_bits))


def ternary(field_id: int, value: bytes, mask: bytes) -> Any:
    return p4r.FieldMatch(field_id=field_id, ternary=p4r.FieldMatch.Ternary(value=value, mask=mask))


def range_(field_id: int, low: bytes, high: bytes) -> Any:
    return p4r.FieldMatch(field_id=field_id, range=p4r.FieldMatch.Range(low=low, high=high))


def optional(field_id: int, value: bytes) -> Any:
    return p4r.FieldMatch(field_id=field_id, optional=p4r.FieldMatch.Optional(value=value))


def entry(table_id: int, *match: Any, action: Any = None, **more: Any) -> Any:
    return p4r.TableEntry(table_id=table_id, match=match, action=action, **more)


def ids(info: p4i.P4Info) -> dict[str, int]:
    """By alias, of what entries name."""
    parts = (info.tables, info.actions, info.action_profiles, info.meters, info.value_sets)
    return {described.preamble.alias: described.preamble.id for part in parts for described in part}


def pipeline_of(program: Path) -> p4r.ForwardingPipelineConfig:
    compiled = compile_p4(program)
    return p4r.ForwardingPipelineConfig(p4info=compiled.p4info, p4_device_config=compiled.json_text.encode())


def texts(messages: Iterable[Any]) -> list[str]:
    """For comparing messages in any order."""
    return sorted(str(message) for message in messages)
