"""OpenFlow connections by os-ken: the application that receives messages, and connections to waiting switches.

Our switches wait for their controller (Open vSwitch's "ptcp"), so that they are reached at once, in whatever order
switches and controller start. os-ken's listener, which it opens whenever an application handles OpenFlow events, is
kept to the loopback address.
"""

from __future__ import annotations

import socket
from typing import Any

# os-ken must meet app_manager before its other modules.
from os_ken.base import app_manager  # isort: skip
from os_ken import cfg
from os_ken.controller import ofp_event
from os_ken.controller.controller import Datapath
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3

from gradbed.controller.southbound.openflow.openflow import OpenFlowSouthbound

CONNECT_TIMEOUT_S = 5.0


class OpenFlowConnections(app_manager.OSKenApp):  # type: ignore[misc]
    """Pass connections of switches and their messages to `openflow`."""

    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]  # noqa: RUF012

    def __init__(self, *args: Any, openflow: OpenFlowSouthbound, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._openflow = openflow
        _listen_on_loopback()

    @set_ev_cls(ofp_event.EventOFPStateChange, MAIN_DISPATCHER)  # type: ignore[untyped-decorator]
    def state_changed(self, event: Any) -> None:
        self._openflow.arrived(event.datapath)

    @set_ev_cls(  # type: ignore[untyped-decorator]
        [
            ofp_event.EventOFPErrorMsg,
            ofp_event.EventOFPBarrierReply,
            ofp_event.EventOFPRoleReply,
            ofp_event.EventOFPFlowStatsReply,
            ofp_event.EventOFPGroupDescStatsReply,
            ofp_event.EventOFPPortStatsReply,
            ofp_event.EventOFPTableStatsReply,
        ],
        MAIN_DISPATCHER,
    )
    def answered(self, event: Any) -> None:
        self._openflow.message(event.msg)


class _Connection(Datapath):  # type: ignore[misc]
    """Ends when the switch closes it.

    os-ken's own waits forever for its sending thread then: with native threads nothing wakes that one up.
    """

    def _recv_loop(self) -> None:
        try:
            super()._recv_loop()
        finally:
            self.set_state(DEAD_DISPATCHER)
            self.send(b"", close_socket=True)


def dial(address: str) -> None:
    """Connect to the switch at "HOST:PORT" and serve the connection until it ends.

    Raises:
        OSError: The switch does not answer.
    """
    host, _, port = address.rpartition(":")
    connection = _Connection(socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S), (host, int(port)))
    try:
        connection.serve()
    finally:
        connection.close()


def _listen_on_loopback() -> None:
    """Let os-ken's listener wait at the loopback address, on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    cfg.CONF.set_override("ofp_listen_host", "127.0.0.1")
    cfg.CONF.set_override("ofp_tcp_listen_port", port)
