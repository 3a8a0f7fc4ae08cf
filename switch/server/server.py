"""The P4Runtime server: any number of devices behind one gRPC server, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import socket
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import grpc
from finsy.proto import p4r_grpc

from gradbed.common.caller import trusted_uids
from gradbed.common.errors import UserError
from gradbed.common.peer_account import Address, LoopbackPeers, is_loopback, refused
from gradbed.switch.codegen import build_program
from gradbed.switch.p4runtime.status import MalformedRequests, RequestError
from gradbed.switch.server.addresses import OutsideAddress, ServerTls, check_address, check_free, is_unix
from gradbed.switch.server.arbitration import Election
from gradbed.switch.server.service import ControllersFirst, P4RuntimeService
from gradbed.switch.server.target import BUSY_SERVER, P4RuntimeTarget
from gradbed.switch.state.device import Device
from gradbed.switch.state.pipeline import Build, Pipelines


@dataclass(frozen=True)
class _Listener:
    """A TCP port of the server."""

    peers: LoopbackPeers
    addresses: tuple[Address, ...]
    """Addresses at which clients over loopback can have called it."""
    is_for_all: bool
    """TLS authenticates its clients."""


class AccountCheck(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Answers calls of other accounts with PERMISSION_DENIED. Unix sockets are for those who may open them.

    All accounts of the machine reach a loopback address, so P4Runtime is there for one account and root.
    """

    def __init__(self) -> None:
        self._listeners: list[_Listener] = []

    def add(self, peers: LoopbackPeers, host: str, port: int, *, is_for_all: bool) -> None:
        """Add a TCP port of the server.

        `peers`: those of the network namespace in which it listens.
        """
        found = {str(place[4][0]) for place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
        # gRPC listens at both for localhost, whatever the machine's names say; and they are part of all addresses.
        hosts = found | {"127.0.0.1", "::1"}
        self._listeners.append(_Listener(peers, tuple((each, port) for each in hosts), is_for_all))

    def close(self) -> None:
        for each in self._listeners:
            each.peers.close()

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        handler = await continuation(details)
        kinds = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")
        kind = next((kind for kind in kinds if getattr(handler, kind, None) is not None), None)
        if kind is None:
            return handler
        answer = getattr(handler, kind)

        async def checked(request: Any, context: Any) -> Any:
            refusal = self._refusal(context.peer())
            if refusal is not None:
                await context.abort(grpc.StatusCode.PERMISSION_DENIED, refusal)
            return await answer(request, context)

        return handler._replace(**{kind: checked})

    def _refusal(self, peer: str) -> str | None:
        """Return why this peer is refused, or None.

        Args:
            peer: As gRPC writes it: ipv4:ADDRESS:PORT, ipv6:[ADDRESS]:PORT with escapes, or unix:.
        """
        kind, _, place = peer.partition(":")
        host, _, port = unquote(place).rpartition(":")
        client = (host.strip("[]"), int(port) if port.isdecimal() else 0)
        if kind not in ("ipv4", "ipv6") or not is_loopback(client[0]):
            return None
        uid = None
        for listener in self._listeners:
            for address in listener.addresses:
                uid = listener.peers.owner(client, address)
                if uid is not None and (listener.is_for_all or uid in trusted_uids()):
                    return None
                if uid is not None:
                    return refused(uid)
        return refused(uid)


# ---- The server ----


REQUEST_THREADS = 8
BUILD_THREADS = 2
STOP_GRACE_S = 0.2
# Frames and digests of all devices that may wait for the event loop; beyond that the oldest are dropped.
PENDING_MESSAGES = 8192
# How late an idle timeout may be noticed, and how soon after the first one was asked for.
IDLE_SCAN_S = 0.02
IDLE_REST_S = 0.1

_OPTIONS = (
    # Two servers on one port would share its connections, and neither would notice.
    ("grpc.so_reuseport", 0),
    # Device configs run to megabytes.
    ("grpc.max_receive_message_length", 256 << 20),
    ("grpc.max_send_message_length", -1),
    # A controller of a data center sends requests to hundreds of devices at once; by default 1,000 may wait.
    ("grpc.server.max_pending_requests", 100_000),
    ("grpc.server.max_pending_requests_hard_limit", 200_000),
)


class P4RuntimeServer:
    """Serves P4Runtime for `devices` (by device id) on `addresses`: "host:port" (port 0 picks one), "unix:/path".

    `build` turns BMv2 JSON into a program for the devices; it runs in several threads at once.
    `initial`: ForwardingPipelineConfig messages of devices that run a program before any controller comes.
    `unconfigured`: those of the addresses whose clients find no pipeline before one of them pushes it.
    `tls`: those of the addresses that speak TLS. `outside`: a further address, in another network namespace.
    `election`: who is primary, and may write. `further`: generic gRPC handlers of other services at these addresses.
    """

    def __init__(
        self,
        devices: Mapping[int, Device],
        addresses: Sequence[str],
        *,
        build: Build = build_program,
        initial: Mapping[int, Any] | None = None,
        unconfigured: Collection[str] = (),
        tls: Mapping[str, ServerTls] | None = None,
        outside: OutsideAddress | None = None,
        election: type[Election] = Election,
        further: Sequence[Any] = (),
    ) -> None:
        if outside is not None:
            check_address(outside.address)
        self._outside = outside
        for address in addresses:
            check_address(address)
        self._tls = dict(tls or {})
        self._devices = dict(devices)
        self._targets: dict[int, P4RuntimeTarget] = {}
        self._addresses = list(addresses)
        self._build = build
        self._election = election
        self._further = tuple(further)
        self._initial = dict(initial or {})
        self._unconfigured = frozenset(unconfigured)
        self._accounts = AccountCheck()
        self._ports: list[int] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    @property
    def ports(self) -> list[int]:
        """TCP ports being listened on, in the order of their addresses; Unix sockets have none."""
        return list(self._ports)

    def start(self) -> None:
        """Start the server, and return once requests are served.

        Raises UserError for an address or an initial pipeline that cannot be had.
        """
        if self._thread is not None:
            raise RuntimeError("the P4Runtime server has been started")
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="p4runtime", daemon=True)
        self._thread.start()
        try:
            ready.result()
        except BaseException:
            self._thread.join()
            self._thread = None
            raise

    def stop(self) -> None:
        """Close all streams and return once nothing calls a device any more. May be called twice."""
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = None

    def drops(self, device_id: int) -> dict[str, int]:
        """Return how many stream messages of a device no controller got, by KIND_REASON (switch/server/target.py).

        Raises KeyError for a device that does not exist.
        """
        return self._targets[device_id].drops.by_reason()

    def restart_device(self, device_id: int) -> None:
        """Let a device lose program, tables and registers, and its controllers their streams; others go on.

        KeyError for a device that does not exist.
        """
        if self._thread is None or self._loop is None:
            raise RuntimeError("the P4Runtime server is not running")
        asyncio.run_coroutine_threadsafe(self._targets[device_id].restart(), self._loop).result()

    def _run(self, ready: Future[None]) -> None:
        asyncio.run(self._serve(ready))

    async def _serve(self, ready: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        with (
            _started(REQUEST_THREADS, "p4runtime-request") as request_threads,
            _started(BUILD_THREADS, "p4runtime-build") as build_threads,
        ):
            targets = {
                i: P4RuntimeTarget(device, request_threads, self._election) for i, device in self._devices.items()
            }
            self._targets = targets
            pipelines = Pipelines(self._build, build_threads)
            servers = [self._server(P4RuntimeService(targets, pipelines, request_threads))]
            if self._unconfigured:
                servers.append(self._server(ControllersFirst(targets, pipelines, request_threads)))
            try:
                for device_id, config in self._initial.items():
                    await _load(targets[device_id], pipelines, config)
                # All of them first: gRPC keeps what it has opened when another address fails.
                for address in self._addresses:
                    check_free(address)
                opened = [_listen(servers[a in self._unconfigured], a, self._tls.get(a)) for a in self._addresses]
                self._ports = [port for port in opened if port]
                for address, port in zip(self._addresses, opened, strict=True):
                    if port is not None:
                        self._guard(address, port, self._tls.get(address))
                if self._outside is not None:
                    with _inside(self._outside.namespace_fd):
                        check_free(self._outside.address)
                        port = _listen(servers[0], self._outside.address, self._outside.tls) or 0
                        self._guard(self._outside.address, port, self._outside.tls)
                    self._ports.append(port)
                for server in servers:
                    await server.start()
                inbox = Inbox(self._loop, targets)
            except BaseException as error:
                ready.set_exception(error)
                return
            ready.set_result(None)
            scanner = asyncio.create_task(_scan_idle_timeouts(list(targets.values())))
            await self._stopping.wait()
            scanner.cancel()
            inbox.close()
            await asyncio.gather(*(server.stop(STOP_GRACE_S) for server in servers))
            self._accounts.close()

    def _guard(self, address: str, port: int, tls: ServerTls | None) -> None:
        host = address.rpartition(":")[0].strip("[]")
        self._accounts.add(LoopbackPeers(), host, port, is_for_all=tls is not None and tls.client_ca is not None)

    def _server(self, service: P4RuntimeService) -> Any:
        server = grpc.aio.server(options=_OPTIONS, interceptors=[self._accounts, MalformedRequests()])
        p4r_grpc.add_P4RuntimeServicer_to_server(service, server)
        server.add_generic_rpc_handlers(self._further)
        return server


def _started(threads: int, name: str) -> ThreadPoolExecutor:
    """Return a pool whose threads all run.

    Left to itself it would start another one whenever all are busy, and the process would grow for hours, up to its
    busiest moment.
    """
    pool, all_run = ThreadPoolExecutor(threads, name), threading.Barrier(threads)
    for waits in [pool.submit(all_run.wait) for _ in range(threads)]:
        waits.result()
    return pool


class Inbox:
    """Carries packet-ins and digests from the devices' threads into the event loop, many at one wake-up."""

    def __init__(self, loop: asyncio.AbstractEventLoop, targets: Mapping[int, P4RuntimeTarget]) -> None:
        self._loop = loop
        self._targets = targets
        self._messages: deque[tuple[P4RuntimeTarget, str, tuple[Any, ...]]] = deque()
        self._woken = False
        for target in targets.values():
            target.digest_sink = functools.partial(self._receive, target, "digest")
            target.device.on_packet_in(functools.partial(self._receive, target, "packet"))

    def close(self) -> None:
        for target in self._targets.values():
            target.device.on_packet_in(None)
            target.device.on_digest(None)

    def _receive(self, target: P4RuntimeTarget, kind: str, *message: Any) -> None:
        self._messages.append((target, kind, message))
        if len(self._messages) > PENDING_MESSAGES:
            # The event loop may have taken them all since.
            with contextlib.suppress(IndexError):
                oldest, its_kind, _ = self._messages.popleft()
                oldest.drops.count(its_kind, BUSY_SERVER)
        if not self._woken:
            self._woken = True
            # The loop may be closed already when a device's last message comes.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        # Cleared before the messages are taken: at worst, that costs an empty wake-up.
        self._woken = False
        for _ in range(len(self._messages)):
            try:
                target, kind, message = self._messages.popleft()
            except IndexError:  # dropped meanwhile
                return
            deliver: Callable[..., None] = target.deliver_digest if kind == "digest" else target.deliver_packet_in
            deliver(*message)


async def _scan_idle_timeouts(targets: Sequence[P4RuntimeTarget]) -> None:
    while True:
        timed = [target for target in targets if target.has_idle_timers]
        for target in timed:
            target.scan_idle_timeouts()
        await asyncio.sleep(IDLE_SCAN_S if timed else IDLE_REST_S)


async def _load(target: P4RuntimeTarget, pipelines: Pipelines, config: Any) -> None:
    """Start the device with a config. Raises UserError where it cannot be realized."""
    try:
        target.start_with(await asyncio.wrap_future(pipelines.get(config)))
    except RequestError as error:
        raise UserError(error.message) from None


def _listen(server: Any, address: str, tls: ServerTls | None) -> int | None:
    """Return the TCP port that was opened, None for a Unix socket."""
    credentials = None if tls is None else tls.credentials()
    try:
        port: int = server.add_insecure_port(address) if tls is None else server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise UserError(f"cannot listen on {address}: {error}") from None
    return None if is_unix(address) else port


@contextlib.contextmanager
def _inside(namespace_fd: int) -> Iterator[None]:
    """Enter a network namespace with this thread.

    A socket stays in the namespace that its thread is in when it is made, and so do the connections it accepts.
    """
    from pyroute2 import netns

    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        netns.setns(namespace_fd)
        try:
            yield
        finally:
            netns.setns(own)
    finally:
        os.close(own)
