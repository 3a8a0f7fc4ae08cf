"""A Mininet switch that costs nothing until someone types a command for it."""

from __future__ import annotations

import os
from typing import Any

from mininet.link import Intf
from mininet.node import Node, Switch


class QuietLoopback(Intf):  # type: ignore[misc]
    """The control interface that Mininet expects of a switch; it is up already."""

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}


class QuietSwitch(Switch):  # type: ignore[misc]
    """A switch in the network namespace of the caller, whose shell starts with the first command.

    Mininet starts a shell per switch and runs ifconfig in it, some 20 ms each, although nothing in an
    emulation needs one. `number` is the P4Runtime device id, shown to Mininet as the datapath id.
    """

    def __init__(self, name: str, number: int, **params: Any) -> None:
        # Not Switch.__init__, which runs ifconfig for the loopback interface.
        params["inNamespace"] = False
        Node.__init__(self, name, **params)
        self.number = number
        self.dpid = self.defaultDpid(f"{number:x}")
        self.opts = ""
        self.listenPort = None
        self.controlIntf = QuietLoopback("lo", self, port=0)

    def startShell(self, mnopts: str | None = None) -> None:
        self.pid = os.getpid()

    def _want_shell(self) -> None:
        if self.shell is None:
            super().startShell()

    def cmd(self, *args: Any, **kwargs: Any) -> str | None:
        self._want_shell()
        output: str | None = super().cmd(*args, **kwargs)
        return output

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:
        self._want_shell()
        super().sendCmd(*args, **kwargs)

    def start(self, controllers: list[Any]) -> None:
        """Nothing to do: the switch process is not Mininet's."""

    def stop(self, deleteIntfs: bool = True) -> None:
        """Nothing to do: whoever made the interfaces deletes them, all at once."""
