"""Verbs of networks pass few definitions: lists of every function of gradbed between a caller and the engine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import gradbed as gb
from gradbed.controller.core.service import NoSettings
from gradbed.emulation.switches.gradbed_switches import RealBackend, SwitchProcess
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.programs import FORWARD
from gradbed.experiments.runtimes.virtual import VirtualRuntime
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import NetworkSetup, TrialTask
from gradbed.switch.engine import Engine, EngineDevice
from gradbed.switch.engine_network import NetworkConfig, SwitchConfig
from gradbed.switch.switch_process import KernelNetwork, serve_commands
from gradbed.topo.generators import star
from tests.unit.api.test_live_networks import GATE
from tests.unit.traffic.bare import BareSystem

TOPOLOGY = star(2)
HERE = Path(__file__).name


class Hops:
    """The functions through which calls came to one that is watched, outermost first."""

    def __init__(self) -> None:
        self.found: list[list[str]] = []

    def watch(self, patch: pytest.MonkeyPatch, owner: type, name: str, answer: Any = None) -> None:
        """Replace a method: note who calls it."""

        def note(*arguments: Any, **named: Any) -> Any:
            self.found.append([*self._callers(), f"{owner.__name__}.{name}"])
            return answer

        patch.setattr(owner, name, note)

    @staticmethod
    def _callers() -> list[str]:
        """Return callers in gradbed as MODULE.FUNCTION, up to the test; other libraries do not count."""
        frame, found = sys._getframe(2), []
        while Path(frame.f_code.co_filename).name != HERE and frame.f_back is not None:
            package, _, module = str(frame.f_globals.get("__name__")).rpartition(".")
            if package.startswith("gradbed"):
                found.append(f"{module}.{frame.f_code.co_name}")
            frame = frame.f_back
        return found[::-1]


@pytest.fixture
def runtime(tmp_path: Path) -> VirtualRuntime:
    task = TrialTask(TrialConfiguration(clock="virtual"), 1, Scale(), tmp_path)
    setup = NetworkSetup(TOPOLOGY, {switch.name: FORWARD for switch in TOPOLOGY.switches}, NoSettings())
    return VirtualRuntime(BareSystem(), setup, task)


@pytest.fixture
def hops(monkeypatch: pytest.MonkeyPatch) -> Hops:
    found = Hops()
    found.watch(monkeypatch, Engine, "set_link_up")
    found.watch(monkeypatch, Engine, "set_link")
    found.watch(monkeypatch, EngineDevice, "restart")
    found.watch(monkeypatch, SwitchProcess, "ask", True)
    return found


def test_a_link_is_cut_in_three_hops(runtime: VirtualRuntime, hops: Hops) -> None:
    runtime.set_link_up("h1", "s1", False)
    assert hops.found == [["interface.set_link_up", "backend.set_link_up", "Engine.set_link_up"]]


def test_a_link_is_changed_in_two_hops(runtime: VirtualRuntime, hops: Hops) -> None:
    runtime.backend.change_link("h1", "s1", loss=0.5)
    assert hops.found == [["backend.change_link", "Engine.set_link"]] * 2


def test_the_switch_process_is_asked_as_soon(hops: Hops) -> None:
    process = object.__new__(SwitchProcess)
    backend = RealBackend(TOPOLOGY, "memory", 1, loading=process)
    backend.set_link_up("h1", "s1", False)
    backend.restart_switch("s1")
    assert hops.found == [
        ["backend.set_link_up", "SwitchProcess.ask"],
        ["backend.restart_switch", "SwitchProcess.ask"],
    ]


@pytest.mark.parametrize(
    ("command", "way"),
    [
        ({"command": "set_link_up", "port": 1, "up": False}, ["Engine.set_link_up"]),
        (
            {"command": "restart_switch"},
            ["engine_network.restart_switch", "switch_process._restart", "EngineDevice.restart"],
        ),
    ],
)
def test_the_switch_process_calls_the_engine(hops: Hops, command: dict[str, Any], way: list[str]) -> None:
    with KernelNetwork(NetworkConfig(switches=(SwitchConfig(device_id=1),))) as network:
        list(serve_commands(network, [json.dumps({**command, "device_id": 1})]))
    assert hops.found == [["switch_process.serve_commands", *way]]


def test_a_session_of_a_program_adds_the_link_alone(hops: Hops) -> None:
    with gb.virtual(gb.star(3), gb.Program(GATE)) as network:
        network.link("h1", "s1").down()
    assert hops.found == [["networks.down", "backend.set_link_up", "Engine.set_link_up"]]
