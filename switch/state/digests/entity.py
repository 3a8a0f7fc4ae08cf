"""DigestEntry: which digests are sent, and how. P4Runtime specification 1.4, section "DigestEntry"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from finsy.proto import p4r

from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.values.status import exists_already, not_found
from gradbed.switch.state.base import EntityKind, known
from gradbed.switch.state.digests.codec import DigestCodec, DigestConfig


class DigestEntries(EntityKind):
    oneof = "digest_entry"

    def __init__(self, codecs: Mapping[int, DigestCodec], listen: Callable[[bool], None]) -> None:
        """`listen`: says whether the device's digests are wanted, that is, while one is enabled."""
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
        # Lists that wait for their time are for nobody now.
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
