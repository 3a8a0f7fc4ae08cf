"""A client of the controller's REST interface, on the standard library alone."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from controller.address import unix_path
from switch.errors import UserError
from topo.graph import Topology


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


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
        connection = self._connection()
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {} if body is None else {"Content-Type": "application/json"},
            )
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise UserError(f"the controller at {self._address} does not answer: {reason}") from None
        finally:
            connection.close()
        if response.status >= 400:
            raise UserError(_detail(data) or f"the controller answered {response.status} {response.reason}")
        if response.headers.get_content_type() == "application/json":
            return json.loads(data)
        return data.decode()

    def _connection(self) -> http.client.HTTPConnection:
        if self._path is not None:
            return _UnixConnection(str(self._path), self._timeout_s)
        return http.client.HTTPConnection(self._address, timeout=self._timeout_s)


def _detail(data: bytes) -> str:
    try:
        return str(json.loads(data)["detail"])
    except (ValueError, KeyError, TypeError):
        return ""
