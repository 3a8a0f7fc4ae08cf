"""TCP connections of the kernel, and iperf3, for agents that go past the context (AgentContext.require_kernel)."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import socket
import struct
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import Any

from gradbed.common.errors import UserError

# ---- TCP connections ----


CHUNK_BYTES = 1 << 16
SO_MAX_PACING_RATE = 47
"""asm-generic/socket.h; Python has no name for it."""
ANSWER = struct.Struct("!QQ")
"""Of a receiver at the end: bytes that came, and when the last of them did."""

_TCP_INFO_BYTES = 104
_RTT_AT, _RETRANSMISSIONS_AT = 68, 100
"""Places of tcpi_rtt and tcpi_total_retrans in struct tcp_info (linux/tcp.h)."""


@dataclass(frozen=True)
class StreamOutcome:
    """The outcome of a connection."""

    begin_ns: int
    sent_bytes: int
    """Bytes given to the kernel."""
    received_bytes: int | None = None
    """Bytes that came, as the receiver reports; None if it did not."""
    arrived_ns: int | None = None
    """When the last byte came, as the receiver reports; None if it did not."""
    retransmissions: int = 0
    """Retransmitted segments."""
    rtt_us: int | None = None
    """The kernel's smoothed round trip at the end."""
    error: str = ""
    """Why the connection was lost or never came about; empty: it was not lost."""
    local: str = ""
    """The sender's end, by which StreamServer.arrivals knows the connection; empty: iperf3's."""


def _end(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


class StreamServer:
    """Takes in connections on a port of all addresses, each in a thread, and tells its sender what came. A context
    manager; at the end no thread is left."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_server(("", port), backlog=1024)
        self._lock = threading.Lock()
        self._taken_in: dict[socket.socket, threading.Thread] = {}
        self.arrivals: dict[str, tuple[int, int]] = {}
        """By the sender's end, bytes that came and when the last of them did, also of connections that starve."""
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def __enter__(self) -> StreamServer:
        return self

    def __exit__(self, *exception: object) -> None:
        # A thread that waits in a call is not woken by close, and its descriptor may be another's by then.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._socket.close()
        with self._lock:
            left = dict(self._taken_in)
            for connection in left:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in left.values():
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, address = self._socket.accept()
                thread = threading.Thread(target=self._take_in, args=(connection, _end(address)), daemon=True)
                with self._lock:
                    self._taken_in[connection] = thread
                    thread.start()

    def _take_in(self, connection: socket.socket, sender: str) -> None:
        received, arrived_ns = 0, 0
        buffer = bytearray(CHUNK_BYTES)
        with contextlib.suppress(OSError):
            while count := connection.recv_into(buffer):
                received, arrived_ns = received + count, time.monotonic_ns()
                self.arrivals[sender] = received, arrived_ns
            connection.sendall(ANSWER.pack(received, arrived_ns))
        with self._lock:
            del self._taken_in[connection]
            connection.close()


def send_stream(
    address: tuple[str, int],
    *,
    begin_ns: int,
    size: int | None,
    end_ns: int,
    rate_bps: float | None = None,
    timeout_s: float = 5.0,
) -> StreamOutcome:
    """Send so many bytes over a connection from begin_ns on (time.monotonic_ns), or, without a size, until end_ns.

    rate_bps: a limit, which the kernel keeps. timeout_s: the longest that nothing happens.
    """
    time.sleep(max(0, begin_ns - time.monotonic_ns()) / 1e9)
    sent, answer, lost, local = 0, b"", "", ""
    connection = socket.socket()
    with connection:
        connection.settimeout(timeout_s)
        if rate_bps is not None:
            connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, max(1, round(rate_bps / 8)))
        try:
            connection.connect(address)
            local = _end(connection.getsockname())
            chunk = memoryview(bytes(CHUNK_BYTES))
            while sent < size if size is not None else time.monotonic_ns() < end_ns:
                sent += connection.send(chunk if size is None else chunk[: size - sent])
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(ANSWER.size - len(answer)):
                answer += part
        except OSError as error:
            lost = error.strerror or str(error)
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    retransmissions, rtt_us = (struct.unpack_from("=I", info, place)[0] for place in (_RETRANSMISSIONS_AT, _RTT_AT))
    received, arrived_ns = ANSWER.unpack(answer) if len(answer) == ANSWER.size else (None, None)
    if received is None and not lost:
        lost = "the receiver has gone"
    return StreamOutcome(begin_ns, sent, received, arrived_ns, retransmissions, rtt_us or None, lost, local)


# ---- iperf3, through its executable ----


INSTALL = "the program iperf3 is missing: apt-get install --no-install-recommends iperf3"
RETRY_S = 0.1
TIMEOUT_S = 10.0


def find_iperf3() -> str:
    """UserError if it is not installed."""
    found = shutil.which("iperf3")
    if found is None:
        raise UserError(INSTALL)
    return found


class Iperf3Server:
    """Listens on a port. A context manager."""

    def __init__(self, port: int) -> None:
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            [find_iperf3(), "--server", "--port", str(port)], stdin=quiet, stdout=quiet, stderr=quiet
        )

    def __enter__(self) -> Iperf3Server:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.wait()


def run_iperf3(
    address: tuple[str, int],
    *,
    begin_ns: int,
    end_ns: int,
    parallel: int = 1,
    rate_bps: float | None = None,
) -> StreamOutcome:
    """A client from now on, for whole seconds, at least one; of all its connections together. What is on its way when
    they are over counts as not sent. UserError in iperf3's words if it cannot."""
    seconds = max(1, math.ceil((end_ns - begin_ns) / 1e9))
    pace = [] if rate_bps is None else ["--bitrate", str(max(1, round(rate_bps / parallel)))]
    server = ["--client", address[0], "--port", str(address[1])]
    command = [find_iperf3(), *server, "--json", "--time", str(seconds), "--parallel", str(parallel), *pace]
    deadline_ns = begin_ns + int(1e9 * TIMEOUT_S)
    while True:
        report = _run(command, seconds + 3 * TIMEOUT_S)
        if "error" not in report:
            return _outcome(report, begin_ns)
        # The server may not listen yet.
        if "refused" not in report["error"] or time.monotonic_ns() > deadline_ns:
            raise UserError(f"iperf3 to {address[0]}: {report['error']}")
        time.sleep(RETRY_S)


def _run(command: list[str], timeout_s: float) -> dict[str, Any]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        report: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"error": f"no end after {timeout_s:.0f} s"}
    except ValueError:
        return {"error": " ".join(done.stderr.split()) or f"exit status {done.returncode}"}
    return report


def _outcome(report: dict[str, Any], begin_ns: int) -> StreamOutcome:
    """begin_ns: of all; what iperf3 measured begins when it does."""
    sent, received = report["end"]["sum_sent"], report["end"]["sum_received"]
    started_ns = time.monotonic_ns() - int(1e9 * sent["seconds"])
    rtt_us = [each["sender"]["mean_rtt"] for each in report["end"]["streams"] if each["sender"].get("mean_rtt")]
    return StreamOutcome(
        max(begin_ns, started_ns),
        received["bytes"],
        received["bytes"],
        max(begin_ns, started_ns) + int(1e9 * received["seconds"]),
        sent.get("retransmits", 0),
        round(sum(rtt_us) / len(rtt_us)) if rtt_us else None,
    )
