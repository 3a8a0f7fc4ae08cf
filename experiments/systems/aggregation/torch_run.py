"""gradbed run torch: a PyTorch script once in each worker's host, its gradients summed in the switches."""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from experiments.aggregation import hosts_of_jobs, make_testbed, slots_of_a_job
from experiments.config import TorchConfig
from experiments.run_folder import RunFolder, environment
from experiments.systems.aggregation.programmable import choose_programmable
from hosts.learning.settings import ExternalSettings
from hosts.torch_hook.script import Script
from hosts.torch_hook.torch_extra import require_torch
from switch.build import compiler
from switch.errors import UserError
from topo.namespaces import require_root
from topo.registry import parse_topology
from topo.sandbox import run_in_sandbox
from topo.size import announce

if TYPE_CHECKING:
    from experiments.agents import Agents
    from hosts.systems.aggregation.description import JobDescription

SCRIPT_SILENCE_S = 3600.0
"""A script's workers may be so far apart between two backward passes."""
QUIESCE_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class ScriptOutcome:
    """What a script's gradients did. rounds: backward passes; server_bytes: gradients into the server's link."""

    workers: int
    values: int
    fragments: int
    seconds: Sequence[float]
    clipped: int
    server_bytes: int

    @property
    def rounds(self) -> int:
        return len(self.seconds)


def run_torch(config: TorchConfig) -> int:
    """Run the script; leave logs and rows in config.output.

    Exit status 0. UserError for what the user can put right, a script that fails among it.
    """
    require_torch("gradbed run torch")
    if not config.script.is_file():
        raise UserError(f"there is no script {config.script}")
    topology = parse_topology(config.topology, config.link_model)
    announce(topology)
    choose_programmable(topology, hosts_of_jobs(config, topology), config.planner_options)
    require_root("gradbed run torch")
    if config.switch == "gradbed":
        compiler()
    folder = RunFolder(config.output, "torch")
    folder.write_json("configuration.json", json.loads(config.model_dump_json()))
    folder.write_json("environment.json", environment())
    return run_in_sandbox(lambda: _in_sandbox(config, folder), "gradbed run torch")


def _in_sandbox(config: TorchConfig, folder: RunFolder) -> int:
    console = Console(stderr=True)
    try:
        outcome = run_script(config, folder)
    except UserError as error:
        print(f"{error.prefix}{error}", file=sys.stderr)
        return 2
    folder.finish()
    if outcome is None:
        console.print("gradbed: the script registered no model, so nothing went through the switches")
    else:
        for line in _summary(outcome, config):
            console.print(f"gradbed: {line}", soft_wrap=True, highlight=False)
    console.print(f"gradbed: logs and data: {folder.path}/", soft_wrap=True, highlight=False)
    return 0


def _summary(outcome: ScriptOutcome, config: TorchConfig) -> list[str]:
    if not outcome.rounds:
        return ["the script made no backward pass"]
    lines = [
        f"{outcome.rounds} gradients of {outcome.values} values summed over {outcome.workers} workers, "
        f"{1e3 * statistics.median(outcome.seconds):.1f} ms in the median"
    ]
    if config.exchange == "server":
        from hosts.protocols.lanes import frame_bytes

        alone = outcome.workers * outcome.fragments * frame_bytes(config.lanes) * outcome.rounds
        lines.append(
            f"{outcome.server_bytes / outcome.rounds:.0f} B of gradients into the server's link for each, "
            f"{outcome.server_bytes / alone:.4f} of what {outcome.workers} workers sent"
        )
    if outcome.clipped:
        lines.append(
            f"{outcome.clipped} values did not fit their tensor's scale, or were no numbers, and were clipped"
        )
    return lines


def run_script(config: TorchConfig, folder: RunFolder) -> ScriptOutcome | None:
    """In a sandbox: bring the network up and run the script to its end; None if it registered no model."""
    from experiments.agents import Agents
    from experiments.counts import Counts
    from experiments.systems.aggregation.agents import script_spec
    from experiments.training_run import Training, describe_job

    topology = parse_topology(config.topology, config.link_model)
    hosts = hosts_of_jobs(config, topology)
    choice = choose_programmable(topology, hosts, config.planner_options)
    ((workers, server),), (request,) = hosts, choice.requests
    request = {**request, **slots_of_a_job(config)} if config.exchange == "server" else {"placement": "none"}
    # The first worker's output is the command's own.
    terminal = (os.dup(1), os.dup(2))
    testbed = make_testbed(config, topology, choice, folder)
    preload = ["hosts.systems.aggregation.agents", "hosts.torch_hook.agent"]
    with Agents(folder.logs, testbed.network, preload=preload, keep_open=terminal) as agents, testbed:
        training = Training(workers, server, ExternalSettings(), (), request, config.exchange)
        network_part = testbed.client.add_job(workers, server, **request)
        job = describe_job(topology, training, network_part, config)
        job = job.model_copy(update={"give_up_us": round(1e6 * SCRIPT_SILENCE_S)})
        before = Counts.read(testbed, training.hosts)
        scripts = [
            Script(
                path=str(config.script.absolute()),
                arguments=config.arguments,
                output=str((folder.logs / f"worker-{worker.index}.log").absolute()) if worker.index else terminal,
            )
            for worker in job.workers
        ]
        agents.launch([script_spec(job, index, script) for index, script in enumerate(scripts)])
        values, rows = _follow(agents, job)
        if not testbed.network.quiesce(QUIESCE_TIMEOUT_S):
            raise UserError(f"packets were still on their way {QUIESCE_TIMEOUT_S:.0f} s after the script's end")
        folder.write_json("agents.json", [[*key, value] for key, value in agents.stop().items()])
        counts = Counts.read(testbed, training.hosts).since(before)
    if not values:
        return None
    folder.write_rows("rounds.csv", rows)
    return ScriptOutcome(
        workers=len(workers),
        values=values,
        fragments=-(-values // config.lanes),
        seconds=[row["round_time_s"] for row in rows],
        clipped=sum(row["clipped"] for row in rows),
        server_bytes=counts.ports[server].gradients_sent.bytes if config.exchange == "server" else 0,
    )


def _follow(agents: Agents, job: JobDescription) -> tuple[int, list[dict[str, Any]]]:
    """Until all scripts have ended: the length of the gradient (0: no model was registered), and a row for each
    round, with the slowest worker's time."""
    registered: dict[str, int] = {}
    rows: dict[int, dict[str, Any]] = {}
    done = 0
    while done < len(job.workers):
        event = agents.event()
        if event["event"] == "registered":
            registered[event["name"]] = event["values"]
            if len(registered) == len(job.workers):
                _begin(agents, job, registered)
        elif event["event"] == "round":
            row = rows.setdefault(event["round"], {"round": event["round"], "round_time_s": 0.0, "clipped": 0})
            row["round_time_s"] = max(row["round_time_s"], event["seconds"])
            row["clipped"] += event["clipped"]
        elif event["event"] == "done" and event["name"] != "server":
            done += 1
        if done and 0 < len(registered) < len(job.workers):
            raise UserError("some ranks have registered a model, others have ended without: every rank must")
    return registered.get("worker 0", 0), [rows[number] for number in sorted(rows)]


def _begin(agents: Agents, job: JobDescription, registered: dict[str, int]) -> None:
    """All ranks know how long their gradients are: start the server, then let them go on."""
    from experiments.systems.aggregation.agents import server_spec

    if len(set(registered.values())) > 1:
        found = ", ".join(f"{name} {values}" for name, values in sorted(registered.items()))
        raise UserError(f"the ranks have registered models with different numbers of values: {found}")
    if job.exchange == "server":
        workload = job.workload.model_copy(update={"values": registered["worker 0"]})
        agents.start([server_spec(job.model_copy(update={"workload": workload}))])
    agents.begin()
