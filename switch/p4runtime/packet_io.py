"""Controller headers: the metadata of packet-in and packet-out, and their bits in front of the frame.

P4Runtime specification 1.4, sections "ControllerPacketMetadata" and "Packet I/O".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from finsy.proto import p4r

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.p4runtime.status import RequestError, invalid
from gradbed.switch.p4runtime.values import (
    Translations,
    ValueCodec,
    controller_width_bits,
    is_translated,
    value_codec,
)


class HeaderField(NamedTuple):
    metadata_id: int
    name: str
    width_bits: int
    values: ValueCodec


class ControllerHeader:
    """A header annotated with @controller_header; without fields when the program declares none."""

    def __init__(self, fields: Sequence[HeaderField]) -> None:
        """Take the fields. Raises ValueError unless they fill whole bytes."""
        self._fields = list(fields)
        self._indices = {field.metadata_id: i for i, field in enumerate(self._fields)}
        total_bits = sum(field.width_bits for field in self._fields)
        if total_bits % 8:
            raise ValueError(f"a controller header has {total_bits} bits, which is not a whole number of bytes")
        self.length_bytes = total_bits // 8

    def frame(self, packet: Any) -> bytes:
        """Return what a PacketOut puts on the wire: header and payload. Raises INVALID_ARGUMENT or OUT_OF_RANGE."""
        values: list[int | None] = [None] * len(self._fields)
        for metadata in packet.metadata:
            index = self._indices.get(metadata.metadata_id)
            if index is None:
                raise invalid(f"packet-out has no metadata field {metadata.metadata_id}")
            field = self._fields[index]
            if values[index] is not None:
                raise invalid(f"packet-out metadata {field.name}: given twice")
            try:
                values[index] = field.values.decode(metadata.value)
            except RequestError as error:
                raise RequestError(error.code, f"packet-out metadata {field.name}: {error.message}") from None
        header = 0
        for field, value in zip(self._fields, values, strict=True):
            if value is None:
                raise invalid(f"packet-out metadata {field.name} is missing")
            header = header << field.width_bits | value
        payload: bytes = packet.payload
        return header.to_bytes(self.length_bytes, "big") + payload

    def packet_in(self, frame: bytes) -> Any:
        """Return the PacketIn of a frame from the CPU port.

        Raises ValueError if the frame is shorter than the header.
        """
        if len(frame) < self.length_bytes:
            raise ValueError(f"a frame of {len(frame)} bytes has no {self.length_bytes} bytes of packet-in header")
        packet = p4r.PacketIn(payload=frame[self.length_bytes :])
        header = int.from_bytes(frame[: self.length_bytes], "big")
        remaining_bits = self.length_bytes * 8
        for field in self._fields:
            remaining_bits -= field.width_bits
            value = header >> remaining_bits & ((1 << field.width_bits) - 1)
            packet.metadata.add(metadata_id=field.metadata_id, value=field.values.encode(value))
        return packet


def controller_header(name: str, info: Any, program: ProgramModel, translations: Translations) -> ControllerHeader:
    """Return the header of P4Info's controller_packet_metadata of that name ("packet_in" or "packet_out").

    Raises ValueError where its layout cannot be known.
    """
    for described in info.controller_packet_metadata:
        if described.preamble.name == name:
            widths_bits = _wire_widths_bits(described, info.type_info, program)
            fields = [
                HeaderField(m.id, m.name, width_bits, value_codec(m, info.type_info, width_bits, translations))
                for m, width_bits in zip(described.metadata, widths_bits, strict=True)
            ]
            return ControllerHeader(fields)
    return ControllerHeader(())


def _wire_widths_bits(described: Any, type_info: Any, program: ProgramModel) -> list[int]:
    """Return the widths of the fields in bits.

    P4Info gives widths as the controller sees them; those of translated types are in the JSON only.
    """
    if not any(is_translated(metadata, type_info) for metadata in described.metadata):
        return [controller_width_bits(metadata, type_info) for metadata in described.metadata]
    names = [metadata.name for metadata in described.metadata]
    for header in program.headers.values():
        if [field.name for field in header.type.fields] == names:
            return [field.width for field in header.type.fields]
    raise ValueError(
        f"controller header {described.preamble.name!r} has translated types, and the BMv2 JSON "
        "has no header type with the same fields"
    )
