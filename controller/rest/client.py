"""A client of the controller's REST interface."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Plan
from gradbed.topo.graph import Topology


def unix_path(address: str) -> Path | None:
    """Return the path of a unix socket from the address of a REST interface; None if the address is HOST:PORT.

    Raises:
        UserError: It is neither.
    """
    if address.startswith("unix:"):
        return Path(address.removeprefix("unix:"))
    if "/" in address:
        return Path(address)
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UserError(f"{address!r} is neither HOST:PORT nor the path of a unix socket")
    return None


class ControllerClient:
    """Call the controller's REST interface.

    Methods raise UserError with the controller's own line when it refuses, or cannot be reached.

    Args:
        address: "HOST:PORT", or the path of a unix socket (with or without "unix:" before it).
        timeout_s: Timeout of one request.
    """

    def __init__(self, address: str, timeout_s: float = 180.0) -> None:
        self._address = address
        path = unix_path(address)
        self._http = httpx.Client(
            base_url="http://localhost" if path is not None else f"http://{address}",
            # A connection for each request, since controllers come and go; no proxies for this machine's addresses.
            transport=httpx.HTTPTransport(
                uds=None if path is None else str(path),
                verify=False,
                trust_env=False,
                limits=httpx.Limits(max_keepalive_connections=0),
            ),
            timeout=timeout_s,
        )

    def topology(self) -> Topology:
        return Topology.model_validate(self._request("GET", "/topology"))

    def switches(self) -> list[dict[str, Any]]:
        """Return name, number, connected, pipeline and error of every switch."""
        return list(self._request("GET", "/switches"))

    def counters(self, switch: str) -> dict[str, list[dict[str, int]]]:
        """Return the cells of each counter that are not zero (index, packets, bytes), by the counter's name."""
        return dict(self._request("GET", f"/switches/{_quoted(switch)}/counters"))

    def differences(self, switch: str) -> list[str] | None:
        """Read a switch and return the differences from its part of the plan, a line each.

        None: the switch cannot report them.
        """
        found = self._request("GET", f"/switches/{_quoted(switch)}/differences")
        return None if found is None else list(found)

    def registers(self, switch: str, name: str) -> dict[int, int | None]:
        """Return the cells of a register array that are not zero, by index; None: a value too large for BMv2."""
        cells = self._request("GET", f"/switches/{_quoted(switch)}/registers/{_quoted(name)}")
        return {cell["index"]: cell["value"] for cell in cells}

    def links(self) -> list[dict[str, Any]]:
        """Return a, b (the nodes) and up of every link."""
        return list(self._request("GET", "/links"))

    def link(self, a: str, b: str, up: bool) -> None:
        """Report that the link between two nodes went down or came up: the controller plans anew."""
        self._request("POST", "/links", {"a": a, "b": b, "up": up})

    def jobs(self, system: str | None = None) -> list[dict[str, Any]]:
        """Return the jobs of one system, or of all systems, with the field `system` then."""
        return list(self._request("GET", "/jobs" if system is None else _jobs_of(system)))

    def add_job(self, system: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Add a job and return the answer, whose field `job` is its number.

        Args:
            system: The system's name.
            request: The fields of its service's Request.
        """
        return dict(self._request("POST", _jobs_of(system), request))

    def delete_job(self, system: str, number: int) -> None:
        self._request("DELETE", f"{_jobs_of(system)}/{number}")

    def plan(self) -> Plan:
        """Return the plan in force."""
        return Plan.model_validate(self._request("GET", "/plan"))

    def plan_text(self) -> str:
        """Return the plan in force as text to read."""
        return str(self._request("GET", "/plan.txt"))

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        try:
            response = self._http.request(method, path, json=body)
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            raise UserError(f"the controller at {self._address} does not answer: {reason}") from None
        if response.is_error:
            raise UserError(
                _detail(response) or f"the controller answered {response.status_code} {response.reason_phrase}"
            )
        return response.json() if response.headers.get("content-type") == "application/json" else response.text


def _jobs_of(system: str) -> str:
    return f"/systems/{_quoted(system)}/jobs"


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _detail(response: httpx.Response) -> str:
    try:
        return str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return ""
