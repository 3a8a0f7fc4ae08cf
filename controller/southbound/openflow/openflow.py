"""The legacy switches of a network over OpenFlow 1.3, each with a session that keeps it at its plan.

Every batch of changes ends with a barrier, so a plan is in place when `apply` returns. A switch that comes back, or
meets a new controller, is asked for its flows and groups and given the difference: what is right stays in force.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from gradbed.common.errors import UserError, unforeseen
from gradbed.controller.planning.diff import SwitchDiff, switch_diff
from gradbed.controller.planning.plan import Plan, SwitchPlan
from gradbed.controller.planning.text import flow_text
from gradbed.controller.southbound.interface import (
    CounterCell,
    SessionsSouthbound,
    SouthboundError,
    SouthboundTimeout,
    SwitchSession,
    SwitchStatus,
    Target,
)
from gradbed.controller.southbound.openflow.openflow_codec import (
    decode_group,
    flow_delete,
    flow_mod,
    flows_request,
    group_mod,
    held_flows,
    reported_flow_delete,
)

_logger = logging.getLogger(__name__)

# ---- One switch ----


REPLY_TIMEOUT_S = 30.0
LABEL = "forward (OpenFlow 1.3)"


class FlowsRefused(SouthboundError):
    """Raised when a switch answers a request with an error."""


@dataclass
class _Exchange:
    """Messages that were sent and their replies. subjects: the subject of each message by its transaction id."""

    subjects: dict[int, str]
    last: int
    parts: list[Any] = field(default_factory=list)
    error: str = ""
    over: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class _Message:
    message: Any
    subject: str


class OpenFlowSession(SwitchSession):
    """Keep one switch at its plan over OpenFlow 1.3.

    Methods wait for answers, and so may be called from any thread but the one that calls `message` and `left`.

    Args:
        generation: The generation_id with which this controller becomes the switch's master (OpenFlow 1.3.5,
            section 6.3.5). From then on the switch ignores the previous master, and no controller with a lower
            generation can become master.
    """

    def __init__(self, name: str, address: str, on_change: Callable[[SwitchStatus], None], generation: int) -> None:
        super().__init__(name, address, on_change, SwitchPlan(kind="openflow", program=""))
        self._generation = generation
        self._lock = threading.Lock()
        self._datapath: Any = None
        self._exchange: _Exchange | None = None
        # None when it has to be read first.
        self._held: SwitchPlan | None = None

    def want(self, plan: SwitchPlan) -> None:
        """Keep the switch to `plan` from its next connection on."""
        self._wanted = plan

    # From os-ken's threads

    def left(self, reason: str) -> None:
        """Handle that the connection has failed or ended."""
        # Disconnected because it refused, which stays the reason.
        let_go = self.refused and self._datapath is not None
        self._datapath = None
        exchange = self._exchange
        if exchange is not None:
            exchange.error = exchange.error or reason
            exchange.over.set()
        if not let_go:
            self.refused = False
            self._set_status(SwitchStatus(self.name, False, error=reason))

    def message(self, message: Any) -> None:
        """Handle a reply or an error of the switch."""
        exchange = self._exchange
        if exchange is None or message.xid not in exchange.subjects:
            return
        ofproto = message.datapath.ofproto
        if message.msg_type == ofproto.OFPT_ERROR:
            kind = ofproto.ofp_error_type_to_str(message.type)
            code = ofproto.ofp_error_code_to_str(message.type, message.code)
            # The first error counts: later ones may be its consequences.
            exchange.error = exchange.error or f"{exchange.subjects[message.xid]}: {kind}, {code}"
            if message.xid == exchange.last:
                exchange.over.set()
        elif message.msg_type == ofproto.OFPT_MULTIPART_REPLY:
            exchange.parts += message.body
            if not message.flags & ofproto.OFPMPF_REPLY_MORE:
                exchange.over.set()
        elif message.xid == exchange.last:
            exchange.over.set()

    # From the threads of the southbound

    def arrived(self, datapath: Any) -> None:
        """Handle a connection: bring the switch to its plan. One that refuses is closed, to be tried again."""
        with self._lock:
            self._datapath = datapath
            self._held = None
            try:
                self._become_master()
                self._bring_to_plan()
            except (SouthboundError, UserError) as error:
                self.refused = not isinstance(error, SouthboundError) or isinstance(error, FlowsRefused)
                self._set_status(SwitchStatus(self.name, False, error=str(error).removeprefix(f"{self.name}: ")))
                datapath.close()

    def apply(self, plan: SwitchPlan) -> None:
        """Bring the connected switch to another plan.

        After an error call `restore`, since part of the plan may have been written.
        """
        with self._lock:
            self._require_connected()
            self._wanted = plan
            self._bring_to_plan()

    def restore(self, plan: SwitchPlan) -> None:
        """Make `plan` the one that the switch is kept to: now if it is there, else as soon as it is."""
        with self._lock:
            self._wanted = plan
            if self.status.connected:
                # What fails now is mended by the next plan or the next connection.
                with contextlib.suppress(SouthboundError):
                    self._bring_to_plan()

    def differences(self) -> list[str]:
        """Return what the switch holds otherwise than its plan, a line for each change."""
        with self._lock:
            self._require_connected()
            held, strange = self._read()
            return [
                *str(switch_diff(held, self._wanted)).splitlines(),
                *(f"- flow of no kind of ours, priority {report.priority}" for report in strange),
            ]

    def counters(self) -> dict[str, list[CounterCell]]:
        """Return port_in and port_out, packets that each port received and sent, and looked_up.

        Cell 0 of looked_up has the packets that were looked up in the flow table; the switch was too slow for the
        others that its ports received. Open vSwitch updates that number about once a second.
        """
        with self._lock:
            self._require_connected()
            datapath = self._connected()
            ofproto = datapath.ofproto
            tables = self._ask(datapath.ofproto_parser.OFPTableStatsRequest(datapath, 0), "table counters")
            rows = self._ask(
                datapath.ofproto_parser.OFPPortStatsRequest(datapath, 0, ofproto.OFPP_ANY), "port counters"
            )
        ports = sorted((row for row in rows if row.port_no <= ofproto.OFPP_MAX), key=lambda row: int(row.port_no))
        return {
            "port_in": [CounterCell(row.port_no, row.rx_packets, row.rx_bytes) for row in ports],
            "port_out": [CounterCell(row.port_no, row.tx_packets, row.tx_bytes) for row in ports],
            "looked_up": [CounterCell(0, table.lookup_count, 0) for table in tables if table.table_id == 0],
        }

    def _connected(self) -> Any:
        datapath = self._datapath
        if datapath is None:
            raise SouthboundError(f"{self.name}: the connection was lost")
        return datapath

    def _become_master(self) -> None:
        datapath = self._connected()
        role = datapath.ofproto.OFPCR_ROLE_MASTER
        request = datapath.ofproto_parser.OFPRoleRequest(datapath, role, self._generation)
        self._send([_Message(request, "another controller is in charge")])

    def _bring_to_plan(self) -> None:
        wanted = self._wanted
        held = self._held if self._held is not None else self._read_back()
        # Should a write fail half-way, only the switch knows how far it came.
        self._held = None
        self._write_difference(switch_diff(held, wanted))
        self._held = wanted
        self.refused = False
        self._set_status(SwitchStatus(self.name, True, LABEL))

    def _read_back(self) -> SwitchPlan:
        """Return what the switch holds of ours; flows that are of no kind of ours are deleted."""
        held, strange = self._read()
        datapath = self._connected()
        self._write([_Message(reported_flow_delete(datapath, report), "strange flow") for report in strange])
        return held

    def _read(self) -> tuple[SwitchPlan, list[Any]]:
        """Return what the switch holds of ours, and its flows of no kind of ours, as it reports them."""
        datapath = self._connected()
        flows, strange = held_flows(self._ask(flows_request(datapath), "flows"))
        described = self._ask(datapath.ofproto_parser.OFPGroupDescStatsRequest(datapath, 0), "groups")
        groups = [decode_group(group, datapath.ofproto.OFPGT_ALL) for group in described]
        return SwitchPlan.of(self._wanted.program, groups=groups, flows=flows, kind="openflow"), strange

    def _write_difference(self, diff: SwitchDiff) -> None:
        datapath = self._connected()
        ofproto = datapath.ofproto

        def groups(command: int, items: Sequence[Any]) -> list[_Message]:
            return [_Message(group_mod(datapath, command, group), f"group {group.id}") for group in items]

        # Between barriers a switch may take changes in any order: what must be there first goes in an earlier batch.
        self._write(
            [*groups(ofproto.OFPGC_ADD, diff.groups.insert), *groups(ofproto.OFPGC_MODIFY, diff.groups.modify)]
        )
        self._write(
            [
                *(
                    _Message(flow_mod(datapath, flow), flow_text(flow))
                    for flow in (*diff.flows.insert, *diff.flows.modify)
                ),
                *(_Message(flow_delete(datapath, flow), flow_text(flow)) for flow in diff.flows.delete),
            ]
        )
        self._write(groups(ofproto.OFPGC_DELETE, diff.groups.delete))

    def _write(self, messages: Sequence[_Message]) -> None:
        """Send them and wait for a barrier; SwitchRefuses, with the flow or group, for the first error."""
        if messages:
            barrier = self._connected().ofproto_parser.OFPBarrierRequest(self._datapath)
            self._send([*messages, _Message(barrier, "barrier")])

    def _ask(self, request: Any, what: str) -> list[Any]:
        """Return all parts of a multipart reply."""
        return self._send([_Message(request, what)]).parts

    def _send(self, messages: Sequence[_Message]) -> _Exchange:
        datapath = self._connected()
        numbers = [datapath.set_xid(each.message) for each in messages]
        exchange = _Exchange(dict(zip(numbers, (each.subject for each in messages), strict=True)), last=numbers[-1])
        self._exchange = exchange
        try:
            for each in messages:
                # False: os-ken has given the connection up already.
                if datapath.send_msg(each.message) is False:
                    raise SouthboundError(f"{self.name}: the connection was lost")
            answered = exchange.over.wait(REPLY_TIMEOUT_S)
        finally:
            self._exchange = None
        if self._datapath is not datapath:
            raise SouthboundError(f"{self.name}: the connection was lost ({exchange.error})")
        if exchange.error:
            raise FlowsRefused(f"{self.name}: {exchange.error}")
        if not answered:
            raise SouthboundTimeout(f"{self.name}: no answer within {REPLY_TIMEOUT_S:g} s ({messages[0].subject})")
        return exchange


# ---- All switches ----


RETRY_S = 0.2
MAX_THREADS = 16

Dial = Callable[[str], None]
"""Connect to "HOST:PORT" and serve that connection; return when it has ended. OSError if there is nobody."""


class OpenFlowSouthbound(SessionsSouthbound[OpenFlowSession]):
    """Implements gradbed.controller.southbound.interface.Southbound.

    Args:
        targets: The address at which each switch waits for its controller; its device id is its datapath id.
        dial: Makes a connection (openflow_app.py), whose events call `arrived`, `left` and `message`.
        generation: Higher than that of every previous controller (see `OpenFlowSession`).
    """

    def __init__(self, targets: Mapping[str, Target], dial: Dial, generation: int | None = None) -> None:
        super().__init__(targets)
        self._dial = dial
        self._stopped = threading.Event()
        generation = time.time_ns() if generation is None else generation
        self._sessions = {
            name: OpenFlowSession(name, target.address, self._status_changed, generation)
            for name, target in targets.items()
        }
        self._by_datapath_id = {target.device_id: self._sessions[name] for name, target in targets.items()}
        self._one_plan_at_a_time = threading.Lock()
        self._workers = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="openflow")

    # Southbound

    def start(self, plan: Plan) -> None:
        self._check_switches(plan)
        for name, session in self._sessions.items():
            session.want(plan[name])
            threading.Thread(target=self._keep_connected, args=(name,), name=f"openflow-{name}", daemon=True).start()

    def apply(self, plan: Plan) -> None:
        with self._one_plan_at_a_time:
            before = {name: session.plan for name, session in self._sessions.items()}
            applied = {
                name: self._workers.submit(session.apply, plan[name]) for name, session in self._sessions.items()
            }
            failures = [failure for failure in map(Future.exception, applied.values()) if failure is not None]
            if failures:
                self._restore_all(before)
                raise failures[0]

    def restore(self, plan: Plan) -> None:
        """Keep the switches to `plan` from now on; those that are away get it when they come back."""
        with self._one_plan_at_a_time:
            self._restore_all({name: plan[name] for name in self._sessions})

    def counters(self, switch: str) -> dict[str, list[CounterCell]]:
        """Return port_in, port_out and looked_up, of all packets (see `OpenFlowSession.counters`)."""
        return self._sessions[switch].counters()

    def differences(self, switch: str) -> list[str]:
        return self._sessions[switch].differences()

    def registers(self, switch: str, name: str) -> list[int]:
        raise UserError(f"{switch} is an OpenFlow switch and has no registers")

    def hand_over(self) -> None:
        self.stop()

    def stop(self) -> None:
        """Disconnect from all switches, which keep their flows."""
        self._stopped.set()
        self._workers.shutdown(wait=False, cancel_futures=True)

    # For the os-ken application

    def arrived(self, datapath: Any) -> None:
        """Handle that a switch has connected and sent its datapath id."""
        session = self._by_datapath_id.get(datapath.id)
        if session is None:
            datapath.close()
        elif not self._stopped.is_set():
            self._workers.submit(self._meet, session, datapath)

    def message(self, message: Any) -> None:
        """Handle a switch's answer."""
        session = self._by_datapath_id.get(message.datapath.id)
        if session is not None:
            session.message(message)

    def _meet(self, session: OpenFlowSession, datapath: Any) -> None:
        try:
            session.arrived(datapath)
        except Exception:
            # Nobody asks what came of it.
            _logger.exception("%s: the switch could not be brought to its plan", session.name)
            datapath.close()

    def _restore_all(self, plans: Mapping[str, Any]) -> None:
        restored = [self._workers.submit(self._sessions[name].restore, plan) for name, plan in plans.items()]
        for each in restored:
            each.result()

    def _keep_connected(self, name: str) -> None:
        session, address = self._sessions[name], self._targets[name].address
        while not self._stopped.is_set():
            try:
                self._dial(address)
                reason = "the switch closed the connection"
            except OSError as error:
                reason = f"no answer from {address} ({error.strerror or error})"
            except Exception as error:
                # os-ken could not make sense of what the switch said.
                _logger.exception("%s: the connection failed", name)
                reason = unforeseen(error)
            if not self._stopped.is_set():
                session.left(reason)
            self._stopped.wait(RETRY_S)
