"""Types that controllers name by strings."""

from __future__ import annotations

import pytest
from finsy.proto import p4d, p4r
from hypothesis import given
from hypothesis import strategies as st

from gradbed.switch.device import ActionCall, KeyMatch
from gradbed.switch.p4runtime.status import RequestError, StatusCode
from gradbed.switch.p4runtime.values import TranslatedNames, Translations
from tests.unit.p4runtime.client import INSERT, Client, action, entry, exact
from tests.unit.p4runtime.fake_device import FakeDevice
from tests.unit.p4runtime.sample_program import FORWARD, HOSTS, LEARN, PORTS, config


def code_of(names: TranslatedNames, text: bytes) -> StatusCode:
    with pytest.raises(RequestError) as caught:
        names.decode(text)
    return caught.value.code


class TestNames:
    def test_values(self) -> None:
        names = TranslatedNames("t", 8)
        assert [names.decode(n) for n in (b"red", b"3", b"blue", b"red", b"green")] == [1, 3, 2, 1, 4]
        assert [names.encode(v) for v in (1, 2, 3, 4, 200)] == [b"red", b"blue", b"3", b"green", b"200"]
        assert names.decode(b"0") == 0 and names.encode(0) == b"0"
        assert names.decode(b"007") == 5  # a name: decimal numbers are written one way

    def test_refusals(self) -> None:
        names = TranslatedNames("t", 2)
        assert code_of(names, b"") == code_of(names, b"\xff") == StatusCode.INVALID_ARGUMENT
        assert code_of(names, b"4") == code_of(names, b"9" * 70) == StatusCode.OUT_OF_RANGE
        assert [names.decode(n) for n in (b"a", b"b", b"c")] == [1, 2, 3]
        assert code_of(names, b"d") == StatusCode.RESOURCE_EXHAUSTED
        assert code_of(names, b"2") == StatusCode.INVALID_ARGUMENT
        assert names.decode(b"a") == 1

    @given(st.lists(st.text(min_size=1).map(str.encode)))
    def test_one_value_for_a_name(self, texts: list[bytes]) -> None:
        names = TranslatedNames("t", 64)
        values: dict[bytes, int] = {}
        for text in texts:
            try:
                value = names.decode(text)
            except RequestError:
                continue  # a number that stands for another name, or is too large
            assert values.setdefault(text, value) == value
            assert names.encode(value) == text
        assert len(set(values.values())) == len(values)

    def test_types_with_one_uri_share_their_names(self) -> None:
        types = Translations()
        assert types.names("a", "uri", 8).decode(b"x") == 1
        assert types.names("b", "uri", 8).decode(b"y") == 2
        assert types.names("c", "", 8).decode(b"z") == 1


def named_config() -> p4r.ForwardingPipelineConfig:
    """PortId is a string: in table `ports`, in the first parameter of `forward`, in packet-ins, in the digest."""
    result = config()
    result.p4info.type_info.new_types["PortId"].translated_type.sdn_string.SetInParent()
    [forward] = [a for a in result.p4info.actions if a.preamble.id == FORWARD]
    forward.params[0].type_name.name = "PortId"
    return result


@pytest.fixture
def named(client: Client) -> Client:
    client.push(pipeline=named_config())
    return client


def test_match_fields_and_parameters(named: Client, device: FakeDevice) -> None:
    by_port = entry(PORTS, exact(1, b"uplink"), action=action(FORWARD, b"downlink", b"\x01"))
    assert named.insert(by_port) == StatusCode.OK
    [(key, call, _)] = device.state.tables["Ingress.ports"].entries.values()
    assert (key, call) == ((KeyMatch(1),), ActionCall("Ingress.forward", (2, 1)))
    assert named.read(entry(PORTS)) == [by_port]
    assert (
        named.insert(entry(PORTS, exact(1, b"512"), action=action(FORWARD, b"3", b"\x01"))) == StatusCode.OUT_OF_RANGE
    )
    assert (
        named.insert(entry(PORTS, exact(1, b""), action=action(FORWARD, b"3", b"\x01")))
        == StatusCode.INVALID_ARGUMENT
    )
    assert named.insert(entry(HOSTS, exact(1, b"\x05"), action=action(FORWARD, b"9", b"\x01"))) == StatusCode.OK


def test_packet_ins_and_digests(bare_client: Client, device: FakeDevice) -> None:
    primary = bare_client.become_primary()
    bare_client.push(pipeline=named_config())
    bare_client.write((INSERT, entry(PORTS, exact(1, b"uplink"), action=action(FORWARD, b"3", b"\x01"))))
    for port, name in ((1, b"uplink"), (7, b"7")):
        device.packet_in((port << 7).to_bytes(2, "big"))
        assert primary.next().packet.metadata[0].value == name
    bare_client.write((INSERT, p4r.DigestEntry(digest_id=LEARN)))
    assert device.digest is not None
    device.digest(1, (5, 1, 0))
    [data] = primary.next().digest.data
    assert data.struct.members[1] == p4d.P4Data(bitstring=b"uplink")


def test_devices_share_the_names_of_a_pipeline(named: Client, devices: dict[int, FakeDevice]) -> None:
    other = Client(named.channel, 2)
    other.become_primary()
    other.push(pipeline=named_config())
    for client, name in ((named, b"a"), (other, b"b"), (other, b"a")):
        assert client.insert(entry(PORTS, exact(1, name), action=action(FORWARD, b"9", b"\x01"))) == StatusCode.OK
    keys = [[key for (key,), _, _ in d.state.tables["Ingress.ports"].entries.values()] for d in devices.values()]
    assert keys == [[KeyMatch(1)], [KeyMatch(2), KeyMatch(1)]]
