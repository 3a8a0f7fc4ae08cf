"""Digests: what the data plane sends of a packet, collected into lists for the controllers.

P4Runtime specification 1.4, section "DigestEntry". Nothing here waits or looks at a clock: calls bring the time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from finsy.proto import p4r

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.status import exists_already, invalid, not_found, unimplemented
from gradbed.switch.p4runtime.values import DataCodec, Translations, data_codec
from gradbed.switch.state.base import EntityKind, known

# ---- P4Info, BMv2 JSON and the lists ----


# Messages that were sent and not acknowledged, of one digest; beyond that the oldest lists count as acknowledged.
GREATEST_CACHE = 1 << 16
# A list of unlimited size is sent when it has this many messages.
GREATEST_LIST = 1 << 12
WORD_BITS = 64

Values = tuple[int, ...]


class DigestCodec:
    """Codec of one digest of a program: from messages of the data plane to P4Data."""

    def __init__(self, digest: Any, info: Any, program: ProgramModel, translations: Translations) -> None:
        """Read a p4.config.v1.Digest. Raises ValueError where the BMv2 JSON has no such learn list."""
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
        """Raise UNIMPLEMENTED for a type that this server does not send."""
        if self._data is None:
            raise unimplemented(f"digest {self.name}: {self._refusal}")

    def values(self, words: Sequence[int]) -> Values:
        """Return the elements of a message from the device's words."""
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
    """Return the width of a value that a digest sends, in bits; values that are no fields have one word."""
    match element:
        case ex.FromBoolean(ex.IsValid()):
            return 1
        case ex.FieldReference(ex.NamedHeader(header), index):
            return program.headers[header].type.fields[index].width or WORD_BITS
    return WORD_BITS


@dataclass(frozen=True)
class DigestConfig:
    max_timeout_ns: int = 0
    max_list_size: int = 0
    ack_timeout_ns: int = 0

    @staticmethod
    def from_message(message: Any) -> DigestConfig:
        """Build it from a DigestEntry.Config. Raises INVALID_ARGUMENT."""
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
        """Return how many messages make a list complete."""
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
        """Return when the list is to be sent even if it is not complete. None if it is empty."""
        return self._first_ns + self.config.max_timeout_ns if self._waiting else None

    def take(self, now_ns: int) -> tuple[int, list[Values]]:
        """Return the id and the messages of the list to send; it counts as sent from now on."""
        messages, self._waiting = list(self._waiting), {}
        list_id, self._next_list_id = self._next_list_id, self._next_list_id + 1
        if self.config.ack_timeout_ns:
            self._lists[list_id] = SentList(now_ns, messages)
            self._unacknowledged.update(messages)
            while len(self._unacknowledged) > GREATEST_CACHE:
                self.acknowledge(next(iter(self._lists)))
        return list_id, messages

    def acknowledge(self, list_id: int) -> None:
        """Take a controller's acknowledgement of a list; one of an unknown list has no effect."""
        sent = self._lists.pop(list_id, None)
        if sent is not None:
            self._unacknowledged.difference_update(sent.messages)

    def _forget_expired(self, now_ns: int) -> None:
        while self._lists:
            list_id, sent = next(iter(self._lists.items()))
            if now_ns - sent.sent_ns < self.config.ack_timeout_ns:
                return
            self.acknowledge(list_id)


# ---- DigestEntry: which digests are sent, and how ----


class DigestEntries(EntityKind):
    oneof = "digest_entry"

    def __init__(self, codecs: Mapping[int, DigestCodec], listen: Callable[[bool], None]) -> None:
        """Create the entries of these digests; `listen` is called with True while one is enabled, else with False."""
        self._codecs = codecs
        self._listen = listen
        self.configs: dict[int, DigestConfig] = {}
        """By digest id. Configurations are replaced, never changed."""

    def p4_id(self, message: Any) -> int:
        digest_id: int = message.digest_id
        return digest_id

    def insert(self, message: Any) -> None:
        codec = self._codec(message.digest_id)
        codec.check_supported()
        if codec.digest_id in self.configs:
            raise exists_already(f"digest {codec.name} is enabled")
        self.configs[codec.digest_id] = DigestConfig.from_message(message.config)
        self._listen(True)

    def modify(self, message: Any) -> None:
        codec = self._enabled(message.digest_id)
        self.configs[codec.digest_id] = DigestConfig.from_message(message.config)

    def delete(self, message: Any) -> None:
        codec = self._enabled(message.digest_id)
        del self.configs[codec.digest_id]
        if not self.configs:
            self._listen(False)

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        wanted = [self._enabled(message.digest_id).digest_id] if message.digest_id else list(self.configs)
        found = [(digest_id, self.configs[digest_id]) for digest_id in wanted if role.reads(digest_id)]
        return (_entity(*one) for one in found)

    def clear(self) -> None:
        if self.configs:
            self._listen(False)
        # Lists that wait for their time have no receiver now.
        self.configs.clear()

    def export(self) -> Iterator[Any]:
        for digest_id, config in self.configs.items():
            yield p4r.Update(type=p4r.Update.INSERT, entity=_entity(digest_id, config))

    def _codec(self, digest_id: int) -> DigestCodec:
        return known(self._codecs, digest_id, "digest")

    def _enabled(self, digest_id: int) -> DigestCodec:
        codec = self._codec(digest_id)
        if digest_id not in self.configs:
            raise not_found(f"digest {codec.name} is not enabled")
        return codec


def _entity(digest_id: int, config: DigestConfig) -> Any:
    entity = p4r.Entity()
    entity.digest_entry.digest_id = digest_id
    config.fill(entity.digest_entry.config)
    return entity


# ---- Lists to the controllers, and their acknowledgements ----


Send = Callable[[int, Any], bool]
"""Digest id and p4.v1.DigestList; False if there is no controller to send it to."""


class DigestLists:
    """Digests on their way to controllers. Calls are made one at a time."""

    def __init__(
        self,
        codecs: Iterable[DigestCodec],
        configs: Mapping[int, DigestConfig],
        send: Send,
        clock_ns: Callable[[], int],
        timestamp_ns: Callable[[], int],
    ) -> None:
        """Create empty lists.

        `configs`: configurations of the digests that are enabled now, by digest id. `clock_ns`: clock of the
        timeouts. `timestamp_ns`: clock of the lists' timestamps.
        """
        self._codecs = {codec.list_id: codec for codec in codecs}
        self._configs = configs
        self._send = send
        self._clock_ns = clock_ns
        self._timestamp_ns = timestamp_ns
        self._buffers: dict[int, DigestBuffer] = {}

    def receive(self, list_id: int, words: tuple[int, ...]) -> None:
        """Take a message from the data plane; send its list if that is complete."""
        codec = self._codecs.get(list_id)
        config = self._configs.get(codec.digest_id) if codec is not None else None
        if codec is None or config is None:
            return
        buffer = self._buffers.setdefault(codec.digest_id, DigestBuffer(config))
        buffer.config = config
        if buffer.add(codec.values(words), self._clock_ns()):
            self._send_list(codec, buffer)

    @property
    def due_ns(self) -> int | None:
        """Return when `send_due` has something to send; None: nothing waits."""
        times = [buffer.due_ns for buffer in self._buffers.values()]
        return min((time_ns for time_ns in times if time_ns is not None), default=None)

    def send_due(self) -> None:
        """Send the lists whose time has come, complete or not."""
        now_ns = self._clock_ns()
        for codec in self._codecs.values():
            buffer = self._buffers.get(codec.digest_id)
            if buffer is not None and buffer.due_ns is not None and buffer.due_ns <= now_ns:
                self._send_list(codec, buffer)

    def acknowledge(self, digest_id: int, list_id: int) -> None:
        buffer = self._buffers.get(digest_id)
        if buffer is not None:
            buffer.acknowledge(list_id)

    def forget(self) -> None:
        """Forget what was sent: another controller is in charge, to which nothing has been sent yet."""
        self._buffers.clear()

    def _send_list(self, codec: DigestCodec, buffer: DigestBuffer) -> None:
        if codec.digest_id not in self._configs:
            del self._buffers[codec.digest_id]
            return
        list_id, messages = buffer.take(self._clock_ns())
        digest_list = p4r.DigestList(digest_id=codec.digest_id, list_id=list_id, timestamp=self._timestamp_ns())
        for values in messages:
            codec.encode(values, digest_list.data.add())
        if not self._send(codec.digest_id, digest_list):
            buffer.acknowledge(list_id)
