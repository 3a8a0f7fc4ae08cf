"""P4Runtime for one device without a server: the same pipelines, entities, packet-ins and digests, on its clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from finsy.proto import p4r

from switch.codegen import build_program
from switch.device import Device, Program
from switch.p4runtime.pipeline.digests import DigestBuffer, DigestCodec
from switch.p4runtime.pipeline.pipeline import Build, Pipeline, build_pipeline
from switch.p4runtime.pipeline.pipeline_cache import pipeline_digest
from switch.p4runtime.roles import Role
from switch.p4runtime.server.forwarding_state import ForwardingState
from switch.p4runtime.values.status import BatchError, failed_precondition, from_exception, invalid

_EVERYTHING = Role("")


class Pipelines:
    """Pipelines by their content, so that equal switches verify and compile their program once."""

    def __init__(self, build: Build = build_program) -> None:
        self._build = build
        self._pipelines: dict[str, Pipeline] = {}

    def get(self, config: Any) -> Pipeline:
        """Of a ForwardingPipelineConfig. Raises RequestError."""
        key = pipeline_digest(config)
        if key not in self._pipelines:
            self._pipelines[key] = build_pipeline(config.p4info, config.p4_device_config, self._build)
        return self._pipelines[key]


class LocalTarget:
    """A device with one controller, which has all rights. Methods raise RequestError or BatchError.

    `send` takes what a server would send on the controller's stream: p4.v1.StreamMessageResponse. `wait` is called
    when `next_ns` may be earlier than before.
    """

    def __init__(
        self, device: Device, pipelines: Pipelines, send: Callable[[Any], None], wait: Callable[[], None]
    ) -> None:
        self._device = device
        self._pipelines = pipelines
        self._send = send
        self._wait = wait
        self._state: ForwardingState | None = None
        self._codecs: dict[int, DigestCodec] = {}
        self._buffers: dict[int, DigestBuffer] = {}

    @property
    def program(self) -> Program | None:
        """None before the first pipeline."""
        return None if self._state is None else self._state.pipeline.program

    def set_pipeline(self, config: Any) -> None:
        """Run the pipeline of a ForwardingPipelineConfig from now on, with fresh state (VERIFY_AND_COMMIT)."""
        pipeline = self._pipelines.get(config)
        try:
            self._device.load(pipeline.program)
        except Exception as error:
            raise from_exception(error) from error
        self._forget()
        self._state = ForwardingState(self._device, pipeline, self._digest)
        self._codecs = {codec.list_id: codec for codec in pipeline.digests.values()}
        self._device.on_packet_in(self._packet_in)

    def write(self, updates: Iterable[Any]) -> None:
        """Attempt every p4.v1.Update, in order. Raises BatchError if some fail."""
        outcomes = self._running().write(updates, _EVERYTHING)
        self._wait()
        if any(outcomes):
            failed = sum(outcome is not None for outcome in outcomes)
            raise BatchError(f"{failed} of {len(outcomes)} updates failed", outcomes)

    def read(self, entities: Iterable[Any]) -> list[Any]:
        """The entities that each p4.v1.Entity asks for, as in a ReadRequest."""
        state = self._running()
        return [found for entity in entities for found in state.read(entity, _EVERYTHING)]

    def packet_out(self, packet: Any) -> None:
        """Hand a p4.v1.PacketOut to the pipeline."""
        frame = self._running().pipeline.packet_out.frame(packet)
        try:
            self._device.packet_out(frame)
        except Exception as error:
            raise from_exception(error) from error

    def acknowledge_digest(self, digest_id: int, list_id: int) -> None:
        """The controller has seen to a digest list."""
        if digest_id not in self._running().pipeline.digests:
            raise invalid(f"there is no digest {digest_id}")
        buffer = self._buffers.get(digest_id)
        if buffer is not None:
            buffer.acknowledge(list_id)

    def restart(self) -> None:
        """Program, tables, registers and what was to be sent are gone."""
        self._forget()
        self._state = None
        self._device.restart()

    # ---- Timers ----

    @property
    def next_ns(self) -> int | None:
        """When `send_due` has something to do, on the device's clock: an incomplete digest list, an idle entry."""
        if self._state is None:
            return None
        times = [buffer.due_ns for buffer in self._buffers.values()]
        times.append(self._state.tables.idle_timers.next_ns)
        return min((time_ns for time_ns in times if time_ns is not None), default=None)

    def send_due(self) -> None:
        """Send digest lists and idle timeouts whose time has come."""
        if self._state is None:
            return
        now_ns = self._device.clock_ns()
        for codec in self._codecs.values():
            buffer = self._buffers.get(codec.digest_id)
            if buffer is not None and buffer.due_ns is not None and buffer.due_ns <= now_ns:
                self._send_list(codec, buffer, now_ns)
        expired = self._state.tables.expired()
        if expired:
            notification = p4r.IdleTimeoutNotification(table_entry=expired, timestamp=now_ns)
            self._send(p4r.StreamMessageResponse(idle_timeout_notification=notification))

    # ---- From the data plane ----

    def _packet_in(self, frame: bytes) -> None:
        try:
            packet = self._running().pipeline.packet_in.packet_in(frame)
        except ValueError:
            return  # shorter than the header: not made by this program
        self._send(p4r.StreamMessageResponse(packet=packet))

    def _digest(self, list_id: int, words: tuple[int, ...]) -> None:
        codec = self._codecs.get(list_id)
        config = self._running().digests.configs.get(codec.digest_id) if codec is not None else None
        if codec is None or config is None:
            return
        buffer = self._buffers.setdefault(codec.digest_id, DigestBuffer(config))
        buffer.config = config
        now_ns = self._device.clock_ns()
        if buffer.add(codec.values(words), now_ns):
            self._send_list(codec, buffer, now_ns)
        else:
            self._wait()

    def _send_list(self, codec: DigestCodec, buffer: DigestBuffer, now_ns: int) -> None:
        list_id, messages = buffer.take(now_ns)
        if codec.digest_id not in self._running().digests.configs:
            del self._buffers[codec.digest_id]
            return
        digest_list = p4r.DigestList(digest_id=codec.digest_id, list_id=list_id, timestamp=now_ns)
        for values in messages:
            codec.encode(values, digest_list.data.add())
        self._send(p4r.StreamMessageResponse(digest=digest_list))

    # ---- Private ----

    def _running(self) -> ForwardingState:
        if self._state is None:
            raise failed_precondition(f"no forwarding pipeline config is set for device {self._device.device_id}")
        return self._state

    def _forget(self) -> None:
        if self._state is not None:
            self._state.clear()
        self._codecs = {}
        self._buffers.clear()
        self._device.on_packet_in(None)
