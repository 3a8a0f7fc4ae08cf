"""A device under P4Runtime, whoever its controllers are: the pipeline that it runs, and what it sends of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradbed.switch.p4runtime.values.status import RequestError, failed_precondition, from_exception, invalid
from gradbed.switch.state.device import Device, DigestCallback
from gradbed.switch.state.digests.lists import DigestLists, Send
from gradbed.switch.state.forwarding_state import ForwardingState
from gradbed.switch.state.pipeline import Pipeline


class RunningDevice:
    """Methods raise RequestError. One call at a time."""

    def __init__(
        self, device: Device, send_digests: Send, clock_ns: Callable[[], int], timestamp_ns: Callable[[], int]
    ) -> None:
        """The clocks are those of DigestLists."""
        self.device = device
        self.state: ForwardingState | None = None
        """None before the first pipeline."""
        self.digests: DigestLists | None = None
        self._digest_setting = (send_digests, clock_ns, timestamp_ns)

    def running(self) -> ForwardingState:
        """Raises FAILED_PRECONDITION before the first pipeline."""
        if self.state is None:
            raise self.no_pipeline()
        return self.state

    def no_pipeline(self) -> RequestError:
        return failed_precondition(f"no forwarding pipeline config is set for device {self.device.device_id}")

    def run(self, pipeline: Pipeline, digest_sink: DigestCallback | None) -> ForwardingState:
        """Load its program and start with fresh state. If that fails, the old one goes on.

        `digest_sink`: where the device's digests go while one is enabled.
        """
        try:
            self.device.load(pipeline.program)
        except Exception as error:
            raise from_exception(error) from error
        if self.state is not None:
            self.state.clear()
        self.state = ForwardingState(self.device, pipeline, digest_sink)
        self.digests = DigestLists(pipeline.digests.values(), self.state.digests.configs, *self._digest_setting)
        return self.state

    def lose_everything(self) -> None:
        """As when the power fails for a moment."""
        if self.state is not None:
            self.state.clear()
        self.state = self.digests = None
        self.device.restart()

    # ---- Packets and digests ----

    def packet_in(self, frame: bytes) -> Any | None:
        """The p4.v1.PacketIn of a frame from the CPU port, if a program is there that can have made it."""
        state = self.state
        if state is None:
            return None
        try:
            return state.pipeline.packet_in.packet_in(frame)
        except ValueError:
            return None  # shorter than the header: not made by this program

    def packet_out(self, packet: Any) -> None:
        """Hand a p4.v1.PacketOut to the pipeline."""
        frame = self.running().pipeline.packet_out.frame(packet)
        try:
            self.device.packet_out(frame)
        except Exception as error:
            raise from_exception(error) from error

    def acknowledge_digest(self, digest_id: int, list_id: int) -> None:
        """The controller has seen to a digest list."""
        if digest_id not in self.running().pipeline.digests:
            raise invalid(f"there is no digest {digest_id}")
        if self.digests is not None:
            self.digests.acknowledge(digest_id, list_id)
