"""BMv2's simple_switch and its Thrift command line, simple_switch_CLI, as processes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from switch.errors import UserError
from switch.stf.names import NoFit
from switch.stf.target import CheckFailed

READY_TIMEOUT_S = 30.0
_PROMPT = b"RuntimeCmd: "


def find_simple_switch() -> tuple[str, str] | None:
    """Paths of simple_switch and its command line: beside GRADBED_BMV2, else in PATH; None if one is not there."""
    bmv2 = os.environ.get("GRADBED_BMV2")
    path = str(Path(bmv2).parent) if bmv2 and os.sep in bmv2 else None
    switch, shell = shutil.which("simple_switch", path=path), shutil.which("simple_switch_CLI", path=path)
    return (switch, shell) if switch and shell else None


def require_simple_switch() -> tuple[str, str]:
    """As find_simple_switch; UserError if one is not there."""
    found = find_simple_switch()
    if found is None:
        raise UserError(
            "BMv2's simple_switch and simple_switch_CLI are not installed: put them in PATH, or name "
            "simple_switch_grpc beside them in GRADBED_BMV2"
        )
    return found


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

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._output.close()

    def _last_words(self) -> str:
        said = Path(self._output.name).read_text(errors="replace").split()
        status = self._process.returncode
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return f"{' '.join(said)[-300:]} ({how})"


class Shell:
    """simple_switch_CLI, one command after the other. CheckFailed if it ends."""

    def __init__(self, path: str, thrift_port: int, folder: Path) -> None:
        self._process = subprocess.Popen(
            [path, "--thrift-port", str(thrift_port)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._answer()

    def run(self, *words: object) -> str:
        """Its answer. NoFit with its words if it refuses the command."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
            self._process.stdin.flush()
        answer = self._answer()
        if re.search(r"^(Error|Invalid)\b", answer, re.MULTILINE):
            raise NoFit(f"BMv2: {' '.join(answer.split())}")
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> str:
        """Everything up to the next prompt."""
        assert self._process.stdout is not None
        answer = b""
        while not answer.endswith(_PROMPT):
            piece = os.read(self._process.stdout.fileno(), 4096)
            if not piece:
                raise CheckFailed(f"BMv2's command line ended: {' '.join(answer.decode(errors='replace').split())}")
            answer += piece
        return answer[: -len(_PROMPT)].decode(errors="replace")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
