"""What every fabric of gradbed's switches has, on whichever clock: an engine with the parts of a configuration."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.common.resources import Closing
from gradbed.switch.engine import Capture, Engine, EngineDevice
from gradbed.switch.fabric_config import CaptureConfig, FabricConfig, InterfaceConfig
from gradbed.switch.insight.recorder import FabricRecorder, Level


class EngineFabric(Closing):
    """Switches, links and captures of a configuration; what is at the other end of its ports, a subclass says."""

    engine: Engine
    devices: dict[int, EngineDevice]
    """P4 switches by device id."""
    captures: dict[Path, Capture]
    recorder: FabricRecorder | None

    def __init__(self, config: FabricConfig, engine: Engine, lp_of: Mapping[int, int] | None = None) -> None:
        """lp_of: numbers of logical processes by device id; None: all are in one.

        Raises UserError for what cannot be built, such as an interface that does not exist.
        """
        self.engine = engine
        try:
            self.devices = {
                switch.device_id: engine.add_switch(
                    switch.device_id,
                    switch.name,
                    switch.cpu_port,
                    drop_port=switch.drop_port,
                    priorities=switch.priorities,
                    seed=switch.seed,
                    lp=lp_of[switch.device_id] if lp_of else 0,
                )
                for switch in config.switches
            }
            for port in config.interfaces:
                self._add_port(port)
            for link in config.links:
                engine.add_link(link.a, link.b, link.link, link.seed)
            self._add_foreign_switches(config)
            self.captures = {}
            for capture in config.captures:
                self.start_capture(capture)
            self.recorder = (
                FabricRecorder(engine, self.devices, Level[config.record.upper()]) if config.record else None
            )
        except BaseException:
            engine.close()
            raise

    @abstractmethod
    def _add_port(self, port: InterfaceConfig) -> None:
        """A port that leads to a host."""

    @abstractmethod
    def _add_foreign_switches(self, config: FabricConfig) -> None:
        """Switches that other programs run, and the wires between them and to hosts."""

    @abstractmethod
    def _restart(self, device_id: int) -> None: ...

    def start_capture(self, config: CaptureConfig) -> None:
        """UserError if the file cannot be written, or is being written already."""
        if config.file in self.captures:
            raise UserError(f"{config.file} is being written already")
        if config.interfaces:
            capture = self.engine.capture_interfaces(config.file, config.interfaces)
        else:
            capture = self.engine.capture(config.file, config.ports)
        capture.limit(config.packets, config.seconds)
        self.captures[config.file] = capture

    def restart_switch(self, device_id: int) -> None:
        """Let a P4 switch lose program, tables, registers and digests, as when its power failed for a moment."""
        if device_id not in self.devices:
            raise UserError(f"there is no P4 switch with device id {device_id}")
        if self.recorder is not None:
            self.recorder.before_restart()
        self._restart(device_id)

    def close(self) -> None:
        """Give everything back. May be repeated."""
        self.engine.close()
        if self.recorder is not None:
            self.recorder.close()
