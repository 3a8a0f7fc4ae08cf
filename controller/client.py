"""A client of the controller's REST interface, over TCP or a unix socket."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import httpx

from controller.address import unix_path
from switch.errors import UserError
from topo.graph import Topology


class ControllerClient:
    """Methods raise UserError with the controller's own line when it refuses, or cannot be reached.

    address: "HOST:PORT", or the path of a unix socket (with or without "unix:" before it).
    """

    def __init__(self, address: str, timeout_s: float = 180.0) -> None:
        self._address = address
        self._path = unix_path(address)
        self._timeout_s = timeout_s

    def topology(self) -> Topology:
        return Topology.model_validate(self._request("GET", "/topology"))

    def switches(self) -> list[dict[str, Any]]:
        """name, number, connected, pipeline, error of every switch."""
        return list(self._request("GET", "/switches"))

    def counters(self, switch: str) -> dict[str, list[dict[str, int]]]:
        """Counter name -> its cells that are not zero: index, packets, bytes."""
        return dict(self._request("GET", f"/switches/{quote(switch, safe='')}/counters"))

    def jobs(self) -> list[dict[str, Any]]:
        return list(self._request("GET", "/jobs"))

    def add_job(self, workers: Sequence[str], server: str, **options: Any) -> dict[str, Any]:
        """The new job: job, designations, designated_switches, slot_policy, slots, acknowledgement,
        multicast. options: further fields of controller.rest.JobRequest, such as placement."""
        body = {"workers": list(workers), "server": server, **options}
        return dict(self._request("POST", "/jobs", body))

    def delete_job(self, job: int) -> None:
        self._request("DELETE", f"/jobs/{job}")

    def plan_text(self) -> str:
        """The plan in force, for people."""
        return str(self._request("GET", "/plan.txt"))

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        try:
            with httpx.Client(
                transport=httpx.HTTPTransport(uds=None if self._path is None else str(self._path)),
                base_url=f"http://{self._address if self._path is None else 'localhost'}",
                timeout=self._timeout_s,
                trust_env=False,  # the controller is on this machine, whatever http_proxy says
            ) as client:
                response = client.request(method, path, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise UserError(f"the controller at {self._address} does not answer: {reason}") from None
        if response.is_error:
            said = _detail(response.content)
            raise UserError(said or f"the controller answered {response.status_code} {response.reason_phrase}")
        is_json = response.headers.get("content-type", "").startswith("application/json")
        return response.json() if is_json else response.text


def _detail(data: bytes) -> str:
    try:
        return str(json.loads(data)["detail"])
    except (ValueError, KeyError, TypeError):
        return ""
