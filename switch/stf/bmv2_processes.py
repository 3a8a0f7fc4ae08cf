"""BMv2's simple_switch as a process, to which packets come in files."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.switch.stf.names import NoFit

READY_TIMEOUT_S = 30.0


class SwitchProcess:
    """simple_switch, running in `folder`."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._output = (folder / "output").open("wb")
        self._process = subprocess.Popen(command, cwd=folder, stdout=self._output, stderr=subprocess.STDOUT)

    def wait_for(self, thrift_port: int) -> None:
        """Until it serves. NoFit with its words if it ends instead."""
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline_s:
            if self._process.poll() is not None:
                raise NoFit(f"BMv2 refuses the program: {self._last_words()}")
            try:
                socket.create_connection(("127.0.0.1", thrift_port), 1.0).close()
                return
            except OSError:
                time.sleep(0.02)
        raise UserError(f"BMv2's simple_switch did not open its Thrift port in {READY_TIMEOUT_S:g} s")

    def is_busy(self) -> bool:
        """Whether a thread of it runs, or waits for a processor."""
        states = []
        for thread in Path(f"/proc/{self._process.pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):  # the thread has ended
                states.append(thread.read_text().rpartition(") ")[2][:1])  # proc_pid_stat(5)
        return "R" in states

    def ended(self) -> str | None:
        """How, if it has: BMv2 does not survive everything that a program does."""
        if self._process.poll() is None:
            return None
        return f"BMv2's simple_switch has ended: {self._last_words()}"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()

    def _last_words(self) -> str:
        said = Path(self._output.name).read_text(errors="replace").split()
        status = self._process.returncode
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return f"{' '.join(said)[-300:]} ({how})"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
