"""What the experiment makes of the launcher's events, with a launcher of the test's own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.runtimes import agents
from gradbed.experiments.runtimes.agents import Agents, AgentSpec


class FakeLauncher:
    """Says what the test lets it say, in order; keeps what it is told."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.told: list[dict[str, Any]] = []
        self.says: list[dict[str, Any]] = []
        self.now_s = 0.0

    def send(self, command: str, **fields: Any) -> None:
        self.told.append({"command": command, **fields})

    def event(self, timeout_s: float) -> dict[str, Any]:
        if not self.says:
            raise RuntimeError("silence")
        return self.says.pop(0)

    def has_event(self, timeout_s: float) -> bool:
        self.now_s += 0 if self.says else max(0.0, timeout_s)
        return bool(self.says)

    def stop(self, timeout_s: float) -> None: ...


class Places:
    def host_pid(self, host: str) -> int:
        return int(host[1:])

    def host_interfaces(self, host: str) -> tuple[str, ...]:
        return (f"{host}-eth0", f"{host}-eth1")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Agents, FakeLauncher]:
    fake = FakeLauncher()
    monkeypatch.setattr(agents, "LauncherProcess", lambda *arguments, **options: fake)
    return Agents(tmp_path, Places()), fake


def said(event: str, job: int = 1, name: str = "launcher", **fields: Any) -> dict[str, Any]:
    return {"event": event, "job": job, "name": name, **fields}


ALIVE = {"event": "alive", "name": "launcher", "agents": 2}


def test_start_returns_when_all_are_ready_and_loses_no_other_event(launched: tuple[Agents, FakeLauncher]) -> None:
    agents, fake = launched
    fake.says = [said("round", name="a"), ALIVE, said("ready", name="b"), said("ready", name="a")]
    agents.start([AgentSpec("h1", "m:f", "a", {"x": 1}), AgentSpec("h2", "m:f", "b", {}, stop_rank=3)])
    assert fake.says == []
    assert fake.told[1] == {
        "command": "start", "agent": "m:f", "name": "b", "job": 1, "host_pid": 2,
        "interfaces": ("h2-eth0", "h2-eth1"), "config": {}, "stop_rank": 3, "classes": (), "rates_bps": (),
    }  # fmt: skip
    assert agents.event() == said("round", name="a")


def test_signs_of_life_are_not_silence_and_errors_are_raised(launched: tuple[Agents, FakeLauncher]) -> None:
    agents, fake = launched
    fake.says = [ALIVE] * 5 + [said("round", name="a"), ALIVE, said("error", name="a", message="lost")]
    assert agents.event("round")["name"] == "a"
    with pytest.raises(UserError, match="a: lost"):
        agents.event()
    with pytest.raises(RuntimeError, match="silence"):
        agents.event()


def test_silence_is_noticed_by_those_who_look_often(
    launched: tuple[Agents, FakeLauncher], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the live view and samples do: between two looks it is never silent for long."""
    agents, fake = launched
    monkeypatch.setattr("gradbed.experiments.runtimes.agents.time", SimpleNamespace(monotonic=lambda: fake.now_s))
    fake.says = [said("ready", name="a")]
    fake.now_s = 1000.0  # the network took so long
    agents.start([AgentSpec("h1", "m:f", "a", {})])
    for _ in range(5):
        assert [agents.event_within(0.1) for _ in range(550)] == [None] * 550
        fake.says = [ALIVE]
    fake.says = []
    assert [agents.event_within(0.1) for _ in range(40)] == [None] * 40
    with pytest.raises(RuntimeError, match="silence"):
        for _ in range(20):
            agents.event_within(0.1)


def test_kill_waits_for_the_end_of_that_agent(launched: tuple[Agents, FakeLauncher]) -> None:
    agents, fake = launched
    fake.says = [said("round", name="b"), said("killed", name="a"), said("round", name="c")]
    agents.kill(1, "a")
    assert fake.told == [{"command": "kill", "job": 1, "name": "a"}]
    assert [agents.event()["name"] for _ in range(3)] == ["b", "a", "c"]


def test_stop_ends_every_job_and_collects_statistics(launched: tuple[Agents, FakeLauncher]) -> None:
    agents, fake = launched
    agents.launch([AgentSpec("h1", "m:f", "a", {}, job=2), AgentSpec("h2", "m:f", "b", {}, job=5)])
    fake.says = [
        said("final", 5, "b", statistics={"frames": 7}), ALIVE, said("stopped", 5), said("stopped", 2),
    ]  # fmt: skip
    assert agents.stop() == {(5, "b"): {"frames": 7}}
    assert [command["job"] for command in fake.told if command["command"] == "stop"] == [2, 5]
    assert agents.stop() == {}
