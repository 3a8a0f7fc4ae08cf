"""One device behind the server: its controllers, its pipelines, one request at a time on its state, and how many
stream messages no controller got.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from itertools import chain, islice
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from finsy.proto import p4r

from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.status import (
    RequestError,
    StatusCode,
    denied,
    invalid,
    not_found,
    raise_failures,
    unimplemented,
)
from gradbed.switch.server.arbitration import Controller, Election
from gradbed.switch.state.device import Device, DigestCallback
from gradbed.switch.state.pipeline import ForwardingPipeline, Pipelines
from gradbed.switch.state.running_device import ForwardingState, RunningDevice

# ---- Stream messages that no controller got, by kind and reason ----


LOG = logging.getLogger(__name__)

SLOW_CONTROLLER = "slow_controller"
"""Too many wait for a controller that does not read, or not fast enough."""

BUSY_SERVER = "busy_server"
"""Data planes make more than the server can hand on; the oldest goes."""

NO_HEADER = "no_header"
"""A frame of the CPU port that is shorter than the running program's packet-in header, or there is no program."""

NO_CONTROLLER = "no_controller"
"""There is no primary that may have it."""


class Drops:
    """Counts of stream messages of one device that no controller got. Any thread may count and read.

    Kinds are those of p4.v1.StreamMessageResponse; of digests each list counts once, and where a list has not been
    made yet each message of the data plane.
    """

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = Lock()

    def count(self, kind: str, reason: str) -> None:
        with self._lock:
            self._counts[kind, reason] += 1
            is_first = self._counts[kind, reason] == 1
        if is_first and reason not in (NO_CONTROLLER, NO_HEADER):
            LOG.warning("device %d: the first %s message is dropped: %s", self._device_id, kind, reason)

    def by_reason(self) -> dict[str, int]:
        """Return the counts by KIND_REASON, such as packet_slow_controller."""
        with self._lock:
            return {f"{kind}_{reason}": count for (kind, reason), count in self._counts.items()}


# ---- The device ----


Result = TypeVar("Result")

ENTITIES_PER_RESPONSE = 500

_ACTION = p4r.SetForwardingPipelineConfigRequest
_RESPONSE = p4r.GetForwardingPipelineConfigRequest
_KNOWN_ACTIONS = (
    _ACTION.VERIFY,
    _ACTION.VERIFY_AND_SAVE,
    _ACTION.VERIFY_AND_COMMIT,
    _ACTION.COMMIT,
    _ACTION.RECONCILE_AND_COMMIT,
)


class _Saved(NamedTuple):
    """A pipeline between VERIFY_AND_SAVE and COMMIT, and what was written to it."""

    state: ForwardingState
    cookie: int | None


class P4RuntimeTarget(RunningDevice):
    """A device behind the server.

    All methods raise RequestError or BatchError, and belong to the server's event loop.
    """

    def __init__(self, device: Device, executor: Executor, election: type[Election] = Election) -> None:
        super().__init__(device, self._send_digests, time.monotonic_ns, time.time_ns)
        self._election = election
        self.drops = Drops(device.device_id)
        self.count_drop = self.drops.count
        # Where the device's digests go: into the event loop, to `digest`.
        self.digest_sink: DigestCallback | None = None
        self.elections = {"": self.new_election("")}
        self._cookie: int | None = None
        self._saved: _Saved | None = None
        self.is_preset = False
        """The pipeline that runs was there before any controller."""
        self._digest_timer: tuple[int, asyncio.TimerHandle] | None = None
        self._scan: asyncio.Future[None] | None = None
        self._executor = executor
        self._busy = asyncio.Lock()

    # ---- Controllers ----

    def new_election(self, role_name: str) -> Election:
        return self._election(self.device.device_id, role_name)

    def election(self, role_name: str) -> Election:
        """Return the election of the default role, or of one that a controller has taken part in.

        Raises NOT_FOUND.
        """
        election = self.elections.get(role_name)
        if election is None:
            raise not_found(f"device {self.device.device_id} has no role {role_name!r}")
        return election

    async def writes_done(self) -> None:
        """Wait for the requests that are under way."""
        if self._busy.locked():
            async with self._busy:
                pass

    def deliver_packet_in(self, frame: bytes) -> None:
        """Hand a frame from the CPU port to the primary controllers that want it."""
        packet = self.packet_in(frame)
        if packet is None:
            self.drops.count("packet", NO_HEADER)
            return
        receivers = [
            election.primary
            for election in self.elections.values()
            if election.primary is not None and election.role.accepts(packet)
        ]
        for controller in receivers:
            controller.send(p4r.StreamMessageResponse(packet=packet))
        if not receivers:
            self.drops.count("packet", NO_CONTROLLER)

    def deliver_digest(self, list_id: int, words: tuple[int, ...]) -> None:
        """Take a digest from the data plane; its list goes to the primary controllers when it is complete or due."""
        if self.digests is not None:
            self.digests.receive(list_id, words)
            self._time_digests()

    def _time_digests(self) -> None:
        due_ns = self.digests.due_ns if self.digests is not None else None
        if due_ns is None or (self._digest_timer is not None and self._digest_timer[0] <= due_ns):
            return
        if self._digest_timer is not None:
            self._digest_timer[1].cancel()
        delay_s = max(0, due_ns - time.monotonic_ns()) / 1e9
        self._digest_timer = due_ns, asyncio.get_running_loop().call_later(delay_s, self._send_due_digests)

    def _send_due_digests(self) -> None:
        self._digest_timer = None
        if self.digests is not None:
            self.digests.send_due()
        self._time_digests()

    def primary_changed(self) -> None:
        """Forget what the former primary acknowledged: its successor gets what was sent before."""
        if self.digests is not None:
            self.digests.forget()

    def _send_digests(self, digest_id: int, digest_list: Any) -> bool:
        receivers = self._primaries(digest_id)
        for controller in receivers:
            controller.send(p4r.StreamMessageResponse(digest=digest_list))
        if not receivers:
            self.drops.count("digest", NO_CONTROLLER)
        return bool(receivers)

    def _primaries(self, p4_id: int) -> list[Controller]:
        """Return the primary controllers of the roles that may read entities of a P4 object."""
        return [
            election.primary
            for election in self.elections.values()
            if election.primary is not None and election.role.reads(p4_id)
        ]

    # ---- Idle timeouts ----

    @property
    def has_idle_timers(self) -> bool:
        return self.state is not None and self.state.tables.idle_timers.next_ns is not None

    def scan_idle_timeouts(self) -> None:
        """Notify the primaries of entries that have been idle for long enough, without waiting here."""
        if self.state is None or (self._scan is not None and not self._scan.done()):
            return
        next_ns = self.state.tables.idle_timers.next_ns
        if next_ns is not None and next_ns <= self.device.clock_ns():
            self._scan = asyncio.ensure_future(self._notify_idle())

    async def _notify_idle(self) -> None:
        def take() -> list[Any]:
            return self.state.tables.expired() if self.state is not None else []

        expired = await self._exclusively(take)
        for election in self.elections.values():
            entries = [entry for entry in expired if election.role.reads(entry.table_id)]
            if entries and election.primary is not None:
                notification = p4r.IdleTimeoutNotification(table_entry=entries, timestamp=time.time_ns())
                election.primary.send(p4r.StreamMessageResponse(idle_timeout_notification=notification))

    # ---- Power ----

    async def restart(self) -> None:
        """Lose all state, and close the streams of all controllers."""
        await self._exclusively(self.lose_everything)
        elections, self.elections = self.elections, {"": self.new_election("")}
        for election in elections.values():
            election.dissolve(RequestError(StatusCode.UNAVAILABLE, f"device {self.device.device_id} was restarted"))

    def lose_everything(self) -> None:
        self._save(None)
        self._cookie = None
        self.is_preset = False
        super().lose_everything()

    # ---- Entities ----

    async def write(self, request: Any) -> None:
        """Apply the updates of a WriteRequest in order; raise BatchError if some fail.

        Of the modes of the P4Runtime specification 1.4, "Batch Atomicity", only CONTINUE_ON_ERROR, which is
        mandatory, is offered; the others are UNIMPLEMENTED.
        """
        election = self._writer(request)
        if request.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
            raise unimplemented("the only atomicity that this switch offers is CONTINUE_ON_ERROR")

        def apply() -> list[RequestError | None]:
            return self._written().write(request.updates, election.role, self._other_roles(election))

        outcomes = await self._exclusively(apply, lambda: election.check_primary(request))
        raise_failures(outcomes, "updates")

    async def read(self, request: Any) -> Iterator[Any]:
        """Return ReadResponse messages of the state as it is now.

        If some elements of the request fail, BatchError is raised after the last message.
        """
        role = self.election(request.role).role

        def take() -> tuple[list[Iterable[Any]], list[RequestError | None]]:
            state = self._written()
            found: list[Iterable[Any]] = []
            outcomes: list[RequestError | None] = []
            for entity in request.entities:
                try:
                    found.append(state.read(entity, role))
                    outcomes.append(None)
                except RequestError as error:
                    outcomes.append(error)
            return found, outcomes

        return _responses(*await self._exclusively(take))

    def _writer(self, request: Any) -> Election:
        """Return the election whose primary sent the request. Raises NOT_FOUND or PERMISSION_DENIED."""
        if request.role_id:
            raise invalid("role_id is deprecated since P4Runtime 1.4.0: give the role's name")
        election = self.election(request.role)
        election.check_primary(request)
        return election

    def _other_roles(self, election: Election) -> list[Role]:
        return [other.role for other in self.elections.values() if other is not election]

    def _written(self) -> ForwardingState:
        """Return what controllers write and read now: of the saved pipeline, if there is one."""
        return self.running() if self._saved is None else self._saved.state

    # ---- Pipelines ----

    async def set_pipeline(self, request: Any, pipelines: Pipelines) -> None:
        election = self._writer(request)
        if not election.role.can_push_pipeline:
            raise denied(f"role {election.role.name!r} may not set the pipeline")
        action = request.action
        if action not in _KNOWN_ACTIONS:
            raise invalid("the request has no action that this server knows")
        if action == _ACTION.COMMIT:
            if request.HasField("config"):
                raise invalid("COMMIT takes no config: it commits the one that was saved")
            await self._exclusively(self._commit_saved, lambda: election.check_primary(request))
            return
        if not request.HasField("config"):
            raise invalid("the request has no config")
        # A client that gives up does not take the work away from those who wait for the same program.
        pipeline = await asyncio.shield(asyncio.wrap_future(pipelines.get(request.config)))
        if action == _ACTION.VERIFY:
            return
        cookie = request.config.cookie.cookie if request.config.HasField("cookie") else None
        realize = {
            _ACTION.VERIFY_AND_SAVE: self._stage,
            _ACTION.VERIFY_AND_COMMIT: self._commit,
            _ACTION.RECONCILE_AND_COMMIT: self._reconcile,
        }[action]
        # Compiling takes its time: the controller may have lost its place meanwhile.
        await self._exclusively(lambda: realize(pipeline, cookie), lambda: election.check_primary(request))

    def start_with(self, pipeline: ForwardingPipeline) -> None:
        """Run it before the first controller comes."""
        self._commit(pipeline, None)
        self.is_preset = True

    def check_not_preset(self) -> None:
        """Raise FAILED_PRECONDITION where reads and writes would be of a pipeline that no controller pushed."""
        if self.is_preset and self._saved is None:
            raise self.no_pipeline()

    def get_pipeline(self, response_type: int) -> Any:
        """Return the GetForwardingPipelineConfigResponse of the running pipeline; without config if there is none."""
        if response_type not in _RESPONSE.ResponseType.values():
            raise invalid(f"there is no response type {response_type}")
        response = p4r.GetForwardingPipelineConfigResponse()
        if self.state is None:
            return response
        pipeline = self.state.pipeline
        response.config.SetInParent()
        if self._cookie is not None:
            response.config.cookie.cookie = self._cookie
        if response_type in (_RESPONSE.ALL, _RESPONSE.P4INFO_AND_COOKIE):
            response.config.p4info.CopyFrom(pipeline.info)
        if response_type in (_RESPONSE.ALL, _RESPONSE.DEVICE_CONFIG_AND_COOKIE):
            response.config.p4_device_config = pipeline.device_config
        return response

    def _stage(self, pipeline: ForwardingPipeline, cookie: int | None) -> None:
        self._save(_Saved(ForwardingState(self.device, pipeline, staged=True), cookie))

    def _save(self, saved: _Saved | None) -> None:
        """Replace the saved pipeline."""
        if self._saved is not None:
            self._saved.state.close()
        self._saved = saved

    def _commit(self, pipeline: ForwardingPipeline, cookie: int | None, updates: Iterable[Any] = ()) -> None:
        state = self.run(pipeline, self.digest_sink)
        self._cookie = cookie
        self.is_preset = False
        self._save(None)
        failure = next(filter(None, state.write(updates, Role(""))), None)
        if failure is not None:
            raise RequestError(
                StatusCode.INTERNAL, f"the pipeline runs, but not all of its state was restored: {failure.message}"
            )

    def _commit_saved(self) -> None:
        if self._saved is None:
            raise not_found("there is no saved pipeline to commit")
        state = self._saved.state
        self._commit(state.pipeline, self._saved.cookie, list(state.export()))

    def _reconcile(self, pipeline: ForwardingPipeline, cookie: int | None) -> None:
        """Keep what controllers wrote and what packets left in registers and counters.

        What packets change between taking the state and loading the program is lost.
        """
        updates = list(self.state.export()) if self.state is not None else []
        staged = ForwardingState(self.device, pipeline, staged=True)
        try:
            failure = next(filter(None, staged.write(updates, Role(""))), None)
        finally:
            staged.close()
        if failure is not None:
            raise invalid(f"the forwarding state cannot be preserved: {failure.message}")
        self._commit(pipeline, cookie, updates)

    # ---- One at a time ----

    async def _exclusively(self, work: Callable[[], Result], check: Callable[[], None] | None = None) -> Result:
        """Run `work` in the executor, after all that came before. `check` is made when its turn has come."""

        async def turn() -> Result:
            async with self._busy:
                if check is not None:
                    check()
                return await asyncio.get_running_loop().run_in_executor(self._executor, work)

        # Were the turn cancelled with its client, the next one would start beside a worker that still runs.
        return await asyncio.shield(asyncio.ensure_future(turn()))


def _responses(found: list[Iterable[Any]], outcomes: list[RequestError | None]) -> Iterator[Any]:
    entities = chain.from_iterable(found)
    while some := list(islice(entities, ENTITIES_PER_RESPONSE)):
        yield p4r.ReadResponse(entities=some)
    raise_failures(outcomes, "requests")
