"""Who is primary: the controllers of one device and role.

P4Runtime specification 1.4, section "Client Arbitration and Controller Replication". Nothing here waits or locks: one
event loop makes all calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from finsy.proto import U128, p4r

from gradbed.switch.p4runtime.roles import Role, role_from_message
from gradbed.switch.p4runtime.status import RequestError, StatusCode, denied, invalid

CONTROLLERS_PER_ROLE = 64


class Controller:
    """The stream of a controller that takes part in an election."""

    def __init__(
        self, send: Callable[[Any], None], end: Callable[[RequestError], None] = lambda reason: None
    ) -> None:
        """Take part with an election id of None, which never becomes primary.

        Args:
            send: Takes p4.v1.StreamMessageResponse messages, without waiting.
            end: Closes the stream, without waiting.
        """
        self.send = send
        self.end = end
        self.election_id: int | None = None


class Election:
    """The controllers of one device and role, and the highest election id ever seen from a primary.

    P4Runtime specification 1.4, "Client Arbitration and Controller Replication".
    """

    def __init__(self, device_id: int, role_name: str) -> None:
        self.device_id = device_id
        self.role = Role(role_name)
        self.primary: Controller | None = None
        self._highest: int | None = None
        self._controllers: list[Controller] = []
        self._role_message: Any = p4r.Role(name=role_name) if role_name else None

    def update(self, controller: Controller, message: Any) -> bool:
        """Take a MasterArbitrationUpdate, and return whether the controller becomes or stays primary.

        If so, the others have been notified, and `notify` is to be called for the controller itself once the Write
        requests of its predecessor are done. Otherwise all controllers concerned have been notified. A RequestError
        ends the stream and leaves the election as it was (P4Runtime specification 1.4, "Rules for Handling
        MasterArbitrationUpdate Messages Received from Controllers").
        """
        role = role_from_message(message.role)
        election_id = self._election_id(message)
        self._enter(controller, election_id)
        if election_id is not None and (self._highest is None or election_id >= self._highest):
            self._highest = election_id
            self.primary = controller
            self.role = role
            self._role_message = message.role if message.HasField("role") else None
            self._notify_all(but=controller)
            return True
        if self.primary is controller:
            self.primary = None
            self._notify_all()
        else:
            self.notify(controller)
        return False

    def _election_id(self, message: Any) -> int | None:
        return U128.decode(message.election_id) if message.HasField("election_id") else None

    def _enter(self, controller: Controller, election_id: int | None) -> None:
        """Add the controller; raise RequestError if another one has this id, or there are too many."""
        for other in self._controllers:
            if other is not controller and election_id is not None and other.election_id == election_id:
                raise invalid(
                    f"election id {election_id} is already used by another controller of device {self.device_id}"
                )
        if controller not in self._controllers:
            if len(self._controllers) >= CONTROLLERS_PER_ROLE:
                raise RequestError(
                    StatusCode.RESOURCE_EXHAUSTED,
                    f"device {self.device_id} has {CONTROLLERS_PER_ROLE} controllers of this role already",
                )
            self._controllers.append(controller)
        controller.election_id = election_id

    def leave(self, controller: Controller) -> None:
        """Remove a controller whose stream has ended."""
        if controller in self._controllers:
            self._controllers.remove(controller)
        if self.primary is controller:
            self.primary = None
            self._notify_all()

    def dissolve(self, reason: RequestError) -> None:
        """Close all streams, without notifying controllers that others leave."""
        controllers, self._controllers, self.primary = self._controllers, [], None
        for controller in controllers:
            controller.end(reason)

    def check_primary(self, message: Any) -> None:
        """Raise PERMISSION_DENIED unless the request's election_id is that of the primary."""
        if self.primary is None:
            raise denied(f"device {self.device_id} has no primary controller of this role")
        election_id = self._election_id(message)
        if election_id is None:
            raise denied("only the primary controller may do this, and the request has no election_id")
        if election_id != self.primary.election_id:
            raise denied(f"only the primary controller may do this, its election id is {self.primary.election_id}")

    def notify(self, controller: Controller) -> None:
        """Send one controller the state of the election.

        The status is OK for the primary, ALREADY_EXISTS for others while there is one, and NOT_FOUND while there is
        none (P4Runtime specification 1.4, "Client Arbitration Notifications").
        """
        update = p4r.MasterArbitrationUpdate(device_id=self.device_id)
        if self._role_message is not None:
            update.role.CopyFrom(self._role_message)
        if self._highest is not None:
            update.election_id.CopyFrom(U128.encode(self._highest))
        if self.primary is controller:
            update.status.code = StatusCode.OK
            update.status.message = "you are the primary controller"
        elif self.primary is not None:
            update.status.code = StatusCode.ALREADY_EXISTS
            update.status.message = "another controller is the primary"
        else:
            update.status.code = StatusCode.NOT_FOUND
            update.status.message = "there is no primary controller"
        controller.send(p4r.StreamMessageResponse(arbitration=update))

    def _notify_all(self, but: Controller | None = None) -> None:
        for controller in self._controllers:
            if controller is not but:
                self.notify(controller)


class Bmv2Election(Election):
    """Election as BMv2 1.15 holds it (docs/p4runtime.md).

    The controller that is connected with the highest id is primary, a missing id counts as 0, and while no controller
    is connected requests without an id are taken.
    """

    def update(self, controller: Controller, message: Any) -> bool:
        role = role_from_message(message.role)
        self._enter(controller, self._election_id(message))
        if not self._elect(but=controller) and self.primary is not controller:
            self.notify(controller)
        if self.primary is controller:
            self.role = role
            self._role_message = message.role if message.HasField("role") else None
        return self.primary is controller

    def leave(self, controller: Controller) -> None:
        if controller in self._controllers:
            self._controllers.remove(controller)
        self._elect()

    def check_primary(self, message: Any) -> None:
        if self._controllers:
            super().check_primary(message)
        elif message.HasField("election_id"):
            raise denied(f"device {self.device_id} has no controller of this role, and the request an election_id")

    def _election_id(self, message: Any) -> int:
        return super()._election_id(message) or 0

    def _elect(self, but: Controller | None = None) -> bool:
        """Elect the primary anew, and return whether it is another one or has another id.

        If so, all are notified, except for `but` if it is the primary.
        """
        before = self.primary, self._highest
        self.primary = max(self._controllers, key=lambda each: each.election_id or 0, default=None)
        self._highest = None if self.primary is None else self.primary.election_id
        if (self.primary, self._highest) == before:
            return False
        self._notify_all(but if self.primary is but else None)
        return True
