"""The P4 switches of a network over P4Runtime: all sessions on one event loop in one thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import grpc
from finsy.proto import U128, p4r, p4r_grpc, rpc_code

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Plan, SwitchPlan
from gradbed.controller.southbound.interface import (
    CounterCell,
    Message,
    SessionsSouthbound,
    SouthboundError,
    SouthboundTimeout,
    SwitchSession,
    SwitchStatus,
    Target,
)
from gradbed.controller.southbound.p4runtime.codec import decode_digest, decode_packet_in
from gradbed.controller.southbound.p4runtime.contents import (
    CALL_TIMEOUT_S,
    PUSH_TIMEOUT_S,
    SwitchContents,
    WriteRefused,
    describe,
    is_away,
)
from gradbed.controller.southbound.p4runtime.schema import Pipeline, ProgramSchema
from gradbed.switch.p4lang.bmv2 import THRIFT_MOST, Bmv2Ended, Bmv2Refuses, Shell, require_simple_switch

# ---- One switch: stream and arbitration, and a plan that it is kept to ----


FIRST_RETRY_S = 0.1
LAST_RETRY_S = 2.0

Bid = Callable[[int], int]
"""The election id to ask to be primary with, if possible of at least so much; UserError if it is not our turn."""


def time_as_bid(at_least: int) -> int:
    """Return the time as an election id: a later controller takes over from one that hangs."""
    return max(at_least, time.time_ns())


class P4RuntimeSession(SwitchSession):
    """Keep one switch connected and at its plan. All methods run on one event loop.

    The stream, mastership and election ids are those of the P4Runtime specification, section 5.
    """

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
                self.refused = isinstance(error, WriteRefused)
            except UserError as error:
                reason, self.refused = str(error), True
            if self.status.connected:
                retry_s = FIRST_RETRY_S
            self._set_status(SwitchStatus(self.name, False, error=reason))
            await asyncio.sleep(retry_s)
            retry_s = min(2 * retry_s, LAST_RETRY_S)

    async def apply(self, plan: SwitchPlan) -> None:
        """Bring the connected switch to another plan.

        After an error call `restore`, since part of the plan may have been written.
        """
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
        """Handle that `run` was cancelled since another controller is in charge."""
        self._set_status(SwitchStatus(self.name, False, error="handed over to another controller"))

    async def counters(self) -> dict[str, list[CounterCell]]:
        """Return all counter arrays by short name, every cell."""
        self._require_connected()
        return await self._contents.counters(self._wanted)

    async def differences(self) -> list[str] | None:
        """Return the differences of the switch from its plan; None: it cannot report its contents."""
        async with self._lock:
            self._require_connected()
            return await self._contents.differences(self._wanted)

    async def register(self, name: str) -> list[int]:
        """Return every cell of a register array."""
        self._require_connected()
        return await self._contents.register(self._wanted, name)

    def register_name(self, name: str) -> str:
        """Return the full name, as the program's compiler has it."""
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
        # Until the acknowledgement arrives the switch suppresses equal digests.
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


# ---- All switches ----


T = TypeVar("T")

CHANNEL_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", -1),
    # The switches are on this machine, whatever http_proxy says.
    ("grpc.enable_http_proxy", 0),
)


class P4RuntimeSouthbound(SessionsSouthbound[P4RuntimeSession]):
    """Implements gradbed.controller.southbound.interface.Southbound.

    Every switch gets its pipeline when it first connects, even if it runs it already, since it may hold state of an
    earlier controller's jobs. A switch that merely lost its connection keeps its pipeline.

    Args:
        targets: The target of each switch.
        pipelines: The programs that plans name.
        keep_pipelines: A switch that already runs the same configuration keeps it, and its entries are reconciled.
        bid: Election ids to become primary with.
    """

    def __init__(
        self,
        targets: Mapping[str, Target],
        pipelines: Mapping[str, Pipeline],
        keep_pipelines: bool = False,
        bid: Bid = time_as_bid,
    ) -> None:
        super().__init__(targets)
        self._pipelines = dict(pipelines)
        self._keep_pipelines = keep_pipelines
        self._bid = bid
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="p4runtime", daemon=True)
        self._tasks: list[asyncio.Task[None]] = []
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._one_plan_at_a_time = asyncio.Lock()
        self._thrift = ThriftReader()

    def start(self, plan: Plan) -> None:
        self._check_switches(plan)
        for name, switch in plan.switches.items():
            if switch.program not in self._pipelines:
                raise UserError(f"{name}: no pipeline is named {switch.program!r}")
            self._pipelines[switch.program].schema.normalised(switch)
        self._thread.start()
        self._run(self._open(plan))

    def apply(self, plan: Plan) -> None:
        self._run(self._apply(plan))

    def counters(self, switch: str) -> dict[str, list[CounterCell]]:
        return self._run(_in_time(self._sessions[switch].counters(), switch, CALL_TIMEOUT_S))

    def differences(self, switch: str) -> Sequence[str] | None:
        return self._run(_in_time(self._sessions[switch].differences(), switch, CALL_TIMEOUT_S))

    def registers(self, switch: str, name: str) -> Sequence[int | None]:
        if (port := self._targets[switch].thrift_port) is not None:
            return self._thrift.registers(switch, port, self._sessions[switch].register_name(name))
        return self._run(_in_time(self._sessions[switch].register(name), switch, CALL_TIMEOUT_S))

    def hand_over(self) -> None:
        self._run(self._let_go())

    def stop(self) -> None:
        """End all sessions; the switches keep what they hold."""
        self._thrift.close()
        if self._thread.is_alive():
            self._run(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Work bounds itself in time: what waits for a switch is cancelled there, not left to go on here."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self, plan: Plan) -> None:
        for name, target in self._targets.items():
            if target.address not in self._channels:
                self._channels[target.address] = grpc.aio.insecure_channel(target.address, options=CHANNEL_OPTIONS)
            self._sessions[name] = P4RuntimeSession(
                name,
                target,
                self._channels[target.address],
                self._pipelines,
                self._keep_pipelines,
                self._status_changed,
                self._on_message,
                self._bid,
            )
        self._tasks = [
            asyncio.create_task(session.run(plan[name]), name=name) for name, session in self._sessions.items()
        ]

    async def _apply(self, plan: Plan) -> None:
        """Bring all switches to a plan at once; if any fails or is late, all go back to the plan before."""
        async with self._one_plan_at_a_time:
            await self._apply_or_restore(plan)

    async def _apply_or_restore(self, plan: Plan) -> None:
        sessions = self._sessions.values()
        before = [session.plan for session in sessions]
        outcomes = await asyncio.gather(
            *(_in_time(session.apply(plan[session.name]), session.name, PUSH_TIMEOUT_S) for session in sessions),
            return_exceptions=True,
        )
        failures = [outcome for outcome in outcomes if outcome is not None]
        if failures:
            restored = (
                _in_time(session.restore(old), session.name, CALL_TIMEOUT_S)
                for session, old in zip(sessions, before, strict=True)
            )
            # One that is late again is mended by the next plan or the next connection.
            await asyncio.gather(*restored, return_exceptions=True)
            raise failures[0]

    async def _let_go(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for session in self._sessions.values():
            session.handed_over()

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for channel in self._channels.values():
            await channel.close()
        # Cancelled calls leave tasks of gRPC's behind, which complain when the loop ends before they do.
        leftovers = asyncio.all_tasks() - {asyncio.current_task()}
        if leftovers:
            await asyncio.wait(leftovers, timeout=1.0)

    def _on_message(self, switch: str, message: Message) -> None:
        self._listener.message(switch, message)


async def _in_time(work: Awaitable[T], switch: str, timeout_s: float) -> T:
    """SouthboundTimeout, and the work is cancelled, if the switch does not let it end in time."""
    try:
        return await asyncio.wait_for(work, timeout_s)
    except asyncio.TimeoutError:
        raise SouthboundTimeout(f"{switch}: no answer within {timeout_s:g} s") from None


# ---- Registers of BMv2, whose P4Runtime server does not read them ----


class ThriftReader:
    """Read registers of BMv2 with simple_switch_CLI, of which one is kept for each switch. Thread-safe."""

    def __init__(self) -> None:
        self._shells: dict[int, Shell] = {}
        self._lock = threading.Lock()

    def registers(self, switch: str, port: int, register: str) -> list[int | None]:
        """Return every cell; None: a value too large for BMv2's command line.

        Raises:
            SouthboundError: It does not answer.
        """
        with self._lock:
            try:
                if port not in self._shells:
                    self._shells[port] = Shell(require_simple_switch()[1], port)
                cells = self._shells[port].register(register)
            except (Bmv2Refuses, Bmv2Ended) as error:
                if (shell := self._shells.pop(port, None)) is not None:
                    shell.end()
                raise SouthboundError(f"{switch}: {error}") from None
        return [None if cell == THRIFT_MOST else cell for cell in cells]

    def close(self) -> None:
        with self._lock:
            for shell in self._shells.values():
                shell.end()
            self._shells.clear()
