"""A P4 program as it is pushed to switches."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from finsy.proto import p4i, p4r
from google.protobuf import text_format
from google.protobuf.message import DecodeError

from gradbed.common.errors import UserError
from gradbed.controller.southbound.p4runtime.schema import ProgramSchema


@dataclass(frozen=True)
class Pipeline:
    """A P4Info message and the target's configuration (BMv2 JSON as bytes). routed: the controller fills its table
    ipv4_routes, if it has one."""

    name: str
    p4info: Any
    device_config: bytes
    routed: bool = True

    @classmethod
    def load(cls, name: str, json_path: Path, p4info_path: Path, routed: bool = True) -> Pipeline:
        """Read what a compiler wrote; P4Info as protobuf text or binary. UserError if that is not what it is."""
        return cls(name, read_p4info(p4info_path), _read(json_path), routed)

    @cached_property
    def schema(self) -> ProgramSchema:
        return ProgramSchema(self.p4info)

    @cached_property
    def cookie(self) -> int:
        """64 bits that tell one configuration from another (never 0, which means none)."""
        digest = hashlib.sha256(self.p4info.SerializeToString(deterministic=True))
        digest.update(self.device_config)
        return int.from_bytes(digest.digest()[:8], "big") | 1

    @property
    def label(self) -> str:
        return f"{self.name} {self.cookie:016x}"

    def config(self) -> Any:
        """Return the ForwardingPipelineConfig message."""
        return p4r.ForwardingPipelineConfig(
            p4info=self.p4info,
            p4_device_config=self.device_config,
            cookie=p4r.ForwardingPipelineConfig.Cookie(cookie=self.cookie),
        )


def read_p4info(path: Path) -> Any:
    """Return a P4Info message from a file of protobuf text or binary.

    Raises:
        UserError: The file is neither.
    """
    p4info = p4i.P4Info()
    data = _read(path)
    try:
        text_format.Parse(data.decode(), p4info)
    except (text_format.ParseError, ValueError):  # no UTF-8, or a number that its field cannot take
        p4info = p4i.P4Info()
        try:
            p4info.ParseFromString(data)
        except DecodeError:
            raise UserError(f"{path} is not a P4Info file, neither text nor binary") from None
    return p4info


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
