"""Over loopback, where every account of the machine gets to, P4Runtime is for one account and root."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import grpc

from gradbed.common.caller import trusted_uids
from gradbed.common.peer_account import Address, LoopbackPeers, is_loopback, refused


@dataclass(frozen=True)
class _Listener:
    """addresses: at which clients over loopback can have called it. is_for_all: TLS asks its clients who they are."""

    peers: LoopbackPeers
    addresses: tuple[Address, ...]
    is_for_all: bool


class AccountCheck(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Answers a call of another account with PERMISSION_DENIED. Unix sockets are for those who may open them."""

    def __init__(self) -> None:
        self._listeners: list[_Listener] = []

    def add(self, peers: LoopbackPeers, host: str, port: int, *, is_for_all: bool) -> None:
        """A TCP port of the server. peers: of the network namespace in which it listens."""
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
        """peer: as gRPC writes it, ipv4:ADDRESS:PORT, ipv6:[ADDRESS]:PORT with escapes, or unix:."""
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
