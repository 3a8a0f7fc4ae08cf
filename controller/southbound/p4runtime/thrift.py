"""What BMv2's P4Runtime does not read, by its Thrift command line: registers."""

from __future__ import annotations

import threading

from gradbed.controller.southbound.interface import SouthboundError
from gradbed.switch.p4lang.bmv2 import THRIFT_MOST, Bmv2Ended, Bmv2Refuses, Shell, require_simple_switch


class ThriftReader:
    """Keeps a command line for each switch that was asked. From any thread."""

    def __init__(self) -> None:
        self._shells: dict[int, Shell] = {}
        self._lock = threading.Lock()

    def registers(self, switch: str, port: int, register: str) -> list[int | None]:
        """Return every cell; None: larger than BMv2 tells.

        Raises:
            SouthboundError: It does not answer.
        """
        with self._lock:
            try:
                if port not in self._shells:
                    self._shells[port] = Shell(require_simple_switch()[1], port)
                cells = self._shells[port].register(register)
            except (Bmv2Refuses, Bmv2Ended) as error:
                if (shell := self._shells.pop(port, None)) is not None:
                    shell.end()
                raise SouthboundError(f"{switch}: {error}") from None
        return [None if cell == THRIFT_MOST else cell for cell in cells]

    def close(self) -> None:
        with self._lock:
            for shell in self._shells.values():
                shell.end()
            self._shells.clear()
