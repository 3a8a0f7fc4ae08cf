"""Mininet's hosts, interfaces and links, without the processes that Mininet starts to configure each of them.

The interfaces themselves are made by gradbed.emulation.links.veth, all at once; these objects record what is there,
so that Mininet's own functions and its command line work on it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from mininet.link import Intf, Link
from mininet.node import Host


class EmulatedHost(Host):  # type: ignore[misc]
    """A shell in a network namespace of its own. Its `python3` is the one that runs this, which has Scapy."""

    def _popen(self, cmd: Any, **params: Any) -> Any:
        path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
        params.setdefault("env", {**os.environ, "PATH": path})
        return super()._popen(cmd, **params)

    def startShell(self, mnopts: str | None = None) -> None:
        try:
            super().startShell(mnopts)
        except BaseException:
            # Ctrl-C during the start: nobody holds this half-made node, so nobody else would end its shell.
            if self.shell is not None:
                os.kill(self.shell.pid, signal.SIGKILL)
                self.shell.wait()
            raise


class RecordedIntf(Intf):  # type: ignore[misc]
    """An interface of the kernel that needs no configuration any more."""

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}


class MemoryIntf(RecordedIntf):
    """The end of a link inside the fabric process: no interface of the kernel."""

    def ifconfig(self, *args: str) -> str:
        if args:
            return f"{self.name} is in the memory of the fabric process and cannot be configured\n"
        return f"{self.name}: UP, in the memory of the fabric process\n"

    def updateIP(self) -> None:
        return None

    def status(self) -> str:
        return "OK"

    def delete(self) -> None:
        self.node.delIntf(self)
        self.link = None


class RecordedLink(Link):  # type: ignore[misc]
    """A link that exists, or will once all links are made."""

    @classmethod
    def makeIntfPair(cls, *_args: Any, **_kwargs: Any) -> None:
        """Nothing to do: gradbed.emulation.links.veth makes the interfaces, all at once."""

    def stop(self) -> None:
        """Nothing to do: gradbed.emulation.links.veth deletes the interfaces, all at once."""
