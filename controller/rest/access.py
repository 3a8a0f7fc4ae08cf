"""Who may use the interface, asked before the application sees a request, whatever its framework does.

No browser calls a unix socket, and only those call it who may open it: over TCP alone there are accounts and pages of
others to refuse.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from gradbed.common.peer_account import LoopbackPeers

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
JSON = "application/json"


class AccessCheck:
    """Refuses, each in one line of JSON:

    - over loopback, requests of other accounts of this machine (403), where `peers` are given: of a listener each;
    - over TCP, a Host that is neither a loopback name, this machine's name, nor the address that was called (400).
      Otherwise a web page could point a name of its own at 127.0.0.1, and the reader's browser would let it command
      the switches (DNS rebinding);
    - an Origin that is not the Host that was called (403): a page of another site;
    - bodies that are not called JSON (422). A page of another site may send others without asking first (Fetch
      standard, "CORS-safelisted request-header"), and not every browser says where such a request comes from.
    """

    def __init__(self, app: ASGIApp, peers: Sequence[LoopbackPeers] = ()) -> None:
        self._app = app
        self._peers = peers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            # What is left of a body is not read.
            status, detail = refusal
            await JSONResponse({"detail": detail}, status, {"Connection": "close"})(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        address, port = scope.get("server") or ("", None)
        if port is not None:
            client = scope.get("client")
            reasons = [each.refuses(client, (address, port)) for each in self._peers] if client else []
            if reasons and all(reasons):
                return 403, str(reasons[0])
            called = f"[{address}]" if ":" in address else address
            known = [*LOOPBACK_NAMES, socket.gethostname().lower(), called]
            if _name(headers.get("host", "")) not in known:
                return 400, f"the Host of a request has to be one of {', '.join(dict.fromkeys(known))}"
        origins = headers.getlist("origin")
        if any(
            origin.lower() != f"{scope.get('scheme', 'http')}://{headers.get('host', '')}".lower()
            for origin in origins
        ):
            return 403, "a page of another site cannot use this interface"
        if _has_body(headers) and headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            return 422, f"send JSON, with Content-Type {JSON}"
        return None


def _name(host: str) -> str:
    """Return the host without its port."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() else host.lower()


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0").strip() != "0" or "transfer-encoding" in headers
