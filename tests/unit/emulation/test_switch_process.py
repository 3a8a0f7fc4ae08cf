"""The parent's side of the JSON lines, against small stand-ins for the switch process."""

import sys
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.emulation.switches import gradbed_switches as gradbed_switches
from gradbed.emulation.switches.gradbed_switches import SwitchProcess
from gradbed.switch.engine_network import EngineNetwork
from gradbed.switch.switch_process import COMMANDS

ANSWERS = """
import json, sys
print(json.dumps({"event": "ready", "grpc_ports": [4711]}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    match request["command"]:
        case "stop":
            sys.exit(0)
        case "quiesce":
            print(json.dumps({"event": "quiesce", "answer": request["timeout_s"] > 1}), flush=True)
        case "link_statistics":
            print(json.dumps({"event": "stray"}))
            text = json.dumps({"event": "link_statistics", "answer": [{"packets": n} for n in range(20_000)]})
            print(text[:5], end="", flush=True)
            print(text[5:], flush=True)
"""


@pytest.fixture
def start(tmp_path: Path):
    started = []

    def start(program: str) -> SwitchProcess:
        started.append(SwitchProcess([sys.executable, "-c", program], tmp_path / "switches.log"))
        return started[-1]

    yield start
    for process in started:
        process.stop()


def test_questions_and_answers(start) -> None:
    process = start(ANSWERS)
    process.wait_ready()
    assert process.grpc_ports == (4711,)
    assert process.ask("link_statistics") == [{"packets": n} for n in range(20_000)]
    assert process.ask("quiesce", timeout_s=2.0) is True
    assert process.ask("quiesce", timeout_s=0.5) is False
    process.stop()
    process.stop()
    assert not Path(f"/proc/{process.pid}").exists()


def test_its_last_line_is_shown_when_it_refuses(start) -> None:
    process = start("import sys; print('noise\\nno interface e1-eth1', file=sys.stderr); sys.exit(2)")
    with pytest.raises(UserError, match=r"^no interface e1-eth1$"):
        process.wait_ready()


@pytest.mark.parametrize(
    "program", ["raise KeyError('x')", "print('{}')", "print('[]')", "print('hello')", "import os; os.abort()"]
)
def test_a_broken_process_is_a_bug_not_a_user_error(start, program: str) -> None:
    process = start(program)
    with pytest.raises(RuntimeError, match="the switch process"):
        process.wait_ready()


def test_death_between_questions(start) -> None:
    process = start('print(\'{"event": "ready", "grpc_ports": [1]}\')')
    process.wait_ready()
    with pytest.raises(RuntimeError, match="ended with status 0"):
        process.ask("link_statistics")


@pytest.mark.thorough
def test_silence_is_not_waited_for_forever(start, monkeypatch) -> None:
    monkeypatch.setattr(gradbed_switches, "READY_TIMEOUT_S", 0.05)
    monkeypatch.setattr(gradbed_switches, "STOP_TIMEOUT_S", 0.05)
    process = start("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)")
    with pytest.raises(RuntimeError, match="does not answer"):
        process.wait_ready()
    process.stop()
    assert not Path(f"/proc/{process.pid}").exists()


def test_the_switch_process_knows_every_command() -> None:
    """One that is left out of the table is refused on the real clock alone."""
    public = {name for name in vars(EngineNetwork) if not name.startswith("_")}
    assert public - {"close"} == set(COMMANDS[EngineNetwork])
