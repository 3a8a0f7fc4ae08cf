"""The legacy switches of a network over OpenFlow 1.3."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from gradbed.common.errors import UserError, unforeseen
from gradbed.controller.planning.plan import Plan
from gradbed.controller.southbound.interface import CounterCell
from gradbed.controller.southbound.openflow.openflow_session import OpenFlowSession
from gradbed.controller.southbound.sessions import SessionsSouthbound
from gradbed.controller.southbound.target import Target

_logger = logging.getLogger(__name__)

RETRY_S = 0.2
MAX_THREADS = 16

Dial = Callable[[str], None]
"""Connect to "HOST:PORT" and serve that connection; return when it has ended. OSError if there is nobody."""


class OpenFlowSouthbound(SessionsSouthbound[OpenFlowSession]):
    """Implements gradbed.controller.southbound.interface.Southbound.

    targets: where each switch waits for its controller; its device id is the datapath id that it must tell. dial:
    how a connection is made (openflow_app.py), which then reports to `arrived`, `left` and `message`. generation:
    higher than that of every controller before (see OpenFlowSession).
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
        """port_in and port_out, of packets of whatever kind, and looked_up (see OpenFlowSession.counters)."""
        return self._sessions[switch].counters()

    def differences(self, switch: str) -> list[str]:
        return self._sessions[switch].differences()

    def registers(self, switch: str, name: str) -> list[int]:
        raise UserError(f"{switch} is an OpenFlow switch and has no registers")

    def hand_over(self) -> None:
        self.stop()

    def stop(self) -> None:
        """Let go of all switches; they keep what they hold."""
        self._stopped.set()
        self._workers.shutdown(wait=False, cancel_futures=True)

    # For the os-ken application

    def arrived(self, datapath: Any) -> None:
        """A switch has connected and told its datapath id."""
        session = self._by_datapath_id.get(datapath.id)
        if session is None:
            datapath.close()
        elif not self._stopped.is_set():
            self._workers.submit(self._meet, session, datapath)

    def message(self, message: Any) -> None:
        """A switch has answered."""
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
