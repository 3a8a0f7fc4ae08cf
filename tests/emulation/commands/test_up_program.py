"""gradbed up with a program of one's own: reloaded when it changes, or left to a controller of one's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.commands.new import new
from tests.conftest import GradbedHere
from tests.emulation.prompt import Prompt

pytestmark = pytest.mark.root

PROGRAM = ("--program", "mine.p4", "--topology", "star:2")

CONTROLLER = """\
import json, os, sys, time
from finsy.proto import p4r, p4r_grpc
import grpc
targets = json.loads(os.environ["GRADBED_TARGETS"])
assert json.load(open(os.environ["GRADBED_TOPOLOGY"]))["switches"][0]["name"] == "s1"
target = targets["s1"]
assert "tables" in open(target["p4info"]).read()
stub = p4r_grpc.P4RuntimeStub(grpc.insecure_channel(target["address"]))
def requests():
    bid = p4r.MasterArbitrationUpdate(device_id=target["device_id"], election_id=p4r.Uint128(low=1))
    yield p4r.StreamMessageRequest(arbitration=bid)
    time.sleep(60)
for answer in stub.StreamChannel(requests()):
    print("the outside controller is told", answer.arbitration.status.code, flush=True)
    break
time.sleep(60)
"""


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[Path]:
    """A folder with a program and entries."""
    assert new(tmp_path / "mine") == 0
    yield tmp_path / "mine"


def test_a_program_is_reloaded_while_the_network_goes_on(mine: Path) -> None:
    program, entries = mine / "mine.p4", mine / "entries.yaml"
    source, routes = program.read_text(), entries.read_text()
    prompt = Prompt(*PROGRAM, "--watch", folder=mine)
    try:
        prompt.wait_for("REST interface")
        prompt.say("pingall")
        assert "h1 -> h2" in prompt.wait_for("(2/2 received)")
        program.write_text(source + "\nnonsense")
        assert f"{program.name}:" in prompt.wait_for("error")
        prompt.say("pingall")
        prompt.wait_for("(2/2 received)")
        # Another name of the table: the entries of the old one are left out.
        program.write_text(source.replace("routes", "ways"))
        left_out = prompt.wait_for("gradbed: reloaded")
        assert "entries.yaml:3:3: the P4 program has no table 'routes'" in left_out
        prompt.say("pingall 1")  # second of patience; ping's own is ten
        prompt.wait_for("(0/2 received)")
        entries.write_text(routes.replace("  routes:", "  ways:"))
        prompt.wait_for("gradbed: reloaded")
        prompt.say("pingall")
        prompt.wait_for("(2/2 received)")
    finally:
        assert prompt.close() == 0


def test_a_controller_of_ones_own_takes_over(mine: Path) -> None:
    (mine / "mine_controller.py").write_text(CONTROLLER)
    prompt = Prompt(
        *PROGRAM,
        "--controller",
        f"{sys.executable} mine_controller.py",
        folder=mine,
    )
    try:
        assert "device id 1" in prompt.wait_for("GRADBED_TOPOLOGY")
        prompt.wait_for("the outside controller is told 0")
        prompt.say("pingall")
        prompt.wait_for("(2/2 received)")
        prompt.say("counters s1")
        prompt.wait_for("s1 is not connected: handed over to another controller")
        prompt.say("sh echo $GRADBED_TARGETS")
        prompt.wait_for("mininet> ")
        told = json.loads(prompt.wait_for("}}").split("mininet>")[-1].strip() + "}}")
        assert told["s1"]["device_id"] == 1
    finally:
        assert prompt.close() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--entries", "entries.yaml"], "gradbed: which program? name a P4 file"),
        (["--program", "nothing.p4"], "gradbed: cannot read nothing.p4: there is no such file"),
        (["--program", "mine.p4", "--slots", "4"], "gradbed: --slots does not go with a program of your own"),
        (
            ["--program", "mine.p4", "--watch", "--controller", "none"],
            "gradbed: --watch does not go with --controller: who fills the tables reloads them",
        ),
        (
            ["--program", "mine.p4", "--entries", "mine.p4"],
            "gradbed: mine.p4: entries are .yaml, .yml, .json, .py, .txt",
        ),
    ],
)
def test_what_does_not_go_together_is_one_line(
    mine: Path, gradbed_here: GradbedHere, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(mine)
    ended = gradbed_here("up", "--rest-port", "0", "--topology", "star:2", *arguments)
    assert ended.status == 2 and ended.err.strip().splitlines()[-1] == message
