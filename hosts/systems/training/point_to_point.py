"""Sends and receives of a trace: those of two ranks match by their tag, in order."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable

from gradbed.hosts.systems.training.execution import Node
from gradbed.hosts.systems.training.messages import MOST_PLACES, Messages

_TAG_BITS = 26

OnEnd = Callable[[], None]


def _subject(sender: int, tag: int) -> int:
    return sender << _TAG_BITS | tag & (1 << _TAG_BITS) - 1


class Mailbox:
    """What one rank sends this one under a tag: what has come, or who waits for it."""

    def __init__(self) -> None:
        self._come = 0
        self._waiting: deque[OnEnd] = deque()

    def received(self) -> None:
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._come += 1

    def expect(self, on_end: OnEnd) -> None:
        """on_end: called once the next one is there."""
        if self._come:
            self._come -= 1
            on_end()
        else:
            self._waiting.append(on_end)


class PointToPoint:
    """Of one rank."""

    def __init__(self, rank: int, messages: Messages) -> None:
        self._rank = rank
        self._messages = messages
        self._counts: defaultdict[int, int] = defaultdict(int)
        self._mailboxes: dict[int, Mailbox] = {}

    def send(self, node: Node, on_end: OnEnd) -> None:
        assert node.peer is not None
        subject = _subject(self._rank, node.tag)
        place = self._counts[subject] % MOST_PLACES
        self._counts[subject] += 1
        self._messages.send(node.peer, subject, place, node.size_bytes, on_end)

    def receive(self, node: Node, on_end: OnEnd) -> None:
        assert node.peer is not None
        subject = _subject(node.peer, node.tag)
        mailbox = self._mailboxes.get(subject)
        if mailbox is None:
            mailbox = self._mailboxes[subject] = Mailbox()
            self._messages.listen(subject, mailbox.received)
        mailbox.expect(on_end)
