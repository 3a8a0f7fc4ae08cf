"""iperf3 between hosts, through its executable, for agents that go past the context to the kernel's network."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import time
from typing import Any

from gradbed.common.errors import UserError
from gradbed.hosts.agents.kernel.streams import StreamOutcome

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
