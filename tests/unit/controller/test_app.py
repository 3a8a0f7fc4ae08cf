"""The controller as a process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.config import ControllerConfig
from gradbed.controller.rest.client import ControllerClient
from tests.listening import listening
from tests.unit.controller.fake_p4runtime import FakeP4Runtime
from tests.unit.controller.process import ROOT, SERVICE, TIMEOUT_S, TOPOLOGY, command, running
from tests.waiting import wait_until

DISCONNECTED = json.loads(
    TOPOLOGY.model_copy(update={"links": tuple(x for x in TOPOLOGY.links if x.a.node != "l2")}).to_json()
)
OBSERVER = """
import sys
from os_ken.base import app_manager
from os_ken.controller.handler import set_ev_cls
from gradbed.controller.events import EventJobAdded, EventJobDeleted, EventSwitchConnected, EventSwitchDisconnected

class Observer(app_manager.OSKenApp):
    @set_ev_cls([EventSwitchConnected, EventSwitchDisconnected])
    def switch(self, event):
        print(type(event).__name__, event.status.name, file=sys.stderr, flush=True)

    @set_ev_cls([EventJobAdded, EventJobDeleted])
    def job(self, event):
        print(type(event).__name__, event.job.number, file=sys.stderr, flush=True)
"""


def refused(config: dict[str, Any], directory: Path) -> str:
    """The one line on standard error of a process that ends with status 2."""
    outcome = subprocess.run(
        command(config, directory), cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (outcome.returncode, outcome.stdout) == (2, "")
    lines = outcome.stderr.splitlines()
    assert len(lines) == 1, outcome.stderr
    assert lines[0].startswith("error: ")
    return lines[0]


@pytest.mark.thorough
def test_the_configuration_can_be_named_on_standard_input(config: dict[str, Any], tmp_path: Path) -> None:
    del config["switches"]
    *module, path = command(config, tmp_path)
    outcomes = [
        subprocess.run(
            [*module, "-"], cwd=ROOT, input=line, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        for line in (json.dumps({"command": "configure", "file": path}) + "\n", "")
    ]
    assert [(outcome.returncode, outcome.stdout) for outcome in outcomes] == [(2, ""), (2, "")]
    assert outcomes[0].stderr.startswith(f"error: {path}: switches: is missing")
    assert outcomes[1].stderr == "error: no configuration: standard input said ''\n"


def test_it_programs_the_switches_serves_jobs_and_opens_no_port(
    switches: FakeP4Runtime, config: dict[str, Any], tmp_path: Path
) -> None:
    with running(config, tmp_path) as process:
        assert all(device.entries for device in switches.devices.values())
        client = ControllerClient(config["rest_address"], timeout_s=TIMEOUT_S)
        assert all(switch["connected"] for switch in client.switches())
        job = client.add_job("aggregation", {"workers": ["h2", "h3"], "server": "h1"})
        leaf = TOPOLOGY.switch("l1").number
        assert job["designated_switches"] == [leaf]
        assert list(switches.devices[leaf].groups) == [16 * job["job"]]
        client.delete_job("aggregation", job["job"])
        assert not switches.devices[leaf].groups
        assert not listening(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == -signal.SIGTERM
    assert (tmp_path / "stderr").read_text() == ""


@pytest.mark.thorough
def test_a_successor_of_a_killed_controller_goes_on_without_touching_the_switches(
    switches: FakeP4Runtime, config: dict[str, Any], tmp_path: Path
) -> None:
    config = {**config, "journal": str(tmp_path / "journal")}
    own_slots = {"slot_policy": "static", "slots": 100}
    client = ControllerClient(config["rest_address"], timeout_s=TIMEOUT_S)
    with running(config, tmp_path) as process:
        client.add_job("aggregation", {"workers": ["h2", "h3"], "server": "h1", **own_slots})
        gone = client.add_job("aggregation", {"workers": ["h4"], "server": "h2", **own_slots})
        client.delete_job("aggregation", gone["job"])
        jobs, plan = client.jobs(), client.plan_text()
        process.kill()
        process.wait()
    before = {number: (device.pushes, dict(device.updates)) for number, device in switches.devices.items()}
    with running(config, tmp_path):
        assert (client.jobs(), client.plan_text()) == (jobs, plan)
        assert before == {n: (device.pushes, dict(device.updates)) for n, device in switches.devices.items()}
        assert client.add_job("aggregation", {"workers": ["h4"], "server": "h2", **own_slots})["job"] == 3
        assert client.jobs()[1]["slot_ranges"]["l1"] == {"first_slot": 100, "slots": 100}


def test_it_can_be_stopped_while_a_switch_is_away(
    switches: FakeP4Runtime, config: dict[str, Any], tmp_path: Path
) -> None:
    with running(config, tmp_path) as process:
        switches.stop()
        client = ControllerClient(config["rest_address"], timeout_s=TIMEOUT_S)
        wait_until(lambda: not any(switch["connected"] for switch in client.switches()))
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == -signal.SIGINT
    switches.start()


def test_rest_on_an_inherited_socket_too(switches: FakeP4Runtime, config: dict[str, Any], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings = {**config, "rest_fd": listener.fileno()}
        with running(settings, tmp_path, pass_fds=[listener.fileno()]) as process:
            for address in (f"127.0.0.1:{port}", config["rest_address"]):
                assert ControllerClient(address, timeout_s=TIMEOUT_S).topology() == TOPOLOGY
            assert {each.port for each in listening(process.pid)} == {port}


def test_other_applications_see_its_events(switches: FakeP4Runtime, config: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "observer.py").write_text(OBSERVER)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    with running({**config, "apps": ["observer"]}, tmp_path, env=environment) as process:
        client = ControllerClient(config["rest_address"], timeout_s=TIMEOUT_S)
        job = client.add_job("aggregation", {"workers": ["h2"], "server": "h1"})
        client.delete_job("aggregation", job["job"])
        switches.stop()
        wait_until(lambda: (tmp_path / "stderr").read_text().count("EventSwitchDisconnected") == 3)
        assert not listening(process.pid)
    switches.start()
    seen = (tmp_path / "stderr").read_text().splitlines()
    assert sorted(seen[:3]) == [f"EventSwitchConnected {name}" for name in ("l1", "l2", "s1")]
    assert seen[3:5] == ["EventJobAdded 1", "EventJobDeleted 1"]
    assert sorted(seen[5:]) == [f"EventSwitchDisconnected {name}" for name in ("l1", "l2", "s1")]


def test_it_dies_with_its_parent(switches: FakeP4Runtime, config: dict[str, Any], tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys; p = subprocess.Popen(sys.argv[1:]); print(p.pid, flush=True); p.wait()",
            *command(config, tmp_path),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert json.loads(parent.stdout.readline()) == {"event": "ready"}
    parent.kill()
    # The pipe ends when the last process that holds it is gone.
    assert parent.communicate(timeout=TIMEOUT_S)[0] == ""
    wait_until(lambda: not Path(f"/proc/{child}/exe").exists())


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"targets": {"s1": "unix:/x", "l1": "unix:/x"}}, "targets lack the switch l2"),
        ({"targets": {"q": "unix:/x"}}, "targets name q, which is no switch of the topology"),
        ({"topology": {"name": "n"}}, "topology.hosts: is missing"),
        ({"speed": 3}, "speed: is not known here"),
        ({"switches": {"h1": "openflow"}}, "switches name h1, which is no switch of the topology"),
        ({"switches": {"s1": "openflow", "l1": "openflow"}}, "switches lack the switch l2"),
        (
            {"switches": {"s1": "hub", "l1": "aggregation", "l2": "openflow"}},
            "s1 is to run hub, which is not among the programs: aggregation",
        ),
        ({"services": [{"name": "a"}]}, "services.0.service: is missing"),
        ({"services": [{"name": "A b", "service": "a:B"}]}, "services.0.name: 'A b': a name is"),
        ({"services": [{"name": "a", "service": "a:B"}] * 2}, "two services have the name a"),
        ({"first_job": 70000}, "first_job: must be at most 2047"),
    ],
)
def test_a_wrong_configuration_is_one_line(
    config: dict[str, Any], tmp_path: Path, change: dict[str, Any], line: str
) -> None:
    path = tmp_path / "controller.json"
    path.write_text(json.dumps({**config, **change}))
    with pytest.raises(UserError) as caught:
        ControllerConfig.load(path)
    assert str(caught.value).startswith(f"{path}: {line}")


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"rest_address": "nowhere"}, "'nowhere' is neither HOST:PORT nor the path of a unix socket"),
        (
            {"programs": {"aggregation": {"json": "/missing.json", "p4info": "/missing"}}},
            "cannot read /missing: No such file",
        ),
        (
            {"services": [{"name": "a", "service": SERVICE, "settings": {"slots": 0}}]},
            "settings of a: slots: must be at least 1",
        ),
        ({"services": [{"name": "a", "service": "nothing:B"}]}, "cannot load the service nothing:B of a: No module"),
        ({"ready_timeout_s": 0.2}, "switch s1 (and 2 other switches) is not ready: no answer from unix:"),
        ({"topology": DISCONNECTED}, "the network is not connected: no path from l2 to l1"),
        ({"apps": ["no_such_app"]}, "cannot load the applications no_such_app: No module named"),
    ],
)
def test_what_prevents_a_start_is_one_line(
    config: dict[str, Any], tmp_path: Path, change: dict[str, Any], line: str
) -> None:
    assert line in refused({**config, **change}, tmp_path)


@pytest.mark.thorough
def test_no_configuration_at_all(tmp_path: Path) -> None:
    for arguments, line in (
        ([], "usage: python -m gradbed.controller.app CONFIG.json"),
        ([str(tmp_path / "none.json")], f"error: cannot read the configuration {tmp_path}/none.json: No such file"),
    ):
        outcome = subprocess.run(
            [sys.executable, "-m", "gradbed.controller.app", *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert outcome.returncode == 2
        assert outcome.stderr.startswith(line)
        assert len(outcome.stderr.splitlines()) == 1
