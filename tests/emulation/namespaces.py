"""Network namespaces of tests. Each belongs to a sleeping process that the kernel ends together with the test: it
leaves nothing behind, however the test ends."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import TypeVar

from gradbed.common.namespaces import in_network_namespace
from gradbed.common.signals import die_with_parent

Result = TypeVar("Result")
_SET_UP = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 && ip link set lo up"


class Namespace:
    """A network namespace, kept by a process of its own. Without IPv6, so that only the tests' frames flow."""

    def __init__(self) -> None:
        self._keeper = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", f"{_SET_UP} && echo up && exec sleep infinity"],
            stdout=subprocess.PIPE,
            preexec_fn=die_with_parent,
        )
        assert self._keeper.stdout is not None
        assert self._keeper.stdout.readline() == b"up\n"
        self.pid = self._keeper.pid

    def run(self, *command: str) -> str:
        """Run a command inside; its standard output."""
        inside = ["nsenter", f"--net=/proc/{self.pid}/ns/net", *command]
        return subprocess.run(inside, check=True, capture_output=True, text=True).stdout

    def call(self, function: Callable[[], Result]) -> Result:
        return in_network_namespace(self.pid, function)

    def close(self) -> None:
        self._keeper.kill()
        self._keeper.communicate()
