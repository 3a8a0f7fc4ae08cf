"""A peer's subscriptions: insertion Interests until they are acknowledged, and again in every epoch; deletion
Interests at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gradbed.formats.ndn import DELETE, DISTRIBUTE, INSERT
from gradbed.formats.tlv import Component, Name
from gradbed.hosts.transport.retransmission_timeout import backed_off_us

MOST_DELETIONS = 20
"""So often a deletion is sent. A publisher that has died does not answer; its rows end for want of refreshes."""


@dataclass
class _Subscription:
    """A subscription and its state."""

    publisher: Component
    training: Component
    acknowledged: bool = False
    deleting: bool = False
    fresh: bool = False
    """Whether routers must not answer themselves."""
    tries: int = 0
    """Attempts since the last acknowledgement."""
    due_us: int = 0
    """When the Interest is sent again."""

    @property
    def wanted_name(self) -> Name:
        return (DELETE if self.deleting else INSERT, self.publisher, self.training)


class Subscriptions:
    """Subscriptions to several publishers. `send` takes an Interest's name, and whether it must be fresh."""

    def __init__(
        self,
        names: Sequence[tuple[Component, Component]],
        retry_us: int,
        refresh_us: int,
        send: Callable[[Name, bool], None],
    ) -> None:
        self._all = {name: _Subscription(*name) for name in names}
        self._retry_us = retry_us
        self._refresh_us = refresh_us
        self._send = send
        self.abandoned = 0
        """Deletions that nobody acknowledged."""

    @property
    def acknowledged(self) -> bool:
        """Return whether all of them are acknowledged: made, or deleted once that was asked for."""
        return all(each.acknowledged for each in self._all.values())

    @property
    def unacknowledged(self) -> list[bytes]:
        """Names of publishers, without type and length."""
        return [each.publisher[2:] for each in self._all.values() if not each.acknowledged]

    @property
    def deadline_us(self) -> int | None:
        return min((each.due_us for each in self._waiting()), default=None)

    def _waiting(self) -> Iterator[_Subscription]:
        return (each for each in self._all.values() if not (each.deleting and each.acknowledged))

    def act(self, now_us: int) -> None:
        """Send what is due."""
        for each in self._waiting():
            if each.due_us <= now_us:
                self._send(each.wanted_name, each.fresh)
                each.acknowledged = False
                each.tries += 1
                if each.deleting and each.tries > MOST_DELETIONS:
                    each.acknowledged = True
                    self.abandoned += 1
                # As consumers do that wait for Data: who has died is asked less and less often. Not more rarely than
                # rows are refreshed, though, or those that the last Interest left on its way end before the next.
                length_us = backed_off_us(self._retry_us, each.tries - 1)
                each.due_us = now_us + min(length_us, max(self._retry_us, self._refresh_us))

    def take(self, name: Name, now_us: int) -> bool:
        """Data of three components came: whether it acknowledges one of these."""
        each = self._all.get((name[1], name[2]))
        if each is None or name[0] != (DELETE if each.deleting else DISTRIBUTE):
            return False
        if not each.acknowledged:
            # Acknowledgements that others asked for say nothing of the own port.
            each.acknowledged, each.fresh, each.tries = True, False, 0
            each.due_us = now_us + self._refresh_us
        return True

    def renew(self, name: tuple[Component, Component]) -> None:
        """A subscription may be lost on the way: repeat it at once, up to the publisher."""
        each = self._all[name]
        if not each.deleting:
            each.fresh, each.acknowledged, each.due_us = True, False, 0

    def delete(self) -> None:
        """Delete the subscriptions, from now on."""
        for each in self._all.values():
            each.deleting, each.acknowledged, each.fresh = True, False, False
            each.due_us = each.tries = 0
