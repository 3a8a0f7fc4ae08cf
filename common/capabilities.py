"""Capabilities that not every network has: one check, and one message that says what to choose instead."""

from __future__ import annotations

from dataclasses import dataclass

from gradbed.common.errors import UserError


@dataclass(frozen=True)
class Capability:
    """Something that only some networks can do."""

    needs: str
    """What has the capability, in words."""
    option: str
    """The option that chooses it."""

    def require(self, is_there: bool, what: str, *instead: str) -> None:
        """Raise UserError if `what` is asked of a network that cannot do it.

        instead: other choices, as options.
        """
        if not is_there:
            raise self.missing(what, *instead)

    def missing(self, what: str, *instead: str) -> UserError:
        return UserError(f"{what} needs {self.needs}: use {', or '.join((*instead, self.option))}")


REAL_CLOCK = Capability("the real clock", "--clock real")
"""Processes, sockets and interfaces of the kernel."""

VIRTUAL_CLOCK = Capability("the virtual clock", "--clock virtual")
"""Hosts and links in one process, exactly, however fast they are."""

GRADBED_SWITCHES = Capability("gradbed's switches", "--switch gradbed")
"""P4 switches that tell what they do, and links that can be changed and captured."""
