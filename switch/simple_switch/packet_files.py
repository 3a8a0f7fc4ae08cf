"""--use-files: packets from pcap files in place of interfaces."""

from __future__ import annotations

import functools
import heapq
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from switch.engine import Engine
from switch.errors import UserError
from switch.simple_switch.options import SwitchOptions
from switch.simple_switch.pcap_reader import read_pcap

_logger = logging.getLogger(__name__)
_END_S = 1.0


class PacketFiles:
    """A context manager. Interface X takes its packets from X_in.pcap; what it sends is in X_out.pcap once the switch
    is idle.

    Files are read together, in the order and at the pace of their times. Packets from named pipes go in as they come.
    """

    def __init__(self, engine: Engine, options: SwitchOptions, delay_s: int) -> None:
        self._engine = engine
        self._device_id = options.device_id
        self._delay_s = delay_s
        self._inputs: dict[int, Path] = {}
        self._ended = threading.Event()
        self._thread = self._in_background(self._run)

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
        files = []
        for port in sorted(self._inputs):
            if self._inputs[port].is_fifo():
                frames = self._open(port)
                self._in_background(functools.partial(self._pass_on, frames)).start()
            else:
                files.append(self._open(port))
        self._replay(heapq.merge(*files))

    def _in_background(self, work: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except (UserError, OSError) as error:
                _logger.error("%s", error)

        return threading.Thread(target=run, name="packet files", daemon=True)

    def _open(self, port: int) -> Iterator[tuple[float, int, bytes]]:
        """Waits for a pipe's writer, but not for what it writes."""
        stream = self._inputs[port].open("rb")

        def frames() -> Iterator[tuple[float, int, bytes]]:
            with stream:
                for time_s, frame in read_pcap(stream):
                    yield time_s, port, frame

        return frames()

    def _pass_on(self, frames: Iterator[tuple[float, int, bytes]]) -> None:
        for _, port, frame in frames:
            if self._ended.is_set():
                return
            self._inject(port, frame)

    def _replay(self, frames: Iterator[tuple[float, int, bytes]]) -> None:
        start_s = first_s = None
        for time_s, port, frame in frames:
            if start_s is None or first_s is None:
                start_s, first_s = time.monotonic(), time_s
            if self._ended.wait(max(0.0, start_s + time_s - first_s - time.monotonic())):
                return
            self._inject(port, frame)

    def _inject(self, port: int, frame: bytes) -> None:
        self._engine.inject(self._device_id, port, frame)
        # What left is in the files; nobody fetches it from here.
        self._engine.drain()
