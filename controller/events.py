"""The events by which the controller tells other os-ken applications what happens."""

from __future__ import annotations

from os_ken.controller.event import EventBase

from gradbed.controller.core.jobs import Job
from gradbed.controller.southbound.interface import SwitchStatus


class EventSwitchConnected(EventBase):  # type: ignore[misc]
    """A switch holds its pipeline and its part of the plan."""

    def __init__(self, status: SwitchStatus) -> None:
        super().__init__()
        self.status = status


class EventSwitchDisconnected(EventBase):  # type: ignore[misc]
    """A switch went away, or has a new reason for not being there."""

    def __init__(self, status: SwitchStatus) -> None:
        super().__init__()
        self.status = status


class EventJobAdded(EventBase):  # type: ignore[misc]
    """The switches hold everything that a new job needs."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job = job


class EventJobDeleted(EventBase):  # type: ignore[misc]
    """The event that nothing of a job is left in the switches."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.job = job
