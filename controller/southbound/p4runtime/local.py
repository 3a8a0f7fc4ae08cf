"""The southbound of switches in this process, by the same code as over P4Runtime but without a server."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from typing import Any, Protocol, TypeVar

from finsy.proto import p4r, rpc_code

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Plan
from gradbed.controller.southbound.interface import CounterCell, SouthboundError, SouthboundListener, SwitchStatus
from gradbed.controller.southbound.p4runtime.codec import decode_digest, decode_packet_in
from gradbed.controller.southbound.p4runtime.contents import AlreadyThere, SwitchContents
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.switch.p4runtime.status import BatchError, RequestError

Result = TypeVar("Result")


class LocalSwitches(Protocol):
    """Switches of this process by device id (gradbed.switch.virtual.SimulatedNetwork)."""

    def set_pipeline(self, device_id: int, config: Any) -> None: ...

    def cookie(self, device_id: int) -> int | None: ...

    def write(self, device_id: int, updates: Any) -> None: ...

    def read(self, device_id: int, entities: Any) -> list[Any]: ...

    def acknowledge_digest(self, device_id: int, digest_id: int, list_id: int) -> None: ...


class LocalSouthbound:
    """gradbed.controller.southbound.interface.Southbound. Everything is done when a method returns. takes_over: leave
    in switches what is right already."""

    def __init__(
        self,
        switches: LocalSwitches,
        device_ids: Mapping[str, int],
        pipelines: Mapping[str, Pipeline],
        takes_over: bool = False,
    ) -> None:
        self._takes_over = takes_over
        self._switches = switches
        self._names = {device_id: name for name, device_id in device_ids.items()}
        self._contents = {
            name: SwitchContents(name, _Stub(name, switches, device_id), device_id, pipelines)
            for name, device_id in device_ids.items()
        }
        self._plan = Plan(switches={})
        self._away: set[str] = set()
        self._listener: SouthboundListener | None = None

    def listen(self, listener: SouthboundListener) -> None:
        self._listener = listener

    def start(self, plan: Plan) -> None:
        for contents in self._contents.values():
            _complete(contents.rediscover(keep_pipeline=self._takes_over))
        self.apply(plan)
        for status in self.status():
            if self._listener is not None:
                self._listener.switch_changed(status)

    def wait_ready(self, timeout_s: float) -> None:
        """Do nothing: they are always ready."""

    def apply(self, plan: Plan) -> None:
        """Bring all switches to a plan. If any refuses, all go back to the plan before.

        Those that are away get it when they return.
        """
        connected = []
        try:
            for name, contents in self._contents.items():
                if name not in self._away:
                    connected.append(name)
                    _complete(contents.bring_to(plan.switches[name]))
        except (SouthboundError, UserError):
            for name in connected if self._plan.switches else ():
                # What fails now is mended by the next plan.
                with contextlib.suppress(SouthboundError):
                    _complete(self._contents[name].bring_to(self._plan.switches[name]))
            raise
        self._plan = plan

    def lost(self, switch: str) -> None:
        """Handle that a switch has lost everything, and is away until it is restored."""
        self._away.add(switch)

    def restore(self, switch: str) -> None:
        """Bring a switch that is back with nothing to the plan again."""
        self._away.discard(switch)
        contents = self._contents[switch]
        _complete(contents.rediscover(keep_pipeline=False))
        _complete(contents.bring_to(self._plan.switches[switch]))

    def status(self) -> list[SwitchStatus]:
        return [
            SwitchStatus(name, True, contents.pipeline(self._plan.switches[name]).label)
            for name, contents in self._contents.items()
        ]

    def counters(self, switch: str) -> dict[str, list[CounterCell]]:
        return _complete(self._contents[switch].counters(self._plan.switches[switch]))

    def differences(self, switch: str) -> list[str] | None:
        return _complete(self._contents[switch].differences(self._plan.switches[switch]))

    def registers(self, switch: str, name: str) -> list[int]:
        return _complete(self._contents[switch].register(self._plan.switches[switch], name))

    def hand_over(self) -> None:
        """Do nothing: no other controller can reach these switches."""

    def stop(self) -> None:
        """Do nothing: nothing is open."""

    def take(self, device_id: int, message: Any) -> None:
        """Pass a p4.v1.StreamMessageResponse of a switch to the listener; digests are acknowledged."""
        name = self._names[device_id]
        schema = self._contents[name].pipeline(self._plan.switches[name]).schema
        kind = message.WhichOneof("update")
        if kind == "packet" and self._listener is not None:
            self._listener.message(name, decode_packet_in(schema, message.packet))
        elif kind == "digest":
            decoded = decode_digest(schema, message.digest)
            if decoded is not None and self._listener is not None:
                self._listener.message(name, decoded)
            self._switches.acknowledge_digest(device_id, message.digest.digest_id, message.digest.list_id)


class _Stub:
    """The calls of p4.v1.P4Runtime that SwitchContents makes, carried out here."""

    def __init__(self, name: str, switches: LocalSwitches, device_id: int) -> None:
        self._name = name
        self._switches = switches
        self._device_id = device_id

    async def SetForwardingPipelineConfig(self, request: Any, timeout: float) -> Any:
        with _refusals(self._name):
            self._switches.set_pipeline(self._device_id, request.config)

    async def GetForwardingPipelineConfig(self, request: Any, timeout: float) -> Any:
        found = p4r.GetForwardingPipelineConfigResponse()
        found.config.cookie.cookie = self._switches.cookie(self._device_id) or 0
        return found

    async def Write(self, request: Any, timeout: float) -> Any:
        with _refusals(self._name):
            self._switches.write(self._device_id, request.updates)

    async def Read(self, request: Any, timeout: float) -> AsyncIterator[Any]:
        with _refusals(self._name):
            yield p4r.ReadResponse(entities=self._switches.read(self._device_id, request.entities))


@contextlib.contextmanager
def _refusals(switch: str) -> Iterator[None]:
    try:
        yield
    except RequestError as error:
        raise SouthboundError(f"{switch}: {error}") from None
    except BatchError as error:
        failed = [outcome for outcome in error.outcomes if outcome is not None]
        if all(outcome.code == rpc_code.ALREADY_EXISTS for outcome in failed):
            raise AlreadyThere(f"{switch}: {failed[0]}") from None
        more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
        raise SouthboundError(f"{switch}: {failed[0]}{more}") from None


def _complete(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise RuntimeError("a call to a switch of this process has to wait")
