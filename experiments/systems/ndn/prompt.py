"""The NDN system's part of the prompt of `gradbed up --system ndn`: its jobs, and what routers hold and dropped."""

from __future__ import annotations

from collections import Counter
from statistics import median

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.options import ModelOption, model_options, nested, within
from gradbed.experiments.phases import Phase
from gradbed.experiments.prompt.job_commands import JobCommands
from gradbed.experiments.prompt.prompt import Prompt
from gradbed.experiments.systems.ndn.configuration import NdnConfiguration
from gradbed.experiments.systems.ndn.metrics import DROP_REASONS
from gradbed.experiments.systems.ndn.phase import NdnPhase, job_on

JOB_OPTIONS = (
    *(f"workload.{each}" for each in ("kind", "peers", "rounds", "exchange", "mode", "pace", "window_fragments")),
    *(f"workload.{each}" for each in ("target_loss", "values", "hidden_units", "batch_samples", "learning_rate")),
)
OUTSIDE = ModelOption(
    ("outside",), "--outside", str, "Hosts whose gradients programs of your own publish (docs/ndn.md).", (), True
)
USUAL_PEERS = 4


class NdnPrompt(JobCommands, Prompt):
    """Prompt of the NDN system."""

    job_options = (*within(model_options(NdnConfiguration, {}), JOB_OPTIONS), OUTSIDE)
    complete_contents = complete_drops = Prompt.complete_switches

    def job_phase(self, given: dict[str, str]) -> Phase:
        network = self._configuration
        busy = {host for row in self.runtime.client.jobs(self.system.name) for host in row["consumers"]}
        outside = tuple(self.host(name) for name in given.pop(OUTSIDE.parameter, "").split(",") if name)
        if taken := [name for name in outside if name in busy]:
            raise UserError(f"--outside: {taken[0]} is a host of another job")
        free = [host.name for host in self.topology.hosts if host.name not in {*busy, *outside}]
        defaults = {"workload.kind": "training", "workload.peers": min(USUAL_PEERS, len(free))}
        values = nested(list(self.job_options), given, defaults)
        values["workload"]["lanes"] = network.workload.lanes
        values.update(topology=network.topology, routers=network.routers)
        configuration = NdnConfiguration.model_validate(values)
        workload = configuration.workload
        if workload.peers > len(free):
            raise UserError(f"--peers: {workload.peers} hosts are needed, {len(free)} are free")
        if outside and (workload.mode, workload.exchange) not in (("synchronous", "push"), ("synchronous", "pull")):
            raise UserError("--outside goes with --mode synchronous and --exchange push or pull")
        job = job_on(configuration, self.task.seed, tuple(free[: workload.peers]), outside=outside)
        return NdnPhase(job, self.topology, self.task.with_configuration(configuration))

    def job_result(self, phase: Phase) -> str:
        assert isinstance(phase, NdnPhase)
        if wrong := [*phase.mismatches, *phase.replay_mismatches()]:
            return f"WRONG: {wrong[0]}"
        versions = phase.peers["peer 0"].versions
        if not versions:
            return "no version was completed"
        milliseconds = 1e3 * median(version["seconds"] for version in versions)
        text = f"{len(versions)} versions of {milliseconds:.1f} ms (median)"
        if "sum_sha256" in versions[-1]:
            text += f", all peers have the same sums, the last {versions[-1]['sum_sha256'][:16]}"
        accuracies = [version["accuracy"] for version in versions if "accuracy" in version]
        return text + (f", accuracy {100 * accuracies[-1]:.2f} %" if accuracies else "")

    def do_drops(self, line: str) -> None:
        """Show what routers have dropped, and why.
        Usage: drops [SWITCH ...]
        The reasons are described in p4src/include/ndn/drops.p4."""
        for name in self.switches(line):
            packets = self._packets(name)
            told = [
                f"{reason.replace('_', ' ')} {packets[f'dropped_{reason}']}"
                for reason in DROP_REASONS
                if packets[f"dropped_{reason}"]
            ]
            self.say(f"{name}: {', '.join(told) or 'nothing'}")

    def do_contents(self, line: str) -> None:
        """Show how many Data routers hold, and how many Interests their content stores have answered.
        Usage: contents [SWITCH ...]"""
        for name in self.switches(line):
            packets = self._packets(name)
            held = packets["content_kept"] - packets["content_evicted"]
            self.say(
                f"{name}: {held} Data of {self._configuration.routers.contents}, "
                f"{packets['content_hits']} Interests answered, {packets['content_misses']} not"
            )

    def _packets(self, switch: str) -> Counter[str]:
        """Return the packets of each counter over all its cells, by the counter's own name."""
        found: Counter[str] = Counter()
        for full, cells in self.runtime.counters(switch).items():
            found[full.rsplit(".", 1)[-1]] += sum(cell["packets"] for cell in cells)
        return found

    @property
    def _configuration(self) -> NdnConfiguration:
        assert isinstance(self.task.configuration, NdnConfiguration)
        return self.task.configuration
