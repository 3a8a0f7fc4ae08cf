"""An OpenFlow 1.3 switch in memory, and os-ken's side of a connection to it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from os_ken.ofproto import ofproto_parser, ofproto_protocol, ofproto_v1_3, ofproto_v1_3_parser

OFP = ofproto_v1_3
PARSER = ofproto_v1_3_parser


class FakeSwitch:
    """What a switch holds, which outlives connections. `refuse`: flows of this priority are answered by an error."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.flows: dict[tuple[int, str], Any] = {}
        self.groups: dict[int, Any] = {}
        self.log: list[str] = []
        self.refuse: int | None = None
        self.master: FakeDatapath | None = None
        self.generation = 0
        self.silent = False

    def connect(self, listener: Any) -> FakeDatapath:
        return FakeDatapath(self, listener)


class FakeDatapath(ofproto_protocol.ProtocolDesc):  # type: ignore[misc]
    """A connection: os-ken's Datapath without a socket. Replies are told to the listener at once."""

    def __init__(self, switch: FakeSwitch, listener: Any) -> None:
        super().__init__(OFP.OFP_VERSION)
        self.id = switch.number
        self.switch = switch
        self.listener = listener
        self.xid = 0
        self.closed = False
        self.is_slave = False

    def set_xid(self, message: Any) -> int:
        self.xid += 1
        message.set_xid(self.xid)
        return self.xid

    def close(self) -> None:
        self.closed = True

    def send_msg(self, message: Any) -> None:
        message.serialize()
        _version, _kind, length, xid = ofproto_parser.header(bytes(message.buf))
        assert length == len(message.buf)
        if self.switch.silent:
            return
        # Messages that switches get have no parser in os-ken; this one's fields are the message's own.
        reply = getattr(self, f"_take_{type(message).__name__}")(message)
        if reply is not None:
            reply.xid = xid
            self.listener(reply)

    def _take_OFPRoleRequest(self, message: Any) -> Any:
        assert message.role == OFP.OFPCR_ROLE_MASTER
        if message.generation_id < self.switch.generation:
            return self._error(OFP.OFPET_ROLE_REQUEST_FAILED, OFP.OFPRRFC_STALE)
        if self.switch.master is not None:
            self.switch.master.is_slave = True
        self.switch.master, self.switch.generation, self.is_slave = self, message.generation_id, False
        return SimpleNamespace(datapath=self, msg_type=OFP.OFPT_ROLE_REPLY, xid=0)

    def _take_OFPFlowMod(self, message: Any) -> Any:
        if self.is_slave:
            return self._error(OFP.OFPET_BAD_REQUEST, OFP.OFPBRC_IS_SLAVE)
        key = message.priority, str(sorted(message.match.items()))
        if message.command == OFP.OFPFC_ADD:
            self.switch.log.append(f"add {message.priority}")
            if message.priority == self.switch.refuse:
                return self._error(OFP.OFPET_FLOW_MOD_FAILED, OFP.OFPFMFC_TABLE_FULL)
            self.switch.flows[key] = message
        else:
            assert message.command == OFP.OFPFC_DELETE_STRICT
            self.switch.log.append(f"delete {message.priority}")
            found = self.switch.flows.get(key)
            if found is not None and found.cookie == message.cookie:
                del self.switch.flows[key]
        return None

    def _error(self, kind: int, code: int) -> Any:
        error = PARSER.OFPErrorMsg(self, kind, code)
        error.msg_type = OFP.OFPT_ERROR
        return error

    def _take_OFPGroupMod(self, message: Any) -> None:
        verb = {OFP.OFPGC_ADD: "add", OFP.OFPGC_MODIFY: "modify", OFP.OFPGC_DELETE: "delete"}[message.command]
        self.switch.log.append(f"{verb} group {message.group_id}")
        if message.command == OFP.OFPGC_DELETE:
            # As Open vSwitch demands.
            assert not message.buckets
            del self.switch.groups[message.group_id]
        else:
            assert (message.group_id in self.switch.groups) == (message.command == OFP.OFPGC_MODIFY)
            self.switch.groups[message.group_id] = message

    def _take_OFPBarrierRequest(self, _message: Any) -> Any:
        self.switch.log.append("barrier")
        return SimpleNamespace(datapath=self, msg_type=OFP.OFPT_BARRIER_REPLY, xid=0)

    def _take_OFPFlowStatsRequest(self, message: Any) -> Any:
        rows = [
            SimpleNamespace(
                table_id=flow.table_id, priority=flow.priority, match=flow.match, instructions=flow.instructions
            )
            for flow in self.switch.flows.values()
            if flow.cookie & message.cookie_mask == message.cookie
        ]
        return self._multipart(rows)

    def _take_OFPGroupDescStatsRequest(self, _message: Any) -> Any:
        return self._multipart(
            [
                SimpleNamespace(type=group.type, group_id=group.group_id, buckets=group.buckets)
                for group in self.switch.groups.values()
            ]
        )

    def _take_OFPPortStatsRequest(self, _message: Any) -> Any:
        ports = [(2, 20), (1, 10), (OFP.OFPP_LOCAL, 99)]
        return self._multipart(
            [
                SimpleNamespace(port_no=port, rx_packets=n, rx_bytes=n * 100, tx_packets=n + 1, tx_bytes=n * 200)
                for port, n in ports
            ]
        )

    def _take_OFPTableStatsRequest(self, _message: Any) -> Any:
        return self._multipart([SimpleNamespace(table_id=table, lookup_count=30 - table) for table in range(3)])

    def _multipart(self, rows: list[Any]) -> Any:
        # In two parts, as switches with many flows answer.
        first = SimpleNamespace(
            datapath=self, msg_type=OFP.OFPT_MULTIPART_REPLY, xid=self.xid, body=rows[:1], flags=OFP.OFPMPF_REPLY_MORE
        )
        self.listener(first)
        return SimpleNamespace(datapath=self, msg_type=OFP.OFPT_MULTIPART_REPLY, xid=0, body=rows[1:], flags=0)
