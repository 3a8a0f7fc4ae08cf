"""Headers written as Scapy writes packets, with layers of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradbed.common.errors import UserError
from gradbed.experiments.traffic.packet_options import Template
from gradbed.topo.generators import star

LAYERS = """
from scapy.fields import ByteField, ShortField
from scapy.packet import Packet, bind_layers
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

class Hops(Packet):
    name = "Hops"
    fields_desc = [ShortField("protocol", 0), ByteField("hop", 0), ByteField("number", 0)]

bind_layers(Ether, Hops, type=0x1212)
bind_layers(Hops, IP, protocol=0x0800)
"""

TOPOLOGY = star(3)


def header(text: str, layers: Path | None = None, frame_bytes: int = 200, flows: int = 1) -> list[bytes]:
    made = Template(text, layers).headers(TOPOLOGY, frame_bytes)(("h2", "h3"), flows)
    return [bytes.fromhex(each) for each in made]


def test_what_is_left_out_is_that_of_the_pair() -> None:
    (made,) = header("Ether()/IP(dst=$dst)/UDP(dport=99)")
    read = Ether(made + bytes(158))
    sender, receiver = TOPOLOGY.host("h2"), TOPOLOGY.host("h3")
    assert (read.src, read.dst) == (sender.mac, sender.gateway_mac)
    assert (read[IP].src, read[IP].dst, read[IP].len) == (sender.ip, receiver.ip, 186)
    assert (read[UDP].dport, read[UDP].sport, read[UDP].len, read[UDP].chksum) == (99, 49152, 166, 0)
    checksum = read[IP].chksum
    del read[IP].chksum
    assert Ether(bytes(read))[IP].chksum == checksum


def test_flows_differ_by_their_variables() -> None:
    one, other = (Ether(each) for each in header("Ether()/IP()/UDP(sport=$port, dport=1000+$flow)", flows=2))
    assert (one[UDP].sport, one[UDP].dport) == (49152, 1000)
    assert (other[UDP].sport, other[UDP].dport) == (49153, 1001)


def test_layers_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "layers.py"
    file.write_text(LAYERS)
    (made,) = header("Ether()/Hops(hop=7, number=$dst_number)/IP(tos=1)", file)
    assert made[12:18] == bytes.fromhex("1212 0800 07 03")
    assert IP(made[18:]).tos == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Ether()/IP(dst=$destination)", r"no \$destination"),
        ("Ether()/IP(", "--template: 'Ether"),
        ("Ether()/Unknown()", "NameError"),
        ("Ether(nothing=1)", "nothing"),
        ("1 + 1", "no Scapy packet, but int"),
        ("Ether()/IP()/Raw(bytes(150))", "do not fit a frame of 200 bytes"),
        ("Ether()/IP(ttl=1000)", "Scapy cannot make it"),
    ],
)
def test_templates_that_cannot_be_are_one_line(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        header(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch {}')",
        "open('{}', 'w')",
        "os.system('touch {}')",
        "Ether().__class__.__base__.__subclasses__()",
        "Ether(**{{'src': 1}})",
        "[open('{}', 'w') for _ in (1,)]",
        "(lambda: open('{}', 'w'))()",
        "sendp(Ether())",
        "Ether(src=(x := 1))",
        "f'{{open}}'",
        "Ether()" + "/Ether()" * 20_000,
    ],
)
def test_a_template_is_no_program(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        header(text.format(tmp_path / "made"))
    assert "\n" not in str(caught.value) and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no such file"),
        ("import nothing_such", ":1: ModuleNotFoundError"),
        ("a = (", ":1: SyntaxError"),
    ],
)
def test_layers_that_cannot_be_are_one_line(text: str | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "layers.py"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        Template("Ether()", file)
    assert "\n" not in str(caught.value)
