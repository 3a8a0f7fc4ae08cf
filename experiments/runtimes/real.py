"""The real clock: switches and hosts under Mininet, programmed by the controller's process; agents are processes."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel

from gradbed.common.capabilities import GRADBED_SWITCHES
from gradbed.common.errors import ProcessLost, UserError
from gradbed.common.json_lines import JsonLinesProcess
from gradbed.controller.config import ControllerConfig, ProgramFiles
from gradbed.controller.core.service import ServiceConfig
from gradbed.controller.planning.legacy import OPENFLOW
from gradbed.controller.planning.plan import Plan
from gradbed.controller.rest.client import ControllerClient
from gradbed.emulation.network import EmulatedNetwork
from gradbed.emulation.size import estimate
from gradbed.experiments.configuration.faults import needs_standby
from gradbed.experiments.programs import Program
from gradbed.experiments.runtimes.agents import Agents
from gradbed.experiments.runtimes.interface import Runtime
from gradbed.experiments.runtimes.loading import Loading, controller_process
from gradbed.experiments.runtimes.switch_programs import PacketWatch, watch_level
from gradbed.experiments.validity.monitor import MonitorReading, RealtimeMonitor
from gradbed.experiments.validity.processes import raise_priorities
from gradbed.switch.insight.recorder import InstrumentedProgram, Level, build_instrumented
from gradbed.switch.server.addresses import OutsideAddress
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    from typing import Self

    from gradbed.experiments.setup import NetworkSetup, Served, TrialTask
    from gradbed.switch.insight.coverage import Report as CoverageReport

Answer = TypeVar("Answer")

REST_ADDRESS = "127.0.0.1:8080"
"""In the sandbox, whose loopback nobody else uses."""

START_TIMEOUT_S, READY_TIMEOUT_S = 90.0, 60.0
"""For small networks: of the controller as a whole, and of its switches."""

START_TIMEOUT_FACTOR = 4
"""Of the estimated time in which a network comes up (emulation/size.py), since machines have more to do."""

STOP_TIMEOUT_S = 3.0
CONNECTION_POLL_S = 0.02
PROCESS_CHECK_S = 0.5
"""Between looks at whether all processes are there still."""
ASKED_AT_ONCE = 3
"""Switches, for their counters."""

_RECORDED: Mapping[Level | None, Literal["points", "values"] | None] = {
    None: None,
    Level.POINTS: "points",
    Level.VALUES: "values",
}


class RealRuntime(Runtime):
    """A network of the kernel with its controller and agents as processes; for use in a sandbox.

    The trial's folder holds configurations, logs and the controller's journal. rest_fd: a listening socket that
    serves the REST interface, too: one made outside the sandbox can be reached from there. p4runtime: the
    same for P4Runtime of gradbed's switches. loading: processes that were started already, without these two.
    """

    __test__ = False

    def __init__(
        self,
        system: Served,
        setup: NetworkSetup,
        task: TrialTask,
        *,
        rest_fd: int | None = None,
        p4runtime: OutsideAddress | None = None,
        loading: Loading | None = None,
    ) -> None:
        level = watch_level(setup)
        if level is not None and task.configuration.program.model != "gradbed":
            raise GRADBED_SWITCHES.missing("--coverage" if setup.coverage else "--trace")
        self._watch: PacketWatch | None = None
        self.topology = setup.topology
        self.preload = setup.preload
        self._system = system
        self._setup = setup
        self.by = task.configuration.program
        self.folder = task.folder
        self._rest_fd = rest_fd
        self.network = EmulatedNetwork(
            setup.topology,
            switch_kind=self.by.model,
            links=setup.links,
            run_dir=task.folder,
            seed=task.seed,
            kinds={name: "openflow" for name, program in setup.switches.items() if program == OPENFLOW},
            p4runtime=p4runtime,
            record=_RECORDED[level],
            mtu_bytes=setup.mtu_bytes,
            loading=loading.switches if loading else None,
        )
        self.backend = self.network.backend
        self.client = ControllerClient(REST_ADDRESS)
        self._controller = loading.controller if loading else None
        self._standby: JsonLinesProcess | None = None
        self._needs_standby = needs_standby(task.configuration.faults)
        self._controllers = int(loading is not None)
        self._start_timeout_s = START_TIMEOUT_FACTOR * estimate(setup.topology).time_s
        self.agents = Agents(
            task.folder,
            self.network,
            preload=setup.preload,
            keep_open=setup.keep_open,
            compute=task.compute_times,
            classes=setup.classes,
            rates_bps=_host_rates_bps(setup.topology),
        )
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._hook: Callable[[], int] | None = None
        self._hook_us = 0
        self._restarted: set[str] = set()

    def __enter__(self) -> Self:
        try:
            # They load their modules while the network is being made.
            if self._controller is None:
                self._controller = self._start_controller("-")
            self.agents.__enter__()
            self.network.start()
            path = self._write_configuration()
            self._controller.send("configure", file=str(path))
            self._await_ready(self._controller)
            if self._needs_standby:
                self._stand_by()
        except BaseException as error:
            self._stop_after(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_after(error)

    def _stop_after(self, error: BaseException | None) -> None:
        """Raise ProcessLost in place of an error that a process's end led to, such as an agent's without answers."""
        lost: ProcessLost | None = None
        if isinstance(error, Exception) and not isinstance(error, ProcessLost):
            try:
                self._check_processes()
            except ProcessLost as found:
                lost = found
            except UserError:
                pass  # the controller's own line, which is why this ends
        self.stop()
        if lost is not None:
            raise lost from error

    def stop(self) -> None:
        """Take everything down; harmless when it is down already."""
        self.agents.__exit__(None, None, None)
        # The one that stands by goes first, lest it take over.
        for process in (self._standby, self._controller):
            if process is not None:
                process.terminate(STOP_TIMEOUT_S)
        self._standby = self._controller = None
        self.network.stop()

    def reload(self, setup: NetworkSetup) -> None:
        """Have switches run other programs, or hold other entries, from now on; what stays the same is left alone.
        The topology does not change."""
        self._setup = setup
        self._write_configuration()
        self.restart_controller()

    def targets(self) -> dict[str, dict[str, Any]]:
        """Return where each P4 switch serves P4Runtime, and what it runs: address, device_id, p4info, json."""
        found = {}
        for switch in self.topology.switches:
            program = self._setup.switches[switch.name]
            if isinstance(program, Program):
                files = program.compiled(self.by)
                found[switch.name] = {
                    "address": self.backend.control_address(switch.name),
                    "device_id": switch.number,
                    "p4info": str(files.p4info),
                    "json": str(files.json),
                }
        return found

    def _restart_controller(self) -> None:
        if self._controller is None:
            raise RuntimeError("there is no controller to be restarted")
        os.kill(self._controller.pid, signal.SIGKILL)
        self._controller.stop(STOP_TIMEOUT_S)
        self._controller = self._start_controller(str(self._configuration_path))
        self._await_ready(self._controller)

    def _fail_over_controller(self) -> None:
        if self._controller is None or self._standby is None:
            raise RuntimeError("no controller stands by")
        os.kill(self._controller.pid, signal.SIGKILL)
        successor, self._standby = self._standby, None
        self._await_ready(successor)
        self._controller.stop(STOP_TIMEOUT_S)
        self._controller = successor
        self._stand_by()

    def _await_ready(self, controller: JsonLinesProcess) -> None:
        """Return once it has programmed all switches. ProcessLost if the switches have gone meanwhile."""
        ends_s = time.monotonic() + START_TIMEOUT_S + self._start_timeout_s
        while not controller.has_event(PROCESS_CHECK_S) and time.monotonic() < ends_s:
            self.backend.check_alive()
        controller.expect("ready", max(0.0, ends_s - time.monotonic()))

    def _stand_by(self) -> None:
        self._standby = self._start_controller(str(self._configuration_path))
        self._standby.expect("standby", START_TIMEOUT_S)

    # Jobs and counters.

    def add_job(self, request: BaseModel, service: str | None = None) -> dict[str, Any]:
        return self.client.add_job(service or self._system.name, request.model_dump(mode="json", exclude_none=True))

    def delete_job(self, number: int, service: str | None = None) -> None:
        self.client.delete_job(service or self._system.name, number)

    def counters(self, switch: str) -> dict[str, list[dict[str, int]]]:
        return self._when_connected(switch, lambda: self.client.counters(switch))

    def all_counters(self) -> dict[str, dict[str, list[dict[str, int]]]]:
        """Return `counters` of every switch, of which several are asked at once: three processes take part."""
        names = [switch.name for switch in self.topology.switches]
        with ThreadPoolExecutor(ASKED_AT_ONCE) as asking:
            return dict(zip(names, asking.map(self.counters, names), strict=True))

    def plan(self) -> Plan:
        return self.client.plan()

    def registers(self, switch: str, name: str) -> dict[int, int | None]:
        return self._when_connected(switch, lambda: self.client.registers(switch, name))

    def _when_connected(self, switch: str, ask: Callable[[], Answer]) -> Answer:
        """Return what a switch answers.

        One that was restarted just now serves again, but its controller has yet to notice: that is waited for.
        """
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            try:
                answer = ask()
            except UserError:
                if switch not in self._restarted or time.monotonic() > deadline:
                    raise
                time.sleep(CONNECTION_POLL_S)
            else:
                self._restarted.discard(switch)
                return answer

    # Agents.

    def begin(self) -> None:
        raise_priorities()
        super().begin()

    def event(self) -> Mapping[str, Any]:
        while True:
            self._make_due_calls()
            self._call_hook_if_due()
            self._check_processes()
            times_s = [time.monotonic() + PROCESS_CHECK_S, *(call[0] for call in self._calls[:1])]
            if self._hook is not None:
                times_s.append(self._hook_us / 1e6)
            if (event := self.agents.event_within(min(times_s) - time.monotonic())) is not None:
                return event

    def _check_processes(self) -> None:
        """Raise ProcessLost where one has ended: agents would only notice that nothing answers, after a while."""
        self.backend.check_alive()
        for process in (self._controller, self._standby):
            if process is not None:
                process.check()

    def restart_agent(self, job: int, name: str) -> None:
        self.agents.start([self.agents.started(job, name)])
        self.agents.begin()

    def coverage(self) -> list[CoverageReport]:
        if not self._setup.coverage:
            return []
        self._take_records()
        return self._watching.coverage()

    def trace(self) -> list[dict[str, Any]]:
        if self._setup.trace is None:
            return []
        start_us = self._take_records()
        rows = self._watching.trace()
        # Every switch has a clock of its own.
        return [
            {**row, "time_us": row["time_us"] + start_us[self.topology.switch(row["switch"]).number]} for row in rows
        ]

    def _take_records(self) -> Mapping[int, int]:
        """Take in what all switches did since the last call; return when each came up, in microseconds."""
        found = self.backend.records(self.folder / "records")
        for words, devices in found.parts:
            self._watching.see(words, devices)
        for device_id, words in found.entries.items():
            self._watching.see_entries(device_id, words)
        return found.start_us

    @property
    def _watching(self) -> PacketWatch:
        """The watch, made when it is needed: the programs are built as the switches have them."""
        if self._watch is None:
            built: dict[str, InstrumentedProgram] = {}
            programs = {}
            for name, program in self._setup.switches.items():
                if isinstance(program, Program):
                    if program.name not in built:
                        text = program.compiled(self.by).json.read_text(encoding="utf-8")
                        built[program.name] = build_instrumented(json.loads(text))
                    programs[self.topology.switch(name).number] = built[program.name]
            self._watch = PacketWatch(self._setup, programs)
        return self._watch

    # Time.

    def now_us(self) -> int:
        return time.monotonic_ns() // 1000

    def call_after(self, delay_us: int, action: Callable[[], None]) -> None:
        self._calls.append((time.monotonic() + delay_us / 1e6, len(self._calls), action))
        self._calls.sort(key=lambda call: call[:2])

    def cancel_calls(self) -> None:
        self._calls.clear()

    def set_periodic_hook(self, hook: Callable[[], int] | None) -> None:
        self._hook, self._hook_us = hook, 0

    def _call_hook_if_due(self) -> None:
        if self._hook is not None and self.now_us() >= self._hook_us:
            self._hook_us = self._hook()

    def _make_due_calls(self) -> None:
        while self._calls and self._calls[0][0] <= time.monotonic():
            self._calls.pop(0)[2]()

    # Faults.

    def _tell_controller(self, a: str, b: str, up: bool) -> None:
        self.client.link(a, b, up)

    def restart_switch(self, switch: str) -> None:
        super().restart_switch(switch)
        self._restarted.add(switch)

    def meter(self) -> AbstractContextManager[RealtimeMonitor]:
        monitor = RealtimeMonitor(self.topology, lambda: MonitorReading.read(self.backend))
        self.backend.on_rate_change = monitor.rates_changed
        return monitor

    # The controller.

    @property
    def _configuration_path(self) -> Path:
        return self.folder / "controller.json"

    def _start_controller(self, argument: str) -> JsonLinesProcess:
        """Start a controller, with a log of its own."""
        self._controllers += 1
        number = f".{self._controllers}" if self._controllers > 1 else ""
        log = self.folder / f"controller{number}.log"
        return controller_process(argument, log, [] if self._rest_fd is None else [self._rest_fd])

    def _write_configuration(self) -> Path:
        setup = self._setup
        programs = {each.name: each for each in setup.switches.values() if isinstance(each, Program)}
        compiled = {name: program.compiled(self.by) for name, program in programs.items()}
        config = ControllerConfig(
            topology=self.topology,
            targets={switch.name: self.backend.control_address(switch.name) for switch in self.topology.switches},
            thrift_ports=self.backend.thrift_ports(),
            programs={
                name: ProgramFiles(json=files.json, p4info=files.p4info, routed=programs[name].routed)
                for name, files in compiled.items()
            },
            switches={
                name: program.name if isinstance(program, Program) else OPENFLOW
                for name, program in setup.switches.items()
            },
            services=(
                ServiceConfig(
                    name=self._system.name,
                    service=self._system.service,
                    settings=setup.settings.model_dump(mode="json"),
                ),
                *setup.services,
            ),
            journal=self.folder / "controller.journal",
            rest_fd=self._rest_fd,
            rest_address=REST_ADDRESS,
            ready_timeout_s=READY_TIMEOUT_S + self._start_timeout_s,
            hand_over=setup.hand_over,
        )
        self._configuration_path.write_text(config.model_dump_json(by_alias=True, indent=1))
        return self._configuration_path


def _host_rates_bps(topology: Topology) -> dict[str, tuple[int | None, ...]]:
    """Return the rates of each host's links, in the order of its ports."""
    found: dict[str, dict[int, int | None]] = {host.name: {} for host in topology.hosts}
    for link in topology.host_links:
        for end in (link.a, link.b):
            if topology.is_host(end.node):
                found[end.node][end.port] = link.model.rate_bps
    return {host: tuple(rates[port] for port in sorted(rates)) for host, rates in found.items()}
