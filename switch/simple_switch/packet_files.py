"""--use-files: packets from pcap files in place of interfaces."""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from switch.engine import Engine
from switch.errors import UserError
from switch.simple_switch.options import SwitchOptions
from switch.simple_switch.pcap_reader import read_pcap

_logger = logging.getLogger(__name__)


class PacketFiles:
    """A context manager. Interface X takes its packets from X_in.pcap, in the order and at the pace of their times in
    all files together; what it sends is in X_out.pcap once the switch is idle.
    """

    def __init__(self, engine: Engine, options: SwitchOptions, delay_s: int) -> None:
        self._engine = engine
        self._device_id = options.device_id
        self._delay_s = delay_s
        self._inputs: dict[int, Path] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="packet files", daemon=True)

    def add_port(self, port: int, interface: str) -> None:
        """UserError if the input file cannot be read or the output file cannot be written."""
        self._inputs[port] = Path(f"{interface}_in.pcap")
        if not self._inputs[port].is_file():
            raise UserError(f"--use-files: there is no {self._inputs[port]}")
        self._engine.add_open_port(self._device_id, port)
        self._engine.capture(Path(f"{interface}_out.pcap"), [(self._device_id, port, "out")])

    def __enter__(self) -> PacketFiles:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        if self._ended.wait(self._delay_s):
            return
        try:
            self._replay()
        except UserError as error:
            _logger.error("%s", error)

    def _replay(self) -> None:
        start_s = first_s = None
        count = 0
        for time_s, port, frame in heapq.merge(*(self._frames(port) for port in self._inputs)):
            if start_s is None or first_s is None:
                start_s, first_s = time.monotonic(), time_s
            if self._ended.wait(max(0.0, start_s + time_s - first_s - time.monotonic())):
                return
            self._engine.inject(self._device_id, port, frame)
            count += 1
            # What left is in the files; nobody fetches it from here.
            self._engine.drain()
        _logger.info("%d packets were read from files", count)

    def _frames(self, port: int) -> Iterator[tuple[float, int, bytes]]:
        for time_s, frame in read_pcap(self._inputs[port]):
            yield time_s, port, frame
