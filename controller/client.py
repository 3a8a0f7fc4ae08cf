"""A client of the controller's REST interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Plan
from gradbed.controller.rest.address import unix_path
from gradbed.topo.graph import Topology


class ControllerClient:
    """Methods raise UserError with the controller's own line when it refuses, or cannot be reached.

    address: "HOST:PORT", or the path of a unix socket (with or without "unix:" before it).
    """

    def __init__(self, address: str, timeout_s: float = 180.0) -> None:
        self._address = address
        path = unix_path(address)
        self._http = httpx.Client(
            base_url="http://localhost" if path is not None else f"http://{address}",
            # A connection for each request: controllers come and go. No proxy stands before this machine's own.
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
        """name, number, connected, pipeline, error of every switch."""
        return list(self._request("GET", "/switches"))

    def counters(self, switch: str) -> dict[str, list[dict[str, int]]]:
        """Counter name -> its cells that are not zero: index, packets, bytes."""
        return dict(self._request("GET", f"/switches/{_quoted(switch)}/counters"))

    def differences(self, switch: str) -> list[str] | None:
        """Return what the switch, asked now, holds otherwise than its part of the plan, a line each; None: it cannot
        tell."""
        found = self._request("GET", f"/switches/{_quoted(switch)}/differences")
        return None if found is None else list(found)

    def registers(self, switch: str, name: str) -> dict[int, int | None]:
        """Index -> value of the cells of a register array that are not zero; None: larger than BMv2 tells."""
        cells = self._request("GET", f"/switches/{_quoted(switch)}/registers/{_quoted(name)}")
        return {cell["index"]: cell["value"] for cell in cells}

    def links(self) -> list[dict[str, Any]]:
        """a, b (the nodes) and up of every link."""
        return list(self._request("GET", "/links"))

    def link(self, a: str, b: str, up: bool) -> None:
        """Tell that the link between two nodes went down or came up: the controller plans anew."""
        self._request("POST", "/links", {"a": a, "b": b, "up": up})

    def jobs(self, system: str | None = None) -> list[dict[str, Any]]:
        """Return the jobs of one system, or of all, each of which then names its system."""
        return list(self._request("GET", "/jobs" if system is None else _jobs_of(system)))

    def add_job(self, system: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Add a job and return the answer, whose field `job` is its number. request: the fields that the system's
        service takes."""
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
