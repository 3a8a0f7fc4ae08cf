"""Digests: what the data plane sends of a packet, collected into lists for the controller.

P4Runtime specification 1.4, section "DigestEntry". Nothing here waits or looks at a clock: calls bring the time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.p4runtime.values.p4_data import DataCodec, data_codec
from gradbed.switch.p4runtime.values.status import invalid, unimplemented
from gradbed.switch.p4runtime.values.translation import Translations

# Messages that were sent and not acknowledged, of one digest; beyond that the oldest lists count as acknowledged.
GREATEST_CACHE = 1 << 16
# A list of unlimited size is sent when it has this many messages.
GREATEST_LIST = 1 << 12
WORD_BITS = 64

Values = tuple[int, ...]


class DigestCodec:
    """One digest of a program: its messages as the data plane sends them and as P4Data."""

    def __init__(self, digest: Any, info: Any, program: ProgramModel, translations: Translations) -> None:
        """From a p4.config.v1.Digest. Raises ValueError where the BMv2 JSON has no such learn list."""
        self.digest_id: int = digest.preamble.id
        self.name: str = digest.preamble.name
        in_program = next((each for each in program.digests.values() if each.name == self.name), None)
        if in_program is None:
            raise ValueError(f"digest {self.name!r} of the P4Info is not in the BMv2 JSON")
        self.list_id = in_program.id
        self._widths_bits = [_width_bits(element, program) for element in in_program.elements]
        self._data: DataCodec | None = None
        self._refusal = ""
        try:
            self._data = data_codec(digest.type_spec, info.type_info, iter(self._widths_bits), translations)
        except ValueError as error:
            self._refusal = str(error)

    def check_supported(self) -> None:
        """Raises UNIMPLEMENTED for a type that this server does not send."""
        if self._data is None:
            raise unimplemented(f"digest {self.name}: {self._refusal}")

    def values(self, words: Sequence[int]) -> Values:
        """The elements of a message from the device's words."""
        values = []
        at = 0
        for width_bits in self._widths_bits:
            count = max(1, (width_bits + 63) // 64)
            values.append(sum(word << 64 * i for i, word in enumerate(words[at : at + count])))
            at += count
        return tuple(values)

    def encode(self, values: Values, data: Any) -> None:
        """Fill a P4Data."""
        assert self._data is not None
        self._data.encode(iter(values), data)


def _width_bits(element: ex.Data, program: ProgramModel) -> int:
    """Of what a digest sends; values that are no fields have one word."""
    match element:
        case ex.FromBoolean(ex.IsValid()):
            return 1
        case ex.Field(ex.NamedHeader(header), index):
            return program.headers[header].type.fields[index].width or WORD_BITS
    return WORD_BITS


@dataclass(frozen=True)
class DigestConfig:
    max_timeout_ns: int = 0
    max_list_size: int = 0
    ack_timeout_ns: int = 0

    @staticmethod
    def from_message(message: Any) -> DigestConfig:
        """From a DigestEntry.Config. Raises INVALID_ARGUMENT."""
        if min(message.max_timeout_ns, message.max_list_size, message.ack_timeout_ns) < 0:
            raise invalid("timeouts and sizes of a digest are not negative")
        return DigestConfig(message.max_timeout_ns, message.max_list_size, message.ack_timeout_ns)

    def fill(self, message: Any) -> None:
        message.SetInParent()
        message.max_timeout_ns = self.max_timeout_ns
        message.max_list_size = self.max_list_size
        message.ack_timeout_ns = self.ack_timeout_ns

    @property
    def list_size(self) -> int:
        """How many messages make a list complete."""
        if self.max_timeout_ns == 0:
            return 1
        return min(self.max_list_size or GREATEST_LIST, GREATEST_LIST)


@dataclass
class SentList:
    sent_ns: int
    messages: list[Values]


class DigestBuffer:
    """Messages of one digest that are to be sent, and those that were sent and not acknowledged yet."""

    def __init__(self, config: DigestConfig) -> None:
        self.config = config
        self._waiting: dict[Values, None] = {}
        self._first_ns = 0
        self._unacknowledged: set[Values] = set()
        self._lists: OrderedDict[int, SentList] = OrderedDict()
        self._next_list_id = 1

    def add(self, message: Values, now_ns: int) -> bool:
        """Take a message unless it is known. True if a list is complete: it is to be taken and sent."""
        self._forget_expired(now_ns)
        if message in self._waiting or message in self._unacknowledged:
            return False
        if not self._waiting:
            self._first_ns = now_ns
        self._waiting[message] = None
        return len(self._waiting) >= self.config.list_size

    @property
    def due_ns(self) -> int | None:
        """When the list is to be sent even if it is not complete. None if it is empty."""
        return self._first_ns + self.config.max_timeout_ns if self._waiting else None

    def take(self, now_ns: int) -> tuple[int, list[Values]]:
        """The list to be sent, which counts as sent from now on: its id and its messages."""
        messages, self._waiting = list(self._waiting), {}
        list_id, self._next_list_id = self._next_list_id, self._next_list_id + 1
        if self.config.ack_timeout_ns:
            self._lists[list_id] = SentList(now_ns, messages)
            self._unacknowledged.update(messages)
            while len(self._unacknowledged) > GREATEST_CACHE:
                self.acknowledge(next(iter(self._lists)))
        return list_id, messages

    def acknowledge(self, list_id: int) -> None:
        """The controller has seen to this list. A list that is not known is none to wait for."""
        sent = self._lists.pop(list_id, None)
        if sent is not None:
            self._unacknowledged.difference_update(sent.messages)

    def _forget_expired(self, now_ns: int) -> None:
        while self._lists:
            list_id, sent = next(iter(self._lists.items()))
            if now_ns - sent.sent_ns < self.config.ack_timeout_ns:
                return
            self.acknowledge(list_id)
