"""The P4 switches of a network over P4Runtime: all sessions on one event loop in one thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import grpc

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Plan
from gradbed.controller.southbound.interface import CounterCell, SouthboundTimeout
from gradbed.controller.southbound.messages import Message
from gradbed.controller.southbound.p4runtime.contents import CALL_TIMEOUT_S, PUSH_TIMEOUT_S
from gradbed.controller.southbound.p4runtime.pipeline import Pipeline
from gradbed.controller.southbound.p4runtime.session import Bid, SwitchSession, time_as_bid
from gradbed.controller.southbound.p4runtime.thrift import ThriftReader
from gradbed.controller.southbound.sessions import SessionsSouthbound
from gradbed.controller.southbound.target import Target

T = TypeVar("T")

CHANNEL_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", -1),
    # The switches are on this machine, whatever http_proxy says.
    ("grpc.enable_http_proxy", 0),
)


class P4RuntimeSouthbound(SessionsSouthbound[SwitchSession]):
    """Implements gradbed.controller.southbound.interface.Southbound.

    targets: where each switch is. pipelines: the programs that plans name. Every switch gets its pipeline anew
    when it is first met, since it may hold state of an earlier controller's jobs; with keep_pipelines a switch
    that already runs the same configuration keeps it, and its entries are reconciled. A switch that merely
    lost its connection keeps its pipeline either way. bid: election ids to be primary with.
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
            self._sessions[name] = SwitchSession(
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
        """All switches at once; if any fails or is late, all go back to the plan before."""
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
