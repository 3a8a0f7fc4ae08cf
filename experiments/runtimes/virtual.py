"""The virtual clock: switches, controller and agents in this process; time goes from event to event.

The programs, the plans, the link model, the agents' code and the counters are those of the real clock. No machine is
involved in what comes out, no root is needed, and nothing is done in the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from gradbed.common.capabilities import REAL_CLOCK
from gradbed.controller.core.controller import Controller
from gradbed.controller.core.jobs import Journal
from gradbed.controller.core.service import ServiceConfig, load_services
from gradbed.controller.planning.plan import Plan
from gradbed.controller.southbound.p4runtime.local import LocalSouthbound
from gradbed.controller.switches import unrouted_programs
from gradbed.emulation.backend import VirtualBackend
from gradbed.emulation.layout import interface_name, network_config
from gradbed.experiments.configuration.faults import ControllerRestart
from gradbed.experiments.programs import Program
from gradbed.experiments.runtimes.agents import Agents
from gradbed.experiments.runtimes.interface import Runtime
from gradbed.experiments.runtimes.switch_programs import PacketWatch, pipelines_of, watch_level
from gradbed.experiments.validity.verdict import ValidityMeasures, ValidityReport
from gradbed.hosts.agents.virtual.clock import VirtualClock
from gradbed.hosts.agents.virtual.launcher import VirtualLauncher
from gradbed.switch.codegen import build_program
from gradbed.switch.insight.recorder import InstrumentedProgram, as_words, build_instrumented, recording
from gradbed.switch.virtual import HostInterface, Message, SimulatedNetwork

if TYPE_CHECKING:
    from typing import Self

    from gradbed.experiments.setup import NetworkSetup, Served, TrialTask
    from gradbed.switch.engine import EngineDevice
    from gradbed.switch.insight.coverage import Report as CoverageReport


class VirtualRuntime(Runtime):
    """A simulated network with its controller and agents, all in this process."""

    def __init__(self, system: Served, setup: NetworkSetup, task: TrialTask) -> None:
        """Make the network.

        Raises:
            UserError: Something of it needs the kernel.
        """
        programs = {name: program for name, program in setup.switches.items() if isinstance(program, Program)}
        REAL_CLOCK.require(len(programs) == len(setup.switches), "Open vSwitch", "--legacy p4 (or --optical p4)")
        self.topology = setup.topology
        self._system = system
        self._timing = task.configuration.timing
        self._control_ns = 1000 * task.scale.time_us(self._timing.control_delay_us)
        self._setup = setup
        self._level = watch_level(setup)
        self._watching = ExitStack()
        self._watch: PacketWatch | None = None
        build = build_program if self._level is None else build_instrumented
        self._switches = SimulatedNetwork(network_config(self.topology, "memory", task.seed, ()), build, task.threads)
        if task.threads > 1:
            self._switches.expect_no_messages()
        self.clock = VirtualClock(self._switches)
        self.clock.on_message = self._take_message
        self.backend = VirtualBackend(self.topology, self._switches, self.clock)
        self.pipelines = pipelines_of(setup, task.configuration.program)
        self._programs = {name: program.name for name, program in programs.items()}
        restarts = any(isinstance(fault, ControllerRestart) for fault in task.configuration.faults)
        self._journal = Journal(task.folder / "controller.journal.json") if restarts else None
        self.southbound, self._controller = self._make_controller()
        self.interfaces = self._open_interfaces()
        self.agents = Agents(
            task.folder,
            _Hosts(self),
            launcher=VirtualLauncher(self.clock, self.interfaces, task.compute_times),
            classes=setup.classes,
        )
        self._calls: list[Any] = []

    def _make_controller(self, takes_over: bool = False) -> tuple[LocalSouthbound, Controller]:
        device_ids = {switch.name: switch.number for switch in self.topology.switches}
        southbound = LocalSouthbound(self._switches, device_ids, self.pipelines, takes_over)
        settings = self._setup.settings.model_dump(mode="json")
        service = ServiceConfig(name=self._system.name, service=self._system.service, settings=settings)
        controller = Controller(
            self.topology,
            southbound,
            load_services([service, *self._setup.services]),
            self._programs,
            unrouted_programs=unrouted_programs(self.pipelines),
            journal=self._journal,
        )
        southbound.listen(controller)
        return southbound, controller

    def _open_interfaces(self) -> dict[str, HostInterface]:
        """Return the hosts' interfaces by name, as Mininet would call them."""
        found = {}
        for link in self.topology.host_links:
            host, switch = (link.a, link.b) if self.topology.is_host(link.a.node) else (link.b, link.a)
            found[interface_name(host)] = self._switches.interface(
                self.topology.switch(switch.node).number,
                switch.port,
                receive_coalescing_us=self._timing.receive_coalescing_us,
            )
        return found

    def __enter__(self) -> Self:
        self._controller.start(ready_timeout_s=0.0)
        if self._level is not None:
            programs = {
                device_id: device.program
                for device_id, device in self._switches.devices.items()
                if isinstance(device.program, InstrumentedProgram)
            }
            self._watch = PacketWatch(self._setup, programs)
            self._recorder = self._watching.enter_context(recording(self._level))
            self._see_entries()
            self.add_step_hook(self._see)
        return self

    def _see(self) -> None:
        """Take in what packets did since the last call."""
        assert self._watch is not None
        devices = {device.state.pointer: device_id for device_id, device in self._running().items()}
        self._watch.see(as_words(self._recorder.take()), devices)

    def _see_entries(self) -> None:
        assert self._watch is not None
        for device_id, device in self._running().items():
            assert isinstance(device.program, InstrumentedProgram)
            words = self._recorder.entries(device.state, len(device.program.model.tables))
            self._watch.see_entries(device_id, as_words(words))

    def _running(self) -> dict[int, EngineDevice]:
        """Return the switches that have a program, by device id."""
        return {
            device_id: device for device_id, device in self._switches.devices.items() if device.program is not None
        }

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.agents.__exit__(kind, error, trace)
        self._switches.after_running.clear()
        self._watching.close()
        self._switches.close()

    # Jobs and counters.

    def add_job(self, request: BaseModel, service: str | None = None) -> dict[str, Any]:
        job = self._controller.add_job(service or self._system.name, request)
        return self._controller.answer(job).model_dump(mode="json")

    def delete_job(self, number: int, service: str | None = None) -> None:
        self._controller.delete_job(service or self._system.name, number)

    def counters(self, switch: str) -> dict[str, list[dict[str, int]]]:
        return {
            name: [asdict(cell) for cell in cells if cell.packets or cell.bytes]
            for name, cells in self.southbound.counters(switch).items()
        }

    def plan(self) -> Plan:
        return self._controller.plan()

    def registers(self, switch: str, name: str) -> dict[int, int | None]:
        if self.topology.switch(switch).number not in self._running():
            return {}  # it has just restarted
        return {index: value for index, value in enumerate(self.southbound.registers(switch, name)) if value != 0}

    # Agents.

    def event(self) -> Mapping[str, Any]:
        return self.agents.event()

    def stop_agents(self) -> dict[tuple[int, str], dict[str, Any]]:
        found = super().stop_agents()
        # A switch that has just restarted can tell its counts once the controller has brought it back.
        while len(self._running()) < len(self._switches.devices) and self.clock.step():
            pass
        return found

    def add_step_hook(self, hook: Callable[[], None]) -> None:
        """Call `hook` whenever time has advanced a little, and several times a second of real time meanwhile."""
        self._switches.after_running.append(hook)

    def restart_agent(self, job: int, name: str) -> None:
        self.agents.launch([self.agents.started(job, name)])
        self.agents.begin()

    def coverage(self) -> list[CoverageReport]:
        if self._watch is None:
            return []
        self._see()
        self._see_entries()
        return self._watch.coverage()

    def trace(self) -> list[dict[str, Any]]:
        if self._watch is None:
            return []
        self._see()
        return self._watch.trace()

    # Time.

    def now_us(self) -> int:
        return self.clock.now_ns // 1000

    def call_after(self, delay_us: int, action: Callable[[], None]) -> None:
        self._calls.append(self.clock.at(self.clock.now_ns + 1000 * delay_us, action))

    def cancel_calls(self) -> None:
        for call in self._calls:
            call.cancel()
        self._calls.clear()

    def set_periodic_hook(self, hook: Callable[[], int] | None) -> None:
        self.clock.look_on(None if hook is None else lambda: 1000 * hook())

    def _later(self, trips: int, action: Callable[[], None]) -> None:
        """Call `action` after `trips` one-way delays between controller and switch."""
        self.clock.at(self.clock.now_ns + trips * self._control_ns, action)

    def _take_message(self, message: Message) -> None:
        # There, and back with what the controller makes of it.
        self._later(2, lambda: self.southbound.take(message.device_id, message.message))

    # Faults.

    def _tell_controller(self, a: str, b: str, up: bool) -> None:
        self._later(2, lambda: self._controller.link_changed(a, b, up))

    def _restart_controller(self) -> None:
        """Replace the controller: its memory is gone, what is in flight between it and switches is not."""
        if self._journal is None:
            raise RuntimeError("a controller without a journal cannot be restarted")
        self.southbound, self._controller = self._make_controller(takes_over=True)
        self._controller.start(ready_timeout_s=0.0)

    def restart_switch(self, switch: str) -> None:
        super().restart_switch(switch)
        self.southbound.lost(switch)
        self._later(2, lambda: self.southbound.restore(switch))

    def meter(self) -> VirtualMonitor:
        return VirtualMonitor()


class VirtualMonitor:
    """The monitor of simulated time (interface.Meter), in which nothing has to keep up with a clock."""

    def __enter__(self) -> VirtualMonitor:
        return self

    def __exit__(self, *exception: object) -> None: ...

    def achieved_rates(self) -> Mapping[tuple[str, str], float]:
        return {}

    def report(self, socket_drops: int, socket_packets: int) -> ValidityReport:
        return ValidityReport(ValidityMeasures(), "simulated")


class _Hosts:
    """Hosts of a simulated network (gradbed.experiments.runtimes.agents.Hosts)."""

    def __init__(self, runtime: VirtualRuntime) -> None:
        self._topology = runtime.topology

    def host_pid(self, host: str) -> int:
        """Return 0: there is no such process."""
        return 0

    def host_interfaces(self, host: str) -> tuple[str, ...]:
        ends = [end for link in self._topology.host_links for end in (link.a, link.b) if end.node == host]
        return tuple(interface_name(end) for end in sorted(ends, key=lambda end: end.port))
