"""--use-files: packets from pcap files in place of interfaces."""

from __future__ import annotations

import heapq
import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from gradbed.common.errors import UserError
from gradbed.switch.engine import Engine
from gradbed.switch.simple_switch.options import SwitchOptions
from gradbed.switch.simple_switch.pcap_reader import read_pcap

_logger = logging.getLogger(__name__)
_END_S = 1.0


class PacketFiles:
    """A context manager. Interface X takes its packets from X_in.pcap, in the order of their times in all files
    together and without pauses; what it sends is in X_out.pcap once the switch is idle.

    Named pipes will do: each packet waits until it is known that no other file has an earlier one, as with BMv2.
    """

    def __init__(self, engine: Engine, options: SwitchOptions, delay_s: int) -> None:
        self._engine = engine
        self._device_id = options.device_id
        self._delay_s = delay_s
        self._inputs: dict[int, Path] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="packet files", daemon=True)

    def add_port(self, port: int, interface: str) -> None:
        """UserError if the input is not there or the output file cannot be written."""
        self._inputs[port] = Path(f"{interface}_in.pcap")
        if not self._inputs[port].exists():
            raise UserError(f"--use-files: there is no {self._inputs[port]}")
        self._engine.add_open_port(self._device_id, port)
        output = Path(f"{interface}_out.pcap")
        self._engine.capture(output, [(self._device_id, port, "out")], nanoseconds=False)

    def __enter__(self) -> PacketFiles:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        # It may wait for somebody to write to a pipe.
        self._thread.join(_END_S)

    def _run(self) -> None:
        if self._ended.wait(self._delay_s):
            return
        try:
            with ExitStack() as stack:
                # All of them first, in order of ports: so scripts open the other ends of pipes.
                streams = [
                    (port, stack.enter_context(self._inputs[port].open("rb"))) for port in sorted(self._inputs)
                ]
                self._replay(heapq.merge(*(_frames(port, stream) for port, stream in streams)))
        except (UserError, OSError) as error:
            _logger.error("%s", error)

    def _replay(self, frames: Iterator[tuple[float, int, bytes]]) -> None:
        for _, port, frame in frames:
            if self._ended.is_set():
                return
            self._engine.inject(self._device_id, port, frame)
            # What left is in the files; nobody fetches it from here.
            self._engine.drain()


def _frames(port: int, stream: BinaryIO) -> Iterator[tuple[float, int, bytes]]:
    for time_s, frame in read_pcap(stream):
        yield time_s, port, frame
