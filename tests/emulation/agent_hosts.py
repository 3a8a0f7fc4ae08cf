"""Network namespaces with one agent host each, and the launcher's events, for tests."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from gradbed.common.signals import die_with_parent
from gradbed.experiments.runtimes.agents import AgentSpec
from gradbed.experiments.systems.aggregation.phase import agent_specs
from gradbed.hosts.agents.config import parse_config
from gradbed.hosts.systems.aggregation.config import AggregationJob
from tests.emulation.namespaces import Namespace

ROOT = Path(__file__).resolve().parents[2]


class StarOfHosts:
    """Hosts 0 .. n-1, each in a namespace, all linked by veth to one middle namespace.

    Host i has address 10.7.i.2/24, interface "eth0", gateway 10.7.i.1 on interface "port<i>" of the middle, which
    knows the hosts' MAC addresses: no ARP.
    """

    def __init__(self, hosts: int) -> None:
        self.middle = Namespace()
        self.hosts = [Namespace() for _ in range(hosts)]
        for index, host in enumerate(self.hosts):
            port = f"port{index}"
            ours = f"{port} address {self.gateway_mac(index)} netns {self.middle.pid}"
            theirs = f"eth0 address {self.mac(index)} netns {host.pid}"
            subprocess.run(f"ip link add {ours} type veth peer name {theirs}".split(), check=True)
            self.middle.run("ip", "address", "add", f"10.7.{index}.1/24", "dev", port)
            self.middle.run("ip", "link", "set", port, "up")
            self.middle.run("ip", "neigh", "add", self.ip(index), "lladdr", self.mac(index), "dev", port)
            host.run("ip", "address", "add", f"{self.ip(index)}/24", "dev", "eth0")
            host.run("ip", "link", "set", "eth0", "up")
            host.run("ip", "route", "add", "default", "via", f"10.7.{index}.1")

    def __enter__(self) -> StarOfHosts:
        return self

    def __exit__(self, *exception: object) -> None:
        for namespace in (*self.hosts, self.middle):
            namespace.close()

    @staticmethod
    def ip(index: int) -> str:
        return f"10.7.{index}.2"

    @staticmethod
    def mac(index: int) -> str:
        return f"02:00:0a:07:{index:02x}:02"

    @staticmethod
    def gateway_mac(index: int) -> str:
        return f"02:00:0a:07:{index:02x}:01"

    def agent(self, index: int, name: str) -> dict[str, str]:
        """Host `index` as the job's config names it."""
        return {
            "name": name,
            "ip": self.ip(index),
            "mac": self.mac(index),
            "gateway_mac": self.gateway_mac(index),
        }

    def job(self, workers: int, first_host: int = 0, **fields: Any) -> AggregationJob:
        """A job with the server on the first of its hosts and workers on those after it."""
        server, *others = [self.agent(first_host + index, f"h{first_host + index}") for index in range(workers + 1)]
        return parse_config(
            AggregationJob,
            {
                "job": 3,
                "workers": [{"index": index, **worker} for index, worker in enumerate(others)],
                "server": server,
                **fields,
            },
        )


def start_fields(star: StarOfHosts, spec: AgentSpec) -> dict[str, Any]:
    """What the launcher is told to start an agent."""
    assert isinstance(spec.config, BaseModel)
    return {
        "agent": spec.agent,
        "name": spec.name,
        "job": spec.job,
        "host_pid": star.hosts[int(spec.host[1:])].pid,
        "interfaces": ["eth0"],
        "config": spec.config.model_dump(mode="json"),
        "stop_rank": spec.stop_rank,
    }


class LauncherProcess:
    """`python -m gradbed.hosts.agents.kernel.launcher`, its commands and events."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gradbed.hosts.agents.kernel.launcher", *options],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=die_with_parent,
        )
        self.events: list[dict[str, Any]] = []
        self.signs_of_life = 0
        self._pending = b""

    def __enter__(self) -> LauncherProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.communicate()

    def tell(self, command: str, **fields: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"command": command, **fields}).encode() + b"\n")
        self.process.stdin.flush()

    def start(self, star: StarOfHosts, job: AggregationJob) -> None:
        """All agents of the job; returns when they are ready."""
        first = len(self.events)
        specs = agent_specs(job)
        for spec in specs:
            self.tell("start", **start_fields(star, spec))
        self.wait_for("ready", len(specs), first)

    def wait_for(self, event: str, count: int = 1, first: int = 0, timeout_s: float = 60.0) -> list[dict[str, Any]]:
        """Read events until `count` of this name have come, looking from the one numbered `first` on."""
        assert self.process.stdout is not None
        end_s = time.monotonic() + timeout_s
        while True:
            found = [item for item in self.events[first:] if item["event"] == event]
            if len(found) >= count:
                return found
            if event != "error":
                errors = [item for item in self.events[first:] if item["event"] == "error"]
                assert not errors, errors
            readable, _, _ = select.select([self.process.stdout], [], [], max(0.0, end_s - time.monotonic()))
            assert readable, f"{len(found)} of {count} '{event}' events after {timeout_s} s; last: {self.events[-1:]}"
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, f"the launcher has ended: {self.process.communicate()[1].decode()}"
            *lines, self._pending = (self._pending + data).split(b"\n")
            events = [json.loads(line) for line in lines]
            self.signs_of_life += sum(item["event"] == "alive" for item in events)
            self.events += [item for item in events if item["event"] != "alive"]
