"""The controller: a Ryu (os-ken) application that owns topology, plan and southbound.

    python -m gradbed.controller.app CONFIG.json

runs it as a process (configuration: controller/config.py). With "-" for the file it loads its modules, and then waits
for {"command": "configure", "file": "CONFIG.json"} on standard input: that can be while the network is still being
made. It writes {"event": "ready"} on standard output once
every switch holds pipeline and routes. If another controller with the same journal is in charge, it writes
{"event": "standby"} first and waits until that one ends or stands still (controller/core/term.py). SIGTERM and SIGINT
end it at once, and so does the end of its parent; the switches keep what they hold. A wrong configuration, switches
that refuse or stay away, or another controller that has taken charge meanwhile, are one line on standard error and
exit status 2.

Legacy switches are reached by OpenFlow 1.3, where there are any: os-ken's part for that is loaded only then.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

# os-ken must meet app_manager before its other modules.
from os_ken.base import app_manager  # isort: skip
from os_ken.lib import hub

from gradbed.common.errors import UserError
from gradbed.common.json_lines import told_file
from gradbed.common.signals import die_with_parent
from gradbed.controller.config import ControllerConfig
from gradbed.controller.core.controller import Controller
from gradbed.controller.core.jobs import Job, Journal
from gradbed.controller.core.service import LoadedService, load_services
from gradbed.controller.core.term import Superseded, Term, take_charge
from gradbed.controller.events import EventJobAdded, EventJobDeleted, EventSwitchConnected, EventSwitchDisconnected
from gradbed.controller.rest.interface import create_app
from gradbed.controller.rest.server import RestServer, inherited_socket, listening_socket
from gradbed.controller.southbound.interface import Message, QueuedListener, SwitchStatus
from gradbed.controller.southbound.openflow.openflow import OpenFlowSouthbound
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.controller.switches import (
    has_openflow,
    load_pipelines,
    openflow_southbound,
    southbound,
    unrouted_programs,
)

EXIT_USER_ERROR = 2
REST_RETRY_S = 0.1
YOUNG_OBJECTS = 50_000
"""Made since the last search for cycles, before the next one. Entries and counters are many and have no cycles: with
Python's 700 a fifth of the time of reading counters was spent on searches."""

OPENFLOW_APP = "gradbed.controller.southbound.openflow.openflow_app"
"""The application through which os-ken speaks OpenFlow; not loaded where no switch does."""


_logger = logging.getLogger(__name__)


class GradbedController(app_manager.OSKenApp):  # type: ignore[misc]
    """Programs the switches of config.topology and serves the REST interface.

    Other os-ken applications in the process see its events (controller/events.py) by the set_ev_cls decorator.
    """

    _EVENTS = [EventSwitchConnected, EventSwitchDisconnected, EventJobAdded, EventJobDeleted]  # noqa: RUF012

    def __init__(
        self,
        *args: Any,
        config: ControllerConfig,
        pipelines: Mapping[str, Pipeline],
        services: Sequence[LoadedService],
        term: Term | None = None,
        openflow: OpenFlowSouthbound | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.config = config
        journal = None if term is None else Journal(term.journal)
        takes_over = config.keep_pipelines or (journal is not None and journal.path.exists())
        self.controller = Controller(
            config.topology,
            southbound(config, pipelines, takes_over, openflow, term),
            services,
            config.switches,
            unrouted_programs=unrouted_programs(pipelines),
            first_job=config.first_job,
            journal=journal,
            on_job_added=self._job_added,
            on_job_deleted=self._job_deleted,
        )
        self._southbound_events = QueuedListener(self)
        self.controller.southbound.listen(self._southbound_events)
        self._rest: RestServer | None = None

    def program_switches(self) -> None:
        """Connect to all switches and bring them to the plan; UserError if that cannot be done in time."""
        self.controller.start(self.config.ready_timeout_s)
        self.controller.write_down()
        if self.config.hand_over:
            self.controller.southbound.hand_over()

    def serve_rest(self, has_predecessor: bool) -> None:
        """Start the REST interface where the configuration says; UserError if it cannot listen there.

        has_predecessor: wait for the address, which another controller has until it notices that its term is over.
        """
        listeners = []
        if self.config.rest_fd is not None:
            listeners.append(inherited_socket(self.config.rest_fd))
        if self.config.rest_address is not None:
            listeners.append(_listening_socket(self.config.rest_address, has_predecessor))
        if listeners:
            self._rest = RestServer(create_app(self.controller), listeners)
            self._rest.start()

    def close(self) -> None:
        """os-ken calls this when the application ends."""
        if self._rest is not None:
            self._rest.stop()
        self._southbound_events.stop()
        self.controller.southbound.stop()

    def message(self, switch: str, message: Message) -> None:
        """Handle a digest or a packet-in of a switch, in the thread of `_southbound_events`."""
        self.controller.message(switch, message)

    def switch_changed(self, status: SwitchStatus) -> None:
        """Handle that a switch came or went, in the thread of `_southbound_events`."""
        self.controller.switch_changed(status)
        if status.connected:
            self.logger.info("%s runs %s", status.name, status.pipeline)
            self.send_event_to_observers(EventSwitchConnected(status))
        else:
            self.logger.info("%s is away: %s", status.name, status.error)
            self.send_event_to_observers(EventSwitchDisconnected(status))

    def _job_added(self, job: Job) -> None:
        self.logger.info("job %d of %s added", job.number, job.system)
        self.send_event_to_observers(EventJobAdded(job))

    def _job_deleted(self, job: Job) -> None:
        self.logger.info("job %d of %s deleted", job.number, job.system)
        self.send_event_to_observers(EventJobDeleted(job))


def run(config: ControllerConfig) -> None:
    """Load the application, and those of config.apps, into os-ken; be in charge; program the switches; serve until
    killed."""
    manager = app_manager.AppManager.get_instance()
    own_apps = [GradbedController.__module__]
    if has_openflow(config):
        own_apps.append(OPENFLOW_APP)
    try:
        manager.load_apps([*own_apps, *config.apps])
    except ImportError as error:
        raise UserError(f"cannot load the applications {', '.join(config.apps)}: {error}") from None
    # One that stands by has done beforehand what can be.
    parts = {"pipelines": load_pipelines(config), "services": load_services(config.services)}
    term, has_predecessor = _in_charge(config)
    openflow = openflow_southbound(config, term)
    try:
        threads = manager.instantiate_apps(
            **manager.create_contexts(), config=config, **parts, term=term, openflow=openflow
        )
        controller = app_manager.lookup_service_brick(GradbedController.__name__)
        if not has_predecessor:
            controller.serve_rest(has_predecessor)
        controller.program_switches()
        if has_predecessor:
            controller.serve_rest(has_predecessor)
        _say("ready")
        hub.joinall(threads)
        signal.pause()
    finally:
        manager.close()


def _in_charge(config: ControllerConfig) -> tuple[Term | None, bool]:
    """Return the term of this controller, if it has a journal, and whether another one was in charge until now."""
    if config.journal is None:
        return None, False
    waited: list[str] = []

    def standing_by() -> None:
        waited.append("standby")
        _say("standby")

    term = take_charge(config.journal, standing_by)
    term.keep(_give_up)
    return term, bool(waited)


def _give_up(error: Superseded) -> None:
    """Whatever other threads are doing: neither switches nor journal take it any more."""
    print(f"error: {error}", file=sys.stderr, flush=True)
    os._exit(EXIT_USER_ERROR)


def _say(event: str) -> None:
    print(json.dumps({"event": event}), flush=True)


def _listening_socket(address: str, has_predecessor: bool) -> socket.socket:
    waiting = False
    while True:
        try:
            return listening_socket(address)
        except UserError as error:
            if not has_predecessor:
                raise
            if not waiting:
                _logger.warning("%s: waiting for the controller before this one", error)
            waiting = True
            time.sleep(REST_RETRY_S)


def main(arguments: list[str]) -> int:
    # Python's own SIGINT handler would wait for os-ken's threads, which know of no interrupt.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    die_with_parent()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    if len(arguments) != 1:
        print("usage: python -m gradbed.controller.app CONFIG.json (or -)", file=sys.stderr)
        return EXIT_USER_ERROR
    try:
        run(ControllerConfig.load(told_file(arguments[0])))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USER_ERROR
    return 0


if __name__ == "__main__":
    # os-ken imports the application by its name: use that module, not a second copy called __main__.
    from gradbed.controller.app import main as main_by_name

    sys.exit(main_by_name(sys.argv[1:]))
