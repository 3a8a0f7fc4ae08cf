"""The connection to one switch: stream and arbitration, and a plan that the switch is kept to."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import grpc
from finsy.proto import U128, p4r, p4r_grpc, rpc_code

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import SwitchPlan
from gradbed.controller.southbound.interface import CounterCell, SouthboundError, SwitchStatus
from gradbed.controller.southbound.messages import Message
from gradbed.controller.southbound.p4runtime.codec import decode_digest, decode_packet_in
from gradbed.controller.southbound.p4runtime.contents import SwitchContents, SwitchRefuses
from gradbed.controller.southbound.p4runtime.pipeline import Pipeline
from gradbed.controller.southbound.p4runtime.rpc_errors import describe, is_away
from gradbed.controller.southbound.p4runtime.schema import ProgramSchema
from gradbed.controller.southbound.sessions import Session
from gradbed.controller.southbound.target import Target

FIRST_RETRY_S = 0.1
LAST_RETRY_S = 2.0

Bid = Callable[[int], int]
"""The election id to ask to be primary with, if possible of at least so much; UserError if it is not our turn."""


def time_as_bid(at_least: int) -> int:
    """A later controller takes over from one that hangs."""
    return max(at_least, time.time_ns())


class SwitchSession(Session):
    """Keeps one switch connected and at its plan. All methods run on one event loop."""

    def __init__(
        self,
        name: str,
        target: Target,
        channel: grpc.aio.Channel,
        pipelines: Mapping[str, Pipeline],
        keep_pipeline: bool,
        on_change: Callable[[SwitchStatus], None],
        on_message: Callable[[str, Message], None],
        bid: Bid,
    ) -> None:
        super().__init__(name, target.address, on_change, SwitchPlan(program=""))
        self._device_id = target.device_id
        self._stub = p4r_grpc.P4RuntimeStub(channel)
        self._contents = SwitchContents(name, self._stub, target.device_id, pipelines)
        self._may_keep_pipeline = keep_pipeline
        self._on_message = on_message
        self._bid_of = bid
        self._lock = asyncio.Lock()

    async def run(self, plan: SwitchPlan) -> None:
        """Connect, bring the switch to the plan, and stay; start over when the switch goes away. Never returns."""
        self._wanted = plan
        retry_s = FIRST_RETRY_S
        while True:
            try:
                await self._serve()
                reason, self.refused = "the switch closed the stream", False
            except grpc.aio.AioRpcError as error:
                reason, self.refused = describe(error, "stream"), not is_away(error)
            except SouthboundError as error:
                reason = str(error).removeprefix(f"{self.name}: ")
                self.refused = isinstance(error, SwitchRefuses)
            except UserError as error:
                reason, self.refused = str(error), True
            if self.status.connected:
                retry_s = FIRST_RETRY_S
            self._set_status(SwitchStatus(self.name, False, error=reason))
            await asyncio.sleep(retry_s)
            retry_s = min(2 * retry_s, LAST_RETRY_S)

    async def apply(self, plan: SwitchPlan) -> None:
        """Bring the connected switch to another plan. After an error call `restore`: some of it may have been
        written."""
        async with self._lock:
            self._require_connected()
            self._wanted = plan
            await self._bring_to_plan()

    async def restore(self, plan: SwitchPlan) -> None:
        """Make `plan` the one that the switch is kept to: now if it is there, else as soon as it is."""
        self._wanted = plan
        async with self._lock:
            if self.status.connected:
                # What fails now is mended by the next plan or the next connection.
                with contextlib.suppress(SouthboundError):
                    await self._bring_to_plan()

    def handed_over(self) -> None:
        """`run` was cancelled: another controller is in charge."""
        self._set_status(SwitchStatus(self.name, False, error="handed over to another controller"))

    async def counters(self) -> dict[str, list[CounterCell]]:
        """All counter arrays by short name, every cell."""
        self._require_connected()
        return await self._contents.counters(self._wanted)

    async def differences(self) -> list[str] | None:
        """What the switch holds otherwise than its plan; None: it cannot tell."""
        async with self._lock:
            self._require_connected()
            return await self._contents.differences(self._wanted)

    async def register(self, name: str) -> list[int]:
        """Every cell of a register array."""
        self._require_connected()
        return await self._contents.register(self._wanted, name)

    def register_name(self, name: str) -> str:
        """In full, as the program's compiler has it."""
        self._require_connected()
        found: str = self._schema().registers[name].name
        return found

    async def _serve(self) -> None:
        stream = self._stub.StreamChannel(wait_for_ready=True)
        try:
            await self._bid(stream)
            async for message in stream:
                update = message.WhichOneof("update")
                if update == "arbitration":
                    await self._arbitrated(stream, message.arbitration)
                elif update == "packet":
                    self._on_message(self.name, decode_packet_in(self._schema(), message.packet))
                elif update == "digest":
                    await self._take_digest(stream, message.digest)
        finally:
            stream.cancel()

    async def _bid(self, stream: Any, at_least: int = 0) -> None:
        """Ask to be primary."""
        election_id = U128.encode(self._bid_of(at_least))
        self._contents.election_id = election_id
        await stream.write(
            p4r.StreamMessageRequest(
                arbitration=p4r.MasterArbitrationUpdate(device_id=self._device_id, election_id=election_id)
            )
        )

    async def _arbitrated(self, stream: Any, update: Any) -> None:
        if update.status.code == rpc_code.OK:
            if not self.status.connected:
                async with self._lock:
                    await self._contents.rediscover(self._may_keep_pipeline)
                    await self._bring_to_plan()
            return
        self._set_status(SwitchStatus(self.name, False, error="another controller is in charge"))
        if update.status.code == rpc_code.NOT_FOUND:
            # The primary has left. A switch goes on comparing with its election id.
            await self._bid(stream, U128.decode(update.election_id) + 1)

    async def _take_digest(self, stream: Any, digest: Any) -> None:
        decoded = decode_digest(self._schema(), digest)
        if decoded is not None:
            self._on_message(self.name, decoded)
        # Until it hears this the switch keeps equal digests back.
        await stream.write(
            p4r.StreamMessageRequest(digest_ack=p4r.DigestListAck(digest_id=digest.digest_id, list_id=digest.list_id))
        )

    def _schema(self) -> ProgramSchema:
        return self._contents.pipeline(self._wanted).schema

    async def _bring_to_plan(self) -> None:
        await self._contents.bring_to(self._wanted)
        # From now on what runs there is ours, and so is the state in it.
        self._may_keep_pipeline = True
        self.refused = False
        self._set_status(SwitchStatus(self.name, True, self._contents.pipeline(self._wanted).label))
