"""What is on the wire, as python-ndn reads and writes it."""

from __future__ import annotations

import numpy as np
import pytest
from ndn.encoding import (
    Component,
    InterestParam,
    MetaInfo,
    Name,
    SignatureType,
    make_data,
    make_interest,
    parse_data,
    parse_interest,
)
from ndn.security import NullSigner

from gradbed.formats.datagram import ETHERNET_BYTES
from gradbed.hosts.systems.ndn.endpoint import FragmentReader
from gradbed.hosts.systems.ndn.packets import (
    Interest,
    VersionHead,
    fragment_name,
    interest_frame,
    read_packet,
    version_frames,
)
from tests.unit.ndn.routers.one_router import ETHERNET, LANES, OneRouter, gradient_frame, interest, name

PREFIX = name("distribute", "h1", "t")


@pytest.mark.parametrize("version", [0, 1, 252, 253, 255, 256, 65_535, 65_536, 1 << 40])
@pytest.mark.parametrize("segment", [0, 255, 256, 70_000])
def test_fragments_names_follow_the_conventions(version: int, segment: int) -> None:
    uri = [*Name.from_str("/distribute/h1/t"), Component.from_version(version), Component.from_segment(segment)]
    assert [bytes(each) for each in uri] == list(fragment_name(PREFIX, version, segment))


@pytest.mark.parametrize("lanes_each", [1, 59, 60, LANES])
def test_frames_of_a_version_are_data_with_null_signatures(lanes_each: int) -> None:
    """Contents shorter than 253 bytes (up to 59 lanes) have a length of one byte, others of three."""
    lanes = np.arange(300 * lanes_each, dtype=np.int32).reshape(300, lanes_each) - 5000
    head = VersionHead(1.25, (20, -3, 127, -128), last=True)
    segment = 0
    for batch in version_frames(ETHERNET, PREFIX, 7, head, lanes):
        for frame in batch:
            found, _, content, signature = parse_data(frame.tobytes()[ETHERNET_BYTES:])
            assert [bytes(each) for each in found] == list(fragment_name(PREFIX, 7, segment))
            assert signature.signature_info.signature_type == SignatureType.NULL
            assert content is not None
            assert VersionHead.from_bytes(bytes(content)) == head
            assert np.array_equal(np.frombuffer(content, ">i4", offset=16), lanes[segment])
            segment += 1
    assert segment == 300


def test_interests_are_read_as_they_were_meant() -> None:
    frame = interest_frame(ETHERNET, name("insert", "h1", "t"), 0xDEADBEEF, 4000, must_be_fresh=True)
    found, parameters, _, _ = parse_interest(frame[ETHERNET_BYTES:])
    assert Name.to_str(found) == "/insert/h1/t"
    assert (parameters.nonce, parameters.lifetime, parameters.hop_limit) == (0xDEADBEEF, 4000, 32)
    assert parameters.must_be_fresh and not parameters.can_be_prefix


def test_interests_of_python_ndn_are_read() -> None:
    wire = make_interest("/t/h1/x", InterestParam(nonce=7, lifetime=300_000, hop_limit=9, can_be_prefix=True))
    assert read_packet(ETHERNET + bytes(wire)) == Interest(name("t", "h1", "x"), 7, 300_000)


def test_a_router_forwards_and_answers_python_ndns_interests() -> None:
    with OneRouter(3, {"/t/h1": 1}) as router:
        wire = bytes(make_interest("/t/h1/x", InterestParam(nonce=7, lifetime=300, hop_limit=9)))
        (out,) = router.exchange(2, ETHERNET + wire)[1]
        found, parameters, _, _ = parse_interest(out[ETHERNET_BYTES:])
        assert (Name.to_str(found), parameters.hop_limit) == ("/t/h1/x", 8)

        router.exchange(3, interest("insert", "h1", "t"))
        router.exchange(1, gradient_frame("distribute", "h1", "t", version=3, segment=1, lane=5))
        uri = Name.to_str([*Name.from_str("/t/h1"), Component.from_version(3), Component.from_segment(1)])
        wire = bytes(make_interest(uri, InterestParam(nonce=8, lifetime=300)))
        (out,) = router.exchange(2, ETHERNET + wire)[2]
        found, _, content, signature = parse_data(out[ETHERNET_BYTES:])
        assert Name.to_str(found) == uri
        assert content is not None and len(content) == 16 + 4 * LANES
        assert signature.signature_info.signature_type == SignatureType.NULL


@pytest.mark.parametrize(("meta", "kept"), [(None, True), (MetaInfo(), False)])
def test_data_of_python_ndn_are_kept_if_they_have_a_gradients_form(meta: MetaInfo | None, kept: bool) -> None:
    """What has more than a content goes through, and peers read it, but stores do not keep it."""
    lanes = np.arange(LANES, dtype=np.int32)
    content = VersionHead(0.5).to_bytes() + lanes.astype(">i4").tobytes()
    uri = [*Name.from_str("/t/h1"), Component.from_version(1), Component.from_segment(0)]
    wire = ETHERNET + bytes(make_data(uri, meta, content, NullSigner()))
    with OneRouter(3, {"/t/h1": 1}) as router:
        asked = interest_frame(ETHERNET, fragment_name(name("t", "h1"), 1, 0), 1, 1000)
        router.exchange(2, asked)
        assert router.exchange(1, wire) == {2: [wire]}
        assert ("content_kept" in router.counts()) == kept
    fragment = FragmentReader({}, {b"".join(name("t", "h1")): 4}, LANES).read(wire)
    assert fragment is not None
    assert (fragment.publisher, fragment.version, fragment.segment, fragment.pushed) == (4, 1, 0, False)
    assert np.array_equal(fragment.lanes, lanes)
