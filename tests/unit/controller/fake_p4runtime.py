"""A P4Runtime server of many devices that keeps what it is told and forwards nothing.

It is strict where the specification is: only the primary writes, entries exist or they do not, errors come per
update. Tests look at its devices and tell them to refuse things.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from finsy.proto import U128, p4r, p4r_grpc, rpc_code, rpc_status

from gradbed.controller.southbound.p4runtime.schema import ProgramSchema


class FakeDevice:
    """One switch's control plane state, by the serialised form of each key."""

    def __init__(self) -> None:
        self.config: Any = None
        self.pushes = 0
        self.entries: dict[bytes, Any] = {}
        self.groups: dict[int, Any] = {}
        self.registers: dict[tuple[int, int], int] = {}
        self.counters: dict[tuple[int, int], tuple[int, int]] = {}
        self.updates: Counter[str] = Counter()
        # Of each Write that was let in, the updates.
        self.writes: list[list[Any]] = []
        self.denied = 0
        self.streams: dict[int, queue.Queue[Any]] = {}
        self.refuse_pipeline = ""
        self.unreadable = False
        self.answers = threading.Event()
        self.answers.set()
        self.refuse_entity: Callable[[Any], bool] = lambda entity: False

    @property
    def primary(self) -> int:
        return max(self.streams, default=0)

    def update(self, update: Any) -> Any:
        """Carry out one update; its p4.v1.Error."""
        kind = update.entity.WhichOneof("entity")
        self.updates[kind] += 1
        if self.refuse_entity(update.entity):
            return p4r.Error(canonical_code=rpc_code.RESOURCE_EXHAUSTED, message="no room")
        if kind == "register_entry":
            entry = update.entity.register_entry
            self.registers[entry.register_id, entry.index.index] = int.from_bytes(entry.data.bitstring, "big")
            return p4r.Error(canonical_code=rpc_code.OK)
        if kind == "table_entry":
            entry, store = update.entity.table_entry, self.entries
            key: Any = p4r.TableEntry(
                table_id=entry.table_id,
                match=sorted(entry.match, key=lambda match: match.field_id),
                priority=entry.priority,
            ).SerializeToString(deterministic=True)
        else:
            entry = update.entity.packet_replication_engine_entry.multicast_group_entry
            store, key = self.groups, entry.multicast_group_id
        if (key in store) == (update.type == p4r.Update.INSERT):
            code = rpc_code.ALREADY_EXISTS if key in store else rpc_code.NOT_FOUND
            return p4r.Error(canonical_code=code, message="as the test expects")
        if update.type == p4r.Update.DELETE:
            del store[key]
        else:
            store[key] = entry
        return p4r.Error(canonical_code=rpc_code.OK)

    def read(self, entity: Any) -> Iterator[Any]:
        kind = entity.WhichOneof("entity")
        if kind == "table_entry":
            yield from (p4r.Entity(table_entry=entry) for entry in self.entries.values())
        elif kind == "packet_replication_engine_entry":
            for entry in self.groups.values():
                yield p4r.Entity(
                    packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)
                )
        elif kind == "counter_entry":
            wanted = entity.counter_entry.counter_id
            for (counter, index), (packets, size) in self.counters.items():
                if counter == wanted:
                    yield p4r.Entity(
                        counter_entry=p4r.CounterEntry(
                            counter_id=counter,
                            index=p4r.Index(index=index),
                            data=p4r.CounterData(packet_count=packets, byte_count=size),
                        )
                    )

    def schema(self) -> ProgramSchema:
        return ProgramSchema(self.config.p4info)


class FakeP4Runtime(p4r_grpc.P4RuntimeServicer):
    def __init__(self, address: str, device_ids: Iterable[int]) -> None:
        self.address = address
        self.devices = {device_id: FakeDevice() for device_id in device_ids}
        self._lock = threading.Lock()
        self._server: grpc.Server | None = None

    def start(self) -> None:
        self._server = grpc.server(ThreadPoolExecutor(2 * len(self.devices) + 4))
        p4r_grpc.add_P4RuntimeServicer_to_server(self, self._server)
        assert self._server.add_insecure_port(self.address) is not None
        self._server.start()

    def stop(self, forget: bool = False) -> None:
        """Go away; with `forget` as a switch does that loses all it held."""
        assert self._server is not None
        for device in self.devices.values():
            device.answers.set()
        self._server.stop(grace=None).wait()
        for device_id, device in self.devices.items():
            device.streams.clear()
            if forget:
                self.devices[device_id] = FakeDevice()

    def StreamChannel(self, requests: Any, context: Any) -> Iterator[Any]:
        answers: queue.Queue[Any] = queue.Queue()
        bid = next(requests).arbitration
        if bid.device_id not in self.devices:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no device {bid.device_id}")
        device = self.devices[bid.device_id]
        election_id = U128.decode(bid.election_id)
        context.add_callback(lambda: self._leave(device, election_id, answers))
        with self._lock:
            device.streams[election_id] = answers
            self._announce(device)
        while True:
            answer = answers.get()
            if answer is None:
                return
            yield answer

    def _announce(self, device: FakeDevice) -> None:
        for election_id, answers in device.streams.items():
            code = rpc_code.OK if election_id == device.primary else rpc_code.ALREADY_EXISTS
            answers.put(
                p4r.StreamMessageResponse(
                    arbitration=p4r.MasterArbitrationUpdate(
                        election_id=U128.encode(device.primary), status=rpc_status.Status(code=code)
                    )
                )
            )

    def _leave(self, device: FakeDevice, election_id: int, answers: queue.Queue[Any]) -> None:
        with self._lock:
            answers.put(None)
            if device.streams.pop(election_id, None) is not None:
                self._announce(device)

    def _device(self, request: Any, context: Any, writes: bool = False) -> FakeDevice:
        device = self.devices[request.device_id]
        if writes and U128.decode(request.election_id) != device.primary:
            device.denied += 1
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "not primary")
        if device.config is None and not isinstance(request, p4r.SetForwardingPipelineConfigRequest):
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no forwarding pipeline config")
        return device

    def _waited(self, device: FakeDevice, context: Any) -> bool:
        """Wait until the device answers; False if nobody waits for that any more."""
        device.answers.wait()
        return bool(context.is_active())

    def GetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        device = self._device(request, context)
        return p4r.GetForwardingPipelineConfigResponse(
            config=p4r.ForwardingPipelineConfig(cookie=device.config.cookie)
        )

    def SetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        device = self._device(request, context, writes=True)
        if device.refuse_pipeline:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, device.refuse_pipeline)
        assert request.action == p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        with self._lock:
            device.config = request.config
            device.pushes += 1
            device.entries.clear()
            device.groups.clear()
            device.registers.clear()
        return p4r.SetForwardingPipelineConfigResponse()

    def Write(self, request: Any, context: Any) -> Any:
        device = self._device(request, context, writes=True)
        if not self._waited(device, context):
            return p4r.WriteResponse()
        device.writes.append(list(request.updates))
        with self._lock:
            errors = [device.update(update) for update in request.updates]
        if any(error.canonical_code != rpc_code.OK for error in errors):
            status = rpc_status.Status(code=rpc_code.UNKNOWN, message="some updates failed")
            for error in errors:
                status.details.add().Pack(error)
            context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
            context.abort(grpc.StatusCode.UNKNOWN, "some updates failed")
        return p4r.WriteResponse()

    def Read(self, request: Any, context: Any) -> Iterator[Any]:
        device = self._device(request, context)
        if device.unreadable:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "reading is not supported")
        if not self._waited(device, context):
            return
        with self._lock:
            found = [item for entity in request.entities for item in device.read(entity)]
        # In several responses, as a server with much to say does.
        for first in range(0, len(found), 7):
            yield p4r.ReadResponse(entities=found[first : first + 7])
