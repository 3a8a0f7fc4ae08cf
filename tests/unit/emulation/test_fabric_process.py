"""The parent's side of the JSON lines, against small stand-ins for the fabric process."""

import sys
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.emulation.switches import fabric_switches
from gradbed.emulation.switches.fabric_switches import FabricProcess
from gradbed.switch import fabric_commands
from gradbed.switch.fabric_commands import COMMANDS, Command, GetLinkStatistics, Quiesce

ANSWERS = """
import json, sys
print(json.dumps({"event": "ready", "grpc_ports": [4711]}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    match request["command"]:
        case "stop":
            sys.exit(0)
        case "quiesce":
            print(json.dumps({"event": "quiesce", "idle": request["timeout_s"] > 1}), flush=True)
        case "link_statistics":
            print(json.dumps({"event": "stray"}))
            text = json.dumps({"event": "link_statistics", "rows": [{"packets": n} for n in range(20_000)]})
            print(text[:5], end="", flush=True)
            print(text[5:], flush=True)
"""


@pytest.fixture
def start(tmp_path: Path):
    started = []

    def start(program: str) -> FabricProcess:
        started.append(FabricProcess([sys.executable, "-c", program], tmp_path / "fabric.log"))
        return started[-1]

    yield start
    for process in started:
        process.stop()


def test_questions_and_answers(start) -> None:
    fabric = start(ANSWERS)
    fabric.wait_ready()
    assert fabric.grpc_ports == (4711,)
    assert fabric.ask(GetLinkStatistics())["rows"] == [{"packets": n} for n in range(20_000)]
    assert fabric.ask(Quiesce(timeout_s=2.0))["idle"] is True
    assert fabric.ask(Quiesce(timeout_s=0.5))["idle"] is False
    fabric.stop()
    fabric.stop()
    assert not Path(f"/proc/{fabric.pid}").exists()


def test_its_last_line_is_shown_when_it_refuses(start) -> None:
    fabric = start("import sys; print('noise\\nno interface e1-eth1', file=sys.stderr); sys.exit(2)")
    with pytest.raises(UserError, match=r"^no interface e1-eth1$"):
        fabric.wait_ready()


@pytest.mark.parametrize(
    "program", ["raise KeyError('x')", "print('{}')", "print('[]')", "print('hello')", "import os; os.abort()"]
)
def test_a_broken_fabric_is_a_bug_not_a_user_error(start, program: str) -> None:
    fabric = start(program)
    with pytest.raises(RuntimeError, match="the fabric process"):
        fabric.wait_ready()


def test_death_between_questions(start) -> None:
    fabric = start('print(\'{"event": "ready", "grpc_ports": [1]}\')')
    fabric.wait_ready()
    with pytest.raises(RuntimeError, match="ended with status 0"):
        fabric.ask(GetLinkStatistics())


@pytest.mark.thorough
def test_silence_is_not_waited_for_forever(start, monkeypatch) -> None:
    monkeypatch.setattr(fabric_switches, "READY_TIMEOUT_S", 0.05)
    monkeypatch.setattr(fabric_switches, "STOP_TIMEOUT_S", 0.05)
    fabric = start("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)")
    with pytest.raises(RuntimeError, match="does not answer"):
        fabric.wait_ready()
    fabric.stop()
    assert not Path(f"/proc/{fabric.pid}").exists()


def test_the_fabric_process_knows_every_command() -> None:
    """One that is left out of the table is refused on the real clock alone."""
    written = [
        kind for kind in vars(fabric_commands).values() if isinstance(kind, type) and issubclass(kind, Command)
    ]
    assert {kind for kind in written if kind is not Command} == set(COMMANDS.values())
