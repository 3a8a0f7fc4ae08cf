"""Device configs: bare BMv2 JSON, and the message that older controllers wrap it in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gradbed.switch.p4runtime.device_config import bmv2_json_text

JSON = b'{"program": "x.p4"}'


def test_bare_json_stays() -> None:
    assert bmv2_json_text(JSON) == JSON
    assert bmv2_json_text(b" \n" + JSON) == b" \n" + JSON
    assert bmv2_json_text(b"") == b""


def test_the_message_is_opened() -> None:
    # reassign = true, device_data = JSON; then with extras between them, then with a long varint.
    wrapped = b"\x1a" + bytes([len(JSON)]) + JSON
    assert bmv2_json_text(b"\x08\x01" + wrapped) == JSON
    assert bmv2_json_text(b"\x08\x01\x12\x03\x0a\x01x" + wrapped) == JSON
    long = JSON * 20
    assert bmv2_json_text(b"\x1a" + bytes([len(long) % 128 + 128, len(long) // 128]) + long) == long


def test_a_message_without_data_or_cut_short_stays() -> None:
    for message in (b"\x08\x01", b"\x1a\x20abc", b"\x1a", b"\x08" + b"\xff" * 20, b"\x0d\0\0\0\0"):
        assert bmv2_json_text(message) == message


@given(st.binary(max_size=40))
def test_any_bytes_give_a_part_of_themselves(data: bytes) -> None:
    assert bmv2_json_text(data) in data
