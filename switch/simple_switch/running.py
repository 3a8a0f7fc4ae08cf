"""One switch with its ports, its program and its P4Runtime server, and log lines about packets that came to
nothing."""

from __future__ import annotations

import dataclasses
import json
import logging
import threading
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from finsy.proto import p4r

from gradbed.common.errors import UserError
from gradbed.switch.engine import Engine, EngineDevice
from gradbed.switch.server import Bmv2Election, Election, P4RuntimeServer
from gradbed.switch.simple_switch.basics import basics_handler
from gradbed.switch.simple_switch.options import QUEUE_PACKETS, SwitchOptions
from gradbed.switch.simple_switch.packet_files import PacketFiles
from gradbed.topo.link import LinkModel

# ---- Packets that came to nothing ----


_logger = logging.getLogger(__name__)
_INTERVAL_S = 1.0

# Fields of DeviceStatistics, and what they mean to a person. Drops of the program are reported by place.
_REASONS = {
    "no_program_drops": "there is no program yet",
    "swap_drops": "another program was loaded meanwhile",
    "no_port_drops": "egress_spec is a port that the switch does not have",
    "no_group_drops": "mcast_grp is a group without ports",
    "priority_drops": "priority is larger than the number of queues allows",
    "buffer_drops": "too long, or out of memory",
    "host_event_drops": "packet-ins and digests came faster than they were fetched",
}


class DropWatch:
    """Logs once a second how many packets were dropped since, and why; a context manager."""

    def __init__(self, engine: Engine, device: EngineDevice) -> None:
        self._engine = engine
        self._device = device
        self._before = self._counts()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="drop watch", daemon=True)

    def __enter__(self) -> DropWatch:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()
        self.report()

    def report(self) -> None:
        """Return one line for each reason that there was since the last report."""
        counts = self._counts()
        for why, count in counts.items():
            new = count - self._before.get(why, 0)
            if new > 0:
                _logger.debug("%d packet%s dropped%s", new, "" if new == 1 else "s", why)
        self._before = counts

    def _run(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            self.report()

    def _counts(self) -> dict[str, int]:
        statistics = dataclasses.asdict(self._device.statistics())
        counts = {f": {reason}": statistics[name] for name, reason in _REASONS.items()}
        counts |= {f" {site}": count for site, count in self._device.program_drops().items()}
        for row in self._engine.link_statistics():
            counts[f": the queue of port {row.port} ({row.direction}) was full"] = row.queue_drops
        return counts


# ---- The switch ----


class RunningSwitch:
    """A context manager: entered, the switch forwards packets and serves P4Runtime."""

    def __init__(self, options: SwitchOptions) -> None:
        self._options = options
        self._stack = ExitStack()
        self.addresses: tuple[str, ...] = options.grpc_addresses
        if options.thrift_port is not None:
            self.addresses += (f"127.0.0.1:{options.thrift_port}",)

    def __enter__(self) -> RunningSwitch:
        """Start the switch. Raises UserError if a program, an interface or an address is not there."""
        with self._stack:
            self._start()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        _logger.info("stopped")

    def _start(self) -> None:
        options = self._options
        initial = {}
        if options.program is not None:
            initial[options.device_id] = _pipeline(options.program)
        engine = self._stack.enter_context(Engine())
        device = engine.add_switch(
            options.device_id,
            cpu_port=options.cpu_port,
            drop_port=options.drop_port,
            priorities=options.priorities,
        )
        files = None if options.files_delay_s is None else PacketFiles(engine, options, options.files_delay_s)
        for port, interface in options.interfaces.items():
            if files is not None:
                files.add_port(port, interface)
            else:
                engine.add_interface(options.device_id, port, interface, _LINK, 0)
            _logger.info("Adding interface %s as port %d", interface, port)
            if options.pcap_dir is not None:
                for direction in ("in", "out"):
                    file = options.pcap_dir / f"{interface}_{direction}.pcap"
                    engine.capture(file, [(options.device_id, port, direction)], nanoseconds=False)
        engine.start()
        tls = {} if options.tls is None else dict.fromkeys(options.grpc_addresses, options.tls)
        election = Bmv2Election if options.bmv2_arbitration else Election
        server = P4RuntimeServer(
            {options.device_id: device},
            self.addresses,
            initial=initial,
            unconfigured=options.grpc_addresses,
            tls=tls,
            election=election,
            further=[basics_handler(options)],
        )
        server.start()
        self._stack.callback(server.stop)
        ports = iter(server.ports)
        self.addresses = tuple(
            address if address.startswith("unix:") else f"{address.rpartition(':')[0]}:{next(ports)}"
            for address in self.addresses
        )
        _logger.info("P4Runtime is served on %s", ", ".join(self.addresses))
        self._watch(engine, device)
        if files is not None:
            self._stack.enter_context(files)

    def _watch(self, engine: Engine, device: EngineDevice) -> None:
        if _logger.isEnabledFor(logging.DEBUG):
            self._stack.enter_context(DropWatch(engine, device))


# Of BMv2's ports: as fast as the machine, with short queues.
_LINK = LinkModel(queue_packets=QUEUE_PACKETS)


def _pipeline(path: Path) -> Any:
    """Return what a controller would push to have that BMv2 JSON run."""
    # The compiler's part in it takes a while to import: not for a switch that waits for its controller's pipeline.
    from gradbed.switch.simple_switch.derived_p4info import derived_p4info

    program = _read_program(path)
    try:
        p4info = derived_p4info(program)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    return p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=json.dumps(program).encode())


def _read_program(path: Path) -> dict[str, Any]:
    try:
        program = json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read the program {path}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path} is not JSON; compile the program to BMv2 JSON first") from None
    if not isinstance(program, dict):
        raise UserError(f"{path} is not BMv2 JSON")
    return program
